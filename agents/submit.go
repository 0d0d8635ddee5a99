package agents

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"
)

// Decision is what the core says about a quantum.
type Decision struct {
	// Outcomes are in the order of the submissions, whatever the order in which
	// they were decided.
	Outcomes []Outcome
	// Records are to be kept all or none, and in this order.
	Records []Record
}

// Submit decides a lone intent: a quantum of one.
func (c *Core) Submit(now time.Duration, in Intent) (Outcome, []Record) {
	d := c.Decide(now, Quantum{}, []Submission{{Intent: &in}})
	return d.Outcomes[0], d.Records
}

// Broadcast decides a lone draft. Nobody is asked for leave, but what cannot be
// applied to the world is refused.
func (c *Core) Broadcast(now time.Duration, draft Draft) (Outcome, []Record) {
	d := c.Decide(now, Quantum{}, []Submission{{Draft: &draft}})
	return d.Outcomes[0], d.Records
}

// Decide decides what was asked in one quantum. The order in which it came
// makes no difference: it is decided in the order of (sim_time, priority, source_id,
// uuid). Each intent goes through these, of which the first that fails answers:
//
//   - it is well formed, and of a version that is spoken here
//   - idempotency: what was answered is answered the same
//   - the agent is registered, the world is not paused, the agent has permission
//   - the generation's deadline
//   - quota and cooldown; backpressure comes here, see [Intake]
//   - staleness, against what had reached the agent when the quantum closed:
//     what happens at the same time makes nobody stale
//   - validation and the effect's own check, against the world as what comes
//     before in the quantum leaves it. What would have been possible at its
//     beginning conflicts with that
//
// Nothing is kept of a refusal that may change (see [Failure]), so the same
// req_id may be tried again.
func (c *Core) Decide(now time.Duration, q Quantum, subs []Submission) Decision {
	d := c.decide(now, q, subs)
	if len(d.effects) > 0 && q.By != CloseSubmit {
		d.records = slices.Insert(d.records, 0, d.closing())
	}
	return Decision{d.outcomes, d.records}
}

// DecideBatch decides intents that are to be accepted all or none, in their
// order. If one is refused, the others are with [BatchAborted], and nothing is
// kept but refusals that are final. What was answered before counts as accepted if
// it was.
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
			d.outcomes[i] = Outcome{Rejection: reject(&intents[i], BatchAborted, "intent %d of the batch was refused", bad)}
		}
	}
	return Decision{d.outcomes, slices.DeleteFunc(d.records, func(r Record) bool { return r.Word != WordOutcome })}
}

// decider decides one quantum.
type decider struct {
	c        *Core
	now      time.Duration
	q        Quantum
	simTime  float64          // of the quantum
	most     float64          // that an effect's sim_time may be
	began    head             // of the world
	journal  journal          // what the effects so far, which are tried on the world, wrote
	last     *transaction     // of the one that the world does not have yet
	waiting  []place          // what is decided next, and after
	possible map[*Intent]bool // see conflicts
	effects  []Effect
	tallies  map[string]*tally
	answers  map[[2]string]Answer // in this quantum
	outcomes []Outcome
	records  []Record
}

func (c *Core) decide(now time.Duration, q Quantum, subs []Submission) *decider {
	now = max(now, c.now)
	d := &decider{
		c: c, now: now, q: q, most: math.Inf(1), began: c.world.s.head,
		tallies: map[string]*tally{}, answers: map[[2]string]Answer{}, outcomes: make([]Outcome, len(subs)),
	}
	defer d.undo()
	switch {
	case q.Timed && finite(q.SimTime):
		d.simTime = q.SimTime
	case c.config.Authority == TimeSim:
		d.simTime = c.simTime
	default:
		d.simTime = Seconds(now)
	}
	if q.By == CloseTick || c.config.Authority == TimeWall {
		d.most = d.simTime
	}
	if q.By == CloseTick && c.config.TickEffects {
		tick := Draft{KindTimeTick, object{
			{"sim_time", numberValue(d.simTime)},
			{"delta_time", numberValue(q.DeltaTime)},
			{"frame_number", integerValue(q.FrameNumber)},
		}.value(), q.SourceID, SchemaVersion}
		d.draft(&Submission{Draft: &tick}, d.began.time)
	}
	for d.waiting = c.order(q, d.simTime, subs); len(d.waiting) > 0; d.waiting = d.waiting[1:] {
		p := d.waiting[0]
		o := &d.outcomes[p.index]
		switch r := p.sub.untimely(); {
		case r != nil:
			*o = Outcome{Rejection: r}
		case p.sub.Intent != nil:
			*o = d.intent(p.sub.Intent, p)
		case p.sub.Draft != nil:
			*o = d.draft(p.sub, p.time)
		default:
			*o = Outcome{Rejection: &Rejection{Code: InvalidIntent, Recovery: ModifyIntent, Reason: "neither an intent nor a draft"}}
		}
	}
	return d
}

// closing is the record of how the quantum closed.
func (d *decider) closing() Record {
	o := object{
		{"by", textValue(d.q.By)},
		{"sim_time", numberValue(d.simTime)},
		{"first", integerValue(d.effects[0].GlobalSeq)},
		{"effects", integerValue(uint64(len(d.effects)))},
	}
	if d.q.By == CloseTick {
		if finite(d.q.DeltaTime) {
			o = append(o, member{"delta_time", numberValue(d.q.DeltaTime)})
		}
		o = append(o, member{"frame_number", integerValue(d.q.FrameNumber)}, member{"source_id", textValue(d.q.SourceID)})
	}
	return Record{WordQuantum, o.value()}
}

// stand lets the world stand as it is after all effects so far. A quantum of
// one effect leaves the world alone.
func (d *decider) stand() {
	if d.last != nil {
		d.last.commit(&d.journal)
		d.last = nil
	}
}

// undo leaves the world as it was. It runs whatever happens.
func (d *decider) undo() {
	if !d.journal.undone && d.journal.effects > 0 {
		d.c.world.s.flip(&d.journal)
	}
}

// conflicts reports whether an intent that is not possible would have been when
// the quantum began. For the first that asks, the effects are undone to ask it of
// all that wait, and done again: once in a quantum, whatever it holds.
func (d *decider) conflicts(in *Intent) bool {
	if len(d.effects) == 0 {
		return false
	}
	if d.possible == nil {
		d.possible = map[*Intent]bool{}
		d.c.world.s.flip(&d.journal)
		for _, p := range d.waiting {
			if p.sub.Intent == nil || p.sub.Intent.structure() != nil || d.c.agents[p.source] == nil {
				continue
			}
			e := p.effect(d.began.seq+1, max(min(p.time, d.most), d.began.time))
			_, problems := d.c.validate(p.sub.Intent, e)
			d.possible[p.sub.Intent] = len(problems) == 0
		}
		d.c.world.s.flip(&d.journal)
	}
	return d.possible[in]
}

// accept takes an effect.
func (d *decider) accept(e Effect, plan *transaction, in *Intent, priority int) Outcome {
	d.effects = append(d.effects, e)
	d.last = plan
	d.records = append(d.records, effectRecord(e, in, priority))
	kept := e
	return Outcome{Status: Accepted, GlobalSeq: e.GlobalSeq, UUID: e.UUID, Effect: &kept}
}

func (d *decider) seq() uint64 { return d.began.seq + uint64(len(d.effects)) + 1 }

// time returns the sim_time of the next effect, which is wanted for t: never
// before the one of the effect before it.
func (d *decider) time(t float64) float64 {
	last := d.began.time
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
		draft.SchemaVersion = SchemaVersion
	}
	in := Intent{AgentID: draft.SourceID}
	if r := d.c.unbound(&in); r != nil {
		return Outcome{Rejection: r}
	}
	if !compatible(draft.SchemaVersion) {
		return Outcome{Rejection: reject(&in, VersionMismatch, "schema_version %q, this program speaks %s", draft.SchemaVersion, SchemaVersion)}
	}
	if err := soundPayload(draft.Payload); err != nil {
		return Outcome{Rejection: reject(&in, InvalidIntent, "payload: %v", err)}
	}
	if r := d.c.tooLarge(&in, draft.Payload); r != nil {
		return Outcome{Rejection: r}
	}
	for _, text := range []string{uuid, draft.Kind, draft.SourceID, draft.SchemaVersion} {
		if len(text) > MaxID || !utf8.ValidString(text) {
			return Outcome{Rejection: reject(&in, InvalidIntent, "%q: want at most %d bytes of UTF-8", clip(text), MaxID)}
		}
	}
	e := draft.Effect(uuid, seq, d.time(t), "")
	d.stand()
	plan, err := d.c.world.plan(e)
	if err != nil {
		r := reject(&in, Invalid, "")
		p := Problem{Reason: err.Error()}
		if effectErr, ok := errors.AsType[*EffectError](err); ok {
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
	plan, problems := c.validate(in, e)
	if len(problems) > 0 {
		code := Invalid
		if d.conflicts(in) {
			code = IntentConflict
		}
		r := reject(in, code, "")
		r.Problems = problems
		return Outcome{Rejection: d.refuse(in, r)}
	}
	d.answers[key] = Answer{GlobalSeq: seq}
	d.tally(in).add(in.Kind, d.now, cost(in.Payload))
	return d.accept(e, plan, in, p.priority)
}

func (d *decider) tally(in *Intent) *tally {
	t, ok := d.tallies[in.AgentID]
	if !ok {
		t = &tally{}
		d.tallies[in.AgentID] = t
	}
	return t
}

// refuse keeps a final refusal, if the agent has quota left for it: or else
// nonsense could fill the log. It returns what to answer: without quota that.
func (d *decider) refuse(in *Intent, r *Rejection) *Rejection {
	a, ok := d.c.agents[in.AgentID]
	if !r.Code.Final() || !ok {
		return r
	}
	tokens := cost(in.Payload)
	idle := Intent{AgentID: in.AgentID, ReqID: in.ReqID} // of a kind that never cools down
	if spent := a.quota.allow(d.now, &idle, tokens, &a.settings, d.tallies[in.AgentID]); spent != nil {
		return spent
	}
	record := refusal(r, tokens)
	d.records = append(d.records, record)
	d.answers[[2]string{in.AgentID, in.ReqID}] = Answer{Code: r.Code, Reason: textOf(record.Value, "reason")}
	t := d.tally(in)
	t.intents++
	t.tokens += tokens
	return r
}

// admit is the first half of a decision, up to the quota; more is what counts
// beside what is recorded. It returns false if the intent may go on.
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
		return refused(reject(in, UnknownAgent, "nobody of this id is registered"))
	case c.config.Paused:
		return refused(reject(in, WorldPaused, ""))
	case !a.permits(in.Kind):
		return refused(reject(in, Forbidden, "no permission for %s", in.Kind))
	}
	if t, ok := a.tokens[in.ReqID]; ok && t.Deadline > 0 && now >= t.Deadline {
		return refused(reject(in, Timeout, ReasonTimeout))
	}
	if r := a.quota.allow(now, in, cost(in.Payload), &a.settings, more); r != nil {
		return refused(r)
	}
	return Outcome{}, false
}

// staleness says whether an intent goes by something that is out of date. One
// whose generation only conflicts interrupt is stale by a conflict alone.
func (c *Core) staleness(now time.Duration, a *agentState, in *Intent) *Rejection {
	latest := a.seen(now)
	if !behind(latest, in.ContextSeq, a.settings.Staleness) {
		return nil
	}
	if t, ok := a.tokens[in.ReqID]; ok && a.settings.Interrupt == InterruptConflict && in.ContextSeq >= t.ContextSeq {
		if !t.clashed(now) {
			return nil
		}
	}
	r := reject(in, StaleContext, "%s_seq_gap_%d_threshold_%d", ReasonStale, latest-in.ContextSeq, a.settings.Staleness)
	r.ExpectedSeq, r.ActualSeq = latest-a.settings.Staleness, in.ContextSeq
	return r
}
