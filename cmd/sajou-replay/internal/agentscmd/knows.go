package agentscmd

import (
	"context"
	"encoding/json"
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
	"github.com/sajou-dev/sajou-go/replay"
)

// Knows returns the command "knows".
func Knows(a *cli.App) *cobra.Command {
	var (
		at, path, text string
		pending        bool
	)
	cmd := &cobra.Command{
		Use:   "knows AGENT [SESSION]",
		Short: "Show the view of an agent at a moment",
		Long: `Knows shows the view that had been delivered to an agent by a moment, by default
the end of the session. A delta that was made but not yet delivered is not part
of the view; --pending lists such deltas.

--path shows one part of the view. If the view does not have that part, or with
--value TEXT, knows searches everything that the agent was sent by the moment,
as leak does, and shows the first entry that carried it and by which route.

` + viewPathHelp + `

For an agent that has left, knows shows the last view that it was sent.

The exit code is 0 if the agent knew it, 1 if the agent was not registered yet or
was never sent it, 3 if that is not proven because the search does not cover
everything that the agent was sent or the session was recorded under other
rules, and 4 if the session never had the agent or the path.`,
		Example: `  sajou-replay knows A conversation
  sajou-replay knows C conversation --at 9+20ms --pending
  sajou-replay knows A conversation --at t:1s --path /visible_entities/B/last_message
  sajou-replay knows A conversation --value 'light is out'`,
		Args: cli.Between(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			var pointer jsondoc.Pointer
			var err error
			if cmd.Flags().Changed("value") && (cmd.Flags().Changed("path") || pending || text == "") {
				return cli.Misuse("--value excludes --path and --pending, and must not be empty")
			}
			if cmd.Flags().Changed("path") {
				if pointer, err = view.ParseViewPath(path); err != nil {
					return queryError(err)
				}
			}
			if _, err := cli.ParseAddress(at); err != nil {
				return err
			}
			t, r, done, err := openQuestion(a, args[1:])
			if err != nil {
				return err
			}
			defer t.Close()
			defer done()
			m, err := t.Resolve(cmd.Context(), at)
			if err != nil {
				return err
			}
			if text != "" {
				return showSent(cmd.Context(), a, r, args[0], query.LeakQuery{Text: text}, &m, done)
			}
			k, err := r.ViewAt(cmd.Context(), args[0], m)
			done()
			rules, err := otherRules(err)
			if err != nil {
				return err
			}
			if pointer == nil {
				return unproven(rules, showKnowledge(a, k, m, pending))
			}
			if _, ok := pointer.In(k.View.Value()); ok && k.Presence != query.Absent {
				return unproven(rules, showKnown(a, k, m, pointer, pending))
			}
			remarkPath(a, path)
			q, err := answer.PathQuery(path)
			if err != nil {
				return queryError(err)
			}
			// The view does not have it: search everything else that the agent was sent.
			first, found, proof, err := r.FirstSent(cmd.Context(), args[0], q, &m)
			done()
			if err != nil {
				return queryError(err)
			}
			if outcome := proof.Err(); errors.Is(outcome, history.ErrNoThing) {
				return queryError(outcome)
			}
			if found && first.Route == query.RouteView && k.Presence == query.Registered {
				found, proof.Unsearched = false, nil // the view had it and lost it
			}
			return showUnseen(a, k, m, pointer, pending, first, found, &proof)
		},
	}
	cmd.Flags().StringVar(&at, "at", "end", "moment `ADDR`")
	cmd.Flags().StringVar(&path, "path", "", "show the part of the view at `PATH`")
	cmd.Flags().StringVar(&text, "value", "", "search everything that the agent was sent for this `TEXT`")
	cmd.Flags().BoolVar(&pending, "pending", false, "also list the deltas that were not delivered yet")
	return cmd
}

func showKnowledge(a *cli.App, k history.Knowledge, m replay.Moment, pending bool) error {
	v := answer.ViewKnowledge(k, m, pending)
	v.Entities, v.Relations = answer.CanonicalJSON(k.View.VisibleEntities), answer.CanonicalJSON(k.View.VisibleRelationships)
	var b strings.Builder
	fmt.Fprintf(&b, "%s at %v, %s: view_seq %d, digest %s\n", termtext.Printable(k.Agent), m, cli.ClockText(k.At), v.ViewSeq, v.Digest)
	switch k.Presence {
	case query.Absent:
		fmt.Fprintf(&b, "the agent is not registered yet\n")
	case query.Departed:
		fmt.Fprintf(&b, "the agent left by entry %d; this is the last view it was sent\n", k.Left)
	case query.Registered:
	}
	if k.Presence != query.Absent {
		view, err := cli.Marshal(struct {
			Entities  json.RawMessage `json:"visible_entities"`
			Relations json.RawMessage `json:"visible_relationships"`
		}{v.Entities, v.Relations})
		if err != nil {
			return err
		}
		b.WriteString(termtext.PrintableLines(string(cli.Indented(view))) + "\n")
	}
	if pending {
		b.WriteString(pendingText(k.Pending))
	}
	if err := a.Output().One(b.String(), v); err != nil {
		return err
	}
	if k.Presence == query.Absent {
		return cli.AnswerNo
	}
	return nil
}

func pendingText(pending []query.TracedDelivery) string {
	if len(pending) == 0 {
		return "every delta was delivered\n"
	}
	var b strings.Builder
	b.WriteString("not delivered yet:\n")
	for _, n := range pending {
		b.WriteString("  " + termtext.Printable(newsText(n)) + "\n" + deltaText(indentDelta, n.Delivery.Delta))
	}
	return b.String()
}

// showKnown shows one part of an agent's view.
func showKnown(a *cli.App, k history.Knowledge, m replay.Moment, path jsondoc.Pointer, pending bool) error {
	v := answer.ViewKnowledge(k, m, pending)
	at, known := path.String(), true
	value, _ := path.In(k.View.Value())
	v.Path, v.Known, v.Value = &at, &known, answer.CanonicalJSON(value)
	text := valueText(value)
	if pending {
		text += "\n" + pendingText(k.Pending)
	}
	return a.Output().One(text, v)
}

// showUnseen shows the result of the search for a part that the view of an agent
// does not have.
func showUnseen(a *cli.App, k history.Knowledge, m replay.Moment, path jsondoc.Pointer, pending bool, first query.Leak, found bool, p *history.LeakProof) error {
	v := answer.ViewKnowledge(k, m, pending)
	at := path.String()
	v.Path, v.Known, v.Uncovered = &at, &found, answer.ViewGaps(p)
	text := fmt.Sprintf("%s does not know %s\n", termtext.Printable(k.Agent), termtext.Printable(at))
	if found {
		leak := answer.ViewLeak(first)
		v.Sent = &leak
		text = fmt.Sprintf("%s has no %s in its view, but was sent it\nfirst  %s\n", termtext.Printable(k.Agent), termtext.Printable(at), termtext.Printable(leakText(first)))
	}
	text += gapsText(p)
	if pending {
		text += pendingText(k.Pending)
	}
	if err := a.Output().One(text, v); err != nil {
		return err
	}
	return answered(found, 0, cli.ExitNo, p)
}

// showSent shows where an agent was first sent something, by any route.
func showSent(ctx context.Context, a *cli.App, r *history.History, agent string, q query.LeakQuery, until *replay.Moment, done func()) error {
	first, found, proof, err := r.FirstSent(ctx, agent, q, until)
	done()
	if err != nil {
		return queryError(err)
	}
	if outcome := proof.Err(); errors.Is(outcome, history.ErrNoThing) {
		return queryError(outcome)
	}
	v := answer.ViewSent(agent, q, first, found, &proof)
	sought := soughtText(q)
	if q.Entity != "" {
		sought = view.EntityPath(q.Entity).String()
	}
	text := fmt.Sprintf("%s was never sent %s\n", agent, sought)
	if found {
		text = fmt.Sprintf("%s was first sent %s\n%s  %s\n", agent, sought, cli.ClockText(first.Delivery.At), leakText(first))
	}
	if err := a.Output().One(termtext.PrintableLines(text)+gapsText(&proof), v); err != nil {
		return err
	}
	return answered(found, 0, cli.ExitNo, &proof)
}
