package agents

import (
	"slices"
	"strings"
	"sync/atomic"

	"github.com/sajou-dev/sajou-go/signal"
)

// sight is one entity as it is shown to somebody. It is never changed, and those
// to whom it is shown alike may share it: a world in which all see each other
// holds each entity twice, not once for each pair.
type sight struct {
	id       string
	object   signal.Value // members in the order of names
	json     []byte       // canonical, with the id before it
	revision uint64       // of the entity from which it was made

	// Of one that is only remembered, object and json are as it was shown last.
	// What is shown has one more member, lastSeen: note is its text, and stands
	// at a place in json.
	gone bool
	seq  uint64 // of the effect that hid it
	note []byte
	at   int

	// What changed since the sight before it is the same for all to whom both
	// are shown.
	changed atomic.Pointer[sightChange]
}

// sightChange is how one sight became another.
type sightChange struct {
	from *sight
	ops  []Operation
}

// since returns the operations that make s of another sight of the same entity.
// They belong to s.
func (s *sight) since(from *sight) []Operation {
	if c := s.changed.Load(); c != nil && c.from == from {
		return c.ops
	}
	ops := appendDiff(nil, pathEntities+"/"+escape(s.id), from.value(), s.value())
	from.changed.Store(nil) // or else each would keep all that were before it
	s.changed.Store(&sightChange{from, ops})
	return ops
}

const lastSeen = "last_seen_seq"

func newSight(id string, o signal.Value, revision uint64) *sight {
	json := appendText(make([]byte, 0, len(id)+len(o)*3/2+4), id)
	json = append(json, ':')
	return &sight{id: strings.Clone(id), object: o, json: AppendCanonical(json, o), revision: revision}
}

// whole returns an entity as it is shown to all from whom nothing of it is
// hidden. It is made once, for the first who looks.
func (s *state) whole(id string, e *entity) *sight {
	if shown := e.shown.Load(); shown != nil {
		return shown
	}
	o := membersOf(e.object)
	if at, ok := s.places.at[id]; ok {
		o.set("position", at.Value())
	}
	shown := newSight(id, o.sorted(), e.revision)
	e.shown.Store(shown)
	return shown
}

// remembered returns how an entity is remembered that was shown like this.
func (s *sight) remembered(seq uint64) *sight {
	members := membersOf(s.object)
	i, own := slices.BinarySearchFunc(members, lastSeen, func(m member, name string) int { return strings.Compare(m.name, name) })
	if own { // ours takes its place
		return newSight(s.id, slices.Delete(members, i, i+1).value(), 0).remembered(seq)
	}
	note := appendText(nil, lastSeen)
	note = integerValue(seq).AppendJSON(append(note, ':'))
	switch {
	case i > 0:
		note = append([]byte{','}, note...)
	case len(members) > 0:
		note = append(note, ',')
	}
	head := AppendCanonical(append(appendText(nil, s.id), ':'), members[:i].value())
	return &sight{id: s.id, object: s.object, json: s.json, gone: true, seq: seq, note: note, at: len(head) - 1}
}

// value returns what is shown.
func (s *sight) value() signal.Value {
	if !s.gone {
		return s.object
	}
	o := membersOf(s.object)
	o.set(lastSeen, integerValue(s.seq))
	return o.sorted()
}

// size returns how many bytes of JSON it is.
func (s *sight) size() int { return len(s.json) + len(s.note) }

// appendJSON appends its JSON, with the id before it.
func (s *sight) appendJSON(dst []byte) []byte {
	dst = append(dst, s.json[:s.at]...)
	dst = append(dst, s.note...)
	return append(dst, s.json[s.at:]...)
}
