package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/simulate"
)

// simulation is what the flags of sim say.
type simulation struct {
	example, print, schema, dry, quiet bool
}

func (a *app) simCommand() *cobra.Command {
	var f simulation
	cmd := &cobra.Command{
		Use:   "sim FILE...",
		Short: "Play scenarios of many agents, and record them",
		Long: `Sim plays scripted agents in a world that they share: they ask for things,
generate answers word by word, are interrupted when what they go by is out of
date, and react to what they are told. It tells what happens as it happens, and
records it as a session of the store, which is called like the scenario. Nothing
waits: session time goes on to what is due next. The same file gives the same
head hash in every store.

A scenario is a JSON object; - is stdin. All times are milliseconds:

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

docs/simulate.md tells the rest, and --schema prints its JSON Schema. --example
plays a bundled conversation; with --print it is printed instead, to begin with.

What a scenario expects makes it a test: the exit code is 1 if something is not as
expected, or if a file has a mistake, which is told with its line. A scenario that is
recorded already is played and compared; with --dry-run no store is opened.`,
		Example: `  sajou-replay sim --example
  sajou-replay sim --example --print > mine.json
  sajou-replay sim mine.json
  sajou-replay sim --dry-run --quiet scenarios/*.json`,
		Args: func(_ *cobra.Command, args []string) error {
			switch bundled := f.example || f.schema; {
			case bundled && len(args) > 0:
				return misuse("--example and --schema take no files")
			case !bundled && len(args) == 0:
				return misuse("nothing to play; name files, or try --example")
			case f.print && !f.example:
				return misuse("--print prints what --example plays, which is missing")
			case a.session != "" && len(args) > 1:
				return misuse("--session names one session, and there are %d scenarios", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case f.schema:
				_, err := a.stdout.Write(simulate.Schema())
				return err
			case f.print:
				_, err := a.stdout.Write(simulate.Example())
				return err
			case f.example:
				return a.simulate(cmd.Context(), []string{"example"}, &f)
			}
			return a.simulate(cmd.Context(), args, &f)
		},
	}
	cmd.Flags().BoolVar(&f.example, "example", false, "play the bundled conversation")
	cmd.Flags().BoolVar(&f.print, "print", false, "print the bundled conversation instead")
	cmd.Flags().BoolVar(&f.schema, "schema", false, "print the JSON Schema of scenarios")
	cmd.Flags().BoolVar(&f.dry, "dry-run", false, "play, but record nothing")
	cmd.Flags().BoolVarP(&f.quiet, "quiet", "q", false, "tell only what is not as expected, and the end")
	return cmd
}

func (a *app) simulate(ctx context.Context, files []string, f *simulation) error {
	o := a.output()
	wrong := 0
	for i, name := range files {
		if i > 0 && o.format == "text" && !f.quiet {
			fmt.Fprintln(o)
		}
		same, err := a.simulateFile(ctx, o, name, f)
		switch {
		case err != nil:
			// What was told up to then is of use, but no more than the error.
			return errors.Join(err, o.Flush())
		case !same:
			wrong++
		}
	}
	if err := o.end(); err != nil {
		return err
	}
	if wrong > 0 {
		return answerNo
	}
	return nil
}

func (a *app) simulateFile(ctx context.Context, o *output, name string, f *simulation) (same bool, err error) {
	text := simulate.Example()
	if !f.example {
		if name, text, err = a.input(ctx, name, simulate.MaxText); err != nil {
			return false, err
		}
	}
	s, diagnostics := simulate.Parse(name, text)
	for _, d := range diagnostics {
		fmt.Fprintln(a.stderr, printable(d.String()))
	}
	if s == nil {
		return false, fail(exitNo, "%s has %s; nothing was played%s", name, plural(len(diagnostics), "error", "errors"), misplaced("sim", name, text))
	}
	session := a.session
	if session == "" {
		session = s.Name
	}
	if err := eventlog.CheckName(session); err != nil {
		return false, misuse("--session: %s", oneLine(err.Error()))
	}
	if o.format == "text" && !f.quiet {
		fmt.Fprintf(o, "%s\n\n", printable(session+titled(s.Title)))
	}
	take, err := s.Play(ctx, session, func(e *simulate.Event) error {
		if f.quiet {
			return nil
		}
		return o.simEvent(e)
	})
	if err != nil {
		if errors.Is(err, simulate.ErrLimit) {
			return false, fail(exitNo, "%s: %w; nothing was recorded", name, err)
		}
		return false, err
	}
	defer func() { err = errors.Join(err, take.Close()) }()
	return a.simEnd(ctx, o, name, s, take, f)
}

func titled(title string) string {
	if title == "" {
		return ""
	}
	return ": " + title
}

// simEvent writes one event.
func (o *output) simEvent(e *simulate.Event) error {
	if o.format == "text" {
		return o.item(printable(fmt.Sprintf("%s  %-10s  %s", clockText(e.At), clip(e.Who(), 20), e)), nil)
	}
	value, err := marshal(e)
	if err != nil {
		return err
	}
	return o.item("", value)
}

// simEnd records a take, unless that is not wanted, and writes how it ended.
func (a *app) simEnd(ctx context.Context, o *output, name string, s *simulate.Scenario, take *simulate.Take, f *simulation) (same bool, err error) {
	for _, failure := range take.Failures {
		value, err := marshal(struct {
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
		if err := o.item(printable(name+":"+failure.String()), value); err != nil {
			return false, err
		}
	}
	recorded, how := false, "not recorded"
	if !f.dry {
		if recorded, err = a.simRecord(ctx, take); err != nil {
			return false, err
		}
		if how = "recorded already"; recorded {
			how = "recorded"
		}
	}
	expected := s.Expectations()
	value, err := marshal(struct {
		What     string   `json:"what"`
		Session  string   `json:"session"`
		Head     headView `json:"head"`
		Effects  int      `json:"effects"`
		Expected int      `json:"expected"`
		Failed   int      `json:"failed"`
		Recorded bool     `json:"recorded"`
	}{"end", take.Name, viewHead(take.Head), take.Effects, expected, len(take.Failures), recorded})
	if err != nil {
		return false, err
	}
	judged := ""
	switch {
	case len(take.Failures) > 0:
		judged = fmt.Sprintf(", %d of %s NOT as expected", len(take.Failures), plural(expected, "thing", "things"))
	case expected > 0:
		judged = fmt.Sprintf(", %s as expected", plural(expected, "thing", "things"))
	}
	line := printable(fmt.Sprintf("%s: %s%s, %s, head %v",
		take.Name, plural(take.Effects, "effect", "effects"), judged, how, take.Head))
	if !f.quiet {
		line = "\n" + line
	}
	return len(take.Failures) == 0, o.item(line, value)
}

// simRecord records a take in the store.
func (a *app) simRecord(ctx context.Context, take *simulate.Take) (recorded bool, err error) {
	engine, err := a.openWriting()
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	recorded, err = take.Record(ctx, engine.Log())
	if errors.Is(err, simulate.ErrOther) {
		return false, fail(exitNo, "the store has another session %q; name this one with --session, or record nothing with --dry-run", take.Name)
	}
	return recorded, err
}
