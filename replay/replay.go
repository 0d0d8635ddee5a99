// Package replay travels in time through a recorded session.
//
// A [Replay] is a session's entries, the projections to fold them with and, if there
// are any, saved images to start from. It returns the state at any [Moment]
// ([Replay.At]) and the commands of a stretch ([Replay.Commands]), and finds the
// first entry at which a predicate holds ([Replay.Scan]). [Replay.Moments] visits every
// moment at which the state can change, also between entries. A [Cursor] stands at one
// moment and steps. A [Player] plays a range to a sink of commands or a [Screen], on any
// clock. An [Address] is the written form of a moment. Package bisect searches with tests
// that are expensive to run.
//
// # Moments
//
// A [Moment] is a Seq and an offset in session time: the state after that entry,
// offset later. The log is append-only, so a moment never changes its meaning. Its
// offset extends to the next entry at most; after the last entry it is unbounded.
//
// The instant of a moment is complete: everything that is due exactly then has
// happened, including consequences of the entry at its own time. So the state at 812
// results from applying entry 812 and advancing to its At.
//
// # Cost
//
// A jump costs one image and at most the entries after it; a scan is one pass. The
// number of images in memory is fixed, independent of the length of the session.
//
// # Trust
//
// An image is used only if the log's entry at its Seq has the image's hash and
// time; otherwise an earlier one is tried, and in the end the session is folded
// from its beginning. The entries themselves are trusted: verifying the chain is the
// log's task.
//
// docs/glossary.md has the nouns of all packages.
package replay

import (
	"context"
	"fmt"
	"iter"
	"runtime"
	"strconv"
	"time"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/snapshot"
)

// Source is the durable part of a recorded session.
type Source interface {
	// Name returns the session's name.
	Name() string

	// Head returns the current Head of the session. It may grow.
	Head() eventlog.Head

	// Genesis returns the hash of Seq 0.
	Genesis() eventlog.Hash

	// Entries yields the entries from a Seq on in order and without gaps, up to the
	// current Head or a later one; from is at least 1. After an error the sequence
	// ends. Several sequences may run at once. The consumer owns each entry; the
	// entry's slices are immutable.
	Entries(ctx context.Context, from eventlog.Seq) iter.Seq2[eventlog.Entry, error]
}

// Origin is an optional interface of a [Source]: the wall clock's time at session
// time zero. Without it moments have no time of day.
type Origin interface {
	// Origin reports false when the session has no wall clock.
	Origin() (time.Time, bool)
}

// Derived is an optional interface of a [Source] that has the name of a recorded session
// and another content from some entry on.
type Derived interface {
	// Shared returns the last Seq up to which the entries are those of the session.
	Shared() eventlog.Seq
}

// Snapshots finds saved images.
type Snapshots interface {
	// Nearest returns an image with the greatest Seq at or below seq, or
	// false. The image must not change.
	Nearest(ctx context.Context, seq eventlog.Seq) (projection.Image, bool, error)
}

// Stored returns the images of src's session in store that are of set.
// The [Replay] checks that an image is of src's chain. Of a [Derived] source they are the
// images of the entries that it shares with the session, and none is stored.
func Stored(store *snapshot.Store, src Source, set projection.Set) Snapshots {
	images := stored{store, src.Name(), src.Name(), set.Core()}
	if d, ok := src.(Derived); ok {
		return shared{images, d.Shared()}
	}
	return images
}

// shared is the images of a session up to an entry, for reading only.
type shared struct {
	images Snapshots
	last   eventlog.Seq
}

func (s shared) Nearest(ctx context.Context, seq eventlog.Seq) (projection.Image, bool, error) {
	return s.images.Nearest(ctx, min(seq, s.last))
}

type stored struct {
	store   *snapshot.Store
	session string
	name    string // under which the images are
	set     projection.Set
}

func (s stored) Nearest(_ context.Context, seq eventlog.Seq) (projection.Image, bool, error) {
	// The fold reads the log from the image on in any case, and checks there whether
	// the image matches; a check here would read the log twice.
	return s.store.Nearest(s.name, seq, s.set, func(eventlog.Head) bool { return true })
}

// entryAt returns one entry, or false if seq is beyond the end.
func entryAt(ctx context.Context, src Source, seq eventlog.Seq) (eventlog.Entry, bool, error) {
	if seq > src.Head().Seq {
		return eventlog.Entry{}, false, nil
	}
	for e, err := range src.Entries(ctx, seq) {
		return e, err == nil, err
	}
	return eventlog.Entry{}, false, nil
}

// Replay gives access to every moment of a recorded session. It is safe for concurrent
// use if its Source and Snapshots are; the folds and cursors it returns are not.
type Replay struct {
	src   Source
	set   projection.Set
	snaps Snapshots // nil: always from the beginning
	built apartCache

	anchors Anchors // nil for none; see [Replay.Anchor]
	indexes Indexes // nil for none; see [Replay.UseIndexes]
	split   split
}

// Open returns a Replay of src with the projections of set, which must pass
// [projection.Set.Check]. A nil snaps folds from the beginning every time.
func Open(src Source, set projection.Set, snaps Snapshots) *Replay {
	return &Replay{src: src, set: set, snaps: snaps, split: split{runtime.GOMAXPROCS(0), segmentEntries}}
}

// Name returns the session's name.
func (r *Replay) Name() string { return r.src.Name() }

// Entries yields the session's entries from a Seq on; see [Source].
func (r *Replay) Entries(ctx context.Context, from eventlog.Seq) iter.Seq2[eventlog.Entry, error] {
	return r.src.Entries(ctx, from)
}

// Entry returns one entry. The error is [ErrNoAddress] when the session does not
// have it.
func (r *Replay) Entry(ctx context.Context, seq eventlog.Seq) (eventlog.Entry, error) {
	e, ok, err := entryAt(ctx, r.src, seq)
	switch {
	case err != nil:
		return eventlog.Entry{}, fmt.Errorf("replay: read entry %d: %w", seq, err)
	case !ok || seq == 0:
		return eventlog.Entry{}, noAddress(strconv.FormatUint(uint64(seq), 10), "the last entry of %s is %d", r.src.Name(), r.Head().Seq)
	}
	return e, nil
}

// Head returns the current Head of the session.
func (r *Replay) Head() eventlog.Head { return r.src.Head() }

// At returns the state at m, which the caller owns. The error is [ErrNoAddress] if the
// session has no such moment.
func (r *Replay) At(ctx context.Context, m Moment) (*projection.Fold, error) {
	if err := r.checkSeq(m); err != nil {
		return nil, err
	}
	f, err := r.foldTo(ctx, m.Seq, nil, nil)
	if err != nil {
		return nil, err
	}
	at, err := r.instant(ctx, m, f.At())
	if err != nil {
		return nil, err
	}
	f.Advance(at)
	return f, nil
}

func (r *Replay) checkSeq(m Moment) error {
	if last := r.src.Head().Seq; m.Seq > last {
		return noAddress(m.String(), "the last entry of %s is %d", r.src.Name(), last)
	}
	if m.Offset < 0 {
		return noAddress(m.String(), "an offset cannot be negative")
	}
	return nil
}

// instant returns the session time of m, whose entry is at base. It returns an error
// if that time is beyond the next entry.
func (r *Replay) instant(ctx context.Context, m Moment, base time.Duration) (time.Duration, error) {
	if m.Offset == 0 {
		return base, nil
	}
	next, ok, err := entryAt(ctx, r.src, m.Seq+1)
	if err != nil {
		return 0, fmt.Errorf("replay: read entry %d: %w", m.Seq+1, err)
	}
	if ok && m.Offset > next.At-base {
		return 0, noAddress(m.String(), "entry %d begins %v after %d, so the offset goes up to %v", next.Seq, next.At-base, m.Seq, next.At-base)
	}
	at := base + m.Offset
	if at < base {
		return 0, noAddress(m.String(), "session time ends before that")
	}
	return at, nil
}

// Fold returns the fold right after entry seq, which the caller owns. Unlike
// [Replay.At] it does not complete the entry's instant, because a writer that
// continues from there needs it open. Seq 0 is the fold before the first entry.
func (r *Replay) Fold(ctx context.Context, seq eventlog.Seq) (*projection.Fold, error) {
	if err := r.checkSeq(Moment{Seq: seq}); err != nil {
		return nil, err
	}
	return r.foldTo(ctx, seq, nil, nil)
}

// reach is the number of entries that are folded without looking for an image:
// loading an image costs about as much.
const reach = snapshot.DefaultInterval

// foldTo returns the fold right after entry seq, without completing its
// instant, so that the fold's At is the entry's. It continues from start, which may be
// nil, unless an image is nearer. It calls saw, if not nil, after each entry.
func (r *Replay) foldTo(ctx context.Context, seq eventlog.Seq, start *projection.Fold, saw func(*projection.Fold)) (*projection.Fold, error) {
	var have eventlog.Seq
	if start != nil {
		have = start.Head().Seq
	}
	for limit := seq; r.snaps != nil && limit > have && (start == nil || seq-have > reach); {
		img, ok, err := r.snaps.Nearest(ctx, limit)
		if err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			break // an image only saves time, so fold without it
		}
		if !ok || img.Head.Seq <= have || img.Head.Seq > limit {
			break
		}
		f, err := r.foldFrom(ctx, img, seq, saw)
		if err != nil || f != nil {
			return f, err
		}
		limit = img.Head.Seq - 1
	}
	if start == nil {
		start = projection.NewFold(r.set, r.src.Genesis())
	}
	return start, r.foldOn(ctx, start, seq, saw)
}

// foldFrom is foldTo from img. It returns nil if img does not match the log or the
// projections. One iterator serves the check and the fold, because opening one costs
// as much as folding hundreds of entries.
func (r *Replay) foldFrom(ctx context.Context, img projection.Image, seq eventlog.Seq, saw func(*projection.Fold)) (*projection.Fold, error) {
	var f *projection.Fold
	for e, err := range r.src.Entries(ctx, img.Head.Seq) {
		if err != nil {
			return nil, fmt.Errorf("replay: read from entry %d: %w", img.Head.Seq, err)
		}
		if f == nil {
			// An image with a later time than its entry has already advanced beyond the
			// entry's instant.
			if e.Head() != img.Head || e.At != img.At {
				return nil, nil
			}
			if f, err = projection.RestoreFold(r.set.Core(), img); err != nil {
				return nil, nil // an image that cannot be restored is skipped
			}
			if f, err = r.withApart(ctx, f); err != nil {
				return nil, err
			}
		} else if err := r.apply(f, &e, saw); err != nil {
			return nil, err
		}
		if e.Seq >= seq {
			return f, nil
		}
	}
	return nil, r.ended(ctx, img.Head.Seq, seq)
}

func (r *Replay) apply(f *projection.Fold, e *eventlog.Entry, saw func(*projection.Fold)) error {
	if err := f.Apply(e); err != nil {
		return fmt.Errorf("replay: %w", err)
	}
	if saw != nil {
		saw(f)
	}
	return nil
}

// ended returns the error for a source that has fewer entries than its Head says.
func (r *Replay) ended(ctx context.Context, after, want eventlog.Seq) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return fmt.Errorf("replay: the entries of %s end after %d, before %d", r.src.Name(), after, want)
}

func (r *Replay) foldOn(ctx context.Context, f *projection.Fold, to eventlog.Seq, saw func(*projection.Fold)) error {
	if f.Head().Seq >= to {
		return nil
	}
	for e, err := range r.src.Entries(ctx, f.Head().Seq+1) {
		if err != nil {
			return fmt.Errorf("replay: read after entry %d: %w", f.Head().Seq, err)
		}
		if err := r.apply(f, &e, saw); err != nil {
			return err
		}
		if e.Seq >= to {
			return nil
		}
	}
	return r.ended(ctx, f.Head().Seq, to)
}
