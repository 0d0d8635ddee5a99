package otel_test

import (
	"context"
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/adapter/otel"
	"github.com/sajou-dev/sajou-go/signal"
)

// The program brings the SDK: here one with a reader in place of an exporter.
func Example() {
	if err := measure(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// sajou.log.entries: 2
}

func measure(ctx context.Context) error {
	reader := sdkmetric.NewManualReader()
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	telemetry, err := otel.New(otel.Config{MeterProvider: provider}) // spans go to the global provider
	if err != nil {
		return err
	}
	eng, err := sajou.Open("store", sajou.Config{FS: vfs.NewMem(), Metrics: telemetry.Metrics()})
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
	var collected metricdata.ResourceMetrics
	if err := reader.Collect(ctx, &collected); err != nil {
		return err
	}
	for _, scope := range collected.ScopeMetrics {
		for _, m := range scope.Metrics {
			if sum, ok := m.Data.(metricdata.Sum[int64]); ok && m.Name == "sajou.log.entries" {
				fmt.Printf("%s: %d\n", m.Name, sum.DataPoints[0].Value)
			}
		}
	}
	return nil
}
