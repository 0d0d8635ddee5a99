// Package summary counts what a session holds: prompts, texts, calls of tools and their
// failures, tokens and costs, by agent, by tool and by model, its activity over time, and
// what an import and a redaction noted about it.
//
//	counter := summary.NewCounter()
//	counter.Add(entry.At, &sig) // each signal, in the order of the session
//	s := counter.Summary()
//
// It is a pure fold over signals, which keeps counts and names and no texts, except for
// those of remarks. To decode and count a signal takes about a microsecond. The names of agents, tools, models and types that it
// tells apart are bounded by [MaxNames] each, and the calls that wait for a result by
// [MaxOpen].
//
// docs/glossary.md has the nouns of all packages.
package summary

import (
	"time"

	"github.com/sajou-dev/sajou-go/ingest/recording"
	"github.com/sajou-dev/sajou-go/redact"
	"github.com/sajou-dev/sajou-go/redact/content"
	"github.com/sajou-dev/sajou-go/signal"
)

const (
	// MaxNames bounds the agents, tools, models and types that are told apart. The ones
	// beyond it are counted together under the name [Others].
	MaxNames = 10_000

	// MaxOpen bounds the calls that wait for a result. A call beyond it is counted, but its
	// time is not.
	MaxOpen = 65_536

	// MaxRemarks bounds the remarks whose texts are kept.
	MaxRemarks = 100
)

// Others is the name of what is counted together.
const Others = "(others)"

// Summary is what a session holds. Its JSON has these members, and those of the types
// below.
type Summary struct {
	// Origin is nil for a session that is no import of a foreign recording.
	Origin *RecordedOrigin `json:"origin,omitempty"`

	Signals      int `json:"signals"`       // all of them
	Prompts      int `json:"prompts"`       // tasks that the user gave
	Tasks        int `json:"tasks"`         // tasks that an agent gave
	Texts        int `json:"texts"`         // pieces of text that an agent wrote
	Thoughts     int `json:"thoughts"`      // pieces of reasoning
	ToolCalls    int `json:"tool_calls"`    // calls of tools
	ToolResults  int `json:"tool_results"`  // their results, failures included
	Failures     int `json:"failures"`      // results without success
	Unanswered   int `json:"unanswered"`    // calls with an id whose result did not come
	Errors       int `json:"errors"`        // of severity error or critical
	Warnings     int `json:"warnings"`      // errors of severity warning
	Completions  int `json:"completions"`   // ends of tasks
	Failed       int `json:"failed"`        // ends of tasks without success
	StateChanges int `json:"state_changes"` // of agents
	Messages     int `json:"messages"`      // of models, whose tokens were counted

	Tokens TokenTotals   `json:"tokens"`
	Agents []AgentTotals `json:"agents"` // in the order in which they appear; the user is none
	Tools  []ToolTotals  `json:"tools"`  // in the order in which they appear
	Models []ModelTotals `json:"models"` // in the order in which they appear

	// First and Last are the least and the greatest timestamp, in milliseconds of Unix
	// time, exactly as recorded. They are absent in a session without one.
	First signal.Value `json:"first_ms,omitempty"`
	Last  signal.Value `json:"last_ms,omitempty"`

	Activity Activity `json:"activity"`

	// OtherTypes counts the signals of types that the protocol does not define, those that
	// describe an import left out.
	OtherTypes map[string]int `json:"other_types,omitempty"`

	Unreadable int            `json:"unreadable"` // records of the import that could not be read
	Cut        int            `json:"cut"`        // signals that the import shortened
	Skew       Skew           `json:"skew"`
	Remarks    int            `json:"remarks"`            // of the import
	RemarkList []ImportRemark `json:"remark_list"`        // the first [MaxRemarks]
	Complete   bool           `json:"complete,omitempty"` // the import was declared final

	// Redactions counts what a ruleset replaced, by kind, and Removed what was removed as
	// content.
	Redactions map[string]int64 `json:"redactions,omitempty"`
	Removed    *RemovedTotals   `json:"removed,omitempty"`
}

// RecordedOrigin is the origin of a session that was imported from another tool.
type RecordedOrigin struct {
	Format     string       `json:"format"`      // such as "claude-code"
	Session    string       `json:"session"`     // the id that the tool gave the session; "" if none
	TimeSource string       `json:"time_source"` // "recorded", or "synthetic" if the times are invented
	Options    signal.Value `json:"options"`     // all that the first signal of the import says
}

// TokenTotals are sums over the messages of models.
type TokenTotals struct {
	Prompt     int64   `json:"prompt"` // with those of caches
	Completion int64   `json:"completion"`
	CacheRead  int64   `json:"cache_read"`
	CacheWrite int64   `json:"cache_write"`
	Reasoning  int64   `json:"reasoning"`
	Cost       float64 `json:"cost"` // in the currency of the recording
}

func (t *TokenTotals) add(u *TokenTotals) {
	t.Prompt += u.Prompt
	t.Completion += u.Completion
	t.CacheRead += u.CacheRead
	t.CacheWrite += u.CacheWrite
	t.Reasoning += u.Reasoning
	t.Cost += u.Cost
}

// AgentTotals are the counts of one agent.
type AgentTotals struct {
	ID        string      `json:"id"`
	Parent    string      `json:"parent,omitempty"` // the agent that gave it its first task
	Tasks     int         `json:"tasks"`            // that were given to it, prompts included
	Texts     int         `json:"texts"`
	Thoughts  int         `json:"thoughts"`
	ToolCalls int         `json:"tool_calls"`
	Failures  int         `json:"failures"` // results of its calls without success
	Errors    int         `json:"errors"`   // warnings left out
	Messages  int         `json:"messages"`
	Tokens    TokenTotals `json:"tokens"`
}

// ToolTotals are the counts of one tool.
type ToolTotals struct {
	Name     string `json:"name"`
	Calls    int    `json:"calls"`
	Results  int    `json:"results"`
	Failures int    `json:"failures"`
	// Timed is the number of results that could be paired with their calls by id; the
	// times are those between the two in session time.
	Timed   int     `json:"timed"`
	TotalMS float64 `json:"total_ms"`
	MaxMS   float64 `json:"max_ms"`
}

// ModelTotals are the counts of one model.
type ModelTotals struct {
	Name     string      `json:"name"`
	Messages int         `json:"messages"`
	Tokens   TokenTotals `json:"tokens"`
}

// Skew is what the import noted about times.
type Skew struct {
	Moved  int     `json:"moved"`  // records that were before an earlier one and were moved
	MaxMS  float64 `json:"max_ms"` // how far at most
	Jumped int     `json:"jumped"` // records whose clock was ahead
}

// ImportRemark is a remark of the import.
type ImportRemark struct {
	Kind    string `json:"kind"`
	Message string `json:"message"`
}

// RemovedTotals is what was removed as content.
type RemovedTotals struct {
	Parts int64 `json:"parts"`
	Bytes int64 `json:"bytes"`
}

// Counter adds up a [Summary]. It is not safe for concurrent use.
type Counter struct {
	s       Summary
	agents  names[AgentTotals]
	tools   names[ToolTotals]
	models  names[ModelTotals]
	types   names[typeCount]
	open    map[string]time.Duration // the calls without a result, by id
	first   signal.Number
	last    signal.Number
	act     activity
	moved   string // the native id of the last record that counted as moved
	jumped  string
	removed RemovedTotals
}

type typeCount struct {
	name string
	n    int
}

// NewCounter returns a counter that has counted nothing.
func NewCounter() *Counter {
	return &Counter{
		agents: newNames(func(name string) AgentTotals { return AgentTotals{ID: name} }),
		tools:  newNames(func(name string) ToolTotals { return ToolTotals{Name: name} }),
		models: newNames(func(name string) ModelTotals { return ModelTotals{Name: name} }),
		types:  newNames(func(name string) typeCount { return typeCount{name: name} }),
		open:   map[string]time.Duration{},
		act:    activity{width: time.Millisecond},
	}
}

// Add counts a signal that took effect at a session time. It keeps no part of s.
func (c *Counter) Add(at time.Duration, s *signal.Signal) {
	c.s.Signals++
	if n := s.Timestamp; n.IsSet() {
		if !c.first.IsSet() || n.Float64() < c.first.Float64() {
			c.first = n
		}
		if !c.last.IsSet() || n.Float64() > c.last.Float64() {
			c.last = n
		}
	}
	c.metadata(s.Metadata)
	switch s.Type {
	case recording.TypeRecording:
		if c.s.Origin == nil {
			c.s.Origin = &RecordedOrigin{
				Format: clone(s.Payload.TextOf("format")), Session: clone(s.Payload.TextOf("session")),
				TimeSource: clone(s.Payload.TextOf("timeSource")), Options: append(signal.Value(nil), s.Payload...),
			}
		}
		return
	case recording.TypeRemark:
		if c.s.Remarks++; len(c.s.RemarkList) < MaxRemarks {
			c.s.RemarkList = append(c.s.RemarkList, ImportRemark{clone(s.Payload.TextOf("kind")), clone(s.Payload.TextOf("message"))})
		}
		return
	case recording.TypeEnd:
		c.s.Complete = true
		return
	}
	c.act.add(at)
	c.payload(at, s)
}

// payload counts what a signal says.
func (c *Counter) payload(at time.Duration, s *signal.Signal) {
	p := s.Payload
	switch s.Type {
	case "task_dispatch":
		from, to := p.TextOf("from"), p.TextOf("to")
		if from == recording.User {
			c.s.Prompts++
		} else {
			c.s.Tasks++
		}
		if to != "" && to != recording.User {
			agent := c.agents.of(to)
			if agent.Tasks++; agent.Tasks == 1 && from != recording.User && from != to && agent.ID != Others {
				agent.Parent = clone(from)
			}
		}
		c.agent(from)
	case "text_delta":
		c.s.Texts++
		c.agent(p.TextOf("agentId")).Texts++
	case "thinking":
		c.s.Thoughts++
		c.agent(p.TextOf("agentId")).Thoughts++
	case "tool_call":
		c.s.ToolCalls++
		c.agent(p.TextOf("agentId")).ToolCalls++
		c.tools.of(p.TextOf("toolName")).Calls++
		if id := p.TextOf("callId"); id != "" {
			if _, again := c.open[id]; again || len(c.open) < MaxOpen {
				c.open[clone(id)] = at
			}
		}
	case "tool_result":
		c.result(at, p)
	case "token_usage":
		c.usage(s)
	case "agent_state_change":
		c.s.StateChanges++
		c.agent(p.TextOf("agentId"))
	case "error":
		if p.TextOf("severity") == recording.Warning {
			c.s.Warnings++
			c.agent(p.TextOf("agentId"))
			break
		}
		c.s.Errors++
		c.agent(p.TextOf("agentId")).Errors++
	case "completion":
		c.s.Completions++
		if !p.BoolOf("success") {
			c.s.Failed++
		}
		c.agent(p.TextOf("agentId"))
	default:
		if _, wellKnown := signal.PayloadFields(s.Type); wellKnown {
			break
		}
		c.types.of(s.Type).n++
		if isUnreadable(s.Type) {
			c.s.Unreadable++
		}
	}
}

// agent returns the totals of an agent. Those of the user and of no agent are dropped.
func (c *Counter) agent(id string) *AgentTotals {
	if id == "" || id == recording.User {
		return new(AgentTotals)
	}
	return c.agents.of(id)
}

// result counts the result of a tool.
func (c *Counter) result(at time.Duration, p signal.Value) {
	c.s.ToolResults++
	tool := c.tools.of(p.TextOf("toolName"))
	tool.Results++
	agent := c.agent(p.TextOf("agentId"))
	if !p.BoolOf("success") {
		c.s.Failures++
		tool.Failures++
		agent.Failures++
	}
	id := p.TextOf("callId")
	began, open := c.open[id]
	if !open {
		return
	}
	delete(c.open, id)
	took := float64(max(at-began, 0)) / float64(time.Millisecond)
	tool.Timed++
	tool.TotalMS += took
	tool.MaxMS = max(tool.MaxMS, took)
}

// usage counts the tokens of a message.
func (c *Counter) usage(s *signal.Signal) {
	p, m := s.Payload, s.Metadata
	cost, _ := p.Member("cost").Float64()
	u := TokenTotals{
		Prompt: whole(p.Member("promptTokens")), Completion: whole(p.Member("completionTokens")),
		CacheRead: whole(m.Member("cacheReadTokens")), CacheWrite: whole(m.Member("cacheWriteTokens")),
		Reasoning: whole(m.Member("reasoningTokens")), Cost: cost,
	}
	c.s.Messages++
	c.s.Tokens.add(&u)
	agent := c.agent(p.TextOf("agentId"))
	agent.Messages++
	agent.Tokens.add(&u)
	if name := p.TextOf("model"); name != "" {
		model := c.models.of(name)
		model.Messages++
		model.Tokens.add(&u)
	}
}

// whole returns a count of tokens: a whole number that is not negative, of any kind.
func whole(v signal.Value) int64 {
	if n, ok := v.Int64(); ok {
		return max(n, 0)
	}
	if f, ok := v.Float64(); ok && f > 0 && f < 1<<62 {
		return int64(f)
	}
	return 0
}

// metadata counts what the import and a redaction noted about a signal.
func (c *Counter) metadata(m signal.Value) {
	for name, v := range m.Members() {
		switch name {
		case "skewMs":
			if ms, ok := v.Float64(); ok {
				c.s.Skew.MaxMS = max(c.s.Skew.MaxMS, ms)
				if id := m.Member("native").TextOf("id"); id == "" || id != c.moved {
					c.s.Skew.Moved++
					c.moved = clone(id)
				}
			}
		case "clockAhead":
			if ahead, _ := v.Bool(); ahead {
				if id := m.Member("native").TextOf("id"); id == "" || id != c.jumped {
					c.s.Skew.Jumped++
					c.jumped = clone(id)
				}
			}
		case "cutBytes":
			c.s.Cut++
		case redact.NoteName:
			for kind, n := range v.Members() {
				if n, ok := n.Int64(); ok && n > 0 {
					c.redacted(kind, n)
				}
			}
		case content.NoteName:
			if v.Kind() == signal.KindObject {
				c.removed.Parts += v.IntOf("parts")
				c.removed.Bytes += v.IntOf("bytes")
			}
		}
	}
}

func (c *Counter) redacted(kind string, n int64) {
	if c.s.Redactions == nil {
		c.s.Redactions = map[string]int64{}
	}
	if _, known := c.s.Redactions[kind]; !known {
		if len(c.s.Redactions) >= MaxNames {
			kind = Others
		}
		kind = clone(kind)
	}
	c.s.Redactions[kind] += n
}

// Summary returns what was counted so far. The counter can go on.
func (c *Counter) Summary() *Summary {
	s := c.s
	s.Agents, s.Tools, s.Models = c.agents.all(), c.tools.all(), c.models.all()
	s.Unanswered = len(c.open)
	if c.first.IsSet() {
		s.First, s.Last = c.first.Value(), c.last.Value()
	}
	if c.removed != (RemovedTotals{}) {
		removed := c.removed
		s.Removed = &removed
	}
	s.Activity = c.act.view()
	if types := c.types.all(); len(types) > 0 {
		s.OtherTypes = map[string]int{}
		for _, t := range types {
			s.OtherTypes[t.name] = t.n
		}
	}
	if s.RemarkList == nil {
		s.RemarkList = []ImportRemark{}
	}
	return &s
}
