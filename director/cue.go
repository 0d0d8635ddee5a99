package director

import (
	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/signal"
)

// Cue is a signal to choreographies: an event of the play that the stage shows.
type Cue struct {
	Type    string
	Payload signal.Value // an object
}

// Signals returns the signals that the rules of the episode make of an event, in the
// order of the rules. The event must have been applied to s last. A payload is
// {"episode": id} with the members of the event, over which the members of the rule's
// payload are merged. The event "directive" has the members turn, pacing, beat and
// urgency; a choice that is offered has prompt and choices besides; a suggestion
// names its episode in the member suggested.
func (s *State) Signals(r signal.Record) []Cue {
	if s.episode == nil || len(s.episode.Signals) == 0 {
		return nil
	}
	word, event := r.Word, r.Value
	if word == episode.GuidanceIssued {
		if event = directiveOf(event); event == nil {
			return nil
		}
		word = episode.DirectiveGiven
	}
	var cues []Cue
	for _, i := range s.episode.SignalRules(word) {
		if rule := &s.episode.Signals[i]; fits(rule, event) {
			cues = append(cues, Cue{rule.Type, cuePayload(rule, s.episode, word, event)})
		}
	}
	return cues
}

// directiveOf returns the directive of an issued guidance as an event of its own, nil
// if the guidance has none.
func directiveOf(issued signal.Value) signal.Value {
	d, ok := issued.Get("directive")
	if !ok {
		return nil
	}
	o := signal.NewObject(4)
	for name, v := range issued.Members() {
		if name == "turn" || name == "pacing" {
			o.Set(name, v)
		}
	}
	for name, v := range d.Members() {
		o.Set(name, v)
	}
	return o.Value()
}

// fits reports whether an event has the members that a rule asks for.
func fits(r *episode.SignalRule, event signal.Value) bool {
	for name, want := range r.About {
		if event.TextOf(name) != want {
			return false
		}
	}
	return true
}

// cuePayload returns the payload of the signal that a rule makes of an event.
func cuePayload(r *episode.SignalRule, e *episode.Episode, word string, event signal.Value) signal.Value {
	o := signal.NewObject(1+event.Len()).Text("episode", e.ID)
	for name, v := range event.Members() {
		switch {
		case name != "episode":
			o.Set(name, v)
		case word == episode.SuggestionMade:
			o.Set("suggested", v)
		}
	}
	if word == episode.ChoiceOffered {
		if i, ok := e.ChoiceIndex(event.TextOf("choice_point")); ok {
			o.Set("prompt", signal.Text(e.Choices[i].PromptAfter(event.TextOf("character_said"))))
			o.Set("choices", labelsOf(&e.Choices[i]))
		}
	}
	if r.Payload != nil {
		for name, v := range r.Payload.Members() {
			o.Set(name, v)
		}
	}
	return o.Value()
}

// labelsOf returns the options as the user sees them: [{"id", "label"}, …].
func labelsOf(c *episode.ChoicePoint) signal.Value {
	list := make([]signal.Value, len(c.Options))
	for i, option := range c.Options {
		list[i] = signal.NewObject(2).Text("id", option.ID).Text("label", option.Label).Value()
	}
	return signal.Array(list...)
}
