package play

import (
	"fmt"
	"slices"
	"strings"

	"github.com/clipperhouse/displaywidth"

	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/termtext"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

// noticeKind is the layout of a notice.
type noticeKind int

const (
	paragraph noticeKind = iota // a paragraph of its own
	speech                      // words of the user or the character
	noted                       // a small note
	direction                   // what the director tells the character; shown on demand
	silent                      // for programs alone
)

// notice is a part of the scene that is shown for an event.
type notice struct {
	kind noticeKind
	name string // of a speech
	text string // may have several lines, and what a terminal would act on
	seq  eventlog.Seq
	// record is the event itself, in the first of its notices alone.
	record signal.Record
}

// notices returns the notices of an event.
func (s *Sitting) notices(seq eventlog.Seq, r signal.Record) (list []notice) {
	add := func(kind noticeKind, format string, args ...any) {
		list = append(list, notice{kind: kind, text: fmt.Sprintf(format, args...), seq: seq})
	}
	speak := func(name, words string) {
		list = append(list, notice{kind: speech, name: name, text: strings.Clone(words), seq: seq})
	}
	value := r.Value.TextOf
	e := s.episode
	if m, ok := session.UtteranceOf(r); ok {
		if m.Role == "user" {
			speak("You", m.Text)
		} else {
			speak(s.actor.Name(), m.Text)
		}
	}
	switch r.Word {
	case episode.EpisodeStarted:
		add(paragraph, "%s", s.opening())
		if e.OpeningLine != "" {
			speak(s.actor.Name(), e.OpeningLine)
		}
	case episode.EpisodeRevised:
		add(noted, "the episode goes on in another version")
	case episode.GuidanceIssued:
		turn := int(r.Value.IntOf("turn"))
		add(noted, "%s, %s", turnOf(turn, e.Budget), value("pacing"))
		if d, ok := r.Value.Get("directive"); ok {
			instruction := ""
			if i, ok := e.BeatIndex(d.TextOf("beat")); ok {
				instruction = e.Beats[i].Instruction
			}
			add(direction, "%s, %s: %s", d.TextOf("beat"), d.TextOf("urgency"), instruction)
		}
	case episode.VerdictRecorded:
		if v := value("verdict"); value("method") == "semantic" {
			add(direction, "the judge on %s%s: %s", value("beat"), value("objective"), v+inBrackets(value("raw")+value("failure")))
		}
	case episode.BeatHeld:
		add(noted, "%s was heard, and waits for its choice", value("beat"))
	case episode.BeatLanded:
		how := value("assurance")
		if method := value("method"); method != how {
			how += ", " + method
		}
		add(noted, "%s has landed (%s)", value("beat"), how)
	case episode.BeatForced:
		speak(s.actor.Name(), value("line"))
	case episode.BeatMissed:
		add(noted, "%s is given up (%s)", value("beat"), value("cause"))
	case episode.DeadlineMissed:
		add(direction, "%s has missed its deadline, turn %d", value("beat"), int(r.Value.IntOf("deadline")))
	case episode.ChoiceSelected:
		add(noted, "%s: %s", value("choice_point"), value("choice"))
	case episode.ChoiceDeclined:
		add(noted, "%s is declined", value("choice_point"))
	case episode.FlagSet:
		add(noted, "flag %s", value("flag"))
	case episode.FlagCleared:
		add(noted, "flag %s is gone", value("flag"))
	case episode.ObjectiveCompleted:
		add(noted, "objective %s is reached", value("objective"))
	case episode.ObjectiveFailed:
		add(noted, "objective %s is lost (%s)", value("objective"), value("cause"))
	case episode.EpisodeFailed:
		add(noted, "the episode has failed (%s)", value("cause"))
	case episode.AttemptDropped:
		add(noted, "that response is dropped, and given again")
	case episode.PropRevealed:
		name, content := value("prop"), ""
		for _, p := range e.Props {
			if p.ID == name {
				name, content = p.Name, p.Content
			}
		}
		add(noted, "you see the %s. %s", name, content)
	case episode.VisualTriggered:
		add(noted, "a picture of the scene is wanted (%d of %d)", int(r.Value.IntOf("index")), int(r.Value.IntOf("of")))
	case episode.SuggestionMade:
		add(noted, "next could be %s", value("episode"))
	}
	if len(list) == 0 {
		list = []notice{{kind: silent, seq: seq}}
	}
	list[0].record = signal.Record{Word: strings.Clone(r.Word), Value: slices.Clone(r.Value)}
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

// title is the name of the episode.
func (s *Sitting) title() string {
	switch {
	case s.episode.Title != "":
		return s.episode.Title
	case s.episode.ID != "":
		return s.episode.ID
	}
	return s.session.Name()
}

// opening returns the notices before the first line of the play.
func (s *Sitting) opening() string {
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

// lines returns a notice as lines of a width, 0 for any. A notice that is not shown has
// none.
func (t notice) lines(directions bool, width int) []string {
	switch t.kind {
	case paragraph:
		return wrap("", t.text, width)
	case speech:
		return wrap(t.name+": ", t.text, width)
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

// wrap splits a text into lines and escapes the runes that control a terminal. The first
// line begins with a prefix; the others are indented like notes.
func wrap(prefix, text string, width int) (lines []string) {
	indent := ""
	if strings.TrimLeft(prefix, " ") != prefix || prefix == "" {
		indent = strings.Repeat(" ", displaywidth.String(prefix))
	}
	line := termtext.Printable(prefix)
	for part := range strings.Lines(text) {
		empty := true // the line has no word yet
		for word := range strings.FieldsSeq(part) {
			word = termtext.Printable(word)
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

// remarkLines returns the lines of a remark.
func remarkLines(text string) (lines []string) {
	for line := range strings.Lines(text) {
		lines = append(lines, "  ? "+termtext.Printable(strings.TrimRight(line, "\n")))
	}
	return lines
}

// offerLines returns the lines of a choice that replaces the input; marked is the index of
// the option with the mark, -1 for none.
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

// cardLines returns the lines of the cards beside the input. The options of all cards are
// numbered consecutively.
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
