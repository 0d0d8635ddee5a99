package replay_test

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/golden"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
)

// drawnTape is a session with all that a source can have. With left at least 0, the entries
// behind that number cannot be read.
type drawnTape struct {
	*tape
	marks []replay.Mark
	left  int
}

var errRead = errors.New("the disk is gone")

func (s *drawnTape) Entries(ctx context.Context, from eventlog.Seq) iter.Seq2[eventlog.Entry, error] {
	return func(yield func(eventlog.Entry, error) bool) {
		for e, err := range s.tape.Entries(ctx, max(from, 1)) {
			if s.left >= 0 && e.Seq > eventlog.Seq(s.left) {
				yield(eventlog.Entry{}, errRead)
				return
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

func (s *drawnTape) Correlation(e *eventlog.Entry) (string, bool) {
	if len(e.Data) == 0 || e.Data[0]%3 == 0 {
		return "", false
	}
	return strconv.Itoa(int(e.Data[0] % 3)), true
}

func (s *drawnTape) Marks(ctx context.Context) iter.Seq2[replay.Mark, error] {
	return (&scripted{tape: s.tape, marks: s.marks}).Marks(ctx)
}

func drawTape(d *golden.Dice) *drawnTape {
	s := &drawnTape{tape: &tape{}, left: -1}
	if d.Once(2) {
		s.origin = time.Date(2026, 11, 21, 23, 59, 58, 0, time.UTC)
	}
	for range d.N(14) {
		s.add(time.Duration(golden.Pick(d, 0, 0, 1, 7, 20, 20, 45, 900, 70_000))*ms, byte(golden.Pick(d, 0, 5, 10, 20, 33, 60, 60, 200)))
		m := replay.Mark{Seq: s.Head().Seq}
		switch d.N(5) {
		case 0:
			m.Beats = []string{"warm", "tea"}
		case 1:
			m.Turn = uint64(1 + d.N(2))
		case 2:
			m.Landed = golden.Pick(d, "warm", "tea")
		default:
			continue
		}
		s.marks = append(s.marks, m)
	}
	return s
}

func drawAddress(d *golden.Dice, s *drawnTape) string {
	hash := hex.EncodeToString(genesis[:])
	if n := len(s.entries); n > 0 {
		h := s.entries[d.N(n)].Hash
		hash = hex.EncodeToString(h[:])
	}
	base := golden.Pick(d, fmt.Sprint(d.N(15)), "end", fmt.Sprintf("end-%d", d.N(9)), "#"+hash[:4+d.N(12)], fmt.Sprintf("t:%dms", d.N(300)), "t:71s", "t:23:59:58.05", "t:00:00:10", "t:2026-11-21T23:59:59Z", "corr:1", "corr:2#-1", "corr:1#2", "corr:9",
		"beat:warm", "beat:tea#-1", "beat:none", "turn:1", "turn:2#2", "turn:9", "@mark", "@far", "@none", "+1", "-1", "@+20ms", "-15ms", "@", "perf:p-1-1", "x")
	if d.Once(3) {
		base += golden.Pick(d, "+5ms", "+20ms", "+2s", "+0s", "+2000000h")
	}
	return base
}

// drawMoment draws a moment, which s need not have.
func drawMoment(d *golden.Dice, s *drawnTape) replay.Moment {
	return replay.Moment{Seq: eventlog.Seq(d.N(len(s.entries) + 2 - d.N(3)/2)), Offset: time.Duration(golden.Pick(d, 0, 0, 0, 0, 1, 5, 10, 20, 33, 60_000)) * ms}
}

// drawRange draws two moments, mostly in order.
func drawRange(d *golden.Dice, s *drawnTape) (from, to replay.Moment) {
	from, to = drawMoment(d, s), drawMoment(d, s)
	if from.Compare(to) > 0 && !d.Once(8) {
		from, to = to, from
	}
	return from, to
}

// drawnScreen notes what it shows.
type drawnScreen struct {
	out  *strings.Builder
	d    *golden.Dice
	fail bool
}

func (s *drawnScreen) Show(f *projection.Fold, m replay.Moment) (bool, error) {
	fmt.Fprintln(s.out, "shown", m, f.At(), f.View())
	if s.fail && s.d.Once(5) {
		return false, errors.New("no screen")
	}
	return s.d.Once(2), nil
}

// teller asks a replay anything.
type teller struct {
	t   *testing.T
	d   *golden.Dice
	s   *drawnTape
	set projection.Set
	r   *replay.Replay
	out strings.Builder
}

func (a *teller) say(values ...any) { fmt.Fprintln(&a.out, values...) }

func (a *teller) ask() string {
	d, s, r := a.d, a.s, a.r
	ctx := a.t.Context()
	needs := golden.Pick(d, replay.NeedsEntry, replay.NeedsState, replay.NeedsState|replay.NeedsPrev)
	from, to := drawRange(d, s)
	over := replay.MomentRange{From: from, To: to, Rest: d.Once(3), Every: time.Duration(golden.Pick(d, 0, 0, 10, 400)) * ms}
	if over.Rest && over.Every == 10*ms {
		over.Every = 250 * ms
	}
	finished := func(s *replay.ScanStep) int64 {
		if needs == replay.NeedsEntry {
			return int64(s.Entry.Seq) / 3
		}
		return s.View()["band"].(map[string]any)["running"].(int64)
	}
	kind := golden.Pick(d, "resolve", "resolve", "resolve", "range", "at", "moments", "moments", "step", "intervals", "scan", "values", "together", "commands", "cursor", "cursor", "player", "player", "odd")
	switch kind {
	case "resolve":
		text := drawAddress(d, s)
		address, err := replay.ParseAddress(text)
		if a.say(text, err); err == nil {
			m, err := r.Resolve(ctx, address)
			a.say(m, err)
		}
	case "range":
		text := drawAddress(d, s) + ".." + drawAddress(d, s)
		rg, err := replay.ParseRange(text)
		if a.say(text, err); err == nil {
			from, to, err := r.ResolveRange(ctx, rg)
			a.say(from, to, err)
		}
	case "at":
		f, err := r.At(ctx, to)
		if a.say(to, err); err == nil {
			a.say(f.View(), f.Digests())
			at, ok := replay.NextBoundary(f)
			a.say(at, ok)
		}
		f, err = r.Fold(ctx, from.Seq)
		if a.say(from.Seq, err); err == nil {
			a.say(f.Digests())
		}
	case "moments":
		n := 0
		for st, err := range r.Moments(ctx, over, needs) {
			if err != nil {
				a.say(err)
				break
			}
			a.say(st.Moment, st.Kind, st.Fold.At(), st.Entry != nil && st.Entry.Seq == st.Moment.Seq, st.View())
			if needs&replay.NeedsPrev != 0 {
				a.say(st.Prev())
			}
			if n++; n > 300 {
				break
			}
		}
	case "step":
		st, err := r.StepAt(ctx, to, needs)
		if a.say(to, err); err == nil {
			a.say(st.Moment, st.Kind, st.View(), st.Prev())
		}
	case "intervals":
		n := 0
		over.Every = 0
		for iv, err := range replay.Intervals(ctx, r, over, running(needs|replay.NeedsState)) {
			a.say(iv, err)
			if n++; n > 30 {
				break
			}
		}
	case "scan":
		pred := replay.EntryPredicate{Needs: needs, Test: func(_ context.Context, s *replay.ScanStep) (bool, error) {
			if finished(s) == 5 {
				return false, errors.New("five")
			}
			return finished(s)%2 == 1, nil
		}}
		if d.Once(2) {
			test := pred
			pred.Copy = func() replay.EntryPredicate { return test }
		}
		for hit, err := range r.Scan(ctx, from.Seq, to.Seq, pred, golden.Pick(d, replay.All, replay.First, replay.Last, replay.Changes)) {
			a.say(hit.Entry.Seq, err)
		}
	case "values":
		v := replay.Valuation[int64]{Needs: needs, Value: func(_ context.Context, s *replay.ScanStep) (int64, error) {
			if finished(s) == 5 {
				return 0, errors.New("five")
			}
			return finished(s), nil
		}}
		for ev, err := range replay.ScanValues(ctx, r, from.Seq, to.Seq, v) {
			a.say(ev.Value, ev.Entry.Seq, err)
		}
	case "together":
		other := &drawnTape{tape: &tape{}, left: s.left}
		for i, e := range s.entries {
			if d.Once(3) {
				e.Data = []byte{byte(d.N(90))}
			}
			if d.Once(60) {
				e.At++
			}
			if i < 12 || !d.Once(3) {
				other.entries = append(other.entries, e)
			}
		}
		for p, err := range replay.Together(ctx, r, replay.Open(other, a.set, nil), over, needs) {
			if err != nil {
				a.say(err)
				break
			}
			a.say(p.Left.Moment, p.Right.Moment, p.Left.Kind, p.Right.Kind, p.Left.View(), p.Right.View())
			if needs&replay.NeedsPrev != 0 {
				a.say(p.Left.Prev(), p.Right.Prev())
			}
		}
	case "commands":
		var rec recorder
		a.say(r.Commands(ctx, from, to, time.Duration(golden.Pick(d, 0, 10, 700))*ms, &rec))
		a.say(rec.commands, rec.updates)
	case "cursor":
		c := r.Cursor()
		for range 6 {
			var err error
			switch d.N(4) {
			case 0:
				err = c.Seek(ctx, drawMoment(d, s))
			case 1:
				err = c.Step(ctx, golden.Pick(d, 1, 2, -1, -2, 0, 99, -99))
			case 2:
				err = c.StepTime(ctx, time.Duration(golden.Pick(d, 5, 20, -5, -20, -80_000, 90_000, 0))*ms)
			default:
				err = c.StepCommand(ctx, golden.Pick(d, 1, 1, -1, -1, 0))
			}
			a.say(c.Moment(), c.Fold().At(), c.Fold().Digests(), err)
		}
	case "player":
		a.player(from, to)
	default:
		at := time.Duration(d.N(300)) * ms
		m, err := r.MomentAt(ctx, at)
		a.say(at, m, err)
		m, err = r.Rest(ctx, to)
		a.say(to, m, err)
		seq, ok := r.Resume(ctx, from.Seq, needs)
		a.say(from.Seq, seq, ok)
		e, err := r.Entry(ctx, to.Seq)
		a.say(e.Seq, err)
		anchor := replay.Anchor{Head: eventlog.Head{Seq: to.Seq}, Offset: to.Offset}
		if n := int(to.Seq); n > 0 && n <= len(s.entries) && !d.Once(4) {
			anchor.Head = s.entries[n-1].Head()
		} else if n == 0 && !d.Once(4) {
			anchor.Head.Hash = genesis
			if d.Once(2) && len(s.entries) > 0 {
				anchor.Offset = s.entries[0].At + time.Duration(d.N(2))
			}
		}
		a.say(r.CheckAnchor(ctx, anchor))
	}
	return kind
}

func (a *teller) player(from, to replay.Moment) {
	d, ctx := a.d, a.t.Context()
	var rec recorder
	cfg := replay.PlayerConfig{
		From: from, To: to, Rate: golden.Pick(d, 0.0, 0.5, 1, 3, -1), Idle: time.Duration(golden.Pick(d, 0, 50, -1, 1000)) * ms, Loop: d.Once(3),
		Frame: time.Duration(golden.Pick(d, 0, 10, 40)) * ms, Screen: &drawnScreen{&a.out, d, d.Once(4)},
	}
	if !d.Once(3) {
		cfg.Commands = &rec
	}
	if d.Once(3) {
		cfg.To = replay.Moment{}
	}
	p, err := replay.NewPlayer(ctx, a.r, cfg)
	if a.say(cfg.From, cfg.To, err); err != nil {
		return
	}
	now := time.Duration(0)
	for range 10 {
		switch d.N(8) {
		case 0:
			p.Play()
		case 1:
			if d.Once(3) {
				p.Pause()
			}
		case 2:
			a.say(p.Seek(ctx, drawMoment(d, a.s)))
		case 3:
			a.say(p.Step(ctx, golden.Pick(d, 1, 2, -1, -2, 0, 99, -99)))
		case 4:
			moved, err := p.Next(ctx)
			a.say(moved, err)
		case 5:
			a.say(p.SetRate(golden.Pick(d, 0.3, 1, 2, 0)))
		default:
			p.Play()
			now += time.Duration(golden.Pick(d, 3, 16, 40, 200)) * ms
			a.say(p.Tick(ctx, now))
		}
		a.say(fmt.Sprintf("%+v", p.State()), rec.commands, rec.updates)
		rec = recorder{}
	}
}

// Drawn sessions give the answers and the errors that they gave, from the beginning and
// from images, in one part and in several, whole and with entries that cannot be read, and
// read as many entries for them.
func TestRecordedAnswers(t *testing.T) {
	golden.Trace(t, "testdata/trace.txt", func(step func(name, text string)) {
		for n := range uint64(850) {
			d := golden.NewDice(n)
			s := drawTape(d)
			set := toys
			if n >= 700 {
				set = duo
			}
			var snaps replay.Snapshots
			if d.Once(2) {
				every := eventlog.Seq(1 + d.N(4))
				snaps = takeImagesOf(set, s.tape, func(n eventlog.Seq) bool { return n%every == 0 })
			}
			a := &teller{t: t, d: d, s: s, set: set, r: replay.Open(s, set, snaps)}
			last := drawMoment(d, s)
			anchors := &notes{last: &last, anchors: map[string]replay.Anchor{"far": {Head: eventlog.Head{Seq: 99}}}}
			if len(s.entries) > 0 {
				anchors.anchors["mark"] = replay.Anchor{Head: s.entries[len(s.entries)/2].Head(), Offset: time.Duration(d.N(2)) * ms}
			}
			if d.Once(9) {
				anchors.err = errors.New("no notes")
			}
			if !d.Once(9) {
				a.r.Anchor(anchors)
			}
			breaks := d.Once(3)
			if a.r.Split(1+d.N(3), eventlog.Seq(1+d.N(4))); breaks {
				a.r.Split(1, 99) // the workers would share what can be read
			}
			for range 10 {
				if breaks {
					s.left = d.N(25)
				}
				before := s.reads.Load()
				kind := a.ask()
				if !slices.Contains([]string{"scan", "values", "intervals"}, kind) { // their workers read ahead
					a.say(s.reads.Load()-before, "entries read")
				}
				step(fmt.Sprintf("%d %s", n, kind), a.out.String())
				a.out.Reset()
			}
		}
		// A session of several stretches, in which commands are rare.
		for n := range uint64(12) {
			d := golden.NewDice(n)
			s := &drawnTape{tape: &tape{}, left: -1}
			for range 2*int(replay.Reach) + d.N(900) {
				s.add(10*ms, byte(golden.Pick(d, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7)*d.N(2)*d.N(2)*d.N(2)*d.N(2)))
			}
			var snaps replay.Snapshots
			if n%3 == 0 {
				snaps = takeImages(s.tape, func(n eventlog.Seq) bool { return n%700 == 0 })
			}
			a := &teller{t: t, d: d, s: s, set: toys, r: replay.Open(s, toys, snaps)}
			c := a.r.Cursor()
			for i := range 14 {
				before := s.reads.Load()
				var err error
				switch d.N(5) {
				case 0:
					err = c.Seek(t.Context(), replay.Moment{Seq: eventlog.Seq(d.N(len(s.entries) + 1))})
				case 1:
					err = c.Step(t.Context(), golden.Pick(d, 1, 700, -1, -700, -5000))
				case 2:
					err = c.StepTime(t.Context(), time.Duration(golden.Pick(d, 5, 9000, -5, -9000))*ms)
				default:
					err = c.StepCommand(t.Context(), golden.Pick(d, 1, -1, -1))
				}
				a.say(c.Moment(), c.Fold().At(), c.Fold().Digests(), err, s.reads.Load()-before)
				step(fmt.Sprintf("long %d %d", n, i), a.out.String())
				a.out.Reset()
			}
		}
	})
}
