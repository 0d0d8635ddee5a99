package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/adapter/openai"
	"github.com/sajou-dev/sajou-go/eventlog"
)

// rerun is what the flags of episode rerun say.
type rerun struct {
	file, mode, into string
	url, model       string
}

func (a *app) episodeRerun() *cobra.Command {
	var f rerun
	cmd := &cobra.Command{
		Use:   "rerun [SESSION] --into NAME [--episode FILE] [--mode strict|loose|live]",
		Short: "Run an episode again over a recorded session",
		Long: `Rerun plays what was said and chosen in a recorded session through the director of
a new one, which is recorded under the name that --into gives: with the recorded
episode, or with the changed one of --episode, which has the same id. Then it lists
turn by turn what became different: what was directed, the verdicts, what landed,
was chosen and set. The times are the recorded ones.

  strict  a verdict is taken from the recording if its question is word for word
          the one that was asked; another one ends the run with an error that names
          the turn, the beat and the digests of both prompts
  loose   a verdict is taken from the recording by its turn and its beat, whatever
          the question is now; what was not asked then is not known, and unclear
  live    a judge is asked again: --judge-url and --judge-model name a service that
          speaks the chat completions API; its key is taken from ` + judgeKey + `

Replay itself never asks: in a log verdicts are entries like any other. A choice
that was made and is not open now becomes what the user says. Where the story has
become one in which the recorded input is not possible, the run ends there and says
so. A session without texts cannot be run again. Signals and effects that rules of
the episode are about are heard as they were.

The exit code is 0 when nothing differs, and 1 when something does or the run ended
early.`,
		Example: `  sajou-replay episode rerun friday --into friday-again
  sajou-replay episode rerun friday --episode changed.json --mode loose --into try
  sajou-replay episode rerun friday --mode live --judge-url http://localhost:8080/v1 --judge-model m --into asked`,
		Args: between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			name, err := a.sessionArg(args)
			if err != nil {
				return err
			}
			cfg, err := f.config(cmd.Context(), a)
			if err != nil {
				return err
			}
			return a.rerun(cmd.Context(), name, f.into, cfg)
		},
	}
	cmd.Flags().StringVar(&f.into, "into", "", "name of the new session")
	cmd.Flags().StringVar(&f.file, "episode", "", "file with a changed episode")
	cmd.Flags().StringVar(&f.mode, "mode", "strict", "strict, loose or live")
	cmd.Flags().StringVar(&f.url, "judge-url", "", "base address of the service that judges; with --mode live")
	cmd.Flags().StringVar(&f.model, "judge-model", "", "name of the model that judges; with --mode live")
	_ = cmd.MarkFlagFilename("episode", "json", "yaml", "yml")
	_ = cmd.RegisterFlagCompletionFunc("mode", cobra.FixedCompletions([]string{"strict", "loose", "live"}, cobra.ShellCompDirectiveNoFileComp))
	cmd.ValidArgsFunction = a.completeSession
	return cmd
}

// config reads what the flags name, and refuses what does not go together.
func (f *rerun) config(ctx context.Context, a *app) (cfg sajou.RerunConfig, err error) {
	mode, ok := sajou.ParseRerunMode(f.mode)
	switch live := mode == sajou.RerunLive; {
	case f.into == "":
		return cfg, misuse("which session is to be written? --into NAME")
	case !ok:
		return cfg, misuse("--mode %q: the modes are strict, loose and live", f.mode)
	case live && (f.url == "" || f.model == ""):
		return cfg, misuse("--mode live asks a judge: --judge-url URL --judge-model NAME")
	case !live && (f.url != "" || f.model != ""):
		return cfg, misuse("--judge-url and --judge-model are for --mode live; the others ask nobody")
	}
	if err := eventlog.CheckName(f.into); err != nil {
		return cfg, misuse("--into: %s", oneLine(err.Error()))
	}
	cfg.Mode = mode
	if f.file != "" {
		if cfg.Episode, _, err = a.episode(ctx, f.file, "nothing was run"); err != nil {
			return cfg, err
		}
	}
	if mode == sajou.RerunLive {
		client, err := newModel("--judge-url", f.url, f.model, judgeKey)
		if err != nil {
			return cfg, err
		}
		cfg.Judge = client
	}
	return cfg, nil
}

func (a *app) rerun(ctx context.Context, name, into string, cfg sajou.RerunConfig) (err error) {
	if client, ok := cfg.Judge.(*openai.Client); ok {
		defer client.Close()
	}
	// A store that is not there is not begun by this.
	t, err := a.target(name)
	if err != nil {
		return err
	}
	name = t.name
	if err := t.Close(); err != nil {
		return err
	}
	engine, err := a.openWriting()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	log, err := engine.Log().Session(into)
	if err != nil {
		return err
	}
	if log.Exists() {
		return misuse("session %q exists; --into names a new one", into)
	}
	to, err := engine.Begin(ctx, into, sajou.TimeManual)
	if err != nil {
		return err
	}
	from := engine.Replay(name)
	reran, err := from.Rerun(ctx, to, cfg)
	switch {
	case errors.Is(err, sajou.ErrNoEpisode):
		return fail(exitNotFound, "%w", err)
	case err != nil:
		return err
	}
	return a.showRerun(ctx, from, engine.Replay(into), to, reran, cfg.Mode)
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

func (a *app) showRerun(ctx context.Context, from, now *sajou.Replay, to *sajou.Session, reran sajou.Reran, mode sajou.RerunMode) error {
	o := a.output()
	n, turn := 0, 0
	for d, err := range sajou.Differences(ctx, from, now) {
		if err != nil {
			return err
		}
		n++
		text := differenceLine(&d)
		if d.Turn != turn {
			turn = d.Turn
			text = fmt.Sprintf("turn %d\n%s", turn, text)
		}
		if err := o.itemOf(text, differenceInPlay{d.What, d.Play, d.Turn, d.Attempt, d.About, d.Was, d.Now, d.Says, d.SaysNow}); err != nil {
			return err
		}
	}
	stopped := ""
	if reran.Stopped != nil {
		stopped = oneLine(reran.Stopped.Error())
	}
	verdict := "the same story"
	if n > 0 {
		verdict = plural(n, "difference", "differences")
	}
	text := fmt.Sprintf("%s, %s: %s, %s, head %v", to.Name(), mode, plural(reran.Turns, "turn", "turns"), verdict, to.Head())
	if stopped != "" {
		text += "\nit ended early: " + stopped
	}
	err := o.itemOf(printableLines(text), struct {
		Session string   `json:"session"`
		Mode    string   `json:"mode"`
		Turns   int      `json:"turns"`
		Differ  int      `json:"differences"`
		Stopped string   `json:"stopped,omitempty"`
		Head    headView `json:"head"`
	}{to.Name(), mode.String(), reran.Turns, n, stopped, viewHead(to.Head())})
	if err == nil {
		err = o.end()
	}
	if err == nil && (n > 0 || stopped != "") {
		return answerNo
	}
	return err
}

// differenceLine tells what became different, with the answers that did.
func differenceLine(d *sajou.Difference) string {
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
		text += fmt.Sprintf("  (%s → %s)", quote(d.Says), quote(d.SaysNow))
	}
	return printable(text)
}
