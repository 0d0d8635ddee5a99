package sajou_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/agents"
)

// BenchmarkSubmit has a hundred agents of ten neighbours each speak at once,
// with validation, deltas and durable append on the disk.
func BenchmarkSubmit(b *testing.B) {
	eng, err := sajou.Open(b.TempDir(), sajou.Config{})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = eng.Close() }()
	ses, err := eng.Session(b.Context(), "world")
	if err != nil {
		b.Fatal(err)
	}
	world := ses.Agents()
	const n = 100
	if err := world.Configure(b.Context(), value(b, `{"cooldowns":"off","quota_intents_per_minute":-1,"quota_tokens_per_minute":-1,"staleness_threshold":1000000000,"max_queue_depth":1000}`)); err != nil {
		b.Fatal(err)
	}
	var list []*sajou.Agent
	for i := range n {
		id := fmt.Sprint("a", i)
		if _, err := world.Broadcast(b.Context(), draft("EntityCreated", "world", fmt.Sprintf(`{"entity_id":%q,"entity_data":{"type":"agent"},"position":[%d,%d]}`, id, i/10*100, i%10))); err != nil {
			b.Fatal(err)
		}
		g, err := world.Register(b.Context(), id, value(b, `{"distance_limit":20}`))
		if err != nil {
			b.Fatal(err)
		}
		list = append(list, g)
	}
	var told atomic.Int64
	for _, g := range list {
		go func() {
			for range g.Observations(b.Context()) {
				told.Add(1)
			}
		}()
	}
	b.ResetTimer()
	var wg sync.WaitGroup
	var next atomic.Int64
	for _, g := range list {
		wg.Go(func() {
			for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
				if _, err := g.Submit(b.Context(), agents.Intent{Kind: "Speak", Payload: value(b, `{"text":"hello there"}`), ReqID: fmt.Sprint(i)}); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	b.ReportMetric(float64(told.Load())/float64(b.N), "observations/op")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "intents/s")
}
