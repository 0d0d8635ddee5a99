package episodecmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/director/play"
	"github.com/sajou-dev/sajou-go/director/script"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/session"
)

func playCommand(a *cli.App) *cobra.Command {
	var f playFlags
	cmd := &cobra.Command{
		Use:   "play [FILE|NAME]",
		Short: "Play an episode: you are the user",
		Long: `Play plays an episode with you as the user: you say your lines, the character
answers, and the director makes sure that the beats land. When a beat offers a
choice, the choice is your next line. Without an argument it plays the bundled
interview, which needs no model and no network. Play records everything in a
session of the store, and shows it once it is durable. Without -s it begins a
session named after the episode; with -s NAME --new it begins session NAME.

You may leave at any moment, with ctrl-D or ctrl-C; -s NAME continues the
session, even in the middle of a turn. The play ends when the turn budget is
used up; with --beyond it continues until you leave.

Your input is your line. Answer a choice by its number or its id, or, if the
episode allows it, in your own words. Input after a slash is a command: /1
selects from the cards beside the input, /directions shows the director's
guidance, /end leaves, /help lists the commands. On a terminal the tab key shows
directions too. If input or output is not a terminal, play reads lines, so that
a play can be scripted; with -o jsonl it writes every event as JSON.

The character is played by a script, a JSON file of lines with conditions
(--script; docs/episodes.md), by a model behind the chat completions API
(--character-url and --model; the key comes from SAJOU_CHARACTER_KEY), or else
by a stand-in that says the instructions of the director. The judge is the
script, the stand-in, or a model (--judge-url; the key comes from
SAJOU_JUDGE_KEY). Without a judge, beats that need one do not land.

The exit code is 0 when the play ended or you left, 130 when it was interrupted,
and 7 when the character could not answer.`,
		Example: `  sajou-replay episode play
  sajou-replay episode play -s interview
  sajou-replay episode play -s second-try --new
  sajou-replay episode play mine.json --script mine.script.json --directions
  sajou-replay episode play --character-url http://localhost:11434/v1 --model llama3.2
  printf 'Hello.\n/end\n' | sajou-replay episode play -o jsonl`,
		Args: cli.Between(0, 1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return script.Names(), cobra.ShellCompDirectiveDefault
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(); err != nil {
				return err
			}
			name := ""
			if len(args) > 0 {
				name = args[0]
			}
			return playEpisode(a, cmd, name, &f)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.directions, "directions", false, "show the director's guidance")
	flags.BoolVar(&f.begin, "new", false, "begin the session that -s names")
	flags.BoolVar(&f.beyond, "beyond", false, "continue when the turn budget is used up")
	flags.BoolVar(&f.manual, "manual-time", false, "let no time pass in a new session, so that equal plays give equal head hashes")
	flags.StringVar(&f.script, "script", "", "file with the character's lines")
	f.Add(flags)
	_ = cmd.MarkFlagFilename("script", "json")
	return cmd
}

// patience is how long a judge's model has for its verdicts.
const patience = 30 * time.Second

// config is how a store is opened for playing.
func (f *playFlags) config(wait time.Duration) sajou.Config {
	cfg := sajou.Config{LockWait: wait, JudgeTimeout: patience}
	if f.manual {
		// A clock that stands still leaves no latency of a judge in the log either.
		cfg.Now = func() time.Time { return time.Unix(0, 0) }
		cfg.AfterFunc = func(d time.Duration, f func()) func() bool { return time.AfterFunc(d, f).Stop }
	}
	return cfg
}

// playEpisode plays an episode, or goes on with one, as one sitting.
func playEpisode(a *cli.App, cmd *cobra.Command, name string, f *playFlags) (err error) {
	ctx, cancel := context.WithCancel(cmd.Context())
	defer cancel()
	var episode *episode.Episode
	if name == "" && a.Session == "" {
		name = "interview"
	}
	if name != "" {
		if episode, err = episodeNamed(ctx, a, name); err != nil {
			return err
		}
	}
	if f.script != "" { // before the store is locked: a pipe may have no writer yet
		if f.lines, err = cli.ReadFile(ctx, f.script, script.MaxSize); err != nil {
			return err
		}
	}
	engine, err := a.Open(f.config(a.Wait))
	if err != nil {
		return err
	}
	shut := sync.OnceValue(engine.Close)
	defer func() { err = errors.Join(err, shut()) }()
	s, err := sitDown(ctx, a, engine, episode, f)
	if err != nil {
		return err
	}
	c, err := f.cast(s.Episode())
	if err != nil {
		return err
	}
	defer c.close()
	s.Cast(c.actor, c.judge)
	if c.remark != "" {
		fmt.Fprintf(a.Stderr, "%s\n", c.remark)
	}
	// An interruption does not wait for a model. The log stays as it is: the next
	// sitting awaits again what this one did.
	defer context.AfterFunc(ctx, func() { _ = shut() })()
	o := a.Output()
	keys, _ := a.Stdin.(*os.File)
	if a.Format == "text" && a.IsInteractive() {
		err = s.PlayTerminal(ctx, play.Terminal{
			Keys: keys, Out: a.Stdout, Color: os.Getenv("NO_COLOR") == "", Directions: f.directions, Interrupted: cancel,
		})
	} else {
		err = s.PlayLines(ctx, a.Stdin, &play.Page{Out: o, Directions: f.directions})
	}
	return leave(a, cmd, s, o, f, err)
}

// episodeNamed returns the bundled episode of that name, or else the one in the
// file.
func episodeNamed(ctx context.Context, a *cli.App, name string) (*episode.Episode, error) {
	text, _, bundled := script.Bundled(name)
	if !bundled {
		e, _, err := loadEpisode(ctx, a, name, "nothing was played")
		if errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("%w; the bundled episodes are %v", err, script.Names())
		}
		return e, err
	}
	e, diagnostics := episode.Parse(name, text)
	return e, diagnostics.Err(episode.ErrEpisode)
}

// sitDown opens the session that is to be played, and begins the episode in it
// unless it is under way. It begins a session that -s names only if told so.
func sitDown(ctx context.Context, a *cli.App, engine *sajou.Engine, e *episode.Episode, f *playFlags) (*play.Sitting, error) {
	names, err := engine.Sessions()
	if err != nil {
		return nil, err
	}
	name := a.Session
	if name == "" {
		base := e.ID
		if eventlog.CheckName(base) != nil {
			base = "episode"
		}
		name = base
		for n := 2; slices.Contains(names, name); n++ {
			name = fmt.Sprintf("%s-%d", base, n)
		}
	}
	if err := eventlog.CheckName(name); err != nil {
		return nil, cli.Misuse("--session: %s", cli.OneLine(err.Error()))
	}
	authority := session.TimeWall
	if f.manual {
		authority = session.TimeManual
	}
	exists := slices.Contains(names, name)
	switch {
	case exists && f.begin:
		return nil, cli.Misuse("session %q exists already; continue it without --new, or name another", name)
	case !exists && a.Session != "" && !f.begin:
		missing := cli.NoSession(engine, a.Store, name)
		if strings.HasSuffix(missing.Error(), "?") {
			return nil, cli.Fail(cli.ExitNotFound, "%w Or begin it with --new", missing)
		}
		return nil, cli.Fail(cli.ExitNotFound, "%w; begin it with --new", missing)
	}
	if !exists && e == nil {
		if e, err = episodeNamed(ctx, a, "interview"); err != nil {
			return nil, err
		}
	}
	session, err := engine.Begin(ctx, name, authority)
	if err != nil {
		return nil, err
	}
	a.Opened = name
	s, err := play.Begin(ctx, session, e)
	switch {
	case errors.Is(err, play.ErrNoEpisode):
		return nil, cli.Misuse("no episode is played in %q; name the one to begin there", name)
	case errors.Is(err, play.ErrOtherEpisode):
		return nil, cli.Misuse("another episode is played in %q, or another version of it; to go on with that one, name none", name)
	case err != nil:
		return nil, err
	}
	if f.beyond {
		s.GoBeyond()
	}
	return s, nil
}

// leave ends a sitting: with a summary if the user has seen the end, and with
// what can be done next.
func leave(a *cli.App, cmd *cobra.Command, s *play.Sitting, o *cli.Output, f *playFlags, err error) error {
	ctx := cmd.Context()
	if ctx.Err() != nil || errors.Is(err, context.Canceled) {
		err = context.Canceled
	}
	again := func() {
		fmt.Fprintf(a.Stderr, "to go on from here:\n%s\n", a.CommandLine("episode play -s "+cli.ShellWord(s.Session().Name())+f.again()))
	}
	if err != nil && !errors.Is(err, play.ErrLeft) {
		if flushing := o.Flush(); flushing != nil {
			return flushing
		}
		again()
		return err
	}
	over, looking := s.Over(ctx)
	if looking != nil {
		return looking
	}
	if a.Format == "text" && !over && !errors.Is(err, play.ErrLeft) {
		again()
		return o.Flush()
	}
	page := &play.Page{Out: o}
	if err := errors.Join(page.WriteSummary(ctx, s), o.End()); err != nil {
		return err
	}
	if a.Format != "text" {
		return nil
	}
	if !over {
		again()
	}
	name := cli.ShellWord(s.Session().Name())
	fmt.Fprintln(a.Stderr, "to look at it again:")
	for _, line := range []string{"beats " + name, "cat " + name + " --kind beat", "verify " + name} {
		word, _, _ := strings.Cut(line, " ")
		if found, _, err := cmd.Root().Find([]string{word}); err == nil && found != cmd.Root() {
			fmt.Fprintln(a.Stderr, a.CommandLine(line))
		}
	}
	return nil
}
