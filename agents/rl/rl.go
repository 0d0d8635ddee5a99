// Package rl runs a session's world as an environment for reinforcement learning,
// with the habits of PettingZoo: an [Env] takes the actions of all agents at
// once, an [AEC] takes them one after the other.
//
// # The nouns
//
// A [Spec] is the program's part: who may take part, what world an episode begins
// with, which intent an action is, what it earns and when it is over. [Env.Reset]
// begins an episode, [Env.Step] takes a step of it. What an agent gets is an
// [Observation]: all it has been told, by its own policy, and what of that is new.
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
// What differs from PettingZoo: a refused action is no error and not hidden, but a
// typed rejection in the agent's [Info]; the effect there is the very one in the
// log; and spaces are Go types, so there are none to ask for.
//
// # Steps
//
// All actions of a step are one quantum of the world: they are decided in the order
// of (sim_time, priority, agent, uuid), whatever the order of a map. Then session
// time passes by [Spec.Delta], the program judges the world, and its judgement is
// recorded. So an observation is what has reached the agent by the end of the step,
// and the next action is measured by exactly that. In a session of [sajou.TimeWall] time
// passes by itself. Where ticks have the authority ([sajou.TimeSim]) each step is one.
//
// # In the log
//
// Everything is an effect of the environment's own source, [Spec.Source], which no
// agent can be.
//
//	EpisodeBegan  {"episode": 1, "seed": 42, "agents": ["a", "b"]}
//	EpisodeStep   {"episode": 1, "step": 1, "turn": "", "after": 31, "agents": [
//	  {"agent": "a", "req_id": "rl/1/1", "global_seq": 12, "reward": 1},
//	  {"agent": "b", "req_id": "rl/1/1", "code": "INTENT_CONFLICT", "reason": "…", "reward": 0, "truncated": true}]}
//
// A reset is one quantum: EpisodeBegan, then all entities of the world are removed
// and those of the new one are made. Then each agent leaves and is registered anew,
// with nothing left of its quotas and cooldowns. A step is its actions, and behind them
// EpisodeStep; after is the entry up to which the world was judged. A replay has the
// seed and the rewards, and needs neither chance nor the program.
//
// # After a crash
//
// [Env.Resume] goes on with the newest episode of the session. An intent's req_id is
// rl/EPISODE/STEP, which with the agent names it for ever. So a step that was cut short
// is taken again under its number, and each intent has exactly one outcome: what had been
// decided is decided. A step whose EpisodeStep is there is over: [Env.StepAt] with its
// number returns what it came to, and asks for nothing.
//
// # Limits
//
// The world belongs to the environment: a reset removes all that is in it. What others
// do to it between two steps counts into the later one. Rewards, ends and masks are
// the program's functions; they must be pure, or two runs differ.
package rl

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/signal"
)

// Errors, by what the caller does about them.
var (
	// ErrSpec says that the Spec cannot be used, or does not fit the episode
	// that the log has.
	ErrSpec = errors.New("rl: unusable specification")
	// ErrReset says that there is no episode: call Reset.
	ErrReset = errors.New("rl: no episode has begun")
	// ErrAction says that an action is for nobody who takes part, or not such a one's turn.
	ErrAction = errors.New("rl: action out of place")
	// ErrStep says that a step's number is neither the next nor the last one.
	ErrStep = errors.New("rl: step out of order")
	// ErrRecord says that the log has an episode that this program cannot read.
	ErrRecord = errors.New("rl: unreadable episode")
)

// Spec is an environment, apart from the world's rules, which are its
// configuration ([sajou.Agents.Configure]). A is the type of actions.
type Spec[A any] struct {
	// PossibleAgents are all who may take part, in the order in which they are
	// listed and take turns.
	PossibleAgents []agents.Registration

	// World returns the world that an episode begins with, as [agents.ParseWorld]
	// reads it, without metadata. All chance comes from rng, which follows from the seed.
	World func(seed uint64, rng *rand.Rand) (signal.Value, error)

	// Intent says what an action asks for, of an agent that knows what the view
	// shows: kind, payload, priority. Who asks, the req_id and the context_seq are filled
	// in. One without a kind asks for nothing.
	Intent func(v agents.View, action A) agents.Intent

	// Reward is what a step earns an agent, finite. Nil means 0.
	Reward func(Transition) float64
	// Terminated says that an agent has come to its end. Nil means never.
	Terminated func(Transition) bool
	// Truncated says that an agent is stopped, though it has not come to its end. Nil
	// means never.
	Truncated func(Transition) bool
	// MaxSteps truncates everybody when an episode has so many steps; 0 means no
	// limit. Of an AEC each turn is a step.
	MaxSteps uint64

	// ActionMask says which actions an agent may take next, for its [Info]. It is
	// told the whole world and what the agent knows of it, and decides what of the one
	// shows in a mask. Nil means none.
	ActionMask func(w agents.Reader, v agents.View) []bool

	// Delta is how much session time passes with a step. Zero means a second.
	Delta time.Duration

	// Source is the source_id of the environment's own effects. "" means "environment".
	Source string
}

// Transition is a step as one agent lived it.
type Transition struct {
	Agent   string
	Episode uint64
	Step    uint64 // from 1
	// Before is the world at the end of the step before, or at the beginning of
	// the episode; After is the world at the end of this one.
	Before, After agents.Reader
	// Outcome is what came of the agent's action; zero if it asked for nothing.
	Outcome agents.Outcome
}

// Observation is what an agent knows.
type Observation struct {
	// View is all that it has been told. The order of members in it says nothing.
	View agents.View
	// Deltas are what it was told since it last acted, in order; View has them.
	// An agent of a parallel Env acts in every step.
	Deltas []sajou.Observation
}

// Info is what else is said to an agent.
type Info struct {
	// ReqID names the intent that its last action was; "" if that was none.
	ReqID string
	// Effect is what came of it, as it is in the log; nil if nothing did.
	Effect *agents.Effect
	// Rejection says why nothing did.
	Rejection *agents.Rejection
	// ActionMask says which actions it may take next; nil if the Spec has no masks.
	ActionMask []bool
}

// Result is what a step came to. Its maps have those who took part in the step.
type Result struct {
	Episode      uint64
	Step         uint64 // from 1; 0 before the first
	Observations map[string]Observation
	Rewards      map[string]float64
	Terminations map[string]bool
	Truncations  map[string]bool
	Infos        map[string]Info
}

// Env is an environment whose agents act at once. It is not safe for use by many
// goroutines at a time.
type Env[A any] struct {
	ses      *sajou.Session
	world    *sajou.Agents
	spec     Spec[A]
	possible []string

	episode *episode // nil before there is one
	members map[string]*member
	active  []string      // who takes part, in the order of possible
	before  agents.Reader // the world at the end of the last step
	last    *mark         // of the last step; nil before the first
	follow  func(*mark)   // unless nil, is told each step that is taken over
}

// New returns the environment that a session's world is by a Spec. Nothing
// happens before [Env.Reset] or [Env.Resume].
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

// PossibleAgents returns all who may take part, in order.
func (e *Env[A]) PossibleAgents() []string { return slices.Clone(e.possible) }

// Agents returns who takes part in the episode and is not done, in order.
func (e *Env[A]) Agents() []string { return slices.Clone(e.active) }

// Episode returns the number of the episode, from 1; 0 before there is one.
func (e *Env[A]) Episode() uint64 {
	if e.episode == nil {
		return 0
	}
	return e.episode.Episode
}

// Seed returns what the episode was begun with.
func (e *Env[A]) Seed() uint64 {
	if e.episode == nil {
		return 0
	}
	return e.episode.Seed
}

// Steps returns how many steps the episode has.
func (e *Env[A]) Steps() uint64 {
	if e.last == nil {
		return 0
	}
	return e.last.Step
}

// Close ends the environment's readers. The world stays as it is.
func (e *Env[A]) Close() {
	for _, m := range e.members {
		m.reader.Close()
	}
	clear(e.members)
	e.episode, e.active, e.last = nil, nil, nil
}
