package agents

import (
	"errors"
	"fmt"
	"math"
	"time"

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
	// KindRelationshipAdded relates two entities: from, to, type, strength, mutual.
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

// Draft is what somebody wants to happen; the core makes an [Effect] of it.
type Draft struct {
	Kind          string
	Payload       signal.Value
	SourceID      string
	SchemaVersion string
}

// Effect is what the world accepted.
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

// Effect returns the effect that d becomes with what the core decides.
func (d Draft) Effect(uuid string, seq uint64, simTime float64, reqID string) Effect {
	return Effect{uuid, d.Kind, d.Payload, seq, simTime, d.SourceID, d.SchemaVersion, reqID}
}

// Seconds returns a session time as the seconds of [Effect.SimTime].
func Seconds(d time.Duration) float64 { return float64(d) / 1e9 }

// Value returns e as the object of seven members over which [Checksum] is
// taken. The request's id is no part of it.
func (e Effect) Value() signal.Value {
	payload := e.Payload
	if payload == nil {
		payload = emptyObject()
	}
	return object{
		{"uuid", textValue(e.UUID)},
		{"kind", textValue(e.Kind)},
		{"payload", payload},
		{"global_seq", integerValue(e.GlobalSeq)},
		{"sim_time", numberValue(e.SimTime)},
		{"source_id", textValue(e.SourceID)},
		{"schema_version", textValue(e.SchemaVersion)},
	}.value()
}

// ParseEffect reads the object that [Effect.Value] returns, and the member
// req_id if there is one. Other members are ignored.
func ParseEffect(v signal.Value) (Effect, error) {
	var e Effect
	if v.Kind() != signal.KindObject {
		return e, errors.New("agents: an effect is an object")
	}
	for name, field := range map[string]*string{
		"uuid": &e.UUID, "kind": &e.Kind, "source_id": &e.SourceID, "schema_version": &e.SchemaVersion, "req_id": &e.ReqID,
	} {
		if m, ok := v.Get(name); ok {
			if *field, ok = m.Text(); !ok {
				return Effect{}, fmt.Errorf("agents: effect: %s is no string", name)
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

// Errors of [World.Check] and [World.Apply]: what the caller may do about it.
// Each comes inside an [*EffectError].
var (
	// ErrPayload says that the effect itself is malformed.
	ErrPayload = errors.New("malformed effect")
	// ErrUnknownEntity says that it speaks of an entity that is not there.
	ErrUnknownEntity = errors.New("no such entity")
	// ErrLimit says that the world would outgrow one of its bounds.
	ErrLimit = errors.New("beyond a limit of the world")
	// ErrRefused says that the kind's handler refused it.
	ErrRefused = errors.New("refused by the handler")
)

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

// Handler is what a kind of effect means: a pure function of the world and the
// effect, which both Check and Apply ask. It returns what is to change; the world checks that before anything
// is written, and applies all of it or nothing. If it panics, it has refused.
type Handler struct {
	Kind string
	// Version is raised when the handler's rules change. A state that was
	// written under another version is not taken up again.
	Version uint32
	Plan    func(w Reader, e Effect) ([]Change, error)
}

func (h *Handler) plan(w Reader, e Effect) (changes []Change, err error) {
	defer func() {
		if r := recover(); r != nil {
			changes, err = nil, fmt.Errorf("the handler panicked: %v", r)
		}
	}()
	return h.Plan(w, e)
}

// Change is one thing that an effect does to the world. Make it with
// [SetField] and its like.
type Change struct {
	op       changeOp
	id       string
	field    string
	value    signal.Value
	at       Point
	relation Relation
}

type changeOp uint8

const (
	opSetField changeOp = iota
	opRemoveField
	opPutEntity
	opRemoveEntity
	opPlace
	opUnplace
	opRelate
	opUnrelate
)

// SetField gives a field of an entity its value.
func SetField(id, field string, value signal.Value) Change {
	return Change{op: opSetField, id: id, field: field, value: value}
}

// RemoveField takes a field off an entity; it is no error if it has none.
func RemoveField(id, field string) Change { return Change{op: opRemoveField, id: id, field: field} }

// PutEntity makes an entity, or replaces one: its object, not its position and relations.
func PutEntity(id string, object signal.Value) Change {
	return Change{op: opPutEntity, id: id, value: object}
}

// RemoveEntity takes an entity out of the world with its position and all
// relations from it and to it.
func RemoveEntity(id string) Change { return Change{op: opRemoveEntity, id: id} }

// Place gives an id its position.
func Place(id string, at Point) Change { return Change{op: opPlace, id: id, at: at} }

// Unplace takes its position away.
func Unplace(id string) Change { return Change{op: opUnplace, id: id} }

// Relate adds a relation from one entity to another, or gives the one of the
// same type its new strength.
func Relate(from string, r Relation) Change { return Change{op: opRelate, id: from, relation: r} }

// Unrelate removes the relation of the given type.
func Unrelate(from, to, typ string) Change {
	return Change{op: opUnrelate, id: from, relation: Relation{To: to, Type: typ}}
}

func validID(id string) error {
	if id == "" || len(id) > MaxID {
		return fmt.Errorf("an id has 1 to %d bytes", MaxID)
	}
	return nil
}

func finite(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }
