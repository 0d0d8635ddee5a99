package rl

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/sajou-dev/sajou-go"
)

// AEC is an environment whose agents act one after the other (the agent environment
// cycle): each sees the effects of those before it. They act in the order of
// [Spec.PossibleAgents]. An agent that is done has one more turn, before the
// others, in which it gets its last observation and reward and cannot act.
//
//	for agent := range env.Agents() {
//		turn := env.Last()
//		if turn.Done() {
//			err = env.Step(ctx, nil)
//			continue
//		}
//		action := policy(turn.Observation)
//		err = env.Step(ctx, &action)
//	}
//
// It is not safe for concurrent use.
type AEC[A any] struct {
	env      *Env[A]
	turns    map[string]*Turn // of the agents that still have a turn
	selected string           // the agent to act; "" if none
	next     string           // the agent to act after those that are done
}

// Turn is the input of an agent that is to act.
type Turn struct {
	Agent       string
	Observation AgentObservation
	// Reward is the sum of its rewards since it last acted.
	Reward                float64
	Terminated, Truncated bool
	// StepInfo is of its own last action; only the mask is new.
	Info StepInfo
}

// Done reports whether this is the agent's last turn, in which it cannot act.
func (t Turn) Done() bool { return t.Terminated || t.Truncated }

// NewAEC is [New] for agents that act one after the other.
func NewAEC[A any](ses *sajou.Session, spec Spec[A]) (*AEC[A], error) {
	env, err := New(ses, spec)
	if err != nil {
		return nil, err
	}
	a := &AEC[A]{env: env}
	env.follow = a.account
	return a, nil
}

// PossibleAgents returns all agents that may take part, in order.
func (a *AEC[A]) PossibleAgents() []string { return a.env.PossibleAgents() }

// Episode returns the number of the episode, from 1; 0 before there is one.
func (a *AEC[A]) Episode() uint64 { return a.env.Episode() }

// Seed returns the seed of the episode.
func (a *AEC[A]) Seed() uint64 { return a.env.Seed() }

// Steps returns the number of turns, without those of agents that were done.
func (a *AEC[A]) Steps() uint64 { return a.env.Steps() }

// Close closes the environment's readers. It does not change the world.
func (a *AEC[A]) Close() {
	a.env.Close()
	a.turns, a.selected, a.next = nil, "", ""
}

// Reset begins a new episode, see [Env.Reset]. The first agent is to act.
func (a *AEC[A]) Reset(ctx context.Context, seed uint64) error {
	a.begin()
	observations, infos, err := a.env.Reset(ctx, seed)
	if err != nil {
		a.Close()
		return err
	}
	a.tell(StepResult{Observations: observations, Infos: infos}, "")
	return nil
}

// Resume continues the newest episode, see [Env.Resume], with the same agent to act
// and the same rewards. The [StepInfo] of actions before the last turn is lost, and
// an agent that was done may get its last turn again.
func (a *AEC[A]) Resume(ctx context.Context) error {
	a.begin()
	r, err := a.env.Resume(ctx)
	if err != nil {
		a.Close()
		return err
	}
	turn := ""
	if a.env.last != nil {
		turn = a.env.last.Turn
	}
	a.tell(r, turn)
	return nil
}

// begin prepares all agents for the first turn.
func (a *AEC[A]) begin() {
	a.turns = map[string]*Turn{}
	for _, id := range a.env.possible {
		a.turns[id] = &Turn{Agent: id}
	}
	a.selected, a.next = a.env.possible[0], ""
}

// Agents iterates over the agents to act, in order, until all are done. The caller
// calls [AEC.Step] in each iteration; otherwise the same agent comes again.
func (a *AEC[A]) Agents() iter.Seq[string] {
	return func(yield func(string) bool) {
		for a.selected != "" {
			if !yield(a.selected) {
				return
			}
		}
	}
}

// Selected returns the agent to act, "" if there is none.
func (a *AEC[A]) Selected() string { return a.selected }

// Active returns the agents that still have a turn, in order.
func (a *AEC[A]) Active() []string {
	return slices.DeleteFunc(a.PossibleAgents(), func(id string) bool { return a.turns[id] == nil })
}

// Last returns the input of the agent to act, the zero Turn if there is none.
func (a *AEC[A]) Last() Turn {
	if t := a.turns[a.selected]; t != nil {
		return *t
	}
	return Turn{}
}

// Step takes the turn of the agent that is [AEC.Selected]. A nil action does
// nothing; an agent that is done can take no other. After an error, the same call
// takes the turn again.
func (a *AEC[A]) Step(ctx context.Context, action *A) error {
	t := a.turns[a.selected]
	switch {
	case t == nil:
		return ErrReset
	case t.Done() && action != nil:
		return fmt.Errorf("%w: %q is done", ErrAction, t.Agent)
	case t.Done():
		delete(a.turns, t.Agent)
		a.choose()
		return nil
	}
	actions := map[string]A{}
	if action != nil {
		actions[t.Agent] = *action
	}
	r, err := a.env.take(ctx, a.env.Steps()+1, t.Agent, actions)
	if err != nil {
		return err
	}
	a.tell(r, t.Agent)
	return nil
}

// account applies a step, whether it was just taken or read from the log.
func (a *AEC[A]) account(m *mark) {
	for id := range maps.Clone(a.turns) {
		if a.turns[id].Done() {
			delete(a.turns, id) // agents that are done take their last turn before others act
		}
	}
	for _, j := range m.Agents {
		t := a.turns[j.Agent]
		if t == nil {
			continue
		}
		if m.Turn == "" || m.Turn == j.Agent {
			t.Reward = 0
		}
		t.Reward += j.Reward
		t.Terminated, t.Truncated = j.Terminated, j.Truncated
	}
	at := slices.Index(a.env.possible, m.Turn) // -1 after a step of all
	a.next = ""
	for i := range a.env.possible {
		id := a.env.possible[(at+1+i)%len(a.env.possible)]
		if t := a.turns[id]; t != nil && !t.Done() {
			a.next = id
			break
		}
	}
	a.choose()
}

// choose selects the first agent that is done, or else the next one.
func (a *AEC[A]) choose() {
	for _, id := range a.env.possible {
		if t := a.turns[id]; t != nil && t.Done() {
			a.selected = id
			return
		}
	}
	a.selected = a.next
}

// tell passes the result of a step to the agents; turn is the one that acted.
func (a *AEC[A]) tell(r StepResult, turn string) {
	for id, t := range a.turns {
		o, ok := r.Observations[id]
		if !ok {
			continue
		}
		mask := r.Infos[id].ActionMask
		t.Observation = o
		if id == turn || turn == "" {
			t.Info = r.Infos[id]
		}
		t.Info.ActionMask = mask
	}
}
