package prometheus_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
	prom "github.com/prometheus/client_golang/prometheus"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/adapter/prometheus"
	"github.com/sajou-dev/sajou-go/signal"
)

// An engine reports to a collector, which a program registers like any other. A service
// hands the registry to promhttp.HandlerFor.
func Example() {
	if err := measure(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// sajou_log_entries_total 2
	// sajou_log_failed 0
}

func measure(ctx context.Context) error {
	registry, collector := prom.NewRegistry(), prometheus.New(prometheus.Config{})
	if err := registry.Register(collector); err != nil {
		return err
	}
	eng, err := sajou.Open("store", sajou.Config{FS: vfs.NewMem(), Metrics: collector.Metrics()})
	if err != nil {
		return err
	}
	defer eng.Close()
	ses, err := eng.Session(ctx, "a")
	if err != nil {
		return err
	}
	sig, err := signal.Parse([]byte(`{"id":"1","type":"thinking","timestamp":1700000000000,"source":"example","payload":{"agentId":"ada","content":"Hm."}}`))
	if err != nil {
		return err
	}
	if _, err := ses.Signal(ctx, sig); err != nil { // a new session has one more entry, its first
		return err
	}
	families, err := registry.Gather()
	if err != nil {
		return err
	}
	for _, family := range families {
		if name := family.GetName(); strings.HasPrefix(name, "sajou_log_entries") || name == "sajou_log_failed" {
			m := family.GetMetric()[0]
			fmt.Println(name, m.GetCounter().GetValue()+m.GetGauge().GetValue())
		}
	}
	return nil
}
