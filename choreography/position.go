package choreography

import "strconv"

// path leads from the root of a JSON text to one of its values. Nil is the root.
type path struct {
	parent *path
	name   string // of a member
	index  int    // of an element, if name is not used
	member bool
}

func (p *path) at(name string) *path { return &path{parent: p, name: name, member: true} }

func (p *path) element(i int) *path { return &path{parent: p, index: i} }

// segments returns the names and indexes from the root on.
func (p *path) segments() []string {
	if p == nil {
		return nil
	}
	if p.member {
		return append(p.parent.segments(), p.name)
	}
	return append(p.parent.segments(), strconv.Itoa(p.index))
}
