package agentwire

import (
	"bytes"
	_ "embed" // of the schema
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/jsondoc"
	"github.com/sajou-dev/sajou-go/signal"
)

// ProtocolVersion is the version of the protocol. It is part of the names of the
// subprotocols and of the welcome.
const ProtocolVersion = 1

// The subprotocols of the two sockets.
const (
	SubprotocolAgent = "sajou.agent.v1"
	SubprotocolSim   = "sajou.sim.v1"
)

//go:embed protocol.schema.json
var protocolSchema string

// ProtocolSchema returns the JSON Schema (draft 2020-12) of all messages. Its $defs
// agent_to_server, server_to_agent, sim_to_server and server_to_sim are the messages of
// one direction.
func ProtocolSchema() []byte { return []byte(protocolSchema) }

// channel is a set of messages that a client may send in one place.
type channel uint8

// The channels.
const (
	agentSocket channel = 1 << iota
	simSocket
	postIntents // bodies of requests, where no WebSocket is possible
	postCancel
	postTokens
)

// shape is one message of a client.
type shape struct {
	typ      string
	channels channel
	required []string
	optional []string
}

// shapes are all messages of clients. docs/protocol.md has the same table.
var shapes = []shape{
	{"hello", agentSocket, nil, []string{"token", "view_seq"}},
	{"hello", simSocket, nil, []string{"token", "seq"}},
	{"ack", agentSocket, []string{"view_seq"}, nil},
	{"resync", agentSocket, nil, nil},
	{"intent", agentSocket | postIntents, []string{"req_id", "kind", "context_seq"}, []string{"payload", "priority", "schema_version"}},
	{"intent", simSocket, []string{"req_id", "agent_id", "kind", "context_seq"}, []string{"payload", "priority", "schema_version", "sim_time"}},
	{"begin", agentSocket | postTokens, []string{"req_id"}, []string{"context_seq", "reads", "classes", "deadline_ms", "token_budget"}},
	{"tokens", agentSocket | postTokens, []string{"req_id", "text"}, []string{"count"}},
	{"end", agentSocket | postTokens, []string{"req_id"}, []string{"failed"}},
	{"cancel", agentSocket | postCancel, []string{"req_id"}, nil},
	{"tick", simSocket, []string{"sim_time"}, []string{"delta_time", "frame_number", "source_id"}},
	{"draft", simSocket, []string{"req_id", "kind", "source_id"}, []string{"payload", "schema_version", "uuid", "priority", "sim_time"}},
}

// incoming is a message of a client. Members that are absent are zero.
type incoming struct {
	Type  string
	value signal.Value // the whole message

	ReqID, AgentID, Token, Text, Failed, SourceID, UUID, Kind, SchemaVersion string
	Payload                                                                  signal.Value
	ViewSeq, ContextSeq, Seq                                                 *uint64
	Count, TokenBudget, Priority                                             int64
	FrameNumber                                                              uint64
	DeadlineMS, DeltaTime                                                    float64
	SimTime                                                                  *float64
	Reads, Classes                                                           []string
}

// maxCount bounds the tokens that one message stands for.
const maxCount = 1 << 20

// members read one member each into a message. They return false if the member has
// another type or is out of range.
var members = map[string]func(*incoming, signal.Value) bool{
	"req_id":         func(m *incoming, v signal.Value) bool { return text(&m.ReqID, v) },
	"agent_id":       func(m *incoming, v signal.Value) bool { return text(&m.AgentID, v) },
	"token":          func(m *incoming, v signal.Value) bool { return text(&m.Token, v) },
	"text":           func(m *incoming, v signal.Value) bool { return text(&m.Text, v) },
	"failed":         func(m *incoming, v signal.Value) bool { return text(&m.Failed, v) && m.Failed != "" },
	"source_id":      func(m *incoming, v signal.Value) bool { return text(&m.SourceID, v) },
	"uuid":           func(m *incoming, v signal.Value) bool { return text(&m.UUID, v) },
	"kind":           func(m *incoming, v signal.Value) bool { return text(&m.Kind, v) },
	"schema_version": func(m *incoming, v signal.Value) bool { return text(&m.SchemaVersion, v) },
	"payload": func(m *incoming, v signal.Value) bool {
		m.Payload = v
		return v.Kind() == signal.KindObject
	},
	"view_seq":     func(m *incoming, v signal.Value) bool { return number(&m.ViewSeq, v) },
	"context_seq":  func(m *incoming, v signal.Value) bool { return number(&m.ContextSeq, v) },
	"seq":          func(m *incoming, v signal.Value) bool { return number(&m.Seq, v) },
	"count":        func(m *incoming, v signal.Value) bool { return integer(&m.Count, v, 0, maxCount) },
	"token_budget": func(m *incoming, v signal.Value) bool { return integer(&m.TokenBudget, v, 1, math.MaxInt32) },
	"priority": func(m *incoming, v signal.Value) bool {
		return integer(&m.Priority, v, -agents.MaxPriority, agents.MaxPriority)
	},
	"frame_number": func(m *incoming, v signal.Value) bool {
		var n *uint64
		ok := number(&n, v)
		if ok {
			m.FrameNumber = *n
		}
		return ok
	},
	"deadline_ms": func(m *incoming, v signal.Value) bool { return float(&m.DeadlineMS, v) && m.DeadlineMS > 0 },
	"delta_time":  func(m *incoming, v signal.Value) bool { return float(&m.DeltaTime, v) },
	"sim_time": func(m *incoming, v signal.Value) bool {
		m.SimTime = new(float64)
		return float(m.SimTime, v)
	},
	"reads":   func(m *incoming, v signal.Value) bool { return texts(&m.Reads, v) },
	"classes": func(m *incoming, v signal.Value) bool { return texts(&m.Classes, v) },
}

func text(to *string, v signal.Value) bool {
	s, ok := v.Text()
	*to = strings.Clone(s)
	return ok
}

func texts(to *[]string, v signal.Value) bool {
	if v.Kind() != signal.KindArray {
		return false
	}
	for e := range v.Elements() {
		var s string
		if !text(&s, e) {
			return false
		}
		*to = append(*to, s)
	}
	return true
}

func number(to **uint64, v signal.Value) bool {
	i, ok := v.Int64()
	n := uint64(i)
	*to = &n
	return ok && i >= 0
}

func integer(to *int64, v signal.Value, least, most int64) bool {
	i, ok := v.Int64()
	*to = i
	return ok && i >= least && i <= most
}

func float(to *float64, v signal.Value) (ok bool) {
	*to, ok = v.Float64()
	if i, whole := v.Int64(); whole {
		*to, ok = float64(i), true
	}
	return ok && *to >= 0
}

// badMessage is the error about a message that cannot be read. Its text tells the
// client its own mistake and nothing else.
type badMessage struct {
	ReqID  string // "" if the message has none
	Detail string
}

func (e *badMessage) Error() string { return e.Detail }

// decode reads a message of a client. Members that the message does not have are
// ignored, so that a later minor version may add some.
func decode(in channel, frame []byte) (*incoming, error) {
	v, err := signal.ParseValue(frame)
	if err != nil {
		return nil, &badMessage{Detail: "the message is no JSON text: " + err.Error()}
	}
	if v.Kind() != signal.KindObject {
		return nil, &badMessage{Detail: "the message is not an object"}
	}
	m := &incoming{Type: strings.Clone(v.TextOf("type")), value: v, Count: 1}
	req := strings.Clone(v.TextOf("req_id"))
	if len(req) > agents.MaxReqID {
		return nil, &badMessage{Detail: fmt.Sprintf("/req_id: has more than %d bytes", agents.MaxReqID)}
	}
	for _, s := range shapes {
		if s.typ != m.Type || s.channels&in == 0 {
			continue
		}
		for _, name := range s.required {
			if _, ok := v.Get(name); !ok {
				return nil, &badMessage{req, fmt.Sprintf("/%s: a message %q has it", name, m.Type)}
			}
		}
		for _, list := range [][]string{s.required, s.optional} {
			for _, name := range list {
				if member, ok := v.Get(name); ok && !members[name](m, member) {
					return nil, &badMessage{req, fmt.Sprintf("/%s: has the wrong type or is out of range", name)}
				}
			}
		}
		if m.Type != "hello" && m.Type != "ack" && m.Type != "resync" && m.Type != "tick" && m.ReqID == "" {
			return nil, &badMessage{req, "/req_id: is empty"}
		}
		return m, nil
	}
	return nil, &badMessage{req, "/type: no message of this name is taken here"}
}

// intent returns the intent of a message.
func (m *incoming) intent(agent string) (agents.Intent, error) {
	in, err := agents.ParseIntent(m.value)
	in.AgentID = agent
	return in, err
}

// The messages of the server. Each encodes itself with its type as the first member.
type (
	// welcome ends the handshake.
	welcome struct {
		Type        string   `json:"type"`
		Protocol    int      `json:"protocol"`
		Session     string   `json:"session"`
		Agent       string   `json:"agent,omitempty"`    // of an agent's connection
		Resumed     *bool    `json:"resumed,omitempty"`  // of an agent's connection: the observations after the view_seq of the hello follow
		Window      int      `json:"window,omitempty"`   // of an agent's connection: observations that may be unacknowledged
		Time        string   `json:"time,omitempty"`     // of a simulation: the time authority of the session
		SimTime     *float64 `json:"sim_time,omitempty"` // of a simulation: session time, in seconds
		Seq         *uint64  `json:"seq,omitempty"`      // of a simulation: the entry after which effects are sent
		Waiting     *int     `json:"waiting,omitempty"`  // of a simulation: submissions that wait for a tick
		HeartbeatMS int64    `json:"heartbeat_ms"`
		MaxMessage  int64    `json:"max_message"`
	}

	// observation is one delta.
	observation struct {
		Type          string       `json:"type"`
		ViewSeq       uint64       `json:"view_seq"`
		Patches       signal.Value `json:"patches"`
		ContextDigest string       `json:"context_digest"`
		SchemaVersion string       `json:"schema_version"`
		Full          bool         `json:"full,omitempty"`   // it replaces the whole view
		Missed        uint64       `json:"missed,omitempty"` // deltas that it stands for, beside itself
		AtMS          float64      `json:"at_ms"`
	}

	// outcome answers an intent, a begin that is refused, or a draft.
	outcome struct {
		Type    string         `json:"type"`
		ReqID   string         `json:"req_id"`
		Outcome agents.Outcome `json:"outcome"`
	}

	// begun answers a begin.
	begun struct {
		Type          string  `json:"type"`
		ReqID         string  `json:"req_id"`
		ContextSeq    uint64  `json:"context_seq"`
		ContextDigest string  `json:"context_digest"`
		DeadlineMS    float64 `json:"deadline_ms,omitempty"`
		TokenBudget   int64   `json:"token_budget,omitempty"`
	}

	// stop says that a generation must stop.
	stop struct {
		Type   string      `json:"type"`
		ReqID  string      `json:"req_id"`
		Code   agents.Code `json:"code"`
		Reason string      `json:"reason"`
	}

	// ended says that the answer of a generation is recorded.
	ended struct {
		Type   string `json:"type"`
		ReqID  string `json:"req_id"`
		Finish string `json:"finish"`
		Tokens int64  `json:"tokens"`
	}

	// cancelled answers a cancel.
	cancelled struct {
		Type  string `json:"type"`
		ReqID string `json:"req_id"`
		Found bool   `json:"found"`
	}

	// ticked answers a tick.
	ticked struct {
		Type    string  `json:"type"`
		SimTime float64 `json:"sim_time"`
		Decided int     `json:"decided"`
		Waiting int     `json:"waiting"`
		Seq     uint64  `json:"seq"`
	}

	// effect is an effect that is in the log.
	effect struct {
		Type   string       `json:"type"`
		Seq    uint64       `json:"seq"`
		AtMS   float64      `json:"at_ms"`
		Effect signal.Value `json:"effect"`
	}

	// heartbeat says that the connection lives.
	heartbeat struct {
		Type string `json:"type"`
	}

	// fault answers a message that has no other answer.
	fault struct {
		Type   string    `json:"type"`
		Code   faultCode `json:"code"`
		Detail string    `json:"detail"`
		ReqID  string    `json:"req_id,omitempty"`
	}
)

// faultCode is the code of an error message.
type faultCode string

// The codes of error messages.
const (
	faultMessage      faultCode = "bad_message"   // the message cannot be read
	faultViewSeq      faultCode = "bad_view_seq"  // an ack of something that was not sent
	faultNoGeneration faultCode = "no_generation" // tokens or an end of a generation that does not run
	faultTooMany      faultCode = "too_many"      // more generations than a connection may have
	faultUnavailable  faultCode = "unavailable"   // the store takes no entries, or the server stops: send it again later
	faultTick         faultCode = "bad_tick"      // the session does not take the tick
)

// encode returns a message of the server as one line of JSON. No message of this
// package fails to encode.
func encode(m any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(m); err != nil {
		panic(fmt.Sprintf("agentwire: %T: %v", m, err))
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// unmarshal reads members of a message of the server.
func unmarshal(frame []byte, into any) error { return json.Unmarshal(frame, into) }

// patchOf returns the JSON of a patch.
func patchOf(ops []jsondoc.Operation) signal.Value { return jsondoc.PatchValue(ops) }
