package agents

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sajou-dev/sajou-go/signal"
)

// Rules are what the core itself asks of an intent's meaning, beyond what makes
// its effect possible at all. Those about distances are off unless they are said.
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
func (c *compiler) rules(v signal.Value, path string) Rules {
	if v == nil {
		v = emptyObject()
	}
	if v.Kind() != signal.KindObject {
		c.fail(path, "%v, want an object", v.Kind())
	}
	c.only(v, path, "max_payload_bytes", "max_text", "max_move_distance", "min_separation",
		"max_interact_distance", "interaction_types", "refused_words")
	return Rules{
		MaxPayload:       int(c.number(v, path, "max_payload_bytes", 10_000, 2, MaxPayload)),
		MaxText:          int(c.number(v, path, "max_text", 1000, 1, MaxPayload)),
		MaxMove:          c.number(v, path, "max_move_distance", 0, 0, 4*MaxCoordinate),
		MinSeparation:    c.number(v, path, "min_separation", 0, 0, 4*MaxCoordinate),
		MaxInteract:      c.number(v, path, "max_interact_distance", 0, 0, 4*MaxCoordinate),
		InteractionTypes: c.names(v, path, "interaction_types"),
		RefusedWords:     c.names(v, path, "refused_words"),
	}
}

// Validator is a rule of the program's own about intents: a pure function. It is
// asked when an intent is decided, never on replay, where the decision is recorded.
// One that panics has found a problem.
type Validator struct {
	Name string
	// Order says when it is asked, the smaller first; of equal ones as given.
	// All are asked, whatever the others found.
	Order int
	Check func(w Reader, in Intent) []Problem
}

func (v *Validator) check(w Reader, in Intent) (found []Problem) {
	defer func() {
		if r := recover(); r != nil {
			found = []Problem{{Reason: fmt.Sprintf("%s panicked: %v", v.Name, r)}}
		}
	}()
	return v.Check(w, in)
}

// maxProblems bounds what one answer names.
const maxProblems = 100

// validate asks all rules about an intent. Its effect is planned too, for that
// is what would happen. Without problems the plan is one that can be carried out.
func (c *Core) validate(in *Intent, e Effect) (*transaction, []Problem) {
	w := c.world
	var found []Problem
	add := func(path, format string, args ...any) {
		found = append(found, Problem{path, fmt.Sprintf(format, args...)})
	}
	rules := &c.config.Rules
	if size := len(in.Payload.AppendJSON(nil)); size > rules.MaxPayload {
		add("/payload", "%d bytes, at most %d", size, rules.MaxPayload)
	}
	if !c.knows(in.Kind) {
		add("/kind", "%q is no kind of intent", in.Kind)
	}
	switch in.Kind {
	case KindSpeak:
		c.validateSpeak(in, add)
	case KindMove:
		c.validateMove(w.Reader, in, add)
	case KindInteract:
		c.validateInteract(w.Reader, in, add)
	default:
	}
	for i := range c.options.Validators {
		v := &c.options.Validators[i]
		for _, p := range v.check(w.Reader, *in) {
			if p.Reason == "" {
				p.Reason = v.Name
			}
			found = append(found, p)
		}
	}
	t, err := w.plan(e)
	if err != nil {
		p := Problem{Reason: err.Error()}
		if effectErr, ok := errors.AsType[*EffectError](err); ok {
			p = Problem{effectErr.Path, effectErr.Reason + ": " + effectErr.Err.Error()}
		}
		if !slices.ContainsFunc(found, func(f Problem) bool { return f.Path == p.Path && p.Path != "" }) {
			found = append(found, p)
		}
	}
	return t, found[:min(len(found), maxProblems)]
}

// knows reports whether an intent may be of a kind.
func (c *Core) knows(kind string) bool {
	switch kind {
	case KindSpeak, KindMove, KindInteract, KindCustom:
		return true
	}
	_, handled := c.world.handlers[kind]
	return handled || slices.Contains(c.config.Kinds, kind)
}

func (c *Core) validateSpeak(in *Intent, add func(path, format string, args ...any)) {
	rules := &c.config.Rules
	text, ok := textMember(in.Payload, "text", "message")
	switch {
	case !ok:
		add("/payload/text", "missing")
	case strings.TrimSpace(text) == "":
		add("/payload/text", "nothing is said")
	case utf8.RuneCountInString(text) > rules.MaxText:
		add("/payload/text", "more than %d characters", rules.MaxText)
	}
	if len(rules.RefusedWords) == 0 {
		return
	}
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune(" \t\r\n.,;:!?\"'()[]", r) }) {
		if slices.ContainsFunc(rules.RefusedWords, func(w string) bool { return strings.EqualFold(w, word) }) {
			add("/payload/text", "the word %q is refused", word)
			return
		}
	}
}

func (c *Core) validateMove(w Reader, in *Intent, add func(path, format string, args ...any)) {
	rules := &c.config.Rules
	to, err := MoveTarget(in.Payload)
	if err != nil {
		return // the effect's own check says so
	}
	if from, ok := w.Position(in.AgentID); ok && rules.MaxMove > 0 && from.Distance(to) > rules.MaxMove {
		add("/payload/to", "%g away, at most %g", from.Distance(to), rules.MaxMove)
	}
	if rules.MinSeparation > 0 {
		for _, id := range w.Within(to, rules.MinSeparation) {
			if at, _ := w.Position(id); id != in.AgentID && at.Distance(to) < rules.MinSeparation {
				add("/payload/to", "%q is there", id)
				break
			}
		}
	}
}

func (c *Core) validateInteract(w Reader, in *Intent, add func(path, format string, args ...any)) {
	rules := &c.config.Rules
	if target, ok := textMember(in.Payload, "target_id", "target"); ok && rules.MaxInteract > 0 {
		here, ok1 := w.Position(in.AgentID)
		there, ok2 := w.Position(target)
		if ok1 && ok2 && here.Distance(there) > rules.MaxInteract {
			add("/payload/target_id", "%g away, at most %g", here.Distance(there), rules.MaxInteract)
		}
	}
	if len(rules.InteractionTypes) > 0 {
		if typ, _ := textMember(in.Payload, "type", "interaction_type"); !slices.Contains(rules.InteractionTypes, typ) {
			add("/payload/type", "want one of %s", strings.Join(rules.InteractionTypes, ", "))
		}
	}
}
