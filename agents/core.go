package agents

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go/signal"
)

// Core is the agents' state of one world, and what decides about it. There are
// two kinds of call.
//
// Those that decide ([Core.Submit], [Core.Decide], [Core.DecideBatch],
// [Core.Register], [Core.Issue] and their like) read the state, change nothing,
// and return records. Time comes with the call: it is the session time at which
// the records are to be kept.
//
// [Core.Apply] folds a record, whether it was just decided or is read from a
// log, and [Core.Advance] lets time pass. Nothing else changes the state. So
// whoever folds the same records at the same times has the same state, to the byte,
// and would decide the same from there on.
//
// A decision is about the state as it is, so its records must be applied before
// the next decision. Core has no lock; and since a decision tries its effects on
// the world and undoes them, nobody may read the core meanwhile.
//
// Two things that decisions need are no part of the state: what the world is
// called, and what has been answered, which grows for ever and which the log
// knows already. [Core.Bind] brings them. A core that only folds needs neither.
type Core struct {
	options   Options
	name      string  // of the world; see Bind
	memory    Answers // nil: nobody decides here
	room      int     // see Limit
	world     *World
	audience  *Audience
	config    Config
	written   signal.Value // the configuration as recorded
	now       time.Duration
	simTime   float64 // of the last tick
	quanta    uint64
	agents    map[string]*agentState
	due, ends timers // of agents: when time alone interrupts one, when a deadline comes
}

// Options are what the program brings along. They are no part of the state:
// whoever folds the same log must bring the same.
type Options struct {
	Handlers   []Handler
	Customs    []Custom
	Validators []Validator
}

// agentState is one registered agent.
type agentState struct {
	id          string
	value       signal.Value // as registered
	class       string
	policy      signal.Value
	permissions map[string]struct{}
	settings    Settings
	observer    *Observer
	// latest is the newest sequence number that has reached the agent; news on
	// the way is in arrivals, in the order of time and of numbers. What has arrived
	// stays there until something touches the agent.
	latest      uint64
	arrivals    []arrival
	news        int           // bytes of the words in arrivals
	delivered   time.Duration // when the last delivery arrives
	deliveries  uint64        // how many there were
	quota       quota
	tokens      map[string]*generation
	interrupted time.Duration // when it was last, if ever
	ever        bool
	due, ends   timer
}

// maxNamed bounds the paths or classes of one effect, or of one token.
const maxNamed = 256

// Delivery is a delta for an agent, to be handed over at its time.
type Delivery struct {
	Agent  string
	At     time.Duration
	Number uint64 // counts the agent's deliveries; those of one time go in this order
	Delta  Delta
}

// Cancellation says that a generation is to stop.
type Cancellation struct {
	Agent  string
	ReqID  string
	Reason string
	At     time.Duration
}

// Applied is what came of a record, or of time.
type Applied struct {
	Deliveries    []Delivery
	Cancellations []Cancellation
	// Effect and Changes are what an effect was and wrote.
	Effect  *Effect
	Changes Changes
	// Err says why the record was ignored; it wraps [ErrRecord].
	Err error
}

// NewCore returns the core of a world in which nothing has happened.
func NewCore(options Options) (*Core, error) {
	w, err := NewWorld(options.Handlers...)
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
		options: options, world: w, audience: NewAudience(), config: config, written: emptyObject(),
		agents: map[string]*agentState{},
	}, nil
}

// Bind says for whom the core decides from now on: what the world is called,
// from which uuids are derived, and who remembers what was answered. With nil the
// core remembers it by itself, from now on and in memory that grows with every
// answer; a core that is restored then knows nothing of what was answered before.
//
// A core that is not bound folds, but whoever asks it for a decision about a
// request or an effect is refused with [WorldPaused].
func (c *Core) Bind(world string, answers Answers) {
	if answers == nil {
		answers = remembered{}
	}
	c.name, c.memory = world, answers
}

// Limit says how many bytes of payload a record of an effect has room for, where
// it is kept. What is larger is refused as malformed. 0 is [MaxPayload].
func (c *Core) Limit(payload int) { c.room = payload }

func (c *Core) tooLarge(in *Intent, payload signal.Value) *Rejection {
	if c.room <= 0 || len(payload) <= c.room {
		return nil
	}
	r := reject(in, InvalidIntent, "malformed")
	r.Problems = []Problem{{"/payload", fmt.Sprintf("%d bytes, and there is room for %d", len(payload), c.room)}}
	return r
}

func (c *Core) unbound(in *Intent) *Rejection {
	if c.memory != nil {
		return nil
	}
	return reject(in, WorldPaused, "nobody decides here: the core is not bound")
}

// World reads the world as it is.
func (c *Core) World() Reader { return c.world.Reader }

// Config returns the configuration in force.
func (c *Core) Config() Config { return c.config }

// Now returns the session time up to which the state has come.
func (c *Core) Now() time.Duration { return c.now }

// Seq returns the world's sequence number, that of the last effect.
func (c *Core) Seq() uint64 { return c.world.s.seq }

// Agents goes over the registered agents in the order of ids.
func (c *Core) Agents() iter.Seq[string] {
	return slices.Values(sortedKeys(c.agents))
}

// View returns all that an agent has been shown, news on its way included.
func (c *Core) View(agent string) (View, bool) {
	a, ok := c.agents[agent]
	if !ok {
		return View{}, false
	}
	return a.observer.View(), true
}

// Whole returns a delivery that replaces an agent's whole view by what it is
// now: for a client that starts over or could not keep up. All deliveries up to its
// Number, and none after it, are in it; it comes no earlier than the last of them.
func (c *Core) Whole(agent string) (Delivery, bool) {
	a, ok := c.agents[agent]
	if !ok {
		return Delivery{}, false
	}
	o := a.observer
	return Delivery{a.id, a.delivered, a.deliveries, o.delta(wholeView(o.values()))}, true
}

// Settings returns the rules for an agent.
func (c *Core) Settings(agent string) (Settings, bool) {
	a, ok := c.agents[agent]
	if !ok {
		return Settings{}, false
	}
	return a.settings, true
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
func (c *Core) Configure(v signal.Value) ([]Record, error) {
	if v == nil {
		v = emptyObject()
	}
	if err := soundObject(v, MaxEntityDepth); err != nil {
		return nil, fmt.Errorf("agents: configuration: %w", err)
	}
	config, err := ParseConfig(v)
	if err != nil {
		return nil, err
	}
	for _, id := range sortedKeys(c.agents) {
		compiler := compiler{}
		a := c.agents[id]
		if compiler.of(&config, a.class, a.policy); compiler.err != nil {
			return nil, fmt.Errorf("agents: agent %q under this configuration: %w", id, compiler.err)
		}
	}
	return []Record{{WordConfig, v}}, nil
}

// Begin returns the record of the world to begin with, see [ParseWorld]. It is
// refused once there has been an effect or an agent.
func (c *Core) Begin(world signal.Value) ([]Record, error) {
	if err := soundObject(world, MaxEntityDepth+8); err != nil {
		return nil, fmt.Errorf("agents: world: %w", err)
	}
	if _, err := c.parseWorld(world); err != nil {
		return nil, err
	}
	return []Record{{WordWorld, world}}, nil
}

func (c *Core) parseWorld(v signal.Value) (*World, error) {
	if len(c.agents) > 0 || c.world.s.kind != "" {
		return nil, fmt.Errorf("agents: world: %w", errNotPristine)
	}
	return ParseWorld(v, c.options.Handlers...)
}

// Registration is how an agent takes part.
type Registration struct {
	AgentID string
	// Policy is what [CompileLens] reads, and what of [Settings] differs from
	// the agent's class. Nil is the default policy.
	Policy signal.Value
	// Permissions are submit_intent and intent:KIND, the kind in lower case. Nil
	// means those for the document's four kinds; other kinds go under intent:custom too.
	Permissions []string
	Class       string // in the configuration; "" for none
}

// DefaultPermissions are those of an agent that is registered without any.
func DefaultPermissions() []string {
	return []string{"submit_intent", "intent:move", "intent:speak", "intent:interact", "intent:custom"}
}

// Register returns the record that registers an agent. One that is registered
// gets the new policy, and a whole view by it.
func (c *Core) Register(r Registration) ([]Record, error) {
	if r.Policy == nil {
		r.Policy = emptyObject()
	}
	if r.Permissions == nil {
		r.Permissions = DefaultPermissions()
	}
	o := object{
		{"agent_id", textValue(r.AgentID)},
		{"policy", r.Policy},
		{"permissions", namesValue(r.Permissions)},
	}
	if r.Class != "" {
		o = append(o, member{"class", textValue(r.Class)})
	}
	v := o.value()
	if err := soundObject(v, MaxEntityDepth+8); err != nil {
		return nil, fmt.Errorf("agents: registration of %q: %w", r.AgentID, err)
	}
	if _, known := c.agents[r.AgentID]; !known && len(c.agents) >= c.config.MaxAgents {
		return nil, fmt.Errorf("agents: more than %d agents", c.config.MaxAgents)
	}
	if _, _, err := c.compileAgent(v); err != nil {
		return nil, err
	}
	return []Record{{WordAgent, v}}, nil
}

// Leave returns the record that takes an agent out. Its entity stays, and the
// answers that it was given stand.
func (c *Core) Leave(agent string) ([]Record, error) {
	if _, ok := c.agents[agent]; !ok {
		return nil, &Rejection{Code: UnknownAgent, Recovery: Abort, AgentID: agent}
	}
	return []Record{{WordLeft, object{{"agent_id", textValue(agent)}}.value()}}, nil
}

// compileAgent reads the value of an agent's record.
func (c *Core) compileAgent(v signal.Value) (*agentState, *Lens, error) {
	a := &agentState{
		id: textOf(v, "agent_id"), class: textOf(v, "class"), value: slices.Clone(v),
		permissions: map[string]struct{}{}, tokens: map[string]*generation{},
	}
	if err := validKey(a.id, MaxID); err != nil {
		return nil, nil, fmt.Errorf("agents: agent_id: %w", err)
	}
	if a.policy, _ = a.value.Get("policy"); a.policy == nil {
		a.policy = emptyObject()
	}
	permissions := namesOf(v, "permissions")
	if len(permissions) > maxNames {
		return nil, nil, fmt.Errorf("agents: more than %d permissions", maxNames)
	}
	for _, p := range permissions {
		a.permissions[p] = struct{}{}
	}
	lens, err := CompileLens(a.policy, c.options.Customs, settingNames...)
	if err != nil {
		return nil, nil, err
	}
	compiler := compiler{}
	if a.settings = compiler.of(&c.config, a.class, a.policy); compiler.err != nil {
		return nil, nil, compiler.err
	}
	a.due.agent, a.ends.agent = a.id, a.id
	return a, lens, nil
}

func (a *agentState) permits(kind string) bool {
	if _, ok := a.permissions["submit_intent"]; !ok {
		return false
	}
	_, ok := a.permissions["intent:"+strings.ToLower(kind)]
	if !ok && kind != KindMove && kind != KindSpeak && kind != KindInteract {
		_, ok = a.permissions["intent:custom"]
	}
	return ok
}

// Apply folds one record that was kept at session time now. It is total: what
// it cannot read, or what contradicts the state, it ignores, and says so.
func (c *Core) Apply(now time.Duration, r Record) Applied {
	out := c.Advance(now)
	v := r.Value
	var err error
	switch r.Word {
	case WordConfig:
		err = c.applyConfig(v, &out)
	case WordWorld:
		var w *World
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
		compiler := compiler{}
		if settings[id] = compiler.of(&config, a.class, a.policy); compiler.err != nil {
			return compiler.err
		}
	}
	c.config, c.written = config, slices.Clone(v)
	if v == nil {
		c.written = emptyObject()
	}
	for id := range c.Agents() {
		a := c.agents[id]
		a.settings = settings[id]
		maps.DeleteFunc(a.quota.last, func(kind string, _ time.Duration) bool { return a.settings.Cooldowns[kind] <= 0 })
		c.settle(a, c.now, out) // by the new rules something may be in vain already
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
		a.delivered, a.deliveries = old.delivered, old.deliveries
		a.latest, a.arrivals, a.news = old.latest, old.arrivals, old.news
	} else if len(c.agents) >= MaxAgents {
		return fmt.Errorf("more than %d agents", MaxAgents)
	}
	a.observer = NewObserver(a.id, lens)
	c.agents[a.id] = a
	c.audience.Add(c.world.Reader, a.id, lens)
	delta := a.observer.Begin(c.world.Reader, c.Seq())
	// What was on its way by the old policy still comes before. The view itself is
	// news, and conflicts with nothing: what it has been made of did, or did not.
	at := c.deliver(a, c.now, delta, out)
	if seq := delta.ViewSeq; seq > a.seen(a.delivered) {
		a.announce(c.now, arrival{at: at, seq: seq, own: true, visible: true})
	}
	c.settle(a, c.now, out)
	return nil
}

func (c *Core) applyLeft(v signal.Value, out *Applied) error {
	a, ok := c.agents[textOf(v, "agent_id")]
	if !ok {
		return ErrRecord
	}
	for _, id := range sortedKeys(a.tokens) {
		out.Cancellations = append(out.Cancellations, Cancellation{a.id, id, ReasonLeft, c.now})
	}
	c.unschedule(a)
	c.audience.Remove(a.id)
	delete(c.agents, a.id)
	return nil
}

func (c *Core) applyQuantum(v signal.Value) {
	c.quanta++
	m, _ := v.Get("sim_time")
	if t, ok := m.Float64(); ok && textOf(v, "by") == CloseTick {
		c.simTime = max(c.simTime, t)
	}
}

// effectRecord returns the record of an effect; in is the intent that it comes
// from, if it does.
func effectRecord(e Effect, in *Intent, priority int) Record {
	o := membersOf(e.Value())
	if in != nil {
		o = append(o,
			member{"req_id", textValue(in.ReqID)},
			member{"context_seq", integerValue(in.ContextSeq)},
			member{"priority", signedValue(int64(priority))})
	}
	return Record{WordEffect, o.value()}
}

func (c *Core) applyEffect(v signal.Value, out *Applied) error {
	e, err := ParseEffect(slices.Clone(v))
	if err != nil {
		return err
	}
	if e.GlobalSeq != c.Seq()+1 {
		return fmt.Errorf("effect %d after %d", e.GlobalSeq, c.Seq())
	}
	var by *agentState
	if e.ReqID != "" {
		if by = c.agents[e.SourceID]; by == nil || validKey(e.ReqID, MaxReqID) != nil {
			return fmt.Errorf("an intent of %q, who is nobody", e.SourceID)
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
	var said *word
	concerned := c.audience.Follow(c.world.Reader, e, changes)
	out.Deliveries = slices.Grow(out.Deliveries, len(concerned))
	for _, id := range concerned {
		a := c.agents[id]
		delta, ok := a.observer.Update(c.world.Reader, e, changes)
		if !ok {
			continue
		}
		at := c.deliver(a, c.arrives(a, e), delta, out)
		n := arrival{at: at, seq: delta.ViewSeq, own: e.SourceID == a.id, visible: len(delta.Patches) > 0}
		if a.settings.Interrupt == InterruptConflict && !n.own {
			if said == nil {
				w := wordOf(e, changes)
				said = &w
			}
			n.word = *said
		}
		a.announce(c.now, n)
		c.settle(a, c.now, out)
	}
	return nil
}

// arrives returns when the news of an effect would reach an agent.
func (c *Core) arrives(a *agentState, e Effect) time.Duration {
	if a.settings.Latency == (Latency{}) {
		return c.now
	}
	distance := 0.0
	from, ok1 := c.world.Position(e.SourceID)
	to, ok2 := c.world.Position(a.id)
	if ok1 && ok2 {
		distance = from.Distance(to)
	}
	return after(c.now, a.settings.Latency.Delay(a.id, e.GlobalSeq, distance))
}

// deliver queues a delta. It comes no earlier than the one before it: a patch
// is against the view that the last one led to.
func (c *Core) deliver(a *agentState, at time.Duration, delta Delta, out *Applied) time.Duration {
	a.delivered = max(a.delivered, at)
	a.deliveries++
	out.Deliveries = append(out.Deliveries, Delivery{a.id, a.delivered, a.deliveries, delta})
	return a.delivered
}
