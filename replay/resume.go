package replay

import (
	"context"
	"sort"

	"github.com/sajou-dev/sajou-go/eventlog"
)

// Resume returns the first entry from which a search can go on behind entries that cannot be
// read, where from is the first one behind them that can: from itself for a search over
// entries alone, otherwise the entry behind the first saved image. It returns false if
// there is none: without an image, no state is known behind a gap.
func (r *Replay) Resume(ctx context.Context, from eventlog.Seq, needs Needs) (eventlog.Seq, bool) {
	head := r.src.Head().Seq
	if needs == NeedsEntry {
		return from, from <= head
	}
	if r.snaps == nil || from > head {
		return 0, false
	}
	// The images up to a limit grow with the limit, so the first one is found by halving.
	last := eventlog.Seq(0)
	at := sort.Search(int(head-from)+1, func(i int) bool {
		img, ok, err := r.snaps.Nearest(ctx, from+eventlog.Seq(i))
		found := err == nil && ok && img.Head.Seq >= from
		if found {
			last = img.Head.Seq
		}
		return found
	})
	if at > int(head-from) || last >= head {
		return 0, false
	}
	return from + eventlog.Seq(at) + 1, true
}
