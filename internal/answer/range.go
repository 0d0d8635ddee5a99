package answer

import (
	"context"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/replay"
)

// EntryRange returns the first and the last Seq of a range; the empty text means every
// entry. A moment between two entries is rounded into the range.
func EntryRange(ctx context.Context, r *replay.Replay, text string) (from, to eventlog.Seq, err error) {
	if text == "" {
		return 1, r.Head().Seq, nil
	}
	parsed, err := replay.ParseRange(text)
	if err != nil {
		return 0, 0, err
	}
	first, last, err := r.ResolveRange(ctx, parsed)
	if err != nil {
		return 0, 0, err
	}
	from = first.Seq
	if first.Offset > 0 {
		from++
	}
	return max(from, 1), last.Seq, nil
}

// MomentRange returns the moments of a range; the empty text means all. Without an end it
// goes on behind the last entry.
func MomentRange(ctx context.Context, r *replay.Replay, text string) (replay.MomentRange, error) {
	over := replay.MomentRange{To: replay.Moment{Seq: r.Head().Seq}, Rest: true}
	if text == "" {
		return over, nil
	}
	parsed, err := replay.ParseRange(text)
	if err != nil {
		return over, err
	}
	over.Rest = parsed.To == nil
	over.From, over.To, err = r.ResolveRange(ctx, parsed)
	return over, err
}
