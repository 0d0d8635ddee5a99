package replay

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/sajou-dev/sajou-go/eventlog"
)

// Anchors gives those addresses a meaning that do not have one by the recording alone:
// bookmarks, and addresses that are relative to the last one. The methods may be called
// by several goroutines if the [Replay] is used by several.
type Anchors interface {
	// Bookmark returns the anchor of that name, or false if there is none.
	Bookmark(name string) (Anchor, bool, error)

	// Last returns the moment that was used last, or false if none was.
	Last() (Moment, bool)

	// Used reports a moment that an address was resolved to, or the end of a range.
	Used(m Moment)
}

// Anchor is a moment that was noted outside of the recording. The hash of its entry
// says of which history it is.
type Anchor struct {
	Head   eventlog.Head // the entry
	Offset time.Duration // after the entry; not negative
}

// Anchor makes the addresses of r resolve with a, nil for none. It must be called before
// r is used by several goroutines.
func (r *Replay) Anchor(a Anchors) { r.anchors = a }

// lastMoment returns the moment from which relative addresses count.
func (r *Replay) lastMoment() (Moment, bool) {
	if r.anchors == nil {
		return Moment{}, false
	}
	return r.anchors.Last()
}

// findBookmark returns the moment of a bookmark.
func (r *Replay) findBookmark(ctx context.Context, a Address) (Moment, error) {
	var at Anchor
	ok := false
	if r.anchors != nil {
		var err error
		if at, ok, err = r.anchors.Bookmark(a.name); err != nil {
			return Moment{}, fmt.Errorf("replay: look for %s: %w", a.text, err)
		}
	}
	if !ok {
		return Moment{}, noAddress(a.text, "%s has no bookmark of that name", r.src.Name())
	}
	if err := r.CheckAnchor(ctx, at); err != nil {
		if errors.Is(err, ErrNotThere) {
			return Moment{}, noAddress(a.text, "%v", err)
		}
		return Moment{}, err
	}
	return Moment{at.Head.Seq, at.Offset}, nil
}

// ErrNotThere is wrapped by the errors of [Replay.CheckAnchor] for an anchor that the
// session does not have.
var ErrNotThere = errors.New("not of this history")

// CheckAnchor returns an [ErrNotThere] that says why at is not a moment of this session:
// its entry, or the time after it, is missing, or the entry is another one.
func (r *Replay) CheckAnchor(ctx context.Context, at Anchor) error {
	m := Moment{at.Head.Seq, at.Offset}
	if last := r.src.Head().Seq; m.Seq > last || m.Offset < 0 {
		return fmt.Errorf("%w: it names %v, and the last entry of %s is %d", ErrNotThere, m, r.src.Name(), last)
	}
	have, base := r.src.Genesis(), time.Duration(0)
	if m.Seq > 0 {
		e, err := r.Entry(ctx, m.Seq)
		if err != nil {
			return err
		}
		have, base = e.Hash, e.At
	}
	if have != at.Head.Hash {
		return fmt.Errorf("%w: it names an entry %d whose hash begins with %.16s; that of this entry begins with %.16s", ErrNotThere, m.Seq, at.Head.Hash.String(), have.String())
	}
	_, err := r.instant(ctx, m, base)
	if errors.Is(err, ErrNoAddress) {
		return fmt.Errorf("%w: %w", ErrNotThere, err)
	}
	return err
}

// stepFrom returns the moment of an address that is relative to the last one.
func (r *Replay) stepFrom(ctx context.Context, a Address, last func() (Moment, bool)) (Moment, error) {
	m, ok := last()
	if !ok {
		return Moment{}, noAddress(a.text, "no address was used before it; begin with another one, such as a number or end")
	}
	if err := r.checkSeq(m); err != nil {
		return Moment{}, err
	}
	if a.kind == byStep && a.number == 0 {
		return m, nil
	}
	if a.kind == byStep {
		n, head := eventlog.Seq(a.number), r.src.Head().Seq
		if a.back && m.Offset > 0 {
			n-- // the first step back leads to the entry itself
		}
		switch {
		case a.back && n > m.Seq:
			return Moment{}, noAddress(a.text, "there are only %d entries before %v", m.Seq, m)
		case a.back:
			return Moment{Seq: m.Seq - n}, nil
		case n > head-m.Seq:
			return Moment{}, noAddress(a.text, "it counts from %d, and the last entry of %s is %d", m.Seq, r.src.Name(), head)
		}
		return Moment{Seq: m.Seq + n}, nil
	}
	base, err := r.atOf(ctx, m.Seq)
	if err != nil {
		return Moment{}, err
	}
	at := base + m.Offset
	switch {
	case a.back && a.at > at:
		return Moment{}, noAddress(a.text, "%v is %v after the beginning", m, at)
	case a.back:
		return r.momentOfTime(ctx, a, at-a.at)
	case a.at > math.MaxInt64-at:
		return Moment{}, noAddress(a.text, "session time ends before that")
	}
	return r.momentOfTime(ctx, a, at+a.at)
}

// CorrelationSource is an optional interface of a [Source] whose entries belong
// together by a correlation id. Without it, addresses of correlations do not resolve.
type CorrelationSource interface {
	// Correlation returns the correlation id of an entry, or false if it has none.
	Correlation(e *eventlog.Entry) (id string, ok bool)
}

// findCorrelation returns the nth entry with a correlation id.
func (r *Replay) findCorrelation(ctx context.Context, a Address) (eventlog.Seq, error) {
	src, ok := r.src.(CorrelationSource)
	if !ok {
		return 0, noAddress(a.text, "the entries of %s have no correlation ids", r.src.Name())
	}
	// pass returns the nth entry, or 0 and the number of all.
	pass := func(nth int64) (found eventlog.Seq, n int64, err error) {
		if r.src.Head().Seq == 0 {
			return 0, 0, nil
		}
		for e, err := range r.src.Entries(ctx, 1) {
			if err != nil {
				return 0, n, fmt.Errorf("replay: look for %s: %w", a.text, err)
			}
			if id, ok := src.Correlation(&e); !ok || id != a.name {
				continue
			}
			if n++; n == nth {
				return e.Seq, n, nil
			}
		}
		return 0, n, ctx.Err()
	}
	seq, n, ok, err := r.indexedCorrelation(ctx, src, a)
	if err == nil && !ok {
		seq, n, err = pass(a.nth)
	}
	if err == nil && !ok && a.nth < 0 && -n <= a.nth {
		// The first pass counted the entries, so the wanted one is known now.
		seq, _, err = pass(n + a.nth + 1)
	}
	switch {
	case err != nil:
		return 0, err
	case seq == 0 && n == 0:
		return 0, noAddress(a.text, "no entry of %s has that correlation id", r.src.Name())
	case seq == 0 && n == 1:
		return 0, noAddress(a.text, "one entry has that correlation id")
	case seq == 0:
		return 0, noAddress(a.text, "%d entries have that correlation id", n)
	}
	return seq, nil
}
