package debugger

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/sajou-dev/sajou-go/replay"
)

// keyHelp lists the keys, for the help.
var keyHelp = [][2]string{
	{"space", "play, or pause"},
	{"← →", "the entry before, after"},
	{"[ ]", "the change before, after: an entry, or a boundary between entries"},
	{", .", "the frame before, after"},
	{"{ }", "where the running performances changed before, after"},
	{"b B", "the beat after, before"},
	{"c C", "the signal after, before with the correlation id of this one"},
	{"home end", "the beginning, the end"},
	{"g", "go to an address, such as 36+50ms, @failure or beat:salary"},
	{"/", "search entries for a text; n and N repeat it forwards, backwards"},
	{"r R", "run forwards, backwards to where an expression becomes true, or to a beat or mark"},
	{"i", "show another part of the state, as stage.entities.smith, or view:AGENT"},
	{"p", "remember this moment as A; again to forget it"},
	{"d", "show the difference from A to here, or the state"},
	{"m", "name this moment"},
	{"+ -", "twice, half the rate"},
	{"?", "this help; ↑ ↓ scroll it, another key closes it"},
	{"esc", "end what is under way, or close; q quits"},
}

// prompt is a line of text that the user writes.
type prompt struct {
	label string
	text  string
	then  func(text string) *Work
}

// key handles a key while the prompt is open. It reports whether it stays open.
func (p *prompt) key(key string) bool {
	switch key {
	case "backspace":
		if _, n := utf8.DecodeLastRuneInString(p.text); n > 0 {
			p.text = p.text[:len(p.text)-n]
		}
	case "ctrl+u":
		p.text = ""
	case "space":
		p.text += " "
	default:
		if utf8.RuneCountInString(key) == 1 && len(p.text) < 1000 {
			p.text += key
		}
	}
	return true
}

// Key handles a key: a character, or a name such as "left", "space", "enter" or "esc".
// It returns the work that the key asks for, nil for none. A key that comes during short
// work is used after it. During long work ([Debugger.Busy]) keys are ignored, except q;
// esc is the caller's reason to cancel the work.
func (d *Debugger) Key(key string) *Work {
	if d.busy != nil {
		switch {
		case key == "q" && d.prompt == nil:
			d.quit = true
		case !d.busy.Long && len(d.queued) < 64:
			d.queued = append(d.queued, key)
		}
		return nil
	}
	d.note = ""
	switch {
	case d.prompt != nil:
		return d.promptKey(key)
	case d.help:
		d.helpKey(key)
		return nil
	}
	switch key {
	case "q", "esc":
		d.quit = true
	case "?":
		d.help, d.helpTop = true, 0
	case "space":
		return d.playOrPause()
	case "right", "l":
		return d.step(1)
	case "left", "h":
		return d.step(-1)
	case "]":
		return d.move("the next change", func(ctx context.Context, report func(string)) (replay.Moment, error) {
			return d.change(ctx, 1)
		})
	case "[":
		return d.move("the change before", func(ctx context.Context, report func(string)) (replay.Moment, error) {
			return d.change(ctx, -1)
		})
	case ".":
		return d.move("the next frame", func(ctx context.Context, _ func(string)) (replay.Moment, error) { return d.frame(ctx, 1) })
	case ",":
		return d.move("the frame before", func(ctx context.Context, _ func(string)) (replay.Moment, error) { return d.frame(ctx, -1) })
	case "}":
		return d.move("the next performance", func(ctx context.Context, report func(string)) (replay.Moment, error) {
			return d.performance(ctx, 1, report)
		})
	case "{":
		return d.move("the performance before", func(ctx context.Context, report func(string)) (replay.Moment, error) {
			return d.performance(ctx, -1, report)
		})
	case "b":
		return d.find("a beat after this", 1, isBeat(""))
	case "B":
		return d.find("a beat before this", -1, isBeat(""))
	case "c":
		return d.correlated(1)
	case "C":
		return d.correlated(-1)
	case "home":
		return d.to(d.cfg.From)
	case "end", "G":
		return d.to(d.cfg.To)
	case "+", "=", "up":
		d.setRate(min(max(d.rate, 1.0/16)*2, 1024))
	case "-", "down":
		d.setRate(max(d.rate/2, 1.0/16))
	case "p":
		d.pin()
	case "d":
		if d.pinned == nil {
			d.note = "press p at another moment first: it becomes A"
			return nil
		}
		d.differ = !d.differ
		return d.refresh()
	case "n":
		return d.searchAgain(1)
	case "N":
		return d.searchAgain(-1)
	default:
		d.ask(key)
	}
	return nil
}

// ask opens the prompt of a key.
func (d *Debugger) ask(key string) {
	switch key {
	case "g":
		d.prompt = &prompt{label: "go to", then: d.goTo}
	case "/":
		d.prompt = &prompt{label: "search", then: func(text string) *Work {
			d.search = text
			return d.searchAgain(1)
		}}
	case "i":
		d.prompt = &prompt{label: "show", text: d.path, then: func(text string) *Work {
			d.path = text
			return d.refresh()
		}}
	case "r":
		d.prompt = &prompt{label: "run to", text: d.target, then: func(text string) *Work { return d.runTo(text, 1) }}
	case "R":
		d.prompt = &prompt{label: "run back to", text: d.target, then: func(text string) *Work { return d.runTo(text, -1) }}
	case "m":
		d.prompt = &prompt{label: "name this moment", then: d.mark}
	}
}

// helpKey scrolls the help, or closes it.
func (d *Debugger) helpKey(key string) {
	lines, room := d.helpText()
	most := max(len(lines)-room, 0)
	top := d.helpTop
	switch key {
	case "up", "k":
		top--
	case "down", "j":
		top++
	case "pgup":
		top -= room
	case "pgdown", "space":
		top += room
	case "home":
		top = 0
	case "end":
		top = most
	default:
		d.help = false
	}
	d.helpTop = min(max(top, 0), most)
}

func (d *Debugger) promptKey(key string) *Work {
	p := d.prompt
	switch key {
	case "esc":
		d.prompt = nil
	case "enter":
		d.prompt = nil
		if p.text != "" {
			return p.then(p.text)
		}
	default:
		p.key(key)
	}
	return nil
}

func (d *Debugger) playOrPause() *Work {
	switch s := d.player.State(); {
	case s.Ended:
		w := d.to(d.cfg.From)
		d.Play()
		return w
	case s.Playing:
		d.player.Pause()
	default:
		d.player.Play()
	}
	d.stopKnown = false
	d.state = d.player.State()
	return nil
}

func (d *Debugger) setRate(rate float64) {
	d.rate = rate
	if err := d.player.SetRate(rate); err != nil {
		d.note = err.Error()
	}
	d.state = d.player.State()
}

// move returns the work that pauses, and goes where to says.
func (d *Debugger) move(label string, to func(ctx context.Context, report func(string)) (replay.Moment, error)) *Work {
	d.player.Pause()
	d.stopKnown = false
	d.state = d.player.State()
	return d.begin(&Work{Label: label, Long: true, do: to})
}

// to returns the work that goes to a moment.
func (d *Debugger) to(m replay.Moment) *Work {
	return d.move("go to "+clock(m), func(context.Context, func(string)) (replay.Moment, error) { return m, nil })
}

// refresh returns the work that shows the same moment again.
func (d *Debugger) refresh() *Work {
	m := d.state.Moment
	return d.begin(&Work{Label: "show", do: func(context.Context, func(string)) (replay.Moment, error) { return m, nil }})
}

func (d *Debugger) step(n int) *Work {
	return d.move("step", func(ctx context.Context, _ func(string)) (replay.Moment, error) {
		err := d.player.Step(ctx, n)
		return d.player.State().Moment, err
	})
}

func (d *Debugger) goTo(text string) *Work {
	a, err := replay.ParseAddress(text)
	if err != nil {
		d.note = err.Error()
		return nil
	}
	return d.move("go to "+text, func(ctx context.Context, _ func(string)) (replay.Moment, error) {
		return d.travel.Resolve(ctx, a)
	})
}

func (d *Debugger) pin() {
	if d.pinned != nil && d.pinned.at == d.state.Moment {
		d.pinned, d.differ = nil, false
		d.note = "A is forgotten"
		return
	}
	d.pinned = &pin{at: d.state.Moment} // its value is read when it is compared
	d.note = "A is " + clock(d.state.Moment)
}

func (d *Debugger) mark(name string) *Work {
	if d.cfg.Mark == nil {
		d.note = "moments cannot be named here"
		return nil
	}
	m := d.state.Moment
	d.stale = true
	return d.begin(&Work{Label: "name", do: func(context.Context, func(string)) (replay.Moment, error) {
		if err := d.cfg.Mark(strings.TrimPrefix(name, "@"), m); err != nil {
			return m, notFound("%v", err)
		}
		return m, nil
	}})
}

// compile compiles an expression.
func (d *Debugger) compile(expr string) (StopCondition, error) {
	if d.cfg.Compile == nil {
		return StopCondition{}, errors.New("expressions are not available here")
	}
	return d.cfg.Compile(expr)
}

// rateText is the rate as it is shown.
func (d *Debugger) rateText() string {
	if d.rate == 0 || math.IsNaN(d.rate) {
		return "fast"
	}
	return fmt.Sprintf("x%g", d.rate)
}
