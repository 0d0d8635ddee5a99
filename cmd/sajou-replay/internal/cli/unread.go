package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/replay"
)

// Unread lists the entries that a command could not see, because the recording is damaged.
type Unread struct {
	List  [][2]eventlog.Seq // first and last of each gap
	cause error             // of the first gap
}

// maxUnread bounds the gaps of one command.
const maxUnread = 1000

// Behind takes the error of a walk that began with an entry. If an entry cannot be read,
// it notes the gap and returns the entry from which the walk can go on, or 0 if there is
// none up to the last one. Other errors are returned.
func (u *Unread) Behind(ctx context.Context, t *OpenedSession, from, to eventlog.Seq, needs replay.Needs, err error) (eventlog.Seq, error) {
	broken, ok := errors.AsType[*eventlog.EntryError](err)
	if !ok || !errors.Is(err, eventlog.ErrCorrupt) || len(u.List) == maxUnread || broken.Seq > to {
		return 0, err
	}
	if u.cause == nil {
		u.cause = err
	}
	next := to + 1
	if broken.Seq < from {
		// The state in front of the search cannot be folded.
		u.List = append(u.List, [2]eventlog.Seq{from, to})
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
	u.List = append(u.List, [2]eventlog.Seq{broken.Seq, next - 1})
	if next > to {
		return 0, nil
	}
	return next, nil
}

// BehindGap explains the error about a state that cannot be computed because entries in
// front of its moment cannot be read: it names them and the moments whose states can. Other
// errors are returned as they are. If images is false, no image has the state, and none
// behind the gap can.
func (t *OpenedSession) BehindGap(ctx context.Context, m replay.Moment, images bool, err error) error {
	broken, ok := errors.AsType[*eventlog.EntryError](err)
	if !ok || !errors.Is(err, eventlog.ErrCorrupt) {
		return err
	}
	var gaps Unread
	next, other := gaps.Behind(ctx, t, broken.Seq, t.Log.Head().Seq, replay.NeedsState, err)
	if other != nil {
		return err
	}
	var known []string
	if broken.Seq > 1 {
		known = append(known, fmt.Sprintf("up to %d", broken.Seq-1))
	}
	if images && next > 0 {
		known = append(known, fmt.Sprintf("from %d on, where a snapshot has it", next-1))
	}
	remedy := "no state is known"
	if len(known) > 0 {
		remedy = "it is known " + strings.Join(known, ", and ")
	}
	return Fail(ExitLoss, "the recording is damaged, so the state at %v is not known; %s: %w", m, remedy, err)
}

// Failure returns the error with which the command ends: its answer covers only a part of the
// recording. It is nil if nothing was unread.
func (u *Unread) Failure(done string) error {
	if len(u.List) == 0 {
		return nil
	}
	const most = 8
	var parts []string
	for _, gap := range u.List[:min(len(u.List), most)] {
		parts = append(parts, fmt.Sprintf("%d..%d", gap[0], gap[1]))
	}
	if n := len(u.List) - most; n > 0 {
		parts = append(parts, fmt.Sprintf("%d more parts", n))
	}
	return Fail(ExitLoss, "the recording is damaged; the entries %s were not %s: %w", strings.Join(parts, ", "), done, u.cause)
}
