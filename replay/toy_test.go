package replay_test

import (
	"context"
	"encoding/binary"
	"errors"
	"iter"
	"sync/atomic"
	"time"

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
)

const ms = time.Millisecond

// tape is a session in memory.
type tape struct {
	entries []eventlog.Entry
	origin  time.Time
	reads   atomic.Int64 // entries yielded
}

var genesis = eventlog.Hash{0xab, 0xcd, 0xef, 0x01}

func (s *tape) Name() string              { return "tape" }
func (s *tape) Genesis() eventlog.Hash    { return genesis }
func (s *tape) Origin() (time.Time, bool) { return s.origin, !s.origin.IsZero() }
func (s *tape) Head() eventlog.Head {
	if len(s.entries) == 0 {
		return eventlog.Head{Hash: genesis}
	}
	return s.entries[len(s.entries)-1].Head()
}

func (s *tape) Entries(ctx context.Context, from eventlog.Seq) iter.Seq2[eventlog.Entry, error] {
	return func(yield func(eventlog.Entry, error) bool) {
		for i := int(from) - 1; i < len(s.entries); i++ {
			s.reads.Add(1)
			if err := ctx.Err(); err != nil {
				yield(eventlog.Entry{}, err)
				return
			}
			if !yield(s.entries[i], nil) {
				return
			}
		}
	}
}

// add appends an entry that comes pause after the last.
func (s *tape) add(pause time.Duration, data ...byte) {
	n := uint64(len(s.entries) + 1)
	e := eventlog.Entry{Seq: eventlog.Seq(n), Kind: eventlog.KindSignal, Data: data, At: pause}
	if n > 1 {
		e.At += s.entries[n-2].At
	}
	binary.BigEndian.PutUint64(e.Hash[:], n*0x9E3779B97F4A7C15)
	s.entries = append(s.entries, e)
}

// band is a state with performances: an entry with data n > 0 starts an action of
// n ms, and one with data 0 interrupts all running actions.
type band struct {
	now      time.Duration
	running  []note // in the order of the entries
	finished int64
	sum      uint64
	longer   time.Duration // all actions are longer by that
	sink     choreography.CommandSink
}

type note struct{ start, end time.Duration }

func (b *band) Apply(e *eventlog.Entry) {
	b.now = e.At
	b.sum = b.sum*31 + uint64(e.Seq)
	if len(e.Data) == 0 {
		return
	}
	b.sum += uint64(e.Data[0])
	if d := e.Data[0]; d > 0 {
		b.running = append(b.running, note{-1, time.Duration(d)*ms + b.longer})
		return
	}
	for range b.running {
		if b.sink != nil {
			b.sink.OnInterrupt(choreography.Interrupt{At: e.At})
		}
	}
	b.running = nil
}

func (b *band) Advance(at time.Duration) {
	for i := range b.running { // actions that have not begun begin at the current time
		if n := &b.running[i]; n.start < 0 {
			n.start, n.end = b.now, b.now+n.end
			if b.sink != nil {
				b.sink.OnActionStart(choreography.ActionStart{At: n.start})
			}
		}
	}
	for {
		next := -1
		for i, n := range b.running {
			if n.end <= at && (next < 0 || n.end < b.running[next].end) {
				next = i
			}
		}
		if next < 0 {
			break
		}
		if b.sink != nil {
			b.sink.OnActionComplete(choreography.ActionComplete{At: b.running[next].end})
		}
		b.finished++
		b.running = append(append([]note(nil), b.running[:next]...), b.running[next+1:]...)
	}
	b.now = at
	if b.sink != nil {
		for range b.running {
			b.sink.OnActionUpdate(choreography.ActionUpdate{At: at})
		}
	}
}

func (b *band) Perform(sink choreography.CommandSink) { b.sink = sink }

func (b *band) UnderWay(sink choreography.CommandSink) {
	for _, n := range b.running {
		sink.OnActionStart(choreography.ActionStart{At: n.start})
		sink.OnActionUpdate(choreography.ActionUpdate{At: b.now})
	}
}

func (b *band) Moving() bool { return len(b.running) > 0 }

func (b *band) NextBoundary() (at time.Duration, ok bool) {
	for _, n := range b.running {
		t := n.end
		if n.start < 0 {
			t = b.now
		}
		if !ok || t < at {
			at, ok = t, true
		}
	}
	return at, ok
}

func (b *band) Append(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(b.now))
	dst = binary.BigEndian.AppendUint64(dst, uint64(b.finished))
	dst = binary.BigEndian.AppendUint64(dst, b.sum)
	for _, n := range b.running {
		dst = binary.BigEndian.AppendUint64(dst, uint64(n.start))
		dst = binary.BigEndian.AppendUint64(dst, uint64(n.end))
	}
	return dst
}

func (b *band) View() any {
	return map[string]any{"running": int64(len(b.running)), "finished": b.finished, "sum": int64(b.sum % 1000)}
}

func restoreBand(data []byte) (projection.State, error) {
	if len(data) < 24 || len(data)%16 != 8 {
		return nil, errors.New("not a band")
	}
	word := func() (n uint64) {
		n, data = binary.BigEndian.Uint64(data), data[8:]
		return n
	}
	b := &band{now: time.Duration(word()), finished: int64(word()), sum: word()}
	for len(data) > 0 {
		b.running = append(b.running, note{time.Duration(word()), time.Duration(word())})
	}
	return b, nil
}

var toys = projection.Set{{
	Name: "band", Version: 1,
	New:     func() projection.State { return new(band) },
	Restore: restoreBand,
}}

// duo is the toys with a second band, whose actions are longer.
var duo = projection.Set{toys[0], {
	Name: "echo", Version: 1,
	New: func() projection.State { return &band{longer: 7 * ms} },
	Restore: func(data []byte) (projection.State, error) {
		st, err := restoreBand(data)
		if err == nil {
			st.(*band).longer = 7 * ms
		}
		return st, err
	},
}}

// album holds images in memory, taken right after their entries.
type album []projection.Image

func (a album) Nearest(_ context.Context, seq eventlog.Seq) (projection.Image, bool, error) {
	for i := len(a) - 1; i >= 0; i-- {
		if a[i].Head.Seq <= seq {
			return a[i], true, nil
		}
	}
	return projection.Image{}, false, nil
}

func takeImages(s *tape, want func(eventlog.Seq) bool) album { return takeImagesOf(toys, s, want) }

func takeImagesOf(set projection.Set, s *tape, want func(eventlog.Seq) bool) album {
	var a album
	f := projection.NewFold(set, genesis)
	for i := range s.entries {
		if err := f.Apply(&s.entries[i]); err != nil {
			panic(err)
		}
		if want(f.Head().Seq) {
			a = append(a, f.Image())
		}
	}
	return a
}

var _ replay.Performer = (*band)(nil)

// recorder keeps commands as text, with updates in their own list.
type recorder struct{ commands, updates []string }

func (r *recorder) OnActionStart(c choreography.ActionStart) { r.add("start", c.At) }
func (r *recorder) OnActionUpdate(c choreography.ActionUpdate) {
	r.updates = append(r.updates, c.At.String())
}
func (r *recorder) OnActionComplete(c choreography.ActionComplete) { r.add("complete", c.At) }
func (r *recorder) OnActionExecute(c choreography.ActionExecute)   { r.add("execute", c.At) }
func (r *recorder) OnInterrupt(c choreography.Interrupt)           { r.add("interrupt", c.At) }
func (r *recorder) add(what string, at time.Duration) {
	r.commands = append(r.commands, what+" "+at.String())
}

// clock is a state that changes at every full second after 600 ms, for ever.
type clock struct{ now time.Duration }

func (c *clock) Apply(e *eventlog.Entry)  { c.now = e.At }
func (c *clock) Advance(at time.Duration) { c.now = at }
func (c *clock) Append(dst []byte) []byte { return binary.BigEndian.AppendUint64(dst, uint64(c.now)) }
func (c *clock) View() any                { return int64(c.beats()) }
func (c *clock) beats() time.Duration     { return (c.now + 600*ms) / time.Second }
func (c *clock) NextBoundary() (time.Duration, bool) {
	return (c.beats()+1)*time.Second - 600*ms, true
}

var clocks = projection.Set{{
	Name: "clock", Version: 1,
	New:     func() projection.State { return new(clock) },
	Restore: func([]byte) (projection.State, error) { return nil, errors.New("not kept") },
}}
