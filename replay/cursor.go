package replay

import (
	"context"
	"time"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
)

// cursorImages bounds the images a [Cursor] keeps.
const cursorImages = 8

// cursorBytes bounds the bytes of these images.
const cursorBytes = 64 << 20

// Cursor is a movable position in a session. It keeps a few images of the moments it
// has visited, so a step back costs at most one interval of folding. It is not safe
// for concurrent use.
type Cursor struct {
	r      *Replay
	fold   *projection.Fold // at pos
	pos    Moment
	base   time.Duration      // of the entry at pos
	images []projection.Image // at multiples of the interval, in the order they were taken
}

// Cursor returns a cursor at the beginning of the session.
func (r *Replay) Cursor() *Cursor {
	return &Cursor{r: r, fold: projection.NewFold(r.set, r.src.Genesis())}
}

// Moment returns the position of the cursor.
func (c *Cursor) Moment() Moment { return c.pos }

// Fold returns the state at the cursor. It belongs to the cursor and is valid until
// the cursor moves; the caller must not change it.
func (c *Cursor) Fold() *projection.Fold { return c.fold }

// Seek moves to m. The error is [ErrNoAddress] when the session has no such
// moment; the cursor then does not move. After any other error (a failed read, a
// cancelled context) the cursor is at the beginning.
func (c *Cursor) Seek(ctx context.Context, m Moment) error {
	if err := c.r.checkSeq(m); err != nil {
		return err
	}
	base, err := c.r.atOf(ctx, m.Seq)
	if err != nil {
		return err
	}
	at, err := c.r.instant(ctx, m, base)
	if err != nil {
		return err
	}
	f, err := c.r.foldTo(ctx, m.Seq, c.start(m), c.saw)
	if err != nil {
		c.reset()
		return err
	}
	f.Advance(at)
	c.fold, c.pos, c.base = f, m, base
	return nil
}

// reset moves the cursor to the beginning: after an error the position of the fold is
// unknown.
func (c *Cursor) reset() {
	c.fold, c.pos, c.base = projection.NewFold(c.r.set, c.r.src.Genesis()), Moment{}, 0
}

// start returns the nearest fold at or before m in memory, or nil.
func (c *Cursor) start(m Moment) *projection.Fold {
	if c.pos.Compare(m) > 0 {
		return c.kept(m.Seq)
	}
	if f := c.kept(m.Seq); f != nil && f.Head().Seq > c.pos.Seq {
		return f
	}
	return c.fold
}

// kept returns the fold of the latest image at or before seq, or nil.
func (c *Cursor) kept(seq eventlog.Seq) *projection.Fold {
	var best *projection.Image
	for i := range c.images {
		if s := c.images[i].Head.Seq; s <= seq && (best == nil || s > best.Head.Seq) {
			best = &c.images[i]
		}
	}
	if best == nil {
		return nil
	}
	f, err := projection.RestoreFold(c.r.set, *best)
	if err != nil {
		return nil // folding from an older image gives the same state
	}
	return f
}

// saw keeps an image of f at each multiple of the interval, in place of the oldest.
func (c *Cursor) saw(f *projection.Fold) {
	seq := f.Head().Seq
	if seq%reach != 0 {
		return
	}
	for _, img := range c.images {
		if img.Head.Seq == seq {
			return
		}
	}
	c.images = append(c.images, f.Image())
	for len(c.images) > cursorImages || len(c.images) > 1 && imageBytes(c.images) > cursorBytes {
		c.images = append(c.images[:0], c.images[1:]...)
	}
}

// Step moves by n entries, back for a negative n. From a moment between two entries,
// the first step back leads to the earlier one. The error is [ErrNoAddress] if the
// session does not extend that far; the cursor then does not move.
func (c *Cursor) Step(ctx context.Context, n int) error {
	m := Moment{Seq: c.pos.Seq}
	if n >= 0 {
		m.Seq += eventlog.Seq(n)
		if n == 0 {
			m = c.pos
		}
		return c.Seek(ctx, m)
	}
	back := eventlog.Seq(-(n + 1)) + 1 // -n, also for the least int
	if c.pos.Offset > 0 {
		back--
	}
	if back > m.Seq {
		return noAddress(c.pos.String(), "there are only %d entries before it", m.Seq)
	}
	m.Seq -= back
	return c.Seek(ctx, m)
}

// StepTime moves by a span of session time, back for a negative one, but not
// before the beginning.
func (c *Cursor) StepTime(ctx context.Context, d time.Duration) error {
	at := c.base + c.pos.Offset
	to := max(at+d, 0)
	if d > 0 && to < at {
		return noAddress(c.pos.String()+"+"+d.String(), "session time ends before that")
	}
	m, err := c.r.MomentAt(ctx, to)
	if err != nil {
		return err
	}
	return c.Seek(ctx, m)
}

// StepCommand moves to the next moment that has commands other than updates, or with
// a negative direction to the previous one. The error is [ErrNoAddress] if there is
// none; the cursor then does not move.
func (c *Cursor) StepCommand(ctx context.Context, direction int) error {
	if direction < 0 {
		return c.commandBefore(ctx)
	}
	from := c.pos
	var found *Moment
	err := c.r.commandMoments(ctx, c.fold, c.pos, c.base, c.r.src.Head().Seq, c.saw, func(m Moment) bool {
		found = &m
		return false
	})
	if err != nil {
		c.reset()
		return err
	}
	if found == nil {
		// The fold advanced to the end, and a fold cannot go back.
		c.reset()
		if err := c.Seek(ctx, from); err != nil {
			return err
		}
		return noAddress(from.String(), "no command comes after it")
	}
	c.pos, c.base = *found, c.fold.At()-found.Offset
	return nil
}

// commandBefore searches one interval after the other, the last first.
func (c *Cursor) commandBefore(ctx context.Context) error {
	for end, from := c.pos, chunkStart(c.pos.Seq); ; from = chunkStart(from) {
		start := Moment{Seq: from}
		base, err := c.r.atOf(ctx, from)
		if err != nil {
			return err
		}
		f, err := c.r.foldTo(ctx, from, c.kept(from), nil)
		if err != nil {
			return err
		}
		f.Advance(base)
		var found *Moment
		err = c.r.commandMoments(ctx, f, start, base, end.Seq, c.saw, func(m Moment) bool {
			if m.Compare(c.pos) >= 0 || m.Compare(end) > 0 {
				return false
			}
			found = &m
			return true
		})
		if err != nil {
			return err
		}
		if found != nil {
			return c.Seek(ctx, *found)
		}
		if from == 0 {
			return noAddress(c.pos.String(), "no command comes before it")
		}
		end = start
	}
}
