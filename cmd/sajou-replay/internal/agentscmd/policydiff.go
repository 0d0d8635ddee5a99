package agentscmd

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sajou-dev/sajou-go/agents/history"
	"github.com/sajou-dev/sajou-go/agents/query"
	"github.com/sajou-dev/sajou-go/authored"
	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/internal/answer"
	"github.com/sajou-dev/sajou-go/internal/termtext"
	"github.com/sajou-dev/sajou-go/signal"
)

// PolicyDiff returns the command "policy-diff".
func PolicyDiff(a *cli.App) *cobra.Command {
	var (
		ids     []string
		policy  string
		summary bool
	)
	cmd := &cobra.Command{
		Use:   "policy-diff [SESSION] [RANGE] --policy FILE [--agent ID]...",
		Short: "Compare the views of agents with those of another policy",
		Long: `Policy-diff replays a recorded world under another observation policy, for the
agents that --agent names or for all agents. The recorded actions stay the same;
only the views differ. For each entry it lists the paths that from then on are
in the view under the recorded policy only (<), under the other policy only (>),
or with another value (!). A line without a path means that one policy only
sends the agent the effect itself. The last line counts the differences.

The other policy holds from the first entry. A RANGE limits the entries that are
listed; differences that exist before the range are listed first, with an
asterisk. FILE has the policy as JSON, in the form in which an agent is
registered; - is stdin.

The exit code is 0 if nothing differs and 1 if something does.`,
		Example: `  echo '{"policy":"everything"}' | sajou-replay policy-diff conversation --policy -
  echo '{"policy":"everything"}' | sajou-replay policy-diff conversation 5..9 --policy - --agent A
  echo '{"policy":"everything"}' | sajou-replay policy-diff conversation --policy - --summary`,
		Args: cli.Between(0, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if policy == "" {
				return cli.Misuse("--policy FILE is missing; usage: %s", cmd.UseLine())
			}
			session, over, err := a.SplitRange(cmd, args)
			if err != nil {
				return err
			}
			trial := history.PolicyTrial{Agents: ids}
			if trial.Policy, err = readPolicy(cmd.Context(), a, policy); err != nil {
				return err
			}
			t, r, done, err := openQuestion(a, nonEmpty(session))
			if err != nil {
				return err
			}
			defer t.Close()
			defer done()
			if trial.From, trial.To, err = t.ResolveRange(cmd.Context(), over); err != nil {
				return err
			}
			o := a.Output()
			if trial.To == 0 {
				return showTally(o, query.PolicyTally{}, summary) // no agent has a view before the first entry
			}
			tally, err := r.TryPolicy(cmd.Context(), trial, func(d query.PolicyDifference) error {
				if summary {
					return nil
				}
				done()
				line, err := cli.Marshal(answer.ViewDifference(d))
				if err != nil {
					return err
				}
				return o.Item(differenceText(d), line)
			})
			done()
			if err != nil {
				return queryError(err)
			}
			if err := showTally(o, tally, summary); err != nil {
				return err
			}
			if !tally.Same() {
				return cli.AnswerNo
			}
			return nil
		},
	}
	cmd.Flags().StringArrayVar(&ids, "agent", nil, "compare the views of agent `ID`; repeatable; default all agents")
	cmd.Flags().StringVar(&policy, "policy", "", "`FILE` of the other policy; - is stdin")
	cmd.Flags().BoolVar(&summary, "summary", false, "write the counts alone")
	_ = cmd.MarkFlagFilename("policy", "json", "yaml", "yml")
	cmd.ValidArgsFunction = a.CompleteSession
	return cmd
}

func nonEmpty(s string) []string {
	if s == "" {
		return nil
	}
	return []string{s}
}

// readPolicy reads a policy from JSON or YAML.
func readPolicy(ctx context.Context, a *cli.App, name string) (signal.Value, error) {
	const most = 1 << 20
	name, text, err := a.ReadInput(ctx, name, most)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, cli.Misuse("--policy: %w", err)
	}
	t, refused := authored.Read(name, text)
	for _, d := range refused {
		return nil, cli.Misuse("--policy: %s:%d:%d: %s", d.File, d.Line, d.Column, d.Message)
	}
	return t.Value, nil
}

func differenceText(d query.PolicyDifference) string {
	const width = 120
	mark := map[query.DifferenceKind]string{query.OnlyBefore: "<", query.OnlyAfter: ">", query.Different: "!"}[d.What]
	value := string(answer.CanonicalJSON(d.Before))
	switch d.What {
	case query.OnlyAfter:
		value = string(answer.CanonicalJSON(d.After))
	case query.Different:
		value += " → " + string(answer.CanonicalJSON(d.After))
	case query.OnlyBefore:
	}
	path := d.Path
	if path == "" {
		path = causeText(d.Cause)
	}
	standing := " "
	if d.Standing {
		standing = "*"
	}
	return fmt.Sprintf("%6d%s %s  %s %s  %s  %s", d.Entry, standing, cli.ClockText(d.At), mark,
		termtext.Printable(d.Agent), termtext.Printable(path), termtext.Clip(termtext.Printable(value), width))
}

func showTally(o *cli.Output, n query.PolicyTally, alone bool) error {
	v := answer.ViewTally(n)
	text := fmt.Sprintf("%d only before, %d only after, %d different; %s, %d deltas before and %d after",
		n.OnlyBefore, n.OnlyAfter, n.Different, cli.Plural(int(n.Entries), "entry", "entries"), n.DeltasBefore, n.DeltasAfter)
	if alone {
		return o.One(text, v)
	}
	line, err := cli.Marshal(answer.SummaryView{Summary: v})
	if err == nil {
		err = o.Item(text, line)
	}
	if err != nil {
		return err
	}
	return o.End()
}
