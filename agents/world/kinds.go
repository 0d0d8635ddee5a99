package world

import (
	"slices"
	"strings"

	"github.com/sajou-dev/sajou-go/agents/internal/jsonvalue"
	"github.com/sajou-dev/sajou-go/signal"
)

// Builtin reports whether the world knows a kind of effect by itself.
func Builtin(kind string) bool { return planners[kind] != nil }

// planners are the kinds that the world knows by itself.
var planners map[string]func(w ReadOnly, e Effect) ([]Change, error)

func init() {
	planners = map[string]func(w ReadOnly, e Effect) ([]Change, error){
		KindMove:                planMove,
		KindSpeak:               planSpeak,
		KindSpeakResponse:       planSpeak,
		KindMessageEmitted:      planSpeak,
		KindInteract:            planInteract,
		KindEntityCreated:       planCreate,
		KindEntityRemoved:       planRemove,
		KindEntityUpdated:       planUpdate,
		KindRelationshipAdded:   planRelate,
		KindRelationshipRemoved: planUnrelate,
	}
}

// FieldPosition is the member of an entity's object that shows its position.
const FieldPosition = "position"

// The fields that hold private and team messages. A view shows them only to the
// agents that the message is for, whatever its policy.
const (
	FieldPrivate = "private_message" // of the source and of the target: for each its own
	FieldTeam    = "team_message"    // of the source: for its team
)

// DerivedFrom returns the field from which the world derives a field. Where the
// base is hidden, so is what is derived from it.
func DerivedFrom(field string) (base string, ok bool) {
	switch field {
	case "last_position", "last_move_time":
		return FieldPosition, true
	}
	return "", false
}

// MoveTarget returns the destination in the payload of a Move: to, or, if that is absent,
// null or empty, position, which older clients send and which is deprecated
// (requirements, 13.5). The error is an [*EffectError].
func MoveTarget(payload signal.Value) (Position, error) {
	name := "to"
	v, _ := payload.Get(name)
	if !isTarget(v) {
		name = legacyTarget
		var ok bool
		if v, ok = payload.Get(name); !ok {
			return Position{}, &EffectError{Kind: KindMove, Path: "/payload/to", Reason: textMissing, Err: ErrPayload}
		}
	}
	at, err := ParsePosition(v)
	if err != nil {
		return Position{}, &EffectError{Kind: KindMove, Path: "/payload/" + name, Reason: err.Error(), Err: ErrPayload}
	}
	return at, nil
}

// legacyTarget is the member of a Move that older clients send.
const legacyTarget = "position"

func isTarget(v signal.Value) bool {
	return v.Kind() > signal.KindNull && (v.Kind() != signal.KindArray || v.Len() > 0)
}

// UsesLegacyPosition reports whether an intent is a Move whose destination is in the
// deprecated member position.
func UsesLegacyPosition(kind string, payload signal.Value) bool {
	if kind != KindMove || isTarget(payload.Member("to")) {
		return false
	}
	_, ok := payload.Get(legacyTarget)
	return ok
}

// planMove places the source. A source need not be an entity to have a position.
func planMove(w ReadOnly, e Effect) ([]Change, error) {
	to, err := MoveTarget(e.Payload)
	if err != nil {
		return nil, err
	}
	if err := validID(e.SourceID); err != nil {
		return nil, malformed("/source_id", "%v", err)
	}
	changes := []Change{Place(e.SourceID, to)}
	if _, ok := w.Entity(e.SourceID); ok {
		changes = append(changes, SetField(e.SourceID, "position", to.Value()))
		if from, ok := w.Position(e.SourceID); ok {
			changes = append(changes, SetField(e.SourceID, "last_position", from.Value()))
		}
		changes = append(changes, SetField(e.SourceID, "last_move_time", jsonvalue.Float(e.SimTime)))
	}
	return changes, nil
}

// planSpeak writes a message into its source. A private message, or one to a team,
// changes none of the public fields, not even their counts and times.
func planSpeak(w ReadOnly, e Effect) ([]Change, error) {
	var text signal.Value
	for _, name := range []string{"text", "message"} {
		if v, ok := e.Payload.Get(name); ok {
			if v.Kind() != signal.KindString {
				return nil, malformed("/payload/"+name, textWantString, v.Kind())
			}
			text = v
			break
		}
	}
	if text == nil {
		text = jsonvalue.Text("")
	}
	self, known := w.Entity(e.SourceID)
	now := jsonvalue.Float(e.SimTime)
	channel, err := e.Channel()
	if err != nil {
		return nil, err
	}
	switch channel {
	case ChannelPrivate:
		target, err := entityMember(w, e.Payload, "target_id")
		if err != nil {
			return nil, err
		}
		message := jsonvalue.Fields{{"from", jsonvalue.Text(e.SourceID)}, {"to", jsonvalue.Text(target)}, {"text", text}, {"time", now}}.Value()
		changes := []Change{SetField(target, FieldPrivate, message)}
		if known && target != e.SourceID {
			changes = append(changes, SetField(e.SourceID, FieldPrivate, message))
		}
		return changes, nil
	case ChannelTeam:
		if !known {
			return nil, nil
		}
		message := jsonvalue.Fields{{"text", text}, {"time", now}}
		if team, ok := self.Get("team"); ok {
			message.Set("team", team)
		}
		return []Change{SetField(e.SourceID, FieldTeam, message.Value())}, nil
	default:
		if !known {
			return nil, nil
		}
		when, count := "last_speak_time", "message_count"
		if e.Kind == KindMessageEmitted {
			when, count = "last_emit_time", "emit_count"
		}
		return []Change{
			SetField(e.SourceID, "last_message", text),
			SetField(e.SourceID, when, now),
			SetField(e.SourceID, count, increment(self, count)),
		}, nil
	}
}

// Channel returns the channel of a message. An effect of any kind is one if it
// names a channel other than the public one.
func (e Effect) Channel() (string, error) {
	v, ok := e.Payload.Get("channel")
	if !ok || v.Kind() == signal.KindNull {
		return ChannelPublic, nil
	}
	channel, _ := v.Text()
	switch channel {
	case "", ChannelPublic:
		return ChannelPublic, nil
	case ChannelTeam, ChannelPrivate:
		return channel, nil
	default:
		return "", malformed("/payload/channel", textChannel, v)
	}
}

// IsMessage reports whether effects of a kind are messages by themselves.
func IsMessage(kind string) bool {
	return kind == KindSpeak || kind == KindSpeakResponse || kind == KindMessageEmitted
}

// increment returns a count that is one more; 1 if it was no count.
func increment(object signal.Value, field string) signal.Value {
	v, _ := object.Get(field)
	if i, ok := v.Int64(); ok && i >= 0 {
		return jsonvalue.Uint(uint64(i) + 1)
	}
	return jsonvalue.Uint(1)
}

func planInteract(w ReadOnly, e Effect) ([]Change, error) {
	target, err := entityMember(w, e.Payload, "target_id", "target")
	if err != nil {
		return nil, err
	}
	if _, ok := w.Entity(e.SourceID); !ok || target == e.SourceID {
		return nil, nil
	}
	var changes []Change
	for _, ends := range [2][2]string{{e.SourceID, target}, {target, e.SourceID}} {
		// A relation that exists may have a type or a strength; an untyped one beside it
		// would add nothing.
		if !slices.ContainsFunc(w.Relations(ends[0]), func(r Relation) bool { return r.To == ends[1] }) {
			changes = append(changes, Relate(ends[0], Relation{To: ends[1]}))
		}
	}
	return changes, nil
}

// entityMember returns the id of an entity in the first of the named members
// that is there.
func entityMember(w ReadOnly, payload signal.Value, names ...string) (string, error) {
	id, at, err := idMember(payload, names...)
	if err != nil {
		return "", err
	}
	if _, ok := w.Entity(id); !ok {
		return "", unknown(at, id)
	}
	return id, nil
}

func idMember(payload signal.Value, names ...string) (id, at string, err error) {
	for _, name := range names {
		v, ok := payload.Get(name)
		if !ok {
			continue
		}
		at = "/payload/" + name
		id, ok := v.Text()
		if !ok {
			return "", at, malformed(at, textWantID, v.Kind())
		}
		if err := validID(id); err != nil {
			return "", at, malformed(at, "%v", err)
		}
		return strings.Clone(id), at, nil
	}
	return "", "/payload/" + names[0], malformed("/payload/"+names[0], textMissing)
}

// planCreate puts an entity. It may replace an existing one: then the position is that
// of the new one, and the relations stay.
func planCreate(w ReadOnly, e Effect) ([]Change, error) {
	id, _, err := idMember(e.Payload, "entity_id", "id")
	if err != nil {
		return nil, err
	}
	data, ok := e.Payload.Get("entity_data")
	if !ok {
		data = jsonvalue.Empty()
	}
	changes := []Change{PutEntity(id, data)}
	at, ok := e.Payload.Get("position")
	path := "/payload/position"
	if !ok || at.Kind() == signal.KindNull {
		at, ok = data.Get("position")
		path = "/payload/entity_data/position"
	}
	_, placed := w.Position(id)
	switch {
	case ok && at.Kind() != signal.KindNull:
		p, err := ParsePosition(at)
		if err != nil {
			return nil, malformed(path, "%v", err)
		}
		changes = append(changes, Place(id, p))
	case placed:
		changes = append(changes, Unplace(id))
	}
	return changes, nil
}

func planRemove(w ReadOnly, e Effect) ([]Change, error) {
	id, at, err := idMember(e.Payload, "entity_id", "id")
	if err != nil {
		return nil, err
	}
	_, known := w.Entity(id)
	if _, placed := w.Position(id); !known && !placed {
		return nil, unknown(at, id)
	}
	return []Change{RemoveEntity(id)}, nil
}

func planUpdate(w ReadOnly, e Effect) ([]Change, error) {
	id, err := entityMember(w, e.Payload, "entity_id", "id")
	if err != nil {
		return nil, err
	}
	var changes []Change
	if fields, ok := e.Payload.Get("fields"); ok && fields.Kind() != signal.KindObject {
		return nil, malformed("/payload/fields", textWantObject, fields.Kind())
	} else if ok {
		for name, v := range fields.Members() {
			changes = append(changes, SetField(id, name, v))
		}
	}
	if gone, ok := e.Payload.Get("remove"); ok && gone.Kind() != signal.KindArray {
		return nil, malformed("/payload/remove", textWantNameArray, gone.Kind())
	} else if ok {
		for v := range gone.Elements() {
			name, ok := v.Text()
			if !ok {
				return nil, malformed("/payload/remove", textWantNames, v.Kind())
			}
			changes = append(changes, RemoveField(id, name))
		}
	}
	return changes, nil
}

// relationEnds reads the members that both effects about relations share.
func relationEnds(w ReadOnly, e Effect) (from, to string, mutual bool, err error) {
	if from, err = entityMember(w, e.Payload, "from", "from_entity"); err != nil {
		return
	}
	if to, err = entityMember(w, e.Payload, "to", "to_entity"); err != nil {
		return
	}
	if v, ok := e.Payload.Get("mutual"); ok {
		if mutual, ok = v.Bool(); !ok {
			err = malformed("/payload/mutual", textWantBool, v.Kind())
		}
	}
	return
}

func relationType(payload signal.Value) (typ string, given bool, err error) {
	for _, name := range []string{"type", "relationship_type"} {
		if v, ok := payload.Get(name); ok {
			typ, ok := v.Text()
			if !ok || len(typ) > MaxID {
				return "", true, malformed("/payload/"+name, textWantType, MaxID)
			}
			return strings.Clone(typ), true, nil
		}
	}
	return "", false, nil
}

func planRelate(w ReadOnly, e Effect) ([]Change, error) {
	from, to, mutual, err := relationEnds(w, e)
	if err != nil {
		return nil, err
	}
	typ, _, err := relationType(e.Payload)
	if err != nil {
		return nil, err
	}
	r := Relation{To: to, Type: typ}
	if v, ok := e.Payload.Get("strength"); ok {
		if r.Strength, ok = v.Float64(); !ok {
			return nil, malformed("/payload/strength", textWantNumber, v.Kind())
		}
	}
	changes := []Change{Relate(from, r)}
	if mutual && from != to {
		r.To = from
		changes = append(changes, Relate(to, r))
	}
	return changes, nil
}

func planUnrelate(w ReadOnly, e Effect) ([]Change, error) {
	from, to, mutual, err := relationEnds(w, e)
	if err != nil {
		return nil, err
	}
	typ, given, err := relationType(e.Payload)
	if err != nil {
		return nil, err
	}
	if given && w.filter != nil && !w.filter.ShowsRelationTypes() {
		// Whether a relation is left would reveal its type.
		return nil, malformed("/payload/type", textHiddenTypes)
	}
	ends := [][2]string{{from, to}}
	if mutual {
		ends = append(ends, [2]string{to, from})
	}
	var changes []Change
	for _, end := range ends {
		for _, r := range w.Relations(end[0]) {
			if r.To == end[1] && (!given || r.Type == typ) {
				changes = append(changes, Unrelate(end[0], end[1], r.Type))
			}
		}
	}
	return changes, nil
}
