package world_test

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/agents/world"
)

// Every member of an effect is read, and each is refused where it is of another kind.
func TestParseEffect(t *testing.T) {
	const whole = `{"uuid":"u","kind":"k","payload":{"a":1},"global_seq":9223372036854775807,"sim_time":1.5,"source_id":"s","schema_version":"1.0.0","req_id":"r","other":[]}`
	e, err := world.ParseEffect(parse(t, whole))
	require.NoError(t, err)
	require.Equal(t, world.Effect{
		UUID: "u", Kind: "k", Payload: parse(t, `{"a":1}`), GlobalSeq: math.MaxInt64, SimTime: 1.5, SourceID: "s", SchemaVersion: "1.0.0", ReqID: "r",
	}, e)
	again, err := world.ParseEffect(e.WithRequest())
	require.NoError(t, err)
	require.Equal(t, e, again)
	require.NotContains(t, e.Value().String(), "req_id")
	e.ReqID = ""
	require.Equal(t, e.Value(), e.WithRequest())
	e, err = world.ParseEffect(parse(t, `{"global_seq":0}`))
	require.NoError(t, err)
	require.Equal(t, world.Effect{}, e)
	require.Contains(t, e.Value().String(), `"payload":{}`)
	for text, want := range map[string]string{
		`[]`:                      "agents: an effect is an object",
		`{"uuid":1}`:              "agents: effect: uuid is no string",
		`{"kind":null}`:           "agents: effect: kind is no string",
		`{"source_id":[]}`:        "agents: effect: source_id is no string",
		`{"schema_version":1.0}`:  "agents: effect: schema_version is no string",
		`{"req_id":{}}`:           "agents: effect: req_id is no string",
		`{"payload":null}`:        "agents: effect: payload is no object",
		`{"global_seq":-1}`:       "agents: effect: global_seq is no sequence number",
		`{"global_seq":1.5}`:      "agents: effect: global_seq is no sequence number",
		`{"sim_time":"midnight"}`: "agents: effect: sim_time is no number",
	} {
		e, err := world.ParseEffect(parse(t, text))
		require.EqualError(t, err, want)
		require.Equal(t, world.Effect{}, e, text)
		require.EqualError(t, json.Unmarshal([]byte(text), &e), want)
	}
}

// Positions and relations are read from JSON by the rules of a world, and written so that they
// are read again.
func TestJSONOfParts(t *testing.T) {
	for text, want := range map[string]world.Relation{
		`"b"`:                                  {To: "b"},
		`{"to":"b","type":"t"}`:                {To: "b", Type: "t"},
		`{"strength":0.5,"to":"b"}`:            {To: "b", Strength: 0.5},
		`{"strength":0.5,"to":"b","type":"t"}`: {To: "b", Type: "t", Strength: 0.5},
		`{"to_entity":"b","relationship_type":"t","other":null}`: {To: "b", Type: "t"},
	} {
		var got, again world.Relation
		require.NoError(t, json.Unmarshal([]byte(text), &got), text)
		require.Equal(t, want, got)
		written, err := json.Marshal(got)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(written, &again))
		require.Equal(t, want, again)
		if text[0] == '"' {
			require.Equal(t, text, string(written))
		}
	}
	for text, want := range map[string]string{
		`1`:                         "a relation is an id or an object with to",
		`{"to":""}`:                 "an id has 1 to 256 bytes",
		`{"to":"b","strength":"s"}`: "strength is no number",
		`{"to":"b","since":1}`:      "/since: a relationship keeps a type and a strength only; put anything else into an entity",
	} {
		require.EqualError(t, json.Unmarshal([]byte(text), new(world.Relation)), want)
	}
	var at world.Position
	require.NoError(t, json.Unmarshal([]byte(`[1,-0.0]`), &at))
	require.Equal(t, world.Position{X: 1}, at)
	require.False(t, math.Signbit(at.Y))
	written, err := json.Marshal(world.Position{X: 1, Y: 2, Z: 3.5})
	require.NoError(t, err)
	require.Equal(t, "[1.0,2.0,3.5]", string(written))
	for _, text := range []string{`[1]`, `[1,2,3,4]`, `{}`, `[1,"2"]`, `[1e13,0]`} {
		require.Error(t, json.Unmarshal([]byte(text), new(world.Position)), text)
	}
}

// A relation of a world to begin with has no member that would be lost, and the error points
// to it.
func TestCheckRelations(t *testing.T) {
	const lost = ": a relationship keeps a type and a strength only; put anything else into an entity"
	for _, tt := range []struct{ text, want string }{
		{`{}`, ""},
		{`{"relationships":{"a":["b",{"to":"b","type":"t","strength":1,"since":null}]},"typed_relationships":[{"from":"a","to":"b"},["a","b","t"]]}`, ""},
		{`{"typed_relationships":[{"from_entity":"a","to_entity":"b","relationship_type":"t"}]}`, ""},
		{`{"typed_relationships":{"a":[{"to":"b"}]}}`, ""},
		{`{"relationships":{"a":["b"],"c/d":["b",{"to":"b","si/nce":1}]}}`, "/relationships/c~1d/1/si~1nce" + lost},
		{`{"relationships":{"a":[{"from":"a","to":"b"}]}}`, "/relationships/a/0/from" + lost},
		{`{"typed_relationships":{"a":["b","c",{"to":"b","from":"a"}]}}`, "/typed_relationships/a/2/from" + lost},
		{`{"typed_relationships":[["a","b","c"],{"from":"a","to":"b","x":0}]}`, "/typed_relationships/1/x" + lost},
	} {
		err := world.CheckRelations(parse(t, tt.text))
		if tt.want == "" {
			require.NoError(t, err, tt.text)
			continue
		}
		require.EqualError(t, err, tt.want)
	}
}

// An error about a malformed world names the place.
func TestParseWorldPlaces(t *testing.T) {
	for text, want := range map[string]string{
		`{"typed_relationships":7}`:                           "/typed_relationships: want an array",
		`{"typed_relationships":{"":["b"]}}`:                  `/typed_relationships: "": an id has 1 to 256 bytes`,
		`{"typed_relationships":{"a":7}}`:                     `/typed_relationships: "a": want an array`,
		`{"typed_relationships":{"a":["b"],"c":[{}]}}`:        `/typed_relationships: "c": an id has 1 to 256 bytes`,
		`{"typed_relationships":[["a","b","t"],["a","b"]]}`:   "/typed_relationships: element 1: a relation is an id or an object with to",
		`{"typed_relationships":[["a","b","t","u"]]}`:         "/typed_relationships: element 0: a relation is an id or an object with to",
		`{"typed_relationships":[["","b","t"]]}`:              "/typed_relationships: element 0: an id has 1 to 256 bytes",
		`{"relationships":{"a":[7]}}`:                         "/relationships/a: a relation is an id or an object with to",
		`{"relationships":{"a":[{"to":"b","strength":"s"}]}}`: "/relationships/a: strength is no number",
		`{"entities":{"":{}}}`:                                "/entities/: an id has 1 to 256 bytes",
		`{"metadata":{"last_effect_seq":1.5}}`:                "/metadata/last_effect_seq: want a sequence number",
		`{"metadata":{"last_effect_time":"noon"}}`:            "/metadata/last_effect_time: want a number",
		`{"metadata":{"last_effect_kind":7}}`:                 "/metadata/last_effect_kind: want a kind",
		`{"metadata":[]}`:                                     "/metadata: want an object",
		`{"relationships":[]}`:                                "/relationships: want an object",
		`{"spatial_index":1}`:                                 "/spatial_index: want an object",
		`{"a/b":1}`:                                           "/a~1b: unknown member",
	} {
		_, err := world.ParseWorld(parse(t, text))
		require.EqualError(t, err, "agents: world: "+want, text)
	}
	w, err := world.ParseWorld(parse(t, `{
		"entities": {"a":{},"b":{}},
		"relationships": {"a":["b",{"to":"b","type":"old"}],"b":["a"]},
		"typed_relationships": {"a":[{"to":"b","type":"new"},{"to":"b","type":"old","strength":2}],"b":["a"]},
		"metadata": {"last_effect_seq":0,"last_effect_time":2,"last_effect_kind":"k","place":"here"}}`))
	require.NoError(t, err)
	require.Equal(t, []world.Relation{{To: "b", Type: "old", Strength: 2}, {To: "b", Type: "new"}}, w.Relations("a"))
	require.Equal(t, []world.Relation{{To: "a"}}, w.Relations("b"))
	require.True(t, w.Begun())
	require.InDelta(t, 2, w.SimTime(), 0)
	require.Equal(t, `{"place":"here","last_effect_seq":0,"last_effect_time":2.0,"last_effect_kind":"k"}`, w.Metadata().String())
}

// Removing an absent entity, field or relation changes nothing. The parts that are removed with
// an entity are changes.
func TestWriteSet(t *testing.T) {
	w, err := world.ParseWorld(parse(t, `{"entities":{"a":{"x":1},"b":{}},"relationships":{"a":["b",{"to":"b","type":"t"}],"b":["a","b"]},"spatial_index":{"a":[1,2],"ghost":[3,4]}}`),
		doing(world.Unplace("b"), world.RemoveEntity("nobody"), world.Unrelate("a", "b", "none"), world.Unplace("nobody")))
	require.NoError(t, err)
	c, err := w.Apply(world.Effect{Kind: "Do", GlobalSeq: 7})
	require.NoError(t, err)
	require.Equal(t, world.Changes{Seq: 7}, c)
	require.Empty(t, c.Touched())
	require.Empty(t, c.Paths())

	c, err = w.Apply(world.Effect{Kind: world.KindEntityRemoved, GlobalSeq: 8, Payload: parse(t, `{"id":"ghost"}`)})
	require.NoError(t, err)
	require.Equal(t, world.Changes{Seq: 8, Places: []world.PlaceChange{{ID: "ghost", Before: world.Placement{Position: world.Position{X: 3, Y: 4}, Placed: true}}}}, c)

	c, err = w.Apply(world.Effect{Kind: world.KindEntityRemoved, GlobalSeq: 9, Payload: parse(t, `{"id":"a"}`)})
	require.NoError(t, err)
	require.Equal(t, world.Changes{
		Seq:      9,
		Entities: []world.EntityChange{{ID: "a", Before: parse(t, `{"x":1}`), Fields: []string{"x"}}},
		Places:   []world.PlaceChange{{ID: "a", Before: world.Placement{Position: world.Position{X: 1, Y: 2}, Placed: true}}},
		Relations: []world.RelationChange{
			{From: "a", Relation: world.Relation{To: "b"}}, {From: "a", Relation: world.Relation{To: "b", Type: "t"}}, {From: "b", Relation: world.Relation{To: "a"}},
		},
	}, c)
	require.Equal(t, []string{"a", "b"}, c.Touched())
	require.Equal(t, []world.Relation{{To: "b"}}, w.Relations("b"))
	require.Equal(t, `{"entities":{"b":{}},"relationships":{"b":["b"]},"spatial_index":{},"metadata":{"last_effect_seq":9,"last_effect_time":0.0,"last_effect_kind":"EntityRemoved"}}`, w.Value().String())
}

// Relations are added and removed one way, or both ways if they are mutual; of one type, or of
// all types where no type is given.
func TestMutualRelations(t *testing.T) {
	for _, tt := range []struct{ kind, payload, a, b string }{
		{world.KindRelationshipAdded, `{"from":"a","to":"b","type":"new"}`, "[{b  0} {b t 0} {b new 0}]", "[{a  0} {a t 0}]"},
		{world.KindRelationshipAdded, `{"from":"a","to":"b","type":"new","mutual":true,"strength":2}`, "[{b  0} {b t 0} {b new 2}]", "[{a  0} {a t 0} {a new 2}]"},
		{world.KindRelationshipAdded, `{"from":"a","to":"a","mutual":true}`, "[{b  0} {b t 0} {a  0}]", "[{a  0} {a t 0}]"},
		{world.KindRelationshipRemoved, `{"from":"a","to":"b"}`, "[]", "[{a  0} {a t 0}]"},
		{world.KindRelationshipRemoved, `{"from":"a","to":"b","mutual":false,"type":"t"}`, "[{b  0}]", "[{a  0} {a t 0}]"},
		{world.KindRelationshipRemoved, `{"from":"a","to":"b","mutual":true}`, "[]", "[]"},
		{world.KindRelationshipRemoved, `{"from":"a","to":"b","mutual":true,"relationship_type":""}`, "[{b t 0}]", "[{a t 0}]"},
	} {
		w, err := world.ParseWorld(parse(t, `{"entities":{"a":{},"b":{}},"relationships":{"a":["b",{"to":"b","type":"t"}],"b":["a",{"to":"a","type":"t"}]}}`))
		require.NoError(t, err)
		_, err = w.Apply(world.Effect{Kind: tt.kind, Payload: parse(t, tt.payload)})
		require.NoError(t, err)
		require.Equal(t, tt.a, fmt.Sprint(w.Relations("a")), tt.payload)
		require.Equal(t, tt.b, fmt.Sprint(w.Relations("b")), tt.payload)
	}
}
