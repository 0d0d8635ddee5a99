package answer

import (
	"context"
	"errors"
	"time"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/eventlog/verify"
	"github.com/sajou-dev/sajou-go/internal/errtext"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/session/summary"
	"github.com/sajou-dev/sajou-go/signal"
)

// ListedView is a session in the list of a store.
type ListedView struct {
	Session string           `json:"session"`
	Entries uint64           `json:"entries"`
	At      float64          `json:"at"` // the session time that the entries span
	Bytes   uint64           `json:"bytes"`
	Head    session.HeadView `json:"head"`
	Format  string           `json:"format,omitempty"` // of the recording that was imported
	Origin  string           `json:"origin,omitempty"` // the name of the session there
	Fork    *ForkView        `json:"fork,omitempty"`
}

// ViewListed returns the view of a session that takes a number of bytes in the tables of its
// store. It reads the beginning of the log.
func ViewListed(ctx context.Context, log *eventlog.SessionReader, bytes uint64) (ListedView, *session.Fork, error) {
	head := log.Head()
	v := ListedView{Session: log.Name(), Entries: uint64(head.Seq), At: projection.Millis(log.At()), Bytes: bytes, Head: session.ViewHead(head)}
	origin, err := originOf(ctx, log)
	if err != nil {
		return v, nil, err
	}
	v.Format, v.Origin = origin.Format, origin.Session
	fork, err := session.ReadFork(ctx, log)
	if err != nil && !errors.Is(err, eventlog.ErrCorrupt) {
		return v, nil, err
	}
	v.Fork = ViewFork(fork, head)
	return v, fork, nil
}

// DamagedView is a session or a part of a store that cannot be read.
type DamagedView struct {
	Damaged bool                  `json:"damaged"`
	Detail  string                `json:"detail,omitempty"`
	Kind    verify.StoreFaultKind `json:"kind,omitempty"`
	Session string                `json:"session"`
}

// ViewDamaged returns the view of damage of the store.
func ViewDamaged(f *verify.StoreFault) DamagedView {
	return DamagedView{true, errtext.OneLine(f.Detail), f.Kind, f.Session}
}

// TombstoneView is a deleted session.
type TombstoneView struct {
	Session string           `json:"session"`
	Deleted time.Time        `json:"deleted"`
	Entries uint64           `json:"entries"`
	Head    session.HeadView `json:"head"`
}

// ViewTombstone returns the view of a deleted session.
func ViewTombstone(t *eventlog.Tombstone) TombstoneView {
	return TombstoneView{t.Session, t.At, uint64(t.Head.Seq), session.ViewHead(t.Head)}
}

// originWithin is the number of entries in which the first signal of a session is looked
// for. Before it are the definitions of its import.
const originWithin = 4096

// originOf returns the origin of a session that was imported from the recording of
// another tool, which its first signal has. It is empty for other sessions.
func originOf(ctx context.Context, log *eventlog.SessionReader) (summary.RecordedOrigin, error) {
	for e, err := range log.Entries(ctx, 1) {
		if errors.Is(err, eventlog.ErrCorrupt) {
			break // verify tells; the list goes on
		}
		if err != nil {
			return summary.RecordedOrigin{}, err
		}
		if e.Kind != eventlog.KindSignal && e.Seq < originWithin {
			continue
		}
		counter := summary.NewCounter()
		if sig, err := signal.Decode(e.Data); err == nil && e.Kind == eventlog.KindSignal {
			counter.Add(e.At, &sig)
		}
		if origin := counter.Summary().Origin; origin != nil {
			return *origin, nil
		}
		break
	}
	return summary.RecordedOrigin{}, nil
}
