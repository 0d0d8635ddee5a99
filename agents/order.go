package agents

import (
	"cmp"
	"slices"
	"strings"

	"github.com/sajou-dev/sajou-go/agents/internal/jsonvalue"
	"github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/signal"
)

// Submission is one request of a quantum: an intent of an agent, or a draft of the
// program.
type Submission struct {
	Intent *Intent
	Draft  *EffectDraft
	// UUID of a draft's effect; "" means one that is derived from the world and
	// the effect's number. That of an intent's effect is always derived.
	UUID string
	// Priority of a draft.
	Priority int
	// SimTime is when it is to happen, if Timed; else with its quantum.
	SimTime float64
	Timed   bool
}

// EffectDraft is an effect without the members that the core decides: its number, its
// time and, if the submission has none, its uuid.
type EffectDraft struct {
	Kind          string
	Payload       signal.Value
	SourceID      string
	SchemaVersion string
}

// Effect returns the effect that d becomes with what the core decides.
func (d EffectDraft) Effect(uuid string, seq uint64, simTime float64, reqID string) world.Effect {
	return world.Effect{
		UUID: uuid, Kind: d.Kind, Payload: d.Payload, GlobalSeq: seq, SimTime: simTime,
		SourceID: d.SourceID, SchemaVersion: d.SchemaVersion, ReqID: reqID,
	}
}

// untimely refuses a submission whose time is not finite.
func (s *Submission) untimely() *Rejection {
	if !s.Timed || jsonvalue.Finite(s.SimTime) {
		return nil
	}
	var in Intent
	switch {
	case s.Intent != nil:
		in = *s.Intent
	case s.Draft != nil:
		in.AgentID = s.Draft.SourceID
	}
	return reject(&in, ErrInvalidIntent, "sim_time is no finite number")
}

// Quantum is how a quantum closes.
type Quantum struct {
	By string // see CloseSubmit and its like
	// SimTime is the time of the quantum, if Timed: that of a tick. Else it is
	// session time, or, where ticks have the authority, the time of the last one.
	SimTime float64
	Timed   bool
	// Of a tick.
	DeltaTime   float64
	FrameNumber uint64
	SourceID    string
}

// place holds the keys by which a submission is ordered in its quantum.
type place struct {
	index    int
	sub      *Submission
	time     float64
	priority int
	source   string
	uuid     string
	content  string // of an intent with the agent's own number of its context
	exact    string // of an intent as it is
}

// effect returns the effect that an intent becomes.
func (p *place) effect(seq uint64, time float64) world.Effect {
	in := p.sub.Intent
	version := in.SchemaVersion
	if version == "" {
		version = world.SchemaVersion
	}
	return world.Effect{
		UUID: p.uuid, Kind: in.Kind, Payload: in.Payload, GlobalSeq: seq, SimTime: time,
		SourceID: in.AgentID, SchemaVersion: version, ReqID: in.ReqID,
	}
}

// order sorts a quantum by (sim_time, priority descending, source_id, uuid). A
// draft without a uuid has the digest of its content in its place, and submissions that
// are still equal are ordered by content, so that the order of arrival never matters.
func (c *Core) order(q Quantum, now float64, subs []Submission) []place {
	places := make([]place, 0, len(subs))
	for i := range subs {
		s := &subs[i]
		p := place{index: i, sub: s, time: now}
		if s.Timed {
			p.time = s.SimTime
		}
		switch {
		case s.Intent != nil:
			p.source = s.Intent.AgentID
			p.uuid = s.Intent.UUID(c.name)
			p.priority = c.priority(s.Intent)
			if len(subs) > 1 {
				// In the agent's own numbers: in those of the log the order of two
				// intents of one req_id would tell of effects that the agent is not sent.
				p.exact = content(s.Intent.value())
				own := *s.Intent
				own.ContextSeq = c.Number(own.AgentID, own.ContextSeq)
				p.content = content(own.value())
			}
		case s.Draft != nil:
			p.source, p.priority, p.uuid = s.Draft.SourceID, s.Priority, s.UUID
			if len(subs) > 1 {
				p.content = content(s.Draft.Effect("", 0, 0, "").Value())
			}
			if p.uuid == "" {
				p.uuid = p.content
			}
		}
		places = append(places, p)
	}
	if q.By != CloseBatch {
		slices.SortStableFunc(places, func(a, b place) int {
			return cmp.Or(
				cmp.Compare(a.time, b.time),
				cmp.Compare(b.priority, a.priority),
				strings.Compare(a.source, b.source),
				strings.Compare(a.uuid, b.uuid),
				strings.Compare(a.content, b.content),
				strings.Compare(a.exact, b.exact),
			)
		})
	}
	return places
}

func (c *Core) priority(in *Intent) int {
	if !in.Unprioritized {
		return in.Priority
	}
	if a, ok := c.agents[in.AgentID]; ok {
		return a.settings.Priority
	}
	return c.config.Settings.Priority
}
