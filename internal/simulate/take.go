package simulate

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/eventlog"
)

// ErrOther answers [Take.Record] when the store has another session of that name.
var ErrOther = errors.New("simulate: there is another session of this name")

// Take is a play and its session, in memory until it is closed.
type Take struct {
	Result
	Name string // of the session
	Head eventlog.Head

	engine *sajou.Engine
	log    *eventlog.Session
}

// Play plays the scenario in a store of its own, see [Scenario.PlayIn]. Its
// session is called like the scenario, unless name is not empty. The take is to be
// closed.
func (s *Scenario) Play(ctx context.Context, name string, tell func(*Event) error) (*Take, error) {
	if name == "" {
		name = s.Name
	}
	engine, err := sajou.Open("play", sajou.Config{FS: vfs.NewMem()})
	if err != nil {
		return nil, err
	}
	take := &Take{Name: name, engine: engine}
	if err := take.play(ctx, s, tell); err != nil {
		return nil, errors.Join(err, engine.Close())
	}
	return take, nil
}

func (t *Take) play(ctx context.Context, s *Scenario, tell func(*Event) error) error {
	ses, err := t.engine.Begin(ctx, t.Name, sajou.TimeManual)
	if err != nil {
		return err
	}
	if t.Result, err = s.PlayIn(ctx, ses, tell); err != nil {
		return err
	}
	if t.log, err = t.engine.Log().Session(t.Name); err != nil {
		return err
	}
	t.Head = t.log.Head()
	return nil
}

// Close gives the memory back.
func (t *Take) Close() error { return t.engine.Close() }

// maxRound bounds, in bytes, what is made durable at once.
const maxRound = 8 << 20

// Record writes the session into a log that has none of its name, entry by entry
// as it is. If the log has this very session already, nothing is written, and
// recorded is false. The error is [ErrOther] if it has another one.
func (t *Take) Record(ctx context.Context, to *eventlog.Log) (recorded bool, err error) {
	session, err := to.Session(t.Name)
	if err != nil {
		return false, err
	}
	if session.Exists() {
		if session.Head() == t.Head {
			return false, nil
		}
		return false, fmt.Errorf("%w: %q stands at %v, and this one at %v", ErrOther, t.Name, session.Head(), t.Head)
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
			if err := write(session, round); err != nil {
				return true, err
			}
			round, size = nil, 0
		}
	}
	if err := write(session, round); err != nil {
		return true, err
	}
	if session.Head() != t.Head {
		return true, fmt.Errorf("the session was recorded as %v and played as %v", session.Head(), t.Head)
	}
	return true, nil
}

// batches goes over the session in batches that keep what belongs to a key
// together: a key stands on the first entry of its batch, which ends with the answer
// of the request that the key names.
func (t *Take) batches(ctx context.Context) iter.Seq2[eventlog.Batch, error] {
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
			if record, err := sajou.WorldRecordOf(&e); err == nil {
				_, _, _, answered = record.Answer()
			}
			if (answered || batch.Key == "") && !flush() {
				return
			}
		}
		flush()
	}
}

func write(session *eventlog.Session, round []eventlog.Batch) error {
	var refused error
	err := session.Write(func(r *eventlog.Round) {
		for _, batch := range round {
			if _, err := r.Stage(batch); err != nil {
				refused = err
				return
			}
		}
	})
	return errors.Join(refused, err)
}
