package stagecmd

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/internal/termtext"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/stage/film"
	"github.com/sajou-dev/sajou-go/stage/picture"
)

// playStage plays the stage: on a terminal animated in place and with keys,
// elsewhere as a sequence of texts.
func playStage(ctx context.Context, a *cli.App, s *film.Reel, over film.Interval, p Pace) error {
	if cli.IsTerminal(a.Stdout) {
		return viewStage(ctx, a, s, over, p)
	}
	cols, rows := textSize()
	between := ""
	at := over.From
	for shown, err := range s.Text(ctx, over, p.frame(), cols, rows) {
		if err != nil {
			return err
		}
		if between != "" {
			if err := p.wait(ctx, shown.At-at); err != nil {
				return err
			}
		}
		if _, err := io.WriteString(a.Stdout, between+stageHead(s.Name(), shown.Shot)+shown.Text); err != nil {
			return err
		}
		between, at = "\n", shown.At
	}
	return nil
}

// stageHead is the line above a frame in text.
func stageHead(name string, at film.Shot) string {
	return termtext.Printable(fmt.Sprintf("%s %v  %s", name, at.Moment, cli.ClockText(at.At))) + "\n"
}

// textSize returns the size of a frame in text: COLUMNS by LINES, without the two
// lines around a frame.
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

// viewStage shows the stage on a terminal, and leaves the terminal as it was.
func viewStage(ctx context.Context, a *cli.App, s *film.Reel, over film.Interval, p Pace) error {
	v := &viewer{ctx: ctx, s: s, over: over, pace: p, cursor: s.Travel().Cursor(), color: os.Getenv("NO_COLOR") == ""}
	if err := v.seek(over.First); err != nil {
		return err
	}
	var keys io.Reader
	if f, ok := a.Stdin.(*os.File); ok && cli.IsTerminal(f) {
		keys = f
	}
	// A signal or the context ends the program through Quit, like a key. Killing it
	// would make bubbletea close the keyboard under its own reader.
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	program := tea.NewProgram(v, tea.WithInput(keys), tea.WithOutput(a.Stdout), tea.WithoutSignalHandler())
	defer context.AfterFunc(ctx, program.Quit)()
	_, err := program.Run()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return cli.Fail(cli.ExitCannotRun, "cannot show the stage: %w", err)
	case v.interrupted:
		return context.Canceled
	}
	return v.err
}

// viewer is the stage on a terminal. Its methods run on the goroutine of bubbletea.
type viewer struct {
	ctx    context.Context // of viewStage; the methods of a model receive none
	s      *film.Reel
	over   film.Interval
	pace   Pace
	cursor *replay.Cursor
	color  bool

	at          time.Duration // session time of the shown frame
	paused      bool
	interrupted bool
	err         error
	cols, rows  int

	drawn time.Time     // clock time of the last frame
	still time.Duration // clock time since the text last changed
	text  string
}

// frameMsg requests the next frame, at a clock time.
type frameMsg time.Time

func (v *viewer) Init() tea.Cmd { return v.tick() }

// tick requests the next frame, at most 60 a second.
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

// then quits after an error.
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
			v.failed(v.seek(v.over.First)) // from the beginning
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
		v.failed(v.seek(v.over.First))
	case "end", "G":
		v.paused = true
		v.failed(v.seek(v.over.Last))
	case "+", "=", "up":
		v.pace.Rate = min(max(v.pace.Rate, 1.0/16)*2, 1024)
	case "-", "down":
		v.pace.Rate = max(v.pace.Rate/2, 1.0/16)
	}
	return nil
}

func (v *viewer) failed(err error) {
	if err != nil && v.err == nil {
		v.err = err
	}
}

func (v *viewer) ended() bool { return v.at >= v.over.To }

// pass advances session time by a span of clock time.
func (v *viewer) pass(elapsed time.Duration) {
	rate := v.pace.Rate
	if rate == 0 {
		rate, elapsed = 1, v.pace.frame()
	}
	to := v.over.To
	if d := float64(elapsed) * rate; d < float64(to-v.at) {
		to = v.at + time.Duration(d)
	}
	before := v.text
	v.failed(v.seekTime(to))
	if v.text != before {
		v.still = 0
		return
	}
	// Skip the rest of a pause that is longer than --idle.
	if v.still += elapsed; v.still <= v.pace.Idle || session.StageOf(v.cursor.Fold()).Moving() {
		return
	}
	v.still = 0
	next := v.over.To
	if e, err := v.s.Entry(v.ctx, v.cursor.Moment().Seq+1); err == nil {
		next = min(next, e.At)
	}
	if at, ok := film.NextBoundary(v.cursor.Fold()); ok {
		next = min(next, at)
	}
	v.failed(v.seekTime(max(next, v.at)))
}

func (v *viewer) seekTime(at time.Duration) error {
	if at >= v.over.To {
		return v.seek(v.over.Last)
	}
	m, err := v.s.Travel().MomentAt(v.ctx, at)
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

// step goes to the entry after or before, and pauses there.
func (v *viewer) step(n int) {
	v.paused = true
	m := v.cursor.Moment()
	switch {
	case n > 0:
		m = cli.MomentOf(m.Seq + 1)
	case m.Offset > 0:
		m = cli.MomentOf(m.Seq)
	case m.Seq > 0:
		m = cli.MomentOf(m.Seq - 1)
	}
	if m.Compare(v.over.Last) > 0 {
		m = v.over.Last
	}
	if m.Compare(v.over.First) < 0 {
		m = v.over.First
	}
	v.failed(v.seek(m))
}

// draw sets text to the stage at the present moment.
func (v *viewer) draw() {
	if v.cols < 1 || v.rows < 2 {
		return // the size is not known yet
	}
	f, err := film.FrameOf(v.cursor.Fold())
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
	rate := fmt.Sprintf("x%g", v.pace.Rate)
	if v.pace.Rate == 0 {
		rate = "fast"
	}
	line := termtext.Printable(fmt.Sprintf("%s %s  %v  %s  %s", sign, v.s.Name(), v.cursor.Moment(), cli.ClockText(v.at), rate))
	line += "   space pause  ←/→ entry  +/- rate  q quit"
	if n := []rune(line); len(n) > v.cols {
		line = string(n[:max(v.cols, 0)])
	}
	rows := strings.Count(v.text, "\n")
	view := tea.NewView(v.text + strings.Repeat("\n", max(v.rows-1-rows, 0)) + line)
	view.AltScreen = true
	return view
}
