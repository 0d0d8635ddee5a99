package main

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/sajou-dev/sajou-go/choreography/definition"
	"github.com/sajou-dev/sajou-go/choreography/language"
	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/stagecmd"
	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/statecmd"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/eventlog/verify"
	"github.com/sajou-dev/sajou-go/ingest"
	"github.com/sajou-dev/sajou-go/internal/lint"
	"github.com/sajou-dev/sajou-go/internal/termtext"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/bisect"
	"github.com/sajou-dev/sajou-go/replay/where"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/stage"
	"github.com/sajou-dev/sajou-go/stage/picture"
)

// The recording of the demo: a night in a lighthouse. A keeper sends three agents
// to work. An agent that works glows; an agent that fails smokes and should stop
// glowing. The choreography for failed results does not end the glow, so one agent
// does both.
var (
	//go:embed demo/session.jsonl
	demoSession []byte

	//go:embed demo/choreographies.json
	demoChoreographies []byte

	//go:embed demo/scene.json
	demoScene []byte
)

const (
	demoName = "night-shift"

	// demoWrong is true while the smith glows and smokes at once.
	demoWrong = `state.stage.entities.smoke.visible && state.stage.entities.smith.strength > 0.5`
)

func demoCommand(a *cli.App) *cobra.Command {
	var pictures string
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Record a bundled session and find its visual bug",
		Long: `Demo is a tour of sajou-replay that takes a few seconds. It records a bundled
session of three agents, verifies the hash chain, plays the session, finds the
entry at which the picture goes wrong by scan and by bisect, and compares the
stage before and after. It prints the command for each step, and leaves the
session in the store. --pictures saves the two pictures in a directory.

Each run records the session under a new name: night-shift, night-shift-2, …`,
		Example: `  sajou-replay demo
  sajou-replay demo --pictures .
  sajou-replay demo -C try-it`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if a.Format != "text" {
				return cli.Misuse("demo writes text only; omit -o %s", a.Format)
			}
			return runDemo(cmd.Context(), a, pictures)
		},
	}
	cmd.Flags().StringVar(&pictures, "pictures", "", "save pictures of the stage before and after the bug in `DIR`")
	_ = cmd.MarkFlagDirname("pictures")
	return cmd
}

// runDemo runs the steps of the demo.
func runDemo(ctx context.Context, a *cli.App, pictures string) error {
	if pictures != "" {
		if err := cli.MakeDirectory(pictures); err != nil {
			return err
		}
	}
	name, err := demoRecord(ctx, a)
	if err != nil {
		return err
	}
	t, err := a.OpenSession(name)
	if err != nil {
		return err
	}
	defer t.Close()
	if err := demoVerify(ctx, a, t); err != nil {
		return err
	}
	if err := demoPlay(ctx, a, t); err != nil {
		return err
	}
	wrong, err := demoHunt(ctx, a, t)
	if err != nil {
		return err
	}
	return demoLook(ctx, a, t, wrong, pictures)
}

// say writes a paragraph.
func say(a *cli.App, format string, args ...any) error {
	_, err := fmt.Fprintf(a.Stdout, format+"\n", args...)
	return err
}

// demoRecord records the session and returns its name.
func demoRecord(ctx context.Context, a *cli.App) (name string, err error) {
	definitions, err := demoDeclarations()
	if err != nil {
		return "", err
	}
	engine, err := a.OpenWriting()
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	names, err := engine.Sessions()
	if err != nil {
		return "", err
	}
	name = demoName
	for n := 2; slices.Contains(names, name); n++ {
		name = fmt.Sprintf("%s-%d", demoName, n)
	}
	session, err := engine.Session(ctx, name)
	if err != nil {
		return "", err
	}
	r, err := ingest.NewRecorder(ctx, session, ingest.Config{Definitions: definitions})
	if err != nil {
		return "", err
	}
	defer r.Close()
	if err := r.All(ctx, ingest.JSONL(bytes.NewReader(demoSession), "demo/session.jsonl", false)); err != nil {
		return "", err
	}
	recorded := r.Tally()
	return name, say(a, `1. A recording

Three agents, scout, smith and scribe, work for a night in a lighthouse. Their
%d signals, and the %s that draw
them, are now the session %q in the store %s.
It has %d entries, each with the hash of the one before. Its head is
    %v
The same recording has the same head on every machine.
`, recorded.Signals, cli.DeclarationsText(definitions), name, a.Store, recorded.Head.Seq, recorded.Head)
}

// demoDeclarations returns the declarations at the beginning of the recording.
func demoDeclarations() ([]language.Declaration, error) {
	var all []language.Declaration
	c := new(language.Catalog)
	for _, file := range []lint.File{{Name: "demo/scene.json", Text: demoScene}, {Name: "demo/choreographies.json", Text: demoChoreographies}} {
		declared, next, diagnostics := lint.Read(c, file.Name, file.Text)
		if err := diagnostics.Err(definition.ErrInvalid); err != nil {
			return nil, err
		}
		for _, d := range declared {
			all = append(all, d.Declaration)
		}
		c = next
	}
	return all, nil
}

func demoVerify(ctx context.Context, a *cli.App, t *cli.OpenedSession) error {
	report, err := t.Engine.Log().Verify(ctx, t.Name, verify.Options{})
	if err != nil {
		return err
	}
	if report.Fault != nil {
		return cli.Fail(cli.ExitNo, "the recording of the demo does not verify: %v", report.Fault)
	}
	return say(a, `2. Is it intact?

Yes: all %d links are right. No entry was altered, removed, moved or inserted.
%s
`, report.Head.Seq, a.CommandLine("verify"))
}

func demoPlay(ctx context.Context, a *cli.App, t *cli.OpenedSession) error {
	p := stagecmd.Pace{Idle: 300 * time.Millisecond}
	if cli.IsTerminal(a.Stdout) {
		p.Rate = 8
	}
	if err := say(a, `3. What a renderer receives

Each line is a command: its entry, session time, performance, and action.
%s
`, a.CommandLine("play --rate 8 --fps 0 1..end")); err != nil {
		return err
	}
	if err := stagecmd.PlayCommands(ctx, a, t, replay.Moment{Seq: 1}, replay.Moment{Seq: t.Travel.Head().Seq}, p); err != nil {
		return err
	}
	return say(a, "")
}

// demoHunt shows how to find the bug, and returns its entry.
func demoHunt(ctx context.Context, a *cli.App, t *cli.OpenedSession) (eventlog.Seq, error) {
	if err := say(a, `4. The picture is wrong

An agent that works glows. An agent that fails smokes and should stop glowing.
But at the end the smith does both. Since when? An expression over the stage is
true while the picture is wrong:

    WRONG='%s'

5. Found by scan

Scan computes the state at every entry, in one pass, and evaluates the
expression. It is first true at
`, demoWrong); err != nil {
		return 0, err
	}
	scanned, err := demoScan(ctx, a, t)
	if err != nil {
		return 0, err
	}
	if err := say(a, `%s

6. Found by bisect

If a test is expensive (a rendered picture, a person looking), fewer tests are
better. Each test halves the range.
`, a.CommandLine("scan --first --where \"$WRONG\"")); err != nil {
		return 0, err
	}
	bisected, err := demoBisect(ctx, a, t)
	if err != nil {
		return 0, err
	}
	if scanned != bisected {
		return 0, cli.Fail(cli.ExitNo, "scan found entry %d and bisect %d", scanned, bisected)
	}
	return scanned, say(a, `%s

Both find entry %d: a tool_result that reports a failure. The choreography for a
success interrupts the glowing performance, and a flash of its own fades away.
The one for a failure does neither. docs/time-travel.md mends it.
`, a.CommandLine("bisect --good 0 --bad end --where \"$WRONG\""), scanned)
}

// demoLook compares and draws the stage before and after the wrong entry.
func demoLook(ctx context.Context, a *cli.App, t *cli.OpenedSession, wrong eventlog.Seq, pictures string) error {
	// The smoke is visible only after it has risen for a while.
	before, after := cli.MomentOf(wrong-1), replay.Moment{Seq: wrong + 2, Offset: 400 * time.Millisecond}
	if err := say(a, "7. What has changed\n"); err != nil {
		return err
	}
	s := t.Reel(nil)
	f, err := s.Shot(ctx, before)
	if err != nil {
		return err
	}
	g, err := s.Shot(ctx, after)
	if err != nil {
		return err
	}
	for _, d := range picture.Differences(f.Frame, g.Frame, 0) {
		if err := say(a, "    %s", termtext.Printable(d.String())); err != nil {
			return err
		}
	}
	for _, p := range []struct {
		name  string
		at    replay.Moment
		frame *stage.Frame
	}{{"before.svg", before, f.Frame}, {"after.svg", after, g.Frame}} {
		if pictures == "" {
			continue
		}
		d := picture.Draw(p.frame, picture.Options{Title: t.Name, Address: p.at.String(), Clock: true})
		if err := cli.WriteFile(filepath.Join(pictures, p.name), cli.Encode(d, "svg")); err != nil {
			return err
		}
	}
	made := ""
	if pictures != "" {
		made = fmt.Sprintf("\nThe two pictures are in %s.", cli.ShellWord(pictures))
	}
	return say(a, `
%s
%s%s

Try next:

%s
%s
%s
%s
%s`,
		a.CommandLine(fmt.Sprintf("render %v --caption -O before.svg", before)),
		a.CommandLine(fmt.Sprintf("render %v --caption -O after.svg", after)), made,
		a.CommandLine("play --stage --rate 4"),
		a.CommandLine(fmt.Sprintf("show %d", wrong)),
		a.CommandLine(fmt.Sprintf("diff %d %d", wrong-1, wrong)),
		a.CommandLine(fmt.Sprintf("play --fps 0 %d..%d", wrong-1, wrong+4)),
		a.CommandLine("help"))
}

// demoScan shows and returns the first entry with the wrong picture.
func demoScan(ctx context.Context, a *cli.App, t *cli.OpenedSession) (eventlog.Seq, error) {
	find, err := statecmd.NewFinder(demoWrong, replay.First)
	if err != nil {
		return 0, err
	}
	for hit, err := range t.Travel.Scan(ctx, 1, t.Travel.Head().Seq, find.Predicate, find.Mode) {
		if err != nil {
			return 0, cli.ScanError(err)
		}
		return hit.Entry.Seq, say(a, "%s", cli.EntryText(&hit.Entry))
	}
	return 0, cli.Fail(cli.ExitNo, "the demo's bug was not found")
}

// demoBisect shows each test and returns the first bad entry. The expression stands for
// a test that is expensive to run.
func demoBisect(ctx context.Context, a *cli.App, t *cli.OpenedSession) (eventlog.Seq, error) {
	wrong, err := where.Compile(demoWrong, session.Projections(session.ProjectionConfig{}))
	if err != nil {
		return 0, err
	}
	test := bisect.Test{
		Input: func(_ context.Context, s *replay.ScanStep) (bisect.InputHash, error) {
			state, err := cli.Marshal(s.View())
			return bisect.HashInput(state), err
		},
		Judge: func(ctx context.Context, _ replay.Moment, f *projection.Fold) (bisect.TestResult, error) {
			if is, err := wrong.Match(ctx, where.Input{State: f}); err != nil || !is {
				return bisect.Good, err
			}
			return bisect.Bad, nil
		},
	}
	var failed error
	found, err := bisect.Find(ctx, t.Travel, replay.Moment{}, cli.MomentOf(t.Travel.Head().Seq), test, bisect.Config{
		Judged: func(j bisect.Judged) {
			failed = errors.Join(failed, say(a, "%10v  %s  %v", j.Moment, cli.ClockText(j.At), j.Result))
		},
	})
	if err := errors.Join(err, failed); err != nil {
		return 0, err
	}
	return found.Onset.Bad.Seq, say(a, "good at %v, bad at %v: a transition (%d tests)\n", found.Onset.Good, found.Onset.Bad, found.Tests)
}
