package answer

import (
	"encoding/json"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/query"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
)

// RequestView is the fate of a request. Times are milliseconds of
// session time.
type RequestView struct {
	Agent       string           `json:"agent"`
	ReqID       string           `json:"req_id"`
	Dropped     int              `json:"dropped,omitempty"`
	Generations []GenerationView `json:"generations"`
	Answer      *RulingView      `json:"answer,omitempty"`
}

// GenerationView is one generation for a request, and how it ended.
type GenerationView struct {
	Seq       uint64      `json:"seq"`
	Token     TokenView   `json:"token"`
	End       string      `json:"end"`
	EndSeq    uint64      `json:"end_seq,omitempty"`
	EndAt     *float64    `json:"end_at,omitempty"`
	Reason    string      `json:"reason,omitempty"`
	Interrupt string      `json:"interrupt"`
	Threshold uint64      `json:"staleness_threshold"`
	Debounce  float64     `json:"debounce_ms"`
	StaleAt   *float64    `json:"stale_at,omitempty"`
	PutOffBy  *PutOffView `json:"put_off_by,omitempty"`
	Generated uint64      `json:"generated_seq,omitempty"`
	Count     int         `json:"news_count"`
	News      []NewerView `json:"news"`
}

// PutOffView is the earlier interruption whose debounce delayed the cancellation.
type PutOffView struct {
	At     float64  `json:"at"`
	ReqIDs []string `json:"req_ids"`
}

// TokenView is what a generation was based on.
type TokenView struct {
	ContextSeq    uint64   `json:"context_seq"`
	ContextDigest string   `json:"context_digest"`
	Issued        float64  `json:"issued"`
	Deadline      *float64 `json:"deadline,omitempty"`
	Budget        int64    `json:"token_budget,omitempty"`
	Reads         []string `json:"reads,omitempty"`
	Classes       []string `json:"classes,omitempty"`
}

// NewerView is a delta that came while a generation was under way.
type NewerView struct {
	Decisive bool        `json:"decisive"`
	Own      bool        `json:"own,omitempty"`
	Matched  []MatchView `json:"matched,omitempty"`
	NewsView
}

// MatchView is a conflict of a delta with what a generation reads.
type MatchView struct {
	Read       string `json:"read,omitempty"`
	Written    string `json:"written,omitempty"`
	Class      string `json:"class,omitempty"`
	Everything bool   `json:"everything,omitempty"`
}

func viewToken(t *agents.Token) TokenView {
	v := TokenView{t.ContextSeq, t.ContextDigest, projection.Millis(t.Issued), nil, t.Budget, t.Reads, t.Classes}
	if t.Deadline > 0 {
		at := projection.Millis(t.Deadline)
		v.Deadline = &at
	}
	return v
}

// ViewGeneration returns the view of one generation.
func ViewGeneration(g *query.GenerationReport) GenerationView {
	v := GenerationView{
		Seq: g.Entry, Token: viewToken(&g.Token), End: string(g.End), EndSeq: g.EndEntry, Reason: g.Reason,
		Interrupt: string(g.Settings.Interrupt), Threshold: g.Settings.Staleness, Debounce: projection.Millis(g.Settings.Debounce),
		Generated: g.Generated, Count: g.Count, News: []NewerView{},
	}
	if g.End != query.EndNone {
		at := projection.Millis(g.EndAt)
		v.EndAt = &at
	}
	if g.End == query.EndStale {
		at := projection.Millis(g.StaleAt)
		v.StaleAt = &at
	}
	if g.PutOff {
		v.PutOffBy = &PutOffView{projection.Millis(g.Interrupted), g.By}
	}
	for _, n := range g.Later {
		view := NewerView{n.Decisive, n.Own, nil, ViewNews(n.TracedDelivery)}
		for _, m := range n.Matched {
			view.Matched = append(view.Matched, MatchView(m))
		}
		v.News = append(v.News, view)
	}
	return v
}

// RulingView is the answer to a request.
type RulingView struct {
	Status   string          `json:"status"` // accepted or rejected
	Seq      uint64          `json:"seq"`
	At       float64         `json:"at"`
	Code     string          `json:"code,omitempty"`
	Number   int             `json:"number,omitempty"`
	Reason   string          `json:"reason,omitempty"`
	Problems []ProblemView   `json:"problems,omitempty"`
	Recovery string          `json:"recovery,omitempty"`
	Effect   json.RawMessage `json:"effect,omitempty"`
}

// ProblemView is one reason of a refusal.
type ProblemView struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// ViewRuling returns the view of the answer to a request, nil for none.
func ViewRuling(r *query.Ruling) *RulingView {
	if r == nil {
		return nil
	}
	v := &RulingView{Status: agents.Accepted.String(), Seq: r.Entry, At: projection.Millis(r.At)}
	if r.Effect != nil {
		v.Effect = CanonicalJSON(r.Effect.Value())
		return v
	}
	failure, _ := r.Answer.Code.Failure()
	v.Status, v.Code, v.Reason = agents.Rejected.String(), string(r.Answer.Code), r.Answer.Reason
	v.Number, v.Recovery = failure.Number, string(failure.Recovery)
	for _, p := range r.Problems() {
		v.Problems = append(v.Problems, ProblemView(p))
	}
	return v
}

// AdmissionView is the state of an agent's limits.
type AdmissionView struct {
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
	Generations  []GenerationView `json:"generations"`
}

// ViewRequest returns the view of the fate of a request.
func ViewRequest(r *query.RequestReport) RequestView {
	v := RequestView{Agent: r.AgentID, ReqID: r.ReqID, Dropped: r.Dropped, Answer: ViewRuling(r.Ruling)}
	for i := range r.Generations {
		v.Generations = append(v.Generations, ViewGeneration(&r.Generations[i]))
	}
	return v
}

// ViewAdmission returns the view of the limits of the agent of a request that has no
// recorded answer, at a moment.
func ViewAdmission(r *query.RequestReport, m replay.Moment, s *agents.AdmissionStatus) AdmissionView {
	v := AdmissionView{
		Agent: r.AgentID, ReqID: r.ReqID, Moment: m.String(), Registered: s.Registered, Paused: s.Paused,
		ViewSeq: s.ViewSeq, LeastContext: s.LeastContext, Permissions: s.Permissions, Intents: s.Intents, QuotaIntents: s.QuotaIntents,
		Tokens: s.Tokens, QuotaTokens: s.QuotaTokens, Cooldowns: map[string]any{}, Generations: []GenerationView{},
	}
	for i := range r.Generations {
		v.Generations = append(v.Generations, ViewGeneration(&r.Generations[i]))
	}
	for _, c := range s.Cooldowns {
		v.Cooldowns[c.Kind] = projection.Millis(c.Wait)
	}
	return v
}
