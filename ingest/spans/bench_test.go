package spans_test

import (
	"fmt"
	"io"
	"io/fs"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/ingest/flatspans"
	"github.com/sajou-dev/sajou-go/ingest/recording"
)

// reversed is a file of n spans, one a line, of which each begins before the one above it. It makes
// the lines as they are read.
type reversed struct {
	n, at int
	rest  []byte
}

func (r *reversed) Open(string) (fs.File, error) { return &reversed{n: r.n}, nil }
func (r *reversed) Stat() (fs.FileInfo, error)   { return nil, fs.ErrInvalid }
func (r *reversed) Close() error                 { return nil }

func (r *reversed) Read(b []byte) (int, error) {
	if len(r.rest) == 0 {
		if r.at == r.n {
			return 0, io.EOF
		}
		i := r.n - r.at - 1 // the last span stands first
		r.at++
		operation := ""
		if i%100 == 0 {
			operation = `"gen_ai.operation.name":"execute_tool",`
		}
		start := 1_767_225_600_000_000_000 + int64(i)*1_000_000
		r.rest = fmt.Appendf(nil, `{"trace_id":"%032x","span_id":"%016x","parent_span_id":"%016x","name":"GET /","start_time":%d,"end_time":%d,"attributes":{%s"http.method":"GET","http.url":"https://example.com/%d"}}`+"\n",
			i/1000, i+1, max(i/1000*1000, i-1)+1, start, start+500_000, operation, i)
	}
	n := copy(b, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// read reads n spans in reverse order and returns the number of signals and the memory in use while the
// first signal is emitted, when all spans are held.
func readReversed(t require.TestingT, n int) (signals int, held uint64) {
	r := flatspans.Format().Open(&reversed{n: n}, "f", recording.Options{})
	last := -1.0
	for item, err := range r.Items() {
		require.NoError(t, err)
		if signals++; signals == 1 {
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			held = m.HeapAlloc
		}
		at, _ := item.Signal.Timestamp.Value().Float64()
		require.GreaterOrEqual(t, at, last)
		last = at
	}
	return signals, held
}

// Spans in reverse order take some hundred bytes each.
func TestReversed(t *testing.T) {
	const n = 20_000
	signals, held := readReversed(t, n)
	require.Greater(t, signals, n/100*2)
	require.Less(t, held, uint64(n*700+(16<<20)))
}

func BenchmarkReversed(b *testing.B) {
	const n = 1_000_000
	for b.Loop() {
		start := time.Now()
		_, held := readReversed(b, n)
		b.ReportMetric(float64(held)/n, "B/span")
		b.ReportMetric(n/time.Since(start).Seconds(), "spans/s")
	}
}
