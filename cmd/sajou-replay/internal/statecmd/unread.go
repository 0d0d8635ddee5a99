package statecmd

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/replay"
)

// unread lists the entries that a search could not see, because the recording is damaged.
type unread struct {
	list  [][2]eventlog.Seq // first and last of each gap
	cause error             // of the first gap
}

// maxUnread bounds the gaps of one search.
const maxUnread = 1000

// behind takes the error of a search that began with an entry. If an entry cannot be read,
// it notes the gap and returns the entry from which the search can go on, or 0 if there is
// none up to the last one. Other errors are returned.
func (u *unread) behind(ctx context.Context, t *cli.OpenedSession, from, to eventlog.Seq, needs replay.Needs, err error) (eventlog.Seq, error) {
	broken, ok := errors.AsType[*eventlog.EntryError](err)
	if !ok || !errors.Is(err, eventlog.ErrCorrupt) || len(u.list) == maxUnread || broken.Seq > to {
		return 0, err
	}
	if u.cause == nil {
		u.cause = err
	}
	next := to + 1
	if broken.Seq < from {
		// The state in front of the search cannot be folded.
		u.list = append(u.list, [2]eventlog.Seq{from, to})
		return 0, nil
	}
	readable, found, err := t.Log.Readable(ctx, broken.Seq+1)
	if ctx.Err() != nil {
		return 0, err
	}
	if err == nil && found {
		if on, ok := t.Travel.Resume(ctx, readable, needs); ok {
			next = min(on, next)
		}
	}
	u.list = append(u.list, [2]eventlog.Seq{broken.Seq, next - 1})
	if next > to {
		return 0, nil
	}
	return next, nil
}

// failure returns the error with which the search ends: its answer covers only a part of the
// recording. It is nil if nothing was unread.
func (u *unread) failure(done string) error {
	if len(u.list) == 0 {
		return nil
	}
	const most = 8
	var parts []string
	for _, gap := range u.list[:min(len(u.list), most)] {
		parts = append(parts, fmt.Sprintf("%d..%d", gap[0], gap[1]))
	}
	if n := len(u.list) - most; n > 0 {
		parts = append(parts, fmt.Sprintf("%d more parts", n))
	}
	return cli.Fail(cli.ExitLoss, "the recording is damaged; the entries %s were not %s: %w", strings.Join(parts, ", "), done, u.cause)
}
