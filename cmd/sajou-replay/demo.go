package main

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/lint"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/where"
	"github.com/sajou-dev/sajou-go/stage"
	"github.com/sajou-dev/sajou-go/stage/picture"
)

// The demo's recording: a night in a lighthouse. A keeper sends three agents to
// work. Who works glows; who fails smokes, and was meant to stop glowing: the
// choreography for failed results lacks "interrupts", so one agent does both.
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

	// demoWrong is true while the smith glows and smokes for one task.
	demoWrong = `state.stage.entities.smoke.visible && state.stage.entities.smith.strength > 0.5`
)

func (a *app) demoCommand() *cobra.Command {
	var pictures string
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Record a bundled session, play it, and hunt down its visual bug",
		Long: `Demo shows in some seconds what sajou-replay is for. It records a bundled session
of three agents at work, verifies its chain, plays it, finds the entry where the
picture goes wrong, by scan and by bisect, and draws the stage before and after.
It tells what it does and which command does the same, and leaves the session in
the store to explore. With --pictures it leaves the two pictures in a directory.

Run again it records the session again, under another name.`,
		Example: `  sajou-replay demo
  sajou-replay demo --pictures .
  sajou-replay demo -C /tmp/try-it`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if a.format != "text" {
				return misuse("the demo talks to people; -o %s has no meaning for it", a.format)
			}
			return a.demo(cmd.Context(), pictures)
		},
	}
	cmd.Flags().StringVar(&pictures, "pictures", "", "directory to draw the stage into, before and after the bug")
	_ = cmd.MarkFlagDirname("pictures")
	return cmd
}

// demo is one telling, chapter by chapter.
func (a *app) demo(ctx context.Context, pictures string) error {
	if pictures != "" {
		if err := os.MkdirAll(pictures, 0o777); err != nil {
			return err
		}
	}
	name, err := a.demoRecord(ctx)
	if err != nil {
		return err
	}
	t, err := a.target(name)
	if err != nil {
		return err
	}
	defer t.Close()
	for _, chapter := range []func(context.Context, *target) error{a.demoVerify, a.demoPlay} {
		if err := chapter(ctx, t); err != nil {
			return err
		}
	}
	wrong, err := a.demoHunt(ctx, t)
	if err != nil {
		return err
	}
	return a.demoLook(ctx, t, wrong, pictures)
}

// tell writes a paragraph of the telling.
func (a *app) tell(format string, args ...any) error {
	_, err := fmt.Fprintf(a.stdout, format+"\n", args...)
	return err
}

// command shows a command as the reader would type it, who may have no
// sajou-replay on the path yet.
func (a *app) command(line string) string {
	program := "sajou-replay"
	if strings.Contains(os.Args[0], "go-build") {
		program = "go run ./cmd/sajou-replay"
	}
	if a.store != defaultStore {
		program += " -C " + a.store
	}
	return "    " + program + " " + line
}

// demoRecord records the session and returns its name.
func (a *app) demoRecord(ctx context.Context) (name string, err error) {
	definitions, err := demoDeclarations()
	if err != nil {
		return "", err
	}
	engine, err := a.openWriting()
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
	r := &recorder{definitions: definitions, meter: newMeter(a.stderr)}
	if r.session, err = engine.Session(ctx, name); err != nil {
		return "", err
	}
	if err := r.readAll(ctx, []string{"-"}, bytes.NewReader(demoSession)); err != nil {
		return "", err
	}
	head := r.session.Head()
	return name, a.tell(`1. A recording

Three agents, scout, smith and scribe, work through a night in a lighthouse.
Their %d signals, and the %s
that make a picture of them, are now the session %q in the
store %s:
%d entries, each chained to the one before by its hash. It stands at
    %v
The same recording gives this very hash on every machine.
`, r.signals, declarationsText(definitions), name, a.store, head.Seq, head)
}

// demoDeclarations is what the demo's recording begins with.
func demoDeclarations() ([]choreography.Declaration, error) {
	var all []choreography.Declaration
	c := new(choreography.Catalog)
	for _, file := range []lint.File{{Name: "demo/scene.json", Text: demoScene}, {Name: "demo/choreographies.json", Text: demoChoreographies}} {
		declared, next, diagnostics := lint.Read(c, file.Name, file.Text)
		if err := diagnostics.Err(); err != nil {
			return nil, err
		}
		for _, d := range declared {
			all = append(all, d.Declaration)
		}
		c = next
	}
	return all, nil
}

func (a *app) demoVerify(ctx context.Context, t *target) error {
	report, err := t.engine.Log().Verify(ctx, t.name, eventlog.VerifyOptions{})
	if err != nil {
		return err
	}
	if report.Fault != nil {
		return fail(exitNo, "the demo's own recording does not verify: %v", report.Fault)
	}
	return a.tell(`2. Is it whole?

Yes: all %d links hold. Nothing was altered, dropped, moved or brought in.
%s
`, report.Head.Seq, a.command("verify"))
}

func (a *app) demoPlay(ctx context.Context, t *target) error {
	p := pace{idle: 300 * time.Millisecond}
	if isTerminal(a.stdout) {
		p.rate = 8
	}
	if err := a.tell(`3. What a renderer is told

Each line is a command: the entry it comes at, session time, the performance it
belongs to, and what to do.
%s
`, a.command("play --rate 8 --fps 0 1..end")); err != nil {
		return err
	}
	if err := a.play(ctx, t, replay.Moment{Seq: 1}, replay.Moment{Seq: t.travel.Head().Seq}, p); err != nil {
		return err
	}
	return a.tell("")
}

// demoHunt tells how the bug is found, and returns the entry that has it.
func (a *app) demoHunt(ctx context.Context, t *target) (eventlog.Seq, error) {
	if err := a.tell(`4. Something is wrong with the picture

Who works glows. Who fails smokes, and should not glow any more. But in the end
the smith does both. Since when? An expression says what is wrong, on the stage:

    WRONG='%s'

5. Found by scan

The state is folded anew at every entry, in one pass, and the expression asked
each time. It is first true at
`, demoWrong); err != nil {
		return 0, err
	}
	scanned, err := a.demoScan(ctx, t)
	if err != nil {
		return 0, err
	}
	if err := a.tell(`%s

6. Found by bisect

Where a test is dear (a rendered picture, a person looking) fewer are better:
half of what is left, each time.
`, a.command("scan --first --where \"$WRONG\"")); err != nil {
		return 0, err
	}
	bisected, err := a.demoBisect(ctx, t)
	if err != nil {
		return 0, err
	}
	if scanned != bisected {
		return 0, fail(exitNo, "scan found entry %d and bisect %d", scanned, bisected)
	}
	return scanned, a.tell(`%s

Both say entry %d: a tool_result that tells of a failure. A success interrupts
the performance that glows; the choreography for failures lacks
"interrupts": true.
`, a.command("bisect --good 0 --bad end --where \"$WRONG\""), scanned)
}

// demoLook draws the stage before and after the entry that is wrong.
func (a *app) demoLook(ctx context.Context, t *target, wrong eventlog.Seq, pictures string) error {
	// The smoke has to rise before it is seen.
	before, after := momentOf(wrong-1), replay.Moment{Seq: wrong + 2, Offset: 400 * time.Millisecond}
	if err := a.tell("7. See for yourself\n"); err != nil {
		return err
	}
	s := t.stagedWith(nil)
	f, err := s.frame(ctx, before)
	if err != nil {
		return err
	}
	g, err := s.frame(ctx, after)
	if err != nil {
		return err
	}
	for _, d := range picture.Differences(f, g, 0) {
		if err := a.tell("    %s", printable(d.String())); err != nil {
			return err
		}
	}
	for _, p := range []struct {
		name  string
		at    replay.Moment
		frame *stage.Frame
	}{{"before.svg", before, f}, {"after.svg", after, g}} {
		if pictures == "" {
			continue
		}
		d := picture.Draw(p.frame, picture.Options{Title: t.name, Address: p.at.String(), Clock: true})
		if err := writeFile(filepath.Join(pictures, p.name), drawn(d, "svg")); err != nil {
			return err
		}
	}
	made := ""
	if pictures != "" {
		made = fmt.Sprintf("\nThe two pictures are in %s now.", shellWord(pictures))
	}
	return a.tell(`
%s
%s%s

There is more to see:

%s
%s
%s
%s
%s`,
		a.command(fmt.Sprintf("render %v --caption -o before.svg", before)),
		a.command(fmt.Sprintf("render %v --caption -o after.svg", after)), made,
		a.command("play --stage --rate 4"),
		a.command(fmt.Sprintf("show %d", wrong)),
		a.command(fmt.Sprintf("diff %d %d", wrong-1, wrong)),
		a.command(fmt.Sprintf("play --fps 0 %d..%d", wrong-1, wrong+4)),
		a.command("help"))
}

// demoScan shows and returns the first entry where the picture is wrong.
func (a *app) demoScan(ctx context.Context, t *target) (eventlog.Seq, error) {
	find, err := newFinder(demoWrong, replay.First)
	if err != nil {
		return 0, err
	}
	for hit, err := range t.travel.Scan(ctx, 1, t.travel.Head().Seq, find.predicate, find.mode) {
		if err != nil {
			return 0, scanError(err)
		}
		return hit.Entry.Seq, a.tell("%s", entryText(&hit.Entry))
	}
	return 0, fail(exitNo, "the demo's bug was not found")
}

// demoBisect shows each test and returns the first bad entry.
func (a *app) demoBisect(ctx context.Context, t *target) (eventlog.Seq, error) {
	wrong, err := where.Compile(demoWrong, sajou.Projections())
	if err != nil {
		return 0, err
	}
	test := t.asks(wrong)
	found, err := t.travel.Bisect(ctx, 0, t.travel.Head().Seq, func(ctx context.Context, m replay.Moment, f *projection.Fold) (replay.Verdict, error) {
		verdict, err := test(ctx, m, f)
		if err != nil {
			return 0, err
		}
		return verdict, a.tell("%6d  %s  %v", m.Seq, clockText(f.At()), verdict)
	})
	if err != nil {
		return 0, err
	}
	return found.Bad, a.tell("%v\n", found)
}
