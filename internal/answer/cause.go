package answer

import (
	"context"
	"errors"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/provenance"
	"github.com/sajou-dev/sajou-go/replay/where"
)

// ErrReadsPrev says that an expression about one moment reads the state before it.
var ErrReadsPrev = errors.New("the expression must not read prev, because one moment is kept and not the one before")

// Holding returns the criterion that an expression is true at a moment. The error is
// [ErrReadsPrev], or that of reading the entry of the moment.
func Holding(ctx context.Context, r *replay.Replay, m replay.Moment, p *where.Predicate) (provenance.Criterion, error) {
	if p.NeedsPrev() {
		return nil, ErrReadsPrev
	}
	e, err := r.Entry(ctx, max(m.Seq, 1))
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, f *projection.Fold) (bool, error) {
		return p.Match(ctx, InputOf(&replay.ScanStep{Entry: &e, Fold: f}))
	}, nil
}

// Minimize finds a minimal set of signals for a criterion at a moment, see
// [provenance.Minimize]. The causal slice of the path, which may have none, is its first
// guess.
func Minimize(ctx context.Context, r *replay.Replay, m replay.Moment, path provenance.StatePath, holds provenance.Criterion) (provenance.Minimal, error) {
	var guess []eventlog.Seq
	s, err := provenance.Why(ctx, r, path, m)
	switch {
	case err == nil:
		guess = s.Signals
	case !errors.Is(err, provenance.ErrNoSlice):
		return provenance.Minimal{}, err
	}
	return provenance.Minimize(ctx, r, m, holds, guess)
}
