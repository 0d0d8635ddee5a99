package debugger

import (
	"context"
	"fmt"
	"strings"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/replay"
)

// runTo returns the work that goes forwards, or backwards, to where a condition becomes
// true: an expression, a beat, or another address.
func (d *Debugger) runTo(text string, direction int) *Work {
	d.target = text
	label := "run to " + text
	if direction < 0 {
		label = "run back to " + text
	}
	if id, ok := strings.CutPrefix(text, "beat:"); ok && !strings.ContainsAny(id, "#+") {
		return d.find("a beat "+id, direction, isBeat(id))
	}
	if a, err := replay.ParseAddress(text); err == nil {
		return d.move(label, func(ctx context.Context, _ func(string)) (replay.Moment, error) {
			here := d.player.State().Moment
			m, err := d.travel.Resolve(ctx, a)
			if err == nil && m.Compare(here)*direction <= 0 {
				return here, notFound("%s is at %s, on the other side", text, clock(m))
			}
			return m, err
		})
	}
	c, err := d.compile(text)
	if err != nil {
		d.note = err.Error()
		return nil
	}
	return d.move(label, func(ctx context.Context, report func(string)) (replay.Moment, error) {
		return d.next(ctx, c, direction, report)
	})
}

// next returns the moment after, or before, the position at which a condition becomes
// true: the beginning of an interval of [replay.Intervals] in which it holds.
func (d *Debugger) next(ctx context.Context, c StopCondition, direction int, report func(string)) (replay.Moment, error) {
	return jump(ctx, d, direction, report, replay.Valuation[bool]{Needs: c.Needs, Value: c.Holds}, func(holds bool) bool { return holds })
}

// jump returns the beginning of the next interval after, or the nearest before, the
// position in which the value is wanted. The first moment of the session begins one.
func jump[V comparable](ctx context.Context, d *Debugger, direction int, report func(string), values replay.Valuation[V], wanted func(V) bool) (replay.Moment, error) {
	here := d.player.State().Moment
	evaluate := values.Value
	seen := eventlog.Seq(0)
	values.Value = func(ctx context.Context, s *replay.ScanStep) (V, error) {
		if s.Moment.Seq >= seen+chunk || s.Moment.Seq+chunk <= seen {
			seen = s.Moment.Seq
			report(fmt.Sprintf("entry %d", seen))
		}
		return evaluate(ctx, s)
	}
	if direction > 0 {
		// The moment here begins the first interval; only a later one counts, except
		// before entry 1, where the walk begins after it.
		for iv, err := range replay.Intervals(ctx, d.travel, replay.MomentRange{From: here, To: d.cfg.To}, values) {
			if err != nil {
				return here, err
			}
			if wanted(iv.Value) && iv.From.Moment.Compare(here) > 0 {
				return iv.From.Moment, nil
			}
		}
		return here, notFound("not after %s", clock(here))
	}
	for end := here; ; {
		begin := replay.Moment{Seq: max(d.cfg.From.Seq, 1)}
		if end.Seq > begin.Seq+chunk {
			begin.Seq = end.Seq - chunk
		}
		whole := begin.Seq == max(d.cfg.From.Seq, 1)
		if whole && d.cfg.From.Seq > 0 {
			begin = d.cfg.From
		}
		if begin.Compare(end) > 0 {
			break
		}
		found, ok := replay.Moment{}, false
		for iv, err := range replay.Intervals(ctx, d.travel, replay.MomentRange{From: begin, To: end}, values) {
			if err != nil {
				return here, err
			}
			at := iv.From.Moment
			// An interval that begins with the part has perhaps begun before it.
			if wanted(iv.Value) && at.Compare(here) < 0 && (whole || at != begin) {
				found, ok = at, true
			}
		}
		if ok {
			return found, nil
		}
		if whole {
			break
		}
		end = begin
	}
	return here, notFound("not before %s", clock(here))
}
