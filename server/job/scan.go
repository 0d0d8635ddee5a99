package job

import (
	"context"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/answer"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/session"
)

// searched is a scan that is ready.
type searched struct {
	travel *replay.Replay
	over   replay.MomentRange
	mode   replay.Mode
	count  bool
	pred   replay.EntryPredicate
	values *replay.Valuation[string] // with the mode Changes
}

// scan searches the entries of a range, or all its moments.
func (j *Jobs) scan(ctx context.Context, travel *replay.Replay, o *order) (task, error) {
	modes := map[string]replay.Mode{"": replay.All, "all": replay.All, "first": replay.First, "last": replay.Last, "changes": replay.Changes}
	mode, ok := modes[o.Mode]
	switch {
	case !ok:
		return nil, badRequest("mode %.80q: must be all, first, last or changes", o.Mode)
	case o.Count && (mode == replay.First || mode == replay.Last):
		return nil, badRequest("count counts all that is found; omit the mode %s", o.Mode)
	case o.Image != nil && mode == replay.Changes:
		return nil, badRequest("the mode changes is for expressions")
	}
	every, err := o.every()
	if err != nil {
		return nil, err
	}
	s := &searched{travel: travel, mode: mode, count: o.Count}
	if s.over, err = answer.MomentRange(ctx, travel, o.Range); err != nil {
		return nil, err
	}
	s.over.Every = every
	if mode == replay.Changes {
		x, err := answer.CompileValue(o.Where)
		if err != nil {
			return nil, err
		}
		v := answer.Valuing(x, nil)
		s.values = &v
	} else if s.pred, err = o.matching(); err != nil {
		return nil, err
	}
	moments := o.Moments || every > 0 || s.over.From.Seq == s.over.To.Seq && s.over.To.Offset > 0
	return func(ctx context.Context, b *job) error {
		work := s.entries
		if moments {
			work = s.moments
		}
		if err := work(ctx, b); err != nil {
			return evalError(err)
		}
		if s.count {
			return b.addCount()
		}
		return nil
	}, nil
}

// hit notes something that was found.
func (s *searched) hit(b *job, value any) error {
	if s.count {
		b.count()
		return nil
	}
	return b.add(value)
}

// entries searches the entries of the range.
func (s *searched) entries(ctx context.Context, b *job) error {
	from, to := s.over.From.Seq, s.over.To.Seq
	if s.over.From.Offset > 0 {
		from++ // a moment between two entries is rounded into the range
	}
	if from = max(from, 1); from > to {
		return nil
	}
	total := uint64(to - from + 1)
	if s.values != nil {
		for c, err := range replay.ScanValues(ctx, s.travel, from, to, *s.values) {
			if err != nil {
				return err
			}
			b.progress(uint64(c.Entry.Seq-from+1), total)
			if err := s.hit(b, answer.ViewValue(&c.Entry, c.Value)); err != nil {
				return err
			}
		}
		b.progress(total, total)
		return nil
	}
	late := session.NewLateness(s.travel.Entries)
	for hit, err := range s.travel.Scan(ctx, from, to, s.pred, s.mode) {
		if err != nil {
			return err
		}
		b.progress(uint64(hit.Entry.Seq-from+1), total)
		line, err := late.AppendEntryJSON(ctx, nil, &hit.Entry)
		if err != nil {
			return err
		}
		if err := s.hit(b, line); err != nil {
			return err
		}
	}
	b.progress(total, total)
	return nil
}

// moments searches all moments of the range.
func (s *searched) moments(ctx context.Context, b *job) error {
	values := answer.Truth(s.pred)
	if s.values != nil {
		values = *s.values
	}
	var last *replay.ValueInterval[string]
	for iv, err := range replay.Intervals(ctx, s.travel, s.over, values) {
		if err != nil {
			return err
		}
		b.progress(uint64(max(iv.Until.Moment.Seq, 1)-max(s.over.From.Seq, 1)), uint64(s.over.To.Seq-min(s.over.To.Seq, max(s.over.From.Seq, eventlog.Seq(1)))))
		switch {
		case s.mode != replay.Changes && iv.Value != answer.True:
		case s.mode == replay.Last:
			last = &iv
		default:
			if err := s.hit(b, answer.ViewInterval(&iv)); err != nil {
				return err
			}
			if s.mode == replay.First {
				return nil
			}
		}
	}
	if last != nil {
		return s.hit(b, answer.ViewInterval(last))
	}
	return nil
}

// addCount makes the number of what was found the result.
func (b *job) addCount() error {
	n := b.view().Found
	b.mu.Lock()
	b.found = 0
	b.mu.Unlock()
	return b.add(struct {
		Count int `json:"count"`
	}{n})
}
