package view

import (
	"slices"
	"strings"
	"sync/atomic"

	"github.com/sajou-dev/sajou-go/agents/internal/jsonvalue"
	"github.com/sajou-dev/sajou-go/agents/jsondoc"
	"github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/internal/jsonpointer"
	"github.com/sajou-dev/sajou-go/signal"
)

// renderedEntity is one entity in the form in which a view shows it. It is
// immutable, but for changed, and views that show the same share it: a world in
// which all agents see each other holds each entity twice, not once for each pair.
type renderedEntity struct {
	id       string
	object   signal.Value // members in the order of names
	json     []byte       // canonical, with the id before it
	revision uint64       // of the entity from which it was made

	// confidential says, of a form with all fields, that one of them keeps a message, see
	// discloses.
	confidential bool

	// Of a remembered entity, object and json are those that were shown last. The
	// view shows one more member, lastSeen: note is its text, which appendJSON
	// inserts into json at the offset at.
	gone bool
	seq  uint64 // the agent's own number of the delta that hid it
	note []byte
	at   int

	// The change from the preceding form, which all views that show both forms
	// share.
	changed atomic.Pointer[renderedChange]
}

// renderedChange is the patch from one form of an entity to another.
type renderedChange struct {
	from *renderedEntity
	ops  []jsondoc.Operation
}

// since returns the operations that turn another form of the entity into s. The
// caller must not change them: views share them.
func (s *renderedEntity) since(from *renderedEntity) []jsondoc.Operation {
	if c := s.changed.Load(); c != nil && c.from == from {
		return c.ops
	}
	ops := jsondoc.AppendDiff(nil, PathEntities+"/"+jsonpointer.Escape(s.id), from.value(), s.value())
	from.changed.Store(nil) // otherwise each form would keep all preceding ones in memory
	s.changed.Store(&renderedChange{from, ops})
	return ops
}

const lastSeen = "last_seen_seq"

func newRendered(id string, o signal.Value, revision uint64) *renderedEntity {
	json := jsondoc.AppendText(make([]byte, 0, len(id)+len(o)*3/2+4), id)
	json = append(json, ':')
	return &renderedEntity{id: strings.Clone(id), object: o, json: jsondoc.AppendCanonical(json, o), revision: revision}
}

// renderFull returns the form of an entity with all of its fields. It is rendered
// once for each revision of the entity, by the first caller.
func renderFull(w world.Index, id string, e *world.EntityRevision) *renderedEntity {
	if shown, ok := e.Memo().(*renderedEntity); ok {
		return shown
	}
	o := jsonvalue.FieldsOf(e.Object())
	if at, ok := w.Position(id); ok {
		o.Set("position", at.Value())
	}
	shown := newRendered(id, o.Sorted(), e.Revision())
	shown.confidential = slices.ContainsFunc(o, func(m jsonvalue.NamedValue) bool {
		return m.Name == world.FieldPrivate || m.Name == world.FieldTeam
	})
	e.SetMemo(shown)
	return shown
}

// remembered returns the form of an entity that is remembered as s.
func (s *renderedEntity) remembered(seq uint64) *renderedEntity {
	members := jsonvalue.FieldsOf(s.object)
	i, own := slices.BinarySearchFunc(members, lastSeen, func(m jsonvalue.NamedValue, name string) int { return strings.Compare(m.Name, name) })
	if own { // a field of the same name gives way
		return newRendered(s.id, slices.Delete(members, i, i+1).Value(), 0).remembered(seq)
	}
	note := jsondoc.AppendText(nil, lastSeen)
	note = jsonvalue.Uint(seq).AppendJSON(append(note, ':'))
	switch {
	case i > 0:
		note = append([]byte{','}, note...)
	case len(members) > 0:
		note = append(note, ',')
	}
	head := jsondoc.AppendCanonical(append(jsondoc.AppendText(nil, s.id), ':'), members[:i].Value())
	return &renderedEntity{id: s.id, object: s.object, json: s.json, gone: true, seq: seq, note: note, at: len(head) - 1}
}

// value returns the entity as JSON shows it.
func (s *renderedEntity) value() signal.Value {
	if !s.gone {
		return s.object
	}
	o := jsonvalue.FieldsOf(s.object)
	o.Set(lastSeen, jsonvalue.Uint(s.seq))
	return o.Sorted()
}

// size returns the length of the JSON in bytes.
func (s *renderedEntity) size() int { return len(s.json) + len(s.note) }

// appendJSON appends the id and the JSON of the entity.
func (s *renderedEntity) appendJSON(dst []byte) []byte {
	dst = append(dst, s.json[:s.at]...)
	dst = append(dst, s.note...)
	return append(dst, s.json[s.at:]...)
}
