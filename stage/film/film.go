// Package film draws the stage of a recorded session over time: single frames
// at a moment, a frame for each entry or each step of session time, contact
// sheets, animated GIFs and frames of text for a terminal.
//
// A [Reel] is a session whose stage is drawn, an [Interval] a range of it with the
// session times of its ends, a [Shot] one frame of it with its moment.
//
// # Invariants
//
//   - The same reel, interval and style give the same bytes on every machine: the
//     package reads neither the clock nor the environment.
//   - A film is folded in one pass. Instants must not decrease.
//   - A session with an episode shows the user and the character with their last messages,
//     in every picture of a Reel.
//   - The constants below bound the size of a film or a sheet. A request that exceeds a
//     bound is refused with a [BoundError] before it is drawn.
//
// It reads sessions and writes pictures to a writer that the caller owns. It
// opens no store and creates no file.
//
// docs/glossary.md has the nouns of all packages.
package film

import (
	"context"
	"fmt"
	"iter"
	"math"
	"time"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/stage"
	"github.com/sajou-dev/sajou-go/stage/scene"
)

// The bounds of drawings. Without them a short request could take all memory or hours.
const (
	MinWidth    = 16
	MaxWidth    = 8192
	MaxGIFWidth = 2048

	MaxPixels     = MaxWidth * 4608 // of one picture
	maxFilmPixels = 8_000_000_000   // of all pictures of a film
	maxPictures   = 5000            // of a film
	MaxSheet      = 400             // pictures of a contact sheet
	maxSheetShown = 1_000_000       // figures and beams of all pictures of a contact sheet
)

// BoundError reports that a drawing would exceed a bound of this package.
type BoundError struct{ Reason string }

func (e *BoundError) Error() string { return "film: " + e.Reason }

func limited(format string, args ...any) error { return &BoundError{fmt.Sprintf(format, args...)} }

// NoStageError reports that a fold has no stage to draw.
type NoStageError struct{ Seq eventlog.Seq }

func (e *NoStageError) Error() string {
	return fmt.Sprintf("film: the state at entry %d has no stage", e.Seq)
}

// FrameOf returns the frame of the stage of a fold.
func FrameOf(fold *projection.Fold) (*stage.Frame, error) {
	f := session.StageOf(fold).Frame()
	if f == nil {
		return nil, &NoStageError{fold.Head().Seq}
	}
	return f, nil
}

// Reel is a session whose stage is drawn. It is safe for concurrent use if its
// session is.
type Reel struct {
	log    RecordedEntries
	travel *replay.Replay
}

// RecordedEntries are the entries of a session: those of the log, or of its replay.
type RecordedEntries interface {
	Name() string
	Entry(ctx context.Context, seq eventlog.Seq) (eventlog.Entry, error)
	Entries(ctx context.Context, from eventlog.Seq) iter.Seq2[eventlog.Entry, error]
}

// Open returns the reel of a session as it was recorded.
func Open(log RecordedEntries, travel *replay.Replay) *Reel { return &Reel{log, travel} }

// OpenWith returns the reel of a session with sc in place of all recorded
// scenes. Its states are folded from the first entry, since saved images hold
// the recorded scenes.
func OpenWith(log *eventlog.SessionReader, sc *scene.Scene) *Reel {
	return &Reel{log, replay.Open(log, session.Projections(session.ProjectionConfig{Scene: sc}), nil)}
}

// Name returns the name of the session.
func (r *Reel) Name() string { return r.log.Name() }

// Travel returns the replay of the session that the reel draws.
func (r *Reel) Travel() *replay.Replay { return r.travel }

// Entry returns an entry of the session.
func (r *Reel) Entry(ctx context.Context, seq eventlog.Seq) (eventlog.Entry, error) {
	return r.log.Entry(ctx, seq)
}

// Shot is one picture of a film: the frame at a moment, with the session time of the
// moment.
type Shot struct {
	replay.Moment
	At    time.Duration
	Frame *stage.Frame
}

// Shot returns the picture of a moment.
func (r *Reel) Shot(ctx context.Context, m replay.Moment) (Shot, error) {
	fold, err := r.travel.At(ctx, m)
	if err != nil {
		return Shot{}, err
	}
	f, err := r.frame(ctx, fold)
	if err != nil {
		return Shot{}, err
	}
	return Shot{m, f.At, f}, nil
}

// ShotOf returns the picture of a fold of the reel's session that stands at a moment.
func (r *Reel) ShotOf(ctx context.Context, fold *projection.Fold, m replay.Moment) (Shot, error) {
	f, err := r.frame(ctx, fold)
	if err != nil {
		return Shot{}, err
	}
	return Shot{m, f.At, f}, nil
}

// frame returns the frame of a fold, with the characters of its episode if it has one.
func (r *Reel) frame(ctx context.Context, fold *projection.Fold) (*stage.Frame, error) {
	f, err := FrameOf(fold)
	if err != nil {
		return nil, err
	}
	if err := r.castEpisode(ctx, fold, f); err != nil {
		return nil, err
	}
	return f, nil
}

// Interval is a range of a session with the session times of its ends.
type Interval struct {
	First, Last replay.Moment
	From, To    time.Duration
}

// Interval returns the range from one moment to another.
func (r *Reel) Interval(ctx context.Context, first, last replay.Moment) (Interval, error) {
	from, err := r.timeOf(ctx, first)
	if err != nil {
		return Interval{}, err
	}
	to, err := r.timeOf(ctx, last)
	return Interval{first, last, from, to}, err
}

// timeOf returns the session time of a moment.
func (r *Reel) timeOf(ctx context.Context, m replay.Moment) (time.Duration, error) {
	if m.Seq == 0 {
		return m.Offset, nil
	}
	e, err := r.log.Entry(ctx, m.Seq)
	return e.At + m.Offset, err
}

// Every returns the session times of a film's pictures: one each step, and one
// at the end. It refuses more than maxPictures.
func (s Interval) Every(step time.Duration) ([]time.Duration, error) {
	n := int64(s.To-s.From)/int64(step) + 1
	last := s.From + time.Duration(n-1)*step
	if last < s.To {
		n++
	}
	if n > maxPictures {
		return nil, limited("%d pictures exceed the limit of %d", n, maxPictures)
	}
	at := make([]time.Duration, n)
	for i := range at {
		at[i] = s.From + time.Duration(i)*step
	}
	at[n-1] = s.To
	return at, nil
}

// Spread returns n session times, evenly from end to end. Where the interval allows
// it they are whole milliseconds, which make short addresses.
func (s Interval) Spread(n int) []time.Duration {
	at := make([]time.Duration, n)
	for i := range at {
		t := s.From + time.Duration(float64(s.To-s.From)*float64(i)/float64(max(n-1, 1)))
		if s.To-s.From >= time.Duration(n)*time.Millisecond {
			t = max(s.From, t.Truncate(time.Millisecond))
		}
		at[i] = t
	}
	at[n-1] = s.To
	return at
}

// Step returns the session time between two pictures of a film that shows fps pictures a
// second, while speed seconds of session time pass in each second of the film.
func Step(fps, speed float64) time.Duration {
	return max(time.Duration(math.Round(float64(time.Second)*speed/fps)), 1)
}
