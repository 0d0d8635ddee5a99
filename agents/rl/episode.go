package rl

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/sajou-dev/sajou-go/agents"
	agentslive "github.com/sajou-dev/sajou-go/agents/live"
	"github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

// Reset begins a new episode: the world that [Spec.World] makes of the seed
// replaces the present one, and the possible agents are registered again. Nothing
// of the episode is delivered to an agent before Reset returns; if it fails, call
// it again.
func (e *Env[A]) Reset(ctx context.Context, seed uint64) (map[string]AgentObservation, map[string]StepInfo, error) {
	last, err := e.newest(ctx)
	if err != nil {
		return nil, nil, err
	}
	began := episode{Episode: 1, Seed: seed, Agents: e.possible}
	if last != nil {
		began.Episode = last.Episode + 1
	}
	drafts, err := e.opening(ctx, began)
	if err != nil {
		return nil, nil, err
	}
	e.Close()
	subs := make([]agents.Submission, len(drafts))
	for i := range drafts {
		subs[i] = agents.Submission{Draft: &drafts[i], Priority: len(drafts) - i} // as they are arranged
	}
	outcomes, err := e.world.Quantum(ctx, subs...)
	if err != nil {
		return nil, nil, err
	}
	for _, o := range outcomes {
		if err := o.Err(); err != nil {
			return nil, nil, fmt.Errorf("rl: the world of episode %d: %w", began.Episode, err)
		}
	}
	// Reset ends as recovery does, so that the same code runs every time.
	r, err := e.Resume(ctx)
	return r.Observations, r.Infos, err
}

// opening returns the drafts that turn the present world into that of a new
// episode.
func (e *Env[A]) opening(ctx context.Context, began episode) ([]agents.EffectDraft, error) {
	// The seed is the only source of randomness; PCG takes two words.
	given, err := e.spec.World(began.Seed, rand.New(rand.NewPCG(began.Seed, 0)))
	if err != nil {
		return nil, fmt.Errorf("rl: the world of episode %d: %w", began.Episode, err)
	}
	next, err := world.ParseWorld(given)
	if err != nil {
		return nil, fmt.Errorf("%w: the world of episode %d: %w", ErrSpec, began.Episode, err)
	}
	if next.Metadata().Len() > 0 {
		return nil, fmt.Errorf("%w: the world of an episode has no metadata", ErrSpec)
	}
	state, err := e.ses.State(ctx)
	if err != nil {
		return nil, err
	}
	drafts, err := e.draft(nil, KindEpisodeBegan, began)
	if err != nil {
		return nil, err
	}
	for _, id := range everything(session.WorldOf(state).World().Value()) {
		if drafts, err = e.draft(drafts, world.KindEntityRemoved, map[string]any{"entity_id": id}); err != nil {
			return nil, err
		}
	}
	return e.create(drafts, next)
}

// create appends the drafts that make a world, entities first.
func (e *Env[A]) create(drafts []agents.EffectDraft, w *world.World) (_ []agents.EffectDraft, err error) {
	v := w.Value()
	for _, id := range everything(v) {
		object, ok := w.Entity(id)
		if !ok {
			return nil, fmt.Errorf("%w: %q has a position and is no entity", ErrSpec, id)
		}
		created := map[string]any{"entity_id": id, "entity_data": object}
		if at, ok := w.Position(id); ok {
			created["position"] = at.Value()
		}
		if drafts, err = e.draft(drafts, world.KindEntityCreated, created); err != nil {
			return nil, err
		}
	}
	relations, _ := v.Get("relationships")
	for from := range relations.Members() {
		if _, ok := w.Entity(from); !ok {
			return nil, fmt.Errorf("%w: a relation from %q, which is no entity", ErrSpec, from)
		}
		for _, r := range w.Relations(from) {
			if _, ok := w.Entity(r.To); !ok {
				return nil, fmt.Errorf("%w: a relation to %q, which is no entity", ErrSpec, r.To)
			}
			related := map[string]any{"from": from, "to": r.To, "type": r.Type, "strength": r.Strength}
			if drafts, err = e.draft(drafts, world.KindRelationshipAdded, related); err != nil {
				return nil, err
			}
		}
	}
	return drafts, nil
}

// everything returns the ids of all entities and positions of a world, in order.
func everything(w signal.Value) []string {
	ids := map[string]struct{}{}
	for _, name := range []string{"entities", "spatial_index"} {
		part, _ := w.Get(name)
		for id := range part.Members() {
			ids[id] = struct{}{}
		}
	}
	return slices.Sorted(maps.Keys(ids))
}

func (e *Env[A]) draft(drafts []agents.EffectDraft, kind string, v any) ([]agents.EffectDraft, error) {
	value, err := payload(v)
	if err != nil {
		return nil, fmt.Errorf("rl: %s: %w", kind, err)
	}
	return append(drafts, agents.EffectDraft{Kind: kind, SourceID: e.spec.Source, Payload: value}), nil
}

// Resume continues the newest episode of the session: after a restart, after an
// error, or one that another program began. It returns the result of its last step,
// or its beginning. Errors: [ErrReset] if there is none, [ErrSpec] if it has other
// agents.
func (e *Env[A]) Resume(ctx context.Context) (StepResult, error) {
	h, err := e.history(ctx)
	switch {
	case err != nil:
		return StepResult{}, err
	case !slices.Equal(h.began.Agents, e.possible):
		return StepResult{}, fmt.Errorf("%w: episode %d is one of %q", ErrSpec, h.began.Episode, h.began.Agents)
	}
	e.Close()
	for _, r := range e.spec.PossibleAgents {
		reader, err := e.enter(ctx, r, h.registered[r.AgentID])
		if err != nil {
			e.Close()
			return StepResult{}, fmt.Errorf("rl: agent %q: %w", r.AgentID, err)
		}
		e.members[r.AgentID] = newMember(reader)
	}
	if err := e.look(ctx, h); err != nil {
		e.Close()
		return StepResult{}, err
	}
	e.episode = h.began
	if e.last == nil {
		return e.result(ctx, e.blank(0, ""))
	}
	return e.result(ctx, e.last)
}

// enter registers an agent again, unless the episode has registered it.
func (e *Env[A]) enter(ctx context.Context, r agents.Registration, registered bool) (*agentslive.Agent, error) {
	if registered {
		return e.world.Agent(ctx, r.AgentID)
	}
	old, err := e.world.Agent(ctx, r.AgentID)
	switch {
	case err == nil:
		if err := old.Leave(ctx); err != nil {
			return nil, err
		}
	case !errors.Is(err, agents.ErrUnknownAgent):
		return nil, err
	}
	return e.world.RegisterAs(ctx, r)
}

// look restores the state of an episode from the log.
func (e *Env[A]) look(ctx context.Context, h history) error {
	e.active, e.last = slices.Clone(e.possible), nil
	for _, m := range h.marks {
		e.account(m)
	}
	if err := e.world.Settle(ctx); err != nil {
		return err
	}
	var state *projection.Fold
	var err error
	if e.last == nil {
		state, err = e.ses.State(ctx)
	} else {
		state, err = e.ses.At(ctx, replay.Moment{Seq: e.last.After})
	}
	if err != nil {
		return err
	}
	e.before = session.WorldOf(state).World()
	return nil
}

// account applies a step: agents that are done leave the list.
func (e *Env[A]) account(m *mark) {
	e.last = m
	for _, j := range m.Agents {
		if j.done() {
			e.active = slices.DeleteFunc(e.active, func(id string) bool { return id == j.Agent })
		}
	}
	if e.follow != nil {
		e.follow(m)
	}
}

// pass lets session time pass up to the end of a step.
func (e *Env[A]) pass(ctx context.Context, step uint64) error {
	authority := e.ses.TimeAuthority()
	if authority == session.TimeWall {
		return nil
	}
	if step > uint64((math.MaxInt64-e.episode.at)/e.spec.Delta) {
		return fmt.Errorf("%w: no time is left for step %d", ErrStep, step)
	}
	end := e.episode.at + time.Duration(step)*e.spec.Delta
	if authority == session.TimeManual {
		return e.world.Advance(ctx, max(end, e.world.Now()))
	}
	_, err := e.world.Tick(ctx, agentslive.Tick{
		SimTime: world.Seconds(end), DeltaTime: world.Seconds(e.spec.Delta), FrameNumber: step, SourceID: e.spec.Source,
	})
	return err
}
