package episode

import (
	"slices"

	"github.com/sajou-dev/sajou-go/internal/wording"
	"github.com/sajou-dev/sajou-go/signal"
)

// SignalRule makes signals of the transitions of one kind.
type SignalRule struct {
	// On is a transition: the word of an event, or [DirectiveGiven].
	On string
	// About restricts the rule to transitions with these members: beat, choice_point,
	// choice, flag, objective or prop, each with an id.
	About map[string]string
	Type  string
	// Payload is merged over the members of the transition; it may be absent.
	Payload signal.Value
}

// DirectiveGiven is the name that rules have for a [GuidanceIssued] with a directive.
const DirectiveGiven = "directive"

// cueWord is a transition that rules can be on, and the members that can restrict it.
type cueWord struct {
	word  string
	about []string
}

var cueWords = []cueWord{
	{EpisodeStarted, nil},
	{EpisodeRevised, nil},
	{TurnOpened, nil},
	{DirectiveGiven, []string{"beat"}},
	{AttemptDropped, nil},
	{BeatHeld, []string{"beat"}},
	{BeatLanded, []string{"beat"}},
	{BeatForced, []string{"beat"}},
	{BeatMissed, []string{"beat"}},
	{DeadlineMissed, []string{"beat"}},
	{ChoiceOffered, []string{"beat", "choice_point"}},
	{ChoiceSelected, []string{"beat", "choice_point", "choice"}},
	{ChoiceDeclined, []string{"beat", "choice_point"}},
	{FlagSet, []string{"flag"}},
	{FlagCleared, []string{"flag"}},
	{ObjectiveCompleted, []string{"objective"}},
	{ObjectiveFailed, []string{"objective"}},
	{EpisodeFailed, nil},
	{PropRevealed, []string{"prop"}},
	{VisualTriggered, nil},
	{SuggestionMade, nil},
	{TurnEvaluated, nil},
}

// maxRules bounds the rules of a kind.
const maxRules = 256

var signalMembers = []string{"on", "beat", "choice_point", "choice", "flag", "objective", "prop", "type", "payload", "note"}

// signals reads the rules about signals.
func (b *builder) signals(list node, e *Episode) {
	for _, n := range b.rules(list) {
		if !b.object(n, "a rule", signalMembers...) {
			continue
		}
		r := SignalRule{On: b.needed(n, "on"), Type: b.needed(n, "type")}
		at := slices.IndexFunc(cueWords, func(w cueWord) bool { return w.word == r.On })
		if at < 0 {
			if r.On != "" {
				b.errorf(n.at("on"), "unknown transition %s", wording.Quoted(r.On))
			}
			continue
		}
		for _, name := range []string{"beat", "choice_point", "choice", "flag", "objective", "prop"} {
			if !n.has(name) {
				continue
			}
			id := b.needed(n, name)
			if !slices.Contains(cueWords[at].about, name) {
				b.errorf(n.at(name), "a rule on %s takes no %s", r.On, name)
				continue
			}
			if id != "" {
				if r.About == nil {
					r.About = map[string]string{}
				}
				r.About[name] = id
				b.known(n, name, id, r.About["choice_point"], e)
			}
		}
		if p := n.at("payload"); n.has("payload") && p.Value.Kind() != signal.KindObject {
			b.errorf(p, "want a payload, an object, not %s", p.Value.Kind().WithArticle())
		} else if n.has("payload") {
			r.Payload = p.Value
		}
		if _, fixed := signal.PayloadFields(r.Type); fixed {
			b.errorf(n.at("type"), "%s has a fixed payload; use another type for signals of an episode", r.Type)
		}
		if e.cues == nil {
			e.cues = map[string][]int{}
		}
		e.cues[r.On] = append(e.cues[r.On], len(e.Signals))
		e.Signals = append(e.Signals, r)
	}
}

// rules bounds a list of rules.
func (b *builder) rules(list node) func(func(int, node) bool) {
	if list.Value.Len() > maxRules {
		b.errorf(list, "more than %d rules", maxRules)
		return list.without().elements
	}
	return list.elements
}

// known refuses ids that the episode does not have.
func (b *builder) known(n node, name, id, choicePoint string, e *Episode) {
	ok, what := true, name
	switch name {
	case "beat":
		_, ok = e.beats[id]
	case "choice_point":
		_, ok = e.choice[id]
		what = "choice point"
	case "choice":
		ok = slices.ContainsFunc(e.Choices, func(c ChoicePoint) bool {
			return (choicePoint == "" || c.ID == choicePoint) && c.OptionIndex(id) >= 0
		})
	case "objective":
		ok = e.Has(Subject{AboutObjective, id})
	case "prop":
		ok = slices.ContainsFunc(e.Props, func(p Prop) bool { return p.ID == id })
	}
	if !ok {
		b.errorf(n.at(name), "unknown %s %s", what, wording.Quoted(id))
	}
}

// SignalRules returns the indexes in Signals of the rules about a transition, in
// ascending order. The caller must not change the result.
func (e *Episode) SignalRules(on string) []int { return e.cues[on] }
