package main

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/agentscmd"
	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/episodecmd"
	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/logcmd"
	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/servecmd"
	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/stagecmd"
	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/statecmd"
	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/textcmd"
	"github.com/sajou-dev/sajou-go/internal/spelling"
)

// run executes one command line.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	return execute(ctx, (&cli.App{Stdin: stdin, Stdout: stdout, Stderr: stderr}), args)
}

func execute(ctx context.Context, a *cli.App, args []string) error {
	root := rootCommand(a)
	root.SetArgs(withSteps(root, args))
	defer a.GiveBack()
	cmd, err := root.ExecuteContextC(ctx)
	err = explained(a, a.Memory.Watched(err))
	a.KeepRecent()
	if cli.GivesVerdict(cmd) {
		return cli.VerdictOnly(err, a.Lost != nil)
	}
	return err
}

// explained gives the error of a command its exit code and the hints of the program.
func explained(a *cli.App, err error) error {
	if err == nil || a.Running {
		return a.ReportLoss(a.PointToVerify(err))
	}
	// Errors of cobra before a command begins are misuse.
	if e, ok := errors.AsType[*cli.ExitError](err); ok {
		return e
	}
	return cli.Misuse("%w; see sajou-replay help", err)
}

// rootArgs refuses the arguments of the program itself: the first one is an unknown
// command.
func rootArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return cli.NoCommand(cmd, args[0])
}

// flagError explains a mistake in the flags of a command.
func flagError(cmd *cobra.Command, err error) error {
	if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		f := invalid.GetFlag()
		return cli.Misuse("--%s %q: must be %s", f.Name, invalid.GetValue(), valueText(f.Value.Type()))
	}
	message := err.Error()
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
	return cli.Misuse("%w; %s", err, hint)
}

// valueText describes the values of a type of flags.
func valueText(kind string) string {
	switch kind {
	case "duration":
		return "a duration such as 500ms or 2s"
	case "age":
		return "an age such as 30d, 2w or 36h"
	case "float64":
		return "a number"
	case "int":
		return "a whole number"
	case "uint64":
		return "a whole number, 0 or more"
	case "bool":
		return "true or false"
	}
	return "a " + kind
}

// The groups of commands in the help, in their order.
const (
	groupRecord  = "record"
	groupServe   = "serve"
	groupTime    = "time"
	groupAudit   = "audit"
	groupStage   = "stage"
	groupAgents  = "agents"
	groupEpisode = "episode"
)

// addGroup adds commands to the root under a title in its help.
func addGroup(root *cobra.Command, id, title string, commands ...*cobra.Command) {
	root.AddGroup(&cobra.Group{ID: id, Title: title})
	for _, cmd := range commands {
		cmd.GroupID = id
	}
	root.AddCommand(commands...)
}

func rootCommand(a *cli.App) *cobra.Command {
	root := &cobra.Command{
		Use:   "sajou-replay",
		Short: "Record and replay sessions of AI agents",
		Long: `sajou-replay records sessions of AI agents and travels in time through them.

A session is an append-only log of entries, numbered from 1; each entry contains
the hash of the one before it. Everything else, such as the state and the picture
of the stage at a moment, is computed from the log. A store is a directory of
sessions: ./sajou-data, or the one of -C or SAJOU_STORE. While a server holds the
store ("sajou-replay serve"), commands read what it lends them; --server URL reads
from a server elsewhere.

To begin, run "sajou-replay demo" and "sajou-replay sim --example". They record
the sessions night-shift and conversation, to which the examples in the help of
the commands apply.

A command without a SESSION uses the one that was begun last. An argument that
has the form of an address or a range is one; to name such a session, use
--session.

An address names a moment:
  36               after entry 36; 0 is the beginning
  end, end-10      the last entry, the tenth before it
  #9f3ab2c1        the entry whose hash begins with these digits
  36+350ms         350 ms of session time after entry 36
  t:1.5s           session time; t:14:02:05 is a time of day (UTC)
  perf:p-36-1      the begin of a performance
  corr:c-7         the first signal with a correlation id; corr:c-7#2 the second
  beat:salary      where a beat landed; beat:salary#2 the second time, #-1 the last
  turn:3           where turn 3 of an episode was opened
  @failure         a bookmark; see "sajou-replay mark"
  +5, -5           5 entries after or before the address that was used last in the
                   session, which is @; +50ms, -50ms count session time. In the
                   range 36..+5 they count from its beginning.
An offset of session time may follow each of them. After the number or hash of an
entry it goes up to the next entry; perf:p-36-1+300ms, beat:salary+2s or @+1s pass
the entries that came since.
A range A..B includes both ends; A.. and ..B are open.

Results go to stdout, remarks and errors to stderr. The exit codes are
  0    yes: found, equal, verified, done
  1    no: not found, different, damaged, refused
  2    misuse: a bad flag, argument, expression or input file
  3    done with loss, or not proven because not everything could be searched
  4    no such store, session, address, agent or path
  5    inconclusive, or ended by --max-memory
  6    the store is locked or read-only
  7    a test could not run: its program, its picture, or an expression over budget
  125  bisect cannot test an end of the range, or check the moment
  128  check cannot answer
  130  interrupted
The help of a command says which apply to it.`,
		Example: `  sajou-replay demo
  sajou-replay sim --example
  sajou-replay import session.jsonl --define choreographies.json
  sajou-replay cat --type error
  sajou-replay state end performances
  sajou-replay render end -O picture.svg
  sajou-replay bisect --where 'state.performances.size() > 3'`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          rootArgs,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			a.Context = cmd.Context()
			// A command may have a flag of its own with this name.
			if a.Session == "" && cmd.Root().PersistentFlags().Changed("session") {
				return cli.Misuse("--session is empty; is a variable of the shell unset?")
			}
			if a.Format != "text" && a.Format != "json" && a.Format != "jsonl" {
				return cli.Misuse("-o %q: must be text, json or jsonl", a.Format)
			}
			if err := a.ChooseServer(cmd); err != nil {
				return err
			}
			if err := a.Memory.Watch(cmd); err != nil {
				return err
			}
			a.Running = true
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	store := os.Getenv("SAJOU_STORE")
	if store == "" {
		store = cli.DefaultStore
	}
	flags := root.PersistentFlags()
	flags.StringVarP(&a.Store, "store", "C", store, "use the store in `DIR`; SAJOU_STORE sets the default")
	flags.StringVarP(&a.Format, "output", "o", "text", "write results as `FORMAT`: text, json or jsonl")
	flags.StringVarP(&a.Session, "session", "s", "", "use session `NAME`, even if it looks like an address")
	flags.BoolVar(&a.NoSnapshots, "no-snapshots", false, "compute states from the first entry; neither read nor save snapshots")
	flags.DurationVar(&a.Wait, "wait", 2*time.Second, "wait at most this long for a store that is in use")
	a.ServerFlags(root)
	a.Memory.Flag(flags)
	_ = root.RegisterFlagCompletionFunc("session", a.CompleteSession)
	_ = root.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"text", "json", "jsonl"}, cobra.ShellCompDirectiveNoFileComp))
	_ = root.MarkPersistentFlagDirname("store")
	root.SetIn(a.Stdin)
	root.SetOut(a.Stdout)
	root.SetErr(a.Stderr)
	root.SetFlagErrorFunc(flagError)
	addGroup(root, groupRecord, "Record and read sessions:",
		demoCommand(a), logcmd.Find(a), logcmd.Import(a), logcmd.Formats(a), logcmd.Export(a),
		logcmd.Ls(a), logcmd.Info(a), logcmd.Cat(a), logcmd.Tail(a), logcmd.Show(a), textcmd.Transcript(a), textcmd.Grep(a))
	addGroup(root, groupServe, "Serve a store to other programs:",
		servecmd.Serve(a, programVersion()), servecmd.Config(a), servecmd.Token(a), servecmd.Hook(a), servecmd.Hooks(a), servecmd.Record(a), servecmd.MCP(a, programVersion()))
	addGroup(root, groupTime, "See a moment, and find one:",
		statecmd.State(a), statecmd.Diff(a), statecmd.Scan(a), statecmd.Bisect(a), statecmd.Fork(a), statecmd.Check(a), statecmd.Blame(a), statecmd.Why(a), statecmd.Order(a), statecmd.ExtractTest(a), statecmd.Risks(a), statecmd.Mark(a), stagecmd.Play(a), stagecmd.Render(a))
	addGroup(root, groupAudit, "Verify, back up, repair and delete:",
		logcmd.Verify(a), logcmd.Backup(a), logcmd.Restore(a), logcmd.Repair(a), logcmd.Snapshot(a),
		logcmd.Delete(a), logcmd.Prune(a))
	addGroup(root, groupStage, "Write choreographies and scenes:",
		stagecmd.Define(a), stagecmd.Lint(a), stagecmd.Rehearse(a))
	addGroup(root, groupAgents, "Simulate and query agents:",
		agentscmd.Sim(a), agentscmd.Knows(a), agentscmd.FirstKnown(a), agentscmd.Leak(a),
		agentscmd.WhyCancelled(a), agentscmd.WhyRejected(a), agentscmd.PolicyDiff(a))
	addGroup(root, groupEpisode, "Direct episodes:",
		episodecmd.Episode(a), episodecmd.Beats(a), episodecmd.Report(a))
	root.AddCommand(schemaCommand(a), versionCommand(a), manCommand())
	root.InitDefaultCompletionCmd()
	root.InitDefaultHelpCmd()
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "help":
			helpOf(cmd)
		case "completion":
			cmd.Args = cli.GroupArgs
			cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		}
	}
	versionFlag(a, root)
	return root
}

// helpOf makes help about an unknown command misuse.
func helpOf(help *cobra.Command) {
	run := help.Run
	help.Run = nil
	help.RunE = func(cmd *cobra.Command, args []string) error {
		if found, rest, err := cmd.Root().Find(args); err != nil || found == nil || len(rest) > 0 {
			if found != nil && len(rest) > 0 {
				return cli.NoCommand(found, rest[0])
			}
			return cli.Misuse("there is no command %q; see sajou-replay help", strings.Join(args, " "))
		}
		run(cmd, args)
		return nil
	}
}
