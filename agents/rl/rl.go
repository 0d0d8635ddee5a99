// Package rl runs a session's world as an environment for reinforcement learning, with
// the conventions of PettingZoo: an [Env] takes the actions of all agents at once, an
// [AEC] takes them one after the other.
//
// # The nouns
//
// A [Spec] is the program's part: which agents may take part, the initial world of an
// episode, the intent of an action, rewards, and the end of an episode. [Env.Reset]
// begins an episode, [Env.Step] takes a step of it. An agent gets an
// [AgentObservation]: the view that was delivered to it, by its own policy, and the new
// deltas.
//
//	env, err := rl.New(ses, rl.Spec[string]{…})
//	observations, infos, err := env.Reset(ctx, 42)
//	for len(env.Agents()) > 0 {
//		actions := map[string]string{}
//		for _, agent := range env.Agents() {
//			actions[agent] = policy(observations[agent])
//		}
//		result, err := env.Step(ctx, actions)
//		observations = result.Observations
//	}
//
// Unlike in PettingZoo, a refused action is neither an error nor hidden, but a typed
// rejection in the agent's [StepInfo]; an effect there is the one in the log; and
// spaces are Go types, so there are no methods that return them.
//
// # Steps
//
// All actions of a step are one quantum of the world: they are decided in the order of
// (sim_time, priority, agent, uuid), whatever the order of a map. Then session time
// passes by [Spec.Delta], the program judges the step, and its judgement is recorded.
// So an observation is what was delivered to the agent by the end of the step, and the
// context of the next action is exactly that. In a session of [session.TimeWall] time
// passes by itself. If ticks have the authority ([session.TimeSim]), each step is a
// tick.
//
// # In the log
//
// Everything is an effect of the environment's own source, [Spec.Source], which no
// agent may use.
//
//	EpisodeBegan  {"episode": 1, "seed": 42, "agents": ["a", "b"]}
//	EpisodeStep   {"episode": 1, "step": 1, "turn": "", "after": 31, "agents": [
//	  {"agent": "a", "req_id": "rl/1/1", "global_seq": 12, "reward": 1},
//	  {"agent": "b", "req_id": "rl/1/1", "code": "INTENT_CONFLICT", "reason": "…", "reward": 0, "truncated": true}]}
//
// A reset is one quantum: EpisodeBegan, then all entities of the world are removed and
// those of the new one are created. Then each agent leaves and is registered again, with
// fresh quotas and cooldowns. A step is its actions and then EpisodeStep; after is the
// entry up to which the program saw the world. A replay reads the seed and the rewards,
// and needs neither random numbers nor the program.
//
// # After a crash
//
// [Env.Resume] continues the newest episode of the session. An intent's req_id is
// rl/EPISODE/STEP, which with the agent is its only name. So an interrupted step is
// taken again under its number, and each intent has exactly one outcome: decisions that
// were made stay made. A step with an EpisodeStep is complete: [Env.StepAt] with its
// number returns its result, and submits nothing.
//
// # Limits
//
// The world belongs to the environment: a reset removes everything in it. Effects of
// others between two steps count to the later one. Rewards, ends and masks are the
// program's functions; they must be pure, otherwise two runs differ.
//
// docs/glossary.md has the nouns of all packages.
package rl

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/agents"
	agentslive "github.com/sajou-dev/sajou-go/agents/live"
	"github.com/sajou-dev/sajou-go/agents/view"
	"github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/signal"
)

// Errors, by what the caller does about them.
var (
	// ErrSpec says that the Spec cannot be used, or does not fit the episode
	// that the log has.
	ErrSpec = errors.New("rl: unusable specification")
	// ErrReset says that there is no episode: call Reset.
	ErrReset = errors.New("rl: no episode has begun")
	// ErrAction says that an action is not of an agent that may act now.
	ErrAction = errors.New("rl: action out of place")
	// ErrStep says that a step's number is neither the next nor the last one.
	ErrStep = errors.New("rl: step out of order")
	// ErrRecord says that the log has an episode that this program cannot read.
	ErrRecord = errors.New("rl: unreadable episode")
)

// Spec is an environment, apart from the world's rules, which are its
// configuration ([agentslive.Agents.Configure]). A is the type of actions.
type Spec[A any] struct {
	// PossibleAgents are all agents that may take part, in the order in which they are
	// listed and take turns.
	PossibleAgents []agents.Registration

	// World returns the initial world of an episode, as [world.ParseWorld]
	// reads it, without metadata. All randomness must come from rng, which is seeded.
	World func(seed uint64, rng *rand.Rand) (signal.Value, error)

	// Intent returns the intent of an action of an agent with this view: kind, payload,
	// priority. The environment sets the agent, the req_id and the context_seq. An intent
	// without a kind submits nothing.
	Intent func(v view.View, action A) agents.Intent

	// Reward returns the reward of a step, a finite number. Nil means 0.
	Reward func(Transition) float64
	// Terminated reports whether an agent has reached its end. Nil means never.
	Terminated func(Transition) bool
	// Truncated reports whether an agent is stopped before its end. Nil
	// means never.
	Truncated func(Transition) bool
	// MaxSteps truncates all agents when an episode has so many steps; 0 means no
	// limit. In an AEC each turn is a step.
	MaxSteps uint64

	// ActionMask returns which actions an agent may take next, for its [StepInfo]. It
	// gets the whole world and the agent's view, and so decides how much of the world
	// a mask reveals. Nil means none.
	ActionMask func(w world.ReadOnly, v view.View) []bool

	// Delta is the session time of a step. Zero means a second.
	Delta time.Duration

	// Source is the source_id of the environment's own effects. "" means "environment".
	Source string
}

// Transition is a step as it concerns one agent.
type Transition struct {
	Agent   string
	Episode uint64
	Step    uint64 // from 1
	// Before is the world at the end of the step before, or at the beginning of
	// the episode; After is the world at the end of this one.
	Before, After world.ReadOnly
	// Outcome is that of the agent's intent; zero if it submitted none.
	Outcome agents.Outcome
}

// AgentObservation is what one agent knows at the end of a step.
type AgentObservation struct {
	// View is the view that was delivered to it. The order of members is not defined.
	View view.View
	// Deltas are the observations since it last acted, in order; View includes them.
	// An agent of a parallel Env acts in every step.
	Deltas []agentslive.Observation
}

// StepInfo is the further result of a step for one agent.
type StepInfo struct {
	// ReqID names the intent of its last action; "" if it submitted none.
	ReqID string
	// Effect is the intent's effect, as it is in the log but for its GlobalSeq, which is
	// the agent's own number; nil if there is none.
	Effect *world.Effect
	// Rejection says why there is none.
	Rejection *agents.Rejection
	// ActionMask says which actions it may take next; nil if the Spec has no masks.
	ActionMask []bool
}

// StepResult is the result of a step. Its maps have the agents that took part in
// it.
type StepResult struct {
	Episode      uint64
	Step         uint64 // from 1; 0 before the first
	Observations map[string]AgentObservation
	Rewards      map[string]float64
	Terminations map[string]bool
	Truncations  map[string]bool
	Infos        map[string]StepInfo
}

// Env is an environment whose agents act at once. It is not safe for concurrent
// use.
type Env[A any] struct {
	ses      *sajou.Session
	world    *agentslive.Agents
	spec     Spec[A]
	possible []string

	episode *episode // nil before there is one
	members map[string]*member
	active  []string       // agents that are not done, in the order of possible
	before  world.ReadOnly // the world at the end of the last step
	last    *mark          // of the last step; nil before the first
	follow  func(*mark)    // unless nil, called with each step that is applied
}

// New returns an environment of a session's world. It does nothing before
// [Env.Reset] or [Env.Resume].
func New[A any](ses *sajou.Session, spec Spec[A]) (*Env[A], error) {
	if spec.Delta == 0 {
		spec.Delta = time.Second
	}
	if spec.Source == "" {
		spec.Source = "environment"
	}
	e := &Env[A]{ses: ses, world: ses.Agents(), members: map[string]*member{}}
	for _, r := range spec.PossibleAgents {
		switch {
		case r.AgentID == "" || r.AgentID == spec.Source:
			return nil, fmt.Errorf("%w: an agent cannot be called %q", ErrSpec, r.AgentID)
		case slices.Contains(e.possible, r.AgentID):
			return nil, fmt.Errorf("%w: two agents are called %q", ErrSpec, r.AgentID)
		}
		e.possible = append(e.possible, r.AgentID)
	}
	switch {
	case len(e.possible) == 0:
		return nil, fmt.Errorf("%w: nobody takes part", ErrSpec)
	case spec.World == nil || spec.Intent == nil:
		return nil, fmt.Errorf("%w: want World and Intent", ErrSpec)
	case spec.Delta < 0:
		return nil, fmt.Errorf("%w: a step of %v", ErrSpec, spec.Delta)
	}
	spec.PossibleAgents = slices.Clone(spec.PossibleAgents)
	e.spec = spec
	return e, nil
}

// PossibleAgents returns all agents that may take part, in order.
func (e *Env[A]) PossibleAgents() []string { return slices.Clone(e.possible) }

// Agents returns the agents of the episode that are not done, in order.
func (e *Env[A]) Agents() []string { return slices.Clone(e.active) }

// Episode returns the number of the episode, from 1; 0 before there is one.
func (e *Env[A]) Episode() uint64 {
	if e.episode == nil {
		return 0
	}
	return e.episode.Episode
}

// Seed returns the seed of the episode.
func (e *Env[A]) Seed() uint64 {
	if e.episode == nil {
		return 0
	}
	return e.episode.Seed
}

// Steps returns the number of steps of the episode.
func (e *Env[A]) Steps() uint64 {
	if e.last == nil {
		return 0
	}
	return e.last.Step
}

// Close closes the environment's readers. It does not change the world.
func (e *Env[A]) Close() {
	for _, m := range e.members {
		m.reader.Close()
	}
	clear(e.members)
	e.episode, e.active, e.last = nil, nil, nil
}
