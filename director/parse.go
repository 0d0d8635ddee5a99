package director

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/internal/jsonplace"
	"github.com/sajou-dev/sajou-go/internal/wording"
	"github.com/sajou-dev/sajou-go/signal"
)

// maxDiagnostics bounds what is said about one file.
const maxDiagnostics = 100

// Severity says what a [Diagnostic] means for its episode.
type Severity = choreography.Severity

const (
	// Error says that the episode is refused.
	Error = choreography.Error
	// Warning says that something will not happen, or not as it seems to.
	Warning = choreography.Warning
)

// Diagnostic is one remark of [Parse], with its place in the file: the same as
// about choreographies.
type Diagnostic = choreography.Diagnostic

// Diagnostics lists the remarks about one file in the order of their places.
// As an error it shows all of them; see [Diagnostics.Err].
type Diagnostics []Diagnostic

// Error returns one line for each diagnostic.
func (ds Diagnostics) Error() string {
	lines := make([]string, len(ds))
	for i, d := range ds {
		lines[i] = d.String()
	}
	return strings.Join(lines, "\n")
}

// Unwrap makes a list of diagnostics an [ErrEpisode].
func (ds Diagnostics) Unwrap() error { return ErrEpisode }

// Err returns those of severity [Error] as one error, which wraps
// [ErrEpisode]; nil if there is none.
func (ds Diagnostics) Err() error {
	var errs Diagnostics
	for _, d := range ds {
		if d.Severity == Error {
			errs = append(errs, d)
		}
	}
	if errs == nil {
		return nil
	}
	return errs
}

// Parse reads an episode from the text of a file and judges it as an author
// would want: what is refused is what cannot be meant, and what will not happen
// gets a warning. File only names the text in diagnostics. The episode is nil
// if there is any error.
func Parse(file string, json []byte) (*Episode, Diagnostics) {
	var b builder
	v, err := signal.ParseValue(json)
	if err != nil {
		return nil, Diagnostics{syntaxError(file, json, err)}
	}
	e := b.episode(v)
	return e, b.diagnostics(file, json)
}

// syntaxError tells why a text is no JSON.
func syntaxError(file string, json []byte, err error) Diagnostic {
	d := Diagnostic{File: file, Line: 1, Column: 1, Severity: Error, Message: err.Error()}
	if syntax, ok := errors.AsType[*signal.SyntaxError](err); ok {
		d.Line, d.Column = jsonplace.LineColumn(json, syntax.Offset)
		d.Message = syntax.Reason
	}
	return d
}

// node is a value with the way that leads to it.
type node struct {
	v    signal.Value
	path *path
}

type path struct {
	parent *path
	name   string
}

func (p *path) segments() []string {
	if p == nil {
		return nil
	}
	return append(p.parent.segments(), p.name)
}

func (n node) at(name string) node {
	v, _ := n.v.Get(name)
	return node{v, &path{n.path, name}}
}

func (n node) has(name string) bool {
	v, ok := n.v.Get(name)
	return ok && v.Kind() != signal.KindNull
}

// elements goes over an array; what is no array has no elements.
func (n node) elements(yield func(int, node) bool) {
	i := 0
	for e := range n.v.Elements() {
		if !yield(i, node{e, &path{n.path, strconv.Itoa(i)}}) {
			return
		}
		i++
	}
}

func pointer(segments []string) string { return jsonplace.Pointer(segments) }

type finding struct {
	severity Severity
	mark     *jsonplace.Mark
	message  string
}

// builder makes an episode of a value and collects what is to be said of it.
type builder struct {
	findings []finding
	refused  bool
	full     bool
	version  bool // the refusal is one of the version
}

func (b *builder) add(s Severity, n node, atName bool, format string, args ...any) {
	b.refused = b.refused || s == Error
	if len(b.findings) >= maxDiagnostics {
		// An error must not be lost behind warnings: Compile looks for one.
		if s == Error && !b.full {
			b.findings[maxDiagnostics-1] = finding{s, &jsonplace.Mark{Segments: n.path.segments(), AtName: atName}, fmt.Sprintf(format, args...)}
		}
		b.full = true
		return
	}
	b.findings = append(b.findings, finding{s, &jsonplace.Mark{Segments: n.path.segments(), AtName: atName}, fmt.Sprintf(format, args...)})
}

func (b *builder) errorf(n node, format string, args ...any) {
	b.add(Error, n, false, format, args...)
}

func (b *builder) warnf(n node, format string, args ...any) {
	b.add(Warning, n, false, format, args...)
}

func (b *builder) diagnostics(file string, text []byte) Diagnostics {
	if len(b.findings) == 0 {
		return nil
	}
	marks := make([]*jsonplace.Mark, len(b.findings))
	for i := range b.findings {
		marks[i] = b.findings[i].mark
	}
	jsonplace.Locate(text, marks)
	slices.SortStableFunc(b.findings, func(x, y finding) int { return x.mark.Offset - y.mark.Offset })
	var ds Diagnostics
	for _, f := range b.findings {
		line, column := jsonplace.LineColumn(text, f.mark.Offset)
		ds = append(ds, Diagnostic{File: file, Line: line, Column: column, Pointer: pointer(f.mark.Segments), Severity: f.severity, Message: f.message})
	}
	if b.full {
		last := ds[len(ds)-1]
		severity := Warning
		if b.refused {
			severity = Error
		}
		ds = append(ds, Diagnostic{File: file, Line: last.Line, Column: last.Column, Severity: severity, Message: "there is more, which is not listed"})
	}
	return ds
}

// The readers below say what is wrong and then return a zero value, so that
// one mistake does not hide the next.

// object makes sure that n is an object with members known by these names.
func (b *builder) object(n node, what string, known ...string) bool {
	if n.v.Kind() != signal.KindObject {
		b.errorf(n, "want %s, an object, not %s", what, wording.Article(n.v.Kind()))
		return false
	}
	for name := range n.v.Members() {
		if !slices.Contains(known, name) {
			b.add(Warning, n.at(name), true, "%s has no member %s: it has no effect", what, wording.Quoted(name))
		}
	}
	return true
}

// text reads an optional string.
func (b *builder) text(n node, name string) string {
	m := n.at(name)
	if !n.has(name) {
		return ""
	}
	s, ok := m.v.Text()
	if !ok {
		b.errorf(m, "want a string, not %s", wording.Article(m.v.Kind()))
	}
	return s
}

// needed reads a string that must say something.
func (b *builder) needed(n node, name string) string {
	s := b.text(n, name)
	if strings.TrimSpace(s) == "" {
		if m := n.at(name); m.v == nil || m.v.Kind() == signal.KindNull {
			b.errorf(n, "%s is missing", name)
		} else if m.v.Kind() == signal.KindString {
			b.errorf(m, "%s is empty", name)
		}
	}
	return s
}

// maxID bounds the name of a thing.
const maxID = 200

func (b *builder) id(n node) string {
	s := b.needed(n, "id")
	if len(s) > maxID {
		b.errorf(n.at("id"), "id is longer than %d bytes", maxID)
	}
	return s
}

// maxTurn bounds turn numbers, far beyond any play and far within an int.
const maxTurn = 1 << 30

// turn reads an optional number of turns from least on.
func (b *builder) turn(n node, name string, least, absent int) int {
	if !n.has(name) {
		return absent
	}
	m := n.at(name)
	i, ok := m.v.Int64()
	if f, isNumber := m.v.Float64(); !ok && isNumber && f == math.Trunc(f) && math.Abs(f) <= 2*maxTurn {
		i, ok = int64(f), true // written 3.0, as some programs do
	}
	switch {
	case !ok:
		b.errorf(m, "want an integer, not %s", wording.Article(m.v.Kind()))
		return absent
	case i < int64(least):
		b.errorf(m, "%s is less than %d", name, least)
		return absent
	case i > maxTurn:
		b.errorf(m, "%s is more than %d", name, maxTurn)
		return absent
	}
	return int(i)
}

func (b *builder) bool(n node, name string) bool {
	if !n.has(name) {
		return false
	}
	m := n.at(name)
	v, ok := m.v.Bool()
	if !ok {
		b.errorf(m, "want true or false, not %s", wording.Article(m.v.Kind()))
	}
	return v
}

// oneOf reads an optional word of a list and returns its index.
func (b *builder) oneOf(n node, name string, absent int, words ...string) int {
	s := b.text(n, name)
	if s == "" && n.at(name).v.Kind() != signal.KindString {
		return absent
	}
	i := slices.Index(words, s)
	if i < 0 {
		b.errorf(n.at(name), "%s is none of %s", wording.Quoted(s), strings.Join(words, ", "))
		return absent
	}
	return i
}

// maxItems bounds every list of an episode.
const maxItems = 4096

// list makes sure that an optional member is an array of no more than maxItems.
func (b *builder) list(n node, name string) node {
	m := n.at(name)
	switch {
	case !n.has(name):
		return node{nil, m.path}
	case m.v.Kind() != signal.KindArray:
		b.errorf(m, "want an array, not %s", wording.Article(m.v.Kind()))
		return node{nil, m.path}
	case m.v.Len() > maxItems:
		b.errorf(m, "more than %d elements", maxItems)
		return node{nil, m.path}
	}
	return m
}

// texts reads an optional list of strings that say something.
func (b *builder) texts(n node, name string) []string {
	var out []string
	for _, e := range b.list(n, name).elements {
		s, ok := e.v.Text()
		switch {
		case !ok:
			b.errorf(e, "want a string, not %s", wording.Article(e.v.Kind()))
		case strings.TrimSpace(s) == "":
			b.errorf(e, "an empty text")
		default:
			out = append(out, s)
		}
	}
	return out
}
