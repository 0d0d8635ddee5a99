package agents

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sajou-dev/sajou-go/agents/internal/jsonvalue"
	"github.com/sajou-dev/sajou-go/agents/internal/strictjson"
	"github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/signal"
)

// Touch is what the effect of an intent of one kind may write; any other write is
// refused. It restricts agents alone: a draft may write anything.
type Touch struct {
	// Own are the fields of the agent's own entity.
	Own []string
	// Others are the fields of other entities that the agent may see.
	Others []string
	// Place is the agent's own position.
	Place bool
	// Relate is the relations between the agent's entity and others that it may see.
	Relate bool
	// Create are what the ids of entities begin with that it may make, if no such id
	// is in use. [agentPlaceholder] in it stands for the agent's id.
	Create []string
	// Remove are the entities that it may remove: [removeOwn], [removeOthers].
	Remove []string
}

// agentPlaceholder stands for the agent's id in [Touch.Create].
const agentPlaceholder = "{agent}"

// What a [Touch] may remove.
const (
	removeOwn    = "own"    // the agent's own entity
	removeOthers = "others" // other entities that it may see
)

// kindTouches are the kinds of intent that the world knows by itself and that
// agents may always ask for, or may once they are among the configuration's
// intent_kinds, and what they may write. The other kinds that the world knows by
// itself (EntityCreated and its like) may write nothing, unless the configuration
// says what.
var kindTouches = map[string]Touch{
	world.KindMove:           {Own: []string{world.FieldPosition, "last_position", "last_move_time"}, Place: true},
	world.KindSpeak:          speakTouch,
	world.KindSpeakResponse:  speakTouch,
	world.KindMessageEmitted: speakTouch,
	world.KindInteract:       {Relate: true},
}

var speakTouch = Touch{
	Own: []string{
		"last_message", "last_speak_time", "message_count", "last_emit_time", "emit_count", world.FieldPrivate, world.FieldTeam,
	},
	Others: []string{world.FieldPrivate},
}

// protectedFields decide what an entity may know, or hold what was said in
// confidence. An entity cannot be made with one of them unless Own names it.
var protectedFields = []string{"team", world.FieldPrivate, world.FieldTeam}

// touch returns what the effect of an intent of a kind may write. It returns false
// if the kind is a handler's and the configuration does not restrict it.
func (c *Core) touch(kind string) (Touch, bool) {
	if t, ok := c.config.Touches[kind]; ok {
		return t, true
	}
	if t, ok := kindTouches[kind]; ok {
		return t, true
	}
	return Touch{}, !c.world.Handles(kind)
}

// touches returns the problems of an intent whose effect would write what its kind
// does not name. Ids of the problems are the intent's own.
func (c *Core) touches(sight world.ReadOnly, in *Intent, changes []world.Change) []Problem {
	t, restricted := c.touch(in.Kind)
	if !restricted {
		return nil
	}
	var made []string
	for i := range changes {
		change := &changes[i]
		if change.Op == world.OpPutEntity {
			if p := c.creates(&t, in, change); p != nil {
				return []Problem{*p}
			}
			made = append(made, change.ID)
			continue
		}
		if slices.Contains(made, change.ID) { // part of what it makes
			if p := t.furnishes(sight, in, change, made); p != nil {
				return []Problem{*p}
			}
			continue
		}
		if !t.allows(sight, in.AgentID, change) {
			return []Problem{{"/kind", fmt.Sprintf(textMayNot, in.Kind, describe(change))}}
		}
	}
	return nil
}

// creates returns why an intent may not make an entity, nil if it may.
func (c *Core) creates(t *Touch, in *Intent, change *world.Change) *Problem {
	begins := func(prefix string) bool {
		return strings.HasPrefix(change.ID, strings.ReplaceAll(prefix, agentPlaceholder, in.AgentID))
	}
	if !slices.ContainsFunc(t.Create, begins) {
		return &Problem{"/kind", fmt.Sprintf(textMayNotMake, in.Kind, change.ID)}
	}
	for name := range change.Value.Members() {
		if p := t.protects(in, change.ID, name); p != nil {
			return p
		}
	}
	_, used := c.world.Entity(change.ID)
	if change.ID != in.AgentID {
		_, placed := c.world.Position(change.ID)
		_, registered := c.agents[change.ID]
		used = used || placed || registered
	}
	if used {
		return &Problem{"/payload/entity_id", reasonTaken}
	}
	return nil
}

// protects returns why an intent may not write a field of an entity that it makes, nil if
// it may.
func (t *Touch) protects(in *Intent, id, field string) *Problem {
	if !slices.Contains(protectedFields, field) || slices.Contains(t.Own, field) {
		return nil
	}
	return &Problem{"/kind", fmt.Sprintf(textMayNotWrite, in.Kind, field, id)}
}

// furnishes returns why an intent may not make a change of an entity that it has made,
// nil if it may: the change writes no protected field, and relates the entity only to
// entities that the agent may see or that the intent has made.
func (t *Touch) furnishes(sight world.ReadOnly, in *Intent, change *world.Change, made []string) *Problem {
	switch change.Op {
	case world.OpSetField:
		return t.protects(in, change.ID, change.Field)
	case world.OpRelate:
		to := change.Relation.To
		if _, seen := sight.Entity(to); !seen && !slices.Contains(made, to) {
			return &Problem{"/kind", fmt.Sprintf(textMayNotRelate, in.Kind, change.ID, to)}
		}
	default:
	}
	return nil
}

// allows reports whether t names a change.
func (t *Touch) allows(sight world.ReadOnly, agent string, change *world.Change) bool {
	own := change.ID == agent
	_, seen := sight.Entity(change.ID)
	switch change.Op {
	case world.OpSetField, world.OpRemoveField:
		fields := t.Others
		if own {
			fields = t.Own
		}
		return (own || seen) && slices.Contains(fields, change.Field)
	case world.OpPlace, world.OpUnplace:
		return own && t.Place
	case world.OpRemoveEntity:
		word := removeOthers
		if own {
			word = removeOwn
		}
		return (own || seen) && slices.Contains(t.Remove, word)
	case world.OpRelate, world.OpUnrelate:
		_, sees := sight.Entity(change.Relation.To)
		return t.Relate && (own && sees || seen && change.Relation.To == agent)
	default:
		return false
	}
}

// describe describes a change that is not allowed, for its problem.
func describe(change *world.Change) string {
	switch change.Op {
	case world.OpSetField, world.OpRemoveField:
		return fmt.Sprintf(textWrite, change.Field, change.ID)
	case world.OpPlace, world.OpUnplace:
		return fmt.Sprintf(textPlace, change.ID)
	case world.OpRemoveEntity:
		return fmt.Sprintf(textRemove, change.ID)
	case world.OpRelate, world.OpUnrelate:
		return fmt.Sprintf(textRelate, change.ID, change.Relation.To)
	default:
		return textChangeWorld
	}
}

// kinds reads the member intent_kinds: names, and objects that say what the effect
// of a kind may write.
func (c configReader) kinds(v signal.Value) (names []string, touches map[string]Touch) {
	m, ok := v.Get("intent_kinds")
	if !ok || m.Kind() == signal.KindNull {
		return nil, nil
	}
	if m.Kind() != signal.KindArray || m.Len() > strictjson.MaxNames {
		c.Fail("/intent_kinds", "want an array of at most %d kinds", strictjson.MaxNames)
		return nil, nil
	}
	for e := range m.Elements() {
		path := fmt.Sprintf("/intent_kinds/%d", len(names))
		if name, ok := e.Text(); ok {
			names = append(names, strings.Clone(name))
			continue
		}
		if e.Kind() != signal.KindObject {
			c.Fail(path, "%v, want a kind or an object that names one", e.Kind())
			return nil, nil
		}
		c.Only(e, path, "kind", "own", "others", "place", "relate", "create", "remove")
		name, ok := jsonvalue.TextMember(e, "kind")
		if !ok || name == "" {
			c.Fail(path+"/kind", "want a kind")
			return nil, nil
		}
		t := Touch{
			Own: c.Names(e, path, "own"), Others: c.Names(e, path, "others"),
			Place: c.Bool(e, path, "place", false), Relate: c.Bool(e, path, "relate", false),
			Create: c.Names(e, path, "create"), Remove: c.Names(e, path, "remove"),
		}
		for i, word := range t.Remove {
			if word != removeOwn && word != removeOthers {
				c.Fail(fmt.Sprintf("%s/remove/%d", path, i), "%q, want %s or %s", word, removeOwn, removeOthers)
			}
		}
		if touches == nil {
			touches = map[string]Touch{}
		}
		names = append(names, strings.Clone(name))
		touches[names[len(names)-1]] = t
	}
	return names, touches
}
