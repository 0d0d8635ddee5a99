package agentwire

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/server/access"
)

// Quarantine says when an agent may submit nothing for a while: after Refusals of its
// requests within Window, for Length. A refusal counts that a correct client does not
// cause: the request cannot be read, is not permitted, or breaks a rule of the world, or
// a message is malformed. Refusals because of the agent's timing, such as a stale
// context or a quota, do not count. Zero values mean 32, 1 min and 1 min.
type Quarantine struct {
	Refusals       int
	Window, Length time.Duration
}

func (q Quarantine) withDefaults() Quarantine {
	q.Refusals = cmp.Or(q.Refusals, 32)
	q.Window = cmp.Or(q.Window, time.Minute)
	q.Length = cmp.Or(q.Length, time.Minute)
	return q
}

// quarantines counts the refusals of agents. Agents that did nothing wrong in the last
// window take no memory.
type quarantines struct {
	rule Quarantine

	mu     sync.Mutex
	agents map[place]*record // guarded by mu
}

// record is what an agent did wrong.
type record struct {
	began    time.Time // of the window
	refusals int       // in it
	until    time.Time // of the quarantine; zero without one
}

// maxRecords bounds the agents that are watched. Only registered agents are.
const maxRecords = 1 << 16

func newQuarantines(rule Quarantine) quarantines {
	return quarantines{rule: rule, agents: map[place]*record{}}
}

// note counts a refusal of a request of ctx at a time. The begin of a quarantine is a
// security event.
func (q *quarantines) note(ctx context.Context, p place, now time.Time) {
	q.mu.Lock()
	began := q.count(p, now)
	q.mu.Unlock()
	if began {
		access.Note(ctx, access.SecurityEvent{
			Kind: access.AgentQuarantined, Session: p.session, Agent: p.agent,
			Detail: fmt.Sprintf("%d refusals within %v; nothing is taken for %v", q.rule.Refusals, q.rule.Window, q.rule.Length),
		})
	}
}

// count counts a refusal, and reports whether it began a quarantine. The caller holds mu.
func (q *quarantines) count(p place, now time.Time) bool {
	r := q.agents[p]
	if r == nil {
		if len(q.agents) >= maxRecords {
			q.sweep(now)
		}
		if len(q.agents) >= maxRecords {
			return false
		}
		r = &record{began: now}
		q.agents[p] = r
	}
	if now.Sub(r.began) >= q.rule.Window {
		r.began, r.refusals = now, 0
	}
	r.refusals++
	if r.refusals < q.rule.Refusals || now.Before(r.until) {
		return false
	}
	r.began, r.refusals, r.until = now, 0, now.Add(q.rule.Length)
	return true
}

// sweep forgets agents that did nothing wrong lately. The caller holds mu.
func (q *quarantines) sweep(now time.Time) {
	for p, r := range q.agents {
		if now.Sub(r.began) >= q.rule.Window && !now.Before(r.until) {
			delete(q.agents, p)
		}
	}
}

// refusal returns the answer to a request of an agent in quarantine, or nil.
func (q *quarantines) refusal(p place, reqID string, now time.Time) *agents.Rejection {
	q.mu.Lock()
	defer q.mu.Unlock()
	r := q.agents[p]
	if r == nil || !now.Before(r.until) {
		return nil
	}
	failure, _ := agents.ErrQuarantined.Failure()
	return &agents.Rejection{
		Code: agents.ErrQuarantined, Recovery: failure.Recovery, AgentID: p.agent, ReqID: reqID,
		Reason:     fmt.Sprintf("%d requests were refused within %v; correct the client", q.rule.Refusals, q.rule.Window),
		RetryAfter: r.until.Sub(now),
	}
}

// counts reports whether a refusal counts against its agent.
func counts(r *agents.Rejection) bool {
	switch r.Code {
	case agents.ErrForbidden, agents.ErrInvalid, agents.ErrInvalidIntent, agents.ErrVersionMismatch:
		return true
	default:
		return false
	}
}
