package main

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/where"
)

// The demo's recording: a night in a lighthouse. A keeper sends three agents to
// work. Who works glows; who fails smokes, and was meant to stop glowing: the
// definition for failed results lacks "interrupts", so one agent does both.
var (
	//go:embed demo/session.jsonl
	demoSession []byte

	//go:embed demo/choreographies.json
	demoChoreographies []byte
)

const (
	demoName = "night-shift"

	// demoWrong is true while an agent glows and smokes for one task.
	demoWrong = `state.performances.exists(a, state.performances[a].on == "tool_call" && ` +
		`state.performances.exists(b, state.performances[b].on == "tool_result" && ` +
		`state.performances[b].running.exists(r, r.params.look == "smoke") && ` +
		`state.performances[b].correlationId == state.performances[a].correlationId))`
)

func (a *app) demoCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "demo",
		Short: "Record a bundled session, play it, and hunt down its visual bug",
		Long: `Demo shows in some seconds what sajou-replay is for. It records a bundled session
of three agents at work, verifies its chain, plays it, and finds the entry where
the picture goes wrong, by scan and by bisect. It tells what it does and which
command does the same, and leaves the session in the store to explore.

Run again it records the session again, under another name.`,
		Example: `  sajou-replay demo
  sajou-replay demo -C /tmp/try-it`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if a.format != "text" {
				return misuse("the demo talks to people; -o %s has no meaning for it", a.format)
			}
			return a.demo(cmd.Context())
		},
	}
}

// demo is one telling, chapter by chapter.
func (a *app) demo(ctx context.Context) error {
	name, err := a.demoRecord(ctx)
	if err != nil {
		return err
	}
	t, err := a.target(name)
	if err != nil {
		return err
	}
	defer t.Close()
	for _, chapter := range []func(context.Context, *target) error{a.demoVerify, a.demoPlay, a.demoHunt} {
		if err := chapter(ctx, t); err != nil {
			return err
		}
	}
	return nil
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
	definitions, diagnostics := choreography.Parse("demo/choreographies.json", demoChoreographies)
	if err := diagnostics.Err(); err != nil {
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
Their %d signals, and the %d choreographies that make a picture of them, are now
the session %q in the store %s:
%d entries, each chained to the one before by its hash. It stands at
    %v
The same recording gives this very hash on every machine.
`, r.signals, r.defined, name, a.store, head.Seq, head)
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

func (a *app) demoHunt(ctx context.Context, t *target) error {
	if err := a.tell(`4. Something is wrong with the picture

Who works glows. Who fails smokes, and should not glow any more. But in the end
one agent does both. Since when? An expression says what is wrong:

    WRONG='%s'

5. Found by scan

The state is folded anew at every entry, in one pass, and the expression asked
each time. It is first true at
`, demoWrong); err != nil {
		return err
	}
	scanned, err := a.demoScan(ctx, t)
	if err != nil {
		return err
	}
	if err := a.tell(`%s

6. Found by bisect

Where a test is dear (a rendered picture, a person looking) fewer are better:
half of what is left, each time.
`, a.command("scan --first --where \"$WRONG\"")); err != nil {
		return err
	}
	bisected, err := a.demoBisect(ctx, t)
	if err != nil {
		return err
	}
	if scanned != bisected {
		return fail(exitNo, "scan found entry %d and bisect %d", scanned, bisected)
	}
	return a.tell(`%s

Both say entry %d: a tool_result that tells of a failure. A success interrupts
the performance that glows; the choreography for failures lacks
"interrupts": true. See for yourself:

%s
%s
%s
%s`,
		a.command("bisect --good 0 --bad end --where \"$WRONG\""), scanned,
		a.command(fmt.Sprintf("show %d", scanned)),
		a.command(fmt.Sprintf("diff %d %d", scanned-1, scanned)),
		a.command(fmt.Sprintf("play --fps 0 %d..%d", scanned-1, scanned+4)),
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
