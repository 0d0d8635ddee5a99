package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/signal"
)

func (a *app) beatsCommand() *cobra.Command {
	var (
		at                 string
		verdicts, timeline bool
	)
	cmd := &cobra.Command{
		Use:   "beats [SESSION]",
		Short: "Show how far an episode has come, beat by beat and turn by turn",
		Long: `Beats shows the episode that is played at a moment, by default at the end: each
beat with its status, the turn in which it landed and how sure that is, its target
and deadline, how many turns behind the target it landed, the turns whose guidance
named it, and its choice. Below that it tells turn by turn what was directed, what
landed, was chosen and set, each with its entry. --verdicts tells besides how that
was found, with the raw answers of judges.

A beat landed "verified" if it was found in what the character said, "assumed" if
nobody looked, and "forced" if its line was inserted. A session that plays one
episode after the other shows the one at that moment; --at leads to others.

--timeline lists instead the signals, effects and beats of the session in the one
order in which they happened.

The exit code is 4 when no episode is played at that moment.`,
		Example: `  sajou-replay beats
  sajou-replay beats friday --at turn:4 --verdicts
  sajou-replay beats --at beat:salary -o jsonl
  sajou-replay beats --timeline`,
		Args: between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if timeline && verdicts {
				return misuse("--timeline has the verdicts already")
			}
			if _, err := replay.ParseAddress(at); err != nil {
				return err
			}
			t, err := a.argTarget(args)
			if err != nil {
				return err
			}
			defer t.Close()
			m, err := t.resolve(cmd.Context(), at)
			if err != nil {
				return err
			}
			if timeline {
				return a.showTimeline(cmd.Context(), t, m.Seq)
			}
			return a.showBeats(cmd.Context(), t, m.Seq, verdicts)
		},
	}
	cmd.Flags().StringVar(&at, "at", "end", "the moment")
	cmd.Flags().BoolVar(&verdicts, "verdicts", false, "tell how each beat was found or not")
	cmd.Flags().BoolVar(&timeline, "timeline", false, "list signals, effects and beats in their order")
	cmd.ValidArgsFunction = a.completeSession
	return cmd
}

func (a *app) showTimeline(ctx context.Context, t *target, to eventlog.Seq) error {
	o := a.output()
	err := t.each(ctx, 1, to, func(e *eventlog.Entry) error {
		switch e.Kind {
		case eventlog.KindSignal, eventlog.KindEffect, eventlog.KindBeat:
			return o.entryItem(e)
		default:
			return nil
		}
	})
	if err != nil {
		return err
	}
	return o.end()
}

func (a *app) showBeats(ctx context.Context, t *target, at eventlog.Seq, verdicts bool) error {
	r := t.engine.Replay(t.name)
	b, err := r.Board(ctx, at)
	if errors.Is(err, sajou.ErrNoEpisode) {
		return fail(exitNotFound, "%w", err)
	}
	if err != nil {
		return err
	}
	o := a.output()
	if err := o.board(b); err != nil {
		return err
	}
	for turn, err := range r.Turns(ctx, b.Began, at) {
		if err != nil {
			return err
		}
		if err := o.turn(&turn, verdicts); err != nil {
			return err
		}
	}
	return o.end()
}

// The views of a board, for JSON.
type (
	episodeView struct {
		What   string   `json:"what"`
		ID     string   `json:"episode"`
		Digest string   `json:"digest"`
		Play   int      `json:"play"`
		Began  uint64   `json:"began"`
		Turn   int      `json:"turn"`
		Budget int      `json:"turn_budget,omitempty"`
		Failed bool     `json:"failed"`
		Flags  []string `json:"flags"`
	}
	boardBeatView struct {
		What      string      `json:"what"`
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
		Choice    *choiceView `json:"choice,omitempty"`
	}
	choiceView struct {
		What   string `json:"what,omitempty"`
		Point  string `json:"choice_point"`
		Status string `json:"status"`
		Option string `json:"choice,omitempty"`
		Label  string `json:"label,omitempty"`
		Turn   int    `json:"turn,omitempty"`
	}
	turnView struct {
		What   string          `json:"what"`
		Turn   int             `json:"turn"`
		Events []turnEventView `json:"events"`
		Left   int             `json:"left,omitempty"`
	}
	turnEventView struct {
		Seq   uint64          `json:"seq"`
		Word  string          `json:"word"`
		Value json.RawMessage `json:"value"`
	}
)

func viewChoice(c *sajou.BoardChoice) *choiceView {
	status := c.Status
	if status == "" {
		status = "closed"
	}
	return &choiceView{"", c.Point.ID, status, c.Option, c.Label, c.Turn}
}

// itemOf writes a line and the value that stands for it.
func (o *output) itemOf(text string, value any) error {
	data, err := marshal(value)
	if err != nil {
		return err
	}
	return o.item(text, data)
}

// board writes how far an episode has come.
func (o *output) board(b *sajou.Board) error {
	e := b.Episode
	flags := b.Flags
	if flags == nil {
		flags = []string{}
	}
	head := fmt.Sprintf("%s: %s, turn %d", e.ID, plural(len(e.Beats), "beat", "beats"), b.Turn)
	if e.Budget > 0 {
		head += fmt.Sprintf(" of %d", e.Budget)
	}
	head += fmt.Sprintf(", from entry %d", b.Began)
	if b.Play > 1 {
		head += fmt.Sprintf(", episode %d of the session", b.Play)
	}
	if b.Failed {
		head += ", failed"
	}
	if len(flags) > 0 {
		head += "\nflags: " + strings.Join(flags, ", ")
	}
	err := o.itemOf(printableLines(head), episodeView{
		"episode", e.ID, e.Digest().String(), b.Play, uint64(b.Began), b.Turn, e.Budget, b.Failed, flags,
	})
	if err != nil {
		return err
	}
	rows := boardRows(b)
	if o.format == "text" && len(b.Beats) > 0 {
		if _, err := o.WriteString("\n" + rows[0] + "\n"); err != nil {
			return err
		}
	}
	for i := range b.Beats {
		at := &b.Beats[i]
		view := boardBeatView{
			What: "beat", Beat: at.Beat.ID, Status: at.Status, Target: at.Beat.Target, Deadline: at.Beat.Deadline,
			Directed: at.Directed.Spans, Times: at.Directed.Count, Overdue: at.Overdue,
			Seq: uint64(at.Seq), Heard: at.Heard, Method: at.Method, Assurance: at.Assurance,
		}
		if view.Directed == nil {
			view.Directed = [][2]int{}
		}
		if late, ok := at.Late(); ok {
			view.Landed, view.Late = &at.Landed, &late
		}
		if c := at.Beat.Choice; c >= 0 {
			view.Choice = viewChoice(&b.Choices[c])
		}
		if err := o.itemOf(rows[i+1], view); err != nil {
			return err
		}
	}
	for i := range b.Choices {
		if c := &b.Choices[i]; c.Point.Beat < 0 {
			view := viewChoice(c)
			view.What = "choice"
			if err := o.itemOf("choice "+choiceText(c), view); err != nil {
				return err
			}
		}
	}
	return nil
}

// boardRows are the lines of a table: its head, and one a beat.
func boardRows(b *sajou.Board) []string {
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	row := func(cells ...string) {
		for i := range cells {
			cells[i] = clip(printable(cells[i]), 60)
			if cells[i] == "" {
				cells[i] = "-"
			}
		}
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	row("BEAT", "STATUS", "LANDED", "HOW", "TARGET", "LATE", "DIRECTED", "CHOICE")
	for i := range b.Beats {
		at := &b.Beats[i]
		landed, late, how, choice := "", "", "", ""
		if turns, ok := at.Late(); ok {
			landed, late, how = fmt.Sprintf("turn %d", at.Landed), fmt.Sprintf("%+d", turns), at.Assurance
			if at.Method != at.Assurance {
				how += ", " + at.Method
			}
		}
		directed := at.Directed.String()
		if at.Overdue > 0 {
			directed += fmt.Sprintf(" (%d overdue)", at.Overdue)
		}
		if c := at.Beat.Choice; c >= 0 {
			choice = choiceText(&b.Choices[c])
		}
		row(at.Beat.ID, at.Status, landed, how, fmt.Sprintf("%d-%d", at.Beat.Target, at.Beat.Deadline), late, directed, choice)
	}
	if w.Flush() != nil {
		return make([]string, len(b.Beats)+1) // a builder does not fail
	}
	lines := strings.Split(strings.TrimSuffix(table.String(), "\n"), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return lines
}

func choiceText(c *sajou.BoardChoice) string {
	text := printable(c.Point.ID)
	switch c.Status {
	case "":
		return text
	case "selected":
		return text + ": " + printable(c.Option) + ", " + quote(c.Label)
	default:
		return text + ": " + c.Status
	}
}

// quote is a text of others in a line of ours.
func quote(s string) string { return `"` + clip(printable(s), 60) + `"` }

// turn writes what the director recorded of a turn.
func (o *output) turn(t *sajou.PlayedTurn, verdicts bool) error {
	view := turnView{What: "turn", Turn: t.Number, Events: []turnEventView{}, Left: t.Left}
	var b strings.Builder
	fmt.Fprintf(&b, "\nturn %d", t.Number)
	for i := range t.Events {
		e := &t.Events[i]
		if !onBoard(e.Record, verdicts) {
			continue
		}
		word, detail := beatText(e.Record)
		fmt.Fprintf(&b, "\n%6d  %-18s  %s", e.Seq, word, clip(printable(detail), 160))
		view.Events = append(view.Events, turnEventView{uint64(e.Seq), e.Word, e.Value.AppendJSON(nil)})
	}
	if t.Left > 0 {
		fmt.Fprintf(&b, "\n        and %d more", t.Left)
	}
	return o.itemOf(b.String(), view)
}

// onBoard reports whether a board tells of an event.
func onBoard(r director.Record, verdicts bool) bool {
	switch r.Word {
	case director.TurnOpened, director.ResponseRecorded, director.TurnEvaluated, director.JudgementAsked:
		return false
	case director.VerdictRecorded:
		return verdicts
	case director.GuidanceIssued:
		_, directed := r.Value.Get("directive")
		return directed
	default:
		return true
	}
}

// beatText tells an event of the director's in a word and one line. What it
// cannot read it shows as it is.
func beatText(r director.Record) (word, detail string) {
	v := r.Value
	if said, ok := sajou.SaidBy(r); ok {
		return r.Word, fmt.Sprintf("turn %d, %s: %s", said.Turn, said.Role, quote(said.Text))
	}
	beat, turn := member(v, "beat"), integer(v, "turn")
	about := beat
	if o := member(v, "objective"); o != "" {
		about = "objective " + o
	}
	switch r.Word {
	case director.EpisodeStarted:
		// The episode itself may stand in it.
		name := member(v, "episode")
		if name == "" {
			e, _ := v.Get("episode")
			name = member(e, "id")
		}
		return r.Word, name
	case director.TurnOpened:
		detail = fmt.Sprintf("turn %d", turn)
		switch member(v, "input") {
		case "choice":
			detail += fmt.Sprintf(", the user chose %s of %s", member(v, "choice"), member(v, "choice_point"))
		case "text":
			detail += ", the user typed"
		}
		return r.Word, detail
	case director.GuidanceIssued:
		detail = fmt.Sprintf("turn %d: %s, %s", turn, member(v, "pacing"), member(v, "energy"))
		if d, ok := v.Get("directive"); ok {
			detail = fmt.Sprintf("turn %d: %s is %s", turn, member(d, "beat"), member(d, "urgency"))
		}
		return r.Word, detail
	case director.ResponseRecorded:
		return r.Word, fmt.Sprintf("turn %d, attempt %d: …%s", turn, integer(v, "attempt"), quote(member(v, "tail")))
	case director.AttemptDropped, director.TurnEvaluated:
		return r.Word, fmt.Sprintf("turn %d, attempt %d", turn, integer(v, "attempt"))
	case director.JudgementAsked:
		return r.Word, fmt.Sprintf("turn %d, attempt %d: %s, prompt %.16s", turn, integer(v, "attempt"), about, member(v, "prompt"))
	case director.VerdictRecorded:
		return r.Word, verdictText(v, about)
	case director.BeatLanded, director.BeatHeld:
		detail = beat + ", " + member(v, "assurance")
		if method := member(v, "method"); method != member(v, "assurance") {
			detail += " by " + method
		}
		if heard := integer(v, "heard_at_turn"); heard != turn {
			detail += fmt.Sprintf(", heard in turn %d", heard)
		}
		return r.Word, detail
	case director.BeatForced:
		return r.Word, beat + ": " + quote(member(v, "line"))
	case director.BeatMissed:
		return r.Word, fmt.Sprintf("%s, by %s; dependants %s", beat, member(v, "cause"), member(v, "dependants"))
	case director.DeadlineMissed:
		return r.Word, fmt.Sprintf("%s, due in turn %d", beat, integer(v, "deadline"))
	case director.ChoiceOffered, director.ChoiceDeclined:
		return r.Word, member(v, "choice_point")
	case director.ChoiceSelected:
		return r.Word, fmt.Sprintf("%s: %s, %s", member(v, "choice_point"), member(v, "choice"), quote(member(v, "label")))
	case director.FlagSet, director.FlagCleared:
		return r.Word, fmt.Sprintf("%s, by %s", member(v, "flag"), member(v, "cause"))
	case director.ObjectiveCompleted, director.ObjectiveFailed:
		return r.Word, fmt.Sprintf("%s, by %s", member(v, "objective"), member(v, "cause"))
	case director.EpisodeFailed:
		return r.Word, "by " + member(v, "cause")
	case director.PropRevealed:
		return r.Word, fmt.Sprintf("%s, by %s", member(v, "prop"), member(v, "cause"))
	case director.VisualTriggered:
		return r.Word, fmt.Sprintf("picture %d of %d", integer(v, "index"), integer(v, "of"))
	case director.SuggestionMade:
		return r.Word, fmt.Sprintf("%s, by %s", member(v, "episode"), member(v, "cause"))
	default:
		return r.Word, string(v.AppendJSON(nil))
	}
}

func verdictText(v signal.Value, about string) string {
	text := fmt.Sprintf("attempt %d, %s: %s, %s", integer(v, "attempt"), about, member(v, "verdict"), member(v, "method"))
	if model := member(v, "model"); model != "" {
		text += " by " + model
	}
	if raw := member(v, "raw"); raw != "" {
		text += ", " + quote(raw)
	}
	if matched := member(v, "matched"); matched != "" {
		text += ", " + quote(matched)
	}
	if failure := member(v, "failure"); failure != "" {
		text += ", failed: " + quote(failure)
	}
	for _, mark := range []struct{ name, says string }{{"again", "asked again"}, {"inactive", "too late"}} {
		m, _ := v.Get(mark.name)
		if is, _ := m.Bool(); is {
			text += ", " + mark.says
		}
	}
	return text
}
