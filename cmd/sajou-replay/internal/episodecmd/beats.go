package episodecmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/director/history"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/termtext"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/signal"
)

// Beats returns the command "beats".
func Beats(a *cli.App) *cobra.Command {
	var (
		at                 string
		verdicts, timeline bool
	)
	cmd := &cobra.Command{
		Use:   "beats [SESSION]",
		Short: "Show how far an episode has come, beat by beat and turn by turn",
		Long: `Beats shows the progress of the episode that is played at a moment, by default
at the end: for each beat its status, the turn in which it landed and the
assurance, its target and deadline, the turns between target and landing, the
turns that directed it, and its choice. Below that it lists turn by turn the
directives, landings, choices and flags, each with its entry. --verdicts also
shows the verdicts, with the raw answers of judges.

The assurance is "verified" if the beat was found in the character's response,
"assumed" if it was not searched for, and "forced" if its line was inserted. In
a session of several episodes --at selects the one that is played at that
moment.

--timeline lists the signals, effects and beats of the session in their order
instead.

The exit code is 4 when no episode is played at that moment.`,
		Example: `  sajou-replay beats
  sajou-replay beats friday --at turn:4 --verdicts
  sajou-replay beats --at beat:name_range -o jsonl
  sajou-replay beats --timeline`,
		Args: cli.Between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if timeline && verdicts {
				return cli.Misuse("--timeline has the verdicts already")
			}
			if _, err := replay.ParseAddress(at); err != nil {
				return err
			}
			t, err := a.OpenArgSession(args)
			if err != nil {
				return err
			}
			defer t.Close()
			m, err := t.Resolve(cmd.Context(), at)
			if err != nil {
				return err
			}
			if timeline {
				return showTimeline(cmd.Context(), a, t, m.Seq)
			}
			return showBeats(cmd.Context(), a, t, m.Seq, verdicts)
		},
	}
	cmd.Flags().StringVar(&at, "at", "end", "the moment")
	cmd.Flags().BoolVar(&verdicts, "verdicts", false, "tell how each beat was found or not")
	cmd.Flags().BoolVar(&timeline, "timeline", false, "list signals, effects and beats in their order")
	cmd.ValidArgsFunction = a.CompleteSession
	return cmd
}

func showTimeline(ctx context.Context, a *cli.App, t *cli.OpenedSession, to eventlog.Seq) error {
	o := a.Output()
	err := t.Each(ctx, 1, to, func(e *eventlog.Entry) error {
		switch e.Kind {
		case eventlog.KindSignal, eventlog.KindEffect, eventlog.KindBeat:
			return o.EntryItem(e)
		default:
			return nil
		}
	})
	if err != nil {
		return err
	}
	return o.End()
}

func showBeats(ctx context.Context, a *cli.App, t *cli.OpenedSession, at eventlog.Seq, verdicts bool) error {
	b, err := history.ProgressAt(ctx, t.Travel, at)
	if errors.Is(err, history.ErrNoEpisode) {
		return cli.Fail(cli.ExitNotFound, "%w", err)
	}
	if err != nil {
		return err
	}
	o := a.Output()
	if err := writeProgress(o, b); err != nil {
		return err
	}
	for turn, err := range history.Turns(ctx, t.Travel, b.Began, at) {
		if err != nil {
			return err
		}
		if err := writeTurn(o, &turn, verdicts); err != nil {
			return err
		}
	}
	return o.End()
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

func viewChoice(c *history.ChoiceProgress) *choiceView {
	status := c.Status
	if status == "" {
		status = "closed"
	}
	return &choiceView{"", c.Point.ID, status, c.Option, c.Label, c.Turn}
}

// writeProgress writes how far an episode has come.
func writeProgress(o *cli.Output, b *history.Progress) error {
	e := b.Episode
	flags := b.Flags
	if flags == nil {
		flags = []string{}
	}
	head := fmt.Sprintf("%s: %s, turn %d", e.ID, cli.Plural(len(e.Beats), "beat", "beats"), b.Turn)
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
	err := o.ItemOf(termtext.PrintableLines(head), episodeView{
		"episode", e.ID, e.Digest().String(), b.Play, uint64(b.Began), b.Turn, e.Budget, b.Failed, flags,
	})
	if err != nil {
		return err
	}
	rows := boardRows(b)
	if o.Format == "text" && len(b.Beats) > 0 {
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
		if err := o.ItemOf(rows[i+1], view); err != nil {
			return err
		}
	}
	for i := range b.Choices {
		if c := &b.Choices[i]; c.Point.Beat < 0 {
			view := viewChoice(c)
			view.What = "choice"
			if err := o.ItemOf("choice "+choiceText(c), view); err != nil {
				return err
			}
		}
	}
	return nil
}

// boardRows are the lines of a table: its head, and one a beat.
func boardRows(b *history.Progress) []string {
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	row := func(cells ...string) {
		for i := range cells {
			cells[i] = termtext.Clip(termtext.Printable(cells[i]), 60)
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

func choiceText(c *history.ChoiceProgress) string {
	text := termtext.Printable(c.Point.ID)
	switch c.Status {
	case "":
		return text
	case "selected":
		return text + ": " + termtext.Printable(c.Option) + ", " + termtext.Quote(c.Label)
	default:
		return text + ": " + c.Status
	}
}

// writeTurn writes what the director recorded of a turn.
func writeTurn(o *cli.Output, t *history.PlayedTurn, verdicts bool) error {
	view := turnView{What: "turn", Turn: t.Number, Events: []turnEventView{}, Left: t.Left}
	var b strings.Builder
	fmt.Fprintf(&b, "\nturn %d", t.Number)
	for i := range t.Events {
		e := &t.Events[i]
		if !onBoard(e.Record, verdicts) {
			continue
		}
		word, detail := cli.BeatText(e.Record)
		fmt.Fprintf(&b, "\n%6d  %-18s  %s", e.Seq, word, termtext.Clip(termtext.Printable(detail), 160))
		view.Events = append(view.Events, turnEventView{uint64(e.Seq), e.Word, e.Value.AppendJSON(nil)})
	}
	if t.Left > 0 {
		fmt.Fprintf(&b, "\n        and %d more", t.Left)
	}
	return o.ItemOf(b.String(), view)
}

// onBoard reports whether beats lists an event.
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
