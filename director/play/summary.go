package play

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/clipperhouse/displaywidth"

	"github.com/sajou-dev/sajou-go/internal/termtext"
	"github.com/sajou-dev/sajou-go/session"
)

// summary is the progress of a played episode.
type summary struct {
	What       string             `json:"what"`
	Session    string             `json:"session"`
	Head       session.HeadView   `json:"head"`
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

// summary returns the progress of the episode.
func (s *Sitting) summary(at position) summary {
	e, view := s.episode, viewOf(at.state)
	member := func(in any, name string) map[string]any {
		m, _ := in.(map[string]any)
		v, _ := m[name].(map[string]any)
		return v
	}
	sum := summary{
		What: "end", Session: s.session.Name(), Head: session.ViewHead(s.session.Head()), Episode: e.ID, Turn: at.turn, Budget: e.Budget, Over: at.over,
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

// text returns a summary for people.
func (s summary) text(title string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, after %s\n", title, turnOf(s.Turn, s.Budget))
	width := 0
	for _, beat := range s.Beats {
		width = max(width, displaywidth.String(termtext.Printable(beat.Beat)))
	}
	for i, beat := range s.Beats {
		if i == 0 {
			fmt.Fprintln(&b)
		}
		fate := map[string]string{"pending": "did not land", "missed": "was given up"}[beat.Status]
		if fate == "" {
			fate = fmt.Sprintf("landed in turn %d, %s", beat.Turn, beat.Assurance)
		}
		name := termtext.Printable(beat.Beat)
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
		lines = append(lines, termtext.Printable(strings.TrimRight(line, "\n")))
	}
	return strings.Join(lines, "\n")
}
