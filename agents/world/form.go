package world

import (
	_ "embed" // of the schema

	"github.com/sajou-dev/sajou-go/agents/internal/jsonvalue"
	"github.com/sajou-dev/sajou-go/signal"
)

//go:embed effect.schema.json
var effectSchema string

// EffectSchema returns the JSON Schema (draft 2020-12) of an [Effect] as
// [Effect.WithRequest] returns it and [ParseEffect] reads it.
func EffectSchema() []byte { return []byte(effectSchema) }

// WithRequest returns e as [Effect.Value] does, with the member req_id if it comes from
// an intent.
func (e Effect) WithRequest() signal.Value {
	v := e.Value()
	if e.ReqID == "" {
		return v
	}
	return append(jsonvalue.FieldsOf(v), jsonvalue.NamedValue{"req_id", jsonvalue.Text(e.ReqID)}).Value()
}

// MarshalJSON returns [Effect.WithRequest] as JSON.
func (e Effect) MarshalJSON() ([]byte, error) { return e.WithRequest().MarshalJSON() }

// UnmarshalJSON reads an effect as [ParseEffect] does.
func (e *Effect) UnmarshalJSON(text []byte) error {
	v, err := signal.ParseValue(text)
	if err == nil {
		*e, err = ParseEffect(v)
	}
	return err
}

// MarshalJSON returns [Position.Value] as JSON.
func (p Position) MarshalJSON() ([]byte, error) { return p.Value().MarshalJSON() }

// UnmarshalJSON reads a position as [ParsePosition] does.
func (p *Position) UnmarshalJSON(text []byte) error {
	v, err := signal.ParseValue(text)
	if err == nil {
		*p, err = ParsePosition(v)
	}
	return err
}

// MarshalJSON returns [Relation.Value] as JSON.
func (r Relation) MarshalJSON() ([]byte, error) { return r.Value().MarshalJSON() }

// UnmarshalJSON reads a relation as [ParseWorld] does, an id, or an object with to; but
// it refuses a member that is not kept, as [CheckRelations] does.
func (r *Relation) UnmarshalJSON(text []byte) error {
	v, err := signal.ParseValue(text)
	if err == nil {
		err = checkRelation(v)
	}
	if err == nil {
		*r, err = parseRelation(v)
	}
	return err
}

// AuthoredWorld is a world to begin with, as Go values. [signal.Marshal] returns it in the
// form that [ParseWorld] reads and Begin of a session's agents takes, so a mistake is
// found by the same rules, and its place is the same JSON pointer:
//
//	start, err := signal.Marshal(world.AuthoredWorld{
//		Entities:  map[string]any{"ann": person{Type: "agent"}, "lamp": lamp{Type: "lamp", Lit: true}},
//		Relations: map[string][]world.Relation{"ann": {{To: "lamp", Type: "owns"}}},
//		Places:    map[string]world.Position{"lamp": {X: 3}},
//	})
type AuthoredWorld struct {
	// Entities are by id whatever has a JSON object as its form: a struct, a map, a
	// [signal.Value].
	Entities map[string]any `json:"entities,omitempty"`
	// Relations are by the id from which they lead.
	Relations map[string][]Relation `json:"relationships,omitempty"`
	// Places are the positions of entities. A field position of an entity's object
	// places nothing.
	Places map[string]Position `json:"spatial_index,omitempty"`
	// Metadata is whatever has a JSON object as its form.
	Metadata any `json:"metadata,omitempty"`
}
