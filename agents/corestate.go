package agents

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/tinylib/msgp/msgp"

	"github.com/sajou-dev/sajou-go/agents/internal/codec"
	"github.com/sajou-dev/sajou-go/agents/internal/jsonvalue"
	"github.com/sajou-dev/sajou-go/agents/internal/strictjson"
	"github.com/sajou-dev/sajou-go/agents/view"
	"github.com/sajou-dev/sajou-go/agents/world"
)

// coreVersion is the first element of a core's state. It changes with its
// format, and with every change of rules after which old bytes would go on differently.
const coreVersion = 6

// AppendState appends the whole state of c to dst: canonical bytes, equal for
// equal histories however time was cut. They are one msgpack array:
//
//	[version, now, configuration, world, sim time, quanta, agents, left]
//
//	configuration  as recorded
//	world          bytes of [world.World.AppendState]
//	agents         [[value, observer, latest, delivered, deliveries, sent, interrupted,
//	               arrivals, uses, cooldowns, tokens]…] in the order of ids
//	left           [[id, deliveries]…] of agents that have left, in the order of ids
//	value          as registered
//	observer       bytes of [view.Observer.AppendState]
//	sent           [view_seq, increase…] of the last deliveries; -n stands for n
//	               deliveries that followed the one before it and only moved time
//	interrupted    time of the last interruption, or nil
//	arrivals       [[at, seq, own, visible, [class…], [path…]]…]
//	uses           [[at, intents, tokens]…]
//	cooldowns      [[kind, at]…] in the order of kinds
//	tokens         [[req_id, context_seq, context_digest, [path…], [class…], issued,
//	               deadline, budget, conflict]…] in the order of req_ids
//
// What the world is called and what was answered are not in it: see [Core.Bind].
func (c *Core) AppendState(dst []byte) []byte {
	dst = msgp.AppendArrayHeader(dst, 8)
	dst = msgp.AppendInt(dst, coreVersion)
	dst = msgp.AppendInt64(dst, int64(c.now))
	dst = append(dst, c.written...)
	dst = msgp.AppendBytes(dst, c.world.AppendState(nil))
	dst = msgp.AppendFloat64(dst, c.simTime)
	dst = msgp.AppendUint64(dst, c.quanta)
	dst = msgp.AppendArrayHeader(dst, uint32(len(c.agents)))
	var observer []byte
	for id := range c.Agents() {
		a := c.agents[id]
		observer = a.observer.AppendState(observer[:0], c.world.ReadOnly)
		dst = a.append(dst, observer, c.now)
	}
	dst = msgp.AppendArrayHeader(dst, uint32(len(c.left)))
	for _, id := range jsonvalue.SortedKeys(c.left) {
		dst = msgp.AppendArrayHeader(dst, 2)
		dst = msgp.AppendString(dst, id)
		dst = msgp.AppendUint64(dst, c.left[id])
	}
	return dst
}

func (a *agentState) append(dst, observer []byte, now time.Duration) []byte {
	dst = msgp.AppendArrayHeader(dst, 11)
	dst = append(dst, a.value...)
	dst = msgp.AppendBytes(dst, observer)
	// A delta that has arrived is not in flight, whether a call has removed it since
	// or not: the bytes are those of the time.
	dst = msgp.AppendUint64(dst, a.seen(now))
	dst = msgp.AppendInt64(dst, int64(a.delivered))
	dst = msgp.AppendUint64(dst, a.deliveries)
	dst = a.appendSent(dst)
	if a.ever {
		dst = msgp.AppendInt64(dst, int64(a.interrupted))
	} else {
		dst = msgp.AppendNil(dst)
	}
	coming := a.inFlight[a.arrived(now):]
	dst = msgp.AppendArrayHeader(dst, uint32(len(coming)))
	for _, n := range coming {
		dst = msgp.AppendArrayHeader(dst, 6)
		dst = msgp.AppendInt64(dst, int64(n.at))
		dst = msgp.AppendUint64(dst, n.seq)
		dst = msgp.AppendBool(dst, n.own)
		dst = msgp.AppendBool(dst, n.visible)
		dst = appendNames(dst, n.footprint.Classes)
		dst = appendNames(dst, n.footprint.Paths)
	}
	// Expired uses are not part of the state, whether a call has removed them or not.
	uses := a.quota.uses
	for len(uses) > 0 && now-uses[0].at >= window {
		uses = uses[1:]
	}
	dst = msgp.AppendArrayHeader(dst, uint32(len(uses)))
	for _, u := range uses {
		dst = msgp.AppendArrayHeader(dst, 3)
		dst = msgp.AppendInt64(dst, int64(u.at))
		dst = msgp.AppendInt64(dst, u.intents)
		dst = msgp.AppendInt64(dst, u.tokens)
	}
	dst = msgp.AppendArrayHeader(dst, uint32(len(a.quota.last)))
	for _, kind := range jsonvalue.SortedKeys(a.quota.last) {
		dst = msgp.AppendArrayHeader(dst, 2)
		dst = msgp.AppendString(dst, kind)
		dst = msgp.AppendInt64(dst, int64(a.quota.last[kind]))
	}
	dst = msgp.AppendArrayHeader(dst, uint32(len(a.tokens)))
	for _, id := range jsonvalue.SortedKeys(a.tokens) {
		t := a.tokens[id]
		dst = msgp.AppendArrayHeader(dst, 9)
		dst = msgp.AppendString(dst, id)
		dst = msgp.AppendUint64(dst, t.ContextSeq)
		dst = msgp.AppendString(dst, t.ContextDigest)
		dst = appendNames(dst, t.Reads)
		dst = appendNames(dst, t.Classes)
		dst = msgp.AppendInt64(dst, int64(t.Issued))
		dst = msgp.AppendInt64(dst, int64(t.Deadline))
		dst = msgp.AppendInt64(dst, t.Budget)
		dst = msgp.AppendBool(dst, t.conflicted(now))
	}
	return dst
}

func (a *agentState) appendSent(dst []byte) []byte {
	runs := 0
	for i := range a.sent {
		if a.quiet(i) > 0 {
			runs++
		}
	}
	dst = msgp.AppendArrayHeader(dst, uint32(len(a.sent)+runs))
	last := uint64(0)
	for i, d := range a.sent {
		dst = msgp.AppendUint64(dst, d.seq-last)
		last = d.seq
		if n := a.quiet(i); n > 0 {
			dst = msgp.AppendInt64(dst, -int64(n))
		}
	}
	return dst
}

// quiet returns how many deliveries that only moved time followed element i of sent.
func (a *agentState) quiet(i int) uint64 { return a.end(i) - a.sent[i].number - 1 }

func appendNames(dst []byte, names []string) []byte {
	dst = msgp.AppendArrayHeader(dst, uint32(len(names)))
	for _, name := range names {
		dst = msgp.AppendString(dst, name)
	}
	return dst
}

// RestoreCore returns the core whose state [Core.AppendState] wrote, with the
// same options, not bound yet. It believes nothing of b: what no core could have written is
// refused with [world.ErrState], what was written under other rules with [world.ErrStateVersion].
func RestoreCore(b []byte, options Options) (*Core, error) {
	c, err := NewCore(options)
	if err != nil {
		return nil, err
	}
	if err := c.restore(b); errors.Is(err, world.ErrStateVersion) {
		return nil, err
	} else if err != nil {
		return nil, fmt.Errorf("%w: %w", world.ErrState, err)
	}
	if !bytes.Equal(c.AppendState(make([]byte, 0, len(b))), b) {
		return nil, fmt.Errorf("%w: not in canonical form", world.ErrState)
	}
	return c, nil
}

func (c *Core) restore(b []byte) error {
	r := codec.NewStateReader(b)
	r.Begin(coreVersion, 8, world.ErrStateVersion)
	c.now = r.Duration()
	written := r.Object()
	if r.Err == nil {
		c.written = written
		if c.config, r.Err = ParseConfig(written); r.Err != nil {
			return r.Err
		}
	}
	b = r.Bytes()
	if r.Err != nil {
		return r.Err
	}
	var err error
	if c.world, err = world.RestoreWorld(b, c.options.Handlers...); err != nil {
		return err
	}
	c.simTime = r.Finite()
	c.quanta = r.Uint()
	before := ""
	for range r.ArrayOf(maxAgents) {
		a := c.restoreAgent(r)
		if r.Err == nil && a.id <= before {
			r.Fail("agents out of order")
		}
		if r.Err != nil {
			return r.Err
		}
		before = a.id
		c.agents[a.id] = a
		c.audience.Add(c.world.ReadOnly, a.id, a.observer.Policy())
		if at, ok := a.next(); ok && at <= c.now {
			return fmt.Errorf("something of %q that should have happened", a.id)
		}
		c.schedule(a)
	}
	before = ""
	for range r.ArrayOf(maxAgents) {
		r.Fields(2, "a part")
		id, deliveries := r.Key(world.MaxID), r.Uint()
		if _, here := c.agents[id]; r.Err == nil && (id <= before || here) {
			r.Fail("agents that have left out of order")
		}
		if r.Err != nil {
			return r.Err
		}
		before, c.left[id] = id, deliveries
	}
	return r.End()
}

// restoreAgent reads one agent, not yet among those of c.
func (c *Core) restoreAgent(r *codec.StateReader) *agentState {
	r.Fields(11, "a part")
	value := r.Object()
	observer := r.Bytes()
	if r.Err != nil {
		return nil
	}
	a, lens, err := c.compileAgent(value)
	if err != nil {
		r.Fail("%w", err)
		return nil
	}
	if a.observer, err = view.RestoreObserver(observer, c.world.ReadOnly, lens); err != nil {
		r.Fail("%w", err)
		return nil
	}
	a.latest = r.Uint()
	a.delivered = r.Duration()
	a.deliveries = r.Uint()
	a.restoreSent(r)
	if !r.None() {
		a.interrupted, a.ever = r.Duration(), true
	}
	last, newest := c.now+1, a.latest
	for range r.ArrayOf(maxInFlight) {
		r.Fields(6, "a part")
		n := inFlightDelta{at: r.Duration(), seq: r.Uint(), own: r.Bool(), visible: r.Bool()}
		n.footprint.Classes = r.Names(maxNamed, 4*world.MaxID)
		n.footprint.Paths = r.Names(maxNamed, 0)
		a.inFlightBytes += n.footprint.size()
		if r.Err == nil && (n.at < last || n.at > a.delivered || n.seq <= newest || a.inFlightBytes > maxNews+2*maxInFlight ||
			!ordered(n.footprint.Classes) || !ordered(n.footprint.Paths)) {
			r.Fail("deltas in flight out of order")
		}
		if r.Err != nil {
			return nil
		}
		last, newest = n.at, n.seq
		a.inFlight = append(a.inFlight, n)
	}
	c.restoreQuota(r, a)
	for range r.ArrayOf(maxTokens) {
		r.Fields(9, "a part")
		t := &generation{Token: Token{
			AgentID: a.id, ReqID: r.Key(MaxReqID), ContextSeq: r.Uint(), ContextDigest: r.Text(world.MaxID),
			Reads: r.Names(maxNamed, 4*world.MaxID), Classes: r.Names(maxNamed, 4*world.MaxID),
			Issued: r.Duration(), Deadline: r.Duration(), Budget: int64(r.Duration()), Conflict: r.Bool(),
		}}
		if r.Err == nil && t.Issued > c.now {
			r.Fail("a token of another time")
		}
		if r.Err != nil {
			return nil
		}
		if t.conflictAt = never; !t.Conflict {
			t.conflictAt = a.conflictTime(&t.Token, 0)
		}
		a.tokens[t.ReqID] = t
	}
	if r.Err == nil && (a.observer.Agent() != a.id || newest != a.observer.ViewSeq() || a.observer.ViewSeq() > c.Seq() || a.interrupted > c.now) {
		r.Fail("an agent that has seen more than there is")
	}
	return a
}

// restoreSent reads the last deliveries of an agent whose observer has been read.
func (a *agentState) restoreSent(r *codec.StateReader) {
	seq, number := uint64(0), uint64(0) // number counts from the first that is kept
	for range r.ArrayOf(2 * MaxSent) {
		step := r.Between(math.MinInt64+1, math.MaxInt64, "a view_seq or a number of deliveries,")
		switch {
		case r.Err != nil:
		case step < 0 && (len(a.sent) == 0 || uint64(-step) > a.deliveries-number):
			r.Fail("deliveries before the first or after the last")
		case step < 0:
			number += uint64(-step)
		case seq > math.MaxInt64-uint64(step) || len(a.sent) == MaxSent || number == a.deliveries:
			r.Fail("deliveries beyond the world's end")
		default:
			seq += uint64(step)
			a.sent = append(a.sent, sentDelivery{seq, number})
			number++
		}
		if r.Err != nil {
			return
		}
	}
	if r.Err == nil && (number == 0 || seq != a.observer.ViewSeq() || a.observer.Number() != a.deliveries) {
		r.Fail("deliveries that do not lead to the view")
	}
	for i := range a.sent {
		a.sent[i].number += a.deliveries - number
	}
}

func (c *Core) restoreQuota(r *codec.StateReader, a *agentState) {
	last := time.Duration(-1)
	for range r.ArrayOf(maxUses) {
		r.Fields(3, "a part")
		u := use{r.Duration(), int64(r.Duration()), int64(r.Duration())}
		if r.Err == nil && (u.at <= last || u.at > c.now || u.intents > 1<<50 || u.tokens > 1<<50) {
			r.Fail("a use of another time")
		}
		if r.Err != nil {
			return
		}
		last = u.at
		a.quota.uses = append(a.quota.uses, u)
		a.quota.intents += u.intents
		a.quota.tokens += u.tokens
	}
	for range r.ArrayOf(strictjson.MaxNames + 8) {
		r.Fields(2, "a part")
		kind, at := r.Text(world.MaxID), r.Duration()
		if r.Err == nil && at > c.now {
			r.Fail("an intent of another time")
		}
		if r.Err != nil {
			return
		}
		a.quota.cool(kind, at)
	}
}

func ordered(names []string) bool {
	for i := 1; i < len(names); i++ {
		if names[i-1] >= names[i] {
			return false
		}
	}
	return true
}
