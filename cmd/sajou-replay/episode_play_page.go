package main

import (
	"errors"
	"fmt"

	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/eventlog"
)

// page shows a sitting as text, or as JSON for programs.
type page struct {
	o          *output
	s          *sitting
	directions bool
	opened     bool   // the opening was told just now
	asked      string // the choices that were shown last
}

// tell shows tellings.
func (p *page) tell(list []telling) error {
	for _, t := range list {
		if p.o.format != "text" {
			if err := p.event(t); err != nil {
				return err
			}
			continue
		}
		lines := t.lines(p.directions, 0)
		if t.kind == speech && (t.who == "You" || p.opened) {
			lines = append([]string{""}, lines...)
		}
		p.opened = t.kind == told
		for _, line := range lines {
			fmt.Fprintln(p.o, line)
		}
	}
	return p.o.Flush()
}

// event writes the event of a telling as JSON.
func (p *page) event(t telling) error {
	if t.record.Word == "" {
		return nil // one event tells several things
	}
	value, err := marshal(struct {
		What  string       `json:"what"`
		Seq   eventlog.Seq `json:"seq"`
		Value rawJSON      `json:"value"`
	}{t.record.Word, t.seq, t.record.Value.AppendJSON(nil)})
	if err != nil {
		return err
	}
	if err := p.o.item("", value); err != nil || t.record.Word != director.EpisodeStarted {
		return err
	}
	e := p.s.episode
	value, err = marshal(struct {
		What      string `json:"what"`
		Session   string `json:"session"`
		Title     string `json:"title"`
		Situation string `json:"situation"`
		Objective string `json:"user_objective,omitempty"`
		Hint      string `json:"user_hint,omitempty"`
		Character string `json:"character"`
		Opening   string `json:"opening_line"`
		Budget    int    `json:"turn_budget"`
	}{"scene", p.s.session.Name(), p.s.title(), e.Situation, objectiveOf(e), e.UserHint, p.s.actor.name(), e.OpeningLine, e.Budget})
	if err != nil {
		return err
	}
	return p.o.item("", value)
}

func objectiveOf(e *director.Episode) string {
	if len(e.Objectives) == 0 {
		return ""
	}
	return e.Objectives[0].Description
}

// rawJSON is JSON as it is.
type rawJSON []byte

// MarshalJSON returns it.
func (r rawJSON) MarshalJSON() ([]byte, error) { return r, nil }

// remark answers a line that was not taken.
func (p *page) remark(text string) error {
	if p.o.format == "text" {
		for _, line := range remarkLines(text) {
			fmt.Fprintln(p.o, line)
		}
		return p.o.Flush()
	}
	value, err := marshal(struct {
		What   string `json:"what"`
		Remark string `json:"remark"`
	}{"remark", text})
	if err != nil {
		return err
	}
	return errors.Join(p.o.item("", value), p.o.Flush())
}

// ask shows what is wanted of the user: programs are told each time, people when
// it is another choice than before.
func (p *page) ask(at standing) error {
	if p.o.format != "text" {
		return p.askProgram(at)
	}
	var lines []string
	asked := ""
	if at.pending != nil {
		lines = append([]string{""}, offerLines(at.pending, -1, 0)...)
		asked = at.pending.ID
	}
	for _, c := range at.cards {
		asked += "/" + c.ID
	}
	lines = append(lines, cardLines(at.cards, 0)...)
	if asked != p.asked {
		for _, line := range lines {
			fmt.Fprintln(p.o, line)
		}
	}
	p.asked = asked
	return p.o.Flush()
}

// wanted is what is wanted of the user, for programs.
type wanted struct {
	What   string        `json:"what"`
	Input  string        `json:"input"` // text, choice or either
	Choice *wantedChoice `json:"choice,omitempty"`
	Cards  []wantedCard  `json:"cards,omitempty"`
}

type wantedChoice struct {
	ID      string         `json:"id"`
	Prompt  string         `json:"prompt"`
	Options []wantedOption `json:"choices"`
}

type wantedOption struct {
	ID    string `json:"id"`
	Label string `json:"label"`
	Type  string `json:"type"` // what chooses it
}

type wantedCard = wantedChoice

func (p *page) askProgram(at standing) error {
	w := wanted{What: "wanted", Input: "text"}
	n := 0
	choice := func(o *director.Offer, slash string) wantedChoice {
		c := wantedChoice{ID: o.ID, Prompt: o.Prompt}
		for i, option := range o.Options {
			typed := option.ID
			if slash != "" {
				n++
				typed = fmt.Sprint(slash, n)
			} else if optionOf(o.Options, typed) != i {
				typed = fmt.Sprint(i + 1) // an id that reads as a number
			}
			c.Options = append(c.Options, wantedOption{option.ID, option.Label, typed})
		}
		return c
	}
	if at.pending != nil {
		c := choice(at.pending, "")
		w.Choice, w.Input = &c, "choice"
		if p.s.free() {
			w.Input = "either"
		}
	}
	for _, card := range at.cards {
		w.Cards = append(w.Cards, choice(card, "/"))
	}
	value, err := marshal(w)
	if err != nil {
		return err
	}
	return errors.Join(p.o.item("", value), p.o.Flush())
}

// end shows the summary.
func (p *page) end(at standing) error {
	sum := p.s.summary(at)
	value, err := marshal(sum)
	if err != nil {
		return err
	}
	return errors.Join(p.o.item("\n"+sum.text(p.s.title()), value), p.o.end())
}
