package answer

import (
	"encoding/json"
	"strings"

	"github.com/sajou-dev/sajou-go/agents/history"
	"github.com/sajou-dev/sajou-go/agents/jsondoc"
	"github.com/sajou-dev/sajou-go/agents/query"
	"github.com/sajou-dev/sajou-go/agents/view"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

// GapView is data that a search does not cover.
type GapView struct {
	Kind  string `json:"kind"`
	Count uint64 `json:"count,omitempty"`
	Seq   uint64 `json:"seq,omitempty"` // the first
	Text  string `json:"text"`
}

// ViewGaps lists the data that a search did not cover.
func ViewGaps(p *history.LeakProof) []GapView {
	list := []GapView{}
	if p.Rules != nil {
		list = append(list, GapView{Kind: "rules", Text: RulesText(p.Rules)})
	}
	for _, g := range p.Unsearched {
		list = append(list, GapView{string(g.Kind), g.Count, g.Entry, g.String()})
	}
	return list
}

// RulesText returns the reason why an answer about a session of other rules proves
// nothing.
func RulesText(e *session.RulesError) string { return strings.TrimPrefix(e.Error(), "sajou: ") }

// PathQuery reads a path, or without a leading slash the id of an entity.
func PathQuery(written string) (query.LeakQuery, error) {
	path, err := view.ParseViewPath(written)
	if err == nil && written != "" && written[0] != '/' {
		return query.LeakQuery{Entity: written}, nil
	}
	return query.LeakQuery{Path: path}, err
}

// CanonicalJSON returns a value as canonical JSON, which is exact.
func CanonicalJSON(v signal.Value) json.RawMessage {
	if v == nil {
		return nil
	}
	return json.RawMessage(jsondoc.AppendCanonical(nil, v))
}

// CauseView is the cause of a delta.
type CauseView struct {
	Word      string `json:"word"`
	GlobalSeq uint64 `json:"global_seq,omitempty"`
	Kind      string `json:"kind,omitempty"`
	Source    string `json:"source_id,omitempty"`
	ReqID     string `json:"req_id,omitempty"`
}

// ViewCause returns the view of a cause.
func ViewCause(c query.Cause) CauseView {
	return CauseView{c.Word, c.GlobalSeq, c.Kind, c.Source, c.ReqID}
}

// NewsView is a delta and its cause. Times are milliseconds of session
// time.
type NewsView struct {
	Seq    uint64          `json:"seq"`
	Made   float64         `json:"made"`
	Told   float64         `json:"told"`
	Number uint64          `json:"number"`
	Cause  CauseView       `json:"cause"`
	Delta  json.RawMessage `json:"delta,omitempty"`
}

// ViewNews returns the view of a delta.
func ViewNews(n query.TracedDelivery) NewsView {
	v := NewsView{
		n.Entry, projection.Millis(n.Made), projection.Millis(n.Delivery.At), n.Delivery.Number,
		ViewCause(n.Cause), nil,
	}
	if n.Delivery.Number > 0 {
		v.Delta = CanonicalJSON(n.Delivery.Delta.Value())
	}
	return v
}

// KnowledgeView is what an agent knows.
type KnowledgeView struct {
	Agent    string  `json:"agent"`
	Moment   string  `json:"moment"`
	Seq      uint64  `json:"seq"`
	At       float64 `json:"at"`
	Presence string  `json:"presence"`
	Left     uint64  `json:"left,omitempty"` // the entry by which it left
	ViewSeq  uint64  `json:"view_seq"`
	Digest   string  `json:"context_digest"`

	Entities  json.RawMessage `json:"visible_entities,omitempty"`
	Relations json.RawMessage `json:"visible_relationships,omitempty"`

	Path  *string         `json:"path,omitempty"`
	Known *bool           `json:"known,omitempty"`
	Value json.RawMessage `json:"value,omitempty"`

	// Sent is the first place outside of the view where the agent was sent it.
	Sent      *LeakView `json:"sent,omitempty"`
	Uncovered []GapView `json:"uncovered,omitempty"`

	Pending []NewsView `json:"pending,omitempty"`
}

// ViewKnowledge returns the view of what an agent knows at a moment, without the view of the world
// itself, and with the deltas under way if they are asked for.
func ViewKnowledge(k history.Knowledge, m replay.Moment, pending bool) KnowledgeView {
	v := KnowledgeView{
		Agent: k.Agent, Moment: m.String(), Seq: uint64(k.Head.Seq), At: projection.Millis(k.At),
		Presence: k.Presence.String(), Left: uint64(k.Left), ViewSeq: k.View.ViewSeq, Digest: k.View.ContextDigest,
	}
	if pending {
		v.Pending = []NewsView{}
		for _, n := range k.Pending {
			v.Pending = append(v.Pending, ViewNews(n))
		}
	}
	return v
}

// SentView is the first place where an agent was sent something.
type SentView struct {
	Agent     string    `json:"agent"`
	Path      *string   `json:"path,omitempty"`
	Entity    string    `json:"entity,omitempty"`
	Value     string    `json:"value,omitempty"`
	Known     bool      `json:"known"`
	Sent      *LeakView `json:"sent,omitempty"`
	Uncovered []GapView `json:"uncovered,omitempty"`
}

// ChangeView is a change of a part of an agent's view.
type ChangeView struct {
	Agent  string          `json:"agent"`
	Path   string          `json:"path"`
	Known  bool            `json:"known"` // false: removed from its view
	Coming bool            `json:"coming,omitempty"`
	Value  json.RawMessage `json:"value,omitempty"`
	Before json.RawMessage `json:"before,omitempty"`
	*NewsView
}

// ViewChange returns the view of a change.
func ViewChange(agent string, path jsondoc.Pointer, s history.ValueChange) ChangeView {
	news := ViewNews(s.TracedDelivery)
	return ChangeView{
		agent, path.String(), s.Value != nil, s.Coming, CanonicalJSON(s.Value), CanonicalJSON(s.Before), &news,
	}
}

// LeakView is one place where something was sent.
type LeakView struct {
	Route     string `json:"route"`
	Place     string `json:"place"`
	How       string `json:"how"`
	Operation *int   `json:"operation,omitempty"` // in the delta's patch, from 0
	NewsView
}

// ProofView is the result of a search for a leak.
type ProofView struct {
	Agent  string    `json:"agent"`
	Path   *string   `json:"path,omitempty"`
	Entity string    `json:"entity,omitempty"`
	Value  string    `json:"value,omitempty"`
	Leaked bool      `json:"leaked"`
	Leaks  uint64    `json:"leaks"`
	First  *LeakView `json:"first,omitempty"`
	// Proven: the agent was never sent it.
	Proven    bool      `json:"proven"`
	Uncovered []GapView `json:"uncovered"`
	Looked    struct {
		From       uint64           `json:"from"`
		To         uint64           `json:"to"`
		Head       session.HeadView `json:"head"`
		Deltas     uint64           `json:"deltas"`
		Whole      uint64           `json:"whole_views"`
		Operations uint64           `json:"operations"`
		Values     uint64           `json:"values,omitempty"`
		Refusals   uint64           `json:"refusals"`

		Outcomes      uint64 `json:"outcomes"`
		Cancellations uint64 `json:"cancellations"`
		Prompts       uint64 `json:"prompts"`
		Messages      uint64 `json:"messages"`
		Judgements    uint64 `json:"judgements"`
		Guidance      uint64 `json:"guidance"`
	} `json:"looked"`
}

// ViewLeak returns the view of one place.
func ViewLeak(l query.Leak) LeakView {
	v := LeakView{string(l.Route), l.Place, string(l.How), nil, ViewNews(l.TracedDelivery)}
	if l.Operation >= 0 {
		v.Operation = &l.Operation
	}
	return v
}

// ViewSent returns the view of an answer of [history.History.FirstSent].
func ViewSent(agent string, q query.LeakQuery, first query.Leak, found bool, p *history.LeakProof) SentView {
	v := SentView{Agent: agent, Entity: q.Entity, Value: q.Text, Known: found, Uncovered: ViewGaps(p), Path: PathText(q)}
	if found {
		leak := ViewLeak(first)
		v.Sent = &leak
	}
	return v
}

// PathText returns the path that a search is about, nil if it is about something else.
func PathText(q query.LeakQuery) *string {
	if q.Path == nil {
		return nil
	}
	text := q.Path.String()
	return &text
}

// ViewProof returns the view of an answer of [history.History.Leak]; first is the first
// place that was found, nil if there is none or if all places were listed.
func ViewProof(agent string, q query.LeakQuery, first *query.Leak, p *history.LeakProof) ProofView {
	v := ProofView{
		Agent: agent, Path: PathText(q), Entity: q.Entity, Value: q.Text,
		Leaked: p.Leaks > 0, Leaks: p.Leaks, Proven: p.Err() == nil, Uncovered: ViewGaps(p),
	}
	n := &p.Stats
	v.Looked.From, v.Looked.To, v.Looked.Head = uint64(p.From), uint64(p.Head.Seq), session.ViewHead(p.Head)
	v.Looked.Deltas, v.Looked.Whole, v.Looked.Operations, v.Looked.Values, v.Looked.Refusals = n.Deltas, n.Whole, n.Operations, n.Values, n.Refusals
	v.Looked.Outcomes, v.Looked.Cancellations, v.Looked.Prompts = n.Outcomes, n.Cancellations, n.Prompts
	v.Looked.Messages, v.Looked.Judgements, v.Looked.Guidance = n.Messages, n.Judgements, n.Guidance
	if first != nil {
		leak := ViewLeak(*first)
		v.First = &leak
	}
	return v
}

// AgentsView are the agents that are registered at a moment.
type AgentsView struct {
	Moment string   `json:"moment"`
	Agents []string `json:"agents"`
}

// UnprovenKnowledgeView is what an agent knows, and why that is not proven: the session was
// recorded under other rules.
type UnprovenKnowledgeView struct {
	KnowledgeView
	Unproven string `json:"unproven,omitempty"`
}

// UnprovenRequestView is the fate of a request, why that is not proven, and without a
// recorded answer the limits that applied.
type UnprovenRequestView struct {
	RequestView
	Admission *AdmissionView `json:"admission,omitempty"`
	Unproven  string         `json:"unproven,omitempty"`
}

// DeclarationView is a declaration in force, as it was written.
type DeclarationView struct {
	Word  string          `json:"word"`
	Name  string          `json:"name,omitempty"`
	Value json.RawMessage `json:"value"`
}

// ViewDeclaration returns the view of a declaration.
func ViewDeclaration(word, name string, value signal.Value) DeclarationView {
	return DeclarationView{word, name, json.RawMessage(value.AppendJSON(nil))}
}
