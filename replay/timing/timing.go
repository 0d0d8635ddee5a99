// Package timing measures where the time of a session goes: how long after a signal
// its first command comes, how long performances take, run beside each other and are
// interrupted, how long nothing runs, and how long a beat takes from its direction to its
// landing.
//
// # Definitions
//
// All times are session time.
//
//   - A performance is under way from its signal to its end, also while it waits for its
//     guard. What is under way at the end of the course counts as open: it has no length.
//   - The latency of a performance is the time from its signal to its first command: the
//     start of an animated action, or an instant action. A performance without a command
//     has none.
//   - The latency of a signal is the least of its performances.
//   - The session is busy while a performance is under way, and idle otherwise, from its
//     first entry to the end of the course. A gap is an idle time between two busy ones.
//   - An overlap is time in which at least two performances are under way; that of a
//     performance is the part of its own time in which another one is.
//   - A performance is interrupted if another signal ends it. Its handler is a performance
//     of its own.
//   - The latency of a beat is the time from the guidance that first directed it to its
//     landing. A landing whose attempt was dropped does not count.
//
// docs/glossary.md has the nouns of all packages.
package timing

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/course"
	"github.com/sajou-dev/sajou-go/session"
)

// Spread describes a list of times. Its percentiles are by nearest rank, so each is one
// of the times. All are 0 if Count is.
type Spread struct {
	Count         int
	P50, P99, Max time.Duration
}

// spreadOf sorts a list of times.
func spreadOf(list []time.Duration) Spread {
	if len(list) == 0 {
		return Spread{}
	}
	slices.Sort(list)
	n := len(list)
	rank := func(percent int) time.Duration { return list[(n*percent+99)/100-1] }
	return Spread{n, rank(50), rank(99), list[n-1]}
}

// Budget is the measurement of a session.
type Budget struct {
	Session string
	Head    eventlog.Head
	Length  time.Duration // from the first entry to the end of the course
	Busy    time.Duration
	Idle    time.Duration
	Overlap time.Duration
	Most    int    // performances at once
	Gaps    Spread // idle times between busy ones

	Types        []TypeTimes        // by name
	Performances []PerformanceTimes // by name
	Beats        []BeatTimes        // in the order of their first event
}

// TypeTimes measures the signals of one type.
type TypeTimes struct {
	Type         string
	Signals      int
	Silent       int // without a command
	Performances int // that they made, without handlers
	Interrupted  int // of these
	Latency      Spread
}

// PerformanceTimes measures the performances of the definitions of one name.
type PerformanceTimes struct {
	Name        string // the id of the definition, or "on TYPE"; that of a handler ends with " (onInterrupt)"
	Made        int
	Interrupted int
	Open        int // under way at the end
	Latency     Spread
	Length      Spread        // of those that ended, interrupted or not
	Total       time.Duration // the sum of their times, also of open ones
	Overlap     time.Duration // the part of Total
}

// BeatTimes measures one beat of the episode.
type BeatTimes struct {
	Beat     string
	Directed int // guidances that directed it
	Dropped  int // landings that a dropped attempt has undone
	Landed   int // 1 if it landed
	Latency  Spread
}

// Measure measures a session in one pass, to its present end and what follows the last
// entry; see [course.Walk]. Errors are those of the walk.
func Measure(ctx context.Context, r *replay.Replay) (*Budget, error) {
	m := meter{
		budget: Budget{Session: r.Name(), Head: r.Head()},
		types:  map[string]*typeMeter{}, names: map[string]*nameMeter{}, open: map[string]*performance{},
		beats: map[string]*beatMeter{},
	}
	end, err := course.Walk(ctx, r, course.Passage{To: m.budget.Head.Seq}, &m)
	if err != nil {
		return nil, err
	}
	return m.end(end), nil
}

// meter is the sink that measures.
type meter struct {
	budget Budget
	types  map[string]*typeMeter
	names  map[string]*nameMeter
	open   map[string]*performance // that are under way
	gaps   []time.Duration

	last    time.Duration // up to which busy, idle and overlap are counted
	began   bool          // a performance was made
	free    time.Duration // when the last one ended
	current *signalMeter  // of the last entry

	director director.State
	beats    map[string]*beatMeter
	order    []*beatMeter
}

// signalMeter is one signal while its performances may have a first command.
type signalMeter struct {
	of       *typeMeter
	at       time.Duration
	answered bool // has had a command
}

// performance is one that is under way.
type performance struct {
	signal      *signalMeter // nil for a handler
	of          *nameMeter
	began       time.Duration
	overlap     time.Duration // the overlap of the session when it began
	answered    bool
	interrupted bool
}

type typeMeter struct {
	TypeTimes
	latencies []time.Duration
}

type nameMeter struct {
	PerformanceTimes
	latencies, lengths []time.Duration
}

type beatMeter struct {
	BeatTimes
	directed time.Duration
	landed   time.Duration
}

// count counts the time up to at.
func (m *meter) count(at time.Duration) {
	passed := at - m.last
	m.last = at
	switch n := len(m.open); {
	case n == 0:
		m.budget.Idle += passed
	case n == 1:
		m.budget.Busy += passed
	default:
		m.budget.Busy += passed
		m.budget.Overlap += passed
	}
}

// OnEntry implements [course.Sink].
func (m *meter) OnEntry(e *eventlog.Entry) error {
	m.current = nil
	switch e.Kind {
	case eventlog.KindSignal:
		sig, err := session.SignalOf(e)
		if err != nil {
			return nil //nolint:nilerr // a signal that does not decode makes nothing
		}
		t := m.types[sig.Type]
		if t == nil {
			t = &typeMeter{TypeTimes: TypeTimes{Type: sig.Type}}
			m.types[sig.Type] = t
		}
		t.Signals++
		m.current = &signalMeter{of: t, at: e.At}
	case eventlog.KindBeat, eventlog.KindDefine:
		m.beat(e)
	default:
	}
	return nil
}

// OnPerformance implements [choreography.PerformanceSink].
func (m *meter) OnPerformance(p choreography.Performance) {
	m.count(p.Began)
	if gap := p.Began - m.free; len(m.open) == 0 && m.began && gap > 0 {
		m.gaps = append(m.gaps, gap)
	}
	name := p.Name()
	if name == "" {
		name = "on " + p.On
	}
	if p.Handler {
		name += " (onInterrupt)"
	}
	of := m.names[name]
	if of == nil {
		of = &nameMeter{PerformanceTimes: PerformanceTimes{Name: name}}
		m.names[name] = of
	}
	of.Made++
	perf := &performance{of: of, began: p.Began, overlap: m.budget.Overlap}
	if !p.Handler && m.current != nil {
		perf.signal = m.current
		m.current.of.Performances++
	}
	m.open[p.ID()] = perf
	m.budget.Most = max(m.budget.Most, len(m.open))
	m.began = true
}

// command notes the first command of a performance.
func (m *meter) command(id string, at time.Duration) {
	p := m.open[id]
	if p == nil || p.answered {
		return
	}
	p.answered = true
	p.of.latencies = append(p.of.latencies, at-p.began)
	if s := p.signal; s != nil && !s.answered {
		s.answered = true
		s.of.latencies = append(s.of.latencies, at-s.at)
	}
}

// OnActionStart implements [choreography.CommandSink].
func (m *meter) OnActionStart(c choreography.ActionStart) { m.command(c.PerformanceID, c.At) }

// OnActionUpdate implements [choreography.CommandSink].
func (m *meter) OnActionUpdate(choreography.ActionUpdate) {}

// OnActionComplete implements [choreography.CommandSink].
func (m *meter) OnActionComplete(choreography.ActionComplete) {}

// OnActionExecute implements [choreography.CommandSink].
func (m *meter) OnActionExecute(c choreography.ActionExecute) { m.command(c.PerformanceID, c.At) }

// OnInterrupt implements [choreography.CommandSink].
func (m *meter) OnInterrupt(c choreography.Interrupt) {
	if p := m.open[c.PerformanceID]; p != nil {
		p.interrupted = true
	}
}

// OnPerformanceEnd implements [choreography.PerformanceSink].
func (m *meter) OnPerformanceEnd(at time.Duration, id string) {
	m.count(at)
	p := m.open[id]
	if p == nil {
		return
	}
	delete(m.open, id)
	m.free = at
	p.of.lengths = append(p.of.lengths, at-p.began)
	m.leave(p, at)
	if p.interrupted {
		p.of.Interrupted++
		if p.signal != nil {
			p.signal.of.Interrupted++
		}
	}
}

// leave adds the time of a performance to that of its name.
func (m *meter) leave(p *performance, at time.Duration) {
	p.of.Total += at - p.began
	p.of.Overlap += m.budget.Overlap - p.overlap
}

// beat applies an event of the director.
func (m *meter) beat(e *eventlog.Entry) {
	r, ok := session.DirectorRecordOf(e)
	if !ok || m.director.Apply(r.Word, r.Value) != nil || m.director.Episode() == nil {
		return
	}
	all := m.director.Episode().Beats
	switch r.Word {
	case episode.GuidanceIssued:
		if i, ok := m.director.Directed(); ok {
			b := m.beatOf(all[i].ID)
			if b.Directed++; b.Directed == 1 {
				b.directed = e.At
			}
		}
	case episode.BeatLanded, episode.AttemptDropped:
		for i := range all {
			landed := m.director.BeatAt(i).Assurance != ""
			known := m.beats[all[i].ID]
			switch {
			case landed && (known == nil || known.Landed == 0):
				b := m.beatOf(all[i].ID)
				b.Landed, b.landed = 1, e.At
			case !landed && known != nil && known.Landed > 0:
				known.Landed = 0
				known.Dropped++
			}
		}
	}
}

func (m *meter) beatOf(id string) *beatMeter {
	b := m.beats[id]
	if b == nil {
		b = &beatMeter{BeatTimes: BeatTimes{Beat: id}}
		m.beats[id] = b
		m.order = append(m.order, b)
	}
	return b
}

// end completes the measurement.
func (m *meter) end(at time.Duration) *Budget {
	m.count(at)
	for _, p := range m.open {
		p.of.Open++
		m.leave(p, at)
	}
	b := &m.budget
	b.Length = at
	b.Gaps = spreadOf(m.gaps)
	for _, name := range slices.Sorted(maps.Keys(m.types)) {
		t := m.types[name]
		t.Latency = spreadOf(t.latencies)
		t.Silent = t.Signals - t.Latency.Count
		b.Types = append(b.Types, t.TypeTimes)
	}
	for _, name := range slices.Sorted(maps.Keys(m.names)) {
		n := m.names[name]
		n.Latency, n.Length = spreadOf(n.latencies), spreadOf(n.lengths)
		b.Performances = append(b.Performances, n.PerformanceTimes)
	}
	for _, beat := range m.order {
		if beat.Landed > 0 && beat.Directed > 0 {
			beat.Latency = spreadOf([]time.Duration{beat.landed - beat.directed})
		}
		b.Beats = append(b.Beats, beat.BeatTimes)
	}
	return b
}
