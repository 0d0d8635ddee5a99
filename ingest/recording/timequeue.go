package recording

import (
	"time"

	"github.com/sajou-dev/sajou-go/signal"
)

// lookAhead is the number of records within which a jump of time must come back to be taken
// for a wrong clock.
const lookAhead = 64

// timeQueue holds signals until the time of their record is decided. That takes no
// later record, unless the time jumps ahead by more than maxSkew or is the first one.
type timeQueue struct {
	maxSkew Instant
	seen    Instant // the latest sound time of a record
	started bool    // seen is set
	now     Instant // the time of the last signal
	told    bool    // now is set
	groups  []group
	spare   []pendingItem // space for the items of a group
	stated  bool          // the times are of the stated clock, which cannot be wrong
	record  int           // the number of the current record
	torn    bool          // its time is not known yet
}

// group are the signals of one record that have one time.
type group struct {
	record int
	at     Instant
	timed  bool
	items  []pendingItem
}

type pendingItem struct {
	item Item
	meta *signal.Object
}

func (q *timeQueue) begin(record int) {
	q.record, q.torn = record, false
	if n := len(q.groups); n > 0 && len(q.groups[n-1].items) == 0 {
		// A record that gave no signal leaves no group, unless its time counts.
		if !q.groups[n-1].timed {
			q.groups = q.groups[:n-1]
		}
	}
	q.groups = append(q.groups, group{record: record})
}

// time sets the time of the signals that follow.
func (q *timeQueue) time(t Instant) {
	if len(q.groups) == 0 {
		q.groups = append(q.groups, group{record: q.record})
	}
	last := &q.groups[len(q.groups)-1]
	switch {
	case last.timed && last.at == t:
	case len(last.items) == 0:
		last.at, last.timed = t, true
	default:
		q.groups = append(q.groups, group{record: q.record, at: t, timed: true})
	}
}

func (q *timeQueue) add(item Item, meta *signal.Object) {
	if len(q.groups) == 0 {
		q.groups = append(q.groups, group{record: q.record})
	}
	last := &q.groups[len(q.groups)-1]
	if last.items == nil {
		last.items, q.spare = q.spare, nil
	}
	last.items = append(last.items, pendingItem{item, meta})
}

// shift removes the first group. If there are few, as nearly always, the others move down, so
// that the space is used again.
func (q *timeQueue) shift() {
	if items := q.groups[0].items; cap(items) <= lookAhead {
		clear(items)
		q.spare = items[:0]
	}
	if len(q.groups) > 2*lookAhead {
		q.groups[0] = group{}
		q.groups = q.groups[1:]
		return
	}
	n := copy(q.groups, q.groups[1:])
	q.groups[n] = group{}
	q.groups = q.groups[:n]
}

// verdict on the time of a group.
type verdict uint8

const (
	wait verdict = iota
	sound
	wrong
)

// judge decides the time of the first group. Atend says that no further record
// is known, and final that none will come.
func (q *timeQueue) judge(atEnd, final bool) verdict {
	if q.stated {
		return sound
	}
	first := 0
	if !q.started {
		// Records without a time at the beginning wait for the first time.
		for first < len(q.groups) && !q.groups[first].timed {
			first++
		}
		if first == len(q.groups) {
			if final || q.complete(atEnd)-q.groups[0].record >= lookAhead {
				return sound
			}
			return wait
		}
	}
	g := &q.groups[first]
	if !g.timed || q.started && g.at <= q.seen+q.maxSkew {
		return sound
	}
	// The time from which on a record has come back.
	back := g.at - q.maxSkew
	if q.started {
		back = q.seen + q.maxSkew
	}
	later := 0
	for i := first + 1; i < len(q.groups); i++ {
		h := &q.groups[i]
		if h.record-g.record > lookAhead {
			return sound
		}
		if !h.timed || h.record == g.record {
			continue
		}
		later++
		if h.at < back || q.started && h.at == back {
			return wrong
		}
	}
	// A recording that has begun to grow is shown, though a later record could still tell
	// that its first time is wrong.
	if final || q.complete(atEnd)-g.record >= lookAhead || atEnd && !q.started && later > 0 {
		return sound
	}
	return wait
}

// complete returns the number of the last record whose time is known.
func (q *timeQueue) complete(atEnd bool) int {
	if atEnd && !q.torn {
		return q.record
	}
	return q.record - 1
}

// drain delivers the signals whose time is decided.
func (m *Mapping) drain(atEnd, final bool) {
	q := &m.queue
	for len(q.groups) > 0 && !m.stopped {
		if len(q.groups) == 1 && !atEnd {
			return // the record is still being mapped
		}
		ahead := false
		switch q.judge(atEnd, final) {
		case wait:
			if atEnd {
				m.balance.Waiting = q.record - q.groups[0].record + 1
			}
			return
		case wrong:
			ahead = true
		case sound:
		}
		g := q.groups[0]
		var moved time.Duration
		if !q.started && (g.timed || len(g.items) > 0) {
			q.seen, q.started = q.opening(ahead)
		}
		if g.timed && !ahead {
			q.seen = max(q.seen, g.at)
		}
		if len(g.items) > 0 {
			switch {
			case !q.told:
				q.now, q.told = q.seen, q.started
			case ahead || !g.timed:
			case g.at < q.now:
				moved = time.Duration(q.now - g.at)
				m.balance.Clamped++
				m.balance.MaxClamped = max(m.balance.MaxClamped, moved)
			default:
				q.now = g.at
			}
		}
		if ahead && g.timed && len(g.items) > 0 {
			m.balance.Ahead++
		}
		for i := range g.items {
			m.deliver(&g.items[i], q.now, moved, ahead && g.timed)
		}
		q.shift()
	}
}

// opening returns the time at which the recording begins: the first one, or if that one
// is ahead the first that has come back.
func (q *timeQueue) opening(ahead bool) (at Instant, known bool) {
	first := Instant(-1)
	for i := range q.groups {
		switch g := &q.groups[i]; {
		case !g.timed:
		case !ahead:
			return g.at, true
		case first < 0:
			first = g.at
		case g.at < first-q.maxSkew:
			return g.at, true
		}
	}
	return 0, false
}
