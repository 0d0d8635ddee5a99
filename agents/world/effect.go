package world

import (
	"errors"
	"fmt"
	"time"

	"github.com/sajou-dev/sajou-go/agents/internal/jsonvalue"
	"github.com/sajou-dev/sajou-go/signal"
)

// SchemaVersion is the version of the forms of effects, views and deltas.
const SchemaVersion = "1.0.0"

// The kinds of effect that a [World] knows by itself. Any other kind changes
// only the world's metadata, unless a [Handler] is registered for it.
const (
	KindMove           = "Move"           // to (or position): the source's new place
	KindSpeak          = "Speak"          // text (or message), channel, target_id
	KindSpeakResponse  = "SpeakResponse"  // the same
	KindMessageEmitted = "MessageEmitted" // the same
	KindInteract       = "Interact"       // target_id (or target)
	KindEntityCreated  = "EntityCreated"  // entity_id, entity_data, position
	KindEntityRemoved  = "EntityRemoved"  // entity_id

	// KindEntityUpdated sets and removes fields: entity_id, fields, remove.
	KindEntityUpdated = "EntityUpdated"
	// KindRelationshipAdded relates two entities: from, to, type, strength, mutual. A
	// relation keeps no metadata: package agents refuses an effect that has some.
	KindRelationshipAdded = "RelationshipAdded"
	// KindRelationshipRemoved undoes it: from, to, type (all types if absent), mutual.
	KindRelationshipRemoved = "RelationshipRemoved"
)

// The channels of a message. A message without one is public.
const (
	ChannelPublic  = "public"
	ChannelTeam    = "team"
	ChannelPrivate = "private"
)

// Effect is one accepted event of the world.
type Effect struct {
	UUID          string
	Kind          string
	Payload       signal.Value // an object, or absent
	GlobalSeq     uint64
	SimTime       float64 // in seconds, finite
	SourceID      string
	SchemaVersion string
	ReqID         string // of the intent that it comes from; "" if it comes from none
}

// Seconds returns a session time as the seconds of [Effect.SimTime].
func Seconds(d time.Duration) float64 { return float64(d) / 1e9 }

// Value returns e as the object of seven members over which the checksum of the
// multi-agent design is taken. The request's id is not part of it.
func (e Effect) Value() signal.Value {
	payload := e.Payload
	if payload == nil {
		payload = jsonvalue.Empty()
	}
	return jsonvalue.Fields{
		{"uuid", jsonvalue.Text(e.UUID)},
		{"kind", jsonvalue.Text(e.Kind)},
		{"payload", payload},
		{"global_seq", jsonvalue.Uint(e.GlobalSeq)},
		{"sim_time", jsonvalue.Float(e.SimTime)},
		{"source_id", jsonvalue.Text(e.SourceID)},
		{"schema_version", jsonvalue.Text(e.SchemaVersion)},
	}.Value()
}

// ParseEffect reads the object that [Effect.Value] returns, and the member
// req_id if there is one. Other members are ignored.
func ParseEffect(v signal.Value) (Effect, error) {
	var e Effect
	if v.Kind() != signal.KindObject {
		return e, errors.New("agents: an effect is an object")
	}
	for _, f := range [...]struct {
		name string
		to   *string
	}{{"uuid", &e.UUID}, {"kind", &e.Kind}, {"source_id", &e.SourceID}, {"schema_version", &e.SchemaVersion}, {"req_id", &e.ReqID}} {
		if m, ok := v.Get(f.name); ok {
			if *f.to, ok = m.Text(); !ok {
				return Effect{}, fmt.Errorf("agents: effect: %s is no string", f.name)
			}
		}
	}
	if m, ok := v.Get("payload"); ok && m.Kind() != signal.KindObject {
		return Effect{}, errors.New("agents: effect: payload is no object")
	} else if ok {
		e.Payload = m
	}
	if m, ok := v.Get("global_seq"); ok {
		i, ok := m.Int64()
		if !ok || i < 0 {
			return Effect{}, errors.New("agents: effect: global_seq is no sequence number")
		}
		e.GlobalSeq = uint64(i)
	}
	if m, ok := v.Get("sim_time"); ok {
		if e.SimTime, ok = m.Float64(); !ok {
			return Effect{}, errors.New("agents: effect: sim_time is no number")
		}
	}
	return e, nil
}

// EffectError says why an effect cannot be applied.
type EffectError struct {
	Kind   string
	Path   string // JSON pointer into the effect; "" if no one member is at fault
	Reason string
	Err    error // ErrPayload, ErrUnknownEntity, ErrLimit or ErrRefused, or wraps it
}

func (e *EffectError) Error() string {
	at := ""
	if e.Path != "" {
		at = " " + e.Path
	}
	return fmt.Sprintf("agents: effect %q%s: %s: %v", e.Kind, at, e.Reason, e.Err)
}
func (e *EffectError) Unwrap() error { return e.Err }

func malformed(path, format string, args ...any) error {
	return &EffectError{Path: path, Reason: fmt.Sprintf(format, args...), Err: ErrPayload}
}

func limit(path, format string, args ...any) error {
	return &EffectError{Path: path, Reason: fmt.Sprintf(format, args...), Err: ErrLimit}
}

func unknown(path, id string) error {
	return &EffectError{Path: path, Reason: fmt.Sprintf(textUnknownEntity, id), Err: ErrUnknownEntity}
}

// Handler gives a kind of effect its meaning: a pure function from the world and the
// effect to changes, which Plan calls. The world checks all changes before
// it writes any, and applies all or none. A handler that panics refuses the effect.
type Handler struct {
	Kind string
	// Version must grow when the handler's rules change. A state that was written under
	// another version is not restored.
	Version uint32
	Plan    func(w ReadOnly, e Effect) ([]Change, error)
}

func (h *Handler) plan(w ReadOnly, e Effect) (changes []Change, err error) {
	defer func() {
		if r := recover(); r != nil {
			changes, err = nil, fmt.Errorf(textHandlerPanic, r)
		}
	}()
	return h.Plan(w, e)
}

// Change is one write of an effect. [SetField] and the functions below it make changes.
type Change struct {
	Op       ChangeOp
	ID       string // of the entity; of a relation, where it begins
	Field    string
	Value    signal.Value
	At       Position
	Relation Relation
}

// ChangeOp is the kind of a [Change].
type ChangeOp uint8

// The kinds of changes.
const (
	OpSetField ChangeOp = iota
	OpRemoveField
	OpPutEntity
	OpRemoveEntity
	OpPlace
	OpUnplace
	OpRelate
	OpUnrelate
)

// SetField gives a field of an entity its value.
func SetField(id, field string, value signal.Value) Change {
	return Change{Op: OpSetField, ID: id, Field: field, Value: value}
}

// RemoveField removes a field of an entity, if the entity has it.
func RemoveField(id, field string) Change { return Change{Op: OpRemoveField, ID: id, Field: field} }

// PutEntity makes an entity, or replaces one: its object, not its position and relations.
func PutEntity(id string, object signal.Value) Change {
	return Change{Op: OpPutEntity, ID: id, Value: object}
}

// RemoveEntity removes an entity with its position and all relations from it and to it.
func RemoveEntity(id string) Change { return Change{Op: OpRemoveEntity, ID: id} }

// Place gives an id its position.
func Place(id string, at Position) Change { return Change{Op: OpPlace, ID: id, At: at} }

// Unplace removes the position of an id.
func Unplace(id string) Change { return Change{Op: OpUnplace, ID: id} }

// Relate adds a relation from one entity to another, or gives the one of the
// same type its new strength.
func Relate(from string, r Relation) Change { return Change{Op: OpRelate, ID: from, Relation: r} }

// Unrelate removes the relation of the given type.
func Unrelate(from, to, typ string) Change {
	return Change{Op: OpUnrelate, ID: from, Relation: Relation{To: to, Type: typ}}
}
