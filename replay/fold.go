package replay

import (
	"context"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
)

// Fold returns the fold right after entry seq, which belongs to the caller.
// Unlike [Replay.At] it does not complete the entry's instant: it is what a
// writer that goes on from there has. Seq 0 is the fold before the first
// entry.
func (r *Replay) Fold(ctx context.Context, seq eventlog.Seq) (*projection.Fold, error) {
	if err := r.checkSeq(Moment{Seq: seq}); err != nil {
		return nil, err
	}
	return r.foldTo(ctx, seq, nil, nil)
}
