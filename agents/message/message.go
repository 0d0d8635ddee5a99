// Package message lets agents talk in a session's world: a member of a room emits
// messages, and receives those that its observation policy allows, and no others.
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
// A [Room] is a session's world as a place to talk. A [Message] is an effect that says
// something: of one of the world's three kinds, Speak, SpeakResponse and
// MessageEmitted, or of a kind that the program names. Kinds are kept apart. A message
// of a registered agent is an intent: permissions, quotas and cooldowns apply, and its
// ReqID makes it happen once. Any other source (a user, a game, a webhook) emits
// drafts, which need no permission.
//
// A message has a channel. Policies decide who receives a public message. Only its
// target and its source receive a private message, and only the team a team message,
// whatever the policies and the kind. The agents' views follow the same rules; see
// [agents.Core.Receives].
//
// # How messages are read
//
// An agent's deltas cannot tell messages apart: a delta describes the new view, and for
// a slow reader one view replaces many deltas. So a subscription reads the log instead.
// It folds the world from its first entry on, for itself, and evaluates for each
// message whether the agent receives it in the world of that moment; the result is the
// same live, later, and on a replay. The log is the buffer: a slow reader loses
// nothing, holds no memory, and delays no one else. Each message is yielded once, in
// the order of global_seq, when it is durable and when the latency of the agent's
// policy has passed.
//
// The price is that each subscription folds the world's effects itself, for its one
// agent. The cost does not depend on the number of agents, but on that of effects.
//
// # Limits
//
// A draft may name any source; the program must decide who may emit drafts. A message
// that was received stays received: a narrower policy later revokes nothing.
//
// docs/glossary.md has the nouns of all packages.
package message

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/agents"
	agentslive "github.com/sajou-dev/sajou-go/agents/live"
	"github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

// ErrInvalid answers a message that cannot be one, whoever says it.
var ErrInvalid = errors.New("message: malformed")

// Room is a session's world as a place to talk. It may be used from many
// goroutines, and there may be many of one session.
type Room struct {
	ses   *sajou.Session
	world *agentslive.Agents
	kinds []string
}

// New returns the room of a session's world. Kinds are the program's own kinds of
// message, beside those of the world; the world's configuration must have them among
// its intent_kinds if agents are to emit them, and also SpeakResponse and
// MessageEmitted.
func New(ses *sajou.Session, kinds ...string) *Room {
	all := []string{world.KindSpeak, world.KindSpeakResponse, world.KindMessageEmitted}
	return &Room{ses, ses.Agents(), append(all, kinds...)}
}

// Member is an agent that joins a room.
type Member struct {
	AgentID string
	// Team is the team whose messages it receives, "" for none.
	Team string
	// Policy, Permissions and Class are as in [agents.Registration].
	Policy      signal.Value
	Permissions []string
	Class       string
}

// Join registers an agent, and creates its entity if there is none: the entity is
// what other agents see of it. A member gets the new team and policy.
func (r *Room) Join(ctx context.Context, m Member) error {
	state, err := r.ses.State(ctx)
	if err != nil {
		return err
	}
	fields := signal.NewObject(2)
	entity, known := session.WorldOf(state).World().Entity(m.AgentID)
	if team, ok := entity.Get("team"); m.Team != "" && (!ok || !slices.Equal(team, signal.Text(m.Team))) {
		fields.Text("team", m.Team)
	}
	draft := agents.EffectDraft{Kind: world.KindEntityUpdated, SourceID: m.AgentID}
	named := signal.NewObject(2).Text("entity_id", m.AgentID)
	if known {
		draft.Payload = named.Add("fields", fields.Value()).Value()
	} else {
		draft.Kind = world.KindEntityCreated
		*fields = append(signal.Object{{Name: "type", Value: signal.Text("agent")}}, *fields...)
		draft.Payload = named.Add("entity_data", fields.Value()).Value()
	}
	if len(*fields) > 0 {
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

// Leave removes an agent from the world. Its entity and its messages stay.
func (r *Room) Leave(ctx context.Context, agentID string) error {
	reader, err := r.world.Agent(ctx, agentID)
	if err != nil {
		return err
	}
	return reader.Leave(ctx)
}

// Message is one message in a room.
type Message struct {
	// Kind is [world.KindSpeak], [world.KindSpeakResponse],
	// [world.KindMessageEmitted] or one of the program's. "" means Speak of an agent,
	// and MessageEmitted of any other source.
	Kind string
	// Channel is [world.ChannelPublic], [world.ChannelTeam] or
	// [world.ChannelPrivate]. "" means private if To is set, or else public.
	Channel string
	// To is the target of a private message.
	To   string
	Text string
	// Payload has further members, an object or absent. Text, Channel and To are set in
	// it. A received message has its complete payload here.
	Payload signal.Value

	// ReqID names the message among those of its agent: emitted twice, it is recorded
	// once. An agent's message must have one, any other must not.
	ReqID string
	// ContextSeq is the GlobalSeq of the last message, or the view_seq of the last
	// observation, that was considered: it is refused as stale if the agent has been
	// told more. Zero means whatever has been told by now.
	ContextSeq uint64
	// Priority orders the messages of one quantum, the greater first. Zero means the
	// agent's default.
	Priority int

	// The other fields are set in received messages, whose ContextSeq and Priority
	// are 0.

	From string
	// GlobalSeq is the agent's own number of the effect: the ViewSeq of the
	// observation by which it is sent the effect. See [agentslive.Observation].
	GlobalSeq uint64
	UUID      string        // of an agent's message
	SimTime   float64       // in seconds
	At        time.Duration // session time
}

// Emit sends a message. It returns once the message is durable. A refusal is an
// [*agents.Rejection]; [agents.ErrStaleContext] occurs only if ContextSeq is set,
// or if other messages arrive so fast that every attempt is stale.
func (r *Room) Emit(ctx context.Context, from string, m Message) (agents.Outcome, error) {
	seq, registered := r.world.LatestViewSeq(from)
	if m.Kind == "" {
		m.Kind = world.KindMessageEmitted
		if registered {
			m.Kind = world.KindSpeak
		}
	}
	payload, err := r.payload(&m)
	if err != nil {
		return agents.Outcome{}, err
	}
	if !registered {
		if m.ReqID != "" {
			return agents.Outcome{}, fmt.Errorf("%w: %q of %q, which is not an agent: only an agent's message has a ReqID", ErrInvalid, m.ReqID, from)
		}
		return r.world.Broadcast(ctx, agents.EffectDraft{Kind: m.Kind, SourceID: from, Payload: payload})
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
		if m.ContextSeq != 0 || attempt >= maxAttempts || !errors.Is(err, agents.ErrStaleContext) {
			return o, err
		}
		// A delta was delivered to the agent between LatestViewSeq and the decision.
		seq, _ = r.world.LatestViewSeq(from)
	}
}

// maxAttempts bounds the attempts to emit a message with the newest context.
const maxAttempts = 16

// payload returns the payload that is recorded, and sets the message's channel.
func (r *Room) payload(m *Message) (signal.Value, error) {
	switch {
	case !slices.Contains(r.kinds, m.Kind):
		return nil, fmt.Errorf("%w: %q is not a kind of message of the room", ErrInvalid, m.Kind)
	case m.Payload != nil && m.Payload.Kind() != signal.KindObject:
		return nil, fmt.Errorf("%w: payload is %v, want an object", ErrInvalid, m.Payload.Kind())
	}
	if m.Payload != nil {
		if _, rest, err := signal.CheckValue(m.Payload); err != nil || len(rest) > 0 {
			return nil, fmt.Errorf("%w: payload is not a valid value", ErrInvalid)
		}
	}
	o := signal.ObjectOf(m.Payload)
	if m.Channel == "" && m.To != "" {
		m.Channel = world.ChannelPrivate
	}
	for _, given := range []struct{ name, value string }{{"text", m.Text}, {"channel", m.Channel}, {"target_id", m.To}} {
		if !utf8.ValidString(given.value) {
			return nil, fmt.Errorf("%w: %s is not valid UTF-8", ErrInvalid, given.name)
		}
		if given.value != "" {
			o.Set(given.name, signal.Text(given.value))
		}
	}
	payload := o.Value()
	said := read(payload)
	switch said.Channel {
	case world.ChannelPublic, world.ChannelTeam:
	case world.ChannelPrivate:
		if said.To == "" {
			return nil, fmt.Errorf("%w: a private message without a target", ErrInvalid)
		}
	default:
		return nil, fmt.Errorf("%w: channel %q, want public, team or private", ErrInvalid, said.Channel)
	}
	return payload, nil
}

// read returns the channel, target and text of a payload.
func read(payload signal.Value) Message {
	m := Message{Payload: payload, Channel: world.ChannelPublic}
	if v, ok := payload.Get("channel"); ok && v.Kind() != signal.KindNull {
		if m.Channel, ok = v.Text(); !ok {
			m.Channel = v.String()
		} else if m.Channel == "" {
			m.Channel = world.ChannelPublic
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
