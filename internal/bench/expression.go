package main

import (
	"context"
	"errors"
	"runtime"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/where"
	"github.com/sajou-dev/sajou-go/session"
)

// The expressions look at each entry and at the state after it, and are never
// true, so that every Seq is visited. One asks for the state everywhere.
const (
	expressionText = `state.performances.size() > 1000 && entry.type == "error"`
	entryText      = `entry.type == "nothing" && entry.payload.agentId == "agent-1"`
)

// expressions measures expressions over every Seq.
func (b *bench) expressions(dir string) error {
	eng, err := sajou.Open(dir, sajou.Config{ReadOnly: true})
	if err != nil {
		return err
	}
	defer func() { _ = eng.Close() }()
	scan := func(text string, cores bool) side {
		return side{text, func() (measurement, error) {
			return timed(b.scale.long, func() error { return scanExpression(b.ctx, eng, text, cores) }, nil)
		}}
	}
	for _, text := range []string{expressionText, entryText} {
		rounds, err := b.interleave(text, scan(text, true), scan(text, false))
		if err != nil {
			return err
		}
		all, one := rounds[0], rounds[1]
		if text == entryText {
			b.rateAlone(text, "entries", all, 1_000_000)
			b.rateAlone("  on one core", "entries", one, 0)
			continue
		}
		b.rateAlone("  on one core", "entries", one, 300_000)
		b.beside(text, "entries", all, "one core", one, 0.8*float64(runtime.GOMAXPROCS(0)))
	}
	return nil
}

// scanExpression asks one expression about every entry of the session, on all cores or
// on one.
func scanExpression(ctx context.Context, eng *sajou.Engine, text string, cores bool) error {
	set := session.Projections(session.ProjectionConfig{})
	expr, err := where.Compile(text, set)
	if err != nil {
		return err
	}
	travel, err := eng.Replay("bench")
	if err != nil {
		return err
	}
	predicate := func(expr *where.Predicate) replay.EntryPredicate {
		p := replay.EntryPredicate{Test: func(ctx context.Context, s *replay.ScanStep) (bool, error) {
			return expr.Match(ctx, where.Input{Entry: s.Entry, State: s.Fold})
		}}
		if expr.NeedsState() {
			p.Needs = replay.NeedsState
		}
		return p
	}
	pred := predicate(expr)
	if cores {
		pred.Copy = func() replay.EntryPredicate {
			again, _ := where.Compile(text, set) // it has compiled before
			return predicate(again)
		}
	}
	for _, err := range travel.Scan(ctx, 1, travel.Head().Seq, pred, replay.First) {
		if err != nil {
			return err
		}
		return errors.New("an expression that is never true was")
	}
	return nil
}
