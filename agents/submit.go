package agents

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/sajou-dev/sajou-go/agents/internal/jsonvalue"
	"github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/signal"
)

// Decision is the result of a quantum.
type Decision struct {
	// Outcomes are in the order of the submissions, whatever the order in which
	// they were decided.
	Outcomes []Outcome
	// Records are to be kept all or none, and in this order.
	Records []signal.Record
}

// Submit decides a lone intent: a quantum of one.
func (c *Core) Submit(now time.Duration, in Intent) (Outcome, []signal.Record) {
	d := c.Decide(now, Quantum{}, []Submission{{Intent: &in}})
	return d.Outcomes[0], d.Records
}

// Decide decides the submissions of one quantum, in the order of (sim_time, priority,
// source_id) between sources (the multi-agent design, "Ordering and Time Authority").
// Submissions of one source that are equal in these keep their order in subs, which is
// that of asking; drafts with a uuid come after the others, in the order of uuids. How
// the sources are mixed in subs makes no difference. Each intent passes these checks, and the first that
// fails determines the outcome:
//
//   - it is well formed, and of a version that is spoken here
//   - idempotency: a request with a final outcome gets it again
//   - the agent is registered, the world is not paused, the agent has permission
//   - the generation's deadline
//   - quota and cooldown; backpressure comes here, see [Intake]
//   - staleness, against what had reached the agent when the quantum closed:
//     effects of the same quantum make no intent stale
//   - validation and the effect's own check, against the world after the effects
//     before it in the quantum. An intent that would have been possible at the
//     beginning of the quantum is refused with [ErrIntentConflict]
//
// A refusal that is not final leaves no record (see [Failure]), so the same req_id may
// be tried again.
func (c *Core) Decide(now time.Duration, q Quantum, subs []Submission) Decision {
	d := c.decide(now, q, subs)
	if len(d.effects) > 0 && q.By != CloseSubmit {
		d.records = slices.Insert(d.records, 0, d.closing())
	}
	return Decision{d.outcomes, d.records}
}

// DecideBatch decides intents that are to be accepted all or none, in their
// order. If one is refused, the others are refused with [ErrBatchAborted], and only
// final refusals are recorded. A duplicate counts as accepted if its request was.
func (c *Core) DecideBatch(now time.Duration, intents []Intent) Decision {
	subs := make([]Submission, len(intents))
	for i := range intents {
		subs[i].Intent = &intents[i]
	}
	d := c.decide(now, Quantum{By: CloseBatch}, subs)
	bad := slices.IndexFunc(d.outcomes, func(o Outcome) bool { return !o.OK() })
	if bad < 0 {
		if len(d.effects) > 0 {
			d.records = slices.Insert(d.records, 0, d.closing())
		}
		return Decision{d.outcomes, d.records}
	}
	for i := range d.outcomes {
		if d.outcomes[i].GlobalSeq > c.Seq() { // also what repeats one of them
			d.outcomes[i] = Outcome{Rejection: reject(&intents[i], ErrBatchAborted, "intent %d of the batch was refused", bad)}
		}
	}
	return Decision{d.outcomes, slices.DeleteFunc(d.records, func(r signal.Record) bool { return r.Word != WordOutcome })}
}

// decider decides one quantum.
type decider struct {
	c        *Core
	now      time.Duration
	q        Quantum
	simTime  float64          // of the quantum
	most     float64          // that an effect's sim_time may be
	began    uint64           // number of the world's last effect before the quantum
	since    float64          // its sim_time
	trial    *world.Trial     // has the effects so far, but for the last
	last     *world.Plan      // of the one that the world does not have yet
	waiting  []place          // what is decided next, and after
	possible map[*Intent]bool // see conflicts
	effects  []world.Effect
	outcomes []Outcome
	records  []signal.Record

	// What later submissions of the quantum depend on; nil in a quantum of one.
	own     map[string]uint64 // effects of an agent's intents so far
	tallies map[string]*tally
	answers map[[2]string]FinalOutcome // in this quantum
}

func (c *Core) decide(now time.Duration, q Quantum, subs []Submission) *decider {
	now = max(now, c.now)
	d := &decider{
		c: c, now: now, q: q, most: math.Inf(1), began: c.world.Seq(), since: c.world.SimTime(), trial: c.world.Try(),
		outcomes: make([]Outcome, len(subs)),
	}
	defer d.trial.End()
	if len(subs) > 1 {
		d.own, d.tallies, d.answers = map[string]uint64{}, map[string]*tally{}, map[[2]string]FinalOutcome{}
	}
	switch {
	case q.Timed && jsonvalue.Finite(q.SimTime):
		d.simTime = q.SimTime
	case c.config.Authority == TimeSim:
		d.simTime = c.simTime
	default:
		d.simTime = world.Seconds(now)
	}
	if q.By == CloseTick || c.config.Authority == TimeWall {
		d.most = d.simTime
	}
	ticks := q.By == CloseTick && c.config.TickEffects // the tick's effect is still to come
	for d.waiting = c.order(q, d.simTime, subs); len(d.waiting) > 0; d.waiting = d.waiting[1:] {
		p := d.waiting[0]
		if ticks && p.time >= d.simTime {
			ticks = false
			d.tick()
		}
		o := &d.outcomes[p.index]
		switch r := p.sub.untimely(); {
		case r != nil:
			*o = Outcome{Rejection: r}
		case p.sub.Intent != nil:
			*o = d.intent(p.sub.Intent, p)
		case p.sub.Draft != nil:
			*o = d.draft(p.sub, p.time)
		default:
			*o = Outcome{Rejection: &Rejection{Code: ErrInvalidIntent, Recovery: ModifyIntent, Reason: "neither an intent nor a draft"}}
		}
	}
	if ticks {
		d.tick()
	}
	return d
}

// tick takes the effect of the tick that closes the quantum. It comes first among the
// effects of its instant, after those of submissions that are timed before it.
func (d *decider) tick() {
	tick := EffectDraft{KindTimeTick, jsonvalue.Fields{
		{"sim_time", jsonvalue.Float(d.simTime)},
		{"delta_time", jsonvalue.Float(d.q.DeltaTime)},
		{"frame_number", jsonvalue.Uint(d.q.FrameNumber)},
	}.Value(), d.q.SourceID, world.SchemaVersion}
	d.draft(&Submission{Draft: &tick}, d.simTime)
}

// closing is the record of how the quantum closed.
func (d *decider) closing() signal.Record {
	o := jsonvalue.Fields{
		{"by", jsonvalue.Text(d.q.By)},
		{"sim_time", jsonvalue.Float(d.simTime)},
		{"first", jsonvalue.Uint(d.effects[0].GlobalSeq)},
		{"effects", jsonvalue.Uint(uint64(len(d.effects)))},
	}
	if d.q.By == CloseTick {
		if jsonvalue.Finite(d.q.DeltaTime) {
			o = append(o, jsonvalue.NamedValue{"delta_time", jsonvalue.Float(d.q.DeltaTime)})
		}
		o = append(o, jsonvalue.NamedValue{"frame_number", jsonvalue.Uint(d.q.FrameNumber)}, jsonvalue.NamedValue{"source_id", jsonvalue.Text(d.q.SourceID)})
	}
	return signal.Record{Word: WordQuantum, Value: o.Value()}
}

// stand applies the last planned effect to the world on trial, so that it shows all
// effects so far. It is called before the next plan; so a quantum of one effect never
// changes the world.
func (d *decider) stand() {
	if d.last != nil {
		d.trial.Apply(d.last)
		d.last = nil
	}
}

// conflicts reports whether an intent that is not possible now was possible when the
// quantum began, both in the world as its agent may see it. The first call undoes the
// effects, examines all undecided intents of the quantum and applies the effects
// again, so that a quantum costs one such swap whatever it holds.
func (d *decider) conflicts(in *Intent) bool {
	if len(d.effects) == 0 {
		return false
	}
	if d.possible == nil {
		d.possible = map[*Intent]bool{}
		d.trial.Swap()
		for _, p := range d.waiting {
			if p.sub.Intent == nil || p.sub.Intent.structure() != nil || d.c.agents[p.source] == nil {
				continue
			}
			e := p.effect(d.began+1, max(min(p.time, d.most), d.since))
			sight := d.c.agents[p.source].observer.VisibleWorld(d.c.world.ReadOnly)
			d.possible[p.sub.Intent] = len(d.c.examine(sight, p.sub.Intent, e)) == 0
		}
		d.trial.Swap()
	}
	return d.possible[in]
}

// accept takes an effect.
func (d *decider) accept(e world.Effect, plan *world.Plan, in *Intent, priority int) Outcome {
	d.effects = append(d.effects, e)
	d.last = plan
	kept := e
	o := Outcome{Status: Accepted, GlobalSeq: e.GlobalSeq, UUID: e.UUID, Effect: &kept}
	if in != nil {
		// The number counts the agent's own effects of the quantum alone, so it reveals
		// nothing about those of others.
		o.Number = d.c.agents[in.AgentID].deliveries + d.own[in.AgentID]
		if d.own != nil {
			d.own[in.AgentID]++
		}
	}
	d.records = append(d.records, effectRecord(e, in, priority, o.Number))
	return o
}

func (d *decider) seq() uint64 { return d.began + uint64(len(d.effects)) + 1 }

// time returns the sim_time of the next effect, which is wanted for t: never
// before the one of the effect before it.
func (d *decider) time(t float64) float64 {
	last := d.since
	if n := len(d.effects); n > 0 {
		last = d.effects[n-1].SimTime
	}
	return max(min(t, d.most), last)
}

func (d *decider) draft(s *Submission, t float64) Outcome {
	seq := d.seq()
	uuid := s.UUID
	if uuid == "" {
		uuid = deriveUUID(d.c.name, strconv.FormatUint(seq, 10))
	}
	draft := *s.Draft
	if draft.SchemaVersion == "" {
		draft.SchemaVersion = world.SchemaVersion
	}
	in := Intent{AgentID: draft.SourceID}
	if r := d.c.unbound(&in); r != nil {
		return Outcome{Rejection: r}
	}
	if !compatible(draft.SchemaVersion) {
		return Outcome{Rejection: reject(&in, ErrVersionMismatch, "schema_version %q, this program speaks %s", draft.SchemaVersion, world.SchemaVersion)}
	}
	if err := soundPayload(draft.Payload); err != nil {
		return Outcome{Rejection: reject(&in, ErrInvalidIntent, "payload: %v", err)}
	}
	if r := d.c.tooLarge(&in, draft.Payload); r != nil {
		return Outcome{Rejection: r}
	}
	if p := relationMetadata(draft.Kind, draft.Payload); p != nil {
		r := reject(&in, ErrInvalid, "")
		r.Problems = []Problem{*p}
		return Outcome{Rejection: r}
	}
	for _, text := range []string{uuid, draft.Kind, draft.SourceID, draft.SchemaVersion} {
		if len(text) > world.MaxID || !utf8.ValidString(text) {
			return Outcome{Rejection: reject(&in, ErrInvalidIntent, "%q: want at most %d bytes of UTF-8", clip(text), world.MaxID)}
		}
	}
	e := draft.Effect(uuid, seq, d.time(t), "")
	d.stand()
	plan, err := d.c.world.Plan(e)
	if err != nil {
		r := reject(&in, ErrInvalid, "")
		p := Problem{Reason: err.Error()}
		if effectErr, ok := errors.AsType[*world.EffectError](err); ok {
			p.Path = effectErr.Path
		}
		r.Problems = []Problem{p}
		return Outcome{Rejection: r}
	}
	return d.accept(e, plan, nil, 0)
}

func (d *decider) intent(in *Intent, p place) Outcome {
	c := d.c
	key := [2]string{in.AgentID, in.ReqID}
	if a, ok := d.answers[key]; ok {
		return c.outcome(in, a)
	}
	if o, answered := c.admit(d.now, in, d.tallies[in.AgentID]); answered {
		if o.Rejection != nil && o.Status == Rejected {
			o.Rejection = d.refuse(in, o.Rejection)
		}
		return o
	}
	a := c.agents[in.AgentID]
	if r := c.staleness(d.now, a, in); r != nil {
		return Outcome{Rejection: r}
	}
	seq := d.seq()
	e := p.effect(seq, d.time(p.time))
	d.stand()
	plan, problems, beyond := c.validate(in, e)
	if len(problems) > 0 {
		code := ErrInvalid
		// A problem beyond what the agent may know is never a conflict: the code would
		// reveal whether it arose before the quantum or in it.
		if !beyond && d.conflicts(in) {
			code = ErrIntentConflict
		}
		r := reject(in, code, "")
		r.Problems = problems
		return Outcome{Rejection: d.refuse(in, r)}
	}
	o := d.accept(e, plan, in, p.priority)
	if d.answers != nil {
		d.answers[key] = FinalOutcome{GlobalSeq: seq, Number: o.Number}
		d.tally(in).add(in.Kind, d.now, cost(in.Payload))
	}
	return o
}

// tally returns what an agent has used in a quantum of several submissions.
func (d *decider) tally(in *Intent) *tally {
	t, ok := d.tallies[in.AgentID]
	if !ok {
		t = &tally{}
		d.tallies[in.AgentID] = t
	}
	return t
}

// refuse records a final refusal and charges it to the agent's quota, so that invalid
// intents cannot fill the log. It returns the rejection to send: without quota left
// that is the quota's, which leaves no record.
func (d *decider) refuse(in *Intent, r *Rejection) *Rejection {
	a, ok := d.c.agents[in.AgentID]
	if !r.Code.Final() || !ok {
		r.unrecorded()
		return r
	}
	tokens := cost(in.Payload)
	idle := Intent{AgentID: in.AgentID, ReqID: in.ReqID} // of a kind that never cools down
	if spent := a.quota.allow(d.now, &idle, tokens, &a.settings, d.tallies[in.AgentID]); spent != nil {
		return spent
	}
	record := refusal(r, tokens)
	d.records = append(d.records, record)
	if d.answers != nil {
		d.answers[[2]string{in.AgentID, in.ReqID}] = FinalOutcome{Code: r.Code, Reason: r.Reason, Problems: r.Problems}
		t := d.tally(in)
		t.intents++
		t.tokens += tokens
	}
	return r
}

// admit is the first half of a decision, up to the quota. more counts against the
// quota in addition to the recorded uses. It returns false if the intent passes.
func (c *Core) admit(now time.Duration, in *Intent, more *tally) (Outcome, bool) {
	refused := func(r *Rejection) (Outcome, bool) { return Outcome{Rejection: r}, true }
	if r := in.structure(); r != nil {
		return refused(r)
	}
	if r := cmp.Or(c.unbound(in), c.tooLarge(in, in.Payload)); r != nil {
		return refused(r)
	}
	if a, ok := c.recall(in.AgentID, in.ReqID); ok {
		return c.outcome(in, a), true
	}
	a, ok := c.agents[in.AgentID]
	switch {
	case !ok:
		return refused(reject(in, ErrUnknownAgent, "agent %q is not registered", in.AgentID))
	case c.config.Paused:
		return refused(reject(in, ErrWorldPaused, ""))
	case !a.permits(in.Kind):
		return refused(reject(in, ErrForbidden, textForbidden, in.Kind))
	}
	if t, ok := a.tokens[in.ReqID]; ok && t.Deadline > 0 && now >= t.Deadline {
		return refused(reject(in, ErrTimeout, ReasonTimeout))
	}
	if r := a.quota.allow(now, in, cost(in.Payload), &a.settings, more); r != nil {
		return refused(r)
	}
	return Outcome{}, false
}

// staleness refuses an intent whose context is out of date. If the agent is interrupted
// by conflicts alone, only a conflict makes the intent of a generation stale.
func (c *Core) staleness(now time.Duration, a *agentState, in *Intent) *Rejection {
	latest := a.seen(now)
	if !a.sent.behind(latest, in.ContextSeq, a.settings.Staleness) {
		return nil
	}
	if t, ok := a.tokens[in.ReqID]; ok && a.settings.Interrupt == InterruptConflict && in.ContextSeq >= t.ContextSeq {
		if !t.conflicted(now) {
			return nil
		}
	}
	r := reject(in, ErrStaleContext, textStale, ReasonStale, a.sent.gap(latest, in.ContextSeq), a.settings.Staleness)
	r.ExpectedSeq, r.ActualSeq = a.sent.least(latest, a.settings.Staleness), in.ContextSeq
	return r
}
