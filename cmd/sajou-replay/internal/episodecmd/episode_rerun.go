package episodecmd

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/adapter/openai"
	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/director/history"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/termtext"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/session"
)

// rerun is what the flags of episode rerun say.
type rerun struct {
	file, mode, into string
	url, model       string
}

func rerunCommand(a *cli.App) *cobra.Command {
	var f rerun
	cmd := &cobra.Command{
		Use:   "rerun [SESSION] --into NAME [--episode FILE] [--mode strict|loose|live]",
		Short: "Run an episode again over a recorded session",
		Long: `Rerun plays the recorded inputs of a session, the user's lines and choices and
the character's responses, through the director of a new session with the name
of --into: with the recorded episode, or with the changed episode of --episode,
which must have the same id. Then it lists the differences turn by turn:
directives, verdicts, landed beats, choices and flags. The times are the
recorded ones.

  strict  takes a verdict from the recording if its question is exactly the
          recorded one; another question ends the run with an error that names
          the turn, the beat and the digests of both prompts
  loose   takes the verdict that was recorded for the turn and the beat,
          whatever the question is now; a question that was not asked then is
          unclear
  live    asks a judge again: --judge-url and --judge-model name a service with
          the chat completions API; the key comes from ` + cli.JudgeKey + `

A replay never asks a judge: verdicts are entries of the log. A recorded choice
that is not open now becomes the user's line. The run ends, with the reason, at
the first recorded input that is not possible any more. A session without texts
cannot be run again. Signals and effects that the episode's rules concern happen
as recorded.

The exit code is 0 without differences, and 1 when something differs or the run
ended early.`,
		Example: `  sajou-replay episode rerun friday --into friday-again
  sajou-replay episode rerun friday --episode changed.json --mode loose --into try
  sajou-replay episode rerun friday --mode live --judge-url http://localhost:8080/v1 --judge-model m --into asked`,
		Args: cli.Between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			name, err := a.SessionArg(args)
			if err != nil {
				return err
			}
			cfg, err := f.config(cmd.Context(), a)
			if err != nil {
				return err
			}
			return runRerun(cmd.Context(), a, name, f.into, cfg)
		},
	}
	cmd.Flags().StringVar(&f.into, "into", "", "name of the new session")
	cmd.Flags().StringVar(&f.file, "episode", "", "file with a changed episode")
	cmd.Flags().StringVar(&f.mode, "mode", "strict", "strict, loose or live")
	cmd.Flags().StringVar(&f.url, "judge-url", "", "base address of the service that judges; with --mode live")
	cmd.Flags().StringVar(&f.model, "judge-model", "", "name of the model that judges; with --mode live")
	_ = cmd.MarkFlagFilename("episode", "json", "yaml", "yml")
	_ = cmd.RegisterFlagCompletionFunc("mode", cobra.FixedCompletions([]string{"strict", "loose", "live"}, cobra.ShellCompDirectiveNoFileComp))
	cmd.ValidArgsFunction = a.CompleteSession
	return cmd
}

// config reads what the flags name, and refuses what does not go together.
func (f *rerun) config(ctx context.Context, a *cli.App) (cfg history.RerunConfig, err error) {
	mode, ok := history.ParseRerunMode(f.mode)
	switch live := mode == history.RerunLive; {
	case f.into == "":
		return cfg, cli.Misuse("--into NAME is missing: the session to write")
	case !ok:
		return cfg, cli.Misuse("--mode %q: the modes are strict, loose and live", f.mode)
	case live && (f.url == "" || f.model == ""):
		return cfg, cli.Misuse("--mode live needs a judge: --judge-url URL --judge-model NAME")
	case !live && (f.url != "" || f.model != ""):
		return cfg, cli.Misuse("--judge-url and --judge-model are for --mode live; the other modes ask no judge")
	}
	if err := eventlog.CheckName(f.into); err != nil {
		return cfg, cli.Misuse("--into: %s", cli.OneLine(err.Error()))
	}
	cfg.Mode = mode
	if f.file != "" {
		if cfg.Episode, _, err = loadEpisode(ctx, a, f.file, "nothing was run"); err != nil {
			return cfg, err
		}
	}
	if mode == history.RerunLive {
		client, err := cli.NewModel("--judge-url", f.url, f.model, cli.JudgeKey)
		if err != nil {
			return cfg, err
		}
		cfg.Judge = client
	}
	return cfg, nil
}

func runRerun(ctx context.Context, a *cli.App, name, into string, cfg history.RerunConfig) (err error) {
	if client, ok := cfg.Judge.(*openai.Client); ok {
		defer client.Close()
	}
	// A store that is not there is not begun by this.
	t, err := a.OpenSession(name)
	if err != nil {
		return err
	}
	name = t.Name
	if err := t.Close(); err != nil {
		return err
	}
	engine, err := a.OpenWriting()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	log, err := engine.Log().Session(into)
	if err != nil {
		return err
	}
	if log.Exists() {
		return cli.Misuse("session %q exists; --into names a new one", into)
	}
	to, err := engine.Begin(ctx, into, session.TimeManual)
	if err != nil {
		return err
	}
	from, err := engine.Replay(name)
	if err != nil {
		return err
	}
	reran, err := to.Director().Rerun(ctx, from, cfg)
	switch {
	case errors.Is(err, history.ErrNoEpisode):
		return cli.Fail(cli.ExitNotFound, "%w", err)
	case err != nil:
		return err
	}
	now, err := engine.Replay(into)
	if err != nil {
		return err
	}
	return showRerun(ctx, a, from, now, to, reran, cfg.Mode)
}

// differenceInPlay is a difference, for JSON.
type differenceInPlay struct {
	Difference string `json:"difference"`
	Play       int    `json:"play"`
	Turn       int    `json:"turn"`
	Attempt    int    `json:"attempt,omitempty"`
	About      string `json:"about"`
	Was        string `json:"was"`
	Now        string `json:"now"`
	Says       string `json:"says,omitempty"`
	SaysNow    string `json:"says_now,omitempty"`
}

func showRerun(ctx context.Context, a *cli.App, from, now *replay.Replay, to *sajou.Session, reran history.RerunResult, mode history.RerunMode) error {
	o := a.Output()
	n, turn := 0, 0
	for d, err := range history.Differences(ctx, from, now) {
		if err != nil {
			return err
		}
		n++
		text := differenceLine(&d)
		if d.Turn != turn {
			turn = d.Turn
			text = fmt.Sprintf("turn %d\n%s", turn, text)
		}
		if err := o.ItemOf(text, differenceInPlay{d.What, d.Play, d.Turn, d.Attempt, d.About, d.Was, d.Now, d.Says, d.SaysNow}); err != nil {
			return err
		}
	}
	stopped := ""
	if reran.Stopped != nil {
		stopped = cli.OneLine(reran.Stopped.Error())
	}
	verdict := "the same story"
	if n > 0 {
		verdict = cli.Plural(n, "difference", "differences")
	}
	text := fmt.Sprintf("%s, %s: %s, %s, head %v", to.Name(), mode, cli.Plural(reran.Turns, "turn", "turns"), verdict, to.Head())
	if stopped != "" {
		text += "\nit ended early: " + stopped
	}
	err := o.ItemOf(termtext.PrintableLines(text), struct {
		Session string       `json:"session"`
		Mode    string       `json:"mode"`
		Turns   int          `json:"turns"`
		Differ  int          `json:"differences"`
		Stopped string       `json:"stopped,omitempty"`
		Head    cli.HeadView `json:"head"`
	}{to.Name(), mode.String(), reran.Turns, n, stopped, cli.ViewHead(to.Head())})
	if err == nil {
		err = o.End()
	}
	if err == nil && (n > 0 || stopped != "") {
		return cli.AnswerNo
	}
	return err
}

// differenceLine describes a difference, with the answers if they differ.
func differenceLine(d *history.Difference) string {
	or := func(s string) string {
		if s == "" {
			return "not"
		}
		return s
	}
	what := strings.TrimSpace(d.What + " " + d.About)
	if d.Attempt > 1 {
		what += fmt.Sprintf(", attempt %d", d.Attempt)
	}
	text := fmt.Sprintf("  %s: %s → %s", what, or(d.Was), or(d.Now))
	if d.Says != d.SaysNow {
		text += fmt.Sprintf("  (%s → %s)", termtext.Quote(d.Says), termtext.Quote(d.SaysNow))
	}
	return termtext.Printable(text)
}
