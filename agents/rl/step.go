package rl

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/session"
)

// Step takes the next step. An agent without an action submits nothing. Refusals
// are in the Infos. After an error, the same call continues the step.
func (e *Env[A]) Step(ctx context.Context, actions map[string]A) (StepResult, error) {
	return e.StepAt(ctx, e.Steps()+1, actions)
}

// StepAt is [Env.Step] for a caller that counts: the step is the next one, or the
// last one, whose result it returns again. Any other is [ErrStep].
func (e *Env[A]) StepAt(ctx context.Context, step uint64, actions map[string]A) (StepResult, error) {
	return e.take(ctx, step, "", actions)
}

// take takes a step; turn is the agent that acts, in an AEC.
func (e *Env[A]) take(ctx context.Context, step uint64, turn string, actions map[string]A) (StepResult, error) {
	switch {
	case e.episode == nil:
		return StepResult{}, ErrReset
	case step == e.Steps() && step > 0:
		return e.result(ctx, e.last)
	case step != e.Steps()+1:
		return StepResult{}, fmt.Errorf("%w: step %d after %d", ErrStep, step, e.Steps())
	case len(e.active) == 0:
		return StepResult{}, fmt.Errorf("%w: everybody is done", ErrReset)
	}
	for _, id := range slices.Sorted(maps.Keys(actions)) {
		if !slices.Contains(e.active, id) {
			return StepResult{}, fmt.Errorf("%w: %q takes no part", ErrAction, id)
		}
	}
	m := e.blank(step, turn)
	outcomes, err := e.act(ctx, m, actions)
	if err != nil {
		return StepResult{}, err
	}
	if err := e.pass(ctx, step); err != nil {
		return StepResult{}, err
	}
	state, err := e.ses.State(ctx)
	if err != nil {
		return StepResult{}, err
	}
	after := session.WorldOf(state).World()
	m.After = state.Head().Seq
	if err := e.judge(m, outcomes, after); err != nil {
		return StepResult{}, err
	}
	if err := e.record(ctx, m); err != nil {
		return StepResult{}, err
	}
	// The step is durable. After an earlier error it is taken again, from here on never.
	for _, id := range e.active {
		if turn == "" || turn == id {
			e.members[id].heed()
		}
	}
	e.before = after
	e.account(m)
	return e.result(ctx, m)
}

// blank returns the record of a step in which nothing happens.
func (e *Env[A]) blank(step uint64, turn string) *mark {
	m := &mark{Episode: e.episode.Episode, Step: step, Turn: turn, prev: e.episode.seq}
	if e.last != nil {
		m.prev = e.last.seq
	}
	for _, id := range e.active {
		m.Agents = append(m.Agents, judgement{Agent: id})
	}
	return m
}

// act submits the actions as one quantum, in the order of agents.
func (e *Env[A]) act(ctx context.Context, m *mark, actions map[string]A) (map[string]agents.Outcome, error) {
	reqID := "rl/" + strconv.FormatUint(m.Episode, 10) + "/" + strconv.FormatUint(m.Step, 10)
	var subs []agents.Submission
	for _, id := range e.active {
		action, ok := actions[id]
		if !ok {
			continue
		}
		in := e.spec.Intent(e.members[id].known, action)
		if in.Kind == "" {
			continue
		}
		in.AgentID, in.ReqID, in.ContextSeq = id, reqID, e.members[id].known.ViewSeq
		subs = append(subs, agents.Submission{Intent: &in})
	}
	outcomes := map[string]agents.Outcome{}
	if len(subs) == 0 {
		return outcomes, nil
	}
	list, err := e.world.Quantum(ctx, subs...)
	if err != nil {
		return nil, err
	}
	for i := range subs {
		outcomes[subs[i].Intent.AgentID] = list[i]
	}
	for i := range m.Agents {
		if o, ok := outcomes[m.Agents[i].Agent]; ok {
			j := &m.Agents[i]
			if j.note(reqID, o); !o.OK() {
				continue
			}
			if j.GlobalSeq, _, err = e.world.GlobalSeq(ctx, j.Agent, reqID); err != nil {
				return nil, err
			}
		}
	}
	return outcomes, nil
}

// judge calls the program's functions for the result of a step.
func (e *Env[A]) judge(m *mark, outcomes map[string]agents.Outcome, after world.ReadOnly) error {
	for i := range m.Agents {
		j := &m.Agents[i]
		t := Transition{j.Agent, m.Episode, m.Step, e.before, after, outcomes[j.Agent]}
		if e.spec.Reward != nil {
			j.Reward = e.spec.Reward(t)
		}
		if math.IsNaN(j.Reward) || math.IsInf(j.Reward, 0) {
			return fmt.Errorf("%w: step %d: a reward of %v for %q", ErrSpec, m.Step, j.Reward, j.Agent)
		}
		j.Terminated = e.spec.Terminated != nil && e.spec.Terminated(t)
		j.Truncated = e.spec.Truncated != nil && e.spec.Truncated(t) || e.spec.MaxSteps > 0 && m.Step >= e.spec.MaxSteps
	}
	return nil
}

// record records the result of a step.
func (e *Env[A]) record(ctx context.Context, m *mark) error {
	drafts, err := e.draft(nil, KindEpisodeStep, m)
	if err != nil {
		return err
	}
	if _, err := e.world.Broadcast(ctx, drafts[0]); err != nil {
		return err
	}
	m.seq = e.ses.Head().Seq
	return nil
}

// result returns the result of a step, with the present observations of its agents.
func (e *Env[A]) result(ctx context.Context, m *mark) (StepResult, error) {
	if err := e.effects(ctx, m); err != nil {
		return StepResult{}, err
	}
	if err := e.world.Settle(ctx); err != nil {
		return StepResult{}, err
	}
	r := StepResult{
		Episode: m.Episode, Step: m.Step,
		Observations: map[string]AgentObservation{}, Rewards: map[string]float64{},
		Terminations: map[string]bool{}, Truncations: map[string]bool{}, Infos: map[string]StepInfo{},
	}
	for i := range m.Agents {
		j := &m.Agents[i]
		j.recall()
		member := e.members[j.Agent]
		if member == nil {
			return StepResult{}, fmt.Errorf("%w: step %d of %q, who takes no part", ErrRecord, m.Step, j.Agent)
		}
		if err := member.listen(ctx, e.world); err != nil {
			return StepResult{}, fmt.Errorf("rl: the observations of %q: %w", j.Agent, err)
		}
		o := member.observation()
		r.Observations[j.Agent] = o
		r.Rewards[j.Agent] = j.Reward
		r.Terminations[j.Agent], r.Truncations[j.Agent] = j.Terminated, j.Truncated
		info := StepInfo{ReqID: j.ReqID, Effect: j.effect, Rejection: j.rejection}
		if e.spec.ActionMask != nil {
			info.ActionMask = e.spec.ActionMask(e.before, o.View)
		}
		r.Infos[j.Agent] = info
	}
	return r, nil
}
