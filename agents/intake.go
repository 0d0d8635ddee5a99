package agents

import (
	"fmt"
	"slices"
	"time"

	"github.com/sajou-dev/sajou-go/agents/flow"
	"github.com/sajou-dev/sajou-go/agents/internal/jsonvalue"
)

// Intake queues submissions until their quantum closes. It is not part of the state:
// after a restart clients submit again what had no outcome. It has no lock.
type Intake struct {
	queues map[string]*agentQueue
	held   int
	ticket uint64
	cursor string // the agent that had the last turn
}

// agentQueue holds the waiting submissions of one agent.
type agentQueue struct {
	levels [3][]Ticketed // the most urgent first; each in the order of tickets
	count  int
	tally  tally
}

// Ticketed is a submission that waits.
type Ticketed struct {
	Ticket uint64 // names it among those that wait
	Submission
}

// EnqueueResult is the result of [Intake.Offer].
type EnqueueResult struct {
	// Ticket is that of the submission, or of an equal request that waits already;
	// 0 if it does not wait.
	Ticket uint64
	Joined bool // an equal request waits already
	// Outcome is the answer if it does not wait: a duplicate, or a rejection.
	Outcome Outcome
	// Shed is the submission that was dropped for it, and Refusal its rejection.
	Shed    *Ticketed
	Refusal *Rejection
}

// pressureRecovery is what a client does about a refusal under backpressure.
func pressureRecovery(p flow.Backpressure) Recovery {
	switch p {
	case flow.PressureShed:
		return ShedOldest
	case flow.PressureDrop:
		return DropNewest
	default:
		return DeferIntent
	}
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

// Offer queues a submission that the core would admit: it checks idempotency,
// registration, permission and quota, against which waiting submissions count, and then
// the depth of the queue (the multi-agent design, "Ordering and Time Authority"). A final
// refusal can only be recorded when its quantum is decided, so a submission that would
// get one is queued too.
func (i *Intake) Offer(c *Core, now time.Duration, s Submission) EnqueueResult {
	if i.queues == nil {
		i.queues = map[string]*agentQueue{}
	}
	if r := s.untimely(); r != nil {
		return EnqueueResult{Outcome: Outcome{Rejection: r}} // no quantum would take it
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
		if l, ok := i.queues[source]; ok {
			if t, ok := l.find(s.Intent.ReqID); ok {
				return EnqueueResult{Ticket: t.Ticket, Joined: true}
			}
		}
		o, answered := c.admit(max(now, c.now), s.Intent, i.tally(source))
		if answered && (o.Rejection == nil || o.Status == Duplicate || !o.Rejection.Code.Final()) {
			return EnqueueResult{Outcome: o}
		}
		p = c.priority(s.Intent)
	case s.Draft != nil:
		source, settings = s.Draft.SourceID, &c.config.Settings
	default:
		return EnqueueResult{Outcome: Outcome{Rejection: &Rejection{Code: ErrInvalidIntent, Recovery: ModifyIntent}}}
	}
	l := i.queues[source]
	if l == nil {
		l = &agentQueue{}
	}
	var offered EnqueueResult
	if l.count >= settings.QueueDepth {
		in := s.Intent
		if in == nil {
			in = &Intent{AgentID: source}
		}
		full := func(in *Intent) *Rejection {
			r := reject(in, ErrQueueFull, "%d wait, policy %s", l.count, settings.Pressure)
			r.Recovery = pressureRecovery(settings.Pressure)
			return r
		}
		if settings.Pressure != flow.PressureShed {
			return EnqueueResult{Outcome: Outcome{Rejection: full(in)}}
		}
		oldest := l.oldest()
		if in = oldest.Intent; in == nil {
			in = &Intent{AgentID: source}
		}
		offered.Shed, offered.Refusal = &oldest, full(in)
		i.take(source, l, oldest.Ticket)
	}
	i.queues[source] = l // take deletes an empty queue
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
	if l, ok := i.queues[source]; ok {
		return &l.tally
	}
	return nil
}

// Cancel removes a request of an agent from its queue.
func (i *Intake) Cancel(agent, reqID string) (Ticketed, bool) {
	l, ok := i.queues[agent]
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
	if l, ok := i.queues[source]; ok {
		return l.count
	}
	return 0
}

// Withdraw removes the submission with a ticket.
func (i *Intake) Withdraw(ticket uint64) bool {
	held := i.held
	for source, l := range i.queues {
		i.take(source, l, ticket)
	}
	return i.held < held
}

// Take removes and returns the submissions of the next quantum: at most so many, and
// none that is timed after until. If more wait, agents take turns in the order of their
// ids, each with as many submissions in a round as its weight, its most urgent first.
// The next call goes on behind the agent that had the last turn.
func (i *Intake) Take(c *Core, most int, until float64) []Ticketed {
	if most <= 0 {
		most = i.held
	}
	var out []Ticketed
	sources := jsonvalue.SortedKeys(i.queues)
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
				l := i.queues[source]
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

func (l *agentQueue) next(until float64) (Ticketed, bool) {
	for _, list := range l.levels {
		for _, t := range list {
			if !t.Timed || t.SimTime <= until {
				return t, true
			}
		}
	}
	return Ticketed{}, false
}

func (l *agentQueue) find(reqID string) (Ticketed, bool) {
	for _, list := range l.levels {
		for _, t := range list {
			if t.Intent != nil && t.Intent.ReqID == reqID {
				return t, true
			}
		}
	}
	return Ticketed{}, false
}

func (l *agentQueue) oldest() Ticketed {
	var oldest Ticketed
	for _, list := range l.levels {
		if len(list) > 0 && (oldest.Ticket == 0 || list[0].Ticket < oldest.Ticket) {
			oldest = list[0]
		}
	}
	return oldest
}

// take removes one submission from its queue.
func (i *Intake) take(source string, l *agentQueue, ticket uint64) {
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
		delete(i.queues, source)
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
