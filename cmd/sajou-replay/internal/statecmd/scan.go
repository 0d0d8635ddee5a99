package statecmd

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/answer"
	"github.com/sajou-dev/sajou-go/internal/termtext"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/where"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/stage/imagetest"
)

// Scan returns the command "scan".
func Scan(a *cli.App) *cobra.Command {
	var (
		expr                      string
		look                      imageTest
		conflicts                 bool
		first, last, changes, all bool
		count, moments            bool
		every                     time.Duration
	)
	var defines cli.Definitions
	cmd := &cobra.Command{
		Use:   "scan [SESSION] [RANGE] (--where EXPR | --image PNG | --conflicts)",
		Short: "Find entries by an expression or a picture",
		Long: `Scan evaluates an expression at every entry of a session, in one pass, and lists
the entries where it is true: all of them, the --first, or the --last. --changes
lists the entries where its value, of any type, changes. --count tells
their number instead.

Between entries the state changes too: a step begins or ends, a figure appears,
speech disappears. --moments evaluates the expression at every such instant, and
lists the intervals at which it is true, without their end: "from 19+200ms until
19+600ms". With --changes it lists the intervals of each value. Prev is then the
state at the instant before. Behind the last entry it goes on until nothing more
changes, 60s at most. A value under way, such as a position, is read at these
instants only; --every 16ms adds the multiples of a span of session time.

A range may begin and end between entries, as in 19+100ms..19+300ms. A range that
has no other entry than its first is always searched as with --moments. In any
other one only the entries are examined without --moments; if none of them is
found, the answer is open, and the exit code 5.

` + cli.ExpressionHelp + `

` + imageTestHelp + `
Scan lists the entries where the picture differs, or with --same where it is
equal. It draws every entry; bisect draws only a few.

--conflicts lists the entries after which the stage reports a new conflict: a
performance takes an entity that another performance is animating.

` + cli.DefinitionsHelp + `

If nothing is found and the expression names a member of the state that no entry
has, such as a misspelt entity, a remark on stderr tells the nearest name.

In a damaged recording the search goes on behind what cannot be read, with states
from the first snapshot behind it on, and says what it did not see.

The exit code is 0 if an entry was found, 1 if not, 3 if a part of the recording
that matters could not be read, 5 if the range begins or ends between entries and
only --moments can answer, and 7 if a picture could not be drawn or the expression
exceeded its budget at an entry.`,
		Example: `  sajou-replay scan --where 'entry.type == "tool_result" && !entry.payload.success' --first
  sajou-replay scan --where 'entry.type == "tool_call"' --count
  sajou-replay scan --where 'state.performances.size() > 3'
  sajou-replay scan --where 'state.performances.size()' --changes
  sajou-replay scan night-shift 30..40 --where 'state.stage.entities.smith.strength > 0.5' -o jsonl
  sajou-replay scan --where 'state.workspace["main.go"].text.contains("panic(")' --first
  sajou-replay scan --image good.png --max-diff 1% --mask mask.png --first
  sajou-replay scan --conflicts
  sajou-replay scan --moments --where 'state.stage.entities.smoke.visible'
  sajou-replay scan 35..36 --moments --changes --where 'state.stage.entities.smith.state'
  sajou-replay scan 36..36+80ms --every 16ms --where 'state.stage.entities.smith.strength > 0.5'`,
		Args: cli.Between(0, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch n := cli.Count(expr != "", look.image != "", conflicts); {
			case n == 0:
				return cli.Misuse("scan needs --where EXPR, --image PNG or --conflicts; for example: --where 'entry.type == \"error\"'")
			case n > 1:
				return cli.Misuse("--where, --image and --conflicts exclude each other")
			}
			if err := look.check(cmd); err != nil {
				return err
			}
			if conflicts {
				expr = newConflict
			}
			if cmd.Flags().Changed("every") && every < time.Microsecond {
				return cli.Misuse("--every %v: must be at least 1µs of session time, such as 16ms", every)
			}
			if n := cli.Count(first, last, changes, all); n > 1 {
				return cli.Misuse("--first, --last, --changes and --all exclude each other")
			}
			if count && (first || last) {
				return cli.Misuse("--count counts all entries that are found; omit --first and --last")
			}
			session, over, err := a.SplitRange(cmd, args)
			if err != nil {
				return err
			}
			mode := replay.All
			switch {
			case first:
				mode = replay.First
			case last:
				mode = replay.Last
			case changes:
				mode = replay.Changes
			}
			find, err := NewFinder(expr, mode)
			if look.image != "" {
				find, err = look.finder(cmd.Context(), mode)
			}
			if err != nil {
				return err
			}
			t, err := a.OpenSession(session)
			if err != nil {
				return err
			}
			defer t.Close()
			if err := a.SeeThrough(cmd.Context(), t, defines); err != nil {
				return err
			}
			if err := t.FoldFor(find.expression); err != nil {
				return err
			}
			find.count = count
			stretch, err := answer.MomentRange(cmd.Context(), t.Travel, over)
			if err != nil {
				return err
			}
			if moments || every > 0 || stretch.From.Seq == stretch.To.Seq && stretch.To.Offset > 0 {
				stretch.Every = every
				err = runMoments(cmd.Context(), a, t, stretch, find)
				if errors.Is(err, cli.AnswerNo) {
					find.remarkMisspelt(cmd.Context(), a, t, stretch)
				}
				return err
			}
			err = runScan(cmd.Context(), a, t, over, find)
			if errors.Is(err, cli.AnswerNo) {
				find.remarkMisspelt(cmd.Context(), a, t, stretch)
			}
			if errors.Is(err, cli.AnswerNo) && (stretch.From.Offset > 0 || stretch.To.Offset > 0) {
				return cli.Fail(cli.ExitInconclusive, "no entry within the range is found, but the range begins or ends between entries, where only --moments looks; add --moments")
			}
			return err
		},
	}
	cmd.Flags().StringVar(&expr, "where", "", "find entries where `EXPR` is true")
	look.flags(cmd, "find entries where the picture equals the PNG")
	cmd.Flags().BoolVar(&conflicts, "conflicts", false, "find entries with a new conflict on the stage")
	cmd.Flags().BoolVar(&first, "first", false, "list the first entry only")
	cmd.Flags().BoolVar(&last, "last", false, "list the last entry only")
	cmd.Flags().BoolVar(&changes, "changes", false, "list the entries where the value changes")
	cmd.Flags().BoolVar(&all, "all", false, "list every entry; the default")
	cmd.Flags().BoolVar(&count, "count", false, "tell the number of entries instead of listing them")
	defines.Flag(cmd)
	cmd.Flags().BoolVar(&moments, "moments", false, "search between entries too, and list intervals")
	cmd.Flags().DurationVar(&every, "every", 0, "with --moments, also look at the multiples of `SPAN`")
	cmd.ValidArgsFunction = a.CompleteSession
	return cmd
}

// Finder is a scan of entries: its test, and the way it writes a hit.
type Finder struct {
	Predicate replay.EntryPredicate
	Mode      replay.Mode
	write     func(o *cli.Output, text string, line []byte) error // an entry that was found
	expensive bool                                                // show progress at each entry
	values    bool                                                // the value of any type, where it changes

	expression *where.Expression // nil for a picture
	count      bool              // write only how many hits there are
}

// newConflict is true after an entry that caused a conflict on the stage.
const newConflict = `state.stage.diagnostics.conflicts > prev.stage.diagnostics.conflicts`

// NewFinder compiles an expression into a search of the given mode.
func NewFinder(expr string, mode replay.Mode) (*Finder, error) {
	if mode == replay.Changes {
		x, err := answer.CompileValue(expr)
		return &Finder{Mode: mode, expression: x, values: true}, err
	}
	p, err := answer.Compile(expr)
	if err != nil {
		return nil, err
	}
	return &Finder{Mode: mode, expression: &p.Expression, write: func(o *cli.Output, text string, line []byte) error { return o.Item(text, line) }, Predicate: answer.Matching(p, nil)}, nil
}

// finder returns a scan by picture. A hit is written with its share of differing
// pixels and its greatest color distance.
func (l *imageTest) finder(ctx context.Context, mode replay.Mode) (*Finder, error) {
	c, err := l.load(ctx)
	if err != nil {
		return nil, err
	}
	var now, hit imagetest.Measurement // of the last tested entry, and of the last hit
	return &Finder{
		Mode:      mode,
		expensive: true,
		Predicate: replay.EntryPredicate{Needs: replay.NeedsState, Test: func(_ context.Context, s *replay.ScanStep) (bool, error) {
			m, err := c.measure(s.Fold)
			if err != nil {
				return false, err
			}
			now = m
			if c.Wrong(m) {
				hit = m
				return true, nil
			}
			return false, nil
		}},
		write: func(o *cli.Output, text string, line []byte) error {
			m := now
			if mode == replay.Last {
				m = hit
			}
			share, err := cli.Marshal(m.Share)
			if err != nil {
				return err
			}
			line = append(line[:len(line)-1], `,"differs":`...)
			line = append(line, share...)
			line = fmt.Appendf(line, `,"color":%d}`, m.Color)
			return o.Item(text+"  "+c.Text(m), line)
		},
	}, nil
}

// scanOf is one scan that runs.
type scanOf struct {
	o     *cli.Output
	meter *cli.ProgressMeter
	find  *Finder
	late  *session.Lateness
	seen  atomic.Uint64 // entries or moments that were examined
	hits  int
	gaps  cli.Unread
}

func runScan(ctx context.Context, a *cli.App, t *cli.OpenedSession, over string, find *Finder) error {
	from, to, err := t.ResolveRange(ctx, over)
	if err != nil {
		return err
	}
	s := &scanOf{o: a.Output(), meter: cli.NewProgress(a.Stderr), find: find, late: session.NewLateness(t.Log.Entries)}
	defer s.meter.Clear()
	err = s.around(ctx, t, from, to)
	if err != nil && ctx.Err() != nil {
		return s.interrupted(a, err, fmt.Sprintf("after %d of %d entries", s.seen.Load(), to-from+1))
	}
	if err != nil {
		return cli.ScanError(err)
	}
	return s.end()
}

// around is entries in front of, between and behind parts that cannot be read.
func (s *scanOf) around(ctx context.Context, t *cli.OpenedSession, from, to eventlog.Seq) error {
	needs := s.find.Predicate.Needs
	if s.find.values {
		needs = answer.Needs(s.find.expression)
	}
	for from > 0 {
		err := s.entries(ctx, t, from, to)
		if err == nil {
			return nil
		}
		gaps := len(s.gaps.List)
		next, err := s.gaps.Behind(ctx, t, from, to, needs, err)
		if err != nil {
			return err
		}
		if s.find.Mode != replay.Last {
			from = next
			continue
		}
		// The last entry is looked for behind the gap first. If it is there, the gap does
		// not matter.
		hits := s.hits
		if next > 0 {
			if err := s.around(ctx, t, next, to); err != nil {
				return err
			}
		}
		if s.hits > hits {
			s.gaps.List = append(s.gaps.List[:gaps], s.gaps.List[gaps+1:]...)
			return nil
		}
		if to = s.gaps.List[gaps][0] - 1; to < from {
			return nil
		}
	}
	return nil
}

// entries lists the entries that are found.
func (s *scanOf) entries(ctx context.Context, t *cli.OpenedSession, from, to eventlog.Seq) error {
	step := func(step *replay.ScanStep) {
		if n := s.seen.Add(1); s.find.expensive || n%256 == 0 {
			s.meter.Show(fmt.Sprintf("%d of %d entries", n, to-from+1))
		}
	}
	if s.find.values {
		for c, err := range replay.ScanValues(ctx, t.Travel, from, to, watched(answer.Valuing(s.find.expression, nil), step)) {
			if err != nil {
				return err
			}
			if err := s.hit(func() error { return writeValue(s.o, &c.Entry, c.Value) }); err != nil {
				return err
			}
		}
		return nil
	}
	pred := watchedPredicate(s.find.Predicate, step)
	for hit, err := range t.Travel.Scan(ctx, from, to, pred, s.find.Mode) {
		if err != nil {
			return err
		}
		if err := s.hit(func() error {
			text, line, err := cli.MarkedEntry(ctx, s.late, &hit.Entry)
			if err != nil {
				return err
			}
			return s.find.write(s.o, text, line)
		}); err != nil {
			return err
		}
	}
	return nil
}

// hit counts a hit, and writes it unless only the number is asked for.
func (s *scanOf) hit(write func() error) error {
	if s.hits++; s.find.count {
		return nil
	}
	s.meter.Clear()
	return write()
}

// end writes what is left, and returns the answer.
func (s *scanOf) end() error {
	s.meter.Clear()
	if s.find.count {
		err := s.o.One(strconv.Itoa(s.hits), struct {
			Count int `json:"count"`
		}{s.hits})
		if err != nil {
			return err
		}
	} else if err := s.o.End(); err != nil {
		return err
	}
	if err := s.gaps.Failure("searched"); err != nil {
		return err
	}
	if s.hits == 0 {
		return cli.AnswerNo
	}
	return nil
}

// interrupted ends the output of a scan that was interrupted: what was found is written,
// and how far the search came.
func (s *scanOf) interrupted(a *cli.App, err error, where string) error {
	if ended := s.end(); ended != nil && !errors.Is(ended, cli.AnswerNo) {
		return ended
	}
	fmt.Fprintf(a.Stderr, "sajou-replay: stopped %s; found until then: %d\n", where, s.hits)
	return err
}

// watched returns a valuation that reports each step. Copies report to the same function,
// which several goroutines call.
func watched[V comparable](v replay.Valuation[V], saw func(*replay.ScanStep)) replay.Valuation[V] {
	w := v
	w.Value = func(ctx context.Context, s *replay.ScanStep) (V, error) {
		saw(s)
		return v.Value(ctx, s)
	}
	if v.Copy != nil {
		w.Copy = func() replay.Valuation[V] { return watched(v.Copy(), saw) }
	}
	return w
}

// watchedPredicate is [watched] for a predicate.
func watchedPredicate(p replay.EntryPredicate, saw func(*replay.ScanStep)) replay.EntryPredicate {
	w := p
	w.Test = func(ctx context.Context, s *replay.ScanStep) (bool, error) {
		saw(s)
		return p.Test(ctx, s)
	}
	if p.Copy != nil {
		w.Copy = func() replay.EntryPredicate { return watchedPredicate(p.Copy(), saw) }
	}
	return w
}

// writeValue writes the value of an expression at an entry.
func writeValue(o *cli.Output, e *eventlog.Entry, value string) error {
	text := fmt.Sprintf("%6d  %s  %s", e.Seq, cli.ClockText(e.At), termtext.Printable(value))
	return o.ItemOf(text, answer.ViewValue(e, value))
}
