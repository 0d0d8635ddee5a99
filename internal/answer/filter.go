package answer

import (
	"context"
	"slices"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/where"
	"github.com/sajou-dev/sajou-go/signal"
)

// EntryFilter selects entries. An entry is selected if it has one of the values of each
// list that is not empty, and if the expression, unless empty, is true.
type EntryFilter struct {
	Kinds []eventlog.Kind
	Types []string // of signals
	Corrs []string // correlation ids of signals
	Where string
}

// IsZero reports whether f selects every entry.
func (f *EntryFilter) IsZero() bool {
	return len(f.Kinds) == 0 && len(f.Types) == 0 && len(f.Corrs) == 0 && f.Where == ""
}

// Compile returns f as a predicate of a scan, and its expression, nil without one. The
// error is that of [Compile].
func (f *EntryFilter) Compile() (replay.EntryPredicate, *where.Expression, error) {
	if f.Where == "" {
		return replay.EntryPredicate{Test: func(_ context.Context, s *replay.ScanStep) (bool, error) { return f.plain(s.Entry), nil }}, nil, nil
	}
	p, err := Compile(f.Where)
	if err != nil {
		return replay.EntryPredicate{}, nil, err
	}
	return replay.EntryPredicate{Needs: Needs(&p.Expression), Test: func(ctx context.Context, s *replay.ScanStep) (bool, error) {
		if !f.plain(s.Entry) {
			return false, nil
		}
		return p.Match(ctx, InputOf(s))
	}}, &p.Expression, nil
}

// plain reports whether the lists select an entry.
func (f *EntryFilter) plain(e *eventlog.Entry) bool {
	if len(f.Kinds) > 0 && !slices.Contains(f.Kinds, e.Kind) {
		return false
	}
	if len(f.Types) == 0 && len(f.Corrs) == 0 {
		return true
	}
	if e.Kind != eventlog.KindSignal {
		return false
	}
	sig, err := signal.Decode(e.Data)
	if err != nil || len(f.Types) > 0 && !slices.Contains(f.Types, sig.Type) {
		return false
	}
	return len(f.Corrs) == 0 || sig.CorrelationID != nil && slices.Contains(f.Corrs, *sig.CorrelationID)
}
