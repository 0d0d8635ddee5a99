package agentwire

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/director/episode"
	directorlive "github.com/sajou-dev/sajou-go/director/live"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/server/problem"
	"github.com/sajou-dev/sajou-go/server/route"
	"github.com/sajou-dev/sajou-go/signal"
)

// This file is the director over the wire. A request may be repeated after a fault, and
// then has the first answer, as a call of the director does.

// startEpisode begins an episode.
func (r *AgentDoor) startEpisode(w http.ResponseWriter, req *http.Request) error {
	v, err := body(req)
	if err == nil {
		err = only(v, "episode", "flags", "energy")
	}
	if err != nil {
		return err
	}
	e, err := episode.Compile(v.Member("episode"))
	if err != nil {
		return problem.New(problem.Invalid, err.Error()).At("/episode")
	}
	var opening director.Opening
	if opening.Energy, err = textIn(v, "energy"); err != nil {
		return err
	}
	if flags, ok := v.Get("flags"); ok && !texts(&opening.Flags, flags) {
		return problem.New(problem.Invalid, "/flags: want an array of texts").At("/flags")
	}
	ses, err := r.engine.Session(req.Context(), route.Session(req))
	if err != nil {
		return err
	}
	if err := ses.Director().Start(req.Context(), e, opening); err != nil {
		return directed(err)
	}
	return answer(w, startedView{e.ID, e.Briefing(), e.OpeningLine})
}

type startedView struct {
	Episode     string `json:"episode"`
	Briefing    string `json:"briefing"`
	OpeningLine string `json:"opening_line"`
}

// director returns the director of a session that exists.
func (r *AgentDoor) director(req *http.Request) (*directorlive.Director, error) {
	name := route.Session(req)
	log, err := r.engine.Log().Session(name)
	if err != nil {
		return nil, err
	}
	if !log.Exists() {
		return nil, fmt.Errorf("%w: %q", eventlog.ErrNoSession, name)
	}
	ses, err := r.engine.Session(req.Context(), name)
	if err != nil {
		return nil, err
	}
	return ses.Director(), nil
}

// directed returns the problem of an error of the director.
func directed(err error) error {
	if errors.Is(err, director.ErrRecord) || errors.Is(err, director.ErrRevision) {
		return problem.New(problem.InUse, err.Error())
	}
	return err
}

// turnOf reads the turn of a body.
func turnOf(v signal.Value) (int, error) {
	n, ok := v.Member("turn").Int64()
	if !ok || n < 1 || n > episode.MaxTurn {
		return 0, problem.New(problem.Invalid, fmt.Sprintf("/turn: want an integer from 1 to %d", episode.MaxTurn)).At("/turn")
	}
	return int(n), nil
}

// guide opens a turn.
func (r *AgentDoor) guide(w http.ResponseWriter, req *http.Request) error {
	v, err := body(req)
	if err == nil {
		err = only(v, "turn", "text")
	}
	if err != nil {
		return err
	}
	turn, err := turnOf(v)
	if err != nil {
		return err
	}
	said, err := textIn(v, "text")
	if err != nil {
		return err
	}
	d, err := r.director(req)
	if err != nil {
		return err
	}
	g, err := d.Guide(req.Context(), director.TurnInput{Turn: turn, Text: said})
	if err != nil {
		return directed(err)
	}
	view := guidanceView{Turn: g.Turn, Pacing: g.Pacing, Anchor: g.Anchor, Genre: g.Genre, Energy: g.Energy, Context: list(g.Context), Section: g.Section()}
	if b := g.Directive; b != nil {
		view.Directive = &directiveView{b.Beat, b.Instruction, b.Urgency.String(), b.Context}
	}
	return answer(w, view)
}

type (
	guidanceView struct {
		Turn      int            `json:"turn"`
		Pacing    string         `json:"pacing"`
		Anchor    string         `json:"physical_anchor"`
		Genre     string         `json:"genre"`
		Energy    string         `json:"energy_level"`
		Context   []string       `json:"context"`
		Directive *directiveView `json:"directive"`
		Section   string         `json:"section"` // for the character's prompt
	}
	directiveView struct {
		Beat        string `json:"beat_id"`
		Instruction string `json:"instruction"`
		Urgency     string `json:"urgency"`
		Context     string `json:"context"`
	}
)

// respond records a response of the character, and answers with what came of it.
func (r *AgentDoor) respond(w http.ResponseWriter, req *http.Request) error {
	v, err := body(req)
	if err == nil {
		err = only(v, "turn", "attempt", "text", "before")
	}
	if err != nil {
		return err
	}
	in, err := responseOf(v)
	if err != nil {
		return err
	}
	d, err := r.director(req)
	if err != nil {
		return err
	}
	out, err := d.Respond(req.Context(), in)
	if err != nil {
		return directed(err)
	}
	view := responseView{
		Turn: out.Turn, Attempt: out.Attempt, Evaluated: out.Evaluated, Landed: []landingView{}, Missed: list(out.Missed),
		Completed: list(out.Completed), Failed: list(out.Failed), Revealed: list(out.Revealed), Visual: out.Visual, Suggested: list(out.Suggested),
	}
	for _, l := range out.Landed {
		view.Landed = append(view.Landed, landingView{l.Beat, l.Method, l.Assurance, l.Heard})
	}
	if o := out.Choice; o != nil {
		view.Choice = &choiceView{Type: "choice_point", ID: o.ID, Prompt: o.Prompt, Choices: []optionView{}, Mode: o.Mode, Beat: o.Beat}
		view.Choice.Context.Said = o.Said
		for _, option := range o.Options {
			view.Choice.Choices = append(view.Choice.Choices, optionView{option.ID, option.Label})
		}
	}
	return answer(w, view)
}

// responseOf reads a response of the character.
func responseOf(v signal.Value) (in director.Response, err error) {
	if in.Turn, err = turnOf(v); err != nil {
		return in, err
	}
	if attempt, ok := v.Get("attempt"); ok {
		n, ok := attempt.Int64()
		if !ok || n < 0 || n > episode.MaxTurn {
			return in, problem.New(problem.Invalid, fmt.Sprintf("/attempt: want an integer from 0 to %d", episode.MaxTurn)).At("/attempt")
		}
		in.Attempt = int(n)
	}
	if in.Text, err = textIn(v, "text"); err != nil {
		return in, err
	}
	before, ok := v.Get("before")
	if ok && before.Kind() != signal.KindArray {
		return in, problem.New(problem.Invalid, "/before: want an array of objects with role and text").At("/before")
	}
	for line := range before.Elements() {
		var l director.TranscriptLine
		if !text(&l.Role, line.Member("role")) || !text(&l.Text, line.Member("text")) {
			place := fmt.Sprintf("/before/%d", len(in.Before))
			return in, problem.New(problem.Invalid, place+": want an object with role and text, both texts").At(place)
		}
		in.Before = append(in.Before, l)
	}
	return in, nil
}

type (
	responseView struct {
		Turn      int           `json:"turn"`
		Attempt   int           `json:"attempt"`
		Evaluated bool          `json:"evaluated"`
		Landed    []landingView `json:"landed"`
		Choice    *choiceView   `json:"choice"`
		Missed    []string      `json:"missed"`
		Completed []string      `json:"completed"`
		Failed    []string      `json:"failed"`
		Revealed  []string      `json:"revealed"`
		Visual    bool          `json:"visual"`
		Suggested []string      `json:"suggested"`
	}
	landingView struct {
		Beat      string `json:"beat_id"`
		Method    string `json:"method"`
		Assurance string `json:"assurance"`
		Heard     int    `json:"heard_at_turn"`
	}
	// choiceView is the event of the beat contract, "Choice-as-Message Flow".
	choiceView struct {
		Type    string       `json:"type"`
		ID      string       `json:"id"`
		Prompt  string       `json:"prompt"`
		Choices []optionView `json:"choices"`
		Mode    string       `json:"mode"`
		Context struct {
			Said string `json:"character_said"`
		} `json:"context"`
		Beat string `json:"beat_id,omitempty"`
	}
	optionView struct {
		ID    string `json:"id"`
		Label string `json:"label"`
	}
)

// choose makes the user's choice. The option's label is the user's next message: the
// next turn is guided without a text.
func (r *AgentDoor) choose(w http.ResponseWriter, req *http.Request) error {
	v, err := body(req)
	if err == nil {
		err = only(v, "choice_point", "choice")
	}
	if err != nil {
		return err
	}
	point, err := textIn(v, "choice_point")
	if err != nil {
		return err
	}
	choice, err := textIn(v, "choice")
	if err != nil {
		return err
	}
	d, err := r.director(req)
	if err != nil {
		return err
	}
	c, err := d.Choose(req.Context(), point, choice)
	if err != nil {
		return directed(err)
	}
	view := chosenView{ChoicePoint: c.ChoicePoint, Choice: c.Choice, Flag: c.Flag, Again: c.Again}
	if m := c.Message; m != nil {
		view.Message = &messageView{Role: "user", Content: m.Content}
		view.Message.Metadata.IsChoice, view.Message.Metadata.ChoicePoint, view.Message.Metadata.Choice = true, m.ChoicePoint, m.Choice
	}
	return answer(w, view)
}

type (
	chosenView struct {
		ChoicePoint string       `json:"choice_point"`
		Choice      string       `json:"choice"`
		Flag        string       `json:"flag,omitempty"`
		Message     *messageView `json:"message"`
		Again       bool         `json:"again"`
	}
	messageView struct {
		Role     string `json:"role"`
		Content  string `json:"content"`
		Metadata struct {
			IsChoice    bool   `json:"is_choice"`
			ChoicePoint string `json:"choice_point_id"`
			Choice      string `json:"choice_id"`
		} `json:"metadata"`
	}
)

// list returns a list that is an array in JSON, not null.
func list(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}
