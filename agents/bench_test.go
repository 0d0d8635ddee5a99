package agents_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/view"
	"github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/signal"
)

// spread returns a world of n entities on a square, as many to an area of one
// size however many they are: about 12 are within 10 of each.
func spread(b *testing.B, n int) *world.World {
	b.Helper()
	side := 1
	for side*side < n {
		side++
	}
	entities, places := map[string]any{}, map[string]any{}
	for i := range n {
		id := fmt.Sprintf("e%05d", i)
		entities[id] = map[string]any{"type": "agent", "hp": i % 7, "name": id, "team": []string{"red", "blue"}[i%2]}
		places[id] = []float64{float64(i%side) * 5, float64(i/side) * 5}
	}
	w, err := world.ParseWorld(value(b, map[string]any{"entities": entities, "spatial_index": places}))
	require.NoError(b, err)
	return w
}

var sizes = []int{10, 100, 1000, 10_000}

// BenchmarkWithin compares the index with a scan of everything.
func BenchmarkWithin(b *testing.B) {
	for _, n := range sizes {
		w := spread(b, n)
		middle, _ := w.Position(fmt.Sprintf("e%05d", n/2))
		b.Run(fmt.Sprintf("index/%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				w.Within(middle, 10)
			}
		})
		b.Run(fmt.Sprintf("scan/%d", n), func(b *testing.B) {
			b.ReportAllocs()
			points := make([]world.Position, 0, n)
			for id := range w.Entities() {
				at, _ := w.Position(id)
				points = append(points, at)
			}
			for b.Loop() {
				found := 0
				for _, at := range points {
					if middle.Distance(at) <= 10 {
						found++
					}
				}
				if found == 0 {
					b.Fatal("nothing is near")
				}
			}
		})
	}
}

// BenchmarkEffect applies one effect, finds its audience and computes the delta of
// each observer, in worlds in which every entity is an observer that sees up to 10
// away. Speaking changes one entity for those near
// it; moving changes what the mover sees as well.
func BenchmarkEffect(b *testing.B) {
	for _, n := range sizes {
		for _, kind := range []string{"Speak", "Move"} {
			b.Run(fmt.Sprintf("%s/%d", kind, n), func(b *testing.B) {
				w := spread(b, n)
				lens, err := view.CompilePolicy(value(b, map[string]any{"distance_limit": 10}), nil)
				require.NoError(b, err)
				audience, observers := view.NewAudience(), map[string]*view.Observer{}
				for id := range w.Entities() {
					o := view.NewObserver(id, lens, 0)
					o.Begin(w.ReadOnly, 0)
					observers[id] = o
					audience.Add(w.ReadOnly, id, lens)
				}
				source := fmt.Sprintf("e%05d", n/2)
				at, _ := w.Position(source)
				payloads := [2]signal.Value{}
				for i := range payloads {
					payloads[i] = value(b, map[string]any{"text": "hello", "to": []float64{at.X + float64(i), at.Y}})
				}
				seq, deltas := uint64(0), 0
				b.ReportAllocs()
				for b.Loop() {
					seq++
					e := world.Effect{UUID: "u", Kind: kind, Payload: payloads[seq%2], GlobalSeq: seq, SimTime: float64(seq), SourceID: source}
					c, err := w.Apply(e)
					if err != nil {
						b.Fatal(err)
					}
					for _, id := range audience.Follow(w.ReadOnly, e, c) {
						if _, ok := observers[id].Update(w.ReadOnly, e, c); ok {
							deltas++
						}
					}
				}
				b.ReportMetric(float64(deltas)/float64(seq), "deltas/op")
			})
		}
	}
}

// BenchmarkWideView computes a delta for an agent that sees everything, and so the
// digest of the whole view: another agent speaks, or the agent itself moves.
func BenchmarkWideView(b *testing.B) {
	for _, n := range sizes {
		for _, kind := range []string{"Speak", "Move"} {
			b.Run(fmt.Sprintf("%s/%d", kind, n), func(b *testing.B) {
				w := spread(b, n)
				o := view.NewObserver("e00005", view.NewCompiledPolicy(nil, view.Options{}), 0)
				o.Begin(w.ReadOnly, 0)
				payload := value(b, map[string]any{"text": "hello", "to": []int{1, 2}})
				seq := uint64(0)
				b.ReportAllocs()
				for b.Loop() {
					seq++
					e := world.Effect{Kind: kind, Payload: payload, GlobalSeq: seq, SimTime: float64(seq), SourceID: "e00005"}
					c, err := w.Apply(e)
					if err != nil {
						b.Fatal(err)
					}
					if _, ok := o.Update(w.ReadOnly, e, c); !ok {
						b.Fatal("no delta")
					}
				}
			})
		}
	}
}

// crowd is a core with agents in groups of ten who see each other.
func crowd(b *testing.B, n int, config string) *run {
	b.Helper()
	r := newRun(b)
	r.must(r.core.Configure(parse(b, `{"cooldowns":"off","quota_intents_per_minute":-1,"quota_tokens_per_minute":-1,"staleness_threshold":1000000000`+config+`}`)))
	for i := range n {
		id := fmt.Sprint("a", i)
		r.draft(agents.EffectDraft{Kind: "EntityCreated", Payload: parse(b, fmt.Sprintf(`{"entity_id":%q,"position":[%d,%d]}`, id, i/10*100, i%10))})
		r.must(r.core.Register(agents.Registration{AgentID: id, Policy: parse(b, `{"distance_limit":20}`)}))
	}
	return r
}

// BenchmarkCore decides and folds one intent in worlds of more and more agents,
// of which ten are near. The cost depends on those ten.
func BenchmarkCore(b *testing.B) {
	for _, n := range sizes {
		for _, kind := range []string{"Speak", "Move"} {
			b.Run(fmt.Sprintf("%s/%d", kind, n), func(b *testing.B) {
				r := crowd(b, n, "")
				payloads := [2]signal.Value{}
				for i := range payloads {
					payloads[i] = value(b, map[string]any{"text": "hi", "to": []float64{float64(i), 3}})
				}
				i := 0
				b.ReportAllocs()
				for b.Loop() {
					i++
					o, records := r.core.Submit(r.now, agents.Intent{Kind: kind, Payload: payloads[i%2], ReqID: fmt.Sprint(i), AgentID: "a3"})
					if !o.OK() {
						b.Fatal(o.Err())
					}
					for _, record := range records {
						r.core.Apply(r.now, record)
					}
				}
			})
		}
	}
}

// BenchmarkQuantum decides a quantum of ten Moves, of which one conflicts with
// another, in larger and larger worlds. The cost does not depend on their size.
func BenchmarkQuantum(b *testing.B) {
	for _, n := range []int{10, 1000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			r := crowd(b, n, `,"rules":{"min_separation":0.5}`)
			var subs []agents.Submission
			for i := range 10 {
				in := agents.Intent{
					Kind: "Move", Payload: value(b, map[string]any{"to": []float64{max(float64(i), 1), 50}}), ReqID: "r", AgentID: fmt.Sprint("a", i),
				}
				subs = append(subs, agents.Submission{Intent: &in})
			}
			for b.Loop() {
				if d := r.core.Decide(r.now, agents.Quantum{By: agents.CloseFlush}, subs); len(d.Records) != 11 { // nine effects, a refusal and the quantum
					b.Fatalf("%d records: %v", len(d.Records), d.Outcomes)
				}
			}
		})
	}
}

// village is a core with n agents, about ten of whom see each other, or all of
// them.
func village(b *testing.B, n int, all bool) *run {
	b.Helper()
	r := newRun(b)
	r.must(r.core.Configure(parse(b, `{"cooldowns":"off"}`)))
	r.must(r.core.Begin(spread(b, n).Value()))
	policy := parse(b, `{"distance_limit":9}`)
	if all {
		policy = parse(b, `{"policy":"everything"}`)
	}
	for i := range n {
		r.must(r.core.Register(agents.Registration{AgentID: fmt.Sprintf("e%05d", i), Policy: policy}))
	}
	return r
}

// BenchmarkState writes and reads the state of worlds in which all see each
// other, or some ten of thousands.
func BenchmarkState(b *testing.B) {
	for _, size := range []struct {
		n   int
		all bool
	}{{100, true}, {10_000, false}} {
		r := village(b, size.n, size.all)
		state := r.core.AppendState(nil)
		b.Run(fmt.Sprintf("append/%d", size.n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				state = r.core.AppendState(state[:0])
			}
			b.ReportMetric(float64(len(state)), "bytes")
		})
		b.Run(fmt.Sprintf("restore/%d", size.n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := agents.RestoreCore(state, options); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
