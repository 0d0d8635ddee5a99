package world_test

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tinylib/msgp/msgp"

	"github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/signal"
)

func parse(t testing.TB, text string) signal.Value {
	t.Helper()
	v, err := signal.ParseValue([]byte(text))
	require.NoError(t, err)
	return v
}

// sized returns an object of that many bytes as msgpack, at least 300.
func sized(bytes int) signal.Value {
	head := msgp.AppendString(msgp.AppendMapHeader(nil, 1), "x")
	// The head of a string of less than 64 KiB has three bytes, of more five.
	n := bytes - len(head) - 3
	if n > math.MaxUint16 {
		n -= 2
	}
	return msgp.AppendString(head, strings.Repeat("x", n))
}

// nested returns the text of an object of that many levels.
func nested(levels int) string {
	return strings.Repeat(`{"a":`, levels-1) + "{}" + strings.Repeat("}", levels-1)
}

// doing returns a handler that makes the given changes.
func doing(changes ...world.Change) world.Handler {
	return world.Handler{Kind: "Do", Plan: func(world.ReadOnly, world.Effect) ([]world.Change, error) { return changes, nil }}
}

// Everything that has a bound may reach it, and not exceed it by one: in a world that is
// read, in an effect, and in a change of a handler.
func TestBounds(t *testing.T) {
	document := func(text string, args ...any) func(*testing.T) error {
		return func(t *testing.T) error {
			_, err := world.ParseWorld(parse(t, fmt.Sprintf(text, args...)))
			return err
		}
	}
	effect := func(e world.Effect) func(*testing.T) error {
		return func(t *testing.T) error {
			w, err := world.ParseWorld(parse(t, `{"entities":{"a":{},"b":{}}}`))
			require.NoError(t, err)
			_, err = w.Apply(e)
			if err != nil {
				require.ErrorAs(t, err, new(*world.EffectError))
			}
			return err
		}
	}
	payload := func(kind, text string, args ...any) func(*testing.T) error {
		return func(t *testing.T) error {
			return effect(world.Effect{Kind: kind, SourceID: "a", Payload: parse(t, fmt.Sprintf(text, args...))})(t)
		}
	}
	change := func(changes ...world.Change) func(*testing.T) error {
		return func(t *testing.T) error {
			w, err := world.ParseWorld(parse(t, `{"entities":{"a":{},"b":{}}}`), doing(changes...))
			require.NoError(t, err)
			_, err = w.Apply(world.Effect{Kind: "Do"})
			return err
		}
	}
	for name, tt := range map[string]struct {
		most int
		with func(n int) func(*testing.T) error
	}{
		"the id of an entity": {256, func(n int) func(*testing.T) error { return document(`{"entities":{%q:{}}}`, strings.Repeat("i", n)) }},
		"the id of a place": {256, func(n int) func(*testing.T) error {
			return document(`{"spatial_index":{%q:[1,2]}}`, strings.Repeat("i", n))
		}},
		"where relations begin": {256, func(n int) func(*testing.T) error {
			return document(`{"relationships":{%q:["b"]}}`, strings.Repeat("i", n))
		}},
		"where a relation ends": {256, func(n int) func(*testing.T) error {
			return document(`{"relationships":{"a":[%q]}}`, strings.Repeat("i", n))
		}},
		"where a full relation ends": {256, func(n int) func(*testing.T) error {
			return document(`{"relationships":{"a":[{"to":%q}]}}`, strings.Repeat("i", n))
		}},
		"the type of a relation": {256, func(n int) func(*testing.T) error {
			return document(`{"relationships":{"a":[{"to":"b","type":%q}]}}`, strings.Repeat("i", n))
		}},
		"where a typed one begins": {256, func(n int) func(*testing.T) error {
			return document(`{"typed_relationships":[[%q,"b","c"]]}`, strings.Repeat("i", n))
		}},
		"where a typed list begins": {256, func(n int) func(*testing.T) error {
			return document(`{"typed_relationships":{%q:["b"]}}`, strings.Repeat("i", n))
		}},
		"the kind of the last effect": {256, func(n int) func(*testing.T) error {
			return document(`{"metadata":{"last_effect_kind":%q}}`, strings.Repeat("k", n))
		}},
		"the levels of an entity":    {64, func(n int) func(*testing.T) error { return document(`{"entities":{"a":%s}}`, nested(n)) }},
		"the levels of the metadata": {64, func(n int) func(*testing.T) error { return document(`{"metadata":%s}`, nested(n)) }},
		"the bytes of an entity":     {64 << 10, func(n int) func(*testing.T) error { return document(`{"entities":{"a":%s}}`, sized(n)) }},
		"the bytes of the metadata":  {64 << 10, func(n int) func(*testing.T) error { return document(`{"metadata":%s}`, sized(n)) }},
		"a coordinate":               {1e12, func(n int) func(*testing.T) error { return document(`{"spatial_index":{"a":[0,%d]}}`, -n) }},
		"the number of lists":        {100_000, func(n int) func(*testing.T) error { return document(`{"relationships":{%s}}`, lists(n)) }},
		"the kind of an effect":      {256, func(n int) func(*testing.T) error { return effect(world.Effect{Kind: strings.Repeat("k", n)}) }},
		"the source of an effect": {256, func(n int) func(*testing.T) error {
			return effect(world.Effect{Kind: "k", SourceID: strings.Repeat("s", n)})
		}},
		"the bytes of a payload": {1 << 20, func(n int) func(*testing.T) error { return effect(world.Effect{Kind: "k", Payload: sized(n)}) }},
		"the source of a move": {256, func(n int) func(*testing.T) error {
			return func(t *testing.T) error {
				return effect(world.Effect{Kind: world.KindMove, SourceID: strings.Repeat("s", n), Payload: parse(t, `{"to":[1,2]}`)})(t)
			}
		}},
		"the id of a new entity": {256, func(n int) func(*testing.T) error {
			return payload("EntityCreated", `{"entity_id":%q}`, strings.Repeat("i", n))
		}},
		"the levels of a new entity": {64, func(n int) func(*testing.T) error {
			return payload("EntityCreated", `{"entity_id":"c","entity_data":%s}`, nested(n))
		}},
		"the levels of a field": {63, func(n int) func(*testing.T) error {
			return payload("EntityUpdated", `{"entity_id":"a","fields":{"f":%s}}`, nested(n))
		}},
		"the bytes of a new entity": {64 << 10, func(n int) func(*testing.T) error {
			return payload("EntityCreated", `{"entity_id":"c","entity_data":%s}`, sized(n))
		}},
		"the name of a field": {256, func(n int) func(*testing.T) error {
			return payload("EntityUpdated", `{"entity_id":"a","fields":{%q:1}}`, strings.Repeat("f", n))
		}},
		"the name of a lost field": {256, func(n int) func(*testing.T) error {
			return payload("EntityUpdated", `{"entity_id":"a","remove":[%q]}`, strings.Repeat("f", n))
		}},
		"the type of a new relation": {256, func(n int) func(*testing.T) error {
			return payload("RelationshipAdded", `{"from":"a","to":"b","type":%q}`, strings.Repeat("t", n))
		}},
		"the type of a lost relation": {256, func(n int) func(*testing.T) error {
			return payload("RelationshipRemoved", `{"from":"a","to":"b","type":%q}`, strings.Repeat("t", n))
		}},
		"a coordinate of a move": {1e12, func(n int) func(*testing.T) error { return payload("Move", `{"to":[0,0,%d]}`, n) }},
		"a type of a handler": {256, func(n int) func(*testing.T) error {
			return change(world.Relate("a", world.Relation{To: "b", Type: strings.Repeat("t", n)}))
		}},
		"an id of a handler": {256, func(n int) func(*testing.T) error {
			return change(world.PutEntity(strings.Repeat("i", n), parse(t, `{}`)))
		}},
		"an x of a handler": {1e12, func(n int) func(*testing.T) error { return change(world.Place("a", world.Position{X: float64(n)})) }},
		"a y of a handler":  {1e12, func(n int) func(*testing.T) error { return change(world.Place("a", world.Position{Y: float64(-n)})) }},
		"a z of a handler":  {1e12, func(n int) func(*testing.T) error { return change(world.Place("a", world.Position{Z: float64(n)})) }},
		"the changes of a handler": {4096, func(n int) func(*testing.T) error {
			changes := make([]world.Change, n)
			for i := range changes {
				changes[i] = world.Unplace("a")
			}
			return change(changes...)
		}},
		"the kind that a handler is of": {256, func(n int) func(*testing.T) error {
			return func(*testing.T) error {
				h := doing()
				h.Kind = strings.Repeat("k", n)
				_, err := world.NewWorld(h)
				return err
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, tt.with(tt.most)(t))
			require.Error(t, tt.with(tt.most+1)(t))
		})
	}
}

// lists returns members of that many empty lists.
func lists(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"%d":[],`, i)
	}
	return strings.TrimSuffix(b.String(), ",")
}

// stateOf writes the state of a world of nothing but so many entities, places, and relations
// of one list, with a handler of Do. The ids are numbers of seven digits.
func stateOf(entities, places, relations int) []byte {
	b := msgp.AppendArrayHeader(nil, 9)
	b = msgp.AppendInt(b, 1)
	b = msgp.AppendInt(msgp.AppendString(msgp.AppendArrayHeader(msgp.AppendArrayHeader(b, 1), 2), "Do"), 0)
	b = msgp.AppendUint64(b, 0)
	b = msgp.AppendFloat64(b, 0)
	b = msgp.AppendString(b, "")
	b = msgp.AppendMapHeader(b, 0)
	b = msgp.AppendArrayHeader(b, uint32(entities))
	for i := range entities {
		b = msgp.AppendMapHeader(msgp.AppendString(msgp.AppendArrayHeader(b, 2), fmt.Sprintf("%07d", i)), 0)
	}
	b = msgp.AppendArrayHeader(b, uint32(places))
	for i := range places {
		b = msgp.AppendString(msgp.AppendArrayHeader(b, 4), fmt.Sprintf("%07d", i))
		b = msgp.AppendFloat64(msgp.AppendFloat64(msgp.AppendFloat64(b, float64(i)), 0), 0)
	}
	if relations == 0 {
		return msgp.AppendArrayHeader(b, 0)
	}
	b = msgp.AppendString(msgp.AppendArrayHeader(msgp.AppendArrayHeader(b, 1), 2), "0000000")
	b = msgp.AppendArrayHeader(b, uint32(relations))
	for i := range relations {
		b = msgp.AppendString(msgp.AppendArrayHeader(b, 3), fmt.Sprintf("%07d", i))
		b = msgp.AppendFloat64(msgp.AppendString(b, ""), 0)
	}
	return b
}

// A full world takes no more of what it is full of, and takes an effect that removes as many
// as it adds.
func TestFullWorld(t *testing.T) {
	put := func(id string) []world.Change { return []world.Change{world.PutEntity(id, parse(t, `{}`))} }
	place := func(id string) []world.Change { return []world.Change{world.Place(id, world.Position{X: 7})} }
	relate := func(r world.Relation) []world.Change { return []world.Change{world.Relate("0000000", r)} }
	for name, tt := range map[string]struct {
		full                   []byte
		most                   uint32
		replace, add, exchange []world.Change
	}{
		"entities": {
			stateOf(100_000, 0, 0), 100_000,
			put("0000000"), put("more"), append(put("more"), world.RemoveEntity("0000009")),
		},
		"places": {
			stateOf(0, 100_000, 0), 100_000,
			place("0000000"), place("more"), append(place("more"), world.Unplace("0000009")),
		},
		"relations": {
			stateOf(2, 0, 4096), 4096,
			relate(world.Relation{To: "0000001", Strength: 2}), relate(world.Relation{To: "0000001", Type: "another"}),
			append([]world.Change{world.Unrelate("0000000", "0000009", "")}, relate(world.Relation{To: "0000001", Type: "another"})...),
		},
	} {
		t.Run(name, func(t *testing.T) {
			changes := tt.add
			h := world.Handler{Kind: "Do", Plan: func(world.ReadOnly, world.Effect) ([]world.Change, error) { return changes, nil }}
			// The same bytes, said to be of one more, are refused for that alone.
			over := bytes.Replace(tt.full, msgp.AppendArrayHeader(nil, tt.most), msgp.AppendArrayHeader(nil, tt.most+1), 1)
			_, err := world.RestoreWorld(over, h)
			require.ErrorIs(t, err, world.ErrState)
			require.ErrorContains(t, err, fmt.Sprintf("an array of %d", tt.most+1))
			w, err := world.RestoreWorld(tt.full, h)
			require.NoError(t, err)
			_, err = w.Plan(world.Effect{Kind: "Do"})
			require.ErrorIs(t, err, world.ErrLimit)
			for _, changes = range [][]world.Change{tt.replace, tt.exchange} {
				_, err = w.Apply(world.Effect{Kind: "Do"})
				require.NoError(t, err)
			}
		})
	}
}

// An effect has a finite time and an object as its payload, or none.
func TestEnvelope(t *testing.T) {
	w, err := world.NewWorld()
	require.NoError(t, err)
	for want, e := range map[string]world.Effect{
		"": {Kind: "k", SimTime: math.MaxFloat64},
		`agents: effect "k" /sim_time: no finite number: malformed effect`:     {Kind: "k", SimTime: math.Inf(-1)},
		`agents: effect "k" /payload: array, want an object: malformed effect`: {Kind: "k", Payload: parse(t, `[]`)},
		`agents: effect "" /kind: want 1 to 256 bytes: malformed effect`:       {},
	} {
		_, err := w.Plan(e)
		checked := w.CheckAs(w.ReadOnly, e)
		if want == "" {
			require.NoError(t, err)
			require.NoError(t, checked)
			continue
		}
		require.EqualError(t, err, want)
		require.ErrorIs(t, checked, world.ErrPayload)
	}
}

// A handler that no world can have is refused wherever a world is made, with its reason.
func TestHandlersThatNoWorldHas(t *testing.T) {
	empty, err := world.NewWorld()
	require.NoError(t, err)
	state := empty.AppendState(nil)
	known := doing()
	known.Kind = "Move"
	for want, handlers := range map[string][]world.Handler{
		`agents: handler of "Do": want a kind and a plan`:              {{Kind: "Do"}},
		`agents: two handlers of "Do"`:                                 {doing(), doing()},
		`agents: a handler of "Move", which the world knows by itself`: {known},
	} {
		_, made := world.NewWorld(handlers...)
		require.EqualError(t, made, want)
		_, parsed := world.ParseWorld(parse(t, `{}`), handlers...)
		require.EqualError(t, parsed, want)
		_, restored := world.RestoreWorld(state, handlers...)
		require.EqualError(t, restored, want)
	}
}
