package replay

import (
	"context"
	"iter"

	"github.com/sajou-dev/sajou-go/eventlog"
)

// A search backwards reads stretches of Reach entries, which begin at ChunkStart.
const Reach = eventlog.Seq(reach)

var ChunkStart = chunkStart

// Split sets how the searches of r are divided.
func (r *Replay) Split(workers int, entries eventlog.Seq) { r.split = split{workers, entries} }

// InOrder calls work for the numbers below n and yields the results in their order.
func InOrder(ctx context.Context, workers, n int, work func(ctx context.Context, i int, emit func(int) bool) error) iter.Seq2[int, error] {
	return inOrder(ctx, workers, n, work)
}
