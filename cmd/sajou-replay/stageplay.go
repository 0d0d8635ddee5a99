package main

import (
	"context"
	"fmt"
	"io"
	"iter"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	tea "charm.land/bubbletea/v2"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/stage/picture"
)

// playStage shows the moving stage: on a terminal in place and with keys, else
// as one text after the other.
func (a *app) playStage(ctx context.Context, s staged, over span, p pace) error {
	if isTerminal(a.stdout) {
		return a.viewStage(ctx, s, over, p)
	}
	cols, rows := textSize()
	var before string
	first := true
	at := over.from
	for shot, err := range s.moving(ctx, over, p.frame()) {
		if err != nil {
			return err
		}
		text := strings.TrimRight(picture.Terminal(shot.Frame, cols, rows, false), "\n") + "\n"
		if !first && text == before {
			continue
		}
		if !first {
			if err := pause(ctx, shot.At-at, p); err != nil {
				return err
			}
			text, before = "\n"+stageHead(s.name, shot)+text, text
		} else {
			text, before = stageHead(s.name, shot)+text, text
		}
		first, at = false, shot.At
		if _, err := io.WriteString(a.stdout, text); err != nil {
			return err
		}
	}
	return nil
}

// stageHead is the line above a picture in text.
func stageHead(name string, at shot) string {
	return printable(fmt.Sprintf("%s %v  %s", name, at.Moment, clockText(at.At))) + "\n"
}

// textSize is the size of a picture in text, as COLUMNS and LINES say it.
func textSize() (cols, rows int) {
	size := func(name string, otherwise int) int {
		n, err := strconv.Atoi(os.Getenv(name))
		if err != nil || n < 1 || n > 1000 {
			return otherwise
		}
		return n
	}
	return size("COLUMNS", 80), size("LINES", 24) - 2
}

// frame is the session time from one frame to the next. Without any there are
// ten a second: a stage that does not move is a picture.
func (p pace) frame() time.Duration {
	if p.fps > 0 {
		return max(time.Duration(float64(time.Second)/p.fps), time.Millisecond)
	}
	return time.Second / 10
}

// pause lets session time pass.
func pause(ctx context.Context, d time.Duration, p pace) error {
	if p.rate == 0 || d <= 0 {
		return ctx.Err()
	}
	if scaled := float64(d) / p.rate; scaled < float64(p.idle) {
		d = time.Duration(scaled)
	} else {
		d = p.idle
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// moving shows a range frame by frame, and at each entry. Where nothing moves,
// and after framesAfter without an entry, it goes on with what comes next.
func (s staged) moving(ctx context.Context, over span, step time.Duration) iter.Seq2[shot, error] {
	return func(yield func(shot, error) bool) {
		fold, err := s.travel.At(ctx, over.first)
		if err != nil {
			yield(shot{}, err)
			return
		}
		next, stop := iter.Pull2(s.log.Entries(ctx, over.first.Seq+1))
		defer stop()
		entryAt := over.from - over.first.Offset
		show := func() bool {
			f, err := frameOf(fold)
			return yield(shot{replay.Moment{Seq: fold.Head().Seq, Offset: fold.At() - entryAt}, fold.At(), f}, err) && err == nil
		}
		if !show() {
			return
		}
		for {
			e, err, more := next()
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				yield(shot{}, err)
				return
			}
			until := over.to
			last := !more || e.Seq > over.last.Seq
			if !last {
				until = e.At
			}
			for t := fold.At(); ; {
				if t = s.nextFrame(fold, t, step); t >= until || t-entryAt > framesAfter {
					break
				}
				fold.Advance(t)
				if ctx.Err() != nil || !show() {
					return
				}
			}
			if last {
				fold.Advance(until)
				show()
				return
			}
			if err := fold.Apply(&e); err != nil {
				yield(shot{}, err)
				return
			}
			fold.Advance(e.At)
			entryAt = e.At
			if !show() {
				return
			}
		}
	}
}

// nextFrame returns when after t the stage has to be looked at again: at the
// next frame if anything moves, else at the first one at which something will
// have happened.
func (s staged) nextFrame(fold *projection.Fold, t, step time.Duration) time.Duration {
	after := t
	if !sajou.Moving(fold) {
		at, ok := nextBoundary(fold)
		if !ok {
			return 1<<63 - 1
		}
		after = max(after, at-1)
	}
	if n := after/step + 1; n < (1<<63-1)/step {
		return n * step
	}
	return 1<<63 - 1
}

// nextBoundary returns when the next step of any performance begins or ends.
func nextBoundary(fold *projection.Fold) (next time.Duration, ok bool) {
	for _, st := range fold.States() {
		if p, is := st.(replay.Performer); is {
			if at, has := p.NextBoundary(); has && (!ok || at < next) {
				next, ok = at, true
			}
		}
	}
	return next, ok
}

// viewStage shows the stage on a terminal. Whatever ends it, bubbletea leaves
// the terminal as it was.
func (a *app) viewStage(ctx context.Context, s staged, over span, p pace) error {
	v := &viewer{ctx: ctx, s: s, over: over, pace: p, cursor: s.travel.Cursor(), color: os.Getenv("NO_COLOR") == ""}
	if err := v.seek(over.first); err != nil {
		return err
	}
	var keys io.Reader
	if f, ok := a.stdin.(*os.File); ok && isTerminal(f) {
		keys = f
	}
	// What ends it from outside goes through the program like a key: when it is
	// killed, bubbletea closes the keyboard under its own reader.
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	program := tea.NewProgram(v, tea.WithInput(keys), tea.WithOutput(a.stdout), tea.WithoutSignalHandler())
	defer context.AfterFunc(ctx, program.Quit)()
	_, err := program.Run()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return fail(exitCannotRun, "the stage cannot be shown: %w", err)
	case v.interrupted:
		return context.Canceled
	}
	return v.err
}

// viewer is the stage on a terminal. Its methods run on one goroutine.
type viewer struct {
	ctx    context.Context // its methods get none; it lives as long as one viewing
	s      staged
	over   span
	pace   pace
	cursor *replay.Cursor
	color  bool

	at          time.Duration // session time that is shown
	paused      bool
	interrupted bool
	err         error
	cols, rows  int

	drawn time.Time // when the last frame was made, by the clock
	still time.Duration
	text  string
}

// frameMsg asks for the next frame, at a time of the clock.
type frameMsg time.Time

func (v *viewer) Init() tea.Cmd { return v.tick() }

// tick asks for the next frame. A terminal is not drawn more often than it can
// be seen.
func (v *viewer) tick() tea.Cmd {
	return tea.Tick(max(v.pace.frame(), time.Second/60), func(t time.Time) tea.Msg { return frameMsg(t) })
}

func (v *viewer) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		v.cols, v.rows = msg.Width, msg.Height
		v.draw()
	case frameMsg:
		now := time.Time(msg)
		elapsed := now.Sub(v.drawn)
		if v.drawn.IsZero() || elapsed < 0 {
			elapsed = 0
		}
		v.drawn = now
		if !v.paused && !v.ended() {
			v.pass(elapsed)
		}
		return v, v.then(v.tick())
	case tea.KeyPressMsg:
		return v, v.then(v.key(msg.String()))
	}
	return v, v.then(nil)
}

// then ends the viewing if something went wrong.
func (v *viewer) then(cmd tea.Cmd) tea.Cmd {
	if v.err != nil {
		return tea.Quit
	}
	return cmd
}

func (v *viewer) key(key string) tea.Cmd {
	switch key {
	case "q", "esc":
		return tea.Quit
	case "ctrl+c":
		v.interrupted = true
		return tea.Quit
	case "ctrl+z":
		return tea.Suspend
	case "space":
		if v.ended() {
			v.failed(v.seek(v.over.first)) // from the beginning
			v.paused = false
		} else {
			v.paused = !v.paused
		}
	case "right", "l":
		v.step(1)
	case "left", "h":
		v.step(-1)
	case "home", "g":
		v.paused = true
		v.failed(v.seek(v.over.first))
	case "end", "G":
		v.paused = true
		v.failed(v.seek(v.over.last))
	case "+", "=", "up":
		v.pace.rate = min(max(v.pace.rate, 1.0/16)*2, 1024)
	case "-", "down":
		v.pace.rate = max(v.pace.rate/2, 1.0/16)
	}
	return nil
}

func (v *viewer) failed(err error) {
	if err != nil && v.err == nil {
		v.err = err
	}
}

func (v *viewer) ended() bool { return v.at >= v.over.to }

// pass moves on by a span of the clock's time.
func (v *viewer) pass(elapsed time.Duration) {
	rate := v.pace.rate
	if rate == 0 {
		rate, elapsed = 1, v.pace.frame()
	}
	to := v.over.to
	if d := float64(elapsed) * rate; d < float64(to-v.at) {
		to = v.at + time.Duration(d)
	}
	before := v.text
	v.failed(v.seekTime(to))
	if v.text != before {
		v.still = 0
		return
	}
	// A pause is cut where it gets too long.
	if v.still += elapsed; v.still <= v.pace.idle || sajou.Moving(v.cursor.Fold()) {
		return
	}
	v.still = 0
	next := v.over.to
	if e, err := v.s.log.Entry(v.ctx, v.cursor.Moment().Seq+1); err == nil {
		next = min(next, e.At)
	}
	if at, ok := nextBoundary(v.cursor.Fold()); ok {
		next = min(next, at)
	}
	v.failed(v.seekTime(max(next, v.at)))
}

func (v *viewer) seekTime(at time.Duration) error {
	if at >= v.over.to {
		return v.seek(v.over.last)
	}
	m, err := v.s.travel.MomentAt(v.ctx, at)
	if err != nil {
		return err
	}
	return v.seek(m)
}

func (v *viewer) seek(m replay.Moment) error {
	if err := v.cursor.Seek(v.ctx, m); err != nil {
		return err
	}
	v.at = v.cursor.Fold().At()
	v.draw()
	return nil
}

// step goes to the next entry, or back to the one before, and stays there.
func (v *viewer) step(n int) {
	v.paused = true
	m := v.cursor.Moment()
	switch {
	case n > 0:
		m = momentOf(m.Seq + 1)
	case m.Offset > 0:
		m = momentOf(m.Seq)
	case m.Seq > 0:
		m = momentOf(m.Seq - 1)
	}
	if m.Compare(v.over.last) > 0 {
		m = v.over.last
	}
	if m.Compare(v.over.first) < 0 {
		m = v.over.first
	}
	v.failed(v.seek(m))
}

// draw makes the text of the stage as it is now.
func (v *viewer) draw() {
	if v.cols < 1 || v.rows < 2 {
		return // the size is not known yet
	}
	f, err := frameOf(v.cursor.Fold())
	if err != nil {
		v.failed(err)
		return
	}
	v.text = picture.Terminal(f, v.cols, v.rows-1, v.color)
}

func (v *viewer) View() tea.View {
	sign := "▶"
	switch {
	case v.ended():
		sign = "■"
	case v.paused:
		sign = "‖"
	}
	rate := fmt.Sprintf("x%g", v.pace.rate)
	if v.pace.rate == 0 {
		rate = "fast"
	}
	line := printable(fmt.Sprintf("%s %s  %v  %s  %s", sign, v.s.name, v.cursor.Moment(), clockText(v.at), rate))
	line += "   space pause  ←/→ entry  +/- rate  q quit"
	if n := []rune(line); len(n) > v.cols {
		line = string(n[:max(v.cols, 0)])
	}
	rows := strings.Count(v.text, "\n")
	view := tea.NewView(v.text + strings.Repeat("\n", max(v.rows-1-rows, 0)) + line)
	view.AltScreen = true
	return view
}
