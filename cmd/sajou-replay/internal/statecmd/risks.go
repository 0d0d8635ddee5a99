package statecmd

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/termtext"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/workspace/risk"
)

// Risks returns the command "risks".
func Risks(a *cli.App) *cobra.Command {
	var kind string
	var rules bool
	cmd := &cobra.Command{
		Use:   "risks [SESSION] [RANGE]",
		Short: "List the risky acts of agents",
		Long: `Risks lists the tool calls of a session that stated rules recognise as risky:
what is deleted, overwritten outside the project, pushed with force, deployed,
read or printed of secrets, and fetched into a shell. --rules lists the rules.

A line has the entry of the call, the session time, the mark (risk:KIND, with a ?
if it is not certain that the command is what the rule says, or that it ran), the
outcome, the agent, the rule and the command. The line below it has the undo, if
one is certain: a command that brings back the text of a file which the recording
has completely, or the commit before a forced push. REMOTE stands for the remote.

The exit code is 0 if there is a risk, and 1 if not.`,
		Example: `  sajou-replay risks
  sajou-replay risks --kind force-push -o jsonl
  sajou-replay risks --rules`,
		Args: cli.Between(0, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if rules {
				return showRules(a)
			}
			if kind != "" && !isCategory(kind) {
				return cli.Misuse("--kind %q: there is no such kind; --rules lists them", kind)
			}
			name, over, err := a.SplitRange(cmd, args)
			if err != nil {
				return err
			}
			t, err := a.OpenSession(name)
			if err != nil {
				return err
			}
			defer t.Close()
			from, to, err := t.ResolveRange(cmd.Context(), over)
			if err != nil {
				return err
			}
			d := risk.NewDetector()
			err = t.Each(cmd.Context(), 1, t.Travel.Head().Seq, func(e *eventlog.Entry) error {
				d.Apply(e)
				return nil
			})
			if err != nil {
				return err
			}
			return showRisks(a, d, from, to, kind)
		},
	}
	cmd.Flags().StringVar(&kind, "kind", "", "list risks of this `KIND` only")
	cmd.Flags().BoolVar(&rules, "rules", false, "list the rules")
	cmd.ValidArgsFunction = a.CompleteSession
	return cmd
}

func isCategory(kind string) bool {
	for _, r := range risk.Rules() {
		if r.Category == kind {
			return true
		}
	}
	return false
}

func showRules(a *cli.App) error {
	o := a.Output()
	for _, r := range risk.Rules() {
		view := struct {
			Kind string `json:"kind"`
			Rule string `json:"rule"`
			Text string `json:"text"`
		}{r.Category, r.Name, r.Text}
		if err := o.ItemOf(fmt.Sprintf("risk:%-25s  %-14s  %s", r.Category, r.Name, r.Text), view); err != nil {
			return err
		}
	}
	return o.End()
}

func showRisks(a *cli.App, d *risk.Detector, from, to eventlog.Seq, kind string) error {
	o := a.Output()
	for _, r := range d.Risks() {
		if r.Seq < from || r.Seq > to || kind != "" && r.Category != kind {
			continue
		}
		mark := r.Mark()
		if !r.Sure {
			mark += "?"
		}
		text := fmt.Sprintf("%6d  %s  %-14s  %-6s  %-10s  %-14s  %s", r.Seq, cli.ClockText(r.At), mark, r.Outcome,
			termtext.Clip(termtext.Printable(r.Agent), 10), r.Rule, termtext.Printable(r.Command))
		if r.Undo != "" {
			text += "\n        undo: " + termtext.Printable(r.Undo)
		}
		view := struct {
			Seq     uint64  `json:"seq"`
			At      float64 `json:"at"`
			Mark    string  `json:"mark"`
			Rule    string  `json:"rule"`
			Agent   string  `json:"agent"`
			Tool    string  `json:"tool"`
			Command string  `json:"command"`
			Sure    bool    `json:"sure"`
			Outcome string  `json:"outcome"`
			Undo    string  `json:"undo,omitempty"`
		}{uint64(r.Seq), projection.Millis(r.At), r.Mark(), r.Rule, r.Agent, r.Tool, r.Command, r.Sure, r.Outcome, r.Undo}
		if err := o.ItemOf(text, view); err != nil {
			return err
		}
	}
	if err := o.End(); err != nil {
		return err
	}
	if d.Dropped > 0 {
		fmt.Fprintf(a.Stderr, "sajou-replay: %d further risks are not listed\n", d.Dropped)
	}
	if o.Items == 0 {
		return cli.AnswerNo
	}
	return nil
}
