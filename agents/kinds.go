package agents

import (
	"slices"
	"strings"

	"github.com/sajou-dev/sajou-go/signal"
)

// planners are the kinds that the world knows by itself.
var planners map[string]func(w Reader, e Effect) ([]Change, error)

func init() {
	planners = map[string]func(w Reader, e Effect) ([]Change, error){
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

// MoveTarget returns where the payload of a Move leads: to, or, if that is
// absent, null or empty, position as older clients say. The error is an
// [*EffectError].
func MoveTarget(payload signal.Value) (Point, error) {
	name := "to"
	v, ok := payload.Get(name)
	if !ok || v.Kind() == signal.KindNull || v.Kind() == signal.KindArray && v.Len() == 0 {
		name = "position"
		if v, ok = payload.Get(name); !ok {
			return Point{}, &EffectError{Kind: KindMove, Path: "/payload/to", Reason: "missing", Err: ErrPayload}
		}
	}
	at, err := ParsePoint(v)
	if err != nil {
		return Point{}, &EffectError{Kind: KindMove, Path: "/payload/" + name, Reason: err.Error(), Err: ErrPayload}
	}
	return at, nil
}

// planMove places the source. One that is no entity has a position all the same.
func planMove(w Reader, e Effect) ([]Change, error) {
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
		changes = append(changes, SetField(e.SourceID, "last_move_time", numberValue(e.SimTime)))
	}
	return changes, nil
}

// The fields that hold what was not said to all. A view shows them to those
// alone whom they are for, whatever its policy.
const (
	fieldPrivate = "private_message" // of the source and of the target: for each its own
	fieldTeam    = "team_message"    // of the source: for its team
)

// planSpeak notes a message at its source. What is said in private, or to a
// team, leaves no trace in the fields that everybody sees, their counts and
// times included.
func planSpeak(w Reader, e Effect) ([]Change, error) {
	var text signal.Value
	for _, name := range []string{"text", "message"} {
		if v, ok := e.Payload.Get(name); ok {
			if v.Kind() != signal.KindString {
				return nil, malformed("/payload/"+name, "%v, want a string", v.Kind())
			}
			text = v
			break
		}
	}
	if text == nil {
		text = textValue("")
	}
	self, known := w.Entity(e.SourceID)
	now := numberValue(e.SimTime)
	channel, err := channelOf(e)
	if err != nil {
		return nil, err
	}
	switch channel {
	case ChannelPrivate:
		target, err := entityMember(w, e.Payload, "target_id")
		if err != nil {
			return nil, err
		}
		message := object{{"from", textValue(e.SourceID)}, {"to", textValue(target)}, {"text", text}, {"time", now}}.value()
		changes := []Change{SetField(target, fieldPrivate, message)}
		if known && target != e.SourceID {
			changes = append(changes, SetField(e.SourceID, fieldPrivate, message))
		}
		return changes, nil
	case ChannelTeam:
		if !known {
			return nil, nil
		}
		message := object{{"text", text}, {"time", now}}
		if team, ok := self.Get("team"); ok {
			message.set("team", team)
		}
		return []Change{SetField(e.SourceID, fieldTeam, message.value())}, nil
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

// channelOf returns the channel of a message.
func channelOf(e Effect) (string, error) {
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
		return "", malformed("/payload/channel", "%v, want public, team or private", v)
	}
}

func isMessage(kind string) bool {
	return kind == KindSpeak || kind == KindSpeakResponse || kind == KindMessageEmitted
}

// increment returns a count that is one more; 1 if it was no count.
func increment(object signal.Value, field string) signal.Value {
	v, _ := object.Get(field)
	if i, ok := v.Int64(); ok && i >= 0 {
		return integerValue(uint64(i) + 1)
	}
	return integerValue(1)
}

func planInteract(w Reader, e Effect) ([]Change, error) {
	target, err := entityMember(w, e.Payload, "target_id", "target")
	if err != nil {
		return nil, err
	}
	if _, ok := w.Entity(e.SourceID); !ok || target == e.SourceID {
		return nil, nil
	}
	var changes []Change
	for _, ends := range [2][2]string{{e.SourceID, target}, {target, e.SourceID}} {
		// Those who are related already need no second relation that says less.
		if !slices.ContainsFunc(w.Relations(ends[0]), func(r Relation) bool { return r.To == ends[1] }) {
			changes = append(changes, Relate(ends[0], Relation{To: ends[1]}))
		}
	}
	return changes, nil
}

// entityMember returns the id of an entity in the first of the named members
// that is there.
func entityMember(w Reader, payload signal.Value, names ...string) (string, error) {
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
			return "", at, malformed(at, "%v, want an id", v.Kind())
		}
		if err := validID(id); err != nil {
			return "", at, malformed(at, "%v", err)
		}
		return strings.Clone(id), at, nil
	}
	return "", "/payload/" + names[0], malformed("/payload/"+names[0], "missing")
}

// planCreate puts an entity, also in the place of one that is there: then its
// position is as the new one says, and its relations stay.
func planCreate(w Reader, e Effect) ([]Change, error) {
	id, _, err := idMember(e.Payload, "entity_id", "id")
	if err != nil {
		return nil, err
	}
	data, ok := e.Payload.Get("entity_data")
	if !ok {
		data = emptyObject()
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
		p, err := ParsePoint(at)
		if err != nil {
			return nil, malformed(path, "%v", err)
		}
		changes = append(changes, Place(id, p))
	case placed:
		changes = append(changes, Unplace(id))
	}
	return changes, nil
}

func planRemove(w Reader, e Effect) ([]Change, error) {
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

func planUpdate(w Reader, e Effect) ([]Change, error) {
	id, err := entityMember(w, e.Payload, "entity_id", "id")
	if err != nil {
		return nil, err
	}
	var changes []Change
	if fields, ok := e.Payload.Get("fields"); ok && fields.Kind() != signal.KindObject {
		return nil, malformed("/payload/fields", "%v, want an object", fields.Kind())
	} else if ok {
		for name, v := range fields.Members() {
			changes = append(changes, SetField(id, name, v))
		}
	}
	if gone, ok := e.Payload.Get("remove"); ok && gone.Kind() != signal.KindArray {
		return nil, malformed("/payload/remove", "%v, want an array of names", gone.Kind())
	} else if ok {
		for v := range gone.Elements() {
			name, ok := v.Text()
			if !ok {
				return nil, malformed("/payload/remove", "%v, want names", v.Kind())
			}
			changes = append(changes, RemoveField(id, name))
		}
	}
	return changes, nil
}

// relationEnds reads what both effects about a relation say.
func relationEnds(w Reader, e Effect) (from, to string, mutual bool, err error) {
	if from, err = entityMember(w, e.Payload, "from", "from_entity"); err != nil {
		return
	}
	if to, err = entityMember(w, e.Payload, "to", "to_entity"); err != nil {
		return
	}
	if v, ok := e.Payload.Get("mutual"); ok {
		if mutual, ok = v.Bool(); !ok {
			err = malformed("/payload/mutual", "%v, want true or false", v.Kind())
		}
	}
	return
}

func relationType(payload signal.Value) (typ string, given bool, err error) {
	for _, name := range []string{"type", "relationship_type"} {
		if v, ok := payload.Get(name); ok {
			typ, ok := v.Text()
			if !ok || len(typ) > MaxID {
				return "", true, malformed("/payload/"+name, "want a string of at most %d bytes", MaxID)
			}
			return strings.Clone(typ), true, nil
		}
	}
	return "", false, nil
}

func planRelate(w Reader, e Effect) ([]Change, error) {
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
			return nil, malformed("/payload/strength", "%v, want a number", v.Kind())
		}
	}
	changes := []Change{Relate(from, r)}
	if mutual && from != to {
		r.To = from
		changes = append(changes, Relate(to, r))
	}
	return changes, nil
}

func planUnrelate(w Reader, e Effect) ([]Change, error) {
	from, to, mutual, err := relationEnds(w, e)
	if err != nil {
		return nil, err
	}
	typ, given, err := relationType(e.Payload)
	if err != nil {
		return nil, err
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
