package agentscmd

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/simulate"
	"github.com/sajou-dev/sajou-go/internal/termtext"
)

// simFlags holds the flags of sim.
type simFlags struct {
	example, print, schema, dry, quiet bool
}

// Sim returns the command "sim".
func Sim(a *cli.App) *cobra.Command {
	var f simFlags
	cmd := &cobra.Command{
		Use:   "sim FILE...",
		Short: "Simulate agents from a scenario file",
		Long: `Sim plays scripted agents in a shared world. They submit intents, generate
answers word by word, are interrupted when the view that an answer is based on
is stale, and react to observations. Sim prints each event and records a session
with the name of the scenario. It never waits: session time jumps to the next
event. The same file gives the same head hash in every store.

A scenario is a JSON object, or YAML if the file's name ends in .yaml or .yml; -
is stdin. All times are milliseconds:

  { "sajou": "simulation", "version": 1, "name": "hello",
    "config": {"cooldowns": "off"},
    "world": {"entities": {"A": {"type": "agent"}, "B": {"type": "agent"}},
              "relationships": {"A": ["B"], "B": ["A"]}},
    "agents": [
      {"id": "A", "policy": {"policy": "conversation"}, "script": [
        {"at": 100, "generate": {"words": "Let me think about this.", "ms_per_token": 200,
                                 "interrupted": {"regenerate": 2}}}]},
      {"id": "B", "policy": {"policy": "conversation"}, "on": [
        {"path": "/visible_entities/A/last_message", "exists": true, "after": 50,
         "do": {"submit": {"kind": "Speak", "payload": {"text": "Do."}}}}]}],
    "events": [{"at": 500, "draft": {"kind": "MessageEmitted", "source_id": "B",
                                     "payload": {"text": "Wait!"}}}],
    "expect": [{"cancelled": {"agent": "A", "reason": "stale_due_to"}},
               {"told": {"agent": "A", "texts": ["Wait!", "Do."]}}] }

docs/simulate.md describes the format; --schema prints its JSON Schema. --example
plays a bundled conversation, and with --print prints it as a template.

The expectations of a scenario make it a test. If the store has the session
already, sim plays the scenario and compares. --dry-run opens no store.

The exit code is 0 if every expectation was met, and 1 if one was not, a file has
an error, or the recorded session differs.`,
		Example: `  sajou-replay sim --example
  sajou-replay sim --example --print > mine.json
  sajou-replay sim mine.json --session mine
  sajou-replay sim --dry-run --quiet mine.json`,
		Args: func(_ *cobra.Command, args []string) error {
			switch bundled := f.example || f.schema; {
			case bundled && len(args) > 0:
				return cli.Misuse("--example and --schema take no files")
			case !bundled && len(args) == 0:
				return cli.Misuse("no scenario to play; name files, or try --example")
			case f.print && !f.example:
				return cli.Misuse("--print needs --example")
			case a.Session != "" && len(args) > 1:
				return cli.Misuse("--session names one session, but there are %d scenarios; omit it, or play one at a time", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case f.schema:
				_, err := a.Stdout.Write(simulate.Schema())
				return err
			case f.print:
				_, err := a.Stdout.Write(simulate.Example())
				return err
			case f.example:
				return runScenarios(cmd.Context(), a, []string{"example"}, &f)
			}
			return runScenarios(cmd.Context(), a, args, &f)
		},
	}
	cmd.Flags().BoolVar(&f.example, "example", false, "play the bundled conversation")
	cmd.Flags().BoolVar(&f.print, "print", false, "with --example, print the scenario and do not play it")
	cmd.Flags().BoolVar(&f.schema, "schema", false, "print the JSON Schema of scenarios")
	cmd.Flags().BoolVar(&f.dry, "dry-run", false, "play without recording")
	cmd.Flags().BoolVarP(&f.quiet, "quiet", "q", false, "print only failed expectations and the result")
	return cmd
}

func runScenarios(ctx context.Context, a *cli.App, files []string, f *simFlags) error {
	o := a.Output()
	wrong := 0
	for i, name := range files {
		if i > 0 && o.Format == "text" && !f.quiet {
			fmt.Fprintln(o)
		}
		same, err := runScenario(ctx, a, o, name, f)
		switch {
		case err != nil:
			// The events up to the error are written, but the error decides.
			return errors.Join(err, o.Flush())
		case !same:
			wrong++
		}
	}
	if err := o.End(); err != nil {
		return err
	}
	if wrong > 0 {
		return cli.AnswerNo
	}
	return nil
}

func runScenario(ctx context.Context, a *cli.App, o *cli.Output, name string, f *simFlags) (same bool, err error) {
	text := simulate.Example()
	if !f.example {
		if name, text, err = a.ReadInput(ctx, name, simulate.MaxText); err != nil {
			return false, err
		}
	}
	s, diagnostics := simulate.Parse(name, text)
	for _, d := range diagnostics {
		fmt.Fprintln(a.Stderr, termtext.Printable(d.String()))
	}
	if s == nil {
		return false, cli.Fail(cli.ExitNo, "%s has %s; nothing was played%s", name, cli.Plural(len(diagnostics), "error", "errors"), cli.Misplaced("sim", name, text))
	}
	session := a.Session
	if session == "" {
		session = s.Name
	}
	if err := eventlog.CheckName(session); err != nil {
		return false, cli.Misuse("--session: %s", cli.OneLine(err.Error()))
	}
	if o.Format == "text" && !f.quiet {
		fmt.Fprintf(o, "%s\n\n", termtext.Printable(session+titled(s.Title)))
	}
	played, err := s.Play(ctx, session, func(e *simulate.Event) error {
		if f.quiet {
			return nil
		}
		return writeSimEvent(o, e)
	})
	if err != nil {
		if errors.Is(err, simulate.ErrLimit) {
			return false, cli.Fail(cli.ExitNo, "%s: %w; nothing was recorded", name, err)
		}
		return false, err
	}
	defer func() { err = errors.Join(err, played.Close()) }()
	return endScenario(ctx, a, o, name, s, played, f)
}

func titled(title string) string {
	if title == "" {
		return ""
	}
	return ": " + title
}

// writeSimEvent writes one event.
func writeSimEvent(o *cli.Output, e *simulate.Event) error {
	if o.Format == "text" {
		return o.Item(termtext.Printable(fmt.Sprintf("%s  %-10s  %s", cli.ClockText(e.At), termtext.Clip(e.Who(), 20), e)), nil)
	}
	value, err := cli.Marshal(e)
	if err != nil {
		return err
	}
	return o.Item("", value)
}

// endScenario records a played scenario unless --dry-run is given, and writes the
// result.
func endScenario(ctx context.Context, a *cli.App, o *cli.Output, name string, s *simulate.Simulation, played *simulate.Recording, f *simFlags) (same bool, err error) {
	for _, failure := range played.Failures {
		value, err := cli.Marshal(struct {
			What    string `json:"what"`
			File    string `json:"file"`
			Line    int    `json:"line"`
			Column  int    `json:"column"`
			Pointer string `json:"pointer"`
			Message string `json:"message"`
		}{"unexpected", name, failure.Line, failure.Column, failure.Pointer, failure.Message})
		if err != nil {
			return false, err
		}
		if err := o.Item(termtext.Printable(name+":"+failure.String()), value); err != nil {
			return false, err
		}
	}
	recorded, how := false, "not recorded"
	if !f.dry {
		if recorded, err = recordScenario(ctx, a, played); err != nil {
			return false, err
		}
		if how = "recorded already"; recorded {
			how = "recorded"
		}
	}
	expected := s.Expectations()
	value, err := cli.Marshal(struct {
		What     string       `json:"what"`
		Session  string       `json:"session"`
		Head     cli.HeadView `json:"head"`
		Effects  int          `json:"effects"`
		Expected int          `json:"expected"`
		Failed   int          `json:"failed"`
		Recorded bool         `json:"recorded"`
	}{"end", played.Name, cli.ViewHead(played.Head), played.Effects, expected, len(played.Failures), recorded})
	if err != nil {
		return false, err
	}
	judged := ""
	switch {
	case len(played.Failures) > 0:
		judged = fmt.Sprintf(", %d of %s FAILED", len(played.Failures), cli.Plural(expected, "expectation", "expectations"))
	case expected > 0:
		judged = fmt.Sprintf(", %s met", cli.Plural(expected, "expectation", "expectations"))
	}
	line := termtext.Printable(fmt.Sprintf("%s: %s%s, %s, head %v",
		played.Name, cli.Plural(played.Effects, "effect", "effects"), judged, how, played.Head))
	if !f.quiet {
		line = "\n" + line
	}
	return len(played.Failures) == 0, o.Item(line, value)
}

// recordScenario records a played scenario in the store.
func recordScenario(ctx context.Context, a *cli.App, played *simulate.Recording) (recorded bool, err error) {
	engine, err := a.OpenWriting()
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	recorded, err = played.Record(ctx, engine)
	if errors.Is(err, simulate.ErrSessionDiffers) {
		return false, cli.Fail(cli.ExitNo, "the store has another session named %q; name this one with --session, or use --dry-run", played.Name)
	}
	return recorded, err
}
