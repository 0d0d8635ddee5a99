package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/projection"
)

func (a *app) whyCancelledCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "why-cancelled AGENT REQ_ID [SESSION]",
		Short: "Tell why an agent's generation was cancelled",
		Long: `Why-cancelled shows each generation that an agent had under way for a request:
what it went by, what the agent was told beyond that, and how it ended. Of one
that was in vain it says which news made it so, what of that conflicts with it,
and whether the debounce put its cancellation off.

The exit code is 0 when a generation was cancelled, 1 when none was, and 4 when
there was none for that request.`,
		Example: `  sajou-replay why-cancelled scout req-7
  sajou-replay why-cancelled scout req-7 release-42 -o json`,
		Args: between(2, 3),
		RunE: func(cmd *cobra.Command, args []string) error {
			_, t, report, err := a.request(cmd, args)
			if err != nil {
				return err
			}
			defer t.Close()
			if len(report.Generations) == 0 {
				return fail(exitNotFound, "%s had no generation for %s under way; what became of that request, tells: sajou-replay why-rejected %s %s -s %s",
					args[0], args[1], shellWord(args[0]), shellWord(args[1]), shellWord(t.name))
			}
			v := requestView{Agent: report.AgentID, ReqID: report.ReqID, Dropped: report.Dropped, Answer: viewRuling(report.Ruling)}
			text, cancelled := "", false
			if report.Dropped > 0 {
				text = fmt.Sprintf("%d generations before these\n", report.Dropped)
			}
			for i := range report.Generations {
				g := &report.Generations[i]
				v.Generations = append(v.Generations, viewGeneration(g))
				text += generationText(g)
				cancelled = cancelled || g.End.Cancelled()
			}
			if err := a.output().one(text, v); err != nil {
				return err
			}
			if !cancelled {
				return answerNo
			}
			return nil
		},
	}
}

// request looks up what became of a request. The target is open.
func (a *app) request(cmd *cobra.Command, args []string) (*sajou.Replay, *target, agents.RequestReport, error) {
	t, r, done, err := a.question(args[2:])
	if err != nil {
		return nil, nil, agents.RequestReport{}, err
	}
	report, err := r.Request(cmd.Context(), args[0], args[1])
	done()
	if err != nil {
		_ = t.Close() // reading: the first error counts
		return nil, nil, report, asked(err)
	}
	return r, t, report, nil
}

// requestView is what became of a request, for JSON. Times are milliseconds of
// session time.
type requestView struct {
	Agent       string           `json:"agent"`
	ReqID       string           `json:"req_id"`
	Dropped     int              `json:"dropped,omitempty"`
	Generations []generationView `json:"generations"`
	Answer      *rulingView      `json:"answer,omitempty"`
}

type generationView struct {
	Seq       uint64      `json:"seq"`
	Token     tokenView   `json:"token"`
	End       string      `json:"end"`
	EndSeq    uint64      `json:"end_seq,omitempty"`
	EndAt     *float64    `json:"end_at,omitempty"`
	Reason    string      `json:"reason,omitempty"`
	Interrupt string      `json:"interrupt"`
	Threshold uint64      `json:"staleness_threshold"`
	Debounce  float64     `json:"debounce_ms"`
	StaleAt   *float64    `json:"stale_at,omitempty"`
	PutOffBy  *putOffView `json:"put_off_by,omitempty"`
	Generated uint64      `json:"generated_seq,omitempty"`
	Count     int         `json:"news_count"`
	News      []newerView `json:"news"`
}

// putOffView is the interruption since which the debounce had to be waited for.
type putOffView struct {
	At     float64  `json:"at"`
	ReqIDs []string `json:"req_ids"`
}

type tokenView struct {
	ContextSeq    uint64   `json:"context_seq"`
	ContextDigest string   `json:"context_digest"`
	Issued        float64  `json:"issued"`
	Deadline      *float64 `json:"deadline,omitempty"`
	Budget        int64    `json:"token_budget,omitempty"`
	Reads         []string `json:"reads,omitempty"`
	Classes       []string `json:"classes,omitempty"`
}

type newerView struct {
	Decisive bool        `json:"decisive"`
	Own      bool        `json:"own,omitempty"`
	Matched  []matchView `json:"matched,omitempty"`
	newsView
}

type matchView struct {
	Read       string `json:"read,omitempty"`
	Written    string `json:"written,omitempty"`
	Class      string `json:"class,omitempty"`
	Everything bool   `json:"everything,omitempty"`
}

func viewToken(t *agents.Token) tokenView {
	v := tokenView{t.ContextSeq, t.ContextDigest, projection.Millis(t.Issued), nil, t.Budget, t.Reads, t.Classes}
	if t.Deadline > 0 {
		at := projection.Millis(t.Deadline)
		v.Deadline = &at
	}
	return v
}

func viewGeneration(g *agents.GenerationReport) generationView {
	v := generationView{
		Seq: g.Entry, Token: viewToken(&g.Token), End: string(g.End), EndSeq: g.EndEntry, Reason: g.Reason,
		Interrupt: string(g.Settings.Interrupt), Threshold: g.Settings.Staleness, Debounce: projection.Millis(g.Settings.Debounce),
		Generated: g.Generated, Count: g.Count, News: []newerView{},
	}
	if g.End != agents.EndNone {
		at := projection.Millis(g.EndAt)
		v.EndAt = &at
	}
	if g.End == agents.EndStale {
		at := projection.Millis(g.StaleAt)
		v.StaleAt = &at
	}
	if g.PutOff {
		v.PutOffBy = &putOffView{projection.Millis(g.Interrupted), g.By}
	}
	for _, n := range g.Newer {
		view := newerView{n.Decisive, n.Own, nil, viewNews(n.News)}
		for _, m := range n.Matched {
			view.Matched = append(view.Matched, matchView(m))
		}
		v.News = append(v.News, view)
	}
	return v
}

func generationText(g *agents.GenerationReport) string {
	var b strings.Builder
	line := func(format string, args ...any) { b.WriteString(printable(fmt.Sprintf(format, args...)) + "\n") }
	end := map[agents.GenerationEnd]string{
		agents.EndNone: "still runs", agents.EndStale: "cancelled, it was in vain", agents.EndCancelled: "cancelled by who ran it",
		agents.EndReplaced: "cancelled, another generation took its place", agents.EndDeadline: "cancelled, its deadline had come",
		agents.EndLeft: "cancelled, the agent left", agents.EndAccepted: "not cancelled: its request was accepted",
		agents.EndRefused: "not cancelled: its request was refused",
	}[g.End]
	if g.End != agents.EndNone {
		end += fmt.Sprintf(", at %s (entry %d)", clockText(g.EndAt), g.EndEntry)
	}
	line("generation of entry %d: %s", g.Entry, end)
	if g.Reason != "" {
		line("  reason    %s", g.Reason)
	}
	line("  began     %s, going by view_seq %d, digest %s", clockText(g.Token.Issued), g.Token.ContextSeq, g.Token.ContextDigest)
	for _, path := range g.Token.Reads {
		line("  reads     %s", path)
	}
	if len(g.Token.Classes) > 0 {
		line("  classes   %s", strings.Join(g.Token.Classes, ", "))
	}
	if g.Token.Deadline > 0 {
		line("  deadline  %s", clockText(g.Token.Deadline))
	}
	line("  rules     interrupt %s, threshold %d, debounce %v", g.Settings.Interrupt, g.Settings.Staleness, g.Settings.Debounce)
	if g.PutOff {
		line("  put off   in vain since %s, but %s had been interrupted at %s", clockText(g.StaleAt), strings.Join(g.By, ", "), clockText(g.Interrupted))
	}
	for _, n := range g.Newer {
		mark := "news    "
		if n.Decisive {
			mark = "decisive"
		}
		line("  %s  view_seq %d, %s", mark, n.Delivery.Delta.ViewSeq, newsText(n.News))
		if n.Own {
			line("            its own effect")
		}
		for _, m := range n.Matched {
			line("            conflicts: %s", matchText(m))
		}
		b.WriteString(deltaText("            ", n.Delivery.Delta))
	}
	if hidden := g.Count - len(g.Newer); hidden > 0 {
		line("  and %d more news", hidden)
	}
	return b.String()
}

func matchText(m agents.Match) string {
	switch {
	case m.Class != "":
		return "class " + m.Class
	case m.Everything:
		return "it goes by all that the agent sees"
	case m.Written == "":
		return "it reads " + m.Read + ", and a great many things were written"
	default:
		return "it reads " + m.Read + ", written was " + m.Written
	}
}

func (a *app) whyRejectedCommand() *cobra.Command {
	var at string
	cmd := &cobra.Command{
		Use:   "why-rejected AGENT REQ_ID [SESSION]",
		Short: "Tell how a request of an agent was answered",
		Long: `Why-rejected shows the answer that a request got for ever: the code and number
of its refusal, the reason with the single faults, and what one may do about it;
or the effect that came of it.

A refusal that may change (stale, over quota, too soon, …) leaves no record, for
the request may be asked again. Where there is none, how the agent stood at a
moment is shown instead, by default at the end: what a request met then.

The exit code is 0 when the request was refused, 1 when it was accepted, and 5
when nothing is recorded.`,
		Example: `  sajou-replay why-rejected scout req-7
  sajou-replay why-rejected scout req-8 release-42 --at 812+50ms`,
		Args: between(2, 3),
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := parseAddress(at); err != nil {
				return err
			}
			r, t, report, err := a.request(cmd, args)
			if err != nil {
				return err
			}
			defer t.Close()
			if report.Ruling == nil {
				return a.unrecorded(cmd.Context(), t, r, report, at)
			}
			v := requestView{Agent: report.AgentID, ReqID: report.ReqID, Generations: []generationView{}, Answer: viewRuling(report.Ruling)}
			if err := a.output().one(rulingText(report.Ruling), v); err != nil {
				return err
			}
			if report.Ruling.Effect != nil {
				return answerNo
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&at, "at", "end", "the moment, where nothing is recorded")
	return cmd
}

// rulingView is the answer to a request, for JSON.
type rulingView struct {
	Status   string          `json:"status"` // accepted or rejected
	Seq      uint64          `json:"seq"`
	At       float64         `json:"at"`
	Code     string          `json:"code,omitempty"`
	Number   int             `json:"number,omitempty"`
	Reason   string          `json:"reason,omitempty"`
	Problems []problemView   `json:"problems,omitempty"`
	Recovery string          `json:"recovery,omitempty"`
	Effect   json.RawMessage `json:"effect,omitempty"`
}

type problemView struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

func viewRuling(r *agents.Ruling) *rulingView {
	if r == nil {
		return nil
	}
	v := &rulingView{Status: agents.Accepted.String(), Seq: r.Entry, At: projection.Millis(r.At)}
	if r.Effect != nil {
		v.Effect = canonicalJSON(r.Effect.Value())
		return v
	}
	failure, _ := r.Answer.Code.Failure()
	v.Status, v.Code, v.Reason = agents.Rejected.String(), string(r.Answer.Code), r.Answer.Reason
	v.Number, v.Recovery = failure.Number, string(failure.Recovery)
	for _, p := range r.Problems() {
		v.Problems = append(v.Problems, problemView(p))
	}
	return v
}

func rulingText(r *agents.Ruling) string {
	var b strings.Builder
	line := func(format string, args ...any) { b.WriteString(printable(fmt.Sprintf(format, args...)) + "\n") }
	if e := r.Effect; e != nil {
		line("accepted by entry %d at %s: effect %d, %s", r.Entry, clockText(r.At), e.GlobalSeq, e.Kind)
		line("  payload   %s", canonicalJSON(e.Payload))
		return b.String()
	}
	v := viewRuling(r)
	line("refused by entry %d at %s: %s (%d)", r.Entry, clockText(r.At), v.Code, v.Number)
	if len(v.Problems) == 0 && v.Reason != "" {
		line("  reason    %s", v.Reason)
	}
	for _, p := range v.Problems {
		line("  problem   %s: %s", p.Path, p.Reason)
	}
	line("  recovery  %s; this req_id gets the same answer for ever", v.Recovery)
	return b.String()
}

// standingView is how an agent stands, for JSON.
type standingView struct {
	Agent        string           `json:"agent"`
	ReqID        string           `json:"req_id"`
	Recorded     bool             `json:"recorded"`
	Moment       string           `json:"moment"`
	Registered   bool             `json:"registered"`
	Paused       bool             `json:"paused"`
	ViewSeq      uint64           `json:"view_seq"`
	LeastContext uint64           `json:"least_context_seq"`
	Permissions  []string         `json:"permissions"`
	Intents      int64            `json:"intents_in_last_minute"`
	QuotaIntents int64            `json:"quota_intents_per_minute"`
	Tokens       int64            `json:"tokens_in_last_minute"`
	QuotaTokens  int64            `json:"quota_tokens_per_minute"`
	Cooldowns    map[string]any   `json:"cooldowns_ms"`
	Generations  []generationView `json:"generations"`
}

// unrecorded shows what is known of a request that nothing answers.
func (a *app) unrecorded(ctx context.Context, t *target, r *sajou.Replay, report agents.RequestReport, at string) error {
	m, err := t.resolve(ctx, at)
	if err != nil {
		return err
	}
	s, err := r.Standing(ctx, report.AgentID, m)
	if err != nil {
		return asked(err)
	}
	v := standingView{
		Agent: report.AgentID, ReqID: report.ReqID, Moment: m.String(), Registered: s.Registered, Paused: s.Paused,
		ViewSeq: s.ViewSeq, LeastContext: s.LeastContext, Permissions: s.Permissions, Intents: s.Intents, QuotaIntents: s.QuotaIntents,
		Tokens: s.Tokens, QuotaTokens: s.QuotaTokens, Cooldowns: map[string]any{}, Generations: []generationView{},
	}
	var b strings.Builder
	line := func(format string, args ...any) { b.WriteString(printable(fmt.Sprintf(format, args...)) + "\n") }
	line("nothing is recorded that answers %s of %s: it was never asked, or refused in a way that may change", report.ReqID, report.AgentID)
	for i := range report.Generations {
		g := &report.Generations[i]
		v.Generations = append(v.Generations, viewGeneration(g))
		line("  generation of entry %d, %s: %s %s", g.Entry, clockText(g.Token.Issued), g.End, g.Reason)
	}
	line("at %v", m)
	if !s.Registered {
		line("  the agent is not registered: INVALID_AGENT_ID")
	} else {
		line("  context   up to view_seq %d has reached it; a context_seq below %d is stale", s.ViewSeq, s.LeastContext)
		line("  quota     %s", quotaText(s))
		for _, c := range s.Cooldowns {
			v.Cooldowns[c.Kind] = projection.Millis(c.Wait)
			line("  cooldown  %s for another %v", c.Kind, c.Wait)
		}
		line("  may       %s", strings.Join(s.Permissions, ", "))
	}
	if s.Paused {
		line("  the world is paused")
	}
	if err := a.output().one(b.String(), v); err != nil {
		return err
	}
	return &exit{code: exitInconclusive}
}

func quotaText(s agents.Standing) string {
	of := func(n int64) string {
		if n < 0 {
			return "any number"
		}
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%d of %s intents and %d of %s tokens in the last minute", s.Intents, of(s.QuotaIntents), s.Tokens, of(s.QuotaTokens))
}
