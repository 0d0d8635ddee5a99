package answer

import (
	"context"
	"encoding/json"

	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/director/history"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/signal"
)

// EpisodeView says how far an episode has come.
type EpisodeView struct {
	What   string   `json:"what"` // episode
	ID     string   `json:"episode"`
	Digest string   `json:"digest"`
	Play   int      `json:"play"`
	Began  uint64   `json:"began"`
	Turn   int      `json:"turn"`
	Budget int      `json:"turn_budget,omitempty"`
	Failed bool     `json:"failed"`
	Flags  []string `json:"flags"`
}

// BeatView says how far a beat has come.
type BeatView struct {
	What      string      `json:"what"` // beat
	Beat      string      `json:"beat"`
	Status    string      `json:"status"`
	Target    int         `json:"target_turn"`
	Deadline  int         `json:"deadline_turn"`
	Directed  [][2]int    `json:"directed"` // spans of turns
	Times     int         `json:"directed_turns"`
	Overdue   int         `json:"overdue_turns"`
	Landed    *int        `json:"landed"`
	Late      *int        `json:"late"`
	Seq       uint64      `json:"seq,omitempty"`
	Heard     int         `json:"heard_at_turn,omitempty"`
	Method    string      `json:"method,omitempty"`
	Assurance string      `json:"assurance,omitempty"`
	Choice    *ChoiceView `json:"choice,omitempty"`
}

// ChoiceView says what became of a choice point.
type ChoiceView struct {
	What   string `json:"what,omitempty"` // choice, unless it is that of a beat
	Point  string `json:"choice_point"`
	Status string `json:"status"`
	Option string `json:"choice,omitempty"`
	Label  string `json:"label,omitempty"`
	Turn   int    `json:"turn,omitempty"`
}

// TurnView is what the director recorded of a turn.
type TurnView struct {
	What   string          `json:"what"` // turn
	Turn   int             `json:"turn"`
	Events []TurnEventView `json:"events"`
	Left   int             `json:"left,omitempty"` // events that are not listed
}

// TurnEventView is one event of a turn.
type TurnEventView struct {
	Seq   uint64          `json:"seq"`
	Word  string          `json:"word"`
	Value json.RawMessage `json:"value"`
}

// ViewEpisode returns the view of an episode.
func ViewEpisode(b *history.Progress) EpisodeView {
	flags := b.Flags
	if flags == nil {
		flags = []string{}
	}
	return EpisodeView{"episode", b.Episode.ID, b.Episode.Digest().String(), b.Play, uint64(b.Began), b.Turn, b.Episode.Budget, b.Failed, flags}
}

// ViewBeat returns the view of a beat of the progress, by its index.
func ViewBeat(b *history.Progress, i int) BeatView {
	at := &b.Beats[i]
	v := BeatView{
		What: "beat", Beat: at.Beat.ID, Status: at.Status, Target: at.Beat.Target, Deadline: at.Beat.Deadline,
		Directed: at.Directed.Spans, Times: at.Directed.Count, Overdue: at.Overdue,
		Seq: uint64(at.Seq), Heard: at.Heard, Method: at.Method, Assurance: at.Assurance,
	}
	if v.Directed == nil {
		v.Directed = [][2]int{}
	}
	if late, ok := at.Late(); ok {
		v.Landed, v.Late = &at.Landed, &late
	}
	if c := at.Beat.Choice; c >= 0 {
		choice := viewChoice(&b.Choices[c])
		v.Choice = &choice
	}
	return v
}

func viewChoice(c *history.ChoiceProgress) ChoiceView {
	status := c.Status
	if status == "" {
		status = "closed"
	}
	return ChoiceView{"", c.Point.ID, status, c.Option, c.Label, c.Turn}
}

// ViewFreeChoice returns the view of a choice point that belongs to no beat, by its index,
// and false for one of a beat.
func ViewFreeChoice(b *history.Progress, i int) (ChoiceView, bool) {
	c := &b.Choices[i]
	v := viewChoice(c)
	v.What = "choice"
	return v, c.Point.Beat < 0
}

// ViewTurn returns the view of a turn, with the verdicts of judges if they are asked for,
// and the events that it lists.
func ViewTurn(t *history.PlayedTurn, verdicts bool) (TurnView, []*signal.Record) {
	v := TurnView{What: "turn", Turn: t.Number, Events: []TurnEventView{}, Left: t.Left}
	var shown []*signal.Record
	for i := range t.Events {
		e := &t.Events[i]
		if onBoard(e.Record, verdicts) {
			v.Events = append(v.Events, TurnEventView{uint64(e.Seq), e.Word, e.Value.AppendJSON(nil)})
			shown = append(shown, &e.Record)
		}
	}
	return v, shown
}

// onBoard reports whether the progress lists an event.
func onBoard(r signal.Record, verdicts bool) bool {
	switch r.Word {
	case episode.TurnOpened, episode.ResponseRecorded, episode.TurnEvaluated, episode.JudgementAsked:
		return false
	case episode.VerdictRecorded:
		return verdicts
	case episode.GuidanceIssued:
		_, directed := r.Value.Get("directive")
		return directed
	default:
		return true
	}
}

// Board yields the views of the progress of the episode that is played at an entry: the
// episode, its beats, its free choices and its turns. The error is that of
// [history.ProgressAt].
func Board(ctx context.Context, travel *replay.Replay, at eventlog.Seq, verdicts bool, yield func(view any) error) error {
	b, err := history.ProgressAt(ctx, travel, at)
	if err != nil {
		return err
	}
	if err := yield(ViewEpisode(b)); err != nil {
		return err
	}
	for i := range b.Beats {
		if err := yield(ViewBeat(b, i)); err != nil {
			return err
		}
	}
	for i := range b.Choices {
		if v, free := ViewFreeChoice(b, i); free {
			if err := yield(v); err != nil {
				return err
			}
		}
	}
	for turn, err := range history.Turns(ctx, travel, b.Began, at) {
		if err != nil {
			return err
		}
		v, _ := ViewTurn(&turn, verdicts)
		if err := yield(v); err != nil {
			return err
		}
	}
	return nil
}
