package agents

import (
	"fmt"
	"slices"
	"time"
)

// Intake is where submissions wait for their quantum to close. It holds no part
// of the state: who waits has been promised nothing, and asks again after a
// restart. It has no lock.
type Intake struct {
	lanes  map[string]*lane
	held   int
	ticket uint64
	cursor string // the agent that had the last turn
}

// lane is what waits of one agent.
type lane struct {
	levels [3][]Ticketed // the most urgent first; each in the order of arrival
	count  int
	tally  tally
}

// Ticketed is a submission that waits.
type Ticketed struct {
	Ticket uint64 // names it among those that wait
	Submission
}

// Offered is what an [Intake] says to a submission.
type Offered struct {
	// Ticket is that of the submission, or of an equal request that waits already;
	// 0 if it does not wait.
	Ticket uint64
	Joined bool // an equal request waits already
	// Outcome is the answer if it does not wait: a duplicate, or a rejection.
	Outcome Outcome
	// Shed is what was dropped for it, and Refusal what to tell it.
	Shed    *Ticketed
	Refusal *Rejection
}

// level returns how urgent a priority is: 0 from 20 on, 1 from 10 on, else 2.
func level(priority int) int {
	switch {
	case priority >= 20:
		return 0
	case priority >= 10:
		return 1
	default:
		return 2
	}
}

// Len returns how many submissions wait.
func (i *Intake) Len() int { return i.held }

// Offer puts a submission in line, if the core would let it in: it asks
// idempotency, registration, permission and quota, in which what waits counts
// already, and then for room. A final refusal is kept only when it is decided, so
// such a submission waits as well.
func (i *Intake) Offer(c *Core, now time.Duration, s Submission) Offered {
	if i.lanes == nil {
		i.lanes = map[string]*lane{}
	}
	if r := s.untimely(); r != nil {
		return Offered{Outcome: Outcome{Rejection: r}} // its quantum would never come
	}
	var source string
	var settings *Settings
	p := s.Priority
	switch {
	case s.Intent != nil:
		source = s.Intent.AgentID
		settings = &c.config.Settings
		if a, ok := c.agents[source]; ok {
			settings = &a.settings
		}
		if l, ok := i.lanes[source]; ok {
			if t, ok := l.find(s.Intent.ReqID); ok {
				return Offered{Ticket: t.Ticket, Joined: true}
			}
		}
		o, answered := c.admit(max(now, c.now), s.Intent, i.tally(source))
		if answered && (o.Rejection == nil || o.Status == Duplicate || !o.Rejection.Code.Final()) {
			return Offered{Outcome: o}
		}
		p = c.priority(s.Intent)
	case s.Draft != nil:
		source, settings = s.Draft.SourceID, &c.config.Settings
	default:
		return Offered{Outcome: Outcome{Rejection: &Rejection{Code: InvalidIntent, Recovery: ModifyIntent}}}
	}
	l := i.lanes[source]
	if l == nil {
		l = &lane{}
	}
	var offered Offered
	if l.count >= settings.QueueDepth {
		in := s.Intent
		if in == nil {
			in = &Intent{AgentID: source}
		}
		full := func(in *Intent) *Rejection {
			r := reject(in, QueueFull, "%d wait, policy %s", l.count, settings.Pressure)
			r.Recovery = settings.Pressure.recovery()
			return r
		}
		if settings.Pressure != PressureShed {
			return Offered{Outcome: Outcome{Rejection: full(in)}}
		}
		oldest := l.oldest()
		if in = oldest.Intent; in == nil {
			in = &Intent{AgentID: source}
		}
		offered.Shed, offered.Refusal = &oldest, full(in)
		i.take(source, l, oldest.Ticket)
	}
	i.lanes[source] = l // it may have gone with its last
	i.ticket++
	offered.Ticket = i.ticket
	l.levels[level(p)] = append(l.levels[level(p)], Ticketed{i.ticket, s})
	l.count++
	i.held++
	if s.Intent != nil {
		l.tally.add(s.Intent.Kind, max(now, c.now), cost(s.Intent.Payload))
	}
	return offered
}

func (i *Intake) tally(source string) *tally {
	if l, ok := i.lanes[source]; ok {
		return &l.tally
	}
	return nil
}

// Cancel takes an agent's request out of the line.
func (i *Intake) Cancel(agent, reqID string) (Ticketed, bool) {
	l, ok := i.lanes[agent]
	if !ok {
		return Ticketed{}, false
	}
	t, ok := l.find(reqID)
	if ok {
		i.take(agent, l, t.Ticket)
	}
	return t, ok
}

// Waiting returns how many submissions of one source wait.
func (i *Intake) Waiting(source string) int {
	if l, ok := i.lanes[source]; ok {
		return l.count
	}
	return 0
}

// Withdraw takes one submission out of the line.
func (i *Intake) Withdraw(ticket uint64) bool {
	held := i.held
	for source, l := range i.lanes {
		i.take(source, l, ticket)
	}
	return i.held < held
}

// Take takes out what comes into the next quantum: what is timed at most until,
// and at most so many. If there is more, agents take turns, each as many as its
// weight in a round, the most urgent of its own first; who had the last turn
// comes last. Those who had no turn stay.
func (i *Intake) Take(c *Core, most int, until float64) []Ticketed {
	if most <= 0 {
		most = i.held
	}
	var out []Ticketed
	sources := sortedKeys(i.lanes)
	if at, ok := slices.BinarySearch(sources, i.cursor); ok || at > 0 {
		if ok {
			at++
		}
		sources = slices.Concat(sources[at:], sources[:at])
	}
	for len(sources) > 0 && len(out) < most {
		sources = slices.DeleteFunc(sources, func(source string) bool {
			weight := c.config.Settings.Weight
			if a, ok := c.agents[source]; ok {
				weight = a.settings.Weight
			}
			for range max(weight, 1) {
				if len(out) >= most {
					return false
				}
				l := i.lanes[source]
				t, ok := l.next(until)
				if !ok {
					return true
				}
				i.take(source, l, t.Ticket)
				out = append(out, t)
				i.cursor = source
				if l.count == 0 {
					return true
				}
			}
			return false
		})
	}
	return out
}

func (l *lane) next(until float64) (Ticketed, bool) {
	for _, list := range l.levels {
		for _, t := range list {
			if !t.Timed || t.SimTime <= until {
				return t, true
			}
		}
	}
	return Ticketed{}, false
}

func (l *lane) find(reqID string) (Ticketed, bool) {
	for _, list := range l.levels {
		for _, t := range list {
			if t.Intent != nil && t.Intent.ReqID == reqID {
				return t, true
			}
		}
	}
	return Ticketed{}, false
}

func (l *lane) oldest() Ticketed {
	var oldest Ticketed
	for _, list := range l.levels {
		if len(list) > 0 && (oldest.Ticket == 0 || list[0].Ticket < oldest.Ticket) {
			oldest = list[0]
		}
	}
	return oldest
}

// take takes one out of its lane.
func (i *Intake) take(source string, l *lane, ticket uint64) {
	for n, list := range l.levels {
		at := slices.IndexFunc(list, func(t Ticketed) bool { return t.Ticket == ticket })
		if at < 0 {
			continue
		}
		if in := list[at].Intent; in != nil {
			l.tally.intents--
			l.tally.tokens -= cost(in.Payload)
		}
		l.levels[n] = slices.Delete(list, at, at+1)
		l.count--
		i.held--
	}
	if l.count == 0 {
		delete(i.lanes, source)
	}
}

// Submissions returns those of a list, for [Core.Decide].
func Submissions(list []Ticketed) []Submission {
	subs := make([]Submission, len(list))
	for i, t := range list {
		subs[i] = t.Submission
	}
	return subs
}

func (t Ticketed) String() string { return fmt.Sprintf("ticket %d", t.Ticket) }
