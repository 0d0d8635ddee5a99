package director

import (
	"slices"

	"github.com/tinylib/msgp/msgp"

	"github.com/sajou-dev/sajou-go/internal/wording"
	"github.com/sajou-dev/sajou-go/signal"
)

// Cue is a signal to choreographies: something of the play that the stage is to
// show.
type Cue struct {
	Type    string
	Payload signal.Value // an object
}

// SignalRule says which transitions become which signals.
type SignalRule struct {
	// On is one of [CueWords].
	On string
	// About restricts what it is about: names of the members beat, choice_point,
	// choice, flag, objective and prop.
	About map[string]string
	Type  string
	// Payload is merged over what a cue has by itself; absent if nothing is.
	Payload signal.Value
}

// DirectiveGiven is what rules call a [GuidanceIssued] with a directive.
const DirectiveGiven = "directive"

// cueWord is a transition that rules know, and what it can be about.
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

// CueWords lists what a rule for signals can be on.
func CueWords() []string {
	words := make([]string, len(cueWords))
	for i := range cueWords {
		words[i] = cueWords[i].word
	}
	return words
}

// Signals returns the signals that an event becomes, by the rules of the episode
// in their order. The state is the one that the event has led to. A payload is
// {"episode": id} with the members of the event, over which those of the rule
// are merged; the event "directive" has turn, pacing, beat and urgency, a choice
// that is offered also its prompt and choices, a suggestion calls its episode
// suggested.
func (s *State) Signals(r Record) []Cue {
	if s.episode == nil || len(s.episode.cues) == 0 {
		return nil
	}
	word, event := r.Word, r.Value
	if word == GuidanceIssued {
		if event = directiveOf(event); event == nil {
			return nil
		}
		word = DirectiveGiven
	}
	var cues []Cue
	for _, i := range s.episode.cues[word] {
		if rule := &s.episode.Signals[i]; rule.fits(event) {
			cues = append(cues, Cue{rule.Type, rule.payload(s.episode, word, event)})
		}
	}
	return cues
}

// directiveOf returns what an issued guidance says of its directive, as an event
// of its own; nil if there is none.
func directiveOf(issued signal.Value) signal.Value {
	d, ok := issued.Get("directive")
	if !ok {
		return nil
	}
	var o object
	for name, v := range issued.Members() {
		if name == "turn" || name == "pacing" {
			o.put(name, v)
		}
	}
	for name, v := range d.Members() {
		o.put(name, v)
	}
	return o.value()
}

func (r *SignalRule) fits(event signal.Value) bool {
	for name, want := range r.About {
		if got, _ := textOf(event, name); got != want {
			return false
		}
	}
	return true
}

func (r *SignalRule) payload(e *Episode, word string, event signal.Value) signal.Value {
	var o object
	o.put("episode", msgp.AppendString(nil, e.ID))
	for name, v := range event.Members() {
		switch {
		case name != "episode":
			o.put(name, v)
		case word == SuggestionMade:
			o.put("suggested", v)
		}
	}
	if id, ok := textOf(event, "choice_point"); ok && word == ChoiceOffered {
		if i, ok := e.choice[id]; ok {
			o.put("prompt", msgp.AppendString(nil, e.Choices[i].Prompt))
			o.put("choices", e.Choices[i].labels())
		}
	}
	if r.Payload != nil {
		for name, v := range r.Payload.Members() {
			o.put(name, v)
		}
	}
	return o.value()
}

// labels returns the options as the user sees them: [{"id", "label"}, …].
func (c *ChoicePoint) labels() signal.Value {
	list := msgp.AppendArrayHeader(nil, uint32(len(c.Options)))
	for _, option := range c.Options {
		list = msgp.AppendMapHeader(list, 2)
		list = msgp.AppendString(msgp.AppendString(list, "id"), option.ID)
		list = msgp.AppendString(msgp.AppendString(list, "label"), option.Label)
	}
	return list
}

// object is an object being put together. A name that comes again takes the
// place of the one before.
type object struct {
	names  []string
	values []signal.Value
}

func (o *object) put(name string, v signal.Value) {
	if i := slices.Index(o.names, name); i >= 0 {
		o.values[i] = v
		return
	}
	o.names, o.values = append(o.names, name), append(o.values, v)
}

func (o *object) value() signal.Value {
	b := msgp.AppendMapHeader(nil, uint32(len(o.names)))
	for i, name := range o.names {
		b = append(msgp.AppendString(b, name), o.values[i]...)
	}
	return b
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
				b.errorf(n.at("on"), "no transition is called %s", wording.Quoted(r.On))
			}
			continue
		}
		for _, name := range []string{"beat", "choice_point", "choice", "flag", "objective", "prop"} {
			if !n.has(name) {
				continue
			}
			id := b.needed(n, name)
			if !slices.Contains(cueWords[at].about, name) {
				b.errorf(n.at(name), "%s is about no %s", r.On, name)
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
		if p := n.at("payload"); n.has("payload") && p.v.Kind() != signal.KindObject {
			b.errorf(p, "want a payload, an object, not %s", wording.Article(p.v.Kind()))
		} else if n.has("payload") {
			r.Payload = p.v
		}
		if _, fixed := signal.PayloadFields(r.Type); fixed {
			b.errorf(n.at("type"), "the payload of %s has a form of its own: signals of an episode need another type", r.Type)
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
	if list.v.Len() > maxRules {
		b.errorf(list, "more than %d rules", maxRules)
		return node{nil, list.path}.elements
	}
	return list.elements
}

// known refuses ids of nothing.
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
			return (choicePoint == "" || c.ID == choicePoint) && c.option(id) >= 0
		})
	case "objective":
		ok = e.has(Subject{AboutObjective, id})
	case "prop":
		ok = slices.ContainsFunc(e.Props, func(p Prop) bool { return p.ID == id })
	}
	if !ok {
		b.errorf(n.at(name), "no %s is called %s", what, wording.Quoted(id))
	}
}
