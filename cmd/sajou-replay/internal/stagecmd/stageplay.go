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
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/stage"
	"github.com/sajou-dev/sajou-go/stage/film"
	"github.com/sajou-dev/sajou-go/stage/picture"
)

// playStage plays the stage: on a terminal animated in place and with keys,
// otherwise as a sequence of texts. Without a keyboard an animation could neither be
// controlled nor ended, so stdin must be a terminal too.
func playStage(ctx context.Context, a *cli.App, s *film.Reel, first, last replay.Moment, p Pace) error {
	cfg := replay.PlayerConfig{From: first, To: last, Frame: p.frame()}
	if a.IsInteractive() {
		return viewStage(ctx, a, s, cfg, p)
	}
	texts := stageTexts{app: a, name: s.Name(), pace: p}
	texts.cols, texts.rows = textSize()
	cfg.Screen = &texts
	texts.ctx = ctx
	player, err := replay.NewPlayer(ctx, s.Travel(), cfg)
	for more := err == nil; more; {
		more, err = player.Next(ctx)
	}
	return err
}

// stageTexts writes the frames of a player as texts, each at its time, and leaves out
// those that equal the one before.
type stageTexts struct {
	ctx        context.Context // of playStage; the method of a screen receives none
	app        *cli.App
	name       string
	pace       Pace
	cols, rows int

	text    string // the last one
	at      time.Duration
	written bool
}

var _ replay.Screen = (*stageTexts)(nil)

// Show implements [replay.Screen].
func (s *stageTexts) Show(fold *projection.Fold, m replay.Moment) (changed bool, err error) {
	f, err := film.FrameOf(fold)
	if err != nil {
		return false, err
	}
	text := strings.TrimRight(picture.Terminal(f, s.cols, s.rows, false), "\n") + "\n"
	between := ""
	if s.written {
		if text == s.text {
			return false, nil
		}
		if err := s.pace.wait(s.ctx, f.At-s.at); err != nil {
			return false, err
		}
		between = "\n"
	}
	s.text, s.at, s.written = text, f.At, true
	_, err = io.WriteString(s.app.Stdout, between+stageHead(s.name, m, f.At)+text)
	return true, err
}

// stageHead is the line above a frame in text.
func stageHead(name string, m replay.Moment, at time.Duration) string {
	return termtext.Printable(fmt.Sprintf("%s %v  %s", name, m, cli.ClockText(at))) + "\n"
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
func viewStage(ctx context.Context, a *cli.App, s *film.Reel, cfg replay.PlayerConfig, p Pace) error {
	v, err := newViewer(ctx, s, cfg, p)
	if err != nil {
		return err
	}
	v.color = os.Getenv("NO_COLOR") == ""
	// A signal or the context ends the program through Quit, like a key. Killing it
	// would make bubbletea close the keyboard under its own reader.
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	program := tea.NewProgram(v, tea.WithInput(a.Stdin), tea.WithOutput(a.Stdout), tea.WithoutSignalHandler())
	defer context.AfterFunc(ctx, program.Quit)()
	_, err = program.Run()
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

// viewer is the stage on a terminal, the screen of a player. Its methods run on the
// goroutine of bubbletea.
type viewer struct {
	ctx    context.Context // of viewStage; the methods of a model receive none
	name   string
	cfg    replay.PlayerConfig
	pace   Pace
	player *replay.Player
	color  bool

	interrupted bool
	err         error
	cols, rows  int

	began time.Time    // clock time of the first tick
	frame *stage.Frame // the present one
	text  string       // of the present frame
}

var _ replay.Screen = (*viewer)(nil)

// newViewer returns a viewer that plays.
func newViewer(ctx context.Context, s *film.Reel, cfg replay.PlayerConfig, p Pace) (*viewer, error) {
	v := &viewer{ctx: ctx, name: s.Name(), pace: p}
	cfg.Screen, cfg.Rate, cfg.Idle = v, p.Rate, p.Idle
	if cfg.Idle == 0 {
		cfg.Idle = -1 // no pause
	}
	v.cfg = cfg
	var err error
	if v.player, err = replay.NewPlayer(ctx, s.Travel(), cfg); err != nil {
		return nil, err
	}
	v.player.Play()
	return v, nil
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
		if v.began.IsZero() {
			v.began = now
		}
		v.failed(v.pass(now.Sub(v.began)))
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
		switch state := v.player.State(); {
		case state.Ended:
			v.failed(v.player.Seek(v.ctx, v.cfg.From))
			v.player.Play()
		case state.Playing:
			v.player.Pause()
		default:
			v.player.Play()
		}
	case "right", "l":
		v.failed(v.player.Step(v.ctx, 1))
	case "left", "h":
		v.failed(v.player.Step(v.ctx, -1))
	case "home", "g":
		v.jump(v.cfg.From)
	case "end", "G":
		v.jump(v.cfg.To)
	case "+", "=", "up":
		v.setRate(min(max(v.pace.Rate, 1.0/16)*2, 1024))
	case "-", "down":
		v.setRate(max(v.pace.Rate/2, 1.0/16))
	}
	return nil
}

func (v *viewer) failed(err error) {
	if err != nil && v.err == nil {
		v.err = err
	}
}

// pass lets the player go on up to a time of the clock. At a rate of 0 it shows the
// next frame instead, without waiting.
func (v *viewer) pass(now time.Duration) error {
	if v.pace.Rate > 0 {
		return v.player.Tick(v.ctx, now)
	}
	if !v.player.State().Playing {
		return nil
	}
	_, err := v.player.Next(v.ctx)
	return err
}

// jump goes to m, and pauses there.
func (v *viewer) jump(m replay.Moment) {
	v.player.Pause()
	v.failed(v.player.Seek(v.ctx, m))
}

func (v *viewer) setRate(rate float64) {
	v.pace.Rate = rate
	v.failed(v.player.SetRate(rate))
}

// Show implements [replay.Screen].
func (v *viewer) Show(fold *projection.Fold, _ replay.Moment) (changed bool, err error) {
	if v.frame, err = film.FrameOf(fold); err != nil {
		return false, err
	}
	before := v.text
	v.draw()
	return v.text != before, nil
}

// draw sets text to the present frame.
func (v *viewer) draw() {
	if v.cols > 0 && v.rows > 1 { // otherwise the size is not known yet
		v.text = picture.Terminal(v.frame, v.cols, v.rows-1, v.color)
	}
}

func (v *viewer) View() tea.View {
	state := v.player.State()
	sign := "▶"
	switch {
	case state.Ended:
		sign = "■"
	case !state.Playing:
		sign = "‖"
	}
	rate := fmt.Sprintf("x%g", v.pace.Rate)
	if v.pace.Rate == 0 {
		rate = "fast"
	}
	line := termtext.Printable(fmt.Sprintf("%s %s  %v  %s  %s", sign, v.name, state.Moment, cli.ClockText(state.At), rate))
	line += "   space pause  ←/→ entry  +/- rate  q quit"
	if n := []rune(line); len(n) > v.cols {
		line = string(n[:max(v.cols, 0)])
	}
	rows := strings.Count(v.text, "\n")
	view := tea.NewView(v.text + strings.Repeat("\n", max(v.rows-1-rows, 0)) + line)
	view.AltScreen = true
	return view
}
