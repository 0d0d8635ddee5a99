// Package replay travels in time through a recorded session.
//
// A [Replay] is a session's entries, the projections to fold them with and,
// if there are any, saved images to start from. It answers what the state was
// at any [Moment] ([Replay.At]), what commands a stretch of it gave
// ([Replay.Commands]), where something is first true ([Replay.Scan]) or first
// wrong ([Replay.Bisect]). A [Cursor] stands at one moment and steps. An
// [Address] is how a person writes a moment.
//
// # Moments
//
// A [Moment] is a Seq and an offset in session time: the state after that
// entry, offset later. Nothing happens to it any more once the log has it, so
// a moment never changes its meaning. Its offset ends where the next entry
// begins; after the last entry time goes on without end.
//
// The instant of a moment is complete: what is due exactly then has happened,
// also what the entry itself made due at its own time. So the state at 812 is
// that of applying entry 812 and advancing to its At.
//
// # Cost
//
// A jump costs one image and at most the entries from there on; a scan is one
// pass. Nothing here keeps more than a fixed number of images, however long
// the session is.
//
// # Trust
//
// An image is used only if the log's entry at its Seq has the image's hash and
// time; otherwise an earlier one is tried, and in the end the session is folded
// from its beginning. The entries themselves are believed: verifying the chain
// is the log's task.
package replay

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/snapshot"
)

// Source is a recorded session, as far as it is durable.
type Source interface {
	// Name returns the session's name.
	Name() string

	// Head returns the place of the last entry, now. It may grow.
	Head() eventlog.Head

	// Genesis returns the hash of Seq 0.
	Genesis() eventlog.Hash

	// Entries yields the entries from a Seq on in order and without gaps, up to
	// the Head of now or later; from is 1 at least. After an error it ends.
	// Several may run at once. An entry is the consumer's, its slices are
	// immutable.
	Entries(ctx context.Context, from eventlog.Seq) iter.Seq2[eventlog.Entry, error]
}

// Origin is what a [Source] may have besides: the wall clock's time at session
// time zero. Without it moments have no time of day.
type Origin interface {
	// Origin reports false when the session has no wall clock.
	Origin() (time.Time, bool)
}

// Snapshots finds saved images.
type Snapshots interface {
	// Nearest returns an image with the greatest Seq at or below seq, or
	// false. The image must not change.
	Nearest(ctx context.Context, seq eventlog.Seq) (projection.Image, bool, error)
}

// Stored returns the images of src's session in store that are of set.
// Whether an image is of src's chain the [Replay] finds out by itself.
func Stored(store *snapshot.Store, src Source, set projection.Set) Snapshots {
	return stored{store, src.Name(), set}
}

type stored struct {
	store   *snapshot.Store
	session string
	set     projection.Set
}

func (s stored) Nearest(_ context.Context, seq eventlog.Seq) (projection.Image, bool, error) {
	// The fold has to read the log from the image on in any case, and sees
	// there whether it fits; asking the log here would read it twice.
	return s.store.Nearest(s.session, seq, s.set, func(eventlog.Head) bool { return true })
}

// entryAt returns one entry, or false beyond the end.
func entryAt(ctx context.Context, src Source, seq eventlog.Seq) (eventlog.Entry, bool, error) {
	if seq > src.Head().Seq {
		return eventlog.Entry{}, false, nil
	}
	for e, err := range src.Entries(ctx, seq) {
		return e, err == nil, err
	}
	return eventlog.Entry{}, false, nil
}

// Replay is a recorded session to travel in. It is safe for concurrent use if
// its Source and Snapshots are; the folds and cursors it returns are not.
type Replay struct {
	src   Source
	set   projection.Set
	snaps Snapshots // nil: always from the beginning
}

// Open returns a Replay of src with the projections of set, which must pass
// [projection.Set.Check]. A nil snaps folds from the beginning every time.
func Open(src Source, set projection.Set, snaps Snapshots) *Replay {
	return &Replay{src: src, set: set, snaps: snaps}
}

// Head returns the session's last place, now.
func (r *Replay) Head() eventlog.Head { return r.src.Head() }

// At returns the state at m, which belongs to the caller. The error is
// [ErrNoAddress] when the session has no such moment.
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

// instant returns the session time of m, whose entry is at base, and makes
// sure that it is not beyond the next entry.
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

// reach is how many entries are folded on before an image is looked for:
// loading one costs about as much.
const reach = snapshot.DefaultInterval

// foldTo returns the fold right after entry seq, without completing its
// instant, so that the fold's At is the entry's. It goes on from start, which
// may be nil, unless an image is nearer; saw, if not nil, is called after each
// entry.
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
			break // an image saves time and nothing else
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

// foldFrom is foldTo from img, or nil when img does not fit the log or the
// projections. One reading does both, for opening one costs as much as folding
// hundreds of entries.
func (r *Replay) foldFrom(ctx context.Context, img projection.Image, seq eventlog.Seq, saw func(*projection.Fold)) (*projection.Fold, error) {
	var f *projection.Fold
	for e, err := range r.src.Entries(ctx, img.Head.Seq) {
		if err != nil {
			return nil, fmt.Errorf("replay: read from entry %d: %w", img.Head.Seq, err)
		}
		if f == nil {
			// An image of a later time than its entry's would be a state too
			// far on.
			if e.Head() != img.Head || e.At != img.At {
				return nil, nil
			}
			if f, err = projection.RestoreFold(r.set, img); err != nil {
				return nil, nil // an image that cannot be restored is passed over
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

// ended is the error of a source that has fewer entries than its Head says.
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
