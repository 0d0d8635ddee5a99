package debugger

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

// chunk is the number of entries that a search backwards reads at a time.
const chunk = 2048

// at returns the session time of the position.
func (d *Debugger) at() time.Duration { return d.player.State().At }

// change returns the moment of the next change after or before the position: an entry,
// or a boundary between entries.
func (d *Debugger) change(ctx context.Context, direction int) (replay.Moment, error) {
	here := d.player.State().Moment
	if direction > 0 {
		for s, err := range d.travel.Moments(ctx, replay.MomentRange{From: here, To: d.cfg.To}, replay.NeedsEntry) {
			if err != nil {
				return here, err
			}
			if s.Moment.Compare(here) > 0 {
				return s.Moment, nil
			}
		}
		return here, notFound("nothing changes after %s", clock(here))
	}
	from := replay.Moment{Seq: here.Seq}
	if here.Offset == 0 && from.Seq > 0 {
		from.Seq--
	}
	from = d.inRange(from)
	found := from
	if here.Compare(from) <= 0 {
		return here, notFound("nothing changes before %s", clock(here))
	}
	if from.IsZero() {
		return from, nil // a walk begins with entry 1
	}
	for s, err := range d.travel.Moments(ctx, replay.MomentRange{From: from, To: here}, replay.NeedsEntry) {
		if err != nil {
			return here, err
		}
		if s.Moment.Compare(here) >= 0 {
			break
		}
		found = s.Moment
	}
	return found, nil
}

// inRange returns m, or the beginning of the range if m is before it.
func (d *Debugger) inRange(m replay.Moment) replay.Moment {
	if m.Compare(d.cfg.From) < 0 {
		return d.cfg.From
	}
	return m
}

// frame returns the moment of the next or previous multiple of a frame in session time.
func (d *Debugger) frame(ctx context.Context, direction int) (replay.Moment, error) {
	step, now := d.cfg.Frame, d.at()
	at := (now/step + 1) * step
	if direction < 0 {
		at = max(0, (now-1)/step*step)
	}
	if at < 0 || at > math.MaxInt64-step {
		return d.player.State().Moment, notFound("session time ends")
	}
	m, err := d.travel.MomentAt(ctx, at)
	if err != nil {
		return m, err
	}
	if m.Compare(d.cfg.To) > 0 {
		m = d.cfg.To
	}
	return d.inRange(m), nil
}

// performance returns the moment after or before the position at which the set of the
// running performances became another one.
func (d *Debugger) performance(ctx context.Context, direction int, report func(string)) (replay.Moment, error) {
	here := d.player.State().Moment
	m, err := jump(ctx, d, direction, report, replay.Valuation[string]{Value: func(_ context.Context, s *replay.ScanStep) (string, error) {
		p := session.PerformancesOf(s.Fold)
		if p == nil {
			return "", nil
		}
		var ids strings.Builder
		for perf := range p.Scheduler().Performances() {
			fmt.Fprintf(&ids, "%d-%d ", perf.Seq, perf.Index)
		}
		return ids.String(), nil
	}}, func(string) bool { return true })
	if err != nil {
		return here, err
	}
	return m, nil
}

// find returns the work that goes to the next entry, or with a negative direction to the
// previous one, that has a property.
func (d *Debugger) find(label string, direction int, has func(*eventlog.Entry) bool) *Work {
	return d.move(label, func(ctx context.Context, report func(string)) (replay.Moment, error) {
		return d.entry(ctx, label, direction, report, has)
	})
}

// entry returns the moment of the next or previous entry with a property.
func (d *Debugger) entry(ctx context.Context, label string, direction int, report func(string), has func(*eventlog.Entry) bool) (replay.Moment, error) {
	here := d.player.State().Moment
	first, last := max(here.Seq+1, 1), d.cfg.To.Seq
	if direction < 0 {
		first, last = max(d.cfg.From.Seq, 1), here.Seq
		if here.Offset == 0 && last > 0 {
			last--
		}
	}
	seq := eventlog.Seq(0)
	var err error
	if direction > 0 {
		seq, err = d.scan(ctx, first, last, report, has, false)
	}
	// Backwards, one chunk after the other, the last first.
	for end := last; direction < 0 && seq == 0 && err == nil && end >= first; {
		begin := first
		if end-first >= chunk {
			begin = end - chunk + 1
		}
		seq, err = d.scan(ctx, begin, end, report, has, true)
		end = begin - 1
	}
	switch {
	case err != nil:
		return here, err
	case seq == 0:
		return here, notFound("%s", label)
	}
	return replay.Moment{Seq: seq}, nil
}

// scan returns the first or the last entry from first to last that has a property, or 0.
func (d *Debugger) scan(ctx context.Context, first, last eventlog.Seq, report func(string), has func(*eventlog.Entry) bool, newest bool) (found eventlog.Seq, err error) {
	if first > last {
		return 0, nil
	}
	for e, err := range d.travel.Entries(ctx, first) {
		switch {
		case err != nil:
			return 0, err
		case e.Seq > last:
			return found, nil
		case e.Seq%chunk == 0:
			report(fmt.Sprintf("entry %d", e.Seq))
			if ctx.Err() != nil {
				return 0, ctx.Err()
			}
		}
		if has(&e) {
			if found = e.Seq; !newest {
				return found, nil
			}
		}
	}
	return found, ctx.Err()
}

// isBeat reports whether a beat landed in an entry: that one, or with the empty id any.
func isBeat(id string) func(*eventlog.Entry) bool {
	return func(e *eventlog.Entry) bool {
		r, err := session.BeatOf(e)
		return err == nil && r.Word == episode.BeatLanded && (id == "" || r.Value.TextOf("beat") == id)
	}
}

// correlationOf returns the correlation id of an entry, "" for none.
func correlationOf(e *eventlog.Entry) string {
	if e.Kind != eventlog.KindSignal {
		return ""
	}
	if sig, err := signal.Decode(e.Data); err == nil && sig.CorrelationID != nil {
		return *sig.CorrelationID
	}
	return ""
}

// correlated returns the work that goes to the next or previous signal with the
// correlation id of the present entry.
func (d *Debugger) correlated(direction int) *Work {
	return d.move("a signal with the same correlation id", func(ctx context.Context, report func(string)) (replay.Moment, error) {
		here := d.player.State().Moment
		if here.Seq == 0 {
			return here, notFound("there is no entry here")
		}
		e, err := d.travel.Entry(ctx, here.Seq)
		if err != nil {
			return here, err
		}
		id := correlationOf(&e)
		if id == "" {
			return here, notFound("entry %d has no correlation id", here.Seq)
		}
		return d.entry(ctx, "another signal with the correlation id "+id, direction, report, func(e *eventlog.Entry) bool { return correlationOf(e) == id })
	})
}

// searchAgain returns the work that looks for the searched text.
func (d *Debugger) searchAgain(direction int) *Work {
	if d.search == "" {
		d.note = "press / to search for a text"
		return nil
	}
	text := bytes.ToLower([]byte(d.search))
	return d.find(fmt.Sprintf("an entry with %q", d.search), direction, func(e *eventlog.Entry) bool {
		return bytes.Contains(bytes.ToLower(session.AppendEntryJSON(nil, e)), text)
	})
}

// isError reports whether a signal tells of a failure.
func isError(e *eventlog.Entry) bool {
	if e.Kind != eventlog.KindSignal {
		return false
	}
	sig, err := signal.Decode(e.Data)
	if err != nil {
		return false
	}
	if v, ok := sig.Payload.Get("success"); ok {
		success, known := v.Bool()
		return known && !success
	}
	return sig.Type == "error"
}

// errorsOf divides the entries up to last into n parts, and returns which have errors.
func errorsOf(ctx context.Context, travel *replay.Replay, last, n eventlog.Seq) []bool {
	found := make([]bool, n)
	if last == 0 {
		return found
	}
	for e, err := range travel.Entries(ctx, 1) {
		if err != nil || e.Seq > last {
			break // the scrub bar shows what could be read
		}
		if isError(&e) {
			found[(e.Seq-1)*n/last] = true
		}
	}
	return found
}
