package main

import (
	"context"
	"errors"

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
	for _, text := range []string{expressionText, entryText} {
		rounds, err := b.alone(text, func() (measurement, error) {
			return timed(b.scale.long, func() error { return scanExpression(b.ctx, eng, text) }, nil)
		})
		if err != nil {
			return err
		}
		b.rateAlone(text, "entries", rounds, 300_000)
	}
	return nil
}

// scanExpression asks one expression about every entry of the session.
func scanExpression(ctx context.Context, eng *sajou.Engine, text string) error {
	expr, err := where.Compile(text, session.Projections(session.ProjectionConfig{}))
	if err != nil {
		return err
	}
	travel, err := eng.Replay("bench")
	if err != nil {
		return err
	}
	pred := replay.EntryPredicate{Test: func(ctx context.Context, s *replay.ScanStep) (bool, error) {
		return expr.Match(ctx, where.Input{Entry: s.Entry, State: s.Fold})
	}}
	if expr.NeedsState() {
		pred.Needs = replay.NeedsState
	}
	for _, err := range travel.Scan(ctx, 1, travel.Head().Seq, pred, replay.First) {
		if err != nil {
			return err
		}
		return errors.New("an expression that is never true was")
	}
	return nil
}
