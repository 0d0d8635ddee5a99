package agents

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sajou-dev/sajou-go/agents/internal/jsonvalue"
	"github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/signal"
)

// Rules are the core's own checks of an intent's meaning, beyond whether its effect is
// possible. The checks of distances are off unless the configuration sets them.
type Rules struct {
	MaxPayload       int      // bytes of JSON
	MaxText          int      // characters of what is spoken
	MaxMove          float64  // how far at once; 0: any way
	MinSeparation    float64  // from everything else at the destination; 0: none
	MaxInteract      float64  // to the target, if both have positions; 0: any
	InteractionTypes []string // empty: any
	RefusedWords     []string // in what is spoken, in any case; whole words
}

// rules reads the member rules: max_payload_bytes 10000, max_text 1000,
// max_move_distance, min_separation, max_interact_distance, interaction_types,
// refused_words.
func (c configReader) rules(v signal.Value, path string) Rules {
	if v == nil {
		v = jsonvalue.Empty()
	}
	if v.Kind() != signal.KindObject {
		c.Fail(path, "%v, want an object", v.Kind())
	}
	c.Only(v, path, "max_payload_bytes", "max_text", "max_move_distance", "min_separation",
		"max_interact_distance", "interaction_types", "refused_words")
	return Rules{
		MaxPayload:       int(c.Number(v, path, "max_payload_bytes", 10_000, 2, world.MaxPayload)),
		MaxText:          int(c.Number(v, path, "max_text", 1000, 1, world.MaxPayload)),
		MaxMove:          c.Number(v, path, "max_move_distance", 0, 0, 4*world.MaxCoordinate),
		MinSeparation:    c.Number(v, path, "min_separation", 0, 0, 4*world.MaxCoordinate),
		MaxInteract:      c.Number(v, path, "max_interact_distance", 0, 0, 4*world.MaxCoordinate),
		InteractionTypes: c.Names(v, path, "interaction_types"),
		RefusedWords:     c.Names(v, path, "refused_words"),
	}
}

// maxProblems bounds what one answer names.
const maxProblems = 100

// validate asks all rules about an intent. Without problems the plan is one that
// can be carried out.
//
// It first reads only the world as the agent may see it ([Core.examine]): the agent is
// sent these problems in full. If there are none, it reads the whole world
// ([Core.carryOut]): the agent is sent these problems in the words of [Declassified].
// beyond reports which of the two the problems are.
func (c *Core) validate(in *Intent, e world.Effect) (t *world.Plan, problems []Problem, beyond bool) {
	sight := c.agents[in.AgentID].observer.VisibleWorld(c.world.ReadOnly)
	if problems = c.examine(sight, in, e); len(problems) > 0 {
		return nil, problems[:min(len(problems), maxProblems)], false
	}
	t, problems = c.carryOut(sight, in, e)
	return t, problems[:min(len(problems), maxProblems)], len(problems) > 0
}

// examine returns the problems that an intent has in the world as its agent may
// see it.
func (c *Core) examine(w world.ReadOnly, in *Intent, e world.Effect) []Problem {
	var found []Problem
	add := func(path, format string, args ...any) {
		found = append(found, Problem{path, fmt.Sprintf(format, args...)})
	}
	rules := &c.config.Rules
	// Most payloads need no JSON to be within the bound; see [signal.Value.AppendJSON].
	if in.Payload == nil || 6*len(in.Payload) > rules.MaxPayload {
		if size := len(in.Payload.AppendJSON(nil)); size > rules.MaxPayload {
			add("/payload", textPayloadSize, size, rules.MaxPayload)
		}
	}
	if !c.knows(in.Kind) {
		add("/kind", textUnknownKind, in.Kind)
	}
	if p := relationMetadata(in.Kind, in.Payload); p != nil {
		found = append(found, *p)
	}
	if world.IsMessage(in.Kind) {
		validateSpeaker(w, in, add)
	}
	switch in.Kind {
	case world.KindSpeak:
		c.validateSpeak(in, add)
	case world.KindMove:
		c.validateMove(w, in, add)
	case world.KindInteract:
		c.validateInteract(w, in, add)
	default:
	}
	for i := range c.options.Validators {
		if v := &c.options.Validators[i]; v.Declassifies == "" {
			found = append(found, v.check(w, *in)...)
		}
	}
	if err := c.world.CheckAs(w, e); err != nil {
		if p := problemOf(err); p.Path == "" || !slices.ContainsFunc(found, func(f Problem) bool { return f.Path == p.Path }) {
			found = append(found, p)
		}
	}
	return found
}

// problemOf returns the problem that an agent is sent about an effect that cannot be applied.
func problemOf(err error) Problem {
	if effectErr, ok := errors.AsType[*world.EffectError](err); ok {
		return Problem{effectErr.Path, fmt.Sprintf(textEffectError, effectErr.Reason, effectErr.Err)}
	}
	return Problem{Reason: err.Error()}
}

// carryOut plans the effect of an intent that has no problem in the world as its
// agent may see it. A refusal of the world beyond that is sent in general words.
func (c *Core) carryOut(sight world.ReadOnly, in *Intent, e world.Effect) (*world.Plan, []Problem) {
	for i := range c.options.Validators {
		v := &c.options.Validators[i]
		if v.Declassifies == "" {
			continue
		}
		if found := v.check(c.world.ReadOnly, *in); len(found) > 0 {
			return nil, found
		}
	}
	if in.Kind == world.KindMove {
		if p := c.validateRoom(in); p != nil {
			return nil, []Problem{*p}
		}
	}
	t, err := c.world.Plan(e)
	if err == nil {
		if found := c.touches(sight, in, t.Changes()); len(found) > 0 {
			return nil, found
		}
		return t, nil
	}
	switch {
	case errors.Is(err, world.ErrPayload):
		return nil, []Problem{problemOf(err)} // of the intent's own payload
	case errors.Is(err, world.ErrLimit):
		return nil, []Problem{{Reason: reasonLimit}}
	default:
		return nil, []Problem{{Reason: reasonHandler}}
	}
}

// knows reports whether an intent may be of a kind.
func (c *Core) knows(kind string) bool {
	switch kind {
	case world.KindSpeak, world.KindMove, world.KindInteract, KindCustom:
		return true
	}
	return c.world.Handles(kind) || slices.Contains(c.config.Kinds, kind)
}

// relationMetadata returns the problem of an effect that would relate entities with
// metadata, which a [world.Relation] does not keep. It is a rule of decisions, not of the
// world: a record of an earlier program that has such metadata still relates.
func relationMetadata(kind string, payload signal.Value) *Problem {
	if kind != world.KindRelationshipAdded {
		return nil
	}
	if v, ok := payload.Get("metadata"); !ok || v.Kind() == signal.KindNull {
		return nil
	}
	return &Problem{"/payload/metadata", textMetadata}
}

// validateSpeaker refuses a message, other than a private one, of an agent that has no
// entity: the entity is what keeps the message and what others see of the agent, so no
// view would change and no agent would receive it. Registration creates no entity. The
// agent sees its own entity under every policy, so the answer reveals nothing.
func validateSpeaker(w world.ReadOnly, in *Intent, add func(path, format string, args ...any)) {
	if channel, err := (world.Effect{Payload: in.Payload}).Channel(); err != nil || channel == world.ChannelPrivate {
		return
	}
	if _, ok := w.Entity(in.AgentID); !ok {
		add("/agent_id", textBodiless, in.AgentID)
	}
}

func (c *Core) validateSpeak(in *Intent, add func(path, format string, args ...any)) {
	rules := &c.config.Rules
	text, ok := jsonvalue.TextMember(in.Payload, "text", "message")
	switch {
	case !ok:
		add("/payload/text", textMissing)
	case strings.TrimSpace(text) == "":
		add("/payload/text", textSilence)
	case utf8.RuneCountInString(text) > rules.MaxText:
		add("/payload/text", textTooLong, rules.MaxText)
	}
	if len(rules.RefusedWords) == 0 {
		return
	}
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune(" \t\r\n.,;:!?\"'()[]", r) }) {
		if slices.ContainsFunc(rules.RefusedWords, func(w string) bool { return strings.EqualFold(w, word) }) {
			add("/payload/text", textRefusedWord, word)
			return
		}
	}
}

// validateMove holds a Move against the rules, as far as the agent may know what
// they ask about; see validateRoom for the rest.
func (c *Core) validateMove(w world.ReadOnly, in *Intent, add func(path, format string, args ...any)) {
	rules := &c.config.Rules
	to, err := world.MoveTarget(in.Payload)
	if err != nil {
		return // the effect's own check says so
	}
	if from, told, ok := c.own(w, in.AgentID); ok && rules.MaxMove > 0 && from.Distance(to) > rules.MaxMove {
		addDistance(add, "/payload/to", told, from.Distance(to), rules.MaxMove)
	}
	for _, id := range c.near(w, in.AgentID, to) {
		add("/payload/to", textOccupiedBy, id)
		break
	}
}

// near returns the ids that w shows closer to a position than the rules allow, without
// the agent itself.
func (c *Core) near(w world.ReadOnly, agent string, to world.Position) []string {
	least := c.config.Rules.MinSeparation
	if least <= 0 {
		return nil
	}
	return slices.DeleteFunc(w.Within(to, least), func(id string) bool {
		at, _ := w.Position(id)
		return id == agent || at.Distance(to) >= least
	})
}

// validateRoom says whether a Move ends too close to something, whatever it is.
func (c *Core) validateRoom(in *Intent) *Problem {
	to, err := world.MoveTarget(in.Payload)
	if err != nil || len(c.near(c.world.ReadOnly, in.AgentID, to)) == 0 {
		return nil
	}
	return &Problem{"/payload/to", reasonOccupied}
}

// own returns the position of an agent, and in told whether the agent may know it.
func (c *Core) own(sight world.ReadOnly, agent string) (at world.Position, told, ok bool) {
	_, told = sight.Position(agent)
	at, ok = c.world.Position(agent)
	return at, told, ok
}

// addDistance adds that something is too far. The distance is sent only to an
// agent that may know both ends.
func addDistance(add func(path, format string, args ...any), path string, told bool, distance, most float64) {
	if told {
		add(path, textDistance, distance, most)
	} else {
		add(path, reasonTooFar)
	}
}

// validateInteract holds an Interact against the rules. A target whose position
// the agent may not know is treated as one that has none.
func (c *Core) validateInteract(w world.ReadOnly, in *Intent, add func(path, format string, args ...any)) {
	rules := &c.config.Rules
	if target, ok := jsonvalue.TextMember(in.Payload, "target_id", "target"); ok && rules.MaxInteract > 0 {
		here, told, ok1 := c.own(w, in.AgentID)
		there, ok2 := w.Position(target)
		if ok1 && ok2 && here.Distance(there) > rules.MaxInteract {
			addDistance(add, "/payload/target_id", told, here.Distance(there), rules.MaxInteract)
		}
	}
	if len(rules.InteractionTypes) > 0 {
		if typ, _ := jsonvalue.TextMember(in.Payload, "type", "interaction_type"); !slices.Contains(rules.InteractionTypes, typ) {
			add("/payload/type", textInteraction, strings.Join(rules.InteractionTypes, ", "))
		}
	}
}
