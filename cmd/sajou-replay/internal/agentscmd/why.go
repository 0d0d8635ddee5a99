package agentscmd

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/history"
	"github.com/sajou-dev/sajou-go/agents/query"
	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/internal/answer"
	"github.com/sajou-dev/sajou-go/internal/termtext"
	"github.com/sajou-dev/sajou-go/session"
)

// WhyCancelled returns the command "why-cancelled".
func WhyCancelled(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "why-cancelled AGENT REQ_ID [SESSION]",
		Short: "Explain why a generation was cancelled",
		Long: `Why-cancelled shows each generation that an agent began for a request: the view
that it was based on, the deltas that the agent was sent afterwards, and how it
ended. For a stale generation it shows which delta made it stale, the conflicting
part of that delta, and whether the debounce delayed the cancellation.

The exit code is 0 if a generation was cancelled, 1 if none was, 3 if the session
was recorded under other rules, and 4 if the request had no generation.`,
		Example: `  sajou-replay why-cancelled A story conversation
  sajou-replay why-cancelled A story conversation -o json`,
		Args: cli.Between(2, 3),
		RunE: func(cmd *cobra.Command, args []string) error {
			_, t, report, rules, err := lookUpRequest(a, cmd, args)
			if err != nil {
				return err
			}
			defer t.Close()
			if len(report.Generations) == 0 {
				return cli.Fail(cli.ExitNotFound, "%s began no generation for %s; see the answer to the request with: sajou-replay why-rejected %s %s -s %s",
					args[0], args[1], cli.ShellWord(args[0]), cli.ShellWord(args[1]), cli.ShellWord(t.Name))
			}
			text, cancelled := "", false
			if report.Dropped > 0 {
				text = fmt.Sprintf("%d generations before these\n", report.Dropped)
			}
			for i := range report.Generations {
				g := &report.Generations[i]
				text += generationText(g)
				cancelled = cancelled || g.End.Cancelled()
			}
			if err := a.Output().One(text, answer.ViewRequest(&report)); err != nil {
				return err
			}
			if !cancelled {
				return unproven(rules, cli.AnswerNo)
			}
			return unproven(rules, nil)
		},
	}
}

// lookUpRequest looks up the fate of a request. The caller closes the session.
func lookUpRequest(a *cli.App, cmd *cobra.Command, args []string) (*history.History, *cli.OpenedSession, query.RequestReport, *session.RulesError, error) {
	t, r, done, err := openQuestion(a, args[2:])
	if err != nil {
		return nil, nil, query.RequestReport{}, nil, err
	}
	report, err := r.Request(cmd.Context(), args[0], args[1])
	done()
	rules, err := otherRules(err)
	if err != nil {
		_ = t.Close() // reading: the first error counts
		return nil, nil, report, nil, err
	}
	return r, t, report, rules, nil
}

func generationText(g *query.GenerationReport) string {
	var b strings.Builder
	line := func(format string, args ...any) {
		b.WriteString(termtext.Printable(fmt.Sprintf(format, args...)) + "\n")
	}
	end := map[query.GenerationEnd]string{
		query.EndNone: "running", query.EndStale: "cancelled as stale", query.EndCancelled: "cancelled by its caller",
		query.EndReplaced: "cancelled, replaced by another generation", query.EndDeadline: "cancelled at its deadline",
		query.EndLeft: "cancelled because the agent left", query.EndAccepted: "not cancelled: its request was accepted",
		query.EndRefused: "not cancelled: its request was refused",
	}[g.End]
	if g.End != query.EndNone {
		end += fmt.Sprintf(", at %s (entry %d)", cli.ClockText(g.EndAt), g.EndEntry)
	}
	line("generation of entry %d: %s", g.Entry, end)
	if g.Reason != "" {
		line("  reason    %s", g.Reason)
	}
	line("  began     %s, based on view_seq %d, digest %s", cli.ClockText(g.Token.Issued), g.Token.ContextSeq, g.Token.ContextDigest)
	for _, path := range g.Token.Reads {
		line("  reads     %s", path)
	}
	if len(g.Token.Classes) > 0 {
		line("  classes   %s", strings.Join(g.Token.Classes, ", "))
	}
	if g.Token.Deadline > 0 {
		line("  deadline  %s", cli.ClockText(g.Token.Deadline))
	}
	line("  rules     interrupt %s, threshold %d, debounce %v", g.Settings.Interrupt, g.Settings.Staleness, g.Settings.Debounce)
	if g.PutOff {
		line("  delayed   stale since %s, but %s was interrupted at %s", cli.ClockText(g.StaleAt), strings.Join(g.By, ", "), cli.ClockText(g.Interrupted))
	}
	for _, n := range g.Later {
		mark := "delta   "
		if n.Decisive {
			mark = "decisive"
		}
		line("  %s  view_seq %d, %s", mark, n.Delivery.Delta.ViewSeq, newsText(n.TracedDelivery))
		if n.Own {
			line("            its own effect")
		}
		for _, m := range n.Matched {
			line("            conflicts: %s", matchText(m))
		}
		b.WriteString(deltaText("            ", n.Delivery.Delta))
	}
	if hidden := g.Count - len(g.Later); hidden > 0 {
		line("  and %d more deltas", hidden)
	}
	return b.String()
}

func matchText(m query.Match) string {
	switch {
	case m.Class != "":
		return "class " + m.Class
	case m.Everything:
		return "it reads the full view"
	case m.Written == "":
		return "it reads " + m.Read + "; the delta wrote too many paths to list"
	default:
		return "it reads " + m.Read + "; the delta wrote " + m.Written
	}
}

// WhyRejected returns the command "why-rejected".
func WhyRejected(a *cli.App) *cobra.Command {
	var at string
	cmd := &cobra.Command{
		Use:   "why-rejected AGENT REQ_ID [SESSION]",
		Short: "Explain why a request was refused",
		Long: `Why-rejected shows the final answer to a request: for a refusal its code, number,
reason, problems and recovery, for an accepted request its effect.

A refusal that another attempt might not get (stale, over quota, too soon, …)
leaves no record. If a request has no record, why-rejected shows the limits that
applied to the agent at a moment, by default the end of the session: its
quotas, cooldowns, permissions and the oldest context that was not stale.

The exit code is 0 if the request was refused, 1 if it was accepted, 3 if the
session was recorded under other rules, and 5 if no answer is recorded.`,
		Example: `  sajou-replay why-rejected A story conversation
  sajou-replay why-rejected B r9 conversation --at 9+50ms`,
		Args: cli.Between(2, 3),
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := cli.ParseAddress(at); err != nil {
				return err
			}
			r, t, report, rules, err := lookUpRequest(a, cmd, args)
			if err != nil {
				return err
			}
			defer t.Close()
			if report.Ruling == nil {
				return unproven(rules, unrecorded(cmd.Context(), a, t, r, report, at))
			}
			v := answer.RequestView{Agent: report.AgentID, ReqID: report.ReqID, Generations: []answer.GenerationView{}, Answer: answer.ViewRuling(report.Ruling)}
			if err := a.Output().One(rulingText(report.Ruling), v); err != nil {
				return err
			}
			if report.Ruling.Effect != nil {
				return unproven(rules, cli.AnswerNo)
			}
			return unproven(rules, nil)
		},
	}
	cmd.Flags().StringVar(&at, "at", "end", "show the limits at moment `ADDR` if no answer is recorded")
	return cmd
}

func rulingText(r *query.Ruling) string {
	var b strings.Builder
	line := func(format string, args ...any) {
		b.WriteString(termtext.Printable(fmt.Sprintf(format, args...)) + "\n")
	}
	if e := r.Effect; e != nil {
		line("accepted by entry %d at %s: effect %d, %s", r.Entry, cli.ClockText(r.At), e.GlobalSeq, e.Kind)
		line("  payload   %s", answer.CanonicalJSON(e.Payload))
		return b.String()
	}
	v := answer.ViewRuling(r)
	line("refused by entry %d at %s: %s (%d)", r.Entry, cli.ClockText(r.At), v.Code, v.Number)
	if len(v.Problems) == 0 && v.Reason != "" {
		line("  reason    %s", v.Reason)
	}
	for _, p := range v.Problems {
		line("  problem   %s: %s", p.Path, p.Reason)
	}
	line("  recovery  %s; a repeat of this req_id gets the same answer", v.Recovery)
	return b.String()
}

// unrecorded shows the limits that applied to a request without a recorded answer.
func unrecorded(ctx context.Context, a *cli.App, t *cli.OpenedSession, r *history.History, report query.RequestReport, at string) error {
	m, err := t.Resolve(ctx, at)
	if err != nil {
		return err
	}
	s, err := r.AdmissionAt(ctx, report.AgentID, m)
	if _, err = otherRules(err); err != nil {
		return err
	}
	var b strings.Builder
	line := func(format string, args ...any) {
		b.WriteString(termtext.Printable(fmt.Sprintf(format, args...)) + "\n")
	}
	line("no answer is recorded for request %s of %s: it was never submitted, or refused for a passing reason", report.ReqID, report.AgentID)
	for i := range report.Generations {
		g := &report.Generations[i]
		line("  generation of entry %d, %s: %s %s", g.Entry, cli.ClockText(g.Token.Issued), g.End, g.Reason)
	}
	line("at %v", m)
	if !s.Registered {
		line("  the agent is not registered: INVALID_AGENT_ID")
	} else {
		line("  context   view_seq %d was delivered; a context_seq below %d is stale", s.ViewSeq, s.LeastContext)
		line("  quota     %s", quotaText(s))
		for _, c := range s.Cooldowns {
			line("  cooldown  %s for another %v", c.Kind, c.Wait)
		}
		line("  may       %s", strings.Join(s.Permissions, ", "))
	}
	if s.Paused {
		line("  the world is paused")
	}
	if err := a.Output().One(b.String(), answer.ViewAdmission(&report, m, &s)); err != nil {
		return err
	}
	return &cli.ExitError{Code: cli.ExitInconclusive}
}

func quotaText(s agents.AdmissionStatus) string {
	of := func(n int64) string {
		if n < 0 {
			return "any number"
		}
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%d of %s intents and %d of %s tokens in the last minute", s.Intents, of(s.QuotaIntents), s.Tokens, of(s.QuotaTokens))
}
