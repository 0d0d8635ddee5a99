package agents_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tinylib/msgp/msgp"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/internal/msgptest"
	"github.com/sajou-dev/sajou-go/signal"
)

// nested is an object of that many levels.
func nested(t *testing.T, levels int) []byte {
	t.Helper()
	v, err := signal.ParseValue([]byte(strings.Repeat(`{"a":`, levels) + "1" + strings.Repeat("}", levels)))
	require.NoError(t, err)
	return v
}

// A state that is well formed, and that no effects lead to, is refused.
func TestImpossibleWorlds(t *testing.T) {
	w, _ := busy(t)
	whole := w.AppendState(nil)
	const seq, simTime, kind, metadata, entities, places, relations = 2, 3, 4, 5, 6, 7, 8
	text := func(s string) []byte { return msgp.AppendString(nil, s) }
	large := msgp.AppendString(msgp.AppendString(msgp.AppendMapHeader(nil, 1), "a"), strings.Repeat("x", world.MaxEntityBytes))
	for name, data := range map[string][]byte{
		"an entity that is no object":      msgptest.Set(whole, text("x"), entities, 0, 1),
		"an entity that is too large":      msgptest.Set(whole, large, entities, 0, 1),
		"an entity that is too deep":       msgptest.Set(whole, nested(t, world.MaxEntityDepth+1), entities, 0, 1),
		"an entity without an id":          msgptest.Set(whole, text(""), entities, 0, 0),
		"an entity of a long id":           msgptest.Set(whole, text(strings.Repeat("x", world.MaxID+1)), entities, 0, 0),
		"entities in another order":        msgptest.Swap(whole, 0, 1, entities),
		"an entity twice":                  msgptest.Set(whole, msgptest.Get(whole, entities, 0), entities, 1),
		"metadata that are too large":      msgptest.Set(whole, large, metadata),
		"metadata that are too deep":       msgptest.Set(whole, nested(t, world.MaxEntityDepth+1), metadata),
		"metadata of the world's own":      msgptest.Set(whole, append([]byte{0x81}, append(text("last_effect_seq"), 1)...), metadata),
		"a time that is not finite":        msgptest.Set(whole, []byte{0xcb, 0x7f, 0xf0, 0, 0, 0, 0, 0, 0}, simTime),
		"a negative number of effects":     msgptest.Set(whole, []byte{0xff}, seq),
		"a kind that is too long":          msgptest.Set(whole, text(strings.Repeat("x", world.MaxID+1)), kind),
		"a place beyond all":               msgptest.Set(whole, msgp.AppendFloat64(nil, 1e300), places, 0, 1),
		"a place below zero":               msgptest.Set(whole, []byte{0xcb, 0x80, 0, 0, 0, 0, 0, 0, 0}, places, 0, 3),
		"places in another order":          msgptest.Swap(whole, 0, 1, places),
		"relations of nothing":             msgptest.Set(whole, []byte{0x90}, relations, 0, 1),
		"a relation twice":                 msgptest.Set(whole, append([]byte{0x92}, slices.Concat(msgptest.Get(whole, relations, 0, 1, 0), msgptest.Get(whole, relations, 0, 1, 0))...), relations, 0, 1),
		"a relation of two strengths":      msgptest.Set(whole, append([]byte{0x92}, slices.Concat(msgptest.Get(whole, relations, 0, 1, 0), msgptest.Set(msgptest.Get(whole, relations, 0, 1, 0), msgp.AppendFloat64(nil, 9), 2))...), relations, 0, 1),
		"a relation of no finite strength": msgptest.Set(whole, []byte{0xcb, 0x7f, 0xf8, 0, 0, 0, 0, 0, 0}, relations, 0, 1, 0, 2),
		"a handler that is not there":      msgptest.Set(whole, []byte{0x90}, 1),
	} {
		_, err := world.RestoreWorld(data, handlers...)
		if !errors.Is(err, world.ErrState) && !errors.Is(err, world.ErrStateVersion) {
			t.Errorf("%s: err = %v, want ErrState", name, err)
		}
	}
	if _, err := world.RestoreWorld(msgptest.Set(whole, nested(t, world.MaxEntityDepth), entities, 0, 1), handlers...); err != nil {
		t.Errorf("an entity of as many levels as are allowed: %v", err)
	}
}

// busyCore returns a core with something in each part of its state: deltas in flight,
// deliveries that only moved time, uses, cooldowns, tokens, an interruption, an agent that
// has left.
func busyCore(t *testing.T) *run {
	t.Helper()
	r := newRun(t)
	r.must(r.core.Configure(parse(t, `{"authority":"sim","tick_effects":true,"interrupt":"only_conflict","staleness_threshold":0,"debounce_ms":0,"cooldowns":{"Speak":9000,"Move":9000},"latency_model":1000,"quota_intents_per_minute":100}`)))
	r.must(r.core.Begin(parse(t, `{"entities":{"a":{},"b":{},"c":{}},"spatial_index":{"a":[0,0],"b":[3,0],"c":[4,0]}}`)))
	for _, id := range []string{"a", "b", "left", "also left"} {
		r.must(r.core.Register(agents.Registration{AgentID: id, Policy: parse(t, `{"policy":"fog","of":{"policy":"distance","limit":50}}`)}))
	}
	r.must(r.core.Leave("left"))
	r.must(r.core.Leave("also left"))
	write := func(id, field string) {
		r.draft(agents.EffectDraft{Kind: "EntityUpdated", SourceID: "c", Payload: parse(t, `{"entity_id":"`+id+`","fields":{"`+field+`":1},"conflict_class":["one","two"]}`)})
	}
	r.issue("gone", "/entities/b")
	write("b", "x")
	r.pass(2 * time.Second)
	if r.core.Now() < time.Second || len(r.gone) != 1 {
		t.Fatalf("interrupted: %v at %v", r.gone, r.core.Now())
	}
	for i := range 3 {
		r.keep(r.core.Decide(r.now, agents.Quantum{By: agents.CloseTick, SimTime: float64(i + 3), Timed: true, SourceID: "c"}, nil).Records)
	}
	r.keep(r.core.Decide(r.now, agents.Quantum{By: agents.CloseFlush}, []agents.Submission{
		{Intent: &agents.Intent{Kind: "Speak", Payload: parse(t, `{"text":"hi"}`), ReqID: "s", AgentID: "a", ContextSeq: r.core.Seq()}},
		{Intent: &agents.Intent{Kind: "Move", Payload: parse(t, `{"to":[1,1]}`), ReqID: "m", AgentID: "a", ContextSeq: r.core.Seq()}},
	}).Records)
	r.now += time.Millisecond
	write("c", "y")
	write("b", "z")
	r.issue("one", "/entities/c", "/entities/elsewhere")
	r.issue("two", "/entities/nowhere")
	return r
}

// A core's state that no records lead to is refused: every part of it is held against
// the others.
func TestImpossibleCores(t *testing.T) {
	r := busyCore(t)
	whole := r.core.AppendState(nil)
	_, err := agents.RestoreCore(whole, options)
	require.NoError(t, err)
	_, err = agents.RestoreCore(whole, agents.Options{Handlers: make([]world.Handler, 1)})
	require.Error(t, err)
	require.NotErrorIs(t, err, world.ErrState, "wrong options are not the state's fault")

	const version, now, config, agent, left = 0, 1, 2, 6, 7
	const observer, latest, delivered, deliveries, sent, interrupted, coming, uses, cooldowns, tokens = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10
	text := func(s string) []byte { return msgp.AppendString(nil, s) }
	num := func(n int64) []byte { return msgp.AppendInt64(nil, n) }
	number := func(path ...int) int64 {
		n, _, err := msgp.ReadInt64Bytes(msgptest.Get(whole, path...))
		require.NoError(t, err, "%v", path)
		return n
	}
	add := func(by int64, path ...int) []byte { return msgptest.Set(whole, num(number(path...)+by), path...) }
	set := func(value []byte, path ...int) []byte { return msgptest.Set(whole, value, path...) }
	names := func(list ...string) []byte {
		b := msgp.AppendArrayHeader(nil, uint32(len(list)))
		for _, s := range list {
			b = msgp.AppendString(b, s)
		}
		return b
	}
	for name, data := range map[string][]byte{
		"a configuration that is none":            set([]byte{0x81, 0xa1, 'x', 1}, config),
		"a time before the log":                   set(num(-1), now),
		"a time at which more would have arrived": add(int64(2*time.Second), now),
		"a time before its uses":                  set(num(1), now),
		"a world that is none":                    set(msgp.AppendBytes(nil, []byte{1}), 3),
		"a sim time that is not finite":           set([]byte{0xcb, 0x7f, 0xf8, 0, 0, 0, 0, 0, 0}, 4),
		"agents out of order":                     msgptest.Swap(whole, 0, 1, agent),
		"an agent twice":                          set(msgptest.Get(whole, agent, 0), agent, 1),
		"an agent of another's observer":          set(msgptest.Get(whole, agent, 1, observer), agent, 0, observer),
		"a registration that is none":             set([]byte{0x80}, agent, 0, 0),
		"agents that have left out of order":      msgptest.Swap(whole, 0, 1, left),
		"an agent that has left and is here":      set(text("a"), left, 0, 0),
		"an agent that has left without a name":   set(text(""), left, 0, 0),

		"more that has arrived than is in flight":     add(10, agent, 0, latest),
		"a last delivery before those in flight":      set(num(1), agent, 0, delivered),
		"more deliveries than the observer knows":     add(1, agent, 0, deliveries),
		"fewer deliveries than the observer knows":    add(-1, agent, 0, deliveries),
		"no delivery at all":                          set([]byte{0x90}, agent, 0, sent),
		"deliveries that do not lead to the view":     set(num(1), agent, 0, sent, 0),
		"deliveries that begin with time":             set(num(-1), agent, 0, sent, 0),
		"an interruption to come":                     set(num(number(now)+1), agent, 0, interrupted),
		"a delta that has arrived in flight":          set(num(number(now)), agent, 0, coming, 0, 0),
		"a delta in flight beyond the last delivery":  set(num(number(agent, 0, delivered)+1), agent, 0, coming, len2(whole, agent, 0, coming)-1, 0),
		"deltas in flight out of order":               msgptest.Swap(whole, 0, 1, agent, 0, coming),
		"a delta in flight of an effect that arrived": set(num(number(agent, 0, latest)), agent, 0, coming, 0, 1),
		"a delta in flight twice":                     set(msgptest.Get(whole, agent, 0, coming, 0), agent, 0, coming, 1),
		"classes out of order":                        set(names("two", "one"), agent, 0, coming, 0, 4),
		"a class twice":                               set(names("one", "one"), agent, 0, coming, 0, 4),
		"paths out of order":                          set(names("/b", "/a"), agent, 0, coming, 0, 5),
		"a use to come":                               set(num(number(now)+1), agent, 0, uses, 0, 0),
		"a use twice":                                 set(append([]byte{0x92}, append(bytes.Clone(msgptest.Get(whole, agent, 0, uses, 0)), msgptest.Get(whole, agent, 0, uses, 0)...)...), agent, 0, uses),
		"a use of more than there are":                set(num(1<<50+1), agent, 0, uses, 0, 1),
		"a use of more tokens than there are":         set(num(1<<50+1), agent, 0, uses, 0, 2),
		"a use that has expired":                      set(num(0), agent, 0, uses, 0, 0),
		"cooldowns out of order":                      msgptest.Swap(whole, 0, 1, agent, 0, cooldowns),
		"a cooldown of the future":                    set(num(number(now)+1), agent, 0, cooldowns, 0, 1),
		"tokens out of order":                         msgptest.Swap(whole, 0, 1, agent, 0, tokens),
		"a token without a request":                   set(text(""), agent, 0, tokens, 0, 0),
		"a token of the future":                       set(num(number(now)+1), agent, 0, tokens, 0, 5),
		"a token of a negative budget":                set(num(-1), agent, 0, tokens, 0, 7),
		"a token that should have been interrupted":   msgptest.Set(set([]byte{0xc3}, agent, 0, tokens, 1, 8), num(0), agent, 0, tokens, 1, 1),
	} {
		if name == "a use that has expired" {
			data = msgptest.Set(data, num(number(now)+int64(time.Minute)), now) // and what was in flight has arrived
		}
		if _, err := agents.RestoreCore(data, options); !errors.Is(err, world.ErrState) {
			t.Errorf("%s: err = %v, want ErrState", name, err)
		}
	}
	if _, err := agents.RestoreCore(set(num(5), version), options); !errors.Is(err, world.ErrStateVersion) || errors.Is(err, world.ErrState) {
		t.Errorf("another version: err = %v, want ErrStateVersion", err)
	}
	for n := range whole {
		if _, err := agents.RestoreCore(whole[:n], options); !errors.Is(err, world.ErrState) {
			t.Fatalf("%d of %d bytes: err = %v, want ErrState", n, len(whole), err)
		}
	}
	if _, err := agents.RestoreCore(append(bytes.Clone(whole), 0xc0), options); !errors.Is(err, world.ErrState) {
		t.Errorf("a byte too many: err = %v, want ErrState", err)
	}

	// A state with one bit changed that is taken must be possible: it is written as it
	// was read, and goes on.
	for i := range whole {
		for _, bit := range []int{0, i % 8} {
			flipped := bytes.Clone(whole)
			flipped[i] ^= 1 << bit
			c, err := agents.RestoreCore(flipped, options)
			if err != nil {
				if !errors.Is(err, world.ErrState) && !errors.Is(err, world.ErrStateVersion) {
					t.Errorf("byte %d: err = %v", i, err)
				}
				continue
			}
			require.Equal(t, flipped, c.AppendState(nil))
			c.Bind("w", nil)
			c.Advance(c.Now() + 10*time.Second)
		}
	}
}

// len2 is the number of elements of the array at a path.
func len2(b []byte, path ...int) int {
	n, _, err := msgp.ReadArrayHeaderBytes(msgptest.Get(b, path...))
	if err != nil {
		panic(err)
	}
	return int(n)
}

// The whole state of a busy core is restored: what happens next happens in both.
func TestRestoreCoreGoesOn(t *testing.T) {
	r := busyCore(t)
	c, err := agents.RestoreCore(r.core.AppendState(nil), options)
	require.NoError(t, err)
	c.Bind("w", r)
	require.Equal(t, r.core.Tokens("a"), c.Tokens("a"))
	require.Equal(t, r.core.AdmissionStatus(r.now, "a"), c.AdmissionStatus(r.now, "a"))
	for _, at := range []time.Duration{0, time.Second - 1, time.Second, time.Minute, 2 * time.Minute} {
		one, other := r.core.Advance(r.now+at), c.Advance(r.now+at)
		require.Equal(t, one, other)
		require.Equal(t, r.core.AppendState(nil), c.AppendState(nil), "%v later", at)
		for _, kind := range []string{"Speak", "Move"} {
			in := agents.Intent{Kind: kind, Payload: parse(t, `{"text":"hi","to":[0,1]}`), ReqID: kind, AgentID: "a", ContextSeq: r.core.LatestViewSeq(r.now+at, "a")}
			o1, rs1 := r.core.Submit(r.now+at, in)
			o2, rs2 := c.Submit(r.now+at, in)
			require.Equal(t, o1, o2)
			require.Equal(t, rs1, rs2)
		}
	}
}
