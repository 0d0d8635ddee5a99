package simulate

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/session"
)

// ErrSessionDiffers is returned by [Recording.Record] when the store has another
// session of that name.
var ErrSessionDiffers = errors.New("simulate: there is another session of this name")

// Recording is a played session, in memory until it is closed.
type Recording struct {
	Name     string // of the session
	Head     eventlog.Head
	At       time.Duration // where its time ended
	Effects  int
	Failures []UnmetExpectation // expectations that are not fulfilled

	engine *sajou.Engine
	log    *eventlog.SessionReader
}

// Play plays the simulation in a store in memory. The session has the given name, or
// the simulation's if that is empty. Play calls tell for each event as it happens; an
// error of tell ends the play. The other errors are a [*LimitError] and those of ctx.
// The caller closes the recording.
func (s *Simulation) Play(ctx context.Context, name string, tell func(*Event) error) (*Recording, error) {
	if name == "" {
		name = s.Name
	}
	engine, err := sajou.Open("play", sajou.Config{FS: vfs.NewMem()})
	if err != nil {
		return nil, err
	}
	take := &Recording{Name: name, engine: engine}
	if err := take.play(ctx, s, tell); err != nil {
		return nil, errors.Join(err, engine.Close())
	}
	return take, nil
}

func (t *Recording) play(ctx context.Context, s *Simulation, tell func(*Event) error) error {
	ses, err := t.engine.Begin(ctx, t.Name, session.TimeManual)
	if err != nil {
		return err
	}
	if err = s.playIn(ctx, ses, tell, t); err != nil {
		return err
	}
	if t.log, err = t.engine.Log().Session(t.Name); err != nil {
		return err
	}
	t.Head = t.log.Head()
	return nil
}

// Close releases the memory.
func (t *Recording) Close() error { return t.engine.Close() }

// maxRound bounds the bytes of one round of the log.
const maxRound = 8 << 20

// Record copies the session, entry by entry, into a store that has none of its name.
// If the store already has this same session, Record writes nothing and recorded is
// false. If it has a different one, the error is [ErrSessionDiffers].
func (t *Recording) Record(ctx context.Context, to *sajou.Engine) (recorded bool, err error) {
	session, err := to.Log().Session(t.Name)
	if err != nil {
		return false, err
	}
	if session.Exists() {
		if session.Head() == t.Head {
			return false, nil
		}
		return false, fmt.Errorf("%w: %q stands at %v, and this one at %v", ErrSessionDiffers, t.Name, session.Head(), t.Head)
	}
	var round []eventlog.Batch
	size := 0
	for batch, err := range t.batches(ctx) {
		if err != nil {
			return true, err
		}
		round = append(round, batch)
		for i := range batch.Drafts {
			size += len(batch.Drafts[i].Data)
		}
		if size > maxRound {
			if _, err := to.Restore(ctx, t.Name, round...); err != nil {
				return true, err
			}
			round, size = nil, 0
		}
	}
	if _, err := to.Restore(ctx, t.Name, round...); err != nil {
		return true, err
	}
	if session.Head() != t.Head {
		return true, fmt.Errorf("the session was recorded as %v and played as %v", session.Head(), t.Head)
	}
	return true, nil
}

// batches yields the session in batches that keep the entries of a key together: the
// first entry of a batch has the key, and the last one answers its request.
func (t *Recording) batches(ctx context.Context) iter.Seq2[eventlog.Batch, error] {
	return func(yield func(eventlog.Batch, error) bool) {
		var batch eventlog.Batch
		flush := func() bool {
			full := batch
			batch = eventlog.Batch{}
			return len(full.Drafts) == 0 || yield(full, nil)
		}
		for e, err := range t.log.Entries(ctx, 1) {
			if err != nil {
				yield(eventlog.Batch{}, err)
				return
			}
			if e.Key != "" {
				if !flush() {
					return
				}
				batch.Key = e.Key
			}
			batch.Drafts = append(batch.Drafts, eventlog.Draft{Kind: e.Kind, At: e.At, Data: e.Data})
			answered := false
			if record, err := session.WorldRecordOf(&e); err == nil {
				_, _, _, answered = agents.FinalOutcomeOf(record)
			}
			if (answered || batch.Key == "") && !flush() {
				return
			}
		}
		flush()
	}
}
