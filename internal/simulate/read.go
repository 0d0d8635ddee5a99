package simulate

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/internal/jsonplace"
	"github.com/sajou-dev/sajou-go/internal/spelling"
	"github.com/sajou-dev/sajou-go/internal/wording"
	"github.com/sajou-dev/sajou-go/signal"
)

// maxDiagnostics bounds what is said about one file.
const maxDiagnostics = 50

// Parse reads a scenario from the text of a file, which file names in what is
// said of it. The scenario is nil if there is any diagnostic: what is not known,
// or cannot be meant, is refused, with its place and what to do about it.
func Parse(file string, text []byte) (*Scenario, choreography.Diagnostics) {
	refuse := func(offset int, message string) (*Scenario, choreography.Diagnostics) {
		line, column := jsonplace.LineColumn(text, offset)
		return nil, choreography.Diagnostics{{File: file, Line: line, Column: column, Severity: choreography.Error, Message: message}}
	}
	if len(text) > MaxText {
		return refuse(0, fmt.Sprintf("a scenario takes at most %d KiB", MaxText>>10))
	}
	v, err := signal.ParseValue(text)
	if err != nil {
		if syntax, ok := errors.AsType[*signal.SyntaxError](err); ok {
			return refuse(syntax.Offset, syntax.Reason)
		}
		return refuse(0, err.Error())
	}
	b := reader{misnamed: map[*path]bool{}}
	s := b.scenario(node{v: v})
	if diagnostics := b.diagnostics(file, text); len(diagnostics) > 0 {
		return nil, diagnostics
	}
	var marks []*jsonplace.Mark
	for i := range s.expect {
		marks = append(marks, &s.expect[i].mark)
	}
	jsonplace.Locate(text, marks)
	for i := range s.expect {
		e := &s.expect[i]
		e.line, e.column = jsonplace.LineColumn(text, e.mark.Offset)
	}
	return s, nil
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

// at returns a member; its value is absent if there is none.
func (n node) at(name string) node {
	v, _ := n.v.Get(name)
	return node{v, &path{n.path, name}}
}

func (n node) has(name string) bool {
	_, ok := n.v.Get(name)
	return ok
}

// below follows a JSON pointer as far as it leads, and returns what of it leads
// nowhere.
func (n node) below(pointer string) (found node, rest []string) {
	names := segments(pointer)
	for i, name := range names {
		v, ok := lookup(n.v, []string{name})
		if !ok {
			return n, names[i:]
		}
		n = node{v, &path{n.path, name}}
	}
	return n, nil
}

type finding struct {
	mark    *jsonplace.Mark
	message string
}

// reader makes a scenario of a value and collects what is to be said of it. Its
// methods say what is wrong and return a zero value, so that one mistake does not
// hide the next.
type reader struct {
	findings []finding
	agents   []string // their ids
	items    int      // scripts, reactions and events

	// misnamed are objects with a member that is not known: what they lack is
	// likely that one.
	misnamed map[*path]bool
}

func (b *reader) refuse(n node, format string, args ...any) { b.add(n, false, format, args...) }

// lacks says that an object does not have what it needs, unless it has something
// that may be meant to be that.
func (b *reader) lacks(n node, format string, args ...any) {
	if !b.misnamed[n.path] {
		b.refuse(n, format, args...)
	}
}

func (b *reader) add(n node, atName bool, format string, args ...any) {
	if len(b.findings) < maxDiagnostics {
		b.findings = append(b.findings, finding{&jsonplace.Mark{Segments: n.path.segments(), AtName: atName}, fmt.Sprintf(format, args...)})
	}
}

func (b *reader) diagnostics(file string, text []byte) choreography.Diagnostics {
	if len(b.findings) == 0 {
		return nil
	}
	marks := make([]*jsonplace.Mark, len(b.findings))
	for i := range b.findings {
		marks[i] = b.findings[i].mark
	}
	jsonplace.Locate(text, marks)
	slices.SortStableFunc(b.findings, func(x, y finding) int { return x.mark.Offset - y.mark.Offset })
	var ds choreography.Diagnostics
	for _, f := range b.findings {
		line, column := jsonplace.LineColumn(text, f.mark.Offset)
		ds = append(ds, choreography.Diagnostic{
			File: file, Line: line, Column: column, Pointer: jsonplace.Pointer(f.mark.Segments),
			Severity: choreography.Error, Message: f.message,
		})
	}
	return ds
}

// object makes sure that n is an object of known members. A note says what
// something is for, to people, and may stand anywhere.
func (b *reader) object(n node, what string, known ...string) bool {
	if n.v.Kind() != signal.KindObject {
		b.refuse(n, "%s is an object, not %s", what, wording.Article(n.v.Kind()))
		return false
	}
	for name := range n.v.Members() {
		if name == "note" {
			b.text(n, "note", 0)
			continue
		}
		if !slices.Contains(known, name) {
			b.add(n.at(name), true, "%s has no member %s%s", what, wording.Quoted(name), instead(name, known))
			b.misnamed[n.path] = true
		}
	}
	return true
}

// instead says what might be meant, or else what there is.
func instead(name string, known []string) string {
	if meant, ok := spelling.Nearest(name, known); ok {
		return "; did you mean " + strconv.Quote(meant) + "?"
	}
	const most = 16
	switch {
	case len(known) == 0:
		return ""
	case len(known) > most:
		return fmt.Sprintf("; there are %s and %d more", strings.Join(known[:most], ", "), len(known)-most)
	default:
		return "; there is " + strings.Join(known, ", ")
	}
}

// text reads an optional string of at most so many bytes; 0 means any.
func (b *reader) text(n node, name string, most int) string {
	m := n.at(name)
	if !n.has(name) {
		return ""
	}
	s, ok := m.v.Text()
	switch {
	case !ok:
		b.refuse(m, "%s is a string, not %s", name, wording.Article(m.v.Kind()))
	case most > 0 && len(s) > most:
		b.refuse(m, "%s is at most %d bytes long", name, most)
	case most > 0 && strings.ContainsRune(s, 0):
		b.refuse(m, "%s cannot have a NUL in it", name)
	}
	return strings.Clone(s)
}

// needed reads a string that must say something.
func (b *reader) needed(n node, name string, most int) string {
	s := b.text(n, name, most)
	switch {
	case !n.has(name):
		b.lacks(n, "%s is missing", name)
	case s == "" && n.at(name).v.Kind() == signal.KindString:
		b.refuse(n.at(name), "%s is empty", name)
	}
	return s
}

// millis reads a time, or a length of time, in milliseconds.
func (b *reader) millis(n node, name string, absent time.Duration) time.Duration {
	if !n.has(name) {
		return absent
	}
	m := n.at(name)
	number, _ := m.v.Number()
	ns, ok := number.Nanos()
	if !ok || ns < 0 || ns > int64(maxTime) {
		b.refuse(m, "%s is a number of milliseconds, from 0 to %d (%v)", name, maxTime.Milliseconds(), maxTime)
		return absent
	}
	return time.Duration(ns)
}

func (b *reader) integer(n node, name string, absent, least, most int64) int64 {
	if !n.has(name) {
		return absent
	}
	i, ok := n.at(name).v.Int64()
	if !ok || i < least || i > most {
		b.refuse(n.at(name), "%s is a whole number from %d to %d", name, least, most)
		return absent
	}
	return i
}

func (b *reader) isTrue(n node, name string) bool {
	t, ok := n.at(name).v.Bool()
	if !ok || !t {
		b.refuse(n.at(name), "%s is true, or else not there", name)
	}
	return t
}

// list goes over an optional array.
func (b *reader) list(n node, name string, most int) []node {
	if !n.has(name) {
		return nil
	}
	m := n.at(name)
	if m.v.Kind() != signal.KindArray {
		b.refuse(m, "%s is an array, not %s", name, wording.Article(m.v.Kind()))
		return nil
	}
	if m.v.Len() > most {
		b.refuse(m, "%s has at most %d elements", name, most)
		return nil
	}
	var list []node
	for e := range m.v.Elements() {
		list = append(list, node{e, &path{m.path, strconv.Itoa(len(list))}})
	}
	return list
}

func (b *reader) texts(n node, name string) []string {
	var list []string
	for _, e := range b.list(n, name, maxAgents) {
		s, ok := e.v.Text()
		if !ok || s == "" {
			b.refuse(e, "an element of %s is a string that says something, not %s", name, wording.Article(e.v.Kind()))
		}
		list = append(list, strings.Clone(s))
	}
	return list
}

// payload reads an optional object.
func (b *reader) payload(n node, answered bool) signal.Value {
	if !n.has("payload") {
		return nil
	}
	m := n.at("payload")
	if m.v.Kind() != signal.KindObject {
		b.refuse(m, "payload is an object, not %s", wording.Article(m.v.Kind()))
		return nil
	}
	b.placeholders(m, answered)
	return slices.Clone(m.v)
}

// placeholders makes sure that those in a value mean something.
func (b *reader) placeholders(n node, answered bool) {
	switch n.v.Kind() {
	case signal.KindObject:
		for name, m := range n.v.Members() {
			b.placeholders(node{m, &path{n.path, name}}, answered)
		}
	case signal.KindArray:
		i := 0
		for e := range n.v.Elements() {
			b.placeholders(node{e, &path{n.path, strconv.Itoa(i)}}, answered)
			i++
		}
	case signal.KindString:
		text, _ := n.v.Text()
		if name, wrong := wrongPlaceholder(text, answered); wrong {
			advice := "a path into the agent's view, as in {{/visible_entities/B/last_message}}"
			if answered {
				advice += ", or {{answer}}"
			}
			b.refuse(n, "{{%s}} means nothing: put in %s", clip(name, 60), advice)
		}
	default:
	}
}

// view reads a path into a view.
func (b *reader) view(n node) []string {
	s := b.needed(n, "path", 4096)
	if s == "" {
		return nil
	}
	path := segments(s)
	if !strings.HasPrefix(s, "/") || path[0] != "visible_entities" && path[0] != "visible_relationships" {
		b.refuse(n.at("path"), "a path leads into an agent's view: /visible_entities/ID/FIELD or /visible_relationships/ID, and ~1 stands for a / in a name")
	}
	return path
}

// known reads the id of an agent of the scenario.
func (b *reader) known(n node, name string, must bool) string {
	if !must && !n.has(name) {
		return ""
	}
	id := b.needed(n, name, 0)
	if id != "" && !slices.Contains(b.agents, id) {
		b.refuse(n.at(name), "there is no agent %s%s", wording.Quoted(id), instead(id, b.agents))
	}
	return id
}

// one returns which of some members an object has: exactly one.
func (b *reader) one(n node, what string, names ...string) string {
	found := ""
	for _, name := range names {
		switch {
		case !n.has(name):
		case found != "":
			b.refuse(n.at(name), "%s has %s already; it is one of %s", what, found, strings.Join(names, ", "))
		default:
			found = name
		}
	}
	if found == "" && n.v.Kind() == signal.KindObject {
		b.lacks(n, "%s is one of %s", what, strings.Join(names, ", "))
	}
	return found
}

func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
