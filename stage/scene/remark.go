package scene

import (
	"strings"

	"github.com/sajou-dev/sajou-go/authored"
	"github.com/sajou-dev/sajou-go/internal/wording"
	"github.com/sajou-dev/sajou-go/signal"
)

// node is a value with its path from the root of its text.
type node struct {
	value  signal.Value
	up     *node
	name   string // of a member
	index  int    // of an element
	member bool
}

func (n *node) at(name string, v signal.Value) *node {
	return &node{value: v, up: n, name: name, member: true}
}

func (n *node) element(i int, v signal.Value) *node { return &node{value: v, up: n, index: i} }

// get returns a member, with an absent value if there is none. A nil node has no
// members.
func (n *node) get(name string) *node {
	if n == nil {
		return &node{}
	}
	v, _ := n.value.Get(name)
	return n.at(name, v)
}

func (n *node) there() bool { return n.value.Kind() != signal.KindAbsent }

// place returns the position of n in its text.
func (n *node) place() *authored.Location {
	switch {
	case n == nil || n.up == nil:
		return nil
	case n.member:
		return n.up.place().At(n.name)
	default:
		return n.up.place().Element(n.index)
	}
}

// remarks collects the findings about a text.
type remarks struct {
	authored.Remarks
	beyond int // errors that the schema cannot express
}

func (r *remarks) errorf(n *node, format string, args ...any) { r.Errorf(n.place(), format, args...) }

// refuse is errorf for an error that the schema cannot express.
func (r *remarks) refuse(n *node, format string, args ...any) {
	r.beyond++
	r.errorf(n, format, args...)
}

func (r *remarks) warnf(n *node, format string, args ...any) { r.Warnf(n.place(), format, args...) }

// unknown refuses a member that its object does not have.
func (r *remarks) unknown(n *node, what, has string) {
	r.Errorf(n.place().Key(), "unknown field %s: %s has %s", wording.Quoted(n.name), what, has)
}

// firstError returns the first error; false if there is none.
func (r *remarks) firstError() (authored.Remark, bool) {
	for _, f := range r.List() {
		if f.Severity == authored.SeverityError {
			return f, true
		}
	}
	return authored.Remark{}, false
}

// offered lists names for a message, the first few of many.
func offered(names []string) string {
	const most = 12
	if len(names) > most {
		return strings.Join(names[:most], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}
