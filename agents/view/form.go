package view

import (
	_ "embed" // of the schemas
	"errors"
	"fmt"
	"strings"

	"github.com/sajou-dev/sajou-go/agents/internal/jsonvalue"
	"github.com/sajou-dev/sajou-go/agents/jsondoc"
	"github.com/sajou-dev/sajou-go/signal"
)

var (
	//go:embed delta.schema.json
	deltaSchema string
	//go:embed view.schema.json
	viewSchema string
)

// DeltaSchema returns the JSON Schema (draft 2020-12) of a [Delta] as [Delta.Value]
// returns it.
func DeltaSchema() []byte { return []byte(deltaSchema) }

// ViewSchema returns the JSON Schema (draft 2020-12) of a [View] as [View.Value] returns
// it.
func ViewSchema() []byte { return []byte(viewSchema) }

// MarshalJSON returns [Delta.Value] as JSON.
func (d Delta) MarshalJSON() ([]byte, error) { return d.Value().MarshalJSON() }

// UnmarshalJSON reads what [Delta.MarshalJSON] writes.
func (d *Delta) UnmarshalJSON(text []byte) error {
	v, err := signal.ParseValue(text)
	if err == nil {
		*d, err = ParseDelta(v)
	}
	return err
}

// ParseDelta reads the object that [Delta.Value] returns. Other members are ignored.
func ParseDelta(v signal.Value) (Delta, error) {
	if _, ok := v.Get("view_seq"); !ok {
		return Delta{}, errors.New("agents: delta: no view_seq")
	}
	patches, _ := v.Get("patches")
	ops, err := jsondoc.ParsePatch(patches)
	if err != nil {
		return Delta{}, fmt.Errorf("agents: delta: %w", err)
	}
	known := &digest{text: strings.Clone(jsonvalue.TextOf(v, "context_digest"))}
	known.once.Do(func() {}) // nothing is left to compute
	return Delta{
		ViewSeq:       jsonvalue.UintOf(v, "view_seq"),
		Patches:       ops,
		SchemaVersion: strings.Clone(jsonvalue.TextOf(v, "schema_version")),
		digest:        known,
	}, nil
}

// MarshalJSON returns [View.Value] as JSON.
func (v View) MarshalJSON() ([]byte, error) { return v.Value().MarshalJSON() }

// UnmarshalJSON reads what [View.MarshalJSON] writes.
func (v *View) UnmarshalJSON(text []byte) error {
	value, err := signal.ParseValue(text)
	if err == nil {
		*v, err = ParseView(value)
	}
	return err
}

// ParseView reads the object that [View.Value] returns. Other members are ignored.
func ParseView(v signal.Value) (View, error) {
	entities, relations := v.Member("visible_entities"), v.Member("visible_relationships")
	if entities.Kind() != signal.KindObject || relations.Kind() != signal.KindObject {
		return View{}, errors.New("agents: view: visible_entities and visible_relationships are objects")
	}
	return View{
		AgentID:              strings.Clone(jsonvalue.TextOf(v, "agent_id")),
		ViewSeq:              jsonvalue.UintOf(v, "view_seq"),
		VisibleEntities:      entities,
		VisibleRelationships: relations,
		ContextDigest:        strings.Clone(jsonvalue.TextOf(v, "context_digest")),
	}, nil
}

// Entity returns an entity as the view has it, absent if the view does not have it. A
// program reads its own type from it with [signal.Unmarshal].
func (v View) Entity(id string) signal.Value { return v.VisibleEntities.Member(id) }
