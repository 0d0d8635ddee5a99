// Package transcript writes a session of agents as people read it: prompts and answers,
// thinking folded away, calls of tools with the beginning of what went in and came out,
// errors, and the work of subagents indented. The formats are plain text, Markdown and
// HTML.
//
//	t := transcript.New(w, transcript.Markdown, transcript.Options{Title: name})
//	err := t.Add(entry.Seq, entry.At, &sig) // each signal, in the order of the session
//	err = t.End()
//
// Recorded text never becomes a part of the document's form: in HTML it is escaped, in
// Markdown it stands in fences that are longer than any in the text, and in all formats
// characters that a terminal acts on or hides are written as escapes. The HTML needs no
// other file, has no script, and forbids the browser to load anything.
//
// A transcript is written as it is read; what is held is one block, and the parents of
// agents. Signals of models' usage, of states and of types that the protocol does not
// define are left out.
//
// docs/glossary.md has the nouns of all packages.
package transcript

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/ingest/recording"
	"github.com/sajou-dev/sajou-go/internal/termtext"
	"github.com/sajou-dev/sajou-go/signal"
)

// Layout is a format of transcripts.
type Layout string

// The layouts.
const (
	Text     Layout = "text"
	Markdown Layout = "md"
	HTML     Layout = "html"
)

// Options are the choices of a transcript.
type Options struct {
	Title string // of the document
	Note  string // a line below the title, such as the label of a fork; "" for none

	// Lines bounds what is shown of the input and the output of a tool. Zero means 12; a
	// negative number means no bound.
	Lines int
}

const (
	maxDepth = 8       // of indentation
	maxPiece = 1 << 20 // bytes of joined pieces of text
	maxLine  = 400     // characters of a line of what a tool was given or returned
	maxName  = 80      // characters of a name
	maxKnown = 10_000  // agents whose depth is known
)

// Transcriber writes one transcript. It is not safe for concurrent use.
type Transcriber struct {
	form    form
	lines   int
	title   string
	note    string
	origin  string
	begun   bool
	pending *block // a text that may go on
	depth   map[string]int
	err     error
}

// form writes the blocks of a layout.
type form interface {
	begin(title, note string) error
	block(b *block) error
	end() error
}

// sort is what a block is.
type sort string

const (
	prompt     sort = "prompt"
	task       sort = "task"
	text       sort = "text"
	thought    sort = "thought"
	call       sort = "call"
	result     sort = "result"
	failure    sort = "failure"
	fault      sort = "fault"
	completion sort = "completion"
)

// block is one part of a transcript.
type block struct {
	sort  sort
	seq   eventlog.Seq
	at    time.Duration
	depth int
	agent string // raw
	head  string // who does what; clean, one line
	body  string // clean, lines
	cut   int    // lines of the body that were left out
}

// New returns a transcriber that writes to w. An unknown layout is an error of the first
// call of another method.
func New(w io.Writer, layout Layout, o Options) *Transcriber {
	t := &Transcriber{title: oneLine(o.Title), note: termtext.Printable(o.Note), lines: o.Lines, depth: map[string]int{}}
	if t.lines == 0 {
		t.lines = 12
	}
	switch layout {
	case Text:
		t.form = &plainForm{w}
	case Markdown:
		t.form = &markdownForm{w}
	case HTML:
		t.form = &htmlForm{w}
	default:
		t.err = fmt.Errorf("transcript: there is no layout %q; known are text, md and html", layout)
	}
	return t
}

// Skip notes what a signal that is not written says about what comes later: the origin of
// the session, and which agent is whose subagent. It is for the signals before a range.
func (t *Transcriber) Skip(s *signal.Signal) {
	switch s.Type {
	case recording.TypeRecording:
		t.from(s)
	case "task_dispatch":
		t.dispatch(s.Payload.TextOf("from"), s.Payload.TextOf("to"))
	}
}

// from notes the origin of the session.
func (t *Transcriber) from(s *signal.Signal) {
	t.origin = oneLine(s.Payload.TextOf("format"))
	if id := s.Payload.TextOf("session"); id != "" {
		t.origin += " " + oneLine(id)
	}
}

// dispatch notes that an agent gave another one a task, which makes it its subagent the
// first time.
func (t *Transcriber) dispatch(from, to string) {
	if _, known := t.depth[to]; from != recording.User && !known && to != from && len(t.depth) < maxKnown {
		t.depth[strings.Clone(to)] = min(t.depth[from]+1, maxDepth)
	}
}

// Add writes what a signal says. It keeps no part of s. An error is one of the writer.
func (t *Transcriber) Add(seq eventlog.Seq, at time.Duration, s *signal.Signal) error {
	if t.err != nil {
		return t.err
	}
	if s.Type == recording.TypeRecording && !t.begun {
		t.from(s)
		return nil
	}
	if s.Type == "text_delta" && t.goesOn(s) {
		t.pending.body += clean(s.Payload.TextOf("content"))
		return nil
	}
	b := t.of(s)
	if b == nil {
		return nil
	}
	b.seq, b.at = seq, at
	if err := t.flush(); err != nil {
		return err
	}
	if b.sort == text {
		t.pending = b
		return nil
	}
	t.err = t.write(b)
	return t.err
}

// goesOn reports whether a piece of text belongs to the one before.
func (t *Transcriber) goesOn(s *signal.Signal) bool {
	return t.pending != nil && s.Payload.IntOf("index") > 0 && t.pending.agent == s.Payload.TextOf("agentId") && len(t.pending.body) < maxPiece
}

// End writes what is left, and the end of the document.
func (t *Transcriber) End() error {
	if err := t.flush(); err != nil {
		return err
	}
	if t.err = t.start(); t.err != nil {
		return t.err
	}
	t.err = t.form.end()
	return t.err
}

func (t *Transcriber) flush() error {
	if t.err == nil && t.pending != nil {
		b := t.pending
		t.pending = nil
		t.err = t.write(b)
	}
	return t.err
}

func (t *Transcriber) start() error {
	if t.begun {
		return nil
	}
	t.begun = true
	title := t.title
	if t.origin != "" {
		title += " (" + t.origin + ")"
	}
	return t.form.begin(title, t.note)
}

func (t *Transcriber) write(b *block) error {
	if err := t.start(); err != nil {
		return err
	}
	return t.form.block(b)
}

// of returns the block of a signal, nil if it has none.
func (t *Transcriber) of(s *signal.Signal) *block {
	p := s.Payload
	agent := p.TextOf("agentId")
	b := &block{agent: agent, depth: t.depth[agent]}
	name := oneLine(agent)
	switch s.Type {
	case "task_dispatch":
		from, to := p.TextOf("from"), p.TextOf("to")
		b.sort, b.agent = prompt, from
		if from != recording.User {
			b.sort = task
		}
		t.dispatch(from, to)
		b.depth = t.depth[to]
		b.head = oneLine(from) + " → " + oneLine(to)
		b.body = clean(p.TextOf("description"))
	case "text_delta":
		b.sort, b.head, b.body = text, name, clean(p.TextOf("content"))
	case "thinking":
		b.sort, b.head, b.body = thought, name+" thinks", clean(p.TextOf("content"))
	case "tool_call":
		b.sort, b.head = call, name+" calls "+oneLine(p.TextOf("toolName"))
		b.body, b.cut = t.short(p.Member("input"))
	case "tool_result":
		b.sort, b.head = result, oneLine(p.TextOf("toolName"))+" returns to "+name
		if !p.BoolOf("success") {
			b.sort, b.head = failure, oneLine(p.TextOf("toolName"))+" fails for "+name
		}
		b.body, b.cut = t.short(p.Member("output"))
	case "error":
		b.sort, b.head = fault, oneLine(p.TextOf("severity"))
		if code := p.TextOf("code"); code != "" {
			b.head += " " + oneLine(code)
		}
		if name != "" {
			b.head += " of " + name
		}
		b.body = clean(p.TextOf("message"))
	case "completion":
		b.sort, b.head = completion, "task "+oneLine(p.TextOf("taskId"))+" ends"
		if !p.BoolOf("success") {
			b.head = "task " + oneLine(p.TextOf("taskId")) + " fails"
		}
		b.body = clean(p.TextOf("result"))
	default:
		return nil
	}
	b.agent = strings.Clone(b.agent)
	return b
}

// short returns what is shown of the input or the output of a tool, and how many lines
// are left out. A text stands as it is, and so does the only text of an object; other
// objects have a line for each member.
func (t *Transcriber) short(v signal.Value) (shown string, cut int) {
	var all string
	whole, isText := v.Text()
	switch {
	case isText:
		all = clean(whole)
	case v.Kind() == signal.KindObject:
		var lines []string
		for name, m := range v.Members() {
			text, isText := m.Text()
			switch {
			case !isText:
				text = clean(m.String())
			case v.Len() == 1:
				text = clean(text)
			default:
				text = strings.ReplaceAll(strings.TrimRight(clean(text), "\n"), "\n", "\n  ")
			}
			if v.Len() > 1 || !isText {
				text = oneLine(name) + ": " + text
			}
			lines = append(lines, text)
		}
		all = strings.Join(lines, "\n")
	case v != nil:
		all = clean(v.String())
	}
	lines := strings.Split(strings.TrimRight(all, "\n"), "\n")
	if t.lines > 0 {
		if len(lines) > t.lines {
			lines, cut = lines[:t.lines], len(lines)-t.lines
		}
		for i := range lines {
			lines[i] = termtext.Clip(lines[i], maxLine)
		}
	}
	return strings.Join(lines, "\n"), cut
}

// clean returns a recorded text in which nothing acts on a terminal. Line ends stay, and
// a tab becomes spaces.
func clean(s string) string {
	s = strings.ReplaceAll(s, "\r\n", "\n")
	return termtext.PrintableLines(strings.ReplaceAll(s, "\t", "    "))
}

// oneLine returns a recorded name, clean and short.
func oneLine(s string) string { return termtext.Clip(termtext.Printable(s), maxName) }

// clock writes session time as the commands do: minutes, seconds and milliseconds.
func clock(at time.Duration) string {
	ms := max(at, 0).Milliseconds()
	if h := ms / 3_600_000; h > 0 {
		return fmt.Sprintf("%d:%02d:%02d.%03d", h, ms/60_000%60, ms/1000%60, ms%1000)
	}
	return fmt.Sprintf("%02d:%02d.%03d", ms/60_000, ms/1000%60, ms%1000)
}
