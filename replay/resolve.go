package replay

import (
	"context"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/eventlog"
)

// Choreographer is a state that knows the session's performances. Without one among
// the projections, addresses of performances do not resolve.
type Choreographer interface {
	Scheduler() *choreography.Scheduler
}

// Resolve returns the moment that a refers to in this session. The error is an
// [ErrNoAddress] if there is none.
func (r *Replay) Resolve(ctx context.Context, a Address) (Moment, error) {
	m, err := r.resolve(ctx, a, r.lastMoment)
	if err == nil && r.anchors != nil {
		r.anchors.Used(m)
	}
	return m, err
}

// resolve is Resolve with the moment from which a relative address counts.
func (r *Replay) resolve(ctx context.Context, a Address, last func() (Moment, bool)) (Moment, error) {
	m, err := r.base(ctx, a, last)
	switch {
	case err != nil:
		return Moment{}, err
	case m.Seq > r.src.Head().Seq:
		return Moment{}, noAddress(a.text, "the last entry of %s is %d", r.src.Name(), r.src.Head().Seq)
	case a.offset == 0:
		return m, nil
	}
	base, err := r.atOf(ctx, m.Seq)
	if err != nil {
		return Moment{}, err
	}
	from := m.Offset
	if m.Offset += a.offset; m.Offset < from || base+m.Offset < base {
		return Moment{}, noAddress(a.text, "session time ends before that")
	}
	if !a.namesEntry() {
		return r.momentOfTime(ctx, a, base+m.Offset)
	}
	_, err = r.instant(ctx, m, base)
	return m, err
}

// base returns the moment of a without its offset.
func (r *Replay) base(ctx context.Context, a Address, last func() (Moment, bool)) (m Moment, err error) {
	switch a.kind {
	case bySeq:
		m.Seq = eventlog.Seq(a.number)
	case byEnd:
		head := r.src.Head().Seq
		if eventlog.Seq(a.number) > head {
			return Moment{}, noAddress(a.text, "%s has only %d entries", r.src.Name(), head)
		}
		m.Seq = head - eventlog.Seq(a.number)
	case byHash:
		m.Seq, err = r.findHash(ctx, a)
	case byTime, byTimeOfDay, byWall:
		return r.resolveTime(ctx, a)
	case byPerformance:
		m, err = r.findPerformance(ctx, a)
	case byBookmark:
		return r.findBookmark(ctx, a)
	case byCorrelation:
		m.Seq, err = r.findCorrelation(ctx, a)
	case byBeat, byTurn:
		m.Seq, err = r.findMark(ctx, a)
	case byStep, byTimeStep:
		return r.stepFrom(ctx, a, last)
	}
	return m, err
}

// ResolveRange returns the two ends of rg. A missing beginning is the zero Moment, a
// missing end the last entry.
func (r *Replay) ResolveRange(ctx context.Context, rg Range) (from, to Moment, err error) {
	to = Moment{Seq: r.src.Head().Seq}
	last := r.lastMoment
	if rg.From != nil {
		if from, err = r.resolve(ctx, *rg.From, last); err != nil {
			return Moment{}, Moment{}, err
		}
		if !rg.From.isRelative() {
			last = func() (Moment, bool) { return from, true }
		}
	}
	if rg.To != nil {
		if to, err = r.resolve(ctx, *rg.To, last); err != nil {
			return Moment{}, Moment{}, err
		}
	}
	if from.Compare(to) > 0 {
		return Moment{}, Moment{}, backwards(rg.text, from, to)
	}
	if r.anchors != nil {
		r.anchors.Used(to)
	}
	return from, to, nil
}

// maxCandidates bounds the entries listed in the error for an ambiguous hash prefix.
const maxCandidates = 8

func (r *Replay) findHash(ctx context.Context, a Address) (eventlog.Seq, error) {
	var found []eventlog.Head // at most one more than maxCandidates
	add := func(h eventlog.Head) {
		if len(found) <= maxCandidates && hasPrefix(h.Hash, a.name) {
			found = append(found, h)
		}
	}
	add(eventlog.Head{Hash: r.src.Genesis()})
	if r.src.Head().Seq > 0 {
		for e, err := range r.src.Entries(ctx, 1) {
			if err != nil {
				return 0, fmt.Errorf("replay: look for %s: %w", a.text, err)
			}
			add(e.Head())
		}
	}
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	switch len(found) {
	case 0:
		return 0, noAddress(a.text, "no entry of %s has a hash that begins so", r.src.Name())
	case 1:
		return found[0].Seq, nil
	}
	var names []string
	for _, h := range found[:min(len(found), maxCandidates)] {
		names = append(names, fmt.Sprintf("%d (#%.16s)", h.Seq, h.Hash.String()))
	}
	if len(found) > maxCandidates {
		names = append(names, "…")
	}
	return 0, noAddress(a.text, "it could be %s", strings.Join(names, ", "))
}

func hasPrefix(h eventlog.Hash, prefix string) bool {
	// Most hashes differ in the first byte; only the others are formatted.
	var first [2]byte
	hex.Encode(first[:], h[:1])
	return string(first[:]) == prefix[:2] && strings.HasPrefix(h.String(), prefix)
}

func (r *Replay) resolveTime(ctx context.Context, a Address) (Moment, error) {
	at := a.at
	if a.kind != byTime {
		origin, ok := r.Origin()
		if !ok {
			return Moment{}, noAddress(a.text, "%s has no wall clock; use t:1.5s, since its beginning", r.src.Name())
		}
		wall := a.wall
		if a.kind == byTimeOfDay {
			year, month, day := origin.Date()
			wall = time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Add(a.at)
			if wall.Before(origin) {
				wall = wall.Add(24 * time.Hour)
			}
		}
		if at = wall.Sub(origin); at < 0 {
			return Moment{}, noAddress(a.text, "%s began at %s", r.src.Name(), origin.Format(time.RFC3339Nano))
		}
	}
	return r.momentOfTime(ctx, a, at)
}

// momentOfTime returns the moment of a session time that an address names. It refuses the
// address of a time after the end: after the last entry, when nothing changes any more.
func (r *Replay) momentOfTime(ctx context.Context, a Address, at time.Duration) (Moment, error) {
	m, err := r.MomentAt(ctx, at)
	if err != nil {
		return Moment{}, err
	}
	if m.Offset == 0 || m.Seq < r.src.Head().Seq || !a.isTime() {
		return m, nil
	}
	f, err := r.foldTo(ctx, m.Seq, nil, nil)
	if err != nil {
		return Moment{}, err
	}
	f.Advance(f.At())
	ps := performers(f)
	for range maxBoundaries {
		if err := ctx.Err(); err != nil {
			return Moment{}, err
		}
		next, ok := nextBoundary(ps)
		if ok && next >= at {
			return m, nil
		}
		if ok && next > f.At() {
			f.Advance(next)
			continue
		}
		// What still moves has no boundary.
		if f.Advance(at - 1); moving(f) {
			return m, nil
		}
		return Moment{}, noAddress(a.text, "the last entry of %s is at %v, and nothing is under way any more", r.src.Name(), at-m.Offset)
	}
	return m, nil
}

// Origin returns the wall clock's time at session time zero, in UTC, and false when the
// session has no wall clock.
func (r *Replay) Origin() (time.Time, bool) {
	if o, ok := r.src.(Origin); ok {
		t, ok := o.Origin()
		return t.UTC(), ok
	}
	return time.Time{}, false
}

// MomentAt returns the moment of a session time: the last entry that is not later,
// with the remaining time as its offset. It reads a logarithmic number of entries.
func (r *Replay) MomentAt(ctx context.Context, at time.Duration) (Moment, error) {
	if at < 0 {
		return Moment{}, noAddress("t:"+at.String(), "session time begins at 0")
	}
	// Entry low is not later than at; entry high is later, or is beyond the end.
	low, high := eventlog.Seq(0), r.src.Head().Seq+1
	base := time.Duration(0)
	for high-low > 1 {
		mid := low + (high-low)/2
		t, err := r.atOf(ctx, mid)
		if err != nil {
			return Moment{}, err
		}
		if t <= at {
			low, base = mid, t
		} else {
			high = mid
		}
	}
	return Moment{low, at - base}, nil
}

// atOf returns the session time of an entry, zero for Seq 0.
func (r *Replay) atOf(ctx context.Context, seq eventlog.Seq) (time.Duration, error) {
	if seq == 0 {
		return 0, nil
	}
	e, ok, err := entryAt(ctx, r.src, seq)
	if err != nil {
		return 0, fmt.Errorf("replay: read entry %d: %w", seq, err)
	}
	if !ok {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		return 0, noAddress(Moment{Seq: seq}.String(), "the last entry of %s is %d", r.src.Name(), r.src.Head().Seq)
	}
	return e.At, nil
}

func (r *Replay) findPerformance(ctx context.Context, a Address) (Moment, error) {
	m := Moment{Seq: eventlog.Seq(a.number)}
	if err := r.checkSeq(m); err != nil {
		return Moment{}, noAddress(a.text, "the last entry of %s is %d", r.src.Name(), r.src.Head().Seq)
	}
	// Fold to the previous entry and then apply this one: an image at this entry may
	// be of the end of its instant, when a short performance has ended.
	f, err := r.foldTo(ctx, m.Seq-1, nil, nil)
	if err != nil {
		return Moment{}, err
	}
	if err := r.foldOn(ctx, f, m.Seq, nil); err != nil {
		return Moment{}, err
	}
	known := false
	for _, st := range f.States() {
		s, ok := st.(Choreographer)
		if !ok {
			continue
		}
		known = true
		for p := range s.Scheduler().Performances() {
			if p.ID() == a.name {
				return m, nil // it begins with its signal
			}
		}
	}
	if !known {
		return Moment{}, noAddress(a.text, "no projection of this session has performances")
	}
	return Moment{}, noAddress(a.text, "entry %d began no such performance", m.Seq)
}
