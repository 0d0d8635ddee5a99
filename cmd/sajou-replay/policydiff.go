package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/internal/jsonplace"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/signal"
)

func (a *app) policyDiffCommand() *cobra.Command {
	var (
		ids     []string
		policy  string
		summary bool
	)
	cmd := &cobra.Command{
		Use:   "policy-diff [SESSION] [RANGE] --policy FILE [--agent ID]...",
		Short: "Compare what agents saw with what another policy would have shown them",
		Long: `Policy-diff replays a recorded world under another observation policy: for the
agents that --agent names, or for all. What was done stands as it is recorded;
only what is seen of it differs. It lists, entry by entry, what an agent sees
from then on under the recorded policy only (<), under the other only (>), or
with another value (!), and counts that at the end. Where a path is missing the
agent is told of the effect itself under one policy only.

The policy is in force from the beginning, also where a RANGE says which entries
are listed; what differs before it comes first, marked with an asterisk. The file
holds the policy as JSON, as an agent is registered with; - is stdin.

The exit code is 0 when nothing differs and 1 when something does.`,
		Example: `  sajou-replay policy-diff --policy fog.json --agent scout
  sajou-replay policy-diff release-42 800..900 --policy blind.json --summary
  echo '{"policy":"everything"}' | sajou-replay policy-diff --policy - -o jsonl`,
		Args: between(0, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if policy == "" {
				return misuse("which policy? --policy FILE; usage: %s", cmd.UseLine())
			}
			session, rest, err := a.splitArgs(args)
			if err != nil {
				return err
			}
			if len(rest) > 1 {
				return misuse("%q is no range; usage: %s", rest[1], cmd.UseLine())
			}
			trial := sajou.PolicyTrial{Agents: ids}
			if trial.Policy, err = a.readPolicy(cmd.Context(), policy); err != nil {
				return err
			}
			t, r, done, err := a.question(nonEmpty(session))
			if err != nil {
				return err
			}
			defer t.Close()
			defer done()
			if trial.From, trial.To, err = t.resolveRange(cmd.Context(), strings.Join(rest, "")); err != nil {
				return err
			}
			o := a.output()
			if trial.To == 0 {
				return a.showTally(o, agents.PolicyTally{}, summary) // before the first entry nobody sees anything
			}
			tally, err := r.TryPolicy(cmd.Context(), trial, func(d agents.PolicyDifference) error {
				if summary {
					return nil
				}
				done()
				line, err := marshal(viewDifference(d))
				if err != nil {
					return err
				}
				return o.item(differenceText(d), line)
			})
			done()
			if err != nil {
				return asked(err)
			}
			if err := a.showTally(o, tally, summary); err != nil {
				return err
			}
			if !tally.Same() {
				return answerNo
			}
			return nil
		},
	}
	cmd.Flags().StringArrayVar(&ids, "agent", nil, "an agent; more than one may be given, and none means all")
	cmd.Flags().StringVar(&policy, "policy", "", "file with the other policy")
	cmd.Flags().BoolVar(&summary, "summary", false, "count, and list nothing")
	_ = cmd.MarkFlagFilename("policy", "json")
	cmd.ValidArgsFunction = a.completeSession
	return cmd
}

func nonEmpty(s string) []string {
	if s == "" {
		return nil
	}
	return []string{s}
}

// readPolicy reads a policy's JSON.
func (a *app) readPolicy(ctx context.Context, name string) (signal.Value, error) {
	const most = 1 << 20
	name, text, err := a.input(ctx, name, most)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, misuse("--policy: %w", err)
	}
	v, err := signal.ParseValue(text)
	if syntax, ok := errors.AsType[*signal.SyntaxError](err); ok {
		line, column := jsonplace.LineColumn(text, syntax.Offset)
		return nil, misuse("--policy: %s:%d:%d: %s", name, line, column, syntax.Reason)
	}
	if err != nil {
		return nil, misuse("--policy %s: %w", name, err)
	}
	return v, nil
}

// differenceView is something that is seen otherwise, for JSON.
type differenceView struct {
	Seq      uint64          `json:"seq"`
	At       float64         `json:"at"`
	Agent    string          `json:"agent"`
	What     string          `json:"what"`
	Path     string          `json:"path"`
	Before   json.RawMessage `json:"before,omitempty"`
	After    json.RawMessage `json:"after,omitempty"`
	Standing bool            `json:"standing,omitempty"`
	Cause    causeView       `json:"cause"`
}

func viewDifference(d agents.PolicyDifference) differenceView {
	return differenceView{
		d.Entry, projection.Millis(d.At), d.Agent, string(d.What), d.Path,
		canonicalJSON(d.Before), canonicalJSON(d.After), d.Standing, viewCause(d.Cause),
	}
}

func differenceText(d agents.PolicyDifference) string {
	const width = 120
	mark := map[agents.DifferenceKind]string{agents.OnlyBefore: "<", agents.OnlyAfter: ">", agents.Different: "!"}[d.What]
	value := string(canonicalJSON(d.Before))
	switch d.What {
	case agents.OnlyAfter:
		value = string(canonicalJSON(d.After))
	case agents.Different:
		value += " → " + string(canonicalJSON(d.After))
	case agents.OnlyBefore:
	}
	path := d.Path
	if path == "" {
		path = causeText(d.Cause)
	}
	standing := " "
	if d.Standing {
		standing = "*"
	}
	return fmt.Sprintf("%6d%s %s  %s %s  %s  %s", d.Entry, standing, clockText(d.At), mark,
		printable(d.Agent), printable(path), clip(printable(value), width))
}

// tallyView counts differences, for JSON.
type tallyView struct {
	Same         bool   `json:"same"`
	Entries      uint64 `json:"entries"`
	DeltasBefore uint64 `json:"deltas_before"`
	DeltasAfter  uint64 `json:"deltas_after"`
	OnlyBefore   uint64 `json:"only_before"`
	OnlyAfter    uint64 `json:"only_after"`
	Different    uint64 `json:"different"`
}

func (a *app) showTally(o *output, n agents.PolicyTally, alone bool) error {
	v := tallyView{n.Same(), n.Entries, n.DeltasBefore, n.DeltasAfter, n.OnlyBefore, n.OnlyAfter, n.Different}
	text := fmt.Sprintf("%d only before, %d only after, %d different; %s, %d deltas before and %d after",
		n.OnlyBefore, n.OnlyAfter, n.Different, plural(int(n.Entries), "entry", "entries"), n.DeltasBefore, n.DeltasAfter)
	if alone {
		return o.one(text, v)
	}
	line, err := marshal(struct {
		Summary tallyView `json:"summary"`
	}{v})
	if err == nil {
		err = o.item(text, line)
	}
	if err != nil {
		return err
	}
	return o.end()
}
