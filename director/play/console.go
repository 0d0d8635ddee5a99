package play

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"unicode"

	tea "charm.land/bubbletea/v2"
	"github.com/clipperhouse/displaywidth"

	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/internal/termtext"
)

// Terminal configures [Sitting.PlayTerminal].
type Terminal struct {
	Keys        io.Reader
	Out         io.Writer
	Color       bool
	Directions  bool   // show the director's guidance
	Interrupted func() // called when the user interrupts; it may cancel a call of a model
}

// TerminalError reports that the terminal failed.
type TerminalError struct{ Err error }

func (e *TerminalError) Error() string {
	return fmt.Sprintf("play: the play cannot be shown: %v", e.Err)
}

// Unwrap returns the cause.
func (e *TerminalError) Unwrap() error { return e.Err }

// PlayTerminal plays with an input line that choices replace. The scene stays above it as
// ordinary lines of the terminal. The error is [context.Canceled] when the user
// interrupts, and [ErrLeft] when the user leaves.
func (s *Sitting) PlayTerminal(ctx context.Context, t Terminal) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithCancel(ctx)
	c := &console{ctx: ctx, s: s, directions: t.Directions, color: t.Color}
	program := tea.NewProgram(c, tea.WithInput(t.Keys), tea.WithOutput(t.Out), tea.WithoutSignalHandler())
	quitting := context.AfterFunc(ctx, program.Quit)
	_, err := program.Run()
	quitting()
	over := ctx.Err()
	// The current step has to end before the caller closes the log.
	cancel()
	if c.interrupted && t.Interrupted != nil {
		t.Interrupted()
	}
	c.stepping.Lock()
	c.closed = true
	c.stepping.Unlock()
	switch {
	case over != nil:
		return over
	case err != nil:
		return &TerminalError{err}
	case c.interrupted:
		return context.Canceled
	}
	return c.err
}

// console is a sitting on a terminal. Its methods run on the goroutine of the program;
// steps run on others, one at a time. A running step owns the sitting.
type console struct {
	ctx context.Context // its methods get none; it lives as long as one play
	s   *Sitting

	stepping sync.Mutex // held by the running step
	closed   bool       // no further step may begin; guarded by stepping

	at          position
	busy        bool // a step is running, and input waits
	directions  bool
	color       bool
	interrupted bool
	leaving     bool // the user leaves when the step is done
	done        bool
	err         error
	failed      bool // the character did not answer; enter asks again

	typed  []rune
	cursor int // in typed
	marked int // index of the marked option
	remark []string
	cols   int
	spoken bool
}

// stepped is the result of one step.
type stepped struct {
	list  []notice
	at    position
	more  bool // another step may follow
	reply reply
	err   error
}

func (c *console) Init() tea.Cmd { return c.step(nil) }

// step advances the play by an action of the user, or by itself if user is nil.
func (c *console) step(user func() (reply, error)) tea.Cmd {
	c.busy, c.remark = true, nil
	return func() tea.Msg {
		c.stepping.Lock()
		defer c.stepping.Unlock()
		if c.closed {
			return nil
		}
		var m stepped
		if user != nil {
			m.reply, m.err = user()
			m.more = m.reply == reply{}
		} else {
			m.more, m.err = c.s.advance(c.ctx)
		}
		// Entries that were recorded are shown even if the step failed after them.
		list, err := c.s.unread(c.ctx)
		m.list = list
		if m.err == nil {
			m.err = err
		}
		if m.err == nil {
			m.at, m.err = c.s.look(c.ctx)
		}
		return m
	}
}

func (c *console) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		c.cols = msg.Width
	case stepped:
		return c, c.take(msg)
	case tea.PasteMsg:
		if !c.busy && c.types() {
			c.insert(msg.Content)
		}
	case tea.KeyPressMsg:
		return c, c.key(msg)
	}
	return c, nil
}

// take applies the result of a step.
func (c *console) take(m stepped) tea.Cmd {
	shown := c.print(m.list)
	if e, ok := errors.AsType[*ActorError](m.err); ok && !c.leaving {
		// The server of the model may recover, and the turn still waits.
		c.busy, c.failed, c.remark = false, true, []string{"  ? the character does not answer: " + oneLine(e.Err.Error()), "  ? enter asks again, ctrl-C leaves"}
		return shown
	}
	switch {
	case m.err != nil:
		c.err, c.done = m.err, true
	case m.reply.left:
		c.err, c.done = ErrLeft, true
	case c.leaving:
		c.done = true
	case m.more:
		return tea.Sequence(shown, c.step(nil))
	case m.at.over:
		c.done = true
	}
	if c.done {
		return tea.Sequence(shown, tea.Quit)
	}
	if m.reply.directions {
		c.turnDirections()
	}
	c.busy, c.at, c.remark = false, m.at, append(c.remark, remarkLines(m.reply.remark)...)
	if p := c.at.pending; p == nil || c.marked >= len(p.Options) {
		c.marked = 0
	}
	return shown
}

func (c *console) turnDirections() {
	c.directions = !c.directions
	c.remark = remarkLines(directionsRemark(c.directions))
}

// print writes notices above the input.
func (c *console) print(list []notice) tea.Cmd {
	var lines []string
	for _, t := range list {
		shown := t.lines(c.directions, c.width())
		if len(shown) == 0 {
			continue
		}
		if t.kind == speech && c.spoken {
			lines = append(lines, "")
		}
		c.spoken = true
		for i := range shown {
			shown[i] = c.styled(t, shown[i], i == 0)
		}
		lines = append(lines, shown...)
	}
	if len(lines) == 0 {
		return nil
	}
	return tea.Println(strings.Join(lines, "\n"))
}

// styled adds the weight of a line of a notice.
func (c *console) styled(t notice, line string, first bool) string {
	if !c.color {
		return line
	}
	switch name := termtext.Printable(t.name) + ":"; {
	case t.kind == noted || t.kind == direction:
		return "\x1b[2m" + line + "\x1b[m"
	case first && (t.kind == speech && strings.HasPrefix(line, name)):
		return "\x1b[1m" + name + "\x1b[m" + line[len(name):]
	case first && t.kind == paragraph:
		return "\x1b[1m" + line + "\x1b[m"
	}
	return line
}

// width is the width of text. Lines longer than 100 columns are hard to read.
func (c *console) width() int {
	if c.cols <= 0 {
		return 80
	}
	return min(max(c.cols-1, 10), 100)
}

// types reports whether the user can type. While a choice is pending that only its
// options answer, the user cannot.
func (c *console) types() bool { return c.at.pending == nil || c.s.free() || len(c.typed) > 0 }

func (c *console) key(k tea.KeyPressMsg) tea.Cmd {
	switch k.String() {
	case "ctrl+c":
		c.interrupted, c.done = true, true
		return tea.Quit
	case "ctrl+z":
		return tea.Suspend
	case "tab":
		c.turnDirections()
		return nil
	case "ctrl+d":
		if c.busy {
			c.leaving = true
			return nil
		}
		if len(c.typed) == 0 {
			c.done = true
			return tea.Quit // as at the end of any input
		}
		c.erase(c.cursor, c.cursor+1)
		return nil
	}
	if c.busy {
		return nil
	}
	if c.failed {
		if k.String() == "enter" {
			c.failed = false
			return c.step(nil)
		}
		return nil
	}
	options := 0
	if c.at.pending != nil {
		options = len(c.at.pending.Options)
	}
	switch k.String() {
	case "enter":
		return c.enter()
	case "up", "shift+tab":
		c.marked = max(c.marked-1, 0)
	case "down":
		c.marked = max(min(c.marked+1, options-1), 0)
	case "left", "ctrl+b":
		c.cursor = max(c.cursor-1, 0)
	case "right", "ctrl+f":
		c.cursor = min(c.cursor+1, len(c.typed))
	case "home", "ctrl+a":
		c.cursor = 0
	case "end", "ctrl+e":
		c.cursor = len(c.typed)
	case "backspace", "ctrl+h":
		c.erase(c.cursor-1, c.cursor)
	case "delete":
		c.erase(c.cursor, c.cursor+1)
	case "ctrl+u":
		c.erase(0, c.cursor)
	case "ctrl+k":
		c.erase(c.cursor, len(c.typed))
	case "ctrl+w", "alt+backspace":
		from := c.cursor
		for from > 0 && c.typed[from-1] == ' ' {
			from--
		}
		for from > 0 && c.typed[from-1] != ' ' {
			from--
		}
		c.erase(from, c.cursor)
	default:
		return c.char(k.Text, options)
	}
	return nil
}

// char types a text, or marks an option by its number where only an option is an answer.
func (c *console) char(text string, options int) tea.Cmd {
	if text == "" {
		return nil
	}
	if c.types() || text == "/" {
		c.insert(text)
		return nil
	}
	if n, err := strconv.Atoi(text); err == nil && n >= 1 && n <= options {
		c.marked, c.remark = n-1, nil
		return nil
	}
	c.remark = remarkLines(c.s.howToChoose(c.at.pending))
	return nil
}

// enter takes the typed line, or else the marked option.
func (c *console) enter() tea.Cmd {
	line := string(c.typed)
	if p := c.at.pending; p != nil && strings.TrimSpace(line) == "" {
		line = strconv.Itoa(c.marked + 1)
	}
	c.typed, c.cursor = nil, 0
	return c.step(func() (reply, error) { return c.s.take(c.ctx, line) })
}

// insert types a text. A rune that controls a terminal becomes a space.
func (c *console) insert(text string) {
	var runes []rune
	for _, r := range strings.ToValidUTF8(text, "\uFFFD") {
		if !unicode.IsGraphic(r) || unicode.Is(unicode.Bidi_Control, r) {
			r = ' '
		}
		runes = append(runes, r)
	}
	if len(string(c.typed))+len(string(runes)) > MaxLine {
		c.remark = []string{"  ? that is too long for one line"}
		return
	}
	c.typed = slices.Insert(c.typed, c.cursor, runes...)
	c.cursor, c.remark = c.cursor+len(runes), nil
}

func (c *console) erase(from, to int) {
	from, to = max(from, 0), min(to, len(c.typed))
	if from < to {
		c.typed, c.cursor = slices.Delete(c.typed, from, to), from
	}
}

func (c *console) View() tea.View {
	if c.done {
		return tea.NewView("")
	}
	lines := []string{""}
	line := func(text string) { lines = append(lines, displaywidth.TruncateString(text, c.width(), "…")) }
	var cursor *tea.Cursor
	switch p := c.at.pending; {
	case c.busy:
		line(c.s.actor.Name() + " …")
	case c.failed:
	case p != nil:
		for _, text := range offerLines(p, c.marked, c.width()) {
			line(text)
		}
	}
	if !c.busy && !c.failed {
		for _, text := range cardLines(c.at.cards, c.width()) {
			line(text)
		}
		if c.types() {
			text, col := c.field(c.width() - 3)
			lines = append(lines, "> "+text)
			cursor = tea.NewCursor(2+col, len(lines)-1)
		}
	}
	for _, text := range c.remark {
		line(text)
	}
	lines = append(lines, c.status())
	view := tea.NewView(strings.Join(lines, "\n"))
	view.Cursor = cursor
	return view
}

// field returns the part of the typed line that fits a width, and the column of
// the cursor in it.
func (c *console) field(width int) (text string, col int) {
	from := c.cursor
	for from > 0 && displaywidth.String(string(c.typed[from-1:c.cursor])) <= width {
		from--
	}
	if displaywidth.String(string(c.typed[from:c.cursor])) > width {
		from++
	}
	before := string(c.typed[from:c.cursor])
	return displaywidth.TruncateString(string(c.typed[from:]), width, ""), displaywidth.String(before)
}

// status returns the line at the bottom.
func (c *console) status() string {
	text := ""
	if c.at.state != nil {
		e := c.at.state.Episode()
		text = turnOf(c.at.turn, e.Budget) + ", " + episode.Pacing(max(c.at.turn, 1), e.Budget) + "   "
	}
	if c.at.pending != nil {
		text += "↑/↓ or number, enter chooses   "
	}
	text += "tab directions   /help   ctrl-D leave"
	text = displaywidth.TruncateString(text, c.width(), "…")
	if c.color {
		return "\x1b[2m" + text + "\x1b[m"
	}
	return text
}

// oneLine makes one printable line of a message.
func oneLine(message string) string {
	lines := strings.FieldsFunc(message, func(r rune) bool { return r == '\n' || r == '\r' })
	for i := range lines {
		lines[i] = termtext.Printable(strings.TrimSpace(lines[i]))
	}
	return strings.Join(lines, "; ")
}
