package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/spelling"
	"github.com/sajou-dev/sajou-go/replay"
)

// defaultStore is the store when neither -C nor SAJOU_STORE names one.
const defaultStore = "./sajou-data"

// app is one invocation: the streams, and what the global flags say.
type app struct {
	stdin  io.Reader
	stdout io.Writer
	stderr io.Writer

	store   string
	format  string
	session string // --session; empty: see target
	wait    time.Duration

	// ticks says when to look again at what is watched. Nil: a clock does.
	ticks <-chan time.Time

	running bool   // the command line was understood and a command has begun
	about   string // the session that was opened last; empty before
}

// run executes one command line.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	a := &app{stdin: stdin, stdout: stdout, stderr: stderr}
	root := a.root()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil || a.running {
		return a.pointToVerify(err)
	}
	// What cobra refuses before a command begins is misuse.
	if e, ok := errors.AsType[*exit](err); ok {
		return e
	}
	return misuse("%w; see sajou-replay help", err)
}

// rootArgs are the arguments of the program itself: none, so that the first one
// that is there is a command that is not.
func rootArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return noCommand(cmd, args[0])
}

// noCommand says that a command has no such command, and which may be meant.
func noCommand(of *cobra.Command, name string) error {
	var names []string
	for _, c := range of.Commands() {
		if c.IsAvailableCommand() || c.Name() == "help" {
			names = append(names, c.Name())
		}
	}
	hint := "see " + of.CommandPath() + " --help"
	if meant, ok := spelling.Nearest(name, names); ok {
		hint = fmt.Sprintf("did you mean %q?", of.CommandPath()+" "+meant)
	}
	return misuse("there is no command %q; %s", of.CommandPath()+" "+name, hint)
}

// flagError says what is wrong with the flags of a command, and what may be
// meant.
func flagError(cmd *cobra.Command, err error) error {
	message := err.Error()
	if at := strings.LastIndex(message, " in -"); at >= 0 && strings.HasPrefix(message, "unknown shorthand flag") {
		if number := message[at+len(" in "):]; len(number) > 1 && number[1] >= '0' && number[1] <= '9' {
			return misuse("%s is neither a flag nor an address; from the end one counts like this: end%s", number, number)
		}
	}
	hint := "see " + cmd.CommandPath() + " --help"
	if name, unknown := strings.CutPrefix(message, "unknown flag: --"); unknown {
		var names []string
		collect := func(f *pflag.Flag) {
			if !f.Hidden {
				names = append(names, f.Name)
			}
		}
		cmd.LocalFlags().VisitAll(collect)
		cmd.InheritedFlags().VisitAll(collect)
		if meant, ok := spelling.Nearest(name, names); ok {
			hint = "did you mean --" + meant + "?"
		}
	}
	return misuse("%w; %s", err, hint)
}

// pointToVerify says of an error about damaged bytes where to look next.
func (a *app) pointToVerify(err error) error {
	if a.about == "" || !errors.Is(err, eventlog.ErrCorrupt) {
		return err
	}
	return fmt.Errorf("%w; where it breaks and what is whole, tells: sajou-replay verify -s %s", err, shellWord(a.about))
}

// shellWord quotes a word where a shell would read more in it.
func shellWord(s string) string {
	plain := func(r rune) bool {
		return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("-_./:@%+=,", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "sajou-replay",
		Short: "Travel in time through recorded sessions",
		Long: `sajou-replay opens recorded agent sessions and travels in time through them.

A store is a directory that holds sessions. A session is a log of entries,
numbered from 1, each hash-chained to the one before. Everything else, such as
which performances are under way at a moment and what is seen on the stage then,
is computed from the log.

Where a command takes a SESSION and none is given, it means the one that was
begun last. An argument that reads as an address (or a range) is one; a session
whose name looks like an address is named with --session.

Addresses of a moment:
  812              after entry 812; 0 is the beginning
  end, end-10      the last entry, the tenth before it
  #9f3ab2c1        the entry whose hash begins so
  812+350ms        350 ms of session time after entry 812
  t:1.5s           session time; t:14:02:05 is the time of day (UTC)
  perf:p-812-1     where that performance began
  beat:salary      where that beat landed; beat:salary#2 the second time, #-1 the last
  turn:3           where turn 3 was opened
Ranges a..b include both ends; a.. and ..b are open.`,
		Example: `  sajou-replay demo
  sajou-replay sim --example
  sajou-replay import session.jsonl --define choreographies.json
  sajou-replay cat --type error
  sajou-replay state end performances
  sajou-replay render end -o picture.svg
  sajou-replay bisect --where 'state.performances.size() > 3'`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          rootArgs,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if a.session == "" && cmd.Flags().Changed("session") {
				return misuse("--session is empty; is a variable of the shell unset?")
			}
			if a.format != "text" && a.format != "json" && a.format != "jsonl" {
				return misuse("-o %q: the formats are text, json and jsonl", a.format)
			}
			a.running = true
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	store := os.Getenv("SAJOU_STORE")
	if store == "" {
		store = defaultStore
	}
	flags := root.PersistentFlags()
	flags.StringVarP(&a.store, "store", "C", store, "directory of the store; default from SAJOU_STORE")
	flags.StringVarP(&a.format, "output", "o", "text", "text, json or jsonl")
	flags.StringVarP(&a.session, "session", "s", "", "session, also one whose name looks like an address")
	flags.DurationVar(&a.wait, "wait", 2*time.Second, "how long to wait for a store that another process has open")
	_ = root.RegisterFlagCompletionFunc("session", a.completeSession)
	_ = root.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"text", "json", "jsonl"}, cobra.ShellCompDirectiveNoFileComp))
	_ = root.MarkPersistentFlagDirname("store")
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(
		a.demoCommand(), a.importCommand(), a.exportCommand(),
		a.lsCommand(), a.infoCommand(), a.catCommand(), a.tailCommand(), a.showCommand(),
		a.stateCommand(), a.diffCommand(), a.playCommand(), a.renderCommand(),
		a.verifyCommand(), a.scanCommand(), a.bisectCommand(),
		a.knowsCommand(), a.firstKnownCommand(), a.leakCommand(), a.whyCancelledCommand(), a.whyRejectedCommand(), a.policyDiffCommand(),
		a.snapshotCommand(), a.defineCommand(), a.lintCommand(), a.rehearseCommand(), a.simCommand(), a.episodeCommand(), a.beatsCommand(), a.reportCommand(),
		a.versionCommand(), a.manCommand(),
	)
	root.InitDefaultCompletionCmd()
	root.InitDefaultHelpCmd()
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "help":
			helpOf(cmd)
		case "completion":
			cmd.Args = groupArgs
			cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		}
	}
	return root
}

// helpOf makes help about a command that does not exist misuse.
func helpOf(help *cobra.Command) {
	run := help.Run
	help.Run = nil
	help.RunE = func(cmd *cobra.Command, args []string) error {
		if found, rest, err := cmd.Root().Find(args); err != nil || found == nil || len(rest) > 0 {
			if found != nil && len(rest) > 0 {
				return noCommand(found, rest[0])
			}
			return misuse("there is no command %q; see sajou-replay help", strings.Join(args, " "))
		}
		run(cmd, args)
		return nil
	}
}

// groupArgs are the arguments of a command that only has commands: none.
func groupArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return noCommand(cmd, args[0])
}

// openReading opens the store without changing it.
func (a *app) openReading() (*sajou.Engine, error) {
	return a.open(sajou.Config{ReadOnly: true, LockWait: a.wait})
}

// openWriting opens the store, and makes it if there is none.
func (a *app) openWriting() (*sajou.Engine, error) {
	return a.open(sajou.Config{LockWait: a.wait})
}

func (a *app) open(cfg sajou.Config) (*sajou.Engine, error) {
	if a.store == "" {
		return nil, misuse("the store's name is empty")
	}
	if info, err := os.Stat(a.store); err == nil && !info.IsDir() {
		return nil, fail(exitNotFound, "%s is a file, and a store is a directory", a.store)
	}
	engine, err := sajou.Open(a.store, cfg)
	switch {
	case errors.Is(err, eventlog.ErrCorrupt):
		// What follows the first line repeats it.
		cause, _, _ := strings.Cut(err.Error(), "\n")
		return nil, fail(exitNo, "the store in %s is damaged and cannot be opened: %s", a.store, oneLine(cause))
	case errors.Is(err, eventlog.ErrNoStore):
		if _, err := os.ReadDir(a.store); errors.Is(err, os.ErrPermission) {
			return nil, fail(exitLocked, "the store cannot be read: %v", err)
		}
		return nil, fail(exitNotFound, "there is no store in %s; name one with -C, or begin one with: sajou-replay import FILE", a.store)
	case errors.Is(err, eventlog.ErrLocked):
		return nil, fail(exitLocked, "the store in %s is in use by another process; end that one, or wait for it with --wait 1m", a.store)
	case errors.Is(err, eventlog.ErrVersion):
		return nil, fail(exitNo, "the store in %s cannot be read by this version of the program: %w", a.store, err)
	case errors.Is(err, os.ErrPermission), errors.Is(err, syscall.EROFS):
		hint := ""
		if cfg.ReadOnly {
			hint = "; also for reading it is locked by a file in it: copy it to where you may write"
		}
		return nil, fail(exitLocked, "the store in %s cannot be opened: %w%s", a.store, err, hint)
	}
	return engine, err
}

// target is the session that a command is about, opened for reading.
type target struct {
	engine *sajou.Engine
	name   string
	log    *eventlog.Session
	travel *replay.Replay
}

func (t *target) Close() error { return t.engine.Close() }

// target opens the store and the session of that name; an empty name means
// the one that --session names, or else the latest. The caller closes it.
func (a *app) target(name string) (*target, error) {
	engine, err := a.openReading()
	if err != nil {
		return nil, err
	}
	t, err := a.targetIn(engine, name)
	if err != nil {
		return nil, errors.Join(err, engine.Close())
	}
	return t, nil
}

// argTarget is target for a command whose only argument is the session.
func (a *app) argTarget(args []string) (*target, error) {
	name, err := a.sessionArg(args)
	if err != nil {
		return nil, err
	}
	return a.target(name)
}

func (a *app) targetIn(engine *sajou.Engine, name string) (*target, error) {
	name, err := a.choose(engine, name)
	if err != nil {
		return nil, err
	}
	a.about = name
	travel, err := engine.Replay(name).Open()
	if errors.Is(err, eventlog.ErrNoSession) || errors.Is(err, eventlog.ErrInvalid) {
		return nil, noSession(engine, a.store, name)
	}
	if err != nil {
		return nil, err
	}
	log, err := engine.Log().Session(name)
	if err != nil {
		return nil, err
	}
	return &target{engine, name, log, travel}, nil
}

// choose returns the name of the session that a command is about: the given
// one, that of --session, or the latest. Whether it exists is not looked at.
func (a *app) choose(engine *sajou.Engine, name string) (string, error) {
	if name == "" {
		name = a.session
	}
	if name != "" {
		return name, nil
	}
	latest, err := engine.Latest()
	if errors.Is(err, eventlog.ErrNoSession) {
		return "", fail(exitNotFound, "the store in %s has no session yet; begin one with: sajou-replay import FILE", a.store)
	}
	return latest, err
}

// noSession says which sessions there are instead.
func noSession(engine *sajou.Engine, store, name string) error {
	const most = 5
	names, err := engine.Sessions()
	if err != nil || len(names) == 0 {
		return fail(exitNotFound, "there is no session %q in %s; it has none yet", name, store)
	}
	more := ""
	if len(names) > most {
		more = fmt.Sprintf(" and %d more", len(names)-most)
		names = names[len(names)-most:]
	}
	return fail(exitNotFound, "there is no session %q in %s; it has %s%s", name, store, strings.Join(names, ", "), more)
}

func (a *app) completeSession(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	a.wait = 0
	engine, err := a.openReading()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer engine.Close()
	names, err := engine.Sessions()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
