package agents

import (
	"bytes"
	"fmt"
	"math"
	"time"

	"github.com/tinylib/msgp/msgp"

	"github.com/sajou-dev/sajou-go/internal/statebytes"
)

// coreVersion is the first element of a core's state. It changes with its
// format, and with every change of rules after which old bytes would go on differently.
const coreVersion = 5

// AppendState appends the whole state of c to dst: canonical bytes, equal for
// equal histories however time was cut. They are one msgpack array:
//
//	[version, now, configuration, world, sim time, quanta, agents]
//
//	configuration  as recorded
//	world          bytes of [World.AppendState]
//	agents         [[value, observer, latest, delivered, deliveries, interrupted, arrivals,
//	               uses, cooldowns, tokens]…] in the order of ids
//	value          as registered
//	observer       bytes of [Observer.AppendState]
//	interrupted    time of the last interruption, or nil
//	arrivals       [[at, seq, own, visible, [class…], [path…]]…]
//	uses           [[at, intents, tokens]…]
//	cooldowns      [[kind, at]…] in the order of kinds
//	tokens         [[req_id, context_seq, context_digest, [path…], [class…], issued,
//	               deadline, budget, conflict]…] in the order of req_ids
//
// What the world is called and what was answered are not in it: see [Core.Bind].
func (c *Core) AppendState(dst []byte) []byte {
	dst = msgp.AppendArrayHeader(dst, 7)
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
		observer = a.observer.AppendState(observer[:0], c.world.Reader)
		dst = a.append(dst, observer, c.now)
	}
	return dst
}

func (a *agentState) append(dst, observer []byte, now time.Duration) []byte {
	dst = msgp.AppendArrayHeader(dst, 10)
	dst = append(dst, a.value...)
	dst = msgp.AppendBytes(dst, observer)
	// What has arrived is no longer on its way, whether somebody has looked since
	// or not: the bytes are those of the time.
	dst = msgp.AppendUint64(dst, a.seen(now))
	dst = msgp.AppendInt64(dst, int64(a.delivered))
	dst = msgp.AppendUint64(dst, a.deliveries)
	if a.ever {
		dst = msgp.AppendInt64(dst, int64(a.interrupted))
	} else {
		dst = msgp.AppendNil(dst)
	}
	coming := a.arrivals[a.arrived(now):]
	dst = msgp.AppendArrayHeader(dst, uint32(len(coming)))
	for _, n := range coming {
		dst = msgp.AppendArrayHeader(dst, 6)
		dst = msgp.AppendInt64(dst, int64(n.at))
		dst = msgp.AppendUint64(dst, n.seq)
		dst = msgp.AppendBool(dst, n.own)
		dst = msgp.AppendBool(dst, n.visible)
		dst = appendNames(dst, n.word.classes)
		dst = appendNames(dst, n.word.writes)
	}
	// What counts no longer is no part of the state, whether it was cleared away or not.
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
	for _, kind := range sortedKeys(a.quota.last) {
		dst = msgp.AppendArrayHeader(dst, 2)
		dst = msgp.AppendString(dst, kind)
		dst = msgp.AppendInt64(dst, int64(a.quota.last[kind]))
	}
	dst = msgp.AppendArrayHeader(dst, uint32(len(a.tokens)))
	for _, id := range sortedKeys(a.tokens) {
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
		dst = msgp.AppendBool(dst, t.clashed(now))
	}
	return dst
}

func appendNames(dst []byte, names []string) []byte {
	dst = msgp.AppendArrayHeader(dst, uint32(len(names)))
	for _, name := range names {
		dst = msgp.AppendString(dst, name)
	}
	return dst
}

// RestoreCore returns the core whose state [Core.AppendState] wrote, with the
// same options, not bound yet. It believes nothing of b: what no core could have written is
// refused with [ErrState], what was written under other rules with [ErrStateVersion].
func RestoreCore(b []byte, options Options) (*Core, error) {
	c, err := NewCore(options)
	if err != nil {
		return nil, err
	}
	if err := c.restore(b); err != nil {
		return nil, stateError(err)
	}
	if !bytes.Equal(c.AppendState(make([]byte, 0, len(b))), b) {
		return nil, fmt.Errorf("%w: not in canonical form", ErrState)
	}
	return c, nil
}

func (c *Core) restore(b []byte) error {
	r := stateReader{statebytes.Reader{Rest: b}}
	r.Begin(coreVersion, 7, ErrStateVersion)
	c.now = r.duration()
	written := r.object()
	if r.Err == nil {
		c.written = written
		if c.config, r.Err = ParseConfig(written); r.Err != nil {
			return r.Err
		}
	}
	world := r.Bytes()
	if r.Err != nil {
		return r.Err
	}
	var err error
	if c.world, err = RestoreWorld(world, c.options.Handlers...); err != nil {
		return err
	}
	c.simTime = r.float()
	c.quanta = r.Uint()
	before := ""
	for range r.array(MaxAgents) {
		a := r.agent(c)
		if r.Err == nil && a.id <= before {
			r.Fail("agents out of order")
		}
		if r.Err != nil {
			return r.Err
		}
		before = a.id
		c.agents[a.id] = a
		c.audience.Add(c.world.Reader, a.id, a.observer.lens)
		if at, ok := a.next(); ok && at <= c.now {
			return fmt.Errorf("something of %q that should have happened", a.id)
		}
		c.schedule(a)
	}
	return r.End()
}

// agent reads one agent, not yet among those of c.
func (r *stateReader) agent(c *Core) *agentState {
	r.Fields(10, "a part")
	value := r.object()
	observer := r.Bytes()
	if r.Err != nil {
		return nil
	}
	a, lens, err := c.compileAgent(value)
	if err != nil {
		r.Fail("%w", err)
		return nil
	}
	if a.observer, err = RestoreObserver(observer, c.world.Reader, lens); err != nil {
		r.Fail("%w", err)
		return nil
	}
	a.latest = r.Uint()
	a.delivered = r.duration()
	a.deliveries = r.Uint()
	if !r.None() {
		a.interrupted, a.ever = r.duration(), true
	}
	last, newest := c.now+1, a.latest
	for range r.array(MaxArrivals) {
		r.Fields(6, "a part")
		n := arrival{at: r.duration(), seq: r.Uint(), own: r.Bool(), visible: r.Bool()}
		n.word.classes = r.names(4 * MaxID)
		n.word.writes = r.names(0)
		a.news += n.word.size()
		if r.Err == nil && (n.at < last || n.at > a.delivered || n.seq <= newest || a.news > maxNews+2*MaxArrivals ||
			!ordered(n.word.classes) || !ordered(n.word.writes)) {
			r.Fail("news out of order")
		}
		if r.Err != nil {
			return nil
		}
		last, newest = n.at, n.seq
		a.arrivals = append(a.arrivals, n)
	}
	r.quota(c, a)
	for range r.array(MaxTokens) {
		r.Fields(9, "a part")
		t := &generation{Token: Token{
			AgentID: a.id, ReqID: r.key(MaxReqID), ContextSeq: r.Uint(), ContextDigest: r.text(MaxID),
			Reads: r.names(4 * MaxID), Classes: r.names(4 * MaxID),
			Issued: r.duration(), Deadline: r.duration(), Budget: int64(r.duration()), Conflict: r.Bool(),
		}}
		if r.Err == nil && t.Issued > c.now {
			r.Fail("a token of another time")
		}
		if r.Err != nil {
			return nil
		}
		if t.clash = never; !t.Conflict {
			t.clash = a.clash(&t.Token, 0)
		}
		a.tokens[t.ReqID] = t
	}
	if r.Err == nil && (a.observer.agent != a.id || newest != a.observer.seq || a.observer.seq > c.Seq() || a.interrupted > c.now) {
		r.Fail("an agent that has seen more than there is")
	}
	return a
}

func (r *stateReader) quota(c *Core, a *agentState) {
	last := time.Duration(-1)
	for range r.array(maxUses) {
		r.Fields(3, "a part")
		u := use{r.duration(), int64(r.duration()), int64(r.duration())}
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
	for range r.array(maxNames + 8) {
		r.Fields(2, "a part")
		kind, at := r.text(MaxID), r.duration()
		if r.Err == nil && at > c.now {
			r.Fail("an intent of another time")
		}
		if r.Err != nil {
			return
		}
		a.quota.cool(kind, at)
	}
}

// duration reads a whole number that is not negative.
func (r *stateReader) duration() time.Duration {
	return time.Duration(r.Between(0, math.MaxInt64, "a length or a count,"))
}

func (r *stateReader) key(most int) string {
	s := r.text(most)
	if r.Err == nil {
		if err := validKey(s, most); err != nil {
			r.Fail("%q: %w", s, err)
		}
	}
	return s
}

func ordered(names []string) bool {
	for i := 1; i < len(names); i++ {
		if names[i-1] >= names[i] {
			return false
		}
	}
	return true
}

// names reads strings of at most so many bytes; 0 means that only the input
// bounds them.
func (r *stateReader) names(size int) []string {
	if size == 0 {
		size = len(r.Rest)
	}
	var list []string
	for range r.array(maxNamed) {
		list = append(list, r.text(size))
	}
	return list
}
