package timing_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/enginetest"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/timing"
	"github.com/sajou-dev/sajou-go/session"
)

// run is one performance of the model.
type run struct {
	name, typ    string
	handler      bool
	began, ended time.Duration // ended is -1 for an open one
	first        time.Duration // its first command; -1 for none
	interrupted  bool
}

// runs finds the performances of a session without the package under test: their lives
// from the state at every moment, the rest from the commands.
func runs(t *testing.T, r *replay.Replay) (all map[string]*run, end time.Duration, types map[string]int) {
	t.Helper()
	all, types = map[string]*run{}, map[string]int{}
	entries := map[uint64]eventlog.Entry{}
	for e, err := range r.Entries(t.Context(), 1) {
		require.NoError(t, err)
		entries[uint64(e.Seq)] = e
		if sig, err := session.SignalOf(&e); err == nil {
			types[sig.Type]++
		}
	}
	typeOf := func(seq uint64) string {
		e := entries[seq]
		sig, err := session.SignalOf(&e)
		require.NoError(t, err)
		return sig.Type
	}
	alive := map[string]bool{}
	over := replay.MomentRange{To: replay.Moment{Seq: r.Head().Seq}, Rest: true}
	for s, err := range r.Moments(t.Context(), over, replay.NeedsState) {
		require.NoError(t, err)
		now := map[string]bool{}
		for p := range session.PerformancesOf(s.Fold).Scheduler().Performances() {
			now[p.ID()] = true
			if all[p.ID()] == nil {
				all[p.ID()] = &run{name: nameOf(p), typ: typeOf(p.Seq), handler: p.Handler, began: p.Began, ended: -1, first: -1}
			}
		}
		for id := range alive {
			if !now[id] {
				all[id].ended = s.Fold.At()
			}
		}
		alive, end = now, s.Fold.At()
	}
	var commands choreography.RecordingSink
	require.NoError(t, r.Commands(t.Context(), replay.Moment{}, replay.Moment{Seq: r.Head().Seq, Offset: time.Minute}, 0, &commands))
	for _, c := range commands.Commands {
		p := all[c.PerformanceID]
		if p == nil { // it took no time, so no state has it
			var seq uint64
			_, err := fmt.Sscanf(c.PerformanceID, "p-%d-", &seq)
			require.NoError(t, err)
			p = &run{name: "stop", typ: typeOf(seq), began: c.At, ended: c.At, first: -1}
			all[c.PerformanceID] = p
		}
		switch {
		case c.Kind == choreography.CommandInterrupt:
			p.interrupted = true
		case p.first < 0 && (c.Kind == choreography.CommandStart || c.Kind == choreography.CommandExecute):
			p.first = c.At
		}
	}
	return all, end, types
}

func nameOf(p choreography.Performance) string {
	name := p.Name()
	if name == "" {
		name = "on " + p.On
	}
	if p.Handler {
		name += " (onInterrupt)"
	}
	return name
}

// spread computes a spread by counting: the least time that enough of the times do not
// exceed.
func spread(times []time.Duration) timing.Spread {
	if len(times) == 0 {
		return timing.Spread{}
	}
	at := func(percent int) time.Duration {
		best := time.Duration(-1)
		for _, candidate := range times {
			n := 0
			for _, x := range times {
				if x <= candidate {
					n++
				}
			}
			if n*100 >= percent*len(times) && (best < 0 || candidate < best) {
				best = candidate
			}
		}
		return best
	}
	return timing.Spread{Count: len(times), P50: at(50), P99: at(99), Max: slices.Max(times)}
}

// TestBudget compares measurements with those of a model that looks at every span
// between two instants for itself.
func TestBudget(t *testing.T) {
	for seed := range uint64(6) {
		_, r := enginetest.Recorded(t, enginetest.BustleSignals(seed, 50), enginetest.Bustle)
		b, err := timing.Measure(t.Context(), r)
		require.NoError(t, err)
		all, end, types := runs(t, r)
		assert.Equal(t, end, b.Length, "seed %d", seed)
		instants := []time.Duration{0, end}
		for _, p := range all {
			instants = append(instants, p.began, max(p.ended, 0))
		}
		slices.Sort(instants)
		instants = slices.Compact(instants)
		under := func(from time.Duration, except *run) (n int) {
			for _, p := range all {
				if p != except && p.began <= from && (p.ended < 0 || p.ended > from) {
					n++
				}
			}
			return n
		}
		var busy, idle, overlap time.Duration
		beside := map[*run]time.Duration{}
		for i, from := range instants[:len(instants)-1] {
			length := instants[i+1] - from
			switch n := under(from, nil); {
			case n == 0:
				idle += length
			default:
				busy += length
				if n > 1 {
					overlap += length
				}
			}
			for _, p := range all {
				if p.began <= from && (p.ended < 0 || p.ended > from) && under(from, p) > 0 {
					beside[p] += length
				}
			}
		}
		assert.Equal(t, []time.Duration{busy, idle, overlap}, []time.Duration{b.Busy, b.Idle, b.Overlap}, "seed %d", seed)
		for _, got := range b.Performances {
			want := timing.PerformanceTimes{Name: got.Name}
			var latencies, lengths []time.Duration
			for _, p := range all {
				if p.name != got.Name {
					continue
				}
				want.Made++
				ended := p.ended
				if p.ended < 0 {
					want.Open++
					ended = end
				} else {
					lengths = append(lengths, p.ended-p.began)
				}
				if p.interrupted {
					want.Interrupted++
				}
				if p.first >= 0 {
					latencies = append(latencies, p.first-p.began)
				}
				want.Total += ended - p.began
				want.Overlap += beside[p]
			}
			want.Latency, want.Length = spread(latencies), spread(lengths)
			assert.Equal(t, want, got, "seed %d", seed)
		}
		for _, got := range b.Types {
			want := timing.TypeTimes{Type: got.Type, Signals: types[got.Type]}
			least := map[string]time.Duration{} // by signal
			for id, p := range all {
				if p.typ != got.Type || p.handler {
					continue
				}
				want.Performances++
				if p.interrupted {
					want.Interrupted++
				}
				signal := id[:strings.LastIndex(id, "-")]
				if old, known := least[signal]; p.first >= 0 && (!known || p.first-p.began < old) {
					least[signal] = p.first - p.began
				}
			}
			var latencies []time.Duration
			for _, l := range least {
				latencies = append(latencies, l)
			}
			want.Latency = spread(latencies)
			want.Silent = want.Signals - len(latencies)
			assert.Equal(t, want, got, "seed %d", seed)
		}
		assert.Len(t, b.Types, len(types))
	}
}

// TestGaps: the times between busy ones are gaps; those before and after are not.
func TestGaps(t *testing.T) {
	_, r := enginetest.Recorded(t, []string{
		`{"id":"0","type":"note","timestamp":1000,"source":"s","payload":{}}`,
		`{"id":"1","type":"walk","timestamp":1500,"source":"s","payload":{}}`,
		`{"id":"2","type":"walk","timestamp":1550,"source":"s","payload":{}}`,
		`{"id":"3","type":"walk","timestamp":2000,"source":"s","payload":{}}`,
		`{"id":"4","type":"note","timestamp":9000,"source":"s","payload":{}}`,
	}, `{"id":"walk","on":"walk","steps":[{"action":"move","entity":"a","duration":100}]}`)
	b, err := timing.Measure(t.Context(), r)
	require.NoError(t, err)
	const ms = time.Millisecond
	assert.Equal(t, timing.Spread{Count: 1, P50: 350 * ms, P99: 350 * ms, Max: 350 * ms}, b.Gaps)
	assert.Equal(t, 8000*ms, b.Length)
	assert.Equal(t, []time.Duration{250 * ms, 7750 * ms, 50 * ms}, []time.Duration{b.Busy, b.Idle, b.Overlap})
	assert.Equal(t, 2, b.Most)
}

// TestBeats: a beat takes the time from the guidance that first directed it to its
// landing, as the events of the director have them.
func TestBeats(t *testing.T) {
	eng := enginetest.Memory(t, sajou.Config{})
	ses := enginetest.PlayDinner(t, eng, enginetest.InTurn(enginetest.DinnerAnswers))
	r := enginetest.Replay(t, eng, "dinner")
	b, err := timing.Measure(t.Context(), r)
	require.NoError(t, err)
	directed, landed := map[string]int{}, map[string]bool{}
	for e, err := range session.DirectorEvents(t.Context(), r.Entries(t.Context(), 1), ses.Head().Seq) {
		require.NoError(t, err)
		if e.State.Episode() == nil {
			continue
		}
		for i, beat := range e.State.Episode().Beats {
			if d, ok := e.State.Directed(); ok && d == i && e.Word == episode.GuidanceIssued {
				directed[beat.ID]++
			}
			landed[beat.ID] = e.State.BeatAt(i).Assurance != ""
		}
	}
	require.NotEmpty(t, b.Beats)
	for _, beat := range b.Beats {
		assert.Equal(t, directed[beat.Beat], beat.Directed, beat.Beat)
		assert.Equal(t, landed[beat.Beat], beat.Landed == 1, beat.Beat)
		assert.Equal(t, beat.Landed == 1 && beat.Directed > 0, beat.Latency.Count == 1, beat.Beat)
	}
}
