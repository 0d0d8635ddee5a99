package play

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/eventlog"
)

// Display is the output of a sitting: lines for people, or events for programs.
type Display interface {
	// JSON reports whether the sitting writes events instead of lines.
	JSON() bool
	WriteLine(line string) error
	WriteEvent(value any) error
	Flush() error
}

// Page shows a sitting on a [Display].
type Page struct {
	Out        Display
	Directions bool // show the director's guidance

	sitting *Sitting
	opened  bool   // the latest notice was the opening
	asked   string // the choices that were shown last
}

// show writes notices.
func (p *Page) show(list []notice) error {
	for _, n := range list {
		if p.Out.JSON() {
			if err := p.event(n); err != nil {
				return err
			}
			continue
		}
		lines := n.lines(p.Directions, 0)
		if n.kind == speech && (n.name == "You" || p.opened) {
			lines = append([]string{""}, lines...)
		}
		p.opened = n.kind == paragraph
		if err := p.writeLines(lines); err != nil {
			return err
		}
	}
	return p.Out.Flush()
}

func (p *Page) writeLines(lines []string) error {
	for _, line := range lines {
		if err := p.Out.WriteLine(line); err != nil {
			return err
		}
	}
	return nil
}

// event writes the entry of a notice.
func (p *Page) event(n notice) error {
	if n.record.Word == "" {
		return nil // an earlier notice of the same entry has it
	}
	err := p.Out.WriteEvent(struct {
		What  string          `json:"what"`
		Seq   eventlog.Seq    `json:"seq"`
		Value json.RawMessage `json:"value"`
	}{n.record.Word, n.seq, n.record.Value.AppendJSON(nil)})
	if err != nil || n.record.Word != episode.EpisodeStarted {
		return err
	}
	s := p.sitting
	e := s.episode
	return p.Out.WriteEvent(struct {
		What      string `json:"what"`
		Session   string `json:"session"`
		Title     string `json:"title"`
		Situation string `json:"situation"`
		Objective string `json:"user_objective,omitempty"`
		Hint      string `json:"user_hint,omitempty"`
		Character string `json:"character"`
		Opening   string `json:"opening_line"`
		Budget    int    `json:"turn_budget"`
	}{"scene", s.session.Name(), s.title(), e.Situation, objectiveOf(e), e.UserHint, s.actor.Name(), e.OpeningLine, e.Budget})
}

func objectiveOf(e *episode.Episode) string {
	if len(e.Objectives) == 0 {
		return ""
	}
	return e.Objectives[0].Description
}

// remark answers a line of the user that is not an input of the play.
func (p *Page) remark(text string) error {
	if !p.Out.JSON() {
		return errors.Join(p.writeLines(remarkLines(text)), p.Out.Flush())
	}
	err := p.Out.WriteEvent(struct {
		What   string `json:"what"`
		Remark string `json:"remark"`
	}{"remark", text})
	return errors.Join(err, p.Out.Flush())
}

// ask shows the input that the play waits for: to programs each time, to people when the
// choices have changed.
func (p *Page) ask(at position) error {
	if p.Out.JSON() {
		return errors.Join(p.Out.WriteEvent(p.sitting.wanted(at)), p.Out.Flush())
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
	if asked == p.asked {
		lines = nil
	}
	p.asked = asked
	return errors.Join(p.writeLines(lines), p.Out.Flush())
}

// wanted is the input that the play waits for, for programs.
type wanted struct {
	What   string         `json:"what"`
	Input  string         `json:"input"` // text, choice or either
	Choice *wantedChoice  `json:"choice,omitempty"`
	Cards  []wantedChoice `json:"cards,omitempty"`
}

type wantedChoice struct {
	ID      string         `json:"id"`
	Prompt  string         `json:"prompt"`
	Options []wantedOption `json:"choices"`
}

type wantedOption struct {
	ID    string `json:"id"`
	Label string `json:"label"`
	Type  string `json:"type"` // the line that chooses it
}

func (s *Sitting) wanted(at position) wanted {
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
		if s.free() {
			w.Input = "either"
		}
	}
	for _, card := range at.cards {
		w.Cards = append(w.Cards, choice(card, "/"))
	}
	return w
}

// WriteSummary writes the progress of the episode.
func (p *Page) WriteSummary(ctx context.Context, s *Sitting) error {
	at, err := s.look(ctx)
	if err != nil {
		return err
	}
	sum := s.summary(at)
	if p.Out.JSON() {
		return p.Out.WriteEvent(sum)
	}
	return p.Out.WriteLine("\n" + sum.text(s.title()))
}
