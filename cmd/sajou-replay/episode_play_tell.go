package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/clipperhouse/displaywidth"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/eventlog"
)

// tellingKind says how a telling looks.
type tellingKind int

const (
	told      tellingKind = iota // a paragraph of its own
	speech                       // what somebody says
	noted                        // a small note
	direction                    // what the director tells the character; shown if it is wanted
	silent                       // for programs only
)

// telling is what an event of a played episode tells.
type telling struct {
	kind tellingKind
	who  string // of a speech
	text string // may have several lines, and what a terminal would act on
	seq  eventlog.Seq
	// record is the event itself, once for all tellings of it.
	record director.Record
}

// tell says what an event tells.
func (s *sitting) tell(seq eventlog.Seq, r director.Record) (list []telling) {
	add := func(kind tellingKind, format string, args ...any) {
		list = append(list, telling{kind: kind, text: fmt.Sprintf(format, args...), seq: seq})
	}
	speak := func(who, words string) {
		list = append(list, telling{kind: speech, who: who, text: strings.Clone(words), seq: seq})
	}
	value := func(name string) string { return textIn(r.Value, name) }
	e := s.episode
	if m, ok := sajou.SaidBy(r); ok {
		if m.Role == "user" {
			speak("You", m.Text)
		} else {
			speak(s.actor.name(), m.Text)
		}
	}
	switch r.Word {
	case director.EpisodeStarted:
		add(told, "%s", s.opening())
		if e.OpeningLine != "" {
			speak(s.actor.name(), e.OpeningLine)
		}
	case director.EpisodeRevised:
		add(noted, "the episode goes on in another version")
	case director.GuidanceIssued:
		turn := numberIn(r.Value, "turn")
		add(noted, "%s, %s", turnOf(turn, e.Budget), value("pacing"))
		if d, ok := r.Value.Get("directive"); ok {
			instruction := ""
			if i, ok := e.BeatIndex(textIn(d, "beat")); ok {
				instruction = e.Beats[i].Instruction
			}
			add(direction, "%s, %s: %s", textIn(d, "beat"), textIn(d, "urgency"), instruction)
		}
	case director.VerdictRecorded:
		if v := value("verdict"); value("method") == "semantic" {
			add(direction, "the judge on %s%s: %s", value("beat"), value("objective"), v+inBrackets(value("raw")+value("failure")))
		}
	case director.BeatHeld:
		add(noted, "%s was heard, and waits for its choice", value("beat"))
	case director.BeatLanded:
		how := value("assurance")
		if method := value("method"); method != how {
			how += ", " + method
		}
		add(noted, "%s has landed (%s)", value("beat"), how)
	case director.BeatForced:
		speak(s.actor.name(), value("line"))
	case director.BeatMissed:
		add(noted, "%s is given up (%s)", value("beat"), value("cause"))
	case director.DeadlineMissed:
		add(direction, "%s has missed its deadline, turn %d", value("beat"), numberIn(r.Value, "deadline"))
	case director.ChoiceSelected:
		add(noted, "%s: %s", value("choice_point"), value("choice"))
	case director.ChoiceDeclined:
		add(noted, "%s is declined", value("choice_point"))
	case director.FlagSet:
		add(noted, "flag %s", value("flag"))
	case director.FlagCleared:
		add(noted, "flag %s is gone", value("flag"))
	case director.ObjectiveCompleted:
		add(noted, "objective %s is reached", value("objective"))
	case director.ObjectiveFailed:
		add(noted, "objective %s is lost (%s)", value("objective"), value("cause"))
	case director.EpisodeFailed:
		add(noted, "the episode has failed (%s)", value("cause"))
	case director.AttemptDropped:
		add(noted, "that is taken back, and said anew")
	case director.PropRevealed:
		name, content := value("prop"), ""
		for _, p := range e.Props {
			if p.ID == name {
				name, content = p.Name, p.Content
			}
		}
		add(noted, "you see the %s. %s", name, content)
	case director.VisualTriggered:
		add(noted, "a picture of the scene is wanted (%d of %d)", numberIn(r.Value, "index"), numberIn(r.Value, "of"))
	case director.SuggestionMade:
		add(noted, "next could be %s", value("episode"))
	}
	if len(list) == 0 {
		list = []telling{{kind: silent, seq: seq}}
	}
	list[0].record = director.Record{Word: strings.Clone(r.Word), Value: slices.Clone(r.Value)}
	return list
}

func inBrackets(s string) string {
	if s == "" {
		return ""
	}
	return " (" + s + ")"
}

func turnOf(turn, budget int) string {
	if budget > 0 {
		return fmt.Sprintf("turn %d of %d", turn, budget)
	}
	return fmt.Sprintf("turn %d", turn)
}

// title is what the episode is called.
func (s *sitting) title() string {
	switch {
	case s.episode.Title != "":
		return s.episode.Title
	case s.episode.ID != "":
		return s.episode.ID
	}
	return s.session.Name()
}

// opening is what the user is told before anybody speaks.
func (s *sitting) opening() string {
	e := s.episode
	lines := []string{s.title()}
	if e.Situation != "" {
		lines = append(lines, e.Situation)
	}
	for _, o := range e.Objectives {
		if o.Description != "" {
			lines = append(lines, "What you want: "+o.Description)
		}
	}
	if e.UserHint != "" {
		lines = append(lines, e.UserHint)
	}
	return strings.Join(lines, "\n")
}

// lines writes a telling as lines of a width, 0 for any; none if it is not
// shown.
func (t telling) lines(directions bool, width int) []string {
	switch t.kind {
	case told:
		return wrap("", t.text, width)
	case speech:
		return wrap(t.who+": ", t.text, width)
	case noted:
		return wrap("  · ", t.text, width)
	case direction:
		if directions {
			return wrap("  » ", t.text, width)
		}
	case silent:
	}
	return nil
}

// wrap breaks a text into lines that a terminal can be shown. The first line
// begins with a prefix; those that follow it are moved in as far as notes are.
func wrap(prefix, text string, width int) (lines []string) {
	indent := ""
	if strings.TrimLeft(prefix, " ") != prefix || prefix == "" {
		indent = strings.Repeat(" ", displaywidth.String(prefix))
	}
	line := printable(prefix)
	for part := range strings.Lines(text) {
		empty := true // the line has no word yet
		for word := range strings.FieldsSeq(part) {
			word = printable(word)
			if !empty && width > 0 && displaywidth.String(line)+1+displaywidth.String(word) > width {
				lines, line, empty = append(lines, line), indent, true
			}
			if !empty {
				line += " "
			}
			line += word
			empty = false
		}
		if !empty {
			lines, line = append(lines, line), indent
		}
	}
	if len(lines) == 0 {
		lines = []string{strings.TrimRight(line, " ")}
	}
	return lines
}

func directionsRemark(shown bool) string {
	if shown {
		return "directions are shown from here on"
	}
	return "directions are hidden from here on"
}

// remarkLines writes an answer to a line that was not taken.
func remarkLines(text string) (lines []string) {
	for line := range strings.Lines(text) {
		lines = append(lines, "  ? "+printable(strings.TrimRight(line, "\n")))
	}
	return lines
}

// offerLines writes a choice that replaces the input; marked is the option that
// a terminal's mark is on, -1 for none.
func offerLines(o *director.Offer, marked, width int) []string {
	var lines []string
	if o.Prompt != "" {
		lines = wrap("", o.Prompt, width)
	}
	for i, option := range o.Options {
		mark := "  "
		if i == marked {
			mark = "> "
		}
		lines = append(lines, wrap(fmt.Sprintf("%s%d  ", mark, i+1), option.Label, width)...)
	}
	return lines
}

// cardLines writes the cards beside the input. Their options are counted
// through.
func cardLines(cards []*director.Offer, width int) (lines []string) {
	n := 0
	for _, c := range cards {
		line := c.Prompt
		for _, o := range c.Options {
			n++
			line += fmt.Sprintf("  /%d %s", n, o.Label)
		}
		lines = append(lines, wrap("  # ", line, width)...)
	}
	return lines
}

// summary is what a played episode has come to.
type summary struct {
	What       string             `json:"what"`
	Session    string             `json:"session"`
	Head       headView           `json:"head"`
	Episode    string             `json:"episode"`
	Turn       int                `json:"turn"`
	Budget     int                `json:"budget"`
	Over       bool               `json:"over"`
	Beats      []summaryBeat      `json:"beats"`
	Choices    []summaryChoice    `json:"choices"`
	Flags      []string           `json:"flags"`
	Objectives []summaryObjective `json:"objectives"`
	Suggested  []suggestion       `json:"suggested"`
}

type summaryBeat struct {
	Beat      string `json:"beat"`
	Status    string `json:"status"`
	Turn      int    `json:"turn,omitempty"` // in which it landed
	Assurance string `json:"assurance,omitempty"`
}

type summaryChoice struct {
	Choice string `json:"choice_point"`
	Option string `json:"choice"`
}

type summaryObjective struct {
	Objective string `json:"objective"`
	Status    string `json:"status"`
}

// summary says where the episode stands.
func (s *sitting) summary(at standing) summary {
	e, view := s.episode, viewOf(at.state)
	member := func(in any, name string) map[string]any {
		m, _ := in.(map[string]any)
		v, _ := m[name].(map[string]any)
		return v
	}
	sum := summary{
		What: "end", Session: s.session.Name(), Head: viewHead(s.session.Head()), Episode: e.ID, Turn: at.turn, Budget: e.Budget, Over: at.over,
		Beats: []summaryBeat{}, Choices: []summaryChoice{}, Objectives: []summaryObjective{}, Suggested: append([]suggestion{}, s.suggested...),
		Flags: append([]string{}, slices.Sorted(maps.Keys(member(view, "flags")))...),
	}
	for _, b := range e.Beats {
		beat := member(view["beats"], b.ID)
		status, _ := beat["status"].(string)
		turn, _ := beat["detected_at_turn"].(int64)
		assurance, _ := beat["assurance"].(string)
		sum.Beats = append(sum.Beats, summaryBeat{b.ID, status, int(turn), assurance})
	}
	made, _ := view["choices_made"].([]any)
	for _, m := range made {
		choice, _ := m.(map[string]any)
		point, _ := choice["choice_point_id"].(string)
		option, _ := choice["selected"].(string)
		sum.Choices = append(sum.Choices, summaryChoice{point, option})
	}
	for _, o := range e.Objectives {
		status, _ := member(view["objectives"], o.ID)["status"].(string)
		sum.Objectives = append(sum.Objectives, summaryObjective{o.ID, status})
	}
	return sum
}

// text writes a summary for people.
func (s summary) text(title string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, after %s\n", title, turnOf(s.Turn, s.Budget))
	width := 0
	for _, beat := range s.Beats {
		width = max(width, displaywidth.String(printable(beat.Beat)))
	}
	for i, beat := range s.Beats {
		if i == 0 {
			fmt.Fprintln(&b)
		}
		fate := map[string]string{"pending": "did not land", "missed": "was given up"}[beat.Status]
		if fate == "" {
			fate = fmt.Sprintf("landed in turn %d, %s", beat.Turn, beat.Assurance)
		}
		name := printable(beat.Beat)
		fmt.Fprintf(&b, "  %s%s  %s\n", name, strings.Repeat(" ", width-displaywidth.String(name)), fate)
	}
	row := func(name string, items []string) {
		if len(items) > 0 {
			fmt.Fprintf(&b, "  %-10s  %s\n", name, strings.Join(items, ", "))
		}
	}
	var choices, objectives, next []string
	for _, c := range s.Choices {
		choices = append(choices, c.Choice+" "+c.Option)
	}
	for _, o := range s.Objectives {
		objectives = append(objectives, o.Objective+" "+strings.ReplaceAll(o.Status, "_", " "))
	}
	for _, n := range s.Suggested {
		next = append(next, n.Episode+" ("+n.Cause+")")
	}
	fmt.Fprintln(&b)
	row("choices", choices)
	row("flags", s.Flags)
	row("objectives", objectives)
	row("next", next)
	var lines []string
	for line := range strings.Lines(strings.TrimRight(b.String(), "\n")) {
		lines = append(lines, printable(strings.TrimRight(line, "\n")))
	}
	return strings.Join(lines, "\n")
}
