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
	uuid     string // of an intent, derived; of a draft, "" unless it is given
	given    string // the uuid of a draft that has one
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

// order sorts a quantum by (sim_time, priority descending, source_id), which is the
// multi-agent design's order between sources. Submissions of one source that are equal
// so far keep their order in subs, that of asking, except that drafts with a given uuid
// come after them, in the order of uuids. An intent's uuid is a digest and would shuffle
// what its agent asked for. So the order in which different sources arrive never matters.
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
		case s.Draft != nil:
			p.source, p.priority, p.uuid = s.Draft.SourceID, s.Priority, s.UUID
			p.given = p.uuid
		}
		places = append(places, p)
	}
	if q.By != CloseBatch {
		slices.SortStableFunc(places, func(a, b place) int {
			return cmp.Or(
				cmp.Compare(a.time, b.time),
				cmp.Compare(b.priority, a.priority),
				strings.Compare(a.source, b.source),
				strings.Compare(a.given, b.given),
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
