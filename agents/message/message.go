// Package message lets agents talk over a session's world: who joins says things
// and hears what his observation policy lets him hear, and nothing else.
//
//	room := message.New(ses)
//	err := room.Join(ctx, message.Member{AgentID: "ann", Team: "red"})
//	outcome, err := room.Emit(ctx, "ann", message.Message{Text: "hello", ReqID: "1"})
//	for m, err := range room.Subscribe(ctx, "ann", message.Filter{}) {
//		…
//	}
//
// # The nouns
//
// A [Room] is a session's world as a place to talk. A [Message] is an effect by
// which somebody says something: of one of the world's three kinds, Speak,
// SpeakResponse and MessageEmitted, or of a kind that the program names. Kinds are
// never mixed up. What a registered agent emits is an intent: its rights, quotas and
// cooldowns hold, and its ReqID makes it happen once. Who is no agent (a user, a
// game, a webhook) emits drafts, which nobody is asked for leave.
//
// A message has a channel. What is public is heard by policy. What is said in
// private is heard by its target and its source alone, and what is said to a team by
// the team, whatever the policies, of every kind. In the agents' views it is the
// same; see [agents.Core.Hears].
//
// # How messages are read
//
// An agent's deltas cannot tell messages from one another: they say what the view is
// then, and for a reader that was too slow one view takes the place of many. So a
// subscription reads the log instead. It folds the world on from where it begins, for
// itself, and asks of each message whether the agent hears it, in the world of that
// moment; what it says then is the same live, later, and on a replay. The log is
// the buffer: a slow reader loses nothing, holds no memory, and delays nobody. Each
// message comes once, in the order of global_seq, when it is durable and when the
// latency of the agent's policy says that it arrives.
//
// The price is that each subscription folds the world's effects itself, for its one
// agent. It does not grow with how many there are, but with all that happens.
//
// # Limits
//
// What somebody says as a draft is under any name he likes; who may do that is the
// program's matter. A message that was heard stays heard: a policy that is narrowed
// later takes nothing back.
package message

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/tinylib/msgp/msgp"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/signal"
)

// ErrInvalid answers a message that cannot be one, whoever says it.
var ErrInvalid = errors.New("message: malformed")

// Room is a session's world as a place to talk. It may be used from many
// goroutines, and there may be many of one session.
type Room struct {
	ses   *sajou.Session
	world *sajou.Agents
	kinds []string
}

// New returns the room of a session's world. Kinds are the program's own kinds of
// message, beside those of the world; the world's configuration must have them among
// its intent_kinds if agents are to emit them, and also SpeakResponse and
// MessageEmitted.
func New(ses *sajou.Session, kinds ...string) *Room {
	all := []string{agents.KindSpeak, agents.KindSpeakResponse, agents.KindMessageEmitted}
	return &Room{ses, ses.Agents(), append(all, kinds...)}
}

// Member is who joins.
type Member struct {
	AgentID string
	// Team is whose team messages it hears, "" for none.
	Team string
	// Policy, Permissions and Class are as in [agents.Registration].
	Policy      signal.Value
	Permissions []string
	Class       string
}

// Join registers an agent, and makes its entity if there is none: an entity is what
// others see of it. One that has joined already gets the new team and policy.
func (r *Room) Join(ctx context.Context, m Member) error {
	state, err := r.ses.State(ctx)
	if err != nil {
		return err
	}
	fields := object{}
	entity, known := sajou.WorldOf(state).World().Entity(m.AgentID)
	if team, ok := entity.Get("team"); m.Team != "" && (!ok || !slices.Equal(team, text(m.Team))) {
		fields = append(fields, member{"team", text(m.Team)})
	}
	draft := agents.Draft{Kind: agents.KindEntityUpdated, SourceID: m.AgentID}
	named := object{{"entity_id", text(m.AgentID)}}
	if known {
		draft.Payload = append(named, member{"fields", fields.value()}).value()
	} else {
		draft.Kind = agents.KindEntityCreated
		fields = append(object{{"type", text("agent")}}, fields...)
		draft.Payload = append(named, member{"entity_data", fields.value()}).value()
	}
	if len(fields) > 0 {
		if _, err := r.world.Broadcast(ctx, draft); err != nil {
			return err
		}
	}
	reader, err := r.world.RegisterAs(ctx, agents.Registration{
		AgentID: m.AgentID, Policy: m.Policy, Permissions: m.Permissions, Class: m.Class,
	})
	if err != nil {
		return err
	}
	reader.Close() // messages are read from the log
	return nil
}

// Leave takes an agent out. Its entity stays, and what it said.
func (r *Room) Leave(ctx context.Context, agentID string) error {
	reader, err := r.world.Agent(ctx, agentID)
	if err != nil {
		return err
	}
	return reader.Leave(ctx)
}

// Message is something that is said.
type Message struct {
	// Kind is [agents.KindSpeak], [agents.KindSpeakResponse],
	// [agents.KindMessageEmitted] or one of the program's. "" means Speak of an agent,
	// and MessageEmitted of any other source.
	Kind string
	// Channel is [agents.ChannelPublic], [agents.ChannelTeam] or
	// [agents.ChannelPrivate]. "" means private if To is set, or else public.
	Channel string
	// To is the entity that a private message is for.
	To   string
	Text string
	// Payload is what else is said, an object or absent. Text, Channel and To go into
	// it. Of a message that was received it is all there is.
	Payload signal.Value

	// ReqID names the message among those of its agent: emitted twice, it is said
	// once. An agent's message must have one, and any other can have none.
	ReqID string
	// ContextSeq is the GlobalSeq of the last message, or the view_seq of the last
	// observation, that was considered: it is refused as stale if the agent has been
	// told more. Zero means whatever has been told by now.
	ContextSeq uint64
	// Priority orders what is said in one quantum, the greater first. Zero means the
	// agent's default.
	Priority int

	// Of a message that was received: who said it, its place in the world and its
	// name, and when it was said and when the agent is told. ContextSeq and Priority are 0.

	From      string
	GlobalSeq uint64
	UUID      string
	SimTime   float64       // in seconds
	At        time.Duration // session time
	Seq       eventlog.Seq  // of the entry
}

// Emit says something. It returns once that is durable. If it is refused the error
// is an [*agents.Rejection]; [agents.StaleContext] comes only if ContextSeq is set, or
// if others say so much that the present is over too soon.
func (r *Room) Emit(ctx context.Context, from string, m Message) (agents.Outcome, error) {
	seq, registered := r.world.LatestViewSeq(from)
	if m.Kind == "" {
		m.Kind = agents.KindMessageEmitted
		if registered {
			m.Kind = agents.KindSpeak
		}
	}
	payload, err := r.payload(&m)
	if err != nil {
		return agents.Outcome{}, err
	}
	if !registered {
		if m.ReqID != "" {
			return agents.Outcome{}, fmt.Errorf("%w: %q of %q, who is no agent: only agents' requests are remembered", ErrInvalid, m.ReqID, from)
		}
		return r.world.Broadcast(ctx, agents.Draft{Kind: m.Kind, SourceID: from, Payload: payload})
	}
	in := agents.Intent{
		Kind: m.Kind, Payload: payload, AgentID: from, ReqID: m.ReqID,
		Priority: m.Priority, Unprioritized: m.Priority == 0, ContextSeq: m.ContextSeq,
	}
	for attempt := 0; ; attempt++ {
		if m.ContextSeq == 0 {
			in.ContextSeq = seq
		}
		o, err := r.world.Submit(ctx, in)
		if m.ContextSeq != 0 || attempt >= maxAttempts || !errors.Is(err, agents.StaleContext) {
			return o, err
		}
		// Something was told to the agent between the look and the decision.
		seq, _ = r.world.LatestViewSeq(from)
	}
}

// maxAttempts bounds how often a message that goes by the present is tried.
const maxAttempts = 16

// payload makes what is recorded of a message, and says what its channel is.
func (r *Room) payload(m *Message) (signal.Value, error) {
	switch {
	case !slices.Contains(r.kinds, m.Kind):
		return nil, fmt.Errorf("%w: %q is no kind of message", ErrInvalid, m.Kind)
	case m.Payload != nil && m.Payload.Kind() != signal.KindObject:
		return nil, fmt.Errorf("%w: payload is %v, want an object", ErrInvalid, m.Payload.Kind())
	}
	if m.Payload != nil {
		if _, rest, err := signal.CheckValue(m.Payload); err != nil || len(rest) > 0 {
			return nil, fmt.Errorf("%w: payload is no value", ErrInvalid)
		}
	}
	o := object{}
	for name, v := range m.Payload.Members() {
		o = append(o, member{name, v})
	}
	if m.Channel == "" && m.To != "" {
		m.Channel = agents.ChannelPrivate
	}
	for _, given := range []struct{ name, value string }{{"text", m.Text}, {"channel", m.Channel}, {"target_id", m.To}} {
		if !utf8.ValidString(given.value) {
			return nil, fmt.Errorf("%w: %s is no UTF-8", ErrInvalid, given.name)
		}
		if given.value != "" {
			o.set(given.name, text(given.value))
		}
	}
	payload := o.value()
	said := read(payload)
	switch said.Channel {
	case agents.ChannelPublic, agents.ChannelTeam:
	case agents.ChannelPrivate:
		if said.To == "" {
			return nil, fmt.Errorf("%w: a private message to nobody", ErrInvalid)
		}
	default:
		return nil, fmt.Errorf("%w: channel %q, want public, team or private", ErrInvalid, said.Channel)
	}
	return payload, nil
}

// read returns what a payload says: channel, target and text.
func read(payload signal.Value) Message {
	m := Message{Payload: payload, Channel: agents.ChannelPublic}
	if v, ok := payload.Get("channel"); ok && v.Kind() != signal.KindNull {
		if m.Channel, ok = v.Text(); !ok {
			m.Channel = v.String()
		} else if m.Channel == "" {
			m.Channel = agents.ChannelPublic
		}
	}
	if v, ok := payload.Get("target_id"); ok {
		m.To, _ = v.Text()
	}
	for _, name := range []string{"text", "message"} {
		if v, ok := payload.Get(name); ok {
			m.Text, _ = v.Text()
			break
		}
	}
	return m
}

// object is an object under construction.
type object []member

type member struct {
	name  string
	value signal.Value
}

func (o *object) set(name string, v signal.Value) {
	for i := range *o {
		if (*o)[i].name == name {
			(*o)[i].value = v
			return
		}
	}
	*o = append(*o, member{name, v})
}

func (o object) value() signal.Value {
	dst := msgp.AppendMapHeader(nil, uint32(len(o)))
	for _, m := range o {
		dst = append(msgp.AppendString(dst, m.name), m.value...)
	}
	return dst
}

func text(s string) signal.Value { return msgp.AppendString(nil, s) }
