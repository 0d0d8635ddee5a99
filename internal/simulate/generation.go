package simulate

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/signal"
)

// generation is one attempt at an answer.
type generation struct {
	who     *puppet
	do      *generating
	live    *sajou.Generation
	reqID   string
	attempt int // from 1
	words   []string
	began   time.Duration
	asked   bool // its intent waits for its outcome
	over    bool
}

// generate begins an attempt, by what the puppet knows then.
func (p *play) generate(ctx context.Context, who *puppet, do *generating, reqID string, attempt int) error {
	if who.hand == nil {
		return nil // it has left
	}
	text := do.words
	if attempt > 1 && do.hasNewWords {
		text = do.wordsAgain
	}
	g := &generation{who: who, do: do, reqID: reqID, attempt: attempt, began: p.now}
	g.words = strings.Fields(newFiller(who.view, "").text(text))
	var err error
	g.live, err = who.hand.Begin(ctx, agents.TokenRequest{
		ReqID: reqID, ContextSeq: who.context(), Reads: do.reads, Classes: do.classes, Deadline: do.deadline, Budget: do.budget,
	})
	if r, ok := errors.AsType[*agents.Rejection](err); ok {
		return p.say(&Event{
			What: Asked, Agent: who.registration.AgentID, ReqID: reqID, Kind: do.intent.kind, Status: agents.Rejected.String(),
			Code: r.Code, Reason: r.Reason,
		})
	}
	if err != nil {
		return err
	}
	token := g.live.Token()
	most := maxWords
	if token.Budget > 0 {
		most = int(min(token.Budget, maxWords))
	}
	g.words = g.words[:min(len(g.words), most)]
	if err := p.say(&Event{
		What: Began, Agent: who.registration.AgentID, ReqID: reqID, ContextSeq: token.ContextSeq, Attempt: attempt,
		Of: len(g.words), Until: token.Deadline,
	}); err != nil {
		return err
	}
	p.running = append(p.running, g)
	p.at(p.now+g.after(len(g.words)), func(ctx context.Context) error { return p.finish(ctx, g) })
	return nil
}

// after returns how long it takes to yield so many words.
func (g *generation) after(words int) time.Duration {
	d := time.Duration(words) * g.do.perToken
	if words > g.do.stallAfter || words == len(g.words) {
		d += g.do.stall
	}
	return d
}

// yielded returns how many words there are by now.
func (g *generation) yielded(now time.Duration) int {
	n := 0
	for n < len(g.words) && g.began+g.after(n+1) <= now {
		n++
	}
	return n
}

// finish makes the intent of what was generated.
func (p *play) finish(ctx context.Context, g *generation) error {
	if g.over {
		return nil
	}
	g.asked = true
	answer := strings.Join(g.words, " ")
	record := append([]byte(`{"text":`), appendText(nil, answer)...)
	v, err := signal.ParseValue(append(strconv.AppendInt(append(record, `,"tokens":`...), int64(len(g.words)), 10), '}'))
	if err != nil {
		return err
	}
	if err := g.live.Answer(ctx, v); err != nil {
		return err
	}
	in := g.do.intent.intent(g.who.registration.AgentID, g.reqID, newFiller(g.who.view, answer))
	in.ContextSeq = g.live.Token().ContextSeq
	return p.ask(ctx, in, g)
}

// interruptions tells which generations are in vain, and what their agents do
// about it.
func (p *play) interruptions(ctx context.Context) error {
	running := p.running
	p.running = nil
	for i, g := range running {
		if g.over {
			continue
		}
		select {
		case <-g.live.Context().Done():
		default:
			p.running = append(p.running, g)
			continue
		}
		if err := p.interrupted(ctx, g); err != nil {
			p.running = append(p.running, running[i+1:]...)
			return err
		}
	}
	return nil
}

func (p *play) interrupted(ctx context.Context, g *generation) error {
	why, ok := errors.AsType[*sajou.Interrupted](context.Cause(g.live.Context()))
	if !ok {
		if err := ctx.Err(); err != nil {
			return err
		}
		g.over = true // it has become its intent
		return nil
	}
	if err := p.say(&Event{
		What: Interrupted, Agent: why.Agent, ReqID: g.reqID, Reason: why.Reason, Attempt: g.attempt,
		Tokens: g.yielded(p.now), Of: len(g.words),
	}); err != nil {
		return err
	}
	if g.asked {
		return nil // its intent will be refused, or was just in time
	}
	g.over = true
	if !strings.HasPrefix(why.Reason, agents.ReasonStale) {
		return nil
	}
	return p.renew(ctx, g)
}

// refused does what is to be done when the intent of a generation was refused.
func (p *play) refused(ctx context.Context, g *generation, r *agents.Rejection) error {
	g.over = true
	if r.Recovery == agents.Regenerate && !r.Code.Final() {
		return p.renew(ctx, g)
	}
	return g.live.End(ctx, string(r.Code))
}

// renew begins anew what was in vain, unless that has been often enough. Before, a
// slow agent reads what there is.
func (p *play) renew(ctx context.Context, g *generation) error {
	if g.attempt > g.do.regenerate {
		if err := p.say(&Event{What: GaveUp, Agent: g.who.registration.AgentID, ReqID: g.reqID}); err != nil {
			return err
		}
		return g.live.End(ctx, "gave_up")
	}
	p.at(p.now+g.do.again, func(ctx context.Context) error {
		if err := p.readAll(ctx, g.who); err != nil {
			return err
		}
		return p.generate(ctx, g.who, g.do, g.reqID, g.attempt+1)
	})
	return nil
}
