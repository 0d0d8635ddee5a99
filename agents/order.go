package agents

import (
	"cmp"
	"slices"
	"strings"
)

// Submission is something asked for in a quantum: an intent, or a draft by
// whoever may say what happens.
type Submission struct {
	Intent *Intent
	Draft  *Draft
	// UUID of a draft's effect; "" means one that is derived from the world and
	// the effect's number. That of an intent's effect is always derived.
	UUID string
	// Priority of a draft.
	Priority int
	// SimTime is when it is to happen, if Timed; else with its quantum.
	SimTime float64
	Timed   bool
}

// untimely refuses a submission whose time is none.
func (s *Submission) untimely() *Rejection {
	if !s.Timed || finite(s.SimTime) {
		return nil
	}
	var in Intent
	switch {
	case s.Intent != nil:
		in = *s.Intent
	case s.Draft != nil:
		in.AgentID = s.Draft.SourceID
	}
	return reject(&in, InvalidIntent, "sim_time is no finite number")
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

// What closes a quantum.
const (
	CloseSubmit = ""      // a lone request: no record is made of it
	CloseTick   = "tick"  // the authority's tick
	CloseFlush  = "flush" // somebody asked for it
	CloseBatch  = "batch" // all of an atomic batch are there
)

// place is where a submission stands in the order of its quantum.
type place struct {
	index    int
	sub      *Submission
	time     float64
	priority int
	source   string
	uuid     string
	content  string
}

// effect returns the effect that an intent becomes.
func (p *place) effect(seq uint64, time float64) Effect {
	in := p.sub.Intent
	version := in.SchemaVersion
	if version == "" {
		version = SchemaVersion
	}
	return Effect{p.uuid, in.Kind, in.Payload, seq, time, in.AgentID, version, in.ReqID}
}

// order sorts a quantum by (sim_time, priority descending, source_id, uuid). A
// draft without a uuid has its content's digest in its place, and what is still
// equal goes by content too, so that the order in which they came never matters.
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
				p.content = content(s.Intent.Value())
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
