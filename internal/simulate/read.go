package simulate

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go/authored"
	"github.com/sajou-dev/sajou-go/internal/jsonpointer"
	"github.com/sajou-dev/sajou-go/internal/spelling"
	"github.com/sajou-dev/sajou-go/internal/wording"
	"github.com/sajou-dev/sajou-go/signal"
)

// Parse parses the text of a file, JSON or YAML; diagnostics name the file. It returns either a
// simulation or diagnostics: unknown members and impossible values are refused, with
// the place and a remedy.
func Parse(file string, text []byte) (*Simulation, authored.Diagnostics) {
	tooLarge := authored.SyntaxDiagnostic(file, nil, fmt.Errorf("a scenario takes at most %d KiB", MaxText>>10))
	if len(text) > MaxText {
		return nil, authored.Diagnostics{tooLarge}
	}
	t, refused := authored.Read(file, text)
	if refused != nil {
		return nil, refused
	}
	if len(t.JSON) > MaxText { // by aliases of YAML
		return nil, authored.Diagnostics{tooLarge}
	}
	b := reader{misnamed: map[*authored.Location]bool{}}
	s := b.scenario(authored.Located{Value: t.Value})
	if diagnostics := t.Placed(b.Diagnostics(file, t.JSON)); len(diagnostics) > 0 {
		return nil, diagnostics
	}
	var places []*authored.Location
	for i := range s.expect {
		places = append(places, s.expect[i].place)
	}
	offsets := authored.Locate(t.JSON, places)
	for i := range s.expect {
		e := &s.expect[i]
		e.line, e.column = t.Place(offsets[i])
	}
	return s, nil
}

// below follows a JSON pointer as far as possible, and returns the segments that do
// not resolve.
func below(n authored.Located, pointer string) (found authored.Located, rest []string) {
	names := jsonpointer.Split(pointer)
	for i, name := range names {
		v, ok := lookup(n.Value, []string{name})
		if !ok {
			return n, names[i:]
		}
		n = authored.Located{Value: v, Location: n.Location.At(name)}
	}
	return n, nil
}

// reader builds a simulation from a value and collects findings. Its methods report a
// mistake and return a zero value, so that one mistake does not hide the next.
type reader struct {
	authored.Remarks
	agents []string // their ids
	items  int      // scripts, reactions and events

	// misnamed holds the objects with an unknown member: a member that they lack is
	// probably the misspelled one.
	misnamed map[*authored.Location]bool
}

func (b *reader) refuse(n authored.Located, format string, args ...any) {
	b.Errorf(n.Location, format, args...)
}

// lacks reports that an object lacks a member, unless it has an unknown member that
// may be a misspelling of it.
func (b *reader) lacks(n authored.Located, format string, args ...any) {
	if !b.misnamed[n.Location] {
		b.refuse(n, format, args...)
	}
}

// object makes sure that n is an object of known members. A note says what
// something is for, to people, and may stand anywhere.
func (b *reader) object(n authored.Located, what string, known ...string) bool {
	if n.Value.Kind() != signal.KindObject {
		b.refuse(n, "%s is an object, not %s", what, n.Value.Kind().WithArticle())
		return false
	}
	for name := range n.Value.Members() {
		if name == "note" {
			b.text(n, "note", 0)
			continue
		}
		if !slices.Contains(known, name) {
			if !b.Full() {
				b.Errorf(n.Location.At(name).Key(), "%s has no member %s%s", what, wording.Quoted(name), instead(name, known))
			}
			b.misnamed[n.Location] = true
		}
	}
	return true
}

// instead suggests the nearest known name, or else lists the known names.
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
func (b *reader) text(n authored.Located, name string, most int) string {
	m := n.At(name)
	if !n.Has(name) {
		return ""
	}
	s, ok := m.Value.Text()
	switch {
	case !ok:
		b.refuse(m, "%s is a string, not %s", name, m.Value.Kind().WithArticle())
	case most > 0 && len(s) > most:
		b.refuse(m, "%s is at most %d bytes long", name, most)
	case most > 0 && strings.ContainsRune(s, 0):
		b.refuse(m, "%s cannot have a NUL in it", name)
	}
	return strings.Clone(s)
}

// needed reads a string that must say something.
func (b *reader) needed(n authored.Located, name string, most int) string {
	s := b.text(n, name, most)
	switch {
	case !n.Has(name):
		b.lacks(n, "%s is missing", name)
	case s == "" && n.At(name).Value.Kind() == signal.KindString:
		b.refuse(n.At(name), "%s is empty", name)
	}
	return s
}

// millis reads a time, or a length of time, in milliseconds.
func (b *reader) millis(n authored.Located, name string, absent time.Duration) time.Duration {
	if !n.Has(name) {
		return absent
	}
	m := n.At(name)
	number, _ := m.Value.Number()
	ns, ok := number.Nanos()
	if !ok || ns < 0 || ns > int64(maxTime) {
		b.refuse(m, "%s is a number of milliseconds, from 0 to %d (%v)", name, maxTime.Milliseconds(), maxTime)
		return absent
	}
	return time.Duration(ns)
}

func (b *reader) integer(n authored.Located, name string, absent, least, most int64) int64 {
	if !n.Has(name) {
		return absent
	}
	i, ok := n.At(name).Value.Int64()
	if !ok || i < least || i > most {
		b.refuse(n.At(name), "%s is a whole number from %d to %d", name, least, most)
		return absent
	}
	return i
}

func (b *reader) isTrue(n authored.Located, name string) bool {
	t, ok := n.At(name).Value.Bool()
	if !ok || !t {
		b.refuse(n.At(name), "%s is true, or else not there", name)
	}
	return t
}

// list returns the elements of an optional array.
func (b *reader) list(n authored.Located, name string, most int) []authored.Located {
	if !n.Has(name) {
		return nil
	}
	m := n.At(name)
	if m.Value.Kind() != signal.KindArray {
		b.refuse(m, "%s is an array, not %s", name, m.Value.Kind().WithArticle())
		return nil
	}
	if m.Value.Len() > most {
		b.refuse(m, "%s has at most %d elements", name, most)
		return nil
	}
	var list []authored.Located
	for e := range m.Value.Elements() {
		list = append(list, authored.Located{Value: e, Location: m.Location.Element(len(list))})
	}
	return list
}

func (b *reader) texts(n authored.Located, name string) []string {
	var list []string
	for _, e := range b.list(n, name, maxAgents) {
		s, ok := e.Value.Text()
		if !ok || s == "" {
			b.refuse(e, "an element of %s is a string that says something, not %s", name, e.Value.Kind().WithArticle())
		}
		list = append(list, strings.Clone(s))
	}
	return list
}

// payload reads an optional object.
func (b *reader) payload(n authored.Located, answered bool) signal.Value {
	if !n.Has("payload") {
		return nil
	}
	m := n.At("payload")
	if m.Value.Kind() != signal.KindObject {
		b.refuse(m, "payload is an object, not %s", m.Value.Kind().WithArticle())
		return nil
	}
	b.placeholders(m, answered)
	return slices.Clone(m.Value)
}

// placeholders makes sure that those in a value mean something.
func (b *reader) placeholders(n authored.Located, answered bool) {
	switch n.Value.Kind() {
	case signal.KindObject:
		for name, m := range n.Value.Members() {
			b.placeholders(authored.Located{Value: m, Location: n.Location.At(name)}, answered)
		}
	case signal.KindArray:
		i := 0
		for e := range n.Value.Elements() {
			b.placeholders(authored.Located{Value: e, Location: n.Location.Element(i)}, answered)
			i++
		}
	case signal.KindString:
		text, _ := n.Value.Text()
		if name, wrong := wrongPlaceholder(text, answered); wrong {
			advice := "a path into the agent's view, as in {{/visible_entities/B/last_message}}"
			if answered {
				advice += ", or {{answer}}"
			}
			b.refuse(n, "{{%s}} means nothing: put in %s", wording.Clip(name, 60), advice)
		}
	default:
	}
}

// view reads a path into a view.
func (b *reader) view(n authored.Located) []string {
	s := b.needed(n, "path", 4096)
	if s == "" {
		return nil
	}
	path := jsonpointer.Split(s)
	if !strings.HasPrefix(s, "/") || path[0] != "visible_entities" && path[0] != "visible_relationships" {
		b.refuse(n.At("path"), "a path leads into an agent's view: /visible_entities/ID/FIELD or /visible_relationships/ID, and ~1 stands for a / in a name")
	}
	return path
}

// known reads the id of an agent of the scenario.
func (b *reader) known(n authored.Located, name string, must bool) string {
	if !must && !n.Has(name) {
		return ""
	}
	id := b.needed(n, name, 0)
	if id != "" && !slices.Contains(b.agents, id) {
		b.refuse(n.At(name), "there is no agent %s%s", wording.Quoted(id), instead(id, b.agents))
	}
	return id
}

// one returns which of some members an object has: exactly one.
func (b *reader) one(n authored.Located, what string, names ...string) string {
	found := ""
	for _, name := range names {
		switch {
		case !n.Has(name):
		case found != "":
			b.refuse(n.At(name), "%s has %s already; it is one of %s", what, found, strings.Join(names, ", "))
		default:
			found = name
		}
	}
	if found == "" && n.Value.Kind() == signal.KindObject {
		b.lacks(n, "%s is one of %s", what, strings.Join(names, ", "))
	}
	return found
}
