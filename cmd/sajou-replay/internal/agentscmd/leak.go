package agentscmd

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sajou-dev/sajou-go/agents/history"
	"github.com/sajou-dev/sajou-go/agents/query"
	"github.com/sajou-dev/sajou-go/agents/view"
	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/internal/answer"
	"github.com/sajou-dev/sajou-go/internal/termtext"
)

// Leak returns the command "leak".
func Leak(a *cli.App) *cobra.Command {
	var (
		text string
		all  bool
	)
	cmd := &cobra.Command{
		Use:   "leak AGENT (PATH | --value TEXT) [SESSION]",
		Short: "Prove that an agent was never sent something",
		Long: `Leak searches everything that the engine sent to an agent, as far as the log has
it: every delta and full view that was made for the agent, delivered or not; its
refusals with all reasons and details; its accepted requests; the reasons for
which its generations were cancelled; the prompts of its generations; the
messages of chat rooms; the results of the steps of an environment.

With a PATH, leak searches for that path and everything below it. An entity is
also found by its id, as a word in any name or text. In texts outside of a view
a path is found by all of its names together.

With --value, leak searches for a text, such as a secret: in every name and
text, in JSON quoted by a text, and in numbers, true, false and null. Case
matters.

` + viewPathHelp + `

The result lists the number of deltas, refusals and so on that were searched,
and the head of the log; verify proves that the log is intact. A refusal that
another attempt might not get leaves no record; the engine builds it only from
data that the agent may see. The result also names data that was sent and cannot
be searched, such as prompts of which only the digest is recorded.

The exit code is 0 if nothing was found and everything was searched, 1 if
something was found, 3 if nothing was found and not everything could be searched
or the session was recorded under other rules, and 4 if neither the world nor the
view of any agent ever had it.`,
		Example: `  sajou-replay leak A B conversation
  sajou-replay leak A /visible_entities/C/private_message conversation
  sajou-replay leak A --value 'light is out' conversation
  sajou-replay leak C --value Wait conversation --all`,
		Args: cli.Between(1, 3),
		RunE: func(cmd *cobra.Command, args []string) error {
			q, rest, err := textOrPath(cmd, text, args[1:])
			if err != nil {
				return err
			}
			t, r, done, err := openQuestion(a, rest)
			if err != nil {
				return err
			}
			defer t.Close()
			defer done()
			return runLeak(cmd.Context(), a, r, args[0], q, all, done)
		},
	}
	cmd.Flags().StringVar(&text, "value", "", "search for this `TEXT`")
	cmd.Flags().BoolVar(&all, "all", false, "list every place, not the first alone")
	return cmd
}

// lookedText counts the records that were searched.
func lookedText(p *history.LeakProof) string {
	n := &p.Stats
	text := fmt.Sprintf("searched %s with %s, %d of them full views", cli.Plural(int(n.Deltas), "delta", "deltas"),
		cli.Plural(int(n.Operations), "operation", "operations"), n.Whole)
	for _, c := range []struct {
		count     uint64
		one, many string
		always    bool
	}{
		{n.Refusals, "refusal", "refusals", true},
		{n.Outcomes, "accepted request", "accepted requests", true},
		{n.Cancellations, "cancellation", "cancellations", true},
		{n.Prompts, "prompt", "prompts", true},
		{n.Messages, "message", "messages", false},
		{n.Judgements, "step of an environment", "steps of an environment", false},
		{n.Guidance, "entry of a director", "entries of a director", false},
	} {
		if c.always || c.count > 0 {
			text += ", " + cli.Plural(int(c.count), c.one, c.many)
		}
	}
	return text + fmt.Sprintf(", in the entries %d..%d; head %v\n", p.From, p.Head.Seq, p.Head)
}

func runLeak(ctx context.Context, a *cli.App, r *history.History, agent string, q query.LeakQuery, all bool, done func()) error {
	o := a.Output()
	sought := soughtText(q)
	var first *query.Leak
	proof, err := r.Leak(ctx, agent, q, func(l query.Leak) error {
		done()
		if first == nil {
			kept := l
			first = &kept
		}
		if !all {
			return nil
		}
		line, err := cli.Marshal(answer.ViewLeak(l))
		if err != nil {
			return err
		}
		return o.Item(termtext.Printable(leakText(l)), line)
	})
	done()
	if err != nil {
		return queryError(err)
	}
	outcome := proof.Err()
	if first == nil {
		remarkPath(a, q.Entity)
	}
	if errors.Is(outcome, history.ErrNoThing) {
		return queryError(outcome)
	}
	shown := first
	if all {
		shown = nil // it was listed
	}
	v := answer.ViewProof(agent, q, shown, &proof)
	text := fmt.Sprintf("%s was never sent %s\n", agent, sought)
	switch {
	case first != nil:
		text = fmt.Sprintf("%s was sent %s: %s\n", agent, sought, cli.Plural(int(proof.Leaks), "place", "places"))
		if !all {
			text += "first  " + leakText(*first) + "\n"
		}
	case outcome != nil:
		text = fmt.Sprintf("not proven that %s was never sent %s: nothing was found, but not everything could be searched\n", agent, sought)
	}
	text = termtext.PrintableLines(text)
	if first != nil && !all && first.Operation >= 0 {
		text += deltaText(indentDelta, view.Delta{Patches: first.Delivery.Delta.Patches[first.Operation : first.Operation+1]})
	}
	text += gapsText(&proof) + lookedText(&proof)
	if all {
		line, err := cli.Marshal(v)
		if err == nil {
			err = o.Item(text[:len(text)-1], line)
		}
		if err == nil {
			err = o.End()
		}
		if err != nil {
			return err
		}
	} else if err := o.One(text, v); err != nil {
		return err
	}
	return answered(v.Leaked, cli.ExitNo, 0, &proof)
}

func leakText(l query.Leak) string {
	return fmt.Sprintf("%s %s (%s)  %s", l.Route, l.Place, l.How, newsText(l.TracedDelivery))
}
