// Package debugger steps through a recorded session on a terminal: it shows the stage,
// the entries around the cursor, a part of the state, the running performances and the
// director's board, and moves between them by keys, forwards and backwards.
//
// A [Debugger] is the model. It reads no keyboard and no clock, and starts no goroutine:
// the caller passes keys as text ([Debugger.Key]) and the time ([Debugger.Tick]), and
// shows the text of [Debugger.View]. Every movement is [Work], because it can take long:
// the caller runs it where it does not block the keyboard, and reports its result with
// [Debugger.Done]. Until then the debugger shows what was there before, and the progress.
//
// # Invariants
//
//   - The same session, size and keys give the same text on every machine.
//   - One piece of work is under way at a time, and only it reads the session.
//   - No line of a view is wider than the window, and a view has no more lines. Text of
//     the recording reaches the terminal without control characters.
//
// docs/glossary.md has the nouns of all packages.
package debugger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/stage"
	"github.com/sajou-dev/sajou-go/stage/film"
	"github.com/sajou-dev/sajou-go/stage/picture"
)

// StopCondition is a compiled expression: what a run stops at.
type StopCondition struct {
	Needs replay.Needs
	Holds func(ctx context.Context, s *replay.ScanStep) (bool, error)
}

// NamedMoment is a named moment of the session.
type NamedMoment struct {
	Name string
	At   replay.Moment
}

// Config configures a [Debugger].
type Config struct {
	From, To replay.Moment // the range; see [replay.PlayerConfig]
	Rate     float64       // session time for one unit of clock time; 0 plays without waiting
	Frame    time.Duration // session time between two frames; at least a millisecond
	Idle     time.Duration // longest clock time without a change; 0 means no pause
	Color    bool
	Inspect  string // the path of the state that is shown first; "" means stage.entities

	// Compile compiles an expression, to run to or to pause on. Nil refuses expressions.
	Compile func(expr string) (StopCondition, error)

	// PauseOn is an expression at whose beginnings playing pauses. "" for none.
	PauseOn string

	// View returns the view that an agent had been sent by a moment, as a value for JSON.
	// It is shown for the path view:AGENT. Nil refuses such paths.
	View func(ctx context.Context, agent string, at replay.Moment) (any, error)

	// Bookmarks returns the bookmarks of the session. Nil means none.
	Bookmarks func() ([]NamedMoment, error)

	// Mark names a moment. Nil refuses to.
	Mark func(name string, at replay.Moment) error
}

// Debugger is a session on a terminal. Its methods must not be called at the same time.
type Debugger struct {
	cfg    Config
	travel *replay.Replay
	player *replay.Player
	pause  *StopCondition // of Config.PauseOn

	cols, rows int
	rate       float64
	busy       *Work    // under way
	queued     []string // keys that came during short work
	progress   string   // of busy
	note       string   // shown until the next key
	prompt     *prompt
	help       bool
	helpTop    int    // the first line of the help that is shown
	path       string // of the inspected state
	pinned     *pin
	differ     bool         // show the difference to pinned
	errors     []bool       // of Index
	indexed    eventlog.Seq // the entries that errors divides
	quit       bool
	err        error
	search     string // the last text that was searched
	target     string // the last condition that was run to
	stopAt     *replay.Moment
	stopKnown  bool // stopAt is the next moment of Config.PauseOn, nil for none

	// The position, as the work that ended last has left it.
	fold  *projection.Fold // of the player; it changes with the next work
	seen  scenery
	stale bool   // entries and bookmarks are read again
	text  string // of the stage as the player's screen saw it last
	state replay.PlayerState
}

// scenery is what is shown of a position.
type scenery struct {
	at      replay.Moment
	frame   *stage.Frame
	entries []entryLine
	running []string
	board   []string
	value   []string
	marks   []NamedMoment
}

// pin is the remembered moment A.
type pin struct {
	at    replay.Moment
	value any
	path  string
}

// New returns a debugger that pauses at the beginning of its range.
func New(ctx context.Context, travel *replay.Replay, cfg Config) (*Debugger, error) {
	d := &Debugger{cfg: cfg, travel: travel, rate: cfg.Rate, path: cfg.Inspect}
	if d.path == "" {
		d.path = "stage.entities"
	}
	if d.cfg.Frame < time.Millisecond {
		d.cfg.Frame = time.Millisecond
	}
	if cfg.PauseOn != "" {
		c, err := d.compile(cfg.PauseOn)
		if err != nil {
			return nil, err
		}
		d.pause = &c
	}
	err := d.open(ctx, cfg.From)
	if err == nil {
		d.seen, err = d.look(ctx)
		d.state = d.player.State()
	}
	return d, err
}

// open makes the player, at m.
func (d *Debugger) open(ctx context.Context, m replay.Moment) error {
	idle := d.cfg.Idle
	if idle == 0 {
		idle = -1 // no pause
	}
	var err error
	d.player, err = replay.NewPlayer(ctx, d.travel, replay.PlayerConfig{
		From: d.cfg.From, To: d.cfg.To, Rate: d.rate, Idle: idle, Frame: d.cfg.Frame, Screen: d,
	})
	if err == nil && m != d.cfg.From {
		err = d.player.Seek(ctx, m)
	}
	return err
}

// Grow returns the work that replaces the session by one that has more entries, and the
// end of the range by its end. The position stays; playing goes on, also from an end that
// is none any more. It returns nil, and does nothing, while other work is under way.
func (d *Debugger) Grow(travel *replay.Replay) *Work {
	if d.busy != nil {
		return nil
	}
	at, playing := d.state.Moment, d.state.Playing || d.state.Ended
	d.travel = travel
	d.stopKnown, d.stopAt, d.stale = false, nil, true
	return d.begin(&Work{Label: "follow", do: func(ctx context.Context, _ func(string)) (replay.Moment, error) {
		end, err := travel.Rest(ctx, replay.Moment{Seq: travel.Head().Seq})
		if err != nil {
			return at, err
		}
		d.cfg.To = end
		if err := d.open(ctx, at); err != nil {
			return at, err
		}
		if playing {
			d.player.Play()
		}
		return at, nil
	}})
}

// Show implements [replay.Screen].
func (d *Debugger) Show(f *projection.Fold, _ replay.Moment) (changed bool, err error) {
	frame, err := film.FrameOf(f)
	if err != nil {
		return false, err
	}
	d.fold = f
	text := picture.Terminal(frame, 80, 22, false)
	changed, d.text = text != d.text, text
	return changed, nil
}

// Play makes the position move with the clock.
func (d *Debugger) Play() { d.player.Play(); d.state.Playing = true }

// Playing reports whether the position moves with the clock.
func (d *Debugger) Playing() bool { return d.state.Playing }

// Ended reports whether the user wants to leave, and the error that ends the program.
func (d *Debugger) Ended() (bool, error) { return d.quit || d.err != nil, d.err }

// Moment returns the position.
func (d *Debugger) Moment() replay.Moment { return d.state.Moment }

// Resize sets the size of the window in cells.
func (d *Debugger) Resize(cols, rows int) {
	d.cols, d.rows = min(max(cols, 0), 1000), min(max(rows, 0), 1000)
}

// Work is a computation that a key, or the time, has asked for. Run may be called on
// another goroutine, and only once.
type Work struct {
	// Label says what is done.
	Label string

	// Long is false for steps that usually take no longer than a frame.
	Long bool

	do func(ctx context.Context, report func(string)) (replay.Moment, error)
}

// WorkResult is the outcome of a [Work], for [Debugger.Done].
type WorkResult struct {
	seen scenery
	note string
	err  error
}

// Run does the work. Report receives short texts of its progress, and may be nil. When
// ctx ends, Run soon returns, and the debugger stays where it was.
func (d *Debugger) Run(ctx context.Context, w *Work, report func(string)) WorkResult {
	if report == nil {
		report = func(string) {}
	}
	before := d.player.State().Moment
	m, err := w.do(ctx, report)
	if err == nil && m != d.player.State().Moment {
		err = d.player.Seek(ctx, m)
	}
	r := WorkResult{}
	if err == nil {
		r.seen, err = d.look(ctx)
	}
	if r.err = err; err == nil {
		return r
	}
	// A player that could not move may be at the beginning: back to where it was.
	if d.player.State().Moment != before {
		ctx = context.WithoutCancel(ctx)
		if d.player.Seek(ctx, before) != nil {
			return r
		}
	}
	r.seen = d.seen
	switch {
	case errors.Is(err, context.Canceled):
		r.note, r.err = "stopped: "+w.Label, nil
	case errors.Is(err, replay.ErrNoAddress), errors.Is(err, replay.ErrSyntax), errors.Is(err, errNotFound):
		r.note, r.err = err.Error(), nil
	}
	return r
}

// errNotFound is wrapped by the errors of a search without a result.
var errNotFound = errors.New("not found")

func notFound(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errNotFound, fmt.Sprintf(format, args...))
}

// Report shows the progress of the work under way.
func (d *Debugger) Report(text string) { d.progress = text }

// Busy reports whether a piece of work is under way that the keyboard can end.
func (d *Debugger) Busy() bool { return d.busy != nil && d.busy.Long }

// Done takes the result of work. It returns the work of a key that came meanwhile, nil
// for none.
func (d *Debugger) Done(r WorkResult) *Work {
	d.busy, d.progress = nil, ""
	d.state = d.player.State()
	if r.seen.frame != nil {
		d.seen = r.seen
	}
	if r.note != "" {
		d.note = r.note
	}
	if r.err != nil && d.err == nil {
		d.err = r.err
	}
	for len(d.queued) > 0 && d.busy == nil {
		key := d.queued[0]
		d.queued = d.queued[1:]
		if w := d.Key(key); w != nil {
			return w
		}
	}
	return nil
}

// begin makes w the work under way.
func (d *Debugger) begin(w *Work) *Work {
	d.busy = w
	return w
}

// Tick returns the work of the time that has passed on the caller's clock, nil if the
// position does not move, or if other work is under way.
func (d *Debugger) Tick(now time.Duration) *Work {
	if d.busy != nil || !d.state.Playing {
		return nil
	}
	if d.pause != nil && !d.stopKnown {
		return d.begin(d.findStop())
	}
	return d.begin(&Work{Label: "play", do: func(ctx context.Context, _ func(string)) (replay.Moment, error) {
		return d.pass(ctx, now)
	}})
}

// pass lets the player go on to a time of the clock, but not beyond a moment at which it
// pauses.
func (d *Debugger) pass(ctx context.Context, now time.Duration) (replay.Moment, error) {
	var err error
	if d.rate > 0 {
		err = d.player.Tick(ctx, now)
	} else {
		_, err = d.player.Next(ctx)
	}
	at := d.player.State().Moment
	if stop := d.stopAt; stop != nil && at.Compare(*stop) >= 0 {
		d.player.Pause()
		d.stopKnown, d.stopAt = false, nil
		return *stop, err
	}
	if d.player.State().Ended {
		d.stopKnown, d.stopAt = false, nil
	}
	return at, err
}

// findStop looks for the next moment at which playing pauses.
func (d *Debugger) findStop() *Work {
	return &Work{Label: "look for " + d.cfg.PauseOn, Long: true, do: func(ctx context.Context, report func(string)) (replay.Moment, error) {
		at := d.player.State().Moment
		m, err := d.next(ctx, *d.pause, 1, report)
		switch {
		case errors.Is(err, errNotFound):
			d.stopKnown, d.stopAt = true, nil
		case err != nil:
			return at, err
		default:
			d.stopKnown, d.stopAt = true, &m
		}
		return at, nil
	}}
}

// Index returns a function that looks for the errors of the session, which the scrub bar
// shows. It may run beside other work. [Debugger.Indexed] takes its result.
func (d *Debugger) Index() func(context.Context) []bool {
	travel := d.travel
	last := travel.Head().Seq
	d.indexed = last
	return func(ctx context.Context) []bool { return errorsOf(ctx, travel, last, scrubCells) }
}

// Indexed sets the result of [Debugger.Index].
func (d *Debugger) Indexed(errs []bool) { d.errors = errs }

// Fail ends the debugger with an error.
func (d *Debugger) Fail(err error) {
	if d.err == nil {
		d.err = err
	}
}
