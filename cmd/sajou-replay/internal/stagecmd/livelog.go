package stagecmd

import (
	"context"
	"errors"
	"iter"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

// followInterval is the time between two looks for new entries.
const followInterval = time.Second

// mostFollowed bounds the entries of a session that is followed.
const mostFollowed = 200_000

// liveLog is a session that another process records. Only one process at a time can have
// a store open, so it copies the entries into memory, and opens the store for each look.
type liveLog struct {
	app     *cli.App
	opened  *cli.OpenedSession // closed; its bookmarks are resolved
	entries []eventlog.Entry   // owned by look
	missed  atomic.Bool        // the last look was not taken
}

// followLog copies the entries of an open session, and closes its store.
func followLog(ctx context.Context, a *cli.App, t *cli.OpenedSession) (*liveLog, *replay.Replay, error) {
	l := &liveLog{app: a, opened: t}
	if err := l.read(ctx, t); err != nil {
		return nil, nil, errors.Join(err, t.Close())
	}
	return l, l.replay(), t.Close()
}

func (l *liveLog) read(ctx context.Context, t *cli.OpenedSession) error {
	for e, err := range t.Log.Entries(ctx, eventlog.Seq(len(l.entries)+1)) {
		if err != nil {
			return err
		}
		if len(l.entries) == mostFollowed {
			return cli.Fail(cli.ExitNo, "%s has more than %d entries, too many to follow in memory; omit --follow", t.Name, mostFollowed)
		}
		l.entries = append(l.entries, e)
	}
	return ctx.Err()
}

// look returns a replay of the session if it has grown, otherwise nil.
func (l *liveLog) look(ctx context.Context) (*replay.Replay, error) {
	again := l.missed.Swap(false)
	t, err := l.app.OpenSession(l.opened.Name)
	if e, ok := errors.AsType[*cli.ExitError](err); ok && e.Code == cli.ExitLocked && !strings.Contains(err.Error(), "permission") {
		l.missed.Store(again)
		return nil, nil // the other process has it open
	}
	if err != nil {
		return nil, err
	}
	before := len(l.entries)
	if err := errors.Join(l.read(ctx, t), t.Close()); err != nil {
		return nil, err
	}
	if len(l.entries) == before && !again {
		return nil, nil
	}
	return l.replay(), nil
}

// again makes the next look return the session even if it has not grown since.
func (l *liveLog) again() { l.missed.Store(true) }

// replay returns a replay of the entries so far.
func (l *liveLog) replay() *replay.Replay {
	src := copiedLog{l.opened.Name, l.opened.Log.Genesis(), l.entries[:len(l.entries):len(l.entries)]}
	travel := replay.Open(src, session.Projections(session.ProjectionConfig{}), nil)
	l.opened.Anchor(travel)
	return travel
}

// copiedLog is a session in memory.
type copiedLog struct {
	name    string
	genesis eventlog.Hash
	entries []eventlog.Entry
}

var (
	_ replay.Source            = copiedLog{}
	_ replay.CorrelationSource = copiedLog{}
)

// Name implements [replay.Source].
func (c copiedLog) Name() string { return c.name }

// Genesis implements [replay.Source].
func (c copiedLog) Genesis() eventlog.Hash { return c.genesis }

// Head implements [replay.Source].
func (c copiedLog) Head() eventlog.Head {
	if len(c.entries) == 0 {
		return eventlog.Head{Hash: c.genesis}
	}
	return c.entries[len(c.entries)-1].Head()
}

// Entries implements [replay.Source].
func (c copiedLog) Entries(ctx context.Context, from eventlog.Seq) iter.Seq2[eventlog.Entry, error] {
	return func(yield func(eventlog.Entry, error) bool) {
		for i := int(from) - 1; i < len(c.entries); i++ {
			if err := ctx.Err(); err != nil {
				yield(eventlog.Entry{}, err)
				return
			}
			if !yield(c.entries[i], nil) {
				return
			}
		}
	}
}

// Correlation implements [replay.CorrelationSource].
func (c copiedLog) Correlation(e *eventlog.Entry) (id string, ok bool) {
	if e.Kind != eventlog.KindSignal {
		return "", false
	}
	sig, err := signal.Decode(e.Data)
	if err != nil || sig.CorrelationID == nil {
		return "", false
	}
	return *sig.CorrelationID, true
}
