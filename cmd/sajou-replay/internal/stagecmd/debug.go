package stagecmd

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/internal/answer"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/stage/debugger"
	"github.com/sajou-dev/sajou-go/workspace"
)

// errNoTerminal is the error of play --stage without a terminal.
var errNoTerminal = cli.Misuse("play --stage needs a terminal for its keys; write the frames as text with: play --stage -o text")

// debugStage shows a session in the debugger, and leaves the terminal as it was.
func debugStage(ctx context.Context, a *cli.App, t *cli.OpenedSession, travel *replay.Replay, cfg debugger.Config, following *liveLog) error {
	cfg.Color = os.Getenv("NO_COLOR") == ""
	cfg.Compile = func(expr string) (debugger.StopCondition, error) {
		p, err := answer.Compile(expr)
		switch {
		case err != nil:
			return debugger.StopCondition{}, err
		case p.Reads(workspace.Name) && cfg.PauseOn == "":
			return debugger.StopCondition{}, errors.New("the files of the workspace can be named in --pause-on only")
		}
		return debugger.StopCondition{Needs: answer.Needs(&p.Expression), Holds: func(ctx context.Context, s *replay.ScanStep) (bool, error) {
			return p.Match(ctx, answer.InputOf(s))
		}}, nil
	}
	if agents, err := t.Engine.AgentHistory(t.Name); err == nil && following == nil {
		cfg.View = func(ctx context.Context, agent string, at replay.Moment) (any, error) {
			k, err := agents.ViewAt(ctx, agent, at)
			if err != nil {
				return nil, err
			}
			var view any
			err = json.Unmarshal(k.View.Value().AppendJSON(nil), &view)
			return view, err
		}
	}
	cfg.Bookmarks = func() (list []debugger.NamedMoment, err error) {
		book, err := a.Bookmarks()
		if err != nil {
			return nil, err
		}
		for b := range book.All(t.Name) {
			if travel.CheckAnchor(ctx, b.Anchor) == nil {
				list = append(list, debugger.NamedMoment{Name: b.Name, At: b.Moment()})
			}
		}
		return list, nil
	}
	cfg.Mark = func(name string, at replay.Moment) error {
		if following == nil {
			_, err := t.AddBookmark(ctx, name, "", at, false)
			return err
		}
		open, err := a.OpenSession(t.Name)
		if err != nil {
			return err
		}
		_, err = open.AddBookmark(ctx, name, "", at, false)
		return errors.Join(err, open.Close())
	}
	d, err := debugger.New(ctx, travel, cfg)
	if err != nil {
		return err
	}
	d.Play()
	// A signal or the context ends the program through Quit, like a key. Killing it
	// would make bubbletea close the keyboard under its own reader.
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	v := newDebugView(ctx, d, cfg.Frame)
	v.following = following
	program := tea.NewProgram(v, tea.WithInput(a.Stdin), tea.WithOutput(a.Stdout), tea.WithoutSignalHandler())
	defer context.AfterFunc(ctx, program.Quit)()
	_, err = program.Run()
	v.end()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return cli.Fail(cli.ExitCannotRun, "cannot show the stage: %w", err)
	case v.interrupted:
		return context.Canceled
	}
	_, err = d.Ended()
	return err
}

// debugView connects a debugger to a terminal. Its methods run on the goroutine of
// bubbletea; the work of the debugger runs on others, one at a time.
type debugView struct {
	ctx         context.Context // of debugStage; the methods of a model receive none
	d           *debugger.Debugger
	frame       time.Duration
	began       time.Time // clock time of the first tick
	interrupted bool

	following *liveLog  // nil without --follow
	looked    time.Time // the last look for new entries
	looking   bool

	stop     context.CancelFunc // ends all work
	cancel   context.CancelFunc // ends the work under way
	mu       sync.Mutex
	ended    bool           // guarded by mu: nothing more begins
	running  sync.WaitGroup // work and looks
	progress atomic.Pointer[string]
}

func newDebugView(ctx context.Context, d *debugger.Debugger, frame time.Duration) *debugView {
	v := &debugView{d: d, frame: max(frame, time.Second/60)}
	v.ctx, v.stop = context.WithCancel(ctx)
	return v
}

// end ends what is under way, and waits for it: it reads the store.
func (v *debugView) end() {
	v.stop()
	v.mu.Lock()
	v.ended = true
	v.mu.Unlock()
	v.running.Wait()
}

// The messages of the program.
type (
	frameMsg time.Time           // the next frame, at a clock time
	doneMsg  debugger.WorkResult // of work
	indexMsg []bool              // the errors of the session
	grownMsg struct {
		travel *replay.Replay // nil if nothing is new
		err    error
	}
)

func (v *debugView) Init() tea.Cmd {
	index := v.d.Index()
	return tea.Batch(v.tick(), v.start(func() tea.Msg { return indexMsg(index(v.ctx)) }))
}

// start returns a command that [debugView.end] waits for, if it has begun.
func (v *debugView) start(f func() tea.Msg) tea.Cmd {
	return func() tea.Msg {
		v.mu.Lock()
		if v.ended {
			v.mu.Unlock()
			return nil
		}
		v.running.Add(1)
		v.mu.Unlock()
		defer v.running.Done()
		return f()
	}
}

func (v *debugView) tick() tea.Cmd {
	return tea.Tick(v.frame, func(t time.Time) tea.Msg { return frameMsg(t) })
}

// run returns the command that does work, nil for none.
func (v *debugView) run(w *debugger.Work) tea.Cmd {
	if w == nil {
		return nil
	}
	ctx, cancel := context.WithCancel(v.ctx)
	v.cancel = cancel
	v.progress.Store(nil)
	return v.start(func() tea.Msg {
		defer cancel()
		return doneMsg(v.d.Run(ctx, w, func(text string) { v.progress.Store(&text) }))
	})
}

func (v *debugView) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	var cmd tea.Cmd
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		v.d.Resize(msg.Width, msg.Height)
	case frameMsg:
		cmd = tea.Batch(v.tick(), v.look(time.Time(msg)), v.passed(time.Time(msg)))
	case tea.KeyPressMsg:
		cmd = v.key(msg.String())
	case doneMsg:
		cmd = v.run(v.d.Done(debugger.WorkResult(msg)))
	case indexMsg:
		v.d.Indexed(msg)
	case grownMsg:
		cmd = v.grown(msg)
	}
	if ended, _ := v.d.Ended(); ended {
		v.stop()
		return v, tea.Quit
	}
	return v, cmd
}

// passed lets the time of the clock pass.
func (v *debugView) passed(now time.Time) tea.Cmd {
	if v.began.IsZero() {
		v.began = now
	}
	if text := v.progress.Load(); text != nil {
		v.d.Report(*text)
	}
	return v.run(v.d.Tick(now.Sub(v.began)))
}

func (v *debugView) key(key string) tea.Cmd {
	switch {
	case key == "ctrl+c":
		v.interrupted = true
		v.stop()
		return tea.Quit
	case key == "ctrl+z":
		return tea.Suspend
	case key == "esc" && v.d.Busy():
		v.cancel()
		return nil
	}
	return v.run(v.d.Key(key))
}

// look looks for new entries, once in followInterval.
func (v *debugView) look(now time.Time) tea.Cmd {
	if v.following == nil || v.looking || now.Sub(v.looked) < followInterval {
		return nil
	}
	v.looking, v.looked = true, now
	return v.start(func() tea.Msg {
		travel, err := v.following.look(v.ctx)
		return grownMsg{travel, err}
	})
}

// grown takes new entries. While work is under way they wait for the next look.
func (v *debugView) grown(msg grownMsg) tea.Cmd {
	v.looking = false
	switch {
	case msg.err != nil:
		v.d.Fail(msg.err)
		return nil
	case msg.travel == nil:
		return nil
	}
	w := v.d.Grow(msg.travel)
	if w == nil {
		v.following.again()
	}
	return v.run(w)
}

func (v *debugView) View() tea.View {
	view := tea.NewView(v.d.View())
	view.AltScreen = true
	return view
}
