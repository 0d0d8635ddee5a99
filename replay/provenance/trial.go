package provenance

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

// Criterion judges the state at a moment of a changed session. An error ends the search.
type Criterion func(ctx context.Context, f *projection.Fold) (bool, error)

// maxTrialBytes bounds the data of the entries that a trial holds in memory.
const maxTrialBytes = 1 << 30

// trial holds the entries of a session up to a moment, to fold them again without some
// of the signals. Dropped entries keep their numbers and times, as those of package
// replay/variant do.
type trial struct {
	set     projection.Set
	genesis eventlog.Hash
	entries []eventlog.Entry
	at      time.Duration // session time of the moment
	runs    int           // folds so far
}

// droppedData is the data of an entry that was left out.
var droppedData = session.AppendWord(nil, session.WordDropped, signal.NewObject(0).Value())

func newTrial(ctx context.Context, r *replay.Replay, m replay.Moment) (*trial, error) {
	end, err := r.At(ctx, m)
	if err != nil {
		return nil, err
	}
	zero, err := r.Fold(ctx, 0)
	if err != nil {
		return nil, err
	}
	t := &trial{set: end.Set().Core(), genesis: zero.Head().Hash, at: end.At()}
	size := 0
	for e, err := range r.Entries(ctx, 1) {
		if err != nil {
			return nil, fmt.Errorf("provenance: read after entry %d: %w", len(t.entries), err)
		}
		if e.Seq > m.Seq {
			break
		}
		if size += len(e.Data); size > maxTrialBytes {
			return nil, fmt.Errorf("provenance: the entries up to %v have more than %d MiB; a smaller part of the session cannot be tried in memory", m, maxTrialBytes>>20)
		}
		t.entries = append(t.entries, e)
	}
	return t, ctx.Err()
}

// signals returns the numbers of all signals.
func (t *trial) signals() (list []eventlog.Seq) {
	for i := range t.entries {
		if t.entries[i].Kind == eventlog.KindSignal {
			list = append(list, t.entries[i].Seq)
		}
	}
	return list
}

// fold returns the state at the moment with only the kept signals. Other entries stay.
func (t *trial) fold(ctx context.Context, kept map[eventlog.Seq]bool) (*projection.Fold, error) {
	t.runs++
	f := projection.NewFold(t.set, t.genesis)
	for i := range t.entries {
		e := t.entries[i]
		if i%1024 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if e.Kind == eventlog.KindSignal && !kept[e.Seq] {
			e.Kind, e.Data = eventlog.KindSession, droppedData
		}
		if err := f.Apply(&e); err != nil {
			return nil, fmt.Errorf("provenance: %w", err)
		}
	}
	f.Advance(t.at)
	return f, nil
}

// Same returns the condition that a value is what it is at a moment of a session, and
// takes the same course from there.
func Same(ctx context.Context, r *replay.Replay, path StatePath, at replay.Moment) (Criterion, error) {
	f, err := r.At(ctx, at)
	if err != nil {
		return nil, err
	}
	if f.State(path.names[0]) == nil {
		return nil, fmt.Errorf("%w: there is no projection %q", ErrPath, path.names[0])
	}
	want := readAt(f, session.StageOf(f), path)
	return func(_ context.Context, f *projection.Fold) (bool, error) {
		got := readAt(f, session.StageOf(f), path)
		return got.has == want.has && bytes.Equal(got.text, want.text) && bytes.Equal(got.course, want.course), nil
	}, nil
}
