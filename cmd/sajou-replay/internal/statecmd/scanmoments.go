package statecmd

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/internal/answer"
	"github.com/sajou-dev/sajou-go/internal/termtext"
	"github.com/sajou-dev/sajou-go/replay"
)

// examined counts the moments that a search looks at.
type examined struct {
	entries, boundaries, grid, edges atomic.Uint64
}

func (n *examined) add(kind replay.MomentKind) {
	switch kind {
	case replay.EntryMoment:
		n.entries.Add(1)
	case replay.BoundaryMoment:
		n.boundaries.Add(1)
	case replay.GridMoment:
		n.grid.Add(1)
	case replay.EdgeMoment:
		n.edges.Add(1)
	}
}

// String tells what was examined.
func (n *examined) String() string {
	parts := []string{
		cli.Plural(int(n.entries.Load()), "entry", "entries"),
		cli.Plural(int(n.boundaries.Load()), "boundary between entries", "boundaries between entries"),
	}
	if grid := n.grid.Load(); grid > 0 {
		parts = append(parts, cli.Plural(int(grid), "moment of the grid", "moments of the grid"))
	}
	if edges := n.edges.Load(); edges > 0 {
		parts = append(parts, cli.Plural(int(edges), "end of the range", "ends of the range"))
	}
	last := len(parts) - 1
	return strings.Join(parts[:last], ", ") + " and " + parts[last]
}

// runMoments is a scan of all moments of a range, not only of entries.
func runMoments(ctx context.Context, a *cli.App, t *cli.OpenedSession, over replay.MomentRange, find *Finder) error {
	s := &scanOf{o: a.Output(), meter: cli.NewProgress(a.Stderr), find: find}
	defer s.meter.Clear()
	var seen examined
	values := answer.Truth(find.Predicate)
	if find.values {
		values = answer.Valuing(find.expression, nil)
	}
	values = watched(values, func(step *replay.ScanStep) {
		seen.add(step.Kind)
		if n := s.seen.Add(1); find.expensive || n%256 == 0 {
			s.meter.Show(fmt.Sprintf("%d moments, at entry %d of %d", n, step.Moment.Seq, over.To.Seq))
		}
	})
	var last *replay.ValueInterval[string]
	reached := over.From
	if reached.IsZero() {
		reached.Seq = 1
	}
	var reading error
search:
	for from := reached.Seq; ; {
		for iv, err := range replay.Intervals(ctx, t.Travel, over, values) {
			if ctx.Err() != nil && err != nil {
				if last != nil {
					if err := s.hit(func() error { return writeInterval(s.o, last, find.Mode) }); err != nil {
						return err
					}
				}
				return s.interrupted(a, err, "at "+reached.String())
			}
			if reading = err; err != nil {
				break
			}
			reached = iv.Until.Moment
			if find.Mode != replay.Changes && iv.Value != answer.True {
				continue
			}
			if find.Mode == replay.Last {
				if last = &iv; iv.From.Moment.Seq > from {
					s.gaps = cli.Unread{} // they are in front of the answer
				}
				continue
			}
			if err := s.hit(func() error { return writeInterval(s.o, &iv, find.Mode) }); err != nil {
				return err
			}
			if find.Mode == replay.First && !iv.Open {
				break search
			}
		}
		if reading == nil {
			break
		}
		next, err := s.gaps.Behind(ctx, t, from, over.To.Seq, replay.NeedsState, reading)
		if err != nil {
			return cli.ScanError(err)
		}
		if next == 0 || find.Mode == replay.First && s.hits > 0 {
			break
		}
		from, over.From = next, replay.Moment{Seq: next}
	}
	if last != nil {
		if err := s.hit(func() error { return writeInterval(s.o, last, find.Mode) }); err != nil {
			return err
		}
	}
	err := s.end()
	note := ""
	if over.Every == 0 {
		note = "; values under way were read only there, --every SPAN adds a grid"
	}
	fmt.Fprintf(a.Stderr, "examined %s, up to %s%s\n", &seen, reached, note)
	return err
}

// writeInterval writes an interval, with its value if that can differ.
func writeInterval(o *cli.Output, iv *replay.ValueInterval[string], mode replay.Mode) error {
	var text strings.Builder
	if iv.Open {
		fmt.Fprintf(&text, "from %v on, still at %v", iv.From.Moment, iv.Until.Moment)
	} else {
		fmt.Fprintf(&text, "from %v until %v", iv.From.Moment, iv.Until.Moment)
	}
	fmt.Fprintf(&text, "  %s  %v", cli.ClockText(iv.From.At), iv.Until.At-iv.From.At)
	if mode == replay.Changes {
		text.WriteString("  " + termtext.Printable(iv.Value))
	}
	return o.ItemOf(text.String(), answer.ViewInterval(iv))
}
