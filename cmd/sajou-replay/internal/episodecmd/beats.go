package episodecmd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/director/history"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/answer"
	"github.com/sajou-dev/sajou-go/internal/termtext"
	"github.com/sajou-dev/sajou-go/replay"
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

// writeProgress writes how far an episode has come.
func writeProgress(o *cli.Output, b *history.Progress) error {
	e := b.Episode
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
	if len(b.Flags) > 0 {
		head += "\nflags: " + strings.Join(b.Flags, ", ")
	}
	err := o.ItemOf(termtext.PrintableLines(head), answer.ViewEpisode(b))
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
		if err := o.ItemOf(rows[i+1], answer.ViewBeat(b, i)); err != nil {
			return err
		}
	}
	for i := range b.Choices {
		if view, free := answer.ViewFreeChoice(b, i); free {
			if err := o.ItemOf("choice "+choiceText(&b.Choices[i]), view); err != nil {
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
	view, shown := answer.ViewTurn(t, verdicts)
	var b strings.Builder
	fmt.Fprintf(&b, "\nturn %d", t.Number)
	for i, r := range shown {
		word, detail := cli.BeatText(*r)
		fmt.Fprintf(&b, "\n%6d  %-18s  %s", view.Events[i].Seq, word, termtext.Clip(termtext.Printable(detail), 160))
	}
	if t.Left > 0 {
		fmt.Fprintf(&b, "\n        and %d more", t.Left)
	}
	return o.ItemOf(b.String(), view)
}
