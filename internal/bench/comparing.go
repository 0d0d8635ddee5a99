package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go/choreography/definition"
	"github.com/sajou-dev/sajou-go/choreography/language"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/compare"
	"github.com/sajou-dev/sajou-go/replay/order"
	"github.com/sajou-dev/sajou-go/replay/variant"
	"github.com/sajou-dev/sajou-go/session"
)

// comparing measures the comparisons that walk two sides of one session: through other
// definitions, and with neighboring signals in the other order.
func (b *bench) comparing() error {
	eng, travel, err := b.lit(b.path("compared"), b.scale.compared)
	if err != nil {
		return err
	}
	log, err := eng.Log().Session("bench")
	if err == nil {
		err = errors.Join(b.otherDefinitions(log, travel), b.otherOrders(travel))
	}
	return errors.Join(err, eng.Close())
}

// otherDefinitions measures a comparison with a small change now and then, and one in
// which something moves differently all the time.
func (b *bench) otherDefinitions(log *eventlog.SessionReader, travel *replay.Replay) error {
	for _, edit := range []struct{ name, from, to string }{
		{"every failure flashes for longer", `"color":"red","duration":200`, `"color":"red","duration":230`},
		{"every tool is walked to more slowly", `"duration":800`, `"duration":850`},
	} {
		defs, remarks := language.Parse("other.json", []byte(strings.Replace(definitionText, edit.from, edit.to, 1)))
		if err := remarks.Err(definition.ErrInvalid); err != nil {
			return err
		}
		changed, err := variant.New(b.ctx, log, variant.Edits{Define: defs})
		if err != nil {
			return err
		}
		other := session.NewReplay(changed, session.Projections(session.ProjectionConfig{}), nil)
		over := replay.MomentRange{To: replay.Moment{Seq: travel.Head().Seq}}
		name := fmt.Sprintf("diff --defs over %d entries, %s", over.To.Seq, edit.name)
		err = b.within(name, 0, func(ctx context.Context) error {
			_, err := compare.Definitions(ctx, travel, other, compare.DefinitionConfig{Over: over})
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// otherOrders measures the time of a pair of signals that is swapped.
func (b *bench) otherOrders(travel *replay.Replay) error {
	last := min(travel.Head().Seq, eventlog.Seq(b.scale.swapped))
	name := fmt.Sprintf("order, a pair of %d", last)
	rounds, err := b.each(name, 1, func(int) error {
		stats, err := order.Search(b.ctx, travel, order.Config{To: last, Within: time.Second}, func(*order.Swap) error { return nil })
		if err == nil && stats.Pairs < int(last)/2 {
			err = fmt.Errorf("only %d pairs were swapped", stats.Pairs)
		}
		return err
	})
	if err != nil {
		return err
	}
	b.add(result{Name: name, Value: rounds.percentile(0.5) / float64(last), Unit: "ms", lower: true}, rounds)
	return nil
}
