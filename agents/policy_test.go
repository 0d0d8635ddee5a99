package agents_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/agents/jsondoc"
	"github.com/sajou-dev/sajou-go/agents/view"
	"github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/signal"
)

const town = `{
	"entities": {
		"me":    {"type": "agent", "team": "red", "facing": [0, 1]},
		"ally":  {"type": "agent", "team": "red", "hp": 1, "plan": "north"},
		"rival": {"type": "agent", "team": "blue", "hp": 2, "plan": "south"},
		"tree":  {"type": "thing", "hp": 3},
		"rumour": {"type": "thing"}
	},
	"relationships": {"me": [{"to": "tree", "type": "owner"}], "rival": ["me"], "tree": ["ally"]},
	"spatial_index": {"me": [0, 0], "ally": [0, 500], "rival": [3, 0], "tree": [0, 8]}
}`

// look returns an observer for "me", who has been shown the world.
func look(t *testing.T, w *world.World, policy signal.Value) *view.Observer {
	t.Helper()
	lens, err := view.CompilePolicy(policy, nil)
	require.NoError(t, err)
	o := view.NewObserver("me", lens, 0)
	o.Begin(w.ReadOnly, 0)
	return o
}

// TestPolicies shows what "me" sees of one town under each policy: the ids and
// the names of the fields shown.
func TestPolicies(t *testing.T) {
	for _, tt := range []struct{ policy, want string }{
		{`{}`, `rival(hp plan position team type) rumour(type) tree(hp position type)`},
		{`{"distance_limit":8}`, `rival(hp plan position team type) tree(hp position type)`},
		{`{"distance_limit":7.99,"include_spatial_index":false}`, `rival(hp plan team type)`},
		{`{"distance_limit":99,"relationship_filter":["owner"]}`, `tree(hp position type)`},
		{`{"distance_limit":1000,"relationship_filter":["owner"]}`, `ally(hp plan position team type) tree(hp position type)`},
		{`{"distance_limit":1000,"relationship_filter":["owner"],"relationship_depth":1}`, `tree(hp position type)`},
		{`{"field_visibility":{"plan":false,"position":false,"hp":true}}`, `rival(hp team type) rumour(type) tree(hp type)`},
		{`{"policy":"everything"}`, `ally(hp plan position team type) rival(hp plan position team type) rumour(type) tree(hp position type)`},
		{`{"policy":"self"}`, ``},
		{`{"policy":"distance","limit":3}`, `rival(hp plan position team type)`},
		{`{"policy":"distance","limit":3,"unplaced":true}`, `rival(hp plan position team type) rumour(type)`},
		{`{"policy":"cone","range":10,"angle":60}`, `tree(hp position type)`},
		{`{"policy":"cone","range":10,"angle":180}`, `rival(hp plan position team type) tree(hp position type)`},
		{`{"policy":"relationships"}`, `tree(hp position type)`},
		{`{"policy":"relationships","direction":"in"}`, `rival(hp plan position team type)`},
		{`{"policy":"relationships","direction":"both","depth":2,"entities":"agent"}`, `ally(hp plan position team type) rival(hp plan position team type)`},
		{`{"policy":"relationships","types":["enemy"]}`, ``},
		{`{"policy":"conversation"}`, `rival(hp plan position team type)`},
		{`{"policy":"team"}`, `ally(hp plan position team type)`},
		{`{"policy":"any","of":[{"policy":"distance","limit":3},{"policy":"team","fields":["hp"]}]}`, `ally(hp) rival(hp plan position team type)`},
		{`{"policy":"all","of":[{"policy":"distance","limit":9},{"policy":"not","of":{"policy":"relationships"}}]}`, `rival(hp plan position team type)`},
		{`{"policy":"all","of":[{"policy":"everything"},{"policy":"fields","fields":{"plan":false,"hp":false},"of":"rivals","types":["agent"]}]}`, `ally(hp plan position team type) rival(position team type) rumour(type) tree(hp position type)`},
		{`{"policy":"fields","fields":{"plan":false},"of":"allies"}`, `ally(hp position team type) rival(hp plan position team type) rumour(type) tree(hp position type)`},
	} {
		o := look(t, newWorld(t, town), parse(t, tt.policy))
		var seen []string
		for id, v := range o.View().VisibleEntities.Members() {
			var names []string
			for name := range v.Members() {
				names = append(names, name)
			}
			if id != "me" {
				seen = append(seen, id+"("+strings.Join(names, " ")+")")
			}
		}
		if got := strings.Join(seen, " "); got != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", tt.policy, got, tt.want)
		}
	}
}

// TestObserves shows which agents observe an effect that writes nothing.
func TestObserves(t *testing.T) {
	for _, tt := range []struct {
		policy, kind, source, payload string
		want                          bool
	}{
		{`{"distance_limit":5}`, "Wink", "rival", `{}`, true},
		{`{"distance_limit":5}`, "Wink", "tree", `{}`, false},
		{`{"distance_limit":5}`, "Wink", "me", `{}`, true},
		{`{"distance_limit":5}`, "Wink", "nobody", `{}`, false},
		{`{"distance_limit":100}`, "Wink", "nobody", `{}`, true},
		{`{"distance_limit":5}`, "Boom", "nobody", `{"position":[3,4]}`, true},
		{`{"distance_limit":5}`, "Boom", "nobody", `{"position":[3,4.1]}`, false},
		{`{"policy":"cone","range":10,"angle":60}`, "Boom", "nobody", `{"position":[0,4]}`, true},
		{`{"policy":"cone","range":10,"angle":60}`, "Boom", "nobody", `{"position":[4,0]}`, false},
		{`{"distance_limit":5}`, "Hit", "nobody", `{"entity_id":"rival"}`, true},
		{`{"distance_limit":5}`, "Hit", "nobody", `{"entity_id":"tree"}`, false},
		{`{"distance_limit":5}`, "Bond", "nobody", `{"from_entity":"me","to_entity":"rival"}`, true},
		{`{"distance_limit":5}`, "Bond", "nobody", `{"from_entity":"me","to_entity":"tree"}`, false},
		{`{"distance_limit":5}`, "Speak", "rival", `{"text":"x","channel":"team"}`, false},
		{`{"policy":"everything"}`, "Speak", "ally", `{"text":"x","channel":"team"}`, true},
		{`{"policy":"everything"}`, "Speak", "rival", `{"text":"x","channel":"private","target_id":"tree"}`, false},
		{`{"policy":"self"}`, "Speak", "rival", `{"text":"x","channel":"private","target_id":"me"}`, true},
		{`{"policy":"channel","channels":["team"]}`, "Speak", "rival", `{"text":"x"}`, false},
		{`{"policy":"channel","channels":["team"]}`, "Speak", "rival", `{"text":"x","channel":"private","target_id":"me"}`, false},
		{`{"policy":"channel","channels":["public"]}`, "Speak", "rival", `{"text":"x"}`, true},
		{`{"policy":"conversation"}`, "Speak", "rival", `{"text":"x"}`, true},
		{`{"policy":"conversation"}`, "Speak", "ally", `{"text":"x"}`, false},
		{`{"policy":"conversation"}`, "Wink", "rival", `{}`, false},
		{`{"policy":"conversation"}`, "ParticipantJoined", "ally", `{}`, true},
		{`{"policy":"all","of":[{"policy":"conversation"},{"policy":"distance","limit":2}]}`, "Speak", "rival", `{}`, true},
	} {
		w := newWorld(t, town)
		o := look(t, w, parse(t, tt.policy))
		e := effect(t, 1, tt.kind, tt.source, tt.payload)
		if got := o.Observes(w.ReadOnly, e); got != tt.want {
			t.Errorf("%s: %s by %s %s: %v, want %v", tt.policy, tt.kind, tt.source, tt.payload, got, tt.want)
		}
	}
}

// TestSecretsStaySecret is the law of channels: whatever the policies, no view
// of an agent has a word of what was said in private to others, or to another team, and
// neither its views nor its effects tell that something was said.
func TestSecretsStaySecret(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, `{}`)
		seq := uint64(0)
		for range rapid.IntRange(5, 30).Draw(t, "before") {
			seq++
			_, _ = w.Apply(drawEffect(t, seq))
		}
		observers := map[string]*view.Observer{}
		for _, id := range ids {
			observers[id] = view.NewObserver(id, compile(t, rapid.SampledFrom(lenses).Draw(t, "lens")), 0)
			observers[id].Begin(w.ReadOnly, seq)
		}
		source, target := rapid.SampledFrom(ids).Draw(t, "source"), rapid.SampledFrom(ids).Draw(t, "target")
		channel := rapid.SampledFrom([]string{"private", "team"}).Draw(t, "channel")
		e := effect(t, seq+1, "Speak", source, fmt.Sprintf(`{"text":"SECRET","channel":%q,"target_id":%q}`, channel, target))
		c, err := w.Apply(e)
		if err != nil {
			return
		}
		for id, o := range observers {
			told := id == source || channel == "private" && id == target ||
				channel == "team" && w.Team(id) != "" && w.Team(id) == w.Team(source)
			before := o.View().Value().String()
			delta, ok := o.Update(w.ReadOnly, e, c)
			if text := o.View().Value().String() + delta.Value().String(); !told && (ok || strings.Contains(text, "SECRET") || o.View().Value().String() != before) {
				t.Fatalf("%s knows of what %s said to %s (%s): %s", id, source, target, channel, text)
			}
			fresh := view.NewObserver(id, o.Policy(), 0)
			fresh.Begin(w.ReadOnly, seq+1)
			if !told && strings.Contains(fresh.View().Value().String(), "SECRET") {
				t.Fatalf("%s learns of it later: %v", id, fresh.View().Value())
			}
		}
	})
}

// TestPrivateMessageArrives shows in what form.
func TestPrivateMessageArrives(t *testing.T) {
	w := newWorld(t, town)
	o := look(t, w, parse(t, `{"distance_limit":1}`))
	e := effect(t, 2, "Speak", "ally", `{"text":"psst","channel":"private","target_id":"me"}`)
	c, err := w.Apply(e)
	require.NoError(t, err)
	delta, ok := o.Update(w.ReadOnly, e, c)
	want := `[{"op":"add","path":"/visible_entities/me/private_message","value":{"from":"ally","to":"me","text":"psst","time":1.0}}]`
	if got := jsondoc.PatchValue(delta.Patches).String(); !ok || got != want {
		t.Errorf("got %s, %v, want %s", got, ok, want)
	}
}

// TestFog shows what stays when things are out of sight, and what goes.
func TestFog(t *testing.T) {
	w := newWorld(t, `{"entities":{"me":{},"a":{"hp":1},"b":{},"c":{}},"spatial_index":{"me":[0,0],"a":[1,0],"b":[2,0],"c":[3,0]},"relationships":{"me":["a","b"]}}`)
	o := look(t, w, parse(t, `{"policy":"fog","of":{"policy":"distance","limit":5},"capacity":2}`))
	for i, tt := range []struct{ kind, source, payload, want string }{
		{"Move", "a", `{"to":[9,0]}`, `add /visible_entities/a/last_seen_seq 1, replace /visible_relationships/me ["b"]`},
		{"EntityUpdated", "", `{"entity_id":"a","fields":{"hp":0}}`, `nothing`},
		{"EntityRemoved", "", `{"entity_id":"c"}`, `remove /visible_entities/c`},
		{"Move", "me", `{"to":[-9,0]}`, `add /visible_entities/b/last_seen_seq 3, add /visible_entities/me/last_move_time 2.0, add /visible_entities/me/last_position [0.0,0.0,0.0], replace /visible_entities/me/position [-9.0,0.0,0.0], remove /visible_relationships/me`},
		{"EntityCreated", "", `{"entity_id":"d","position":[-9,1]}`, `add /visible_entities/d {"position":[-9.0,1.0,0.0]}`},
		{"Move", "d", `{"to":[50,0]}`, `add /visible_entities/d/last_seen_seq 5, remove /visible_entities/a`},
		{"Move", "b", `{"to":[-9,2]}`, `add /visible_entities/b/last_move_time 3.5, add /visible_entities/b/last_position [2.0,0.0,0.0], remove /visible_entities/b/last_seen_seq, replace /visible_entities/b/position [-9.0,2.0,0.0], add /visible_relationships/me ["b"]`},
	} {
		e := effect(t, uint64(i+1), tt.kind, tt.source, tt.payload)
		c, err := w.Apply(e)
		require.NoError(t, err)
		got := "nothing"
		if delta, ok := o.Update(w.ReadOnly, e, c); ok {
			var ops []string
			for _, op := range delta.Patches {
				ops = append(ops, strings.TrimSpace(op.Op+" "+op.Path+" "+strings.TrimSuffix(canonical(op.Value), "null")))
			}
			got = strings.Join(ops, ", ")
		}
		if got != tt.want {
			t.Errorf("%s %s %s:\n got %s\nwant %s", tt.kind, tt.source, tt.payload, got, tt.want)
		}
	}
}

// TestWholeView shows when a delta is the whole view: first of all, when there
// are too many operations, and when it is smaller than a long patch.
func TestWholeView(t *testing.T) {
	var entities, fields []string
	for i := range 60 {
		entities = append(entities, fmt.Sprintf(`"e%02d":{"x":1}`, i))
		fields = append(fields, fmt.Sprintf(`"f%02d":1`, i))
	}
	w := newWorld(t, `{"entities":{"me":{},`+strings.Join(entities, ",")+`}}`)
	lens := compile(t, `{"policy":"everything"}`)
	o := view.NewObserver("me", lens, 0)
	if first := o.Begin(w.ReadOnly, 0); !first.IsFullView() {
		t.Errorf("the first delta is %v", first.Value())
	}
	for seq, tt := range []struct {
		payload string
		want    int
		whole   bool
	}{
		{`{"entity_id":"me","fields":{` + strings.Join(fields[:50], ",") + `}}`, 50, false},
		{`{"entity_id":"me","remove":["f01"],"fields":{` + strings.Join(fields[9:], ",") + `,"g":1}}`, 12, false},
		{`{"entity_id":"e00","fields":{` + strings.Join(fields[:51], ",") + `}}`, 2, true},
	} {
		e := effect(t, uint64(seq+1), "EntityUpdated", "", tt.payload)
		c, err := w.Apply(e)
		require.NoError(t, err)
		delta, ok := o.Update(w.ReadOnly, e, c)
		if !ok || len(delta.Patches) != tt.want || delta.IsFullView() != tt.whole {
			t.Errorf("%.50s: %d operations, whole %v, want %d, %v", tt.payload, len(delta.Patches), delta.IsFullView(), tt.want, tt.whole)
		}
	}
	long := `"` + strings.Repeat("x", 3000) + `"`
	old, now := parse(t, `{"visible_entities":{"a":{"l":1},"b":1},"visible_relationships":{}}`), parse(t, `{"visible_entities":{"a":{"l":`+long+`}},"visible_relationships":{"c":`+long+`}}`)
	if patch := view.Diff(old, now, 0); len(patch) != 2 || patch[0].Path != "/visible_entities" {
		t.Errorf("a patch longer than the view: %v", jsondoc.PatchValue(patch))
	}
}

// TestCompilePolicy shows the errors of malformed policies.
func TestCompilePolicy(t *testing.T) {
	many := `{"policy":"everything"}` + strings.Repeat(`,{"policy":"everything"}`, 300)
	deep := strings.Repeat(`{"policy":"not","of":`, 300) + `{"policy":"self"}` + strings.Repeat(`}`, 300)
	for _, tt := range []struct{ policy, want string }{
		{`7`, `"": integer, want an object`},
		{`{"policy":7}`, `"/policy": integer, want a name`},
		{`{"policy":"magic"}`, `"/policy": unknown policy "magic"`},
		{`{"distance":5}`, `"/distance": default has no such member; it has distance_limit, relationship_filter, relationship_depth, field_visibility`},
		{`{"distance_limit":"far"}`, `"/distance_limit": want a number from 0 to 1e+15`},
		{`{"distance_limit":-1}`, `"/distance_limit": want a number from 0`},
		{`{"max_patch_ops":0}`, `"/max_patch_ops": want a number from 1 to 100000`},
		{`{"relationship_filter":["a",1]}`, `"/relationship_filter/1": integer, want a name`},
		{`{"field_visibility":{"a/b":"no"}}`, `"/field_visibility/a~1b": string, want true or false`},
		{`{"include_spatial_index":1}`, `"/include_spatial_index": integer, want true or false`},
		{`{"on_disappear":"hide"}`, `"/on_disappear": string, want one of remove, keep`},
		{`{"policy":"distance"}`, `"/limit": missing`},
		{`{"policy":"cone","range":1,"angle":361}`, `"/angle": want a number from 0 to 360`},
		{`{"policy":"relationships","direction":"up"}`, `"/direction": string, want one of out, in, both`},
		{`{"policy":"channel","channels":["public","radio"]}`, `"/channels/1": "radio", want public, team or private`},
		{`{"policy":"all","of":[]}`, `"/of": no policy`},
		{`{"policy":"all","of":{}}`, `"/of": object, want an array of policies`},
		{`{"policy":"any","of":[{"policy":"self"},{"policy":"not","of":{"policy":"distance","limt":1}}]}`, `"/of/1/of/limt": distance has no such member; it has limit, unplaced`},
		{`{"policy":"all","of":[{"policy":"fog","of":{"policy":"self"}}]}`, `"/of/0": fog stands outermost only`},
		{`{"policy":"all","of":[{"policy":"self","max_patch_ops":1}]}`, `"/of/0/max_patch_ops": self has no such member`},
		{`{"policy":"custom","name":"even","version":2}`, `"/name": no policy "even" of version 2 is registered`},
		{`{"policy":"custom","name":"even"}`, `"/version": want an integer`},
		{`{"policy":"all","of":[` + many + `]}`, `more than 256 policies in one`},
		{deep, `more than 256 policies in one`},
	} {
		_, err := view.CompilePolicy(parse(t, tt.policy), customs)
		if !errors.Is(err, view.ErrPolicy) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%.80s: %v, want %s", tt.policy, err, tt.want)
		}
	}
	if _, err := view.CompilePolicy(parse(t, `{"distance_limit":5,"staleness_threshold":2}`), nil, "staleness_threshold"); err != nil {
		t.Errorf("a member that another reads: %v", err)
	}
}

// FuzzCompilePolicy compiles any policy and looks through it.
func FuzzCompilePolicy(f *testing.F) {
	for _, text := range lenses {
		f.Add([]byte(text))
	}
	w := newWorld(f, town)
	f.Fuzz(func(t *testing.T, text []byte) {
		v, err := signal.ParseValue(text)
		if err != nil {
			return
		}
		lens, err := view.CompilePolicy(v, customs)
		if err != nil {
			if !errors.Is(err, view.ErrPolicy) {
				t.Errorf("err = %v, want ErrPolicy", err)
			}
			return
		}
		o := view.NewObserver("me", lens, 0)
		if delta := o.Begin(w.ReadOnly, 1); delta.ContextDigest() != o.View().Digest() {
			t.Errorf("the digest is %s, want %s", delta.ContextDigest(), o.View().Digest())
		}
	})
}
