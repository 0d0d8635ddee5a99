package agents

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/sajou-dev/sajou-go/agents/flow"
	"github.com/sajou-dev/sajou-go/agents/internal/codec"
	"github.com/sajou-dev/sajou-go/agents/internal/jsonvalue"
	"github.com/sajou-dev/sajou-go/agents/internal/timers"
	"github.com/sajou-dev/sajou-go/agents/view"
	"github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/signal"
)

// Core is the agents' state of one world and decides about it. It has two kinds of
// methods.
//
// Those that decide ([Core.Submit], [Core.Decide], [Core.DecideBatch],
// [Core.Register], [Core.Issue] and their like) read the state, change nothing,
// and return records. Time comes with the call: it is the session time at which
// the records are to be kept.
//
// [Core.Apply] folds a record, whether it was just decided or is read from a
// log, and [Core.Advance] lets time pass. No other method changes the state. So
// cores that fold the same records at the same times have the same state, to the
// byte, and decide the same from there on.
//
// A decision is based on the state as it is, so its records must be applied before
// the next decision. Core has no lock. A decision applies its effects to the world
// and undoes them, so not even a reader may run at the same time.
//
// Decisions need two things that are not state: the name of the world, and the final
// outcomes, which grow for ever and which the log holds already. [Core.Bind] provides
// them. A core that only folds needs neither.
type Core struct {
	options   Options
	rules     int           // see SetRules
	name      string        // of the world; see Bind
	memory    FinalOutcomes // nil: the core only folds
	room      int           // see Limit
	world     *world.World
	audience  *view.Audience
	config    Config
	written   signal.Value // the configuration as recorded
	now       time.Duration
	simTime   float64 // of the last tick
	quanta    uint64
	agents    map[string]*agentState
	left      map[string]uint64 // deliveries of agents that have left: their numbers go on from there
	due, ends timers.List       // of agents: when time alone interrupts one, when a deadline comes
}

// Options are the program's own rules. They are not part of the state: all programs
// that fold one log must have the same options.
type Options struct {
	Handlers   []world.Handler
	Customs    []view.Custom
	Validators []Validator
}

// Validator is a rule of the program's own about intents: a pure function. It is
// asked when an intent is decided, never on replay, where the decision is recorded.
// One that panics has found a problem.
type Validator struct {
	Name string
	// Order says when it is asked, the smaller first; of equal ones as given.
	// All are asked, whatever the others found.
	Order int
	// Check returns the problems of an intent. The ReadOnly shows the world as the
	// agent may see it: whatever is hidden from the agent is absent, so no answer can
	// tell of it.
	Check func(w world.ReadOnly, in Intent) []Problem
	// Declassifies, unless "", says what the validator tells beyond what the agent
	// may see. Check then reads the whole world, and its paths and reasons reach the
	// agent as they are. It is asked only if nothing else refuses the intent.
	Declassifies string
}

func (v *Validator) check(w world.ReadOnly, in Intent) (found []Problem) {
	defer func() {
		if r := recover(); r != nil {
			found = []Problem{{Reason: fmt.Sprintf(textPanicked, v.Name, r)}}
		}
	}()
	found = v.Check(w, in)
	for i := range found {
		if found[i].Reason == "" {
			found[i].Reason = v.Name
		}
	}
	return found
}

// agentState is one registered agent.
type agentState struct {
	id          string
	value       signal.Value // as registered
	class       string
	policy      signal.Value
	permissions map[string]struct{}
	settings    Settings
	observer    *view.Observer
	// latest is the newest sequence number that has reached the agent. inFlight holds
	// the deltas that have not arrived, in the order of times and of numbers; deltas
	// that arrive stay in it until the next call of arrive, so readers compare times.
	latest        uint64
	inFlight      []inFlightDelta
	inFlightBytes int           // bytes of the words in arrivals
	delivered     time.Duration // when the last delivery arrives
	deliveries    uint64        // how many there were; the own number of the next
	sent          sent          // view_seqs of the last of them
	quota         quota
	tokens        map[string]*generation
	interrupted   time.Duration // when it was last, if ever
	ever          bool
	due, ends     timers.Timer
}

// Delivery is a delta for an agent, to be handed over at its time.
type Delivery struct {
	Agent  string
	At     time.Duration
	Number uint64 // counts the agent's deliveries; those of one time go in this order; one more than the agent's own number, see [Core.Number]
	Delta  view.Delta
}

// Cancellation says that a generation is to stop.
type Cancellation struct {
	Agent  string
	ReqID  string
	Reason string
	At     time.Duration
}

// Applied is the result of a record, or of the passing of time.
type Applied struct {
	Deliveries    []Delivery
	Cancellations []Cancellation
	// Effect and Changes are what an effect was and wrote.
	Effect  *world.Effect
	Changes world.Changes
	// Err says why the record was ignored; it wraps [ErrRecord].
	Err error

	// Footprints are, of agents that only conflicts interrupt, what the effect
	// touches as far as the agent may know.
	Footprints map[string]Footprint
}

// NewCore returns the core of a world in which nothing has happened.
func NewCore(options Options) (*Core, error) {
	w, err := world.NewWorld(options.Handlers...)
	if err != nil {
		return nil, err
	}
	options.Validators = slices.Clone(options.Validators)
	slices.SortStableFunc(options.Validators, func(a, b Validator) int { return cmp.Compare(a.Order, b.Order) })
	config, err := ParseConfig(nil)
	if err != nil {
		return nil, err
	}
	return &Core{
		options: options, rules: math.MaxInt, world: w, audience: view.NewAudience(), config: config, written: jsonvalue.Empty(),
		agents: map[string]*agentState{}, left: map[string]uint64{},
	}, nil
}

// Bind makes the core able to decide. It takes the name of the world, from which
// uuids are derived, and the memory of final outcomes. If that is nil, the core keeps
// the outcomes from now on in memory that grows with each of them, and a restored core
// has none of the earlier ones.
//
// A core that is not bound folds, but refuses every request and effect with
// [ErrWorldPaused].
func (c *Core) Bind(world string, answers FinalOutcomes) {
	if answers == nil {
		answers = remembered{}
	}
	c.name, c.memory = world, answers
}

// Limit says how many bytes of payload a record of an effect has room for, where
// it is kept. What is larger is refused as malformed. 0 is [world.MaxPayload].
func (c *Core) Limit(payload int) { c.room = payload }

func (c *Core) tooLarge(in *Intent, payload signal.Value) *Rejection {
	if c.room <= 0 || len(payload) <= c.room {
		return nil
	}
	r := reject(in, ErrInvalidIntent, "malformed")
	r.Problems = []Problem{{"/payload", fmt.Sprintf("%d bytes, and there is room for %d", len(payload), c.room)}}
	return r
}

func (c *Core) unbound(in *Intent) *Rejection {
	if c.memory != nil {
		return nil
	}
	return reject(in, ErrWorldPaused, "the core is not bound, so it decides nothing")
}

// World reads the world as it is.
func (c *Core) World() world.ReadOnly { return c.world.ReadOnly }

// Config returns the configuration in force.
func (c *Core) Config() Config { return c.config }

// Now returns the session time up to which the state has come.
func (c *Core) Now() time.Duration { return c.now }

// Seq returns the world's sequence number, that of the last effect.
func (c *Core) Seq() uint64 { return c.world.Seq() }

// Agents goes over the registered agents in the order of ids.
func (c *Core) Agents() iter.Seq[string] {
	return slices.Values(jsonvalue.SortedKeys(c.agents))
}

// HadAgents reports whether an agent has ever been registered.
func (c *Core) HadAgents() bool { return len(c.agents)+len(c.left) > 0 }

// View returns the view of an agent, deltas in flight included.
func (c *Core) View(agent string) (view.View, bool) {
	a, ok := c.agents[agent]
	if !ok {
		return view.View{}, false
	}
	return a.observer.View(), true
}

// FullView returns a delivery that replaces an agent's whole view by what it is
// now: for a client that starts over or could not keep up. It includes all deliveries
// up to its Number and none after it, and arrives no earlier than the last of them.
func (c *Core) FullView(agent string) (Delivery, bool) {
	a, ok := c.agents[agent]
	if !ok {
		return Delivery{}, false
	}
	return Delivery{a.id, a.delivered, a.deliveries, a.observer.FullView()}, true
}

// Settings returns the rules for an agent.
func (c *Core) Settings(agent string) (Settings, bool) {
	a, ok := c.agents[agent]
	if !ok {
		return Settings{}, false
	}
	return a.settings, true
}

// Receives reports whether an agent receives a message, see [view.Observer.Receives].
func (c *Core) Receives(agent string, e world.Effect) bool {
	a, ok := c.agents[agent]
	return ok && a.observer.Receives(c.world.ReadOnly, e)
}

// Observer returns what an agent has been shown. It must only be read.
func (c *Core) Observer(agent string) (*view.Observer, bool) {
	a, ok := c.agents[agent]
	if !ok {
		return nil, false
	}
	return a.observer, true
}

// Reached reports whether all deliveries of an agent have reached it by an instant,
// so that [Core.View] is what it has been sent. It returns true if c knows
// no such agent.
func (c *Core) Reached(agent string, instant time.Duration) bool {
	a, ok := c.agents[agent]
	return !ok || a.delivered <= instant
}

// Complete returns when the last delivery of an agent reaches it: from then on
// [Core.View] is what it has been sent. It returns false if c knows no such
// agent.
func (c *Core) Complete(agent string) (time.Duration, bool) {
	a, ok := c.agents[agent]
	if !ok {
		return 0, false
	}
	return a.delivered, true
}

// LatestViewSeq returns the newest sequence number that has reached an agent.
func (c *Core) LatestViewSeq(now time.Duration, agent string) uint64 {
	a, ok := c.agents[agent]
	if !ok {
		return 0
	}
	return a.seen(now)
}

// Configure returns the record of a configuration, see [ParseConfig].
func (c *Core) Configure(v signal.Value) ([]signal.Record, error) {
	if v == nil {
		v = jsonvalue.Empty()
	}
	if err := soundObject(v, world.MaxEntityDepth); err != nil {
		return nil, fmt.Errorf("agents: configuration: %w", err)
	}
	config, err := ParseConfig(v)
	if err != nil {
		return nil, err
	}
	for _, id := range jsonvalue.SortedKeys(c.agents) {
		reader := newConfigReader()
		a := c.agents[id]
		if reader.of(&config, a.class, a.policy); reader.Err != nil {
			return nil, fmt.Errorf("agents: agent %q under this configuration: %w", id, reader.Err)
		}
	}
	return []signal.Record{{Word: WordConfig, Value: v}}, nil
}

// Begin returns the record of the world to begin with, see [world.ParseWorld]. It is
// refused once there has been an effect or an agent, and if it has something that would
// not be kept, see [world.CheckRelations].
func (c *Core) Begin(v signal.Value) ([]signal.Record, error) {
	if err := soundObject(v, world.MaxEntityDepth+8); err != nil {
		return nil, fmt.Errorf("agents: world: %w", err)
	}
	if _, err := c.parseWorld(v); err != nil {
		return nil, err
	}
	if err := world.CheckRelations(v); err != nil {
		return nil, fmt.Errorf("agents: world: %w", err)
	}
	return []signal.Record{{Word: WordWorld, Value: v}}, nil
}

func (c *Core) parseWorld(v signal.Value) (*world.World, error) {
	if len(c.agents) > 0 || c.world.Begun() {
		return nil, fmt.Errorf("agents: world: %w", ErrBegun)
	}
	return world.ParseWorld(v, c.options.Handlers...)
}

// Apply folds one record that was kept at session time now. It accepts every record:
// one that it cannot read, or that contradicts the state, changes nothing but the time,
// and Applied.Err says why.
func (c *Core) Apply(now time.Duration, r signal.Record) Applied {
	out := c.Advance(now)
	v := r.Value
	var err error
	switch r.Word {
	case WordConfig:
		err = c.applyConfig(v, &out)
	case WordWorld:
		var w *world.World
		if w, err = c.parseWorld(v); err == nil {
			c.world = w
		}
	case WordAgent:
		err = c.applyAgent(v, &out)
	case WordLeft:
		err = c.applyLeft(v, &out)
	case WordEffect:
		err = c.applyEffect(v, &out)
	case WordOutcome:
		err = c.applyOutcome(v, &out)
	case WordQuantum:
		c.applyQuantum(v)
	case WordToken:
		err = c.applyToken(v, &out)
	case WordCancel:
		err = c.applyCancel(v, &out)
	case WordGenerated:
	default:
		err = fmt.Errorf("no word %q", r.Word)
	}
	if err != nil && !errors.Is(err, ErrRecord) {
		err = fmt.Errorf("%w: %s: %w", ErrRecord, r.Word, err)
	}
	if out.Err = err; err == nil {
		c.remember(r)
	}
	return out
}

func (c *Core) applyConfig(v signal.Value, out *Applied) error {
	config, err := ParseConfig(v)
	if err != nil {
		return err
	}
	settings := make(map[string]Settings, len(c.agents))
	for id, a := range c.agents {
		reader := newConfigReader()
		if settings[id] = reader.of(&config, a.class, a.policy); reader.Err != nil {
			return reader.Err
		}
	}
	c.config, c.written = config, slices.Clone(v)
	if v == nil {
		c.written = jsonvalue.Empty()
	}
	for id := range c.Agents() {
		a := c.agents[id]
		a.settings = settings[id]
		maps.DeleteFunc(a.quota.last, func(kind string, _ time.Duration) bool { return a.settings.Cooldowns[kind] <= 0 })
		c.settle(a, c.now, out) // by the new rules a generation may be stale already
	}
	return nil
}

func (c *Core) applyAgent(v signal.Value, out *Applied) error {
	a, lens, err := c.compileAgent(v)
	if err != nil {
		return err
	}
	if old, ok := c.agents[a.id]; ok {
		c.unschedule(old)
		a.quota, a.tokens, a.interrupted, a.ever = old.quota, old.tokens, old.interrupted, old.ever
		a.delivered, a.deliveries, a.sent = old.delivered, old.deliveries, old.sent
		a.latest, a.inFlight, a.inFlightBytes = old.latest, old.inFlight, old.inFlightBytes
	} else if len(c.agents) >= maxAgents {
		return fmt.Errorf("more than %d agents", maxAgents)
	}
	// A new policy is not an effect, so the view keeps the view_seq of the last view
	// that the agent was shown. A newer number would reveal that effects happened
	// which the agent was not sent.
	seq := c.Seq()
	old, again := c.agents[a.id]
	if again {
		seq = old.observer.ViewSeq()
	} else {
		a.deliveries = c.left[a.id]
		delete(c.left, a.id)
	}
	a.observer = view.NewObserver(a.id, lens, a.deliveries)
	c.agents[a.id] = a
	c.audience.Add(c.world.ReadOnly, a.id, lens)
	delta := a.observer.Begin(c.world.ReadOnly, seq)
	// Deltas in flight by the old policy still arrive before the view. The view itself
	// conflicts with no generation: the effects that it shows did so, or did not.
	at := c.deliver(a, c.now, delta, true, out)
	if seq := delta.ViewSeq; seq > a.seen(a.delivered) {
		a.send(c.now, inFlightDelta{at: at, seq: seq, own: true, visible: true})
	}
	c.settle(a, c.now, out)
	return nil
}

func (c *Core) applyLeft(v signal.Value, out *Applied) error {
	a, ok := c.agents[jsonvalue.TextOf(v, "agent_id")]
	if !ok {
		return ErrRecord
	}
	for _, id := range jsonvalue.SortedKeys(a.tokens) {
		out.Cancellations = append(out.Cancellations, Cancellation{a.id, id, ReasonLeft, c.now})
	}
	c.unschedule(a)
	c.audience.Remove(a.id)
	delete(c.agents, a.id)
	if c.left[a.id] = a.deliveries; len(c.left) > maxAgents {
		delete(c.left, slices.Min(slices.Collect(maps.Keys(c.left))))
	}
	return nil
}

func (c *Core) applyQuantum(v signal.Value) {
	c.quanta++
	m, _ := v.Get("sim_time")
	if t, ok := m.Float64(); ok && jsonvalue.TextOf(v, "by") == CloseTick {
		c.simTime = max(c.simTime, t)
	}
}

// effectRecord returns the record of an effect; in is the intent that it comes
// from, if it does.
func effectRecord(e world.Effect, in *Intent, priority int, number uint64) signal.Record {
	o := jsonvalue.FieldsOf(e.Value())
	if in != nil {
		o = append(o,
			jsonvalue.NamedValue{"req_id", jsonvalue.Text(in.ReqID)},
			jsonvalue.NamedValue{"context_seq", jsonvalue.Uint(in.ContextSeq)},
			jsonvalue.NamedValue{"priority", jsonvalue.Int(int64(priority))},
			jsonvalue.NamedValue{"number", jsonvalue.Uint(number)})
	}
	return signal.Record{Word: WordEffect, Value: o.Value()}
}

func (c *Core) applyEffect(v signal.Value, out *Applied) error {
	e, err := world.ParseEffect(slices.Clone(v))
	if err != nil {
		return err
	}
	if e.GlobalSeq != c.Seq()+1 {
		return fmt.Errorf("effect %d after %d", e.GlobalSeq, c.Seq())
	}
	var by *agentState
	if e.ReqID != "" {
		if by = c.agents[e.SourceID]; by == nil || codec.CheckKey(e.ReqID, MaxReqID) != nil {
			return fmt.Errorf("an intent of the unknown agent %q", e.SourceID)
		}
	}
	changes, err := c.world.Apply(e)
	if err != nil {
		return err
	}
	if by != nil {
		by.quota.use(c.now, 1, cost(e.Payload), &by.settings)
		if by.settings.Cooldowns[e.Kind] > 0 {
			by.quota.cool(e.Kind, c.now)
		}
		c.drop(by, e.ReqID)
	}
	out.Effect, out.Changes = &e, changes
	passes := c.passesTime(e)
	concerned := c.audience.Follow(c.world.ReadOnly, e, changes)
	out.Deliveries = slices.Grow(out.Deliveries, len(concerned))
	for _, id := range concerned {
		a := c.agents[id]
		minds := a.settings.Interrupt == InterruptConflict && e.SourceID != a.id
		var before view.Rendered
		if minds {
			before = a.observer.Rendered(changes.Touched())
		}
		var delta view.Delta
		var ok bool
		if passes {
			delta, ok = a.observer.Pass(c.world.ReadOnly, e, changes)
		} else {
			delta, ok = a.observer.Update(c.world.ReadOnly, e, changes)
		}
		if !ok {
			continue
		}
		stales := delta.ViewSeq == e.GlobalSeq // it makes older contexts stale
		at := c.deliver(a, c.arrives(a, e), delta, stales, out)
		if !stales {
			continue
		}
		n := inFlightDelta{at: at, seq: delta.ViewSeq, own: e.SourceID == a.id, visible: len(delta.Patches) > 0}
		if minds {
			n.footprint = footprint(a.observer, c.world.ReadOnly, e, changes, before)
			if out.Footprints == nil {
				out.Footprints = map[string]Footprint{}
			}
			out.Footprints[a.id] = n.footprint
		}
		a.send(c.now, n)
		c.settle(a, c.now, out)
	}
	return nil
}

// arrives returns when the delta of an effect would reach an agent.
func (c *Core) arrives(a *agentState, e world.Effect) time.Duration {
	if a.settings.Latency == (flow.Latency{}) {
		return c.now
	}
	// The agent can observe the delay, so the delay must not depend on what the agent
	// may not know: a source whose position is hidden counts as one without a position,
	// and the pseudo-random part is drawn by the agent's own number of the delivery.
	distance := 0.0
	sight := a.observer.VisibleWorld(c.world.ReadOnly)
	from, ok1 := sight.Position(e.SourceID)
	to, ok2 := sight.Position(a.id)
	if ok1 && ok2 {
		distance = from.Distance(to)
	}
	return after(c.now, a.settings.Latency.Delay(a.id, a.deliveries, distance))
}

// deliver adds a delivery. It arrives no earlier than the one before it, because its
// patch applies to the view that the previous one leads to.
func (c *Core) deliver(a *agentState, at time.Duration, delta view.Delta, stales bool, out *Applied) time.Duration {
	a.delivered = max(a.delivered, at)
	if stales {
		a.sent.add(sentDelivery{delta.ViewSeq, a.deliveries})
	}
	a.deliveries++
	out.Deliveries = append(out.Deliveries, Delivery{a.id, a.delivered, a.deliveries, delta})
	return a.delivered
}
