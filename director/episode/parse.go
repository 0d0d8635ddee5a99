package episode

import (
	"math"
	"slices"
	"strings"

	"github.com/sajou-dev/sajou-go/authored"
	"github.com/sajou-dev/sajou-go/internal/wording"
	"github.com/sajou-dev/sajou-go/signal"
)

// Parse reads an episode from the text of a file, JSON or YAML; [authored.Read] says
// which names are those of YAML. A mistake that leaves the text without a meaning is an
// error; something written that has no effect gets a warning. File names the text in
// diagnostics. The episode is nil if there is an error; [authored.Diagnostics.Err] with [ErrEpisode] returns the errors.
func Parse(file string, text []byte) (*Episode, authored.Diagnostics) {
	t, refused := authored.Read(file, text)
	if refused != nil {
		return nil, refused
	}
	var b builder
	e := b.episode(t.Value)
	return e, t.Placed(b.Diagnostics(file, t.JSON))
}

// node is a value with its place in the text. To an author a member that is null is
// absent, which distinguishes node from [authored.Located].
type node struct{ authored.Located }

// root returns the node of a whole text.
func root(v signal.Value) node { return node{authored.Located{Value: v}} }

func (n node) at(name string) node { return node{n.At(name)} }

// has reports whether n has a member that is not null.
func (n node) has(name string) bool {
	v, ok := n.Value.Get(name)
	return ok && v.Kind() != signal.KindNull
}

// without returns the place of n without a value.
func (n node) without() node { return node{authored.Located{Location: n.Location}} }

// elements goes over an array; any other value has no elements.
func (n node) elements(yield func(int, node) bool) {
	n.Elements(func(i int, e authored.Located) bool { return yield(i, node{e}) })
}

// builder makes an episode of a value and collects remarks about it.
type builder struct {
	authored.Remarks
	version bool // the version is why the text is refused
}

func (b *builder) errorf(n node, format string, args ...any) {
	b.Errorf(n.Location, format, args...)
}

func (b *builder) warnf(n node, format string, args ...any) {
	b.Warnf(n.Location, format, args...)
}

// The readers below add a remark about a mistake and return a zero value, so that one
// mistake does not hide the next.

// object reports whether n is an object, and warns of members of other names.
func (b *builder) object(n node, what string, known ...string) bool {
	if n.Value.Kind() != signal.KindObject {
		b.errorf(n, "want %s, an object, not %s", what, n.Value.Kind().WithArticle())
		return false
	}
	for name := range n.Value.Members() {
		if !slices.Contains(known, name) {
			b.Warnf(n.Location.At(name).Key(), "%s has no member %s: it has no effect", what, wording.Quoted(name))
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
	s, ok := m.Value.Text()
	if !ok {
		b.errorf(m, "want a string, not %s", m.Value.Kind().WithArticle())
	}
	return s
}

// needed reads a string that must not be blank.
func (b *builder) needed(n node, name string) string {
	s := b.text(n, name)
	if strings.TrimSpace(s) == "" {
		if m := n.at(name); m.Value == nil || m.Value.Kind() == signal.KindNull {
			b.errorf(n, "%s is missing", name)
		} else if m.Value.Kind() == signal.KindString {
			b.errorf(m, "%s is empty", name)
		}
	}
	return s
}

// MaxID bounds an id, in bytes.
const MaxID = 200

func (b *builder) id(n node) string {
	s := b.needed(n, "id")
	if len(s) > MaxID {
		b.errorf(n.at("id"), "id is longer than %d bytes", MaxID)
	}
	return s
}

// MaxTurn bounds turn numbers: far more than any play has, and safe to add in an int.
const MaxTurn = 1 << 30

// turn reads an optional number of turns of at least least.
func (b *builder) turn(n node, name string, least, absent int) int {
	if !n.has(name) {
		return absent
	}
	m := n.at(name)
	i, ok := m.Value.Int64()
	if f, isNumber := m.Value.Float64(); !ok && isNumber && f == math.Trunc(f) && math.Abs(f) <= 2*MaxTurn {
		i, ok = int64(f), true // written 3.0, as some programs do
	}
	switch {
	case !ok:
		b.errorf(m, "want an integer, not %s", m.Value.Kind().WithArticle())
		return absent
	case i < int64(least):
		b.errorf(m, "%s is less than %d", name, least)
		return absent
	case i > MaxTurn:
		b.errorf(m, "%s is more than %d", name, MaxTurn)
		return absent
	}
	return int(i)
}

func (b *builder) bool(n node, name string) bool {
	if !n.has(name) {
		return false
	}
	m := n.at(name)
	v, ok := m.Value.Bool()
	if !ok {
		b.errorf(m, "want true or false, not %s", m.Value.Kind().WithArticle())
	}
	return v
}

// oneOf reads an optional word of a list and returns its index.
func (b *builder) oneOf(n node, name string, absent int, words ...string) int {
	s := b.text(n, name)
	if s == "" && n.at(name).Value.Kind() != signal.KindString {
		return absent
	}
	i := slices.Index(words, s)
	if i < 0 {
		b.errorf(n.at(name), "%s is not one of %s", wording.Quoted(s), strings.Join(words, ", "))
		return absent
	}
	return i
}

// MaxItems bounds every list of an episode.
const MaxItems = 4096

// list reads an optional array of at most MaxItems elements.
func (b *builder) list(n node, name string) node {
	m := n.at(name)
	switch {
	case !n.has(name):
		return m.without()
	case m.Value.Kind() != signal.KindArray:
		b.errorf(m, "want an array, not %s", m.Value.Kind().WithArticle())
		return m.without()
	case m.Value.Len() > MaxItems:
		b.errorf(m, "more than %d elements", MaxItems)
		return m.without()
	}
	return m
}

// texts reads an optional array of strings that are not blank.
func (b *builder) texts(n node, name string) []string {
	var out []string
	for _, e := range b.list(n, name).elements {
		s, ok := e.Value.Text()
		switch {
		case !ok:
			b.errorf(e, "want a string, not %s", e.Value.Kind().WithArticle())
		case strings.TrimSpace(s) == "":
			b.errorf(e, "an empty text")
		default:
			out = append(out, s)
		}
	}
	return out
}
