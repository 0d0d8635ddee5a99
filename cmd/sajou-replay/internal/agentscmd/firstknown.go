package agentscmd

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sajou-dev/sajou-go/agents/history"
	"github.com/sajou-dev/sajou-go/agents/jsondoc"
	"github.com/sajou-dev/sajou-go/agents/query"
	"github.com/sajou-dev/sajou-go/agents/view"
	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/internal/answer"
	"github.com/sajou-dev/sajou-go/internal/termtext"
	"github.com/sajou-dev/sajou-go/signal"
)

// FirstKnown returns the command "first-known".
func FirstKnown(a *cli.App) *cobra.Command {
	var (
		is, text string
		all      bool
	)
	cmd := &cobra.Command{
		Use:   "first-known AGENT (PATH | --value TEXT) [SESSION]",
		Short: "Find when an agent first knew something",
		Long: `First-known finds the delta that first put a PATH into the view of an agent. It
shows the entry of the delta, the time of its delivery, and the effect that
caused it. --is finds the first delta by which the path had a given JSON value.
--all lists every change of the path, removals included.

If the path never was in the view, or with --value TEXT, first-known searches
everything that the agent was sent, as leak does, and shows the first entry that
carried it and by which route.

` + viewPathHelp + `

A delta that was not yet delivered when the log ended is listed and does not
count as known.

The exit code is 0 if it was found, 1 if the agent never knew it, 3 if that is
not proven because the search does not cover everything that the agent was sent
or the session was recorded under other rules, and 4 if the session never had it.`,
		Example: `  sajou-replay first-known A B conversation
  sajou-replay first-known A /visible_entities/B/last_message conversation
  sajou-replay first-known A /visible_entities/B/message_count conversation --is 1
  sajou-replay first-known C --value Wait conversation -o jsonl`,
		Args: cli.Between(1, 3),
		RunE: func(cmd *cobra.Command, args []string) error {
			q, rest, err := textOrPath(cmd, text, args[1:])
			if err != nil {
				return err
			}
			if q.Text != "" && (cmd.Flags().Changed("is") || all) {
				return cli.Misuse("--is and --all need a PATH; omit them with --value")
			}
			var value signal.Value
			if cmd.Flags().Changed("is") {
				if value, err = signal.ParseValue([]byte(is)); err != nil {
					return cli.Misuse("--is %s: want a JSON value, such as 3, true or '\"text\"': %w", is, err)
				}
			}
			t, r, done, err := openQuestion(a, rest)
			if err != nil {
				return err
			}
			defer t.Close()
			defer done()
			if q.Text != "" {
				return showSent(cmd.Context(), a, r, args[0], q, nil, done)
			}
			path := q.Path
			if q.Entity != "" {
				path = view.EntityPath(q.Entity)
			}
			return runFirstKnown(cmd.Context(), a, r, changeQuery{args[0], args[1], q, path, value, all}, done)
		},
	}
	cmd.Flags().StringVar(&is, "is", "", "find when it first had this JSON `VALUE`")
	cmd.Flags().StringVar(&text, "value", "", "search everything that the agent was sent for this `TEXT`")
	cmd.Flags().BoolVar(&all, "all", false, "list every change")
	return cmd
}

// changeQuery holds the arguments of first-known.
type changeQuery struct {
	agent   string
	written string // the path as it was given
	query   query.LeakQuery
	path    jsondoc.Pointer
	is      signal.Value
	all     bool
}

func runFirstKnown(ctx context.Context, a *cli.App, r *history.History, q changeQuery, done func()) error {
	o := a.Output()
	found, shown := false, false
	for s, err := range r.ValueChanges(ctx, q.agent, q.path, q.is) {
		rules, err := otherRules(err)
		if err != nil {
			return err
		}
		if rules != nil {
			break // this error comes last
		}
		if s.Value == nil && !q.all {
			continue
		}
		done()
		found, shown = found || !s.Coming, true
		view := answer.ViewChange(q.agent, q.path, s)
		if !q.all {
			if err := o.One(changeText(s)+deltaText(indentDelta, s.Delivery.Delta), view); err != nil {
				return err
			}
			break
		}
		line, err := cli.Marshal(view)
		if err == nil {
			err = o.Item(strings.TrimSuffix(changeText(s), "\n"), line)
		}
		if err != nil {
			return err
		}
	}
	done()
	if !found && !shown && q.is == nil && !q.all {
		remarkPath(a, q.written)
		return showSent(ctx, a, r, q.agent, q.query, nil, done) // by another route than its view
	}
	var err error
	switch {
	case q.all:
		err = o.End()
	case !shown:
		text := fmt.Sprintf("%s never knew %v to be %s", q.agent, q.path, answer.CanonicalJSON(q.is))
		err = o.One(termtext.Printable(text), answer.ChangeView{Agent: q.agent, Path: q.path.String()})
	}
	if err != nil {
		return err
	}
	if found {
		rules, err := otherRules(r.CheckRules(ctx))
		return unproven(rules, err)
	}
	_, _, proof, err := r.FirstSent(ctx, q.agent, q.query, nil)
	if err != nil {
		return queryError(err)
	}
	if outcome := proof.Err(); errors.Is(outcome, history.ErrNoThing) {
		return queryError(outcome)
	}
	return unproven(proof.Rules, answered(false, 0, cli.ExitNo, &proof))
}

func changeText(s history.ValueChange) string {
	const width = 100
	text := "lost"
	if s.Value != nil {
		text = termtext.Clip(termtext.Printable(string(answer.CanonicalJSON(s.Value))), width)
	}
	if s.Coming {
		text = "not delivered when the log ended: " + text
	}
	return fmt.Sprintf("%s  %s\n      %s\n", cli.ClockText(s.Delivery.At), text, termtext.Printable(newsText(s.TracedDelivery)))
}
