// Package order finds the signals of a recorded session whose order matters.
//
// Signals of several sources arrive in an order that chance decides. [Search] takes each
// pair of signals that follow each other in the log within a span of session time, swaps
// them, and compares the states from there on with the recorded ones.
//
// # What is swapped
//
// A pair is two neighboring entries that are signals, neither of them a cue of the director.
// They exchange their content; their numbers and times stay, as with Swap of package
// variant. Other neighbors are decisions, declarations and ticks, whose order is no
// matter of arrival: the agents' world decides the submissions of a quantum in an order
// that does not depend on it. Pairs that are further apart, or that have
// another entry between them, are not swapped; [Stats] counts what was left out.
//
// # What is compared
//
// The views of the states, at the second entry of the pair and at every entry and boundary
// behind it, and the pictures. Three things are no difference: the numbers of the two
// entries in ids and members, which are exchanged; the stage's lists of recent sounds,
// diagnostics and unresolved references; and the origin of session time, which the first
// timestamp gives. A comparison ends where all states are equal, of the stage all but these
// lists and the counts of diagnostics, or at a limit. Nothing that comes later depends on
// those.
//
// A difference has a [SwapCause]. It is that of the order if there is one too when both signals
// come at the time of the second. Otherwise the pair differs only because each
// signal came a little earlier or later, which changes every movement that it begins.
//
// # Limits
//
// Recorded decisions behind a pair stay as they are, as in every variant.
//
// docs/glossary.md has the nouns of all packages.
package order

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/compare"
	"github.com/sajou-dev/sajou-go/session"
)

// DefaultWithin is the greatest distance of two signals that [Search] swaps.
const DefaultWithin = 20 * time.Millisecond

// DefaultLimit is the number of entries behind a pair that [Search] folds.
const DefaultLimit = 200

// Config says what [Search] looks at.
type Config struct {
	From, To eventlog.Seq  // the entries of the pairs; 0 is the first and the last one
	Within   time.Duration // greatest distance of a pair in session time; 0 is [DefaultWithin], negative only the same time
	Limit    int           // greatest number of entries to fold behind a pair; 0 is [DefaultLimit]

	// Progress, unless nil, is called with the entry that the search has come to.
	Progress func(at eventlog.Seq)
}

// SwapCause says why the states differ after a swap.
type SwapCause string

// The causes.
const (
	ByOrder  SwapCause = "order"  // they differ also if both signals come at one time
	ByTiming SwapCause = "timing" // they differ only by the time between the two signals
)

// Swap is a pair of signals whose order changes a state or a picture.
type Swap struct {
	Seq   eventlog.Seq  // of the first signal; the second one is behind it
	Gap   time.Duration // between them
	Cause SwapCause

	// First is the first moment at which the views differ, and Patch the JSON Patch from
	// the recorded state to that of the swapped order, with the numbers of the swapped one
	// exchanged.
	First replay.Moment
	Patch []byte

	// Picture is the first picture that differs, at Pictured, nil if none does.
	Picture  *compare.PictureDiff
	Pictured replay.Moment

	// Healed says that the views are alike again from Heals on, up to Until, the last
	// moment that was compared. If Equal is set, the states are equal at Until, apart from
	// what is not compared, so they stay so.
	Healed bool
	Heals  replay.Moment
	Equal  bool
	Until  replay.Moment
}

// Lasting reports whether the difference was still there where the comparison ended.
func (s *Swap) Lasting() bool { return !s.Healed }

// Stats counts what a search looked at.
type Stats struct {
	Pairs    int // that were swapped
	Same     int // that make no difference; with those that may, see Open
	Order    int
	Timing   int
	Open     int          // of Same: their states were alike, but not equal, where the comparison ended
	Other    int          // neighbors within the distance that are not both signals
	Apart    int          // neighboring signals that are further apart
	Last     eventlog.Seq // the first entry of the last pair that was looked at
	Compared uint64       // moments
}

// Search swaps the pairs of neighboring signals of a session and calls found with each
// whose order matters, in their order. The Stats are of what was done, also
// together with an error: of found, of reading, or of ctx.
func Search(ctx context.Context, travel *replay.Replay, cfg Config, found func(*Swap) error) (Stats, error) {
	cfg.From = max(cfg.From, 1)
	if last := travel.Head().Seq; cfg.To == 0 || cfg.To > last {
		cfg.To = last
	}
	switch {
	case cfg.Within == 0:
		cfg.Within = DefaultWithin
	case cfg.Within < 0:
		cfg.Within = 0
	}
	if cfg.Limit <= 0 {
		cfg.Limit = DefaultLimit
	}
	s := &search{ctx: ctx, travel: travel, cfg: cfg, found: found}
	err := s.run()
	return s.stats, err
}

// search is one run of [Search].
type search struct {
	ctx    context.Context
	travel *replay.Replay
	cfg    Config
	found  func(*Swap) error
	stats  Stats

	base  *projection.Fold // right after the entry in front of the pair
	paint compare.FrameComparer
}

func (s *search) run() error {
	if s.cfg.From >= s.cfg.To {
		return s.ctx.Err()
	}
	var err error
	if s.base, err = s.travel.Fold(s.ctx, s.cfg.From-1); err != nil {
		return err
	}
	var first *eventlog.Entry
	for e, err := range s.travel.Entries(s.ctx, s.cfg.From) {
		if err != nil {
			return fmt.Errorf("order: read from entry %d: %w", s.cfg.From, err)
		}
		if e.Seq > s.cfg.To {
			break
		}
		if first != nil {
			if err := s.pair(first, &e); err != nil {
				return err
			}
			if err := s.base.Apply(first); err != nil {
				return fmt.Errorf("order: %w", err)
			}
		}
		first = &e
	}
	return s.ctx.Err()
}

// pair looks at two neighboring entries.
func (s *search) pair(a, b *eventlog.Entry) error {
	if s.cfg.Progress != nil {
		s.cfg.Progress(a.Seq)
	}
	both := arrives(a) && arrives(b)
	switch {
	case b.At-a.At > s.cfg.Within:
		if both {
			s.stats.Apart++
		}
		return nil
	case !both:
		s.stats.Other++
		return nil
	}
	swap, same, err := s.compare(*a, *b)
	if err != nil {
		return err
	}
	s.stats.Pairs++
	s.stats.Last = a.Seq
	if swap == nil {
		s.stats.Same++
		if !same {
			s.stats.Open++
		}
		return nil
	}
	swap.Gap, swap.Cause = b.At-a.At, ByOrder
	if swap.Gap > 0 {
		at := *a
		at.At = b.At
		matters, err := s.matters(at, *b)
		if err != nil {
			return err
		}
		if !matters {
			swap.Cause = ByTiming
		}
	}
	if swap.Cause == ByTiming {
		s.stats.Timing++
	} else {
		s.stats.Order++
	}
	return s.found(swap)
}

// arrives reports whether an entry is a signal that came from outside.
func arrives(e *eventlog.Entry) bool {
	if e.Kind != eventlog.KindSignal {
		return false
	}
	sig, err := session.SignalOf(e)
	return err == nil && sig.Source != session.CueSource
}

// compare folds two entries in both orders and compares what follows. It returns nil if
// nothing differs, and whether the states became equal.
func (s *search) compare(a, b eventlog.Entry) (swap *Swap, equal bool, err error) {
	t := trial{search: s, first: a.Seq}
	err = t.swapped(a, b)
	return t.swap, t.equal, err
}

// matters reports whether two entries in both orders make any difference.
func (s *search) matters(a, b eventlog.Entry) (bool, error) {
	t := trial{search: s, first: a.Seq, once: true}
	err := t.swapped(a, b)
	return t.swap != nil, err
}

// swapped folds two entries in both orders and compares what follows.
func (t *trial) swapped(a, b eventlog.Entry) (err error) {
	// The content travels, the numbers and times stay.
	other := [2]eventlog.Entry{a, b}
	other[0].Data, other[1].Data = b.Data, a.Data
	for i, list := range [2][2]eventlog.Entry{{a, b}, other} {
		if t.folds[i], err = t.base.Clone(); err != nil {
			return fmt.Errorf("order: %w", err)
		}
		for j := range list {
			if err := t.folds[i].Apply(&list[j]); err != nil {
				return fmt.Errorf("order: %w", err)
			}
		}
		t.folds[i].Advance(b.At)
	}
	t.entry = b.At
	return t.run()
}

// trial compares the states behind a pair.
type trial struct {
	*search
	first eventlog.Seq
	folds [2]*projection.Fold // as recorded, and swapped
	entry time.Duration       // of the entry that was applied last
	once  bool                // whether anything differs is enough
	swap  *Swap
	equal bool
	done  int       // entries
	buf   [2][]byte // of states that are compared

	picture  *compare.PictureDiff // the first that differs
	pictured replay.Moment
}

func (t *trial) run() error {
	if more, err := t.look(); err != nil || !more {
		return err
	}
	next, stop := iter.Pull2(t.travel.Entries(t.ctx, t.first+2))
	defer stop()
	for t.done < t.cfg.Limit {
		if t.first+2 > t.travel.Head().Seq {
			break
		}
		e, err, ok := next()
		if !ok {
			break
		}
		if err != nil {
			return fmt.Errorf("order: read after entry %d: %w", t.folds[0].Head().Seq, err)
		}
		if more, err := t.between(e.At); err != nil || !more {
			return err
		}
		for _, f := range t.folds {
			if err := f.Apply(&e); err != nil {
				return fmt.Errorf("order: %w", err)
			}
			f.Advance(e.At)
		}
		t.entry = e.At
		t.done++
		if more, err := t.look(); err != nil || !more {
			return err
		}
	}
	if t.done >= t.cfg.Limit {
		return t.ctx.Err()
	}
	_, err := t.between(t.entry + replay.MaxRest)
	return err
}

// between compares at the boundaries of both folds up to limit.
func (t *trial) between(limit time.Duration) (more bool, err error) {
	for {
		if err := t.ctx.Err(); err != nil {
			return false, err
		}
		now := t.folds[0].At()
		var at time.Duration
		found := false
		for _, f := range t.folds {
			if next, ok := replay.NextBoundary(f); ok && next > now && (!found || next < at) {
				at, found = next, true
			}
		}
		if !found || at > limit {
			return true, nil
		}
		for _, f := range t.folds {
			f.Advance(at)
		}
		if more, err := t.look(); err != nil || !more {
			return false, err
		}
	}
}
