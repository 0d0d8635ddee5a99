package rl

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/sajou-dev/sajou-go"
)

// AEC is an environment whose agents act one after the other (the agent
// environment cycle): each sees what those before it have done. They take turns in
// the order of [Spec.PossibleAgents]. One that is done has one more turn, before anybody
// else, in which it takes its last observation and reward and does nothing.
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
// It is not safe for use by many goroutines at a time.
type AEC[A any] struct {
	env      *Env[A]
	turns    map[string]*Turn // of those who have a turn yet
	selected string           // whose turn it is; "" for nobody's
	next     string           // whose turn it is after those that are done
}

// Turn is what an agent is told when it is to act.
type Turn struct {
	Agent       string
	Observation Observation
	// Reward is what it has earned since it last acted.
	Reward                float64
	Terminated, Truncated bool
	// Info is of its own last action; only the mask is new.
	Info Info
}

// Done reports whether the agent can act no more: it takes its last turn.
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

// PossibleAgents returns all who may take part, in order.
func (a *AEC[A]) PossibleAgents() []string { return a.env.PossibleAgents() }

// Episode returns the number of the episode, from 1; 0 before there is one.
func (a *AEC[A]) Episode() uint64 { return a.env.Episode() }

// Seed returns what the episode was begun with.
func (a *AEC[A]) Seed() uint64 { return a.env.Seed() }

// Steps returns how many turns were taken, apart from those of agents that were done.
func (a *AEC[A]) Steps() uint64 { return a.env.Steps() }

// Close ends the environment's readers. The world stays as it is.
func (a *AEC[A]) Close() {
	a.env.Close()
	a.turns, a.selected, a.next = nil, "", ""
}

// Reset begins a new episode, see [Env.Reset]. The first of the agents is to act.
func (a *AEC[A]) Reset(ctx context.Context, seed uint64) error {
	a.begin()
	observations, infos, err := a.env.Reset(ctx, seed)
	if err != nil {
		a.Close()
		return err
	}
	a.tell(Result{Observations: observations, Infos: infos}, "")
	return nil
}

// Resume goes on with the newest episode, see [Env.Resume]. Whose turn it is and
// what it has earned is as it was. The [Info] of what was done before the last turn is
// gone, and one that was done may take its last turn again.
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

// begin makes everybody ready for the first turn.
func (a *AEC[A]) begin() {
	a.turns = map[string]*Turn{}
	for _, id := range a.env.possible {
		a.turns[id] = &Turn{Agent: id}
	}
	a.selected, a.next = a.env.possible[0], ""
}

// Agents goes over whose turn it is, in order, until everybody is done. Each time
// a [AEC.Step] is to be taken; without one the same agent comes again.
func (a *AEC[A]) Agents() iter.Seq[string] {
	return func(yield func(string) bool) {
		for a.selected != "" {
			if !yield(a.selected) {
				return
			}
		}
	}
}

// Selected returns whose turn it is, "" if it is nobody's.
func (a *AEC[A]) Selected() string { return a.selected }

// Active returns who has a turn yet, in order.
func (a *AEC[A]) Active() []string {
	return slices.DeleteFunc(a.PossibleAgents(), func(id string) bool { return a.turns[id] == nil })
}

// Last returns what the agent whose turn it is has to go by; the zero Turn if it
// is nobody's.
func (a *AEC[A]) Last() Turn {
	if t := a.turns[a.selected]; t != nil {
		return *t
	}
	return Turn{}
}

// Step takes the turn of the agent that is [AEC.Selected]. Nil asks for nothing; one
// that is done can take no other action. After an error the same call takes it again.
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

// account takes over a step, live or from the log.
func (a *AEC[A]) account(m *mark) {
	for id := range maps.Clone(a.turns) {
		if a.turns[id].Done() {
			delete(a.turns, id) // before anybody acts they have had their last turn
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

// choose selects the first of those that are done, or else who comes next.
func (a *AEC[A]) choose() {
	for _, id := range a.env.possible {
		if t := a.turns[id]; t != nil && t.Done() {
			a.selected = id
			return
		}
	}
	a.selected = a.next
}

// tell gives everybody what a step has brought to light; turn is who acted.
func (a *AEC[A]) tell(r Result, turn string) {
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
