package simulate

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go/agents"
	agentslive "github.com/sajou-dev/sajou-go/agents/live"
	"github.com/sajou-dev/sajou-go/signal"
)

// generation is one attempt at an answer.
type generation struct {
	scripted *scriptedAgent
	do       *generating
	live     *agentslive.Generation
	reqID    string
	attempt  int // from 1
	words    []string
	began    time.Duration
	asked    bool // its intent waits for its outcome
	over     bool
}

// generate begins an attempt, based on the last observation that the agent has read.
func (p *play) generate(ctx context.Context, scripted *scriptedAgent, do *generating, reqID string, attempt int) error {
	if scripted.hand == nil {
		return nil // it has left
	}
	text := do.words
	if attempt > 1 && do.hasNewWords {
		text = do.wordsAgain
	}
	g := &generation{scripted: scripted, do: do, reqID: reqID, attempt: attempt, began: p.now}
	g.words = strings.Fields(newFiller(scripted.view, "").text(text))
	var err error
	g.live, err = scripted.hand.Begin(ctx, agents.TokenRequest{
		ReqID: reqID, ContextSeq: scripted.context(), Reads: do.reads, Classes: do.classes, Deadline: do.deadline, Budget: do.budget,
	})
	if r, ok := errors.AsType[*agents.Rejection](err); ok {
		return p.say(&Event{
			What: whatAsked, Agent: scripted.registration.AgentID, ReqID: reqID, Kind: do.intent.kind, Status: agents.Rejected.String(),
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
		What: whatBegan, Agent: scripted.registration.AgentID, ReqID: reqID, ContextSeq: token.ContextSeq, Attempt: attempt,
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

// finish submits the intent that the generation became.
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
	in := g.do.intent.intent(g.scripted.registration.AgentID, g.reqID, newFiller(g.scripted.view, answer))
	in.ContextSeq = g.live.Token().ContextSeq
	return p.ask(ctx, in, g)
}

// interruptions reports the generations that were interrupted, and lets their
// agents begin again.
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
	why, ok := errors.AsType[*agentslive.InterruptedError](context.Cause(g.live.Context()))
	if !ok {
		if err := ctx.Err(); err != nil {
			return err
		}
		g.over = true // its intent was submitted
		return nil
	}
	if err := p.say(&Event{
		What: whatInterrupted, Agent: why.Agent, ReqID: g.reqID, Reason: why.Reason, Attempt: g.attempt,
		Tokens: g.yielded(p.now), Of: len(g.words),
	}); err != nil {
		return err
	}
	if g.asked {
		return nil // the intent is refused, or was decided just before
	}
	g.over = true
	if !strings.HasPrefix(why.Reason, agents.ReasonStale) {
		return nil
	}
	return p.renew(ctx, g)
}

// refused handles the refusal of the intent that a generation became.
func (p *play) refused(ctx context.Context, g *generation, r *agents.Rejection) error {
	g.over = true
	if r.Recovery == agents.Regenerate && !r.Code.Final() {
		return p.renew(ctx, g)
	}
	return g.live.End(ctx, string(r.Code))
}

// renew begins the next attempt, unless regenerate of them were made. An agent with
// reads_every first reads everything that has arrived.
func (p *play) renew(ctx context.Context, g *generation) error {
	if g.attempt > g.do.regenerate {
		if err := p.say(&Event{What: whatGaveUp, Agent: g.scripted.registration.AgentID, ReqID: g.reqID}); err != nil {
			return err
		}
		return g.live.End(ctx, "gave_up")
	}
	p.at(p.now+g.do.again, func(ctx context.Context) error {
		if err := p.readAll(ctx, g.scripted); err != nil {
			return err
		}
		return p.generate(ctx, g.scripted, g.do, g.reqID, g.attempt+1)
	})
	return nil
}
