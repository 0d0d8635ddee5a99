package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/choreography/definition"
	"github.com/sajou-dev/sajou-go/choreography/language"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/provenance"
	"github.com/sajou-dev/sajou-go/signal"
)

// lampText adds a figure to the workload that stands where one of the first signals put
// it, and at which nothing is done again.
const lampText = `[{"on":"lamp","steps":[{"action":"spawn","entity":"lamp","at":{"x":100,"y":200}}]}]`

// The values that are traced back: one that the beginning of the session set, one that
// the last signals set, and one behind which a movement of each task stands.
var tracedPaths = []struct{ name, path string }{
	{"set early", "stage.entities.lamp.x"},
	{"set late", "stage.entities.agent-1.strength"},
	{"set in a chain", "stage.entities.agent-1.x"},
}

// provenance measures where values of a long session come from.
func (b *bench) provenance() error {
	eng, travel, err := b.lit(b.path("traced"), b.scale.traced)
	if err != nil {
		return err
	}
	err = errors.Join(b.firstUse(eng, travel), b.tracedBack(travel))
	if err := errors.Join(err, eng.Close()); err != nil {
		return err
	}
	eng, travel, err = b.lit(b.path("minimized"), b.scale.minimized)
	if err != nil {
		return err
	}
	return errors.Join(b.minimize(travel), eng.Close())
}

// lit records a session of the workload with a lamp, and opens it for reading.
func (b *bench) lit(dir string, n int) (*sajou.Engine, *replay.Replay, error) {
	const lampAt = 10
	eng, ses, err := b.engine(dir)
	if err != nil {
		return nil, nil, err
	}
	defs, remarks := language.Parse("lamp.json", []byte(lampText))
	err = remarks.Err(definition.ErrInvalid)
	if err == nil {
		_, err = ses.Define(b.ctx, defs...)
	}
	var signals []*signal.Signal
	if err == nil {
		signals, err = makeSignals(n)
	}
	if err == nil {
		signals[lampAt].Type, signals[lampAt].Payload = "lamp", signal.NewObject(0).Value()
		err = record(b.ctx, ses, n, 1000, signals)
	}
	if err := errors.Join(err, eng.Close()); err != nil {
		return nil, nil, err
	}
	if eng, err = sajou.Open(dir, sajou.Config{ReadOnly: true, IndexFrom: 1}); err != nil {
		return nil, nil, err
	}
	travel, err := eng.Replay("bench")
	return eng, travel, err
}

// firstUse measures the first question about a session, which builds the index that the
// others use.
func (b *bench) firstUse(eng *sajou.Engine, travel *replay.Replay) error {
	path, err := provenance.ParsePath(tracedPaths[0].path)
	if err != nil {
		return err
	}
	end := replay.Moment{Seq: travel.Head().Seq}
	return b.within(fmt.Sprintf("blame at the end of %d entries, the first question, which builds the index", end.Seq), 0, func(ctx context.Context) error {
		if err := eng.DropIndexes("bench"); err != nil {
			return err
		}
		_, err := provenance.Blame(ctx, travel, path, end)
		return err
	})
}

// tracedBack measures the answers about each value at the end of a session.
func (b *bench) tracedBack(travel *replay.Replay) error {
	end := replay.Moment{Seq: travel.Head().Seq}
	for _, of := range tracedPaths {
		path, err := provenance.ParsePath(of.path)
		if err != nil {
			return err
		}
		for _, question := range []struct {
			name string
			goal float64 // in seconds
			ask  func(context.Context) error
		}{
			{"blame", 0, func(ctx context.Context) error {
				_, err := provenance.Blame(ctx, travel, path, end)
				return err
			}},
			{"why", 1, func(ctx context.Context) error {
				_, err := provenance.Why(ctx, travel, path, end)
				return err
			}},
		} {
			name := fmt.Sprintf("%s at the end of %d entries, a value %s", question.name, end.Seq, of.name)
			if err := b.within(name, question.goal, question.ask); err != nil {
				return err
			}
		}
	}
	return nil
}

// minimize measures the search for the cause of a value among all signals, without the
// slice of the value as a first guess.
func (b *bench) minimize(travel *replay.Replay) error {
	end := replay.Moment{Seq: travel.Head().Seq}
	path, err := provenance.ParsePath("stage.entities.agent-1.strength")
	if err != nil {
		return err
	}
	name := fmt.Sprintf("minimizing %d signals to their cause", b.scale.minimized)
	return b.within(name, 10, func(ctx context.Context) error {
		holds, err := provenance.Same(ctx, travel, path, end)
		if err != nil {
			return err
		}
		_, err = provenance.Minimize(ctx, travel, end, holds, nil)
		return err
	})
}

// within adds the row of the time of a question, with a goal in seconds; 0 is none.
func (b *bench) within(name string, goal float64, ask func(context.Context) error) error {
	var all series
	for range b.scale.rounds {
		s, err := b.each(name, 1, func(int) error { return ask(b.ctx) })
		if err != nil {
			return err
		}
		all = append(all, s...)
	}
	best := time.Duration(all.percentile(0.5) * float64(time.Millisecond))
	r := result{
		Name: name, Value: best.Seconds(), Unit: "s", lower: true, onUnit: true,
		spread: all.spread(func(m measurement) float64 { return m.times[0] }),
	}
	if goal > 0 {
		r.Goal = &goal
	}
	b.add(r, all)
	return nil
}
