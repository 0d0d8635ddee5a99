package agents_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/agents/jsondoc"
	agentview "github.com/sajou-dev/sajou-go/agents/view"
	"github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/signal"
)

// lenses are policies of every kind, alone and combined.
var lenses = []string{
	`{"distance_limit":10}`,
	`{"distance_limit":100,"relationship_filter":["friend"],"field_visibility":{"hp":false}}`,
	`{"distance_limit":15,"relationship_filter":["friend"],"relationship_depth":3,"max_patch_ops":1}`,
	`{"policy":"everything","typed_relationships":true}`,
	`{"policy":"self"}`,
	`{"policy":"conversation"}`,
	`{"policy":"cone","range":20,"angle":90}`,
	`{"policy":"relationships","depth":2,"direction":"both","types":["friend"]}`,
	`{"policy":"relationships","depth":2,"direction":"in","entities":"agent","include_spatial_index":false}`,
	`{"policy":"any","of":[{"policy":"distance","limit":6},{"policy":"team","fields":["hp","position"]}]}`,
	`{"policy":"any","of":[{"policy":"distance","limit":6,"unplaced":true},{"policy":"relationships","types":["foe"],"depth":2}]}`,
	`{"policy":"all","of":[{"policy":"distance","limit":12},{"policy":"not","of":{"policy":"team"}},{"policy":"channel","channels":["team","private"]}]}`,
	`{"policy":"all","of":[{"policy":"distance","limit":20},{"policy":"fields","fields":{"hp":false},"of":"rivals"},{"policy":"fields","fields":{"type":false},"types":["thing"]}]}`,
	`{"policy":"custom","name":"even","version":1}`,
	`{"policy":"fog","of":{"policy":"distance","limit":8},"capacity":3}`,
	`{"policy":"distance","limit":8,"on_disappear":"keep"}`,
}

// even sees entities while the world has an even number of them: a policy
// whose result cannot be predicted.
type even struct{}

func (even) Sees(eye *agentview.Viewpoint, _ string) bool    { return eye.Len()%2 == 0 }
func (even) Shows(*agentview.Viewpoint, string, string) bool { return true }
func (even) Dependencies() agentview.Dependencies            { return agentview.Opaque() }

var customs = []agentview.Custom{{Name: "even", Version: 1, Compile: func(signal.Value) (agentview.Policy, error) { return even{}, nil }}}

// handlers has a kind of effect that does everything at once.
var handlers = []world.Handler{{Kind: "Swap", Version: 3, Plan: func(w world.ReadOnly, e world.Effect) ([]world.Change, error) {
	other, _ := e.Payload.Get("with")
	id, _ := other.Text()
	here, ok1 := w.Position(e.SourceID)
	there, ok2 := w.Position(id)
	if !ok1 || !ok2 {
		return nil, fmt.Errorf("both need a position")
	}
	return []world.Change{
		world.Place(e.SourceID, there), world.Place(id, here),
		world.SetField(e.SourceID, "swapped", other), world.RemoveField(e.SourceID, "hp"),
		world.Relate(e.SourceID, world.Relation{To: id, Type: "friend", Strength: 0.5}),
		world.Unrelate(e.SourceID, id, "foe"),
	}, nil
}}}

var ids = []string{"a", "b", "c~/d", "e", "f", "g", "h"}

// drawEffect draws an effect of any kind, sound or not.
func drawEffect(t *rapid.T, seq uint64) world.Effect {
	id := rapid.SampledFrom(ids)
	coordinate := rapid.IntRange(-20, 20)
	point := func() []any {
		p := []any{coordinate.Draw(t, "x"), coordinate.Draw(t, "y")}
		if rapid.Bool().Draw(t, "3d") {
			p = append(p, float64(coordinate.Draw(t, "z"))/4)
		}
		return p
	}
	fields := func() map[string]any {
		f := map[string]any{"team": rapid.SampledFrom([]string{"red", "blue"}).Draw(t, "side")}
		for _, name := range rapid.SliceOfN(rapid.SampledFrom([]string{"type", "team", "hp", "facing", "bag"}), 0, 3).Draw(t, "fields") {
			switch name {
			case "type":
				f[name] = rapid.SampledFrom([]string{"agent", "thing"}).Draw(t, "type")
			case "team":
				delete(f, name)
			case "hp":
				f[name] = rapid.IntRange(0, 3).Draw(t, "hp")
			case "facing":
				f[name] = point()
			case "bag":
				f[name] = map[string]any{"a/b": rapid.IntRange(0, 1).Draw(t, "a/b"), "~": []int{rapid.IntRange(0, 1).Draw(t, "~")}}
			}
		}
		return f
	}
	kind := rapid.SampledFrom([]string{
		"EntityCreated", "EntityCreated", "Move", "Move", "Move", "Speak", "MessageEmitted", "Interact", "EntityRemoved",
		"EntityUpdated", "EntityUpdated", "RelationshipAdded", "RelationshipAdded", "RelationshipRemoved", "Swap", "Explosion", "ParticipantJoined",
	}).Draw(t, "kind")
	p := map[string]any{}
	switch kind {
	case "EntityCreated":
		p["entity_id"], p["entity_data"] = id.Draw(t, "entity"), fields()
		if rapid.Bool().Draw(t, "placed") {
			p["position"] = point()
		}
	case "Move":
		p["to"] = point()
	case "Speak", "MessageEmitted":
		p["text"] = rapid.SampledFrom([]string{"hi", "群"}).Draw(t, "text")
		p["channel"] = rapid.SampledFrom([]string{"public", "team", "private"}).Draw(t, "channel")
		p["target_id"] = id.Draw(t, "target")
	case "Interact":
		p["target_id"] = id.Draw(t, "target")
	case "EntityRemoved":
		p["entity_id"] = id.Draw(t, "entity")
	case "EntityUpdated":
		p["entity_id"], p["fields"] = id.Draw(t, "entity"), fields()
		p["remove"] = rapid.SliceOfN(rapid.SampledFrom([]string{"type", "team", "hp", "facing", "bag"}), 0, 2).Draw(t, "remove")
	case "RelationshipAdded", "RelationshipRemoved":
		p["from"], p["to"] = id.Draw(t, "from"), id.Draw(t, "to")
		p["type"] = rapid.SampledFrom([]string{"friend", "foe"}).Draw(t, "type")
		p["mutual"] = rapid.Bool().Draw(t, "mutual")
	case "Swap":
		p["with"] = id.Draw(t, "with")
	case "Explosion":
		p["position"] = point()
	}
	return world.Effect{
		UUID: fmt.Sprint("u", seq), Kind: kind, Payload: value(t, p), GlobalSeq: seq, SimTime: float64(seq) / 4,
		SourceID: rapid.SampledFrom(append([]string{"outside"}, ids...)).Draw(t, "source"), SchemaVersion: world.SchemaVersion,
	}
}

// TestViewsFollowTheWorld is the main property of views, over drawn effects:
//
//   - an observer that is sent only the effects of its audience has the same view as a
//     new observer of the whole world
//   - each delta, applied to the view before it by an independent implementation of
//     JSON Patch, gives the view after it
//   - the digest is that of the document
//   - an effect that Plan refuses changes nothing
//   - states are restored at any point
func TestViewsFollowTheWorld(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, err := world.NewWorld(handlers...)
		require.NoError(t, err)
		audience := agentview.NewAudience()
		observers := map[string]*agentview.Observer{}
		texts := map[string]string{}
		// The digests of twins are asked for only at the end.
		twins := map[string]*agentview.Observer{}
		var unasked []agentview.Delta
		var digests []string
		var first uint64
		for range rapid.IntRange(0, 25).Draw(t, "before") { // mostly, the agents come into a world that is there
			first++
			_, _ = w.Apply(drawEffect(t, first))
		}
		for _, id := range ids[:4] {
			texts[id] = rapid.SampledFrom(lenses).Draw(t, "lens")
			lens := compile(t, texts[id])
			observers[id] = agentview.NewObserver(id, lens, 0)
			audience.Add(w.ReadOnly, id, lens)
			observers[id].Begin(w.ReadOnly, first)
			twins[id] = agentview.NewObserver(id, lens, 0)
			twins[id].Begin(w.ReadOnly, first)
		}
		for seq := range uint64(rapid.IntRange(1, 40).Draw(t, "effects")) {
			e := drawEffect(t, first+seq+1)
			before := w.AppendState(nil)
			_, refusal := w.Plan(e)
			c, err := w.Apply(e)
			if (refusal == nil) != (err == nil) {
				t.Fatalf("Plan says %v, Apply %v", refusal, err)
			}
			if err != nil {
				if !bytes.Equal(before, w.AppendState(nil)) {
					t.Fatalf("a refused effect changed the world: %v", err)
				}
				continue
			}
			checkChanges(t, before, w, c)
			concerned := audience.Follow(w.ReadOnly, e, c)
			if !slices.IsSorted(concerned) {
				t.Fatalf("not in order: %q", concerned)
			}
			for id, o := range observers {
				old := o.View()
				observes := o.Observes(w.ReadOnly, e)
				if !slices.Contains(concerned, id) {
					if observes {
						t.Fatalf("%s %s: observes %v, but is not concerned", id, texts[id], e)
					}
				} else if delta, ok := o.Update(w.ReadOnly, e, c); ok {
					checkDelta(t, old, delta, o.View())
					twin, _ := twins[id].Update(w.ReadOnly, e, c)
					unasked, digests = append(unasked, twin), append(digests, o.View().Digest())
				} else if observes {
					t.Fatalf("%s %s: observes %v, but there is no delta", id, texts[id], e)
				}
				checkView(t, w, o, texts[id])
			}
		}
		for i, delta := range unasked {
			if got := delta.ContextDigest(); got != digests[i] {
				t.Fatalf("the digest of %d is %s when it is asked for late, want %s", delta.ViewSeq, got, digests[i])
			}
		}
		again, err := world.RestoreWorld(w.AppendState(nil), handlers...)
		require.NoError(t, err)
		for id, o := range observers {
			restored, err := agentview.RestoreObserver(o.AppendState(nil, w.ReadOnly), again.ReadOnly, o.Policy())
			require.NoErrorf(t, err, "%s %s", id, texts[id])
			if diff := cmp.Diff(o.View().Value().String(), restored.View().Value().String()); diff != "" {
				t.Fatalf("%s %s: (-before +restored)\n%s", id, texts[id], diff)
			}
		}
		parsed, err := world.ParseWorld(w.Value(), handlers...)
		require.NoError(t, err)
		if got, want := canonical(parsed.Value()), canonical(w.Value()); got != want {
			t.Fatalf("the document reads back as %s, want %s", got, want)
		}
	})
}

// checkChanges shows that nothing was written but what the changes name.
func checkChanges(t *rapid.T, before []byte, w *world.World, c world.Changes) {
	old, err := world.RestoreWorld(before, handlers...)
	require.NoError(t, err)
	named := map[string]bool{}
	for _, path := range c.Paths() {
		named[path] = true
	}
	patch := agentview.Diff(old.Value(), w.Value(), 0)
	for _, op := range patch {
		if op.Path == "/metadata" || bytes.HasPrefix([]byte(op.Path), []byte("/metadata/")) {
			continue
		}
		path := op.Path
		if bytes.HasPrefix([]byte(path), []byte("/relationships/")) {
			path += "/"
		}
		ok := false
		for p := range named {
			ok = ok || p == path || bytes.HasPrefix([]byte(path), []byte(p+"/")) || bytes.HasPrefix([]byte(p), []byte(path))
		}
		if !ok {
			t.Fatalf("%s %s was written, but changes name only %q", op.Op, op.Path, c.Paths())
		}
	}
}

func checkDelta(t *rapid.T, old agentview.View, delta agentview.Delta, view agentview.View) {
	document := func(v agentview.View) signal.Value {
		return value(t, map[string]any{"visible_entities": v.VisibleEntities, "visible_relationships": v.VisibleRelationships})
	}
	want := canonical(document(view))
	patched, err := jsondoc.ApplyPatch(document(old), delta.Patches)
	require.NoErrorf(t, err, "delta %v on %v", jsondoc.PatchValue(delta.Patches), document(old))
	if got := canonical(patched); got != want {
		t.Fatalf("delta %v\n got %s\nwant %s", jsondoc.PatchValue(delta.Patches), got, want)
	}
	theirs := otherApplier(t, document(old), jsondoc.PatchValue(delta.Patches))
	if got := canonical(theirs); got != want {
		t.Fatalf("another applier makes of %v\n got %s\nwant %s", jsondoc.PatchValue(delta.Patches), got, want)
	}
	if delta.ViewSeq != view.ViewSeq || delta.ContextDigest() != view.ContextDigest || delta.ContextDigest() != view.Digest() {
		t.Fatalf("delta %d %s, view %d %s, whose digest is %s", delta.ViewSeq, delta.ContextDigest(), view.ViewSeq, view.ContextDigest, view.Digest())
	}
}

// otherApplier applies a patch with a library, which panics on some input.
func otherApplier(t rapid.TB, doc, patch signal.Value) (out signal.Value) {
	defer func() {
		if r := recover(); r != nil {
			t.Fatalf("the other applier panics: %v", r)
		}
	}()
	p, err := jsonpatch.DecodePatch([]byte(patch.String()))
	if err != nil {
		t.Fatal(err)
	}
	options := jsonpatch.NewApplyOptions()
	options.EscapeHTML = false
	b, err := p.ApplyWithOptions([]byte(doc.String()), options)
	if err != nil {
		t.Fatalf("the other applier: %v", err)
	}
	if out, err = signal.ParseValue(b); err != nil {
		t.Fatal(err)
	}
	return out
}

// checkView compares with one who looks for the first time; what is
// remembered it cannot know.
func checkView(t *rapid.T, w *world.World, o *agentview.Observer, text string) {
	fresh := agentview.NewObserver(o.Agent(), o.Policy(), 0)
	fresh.Begin(w.ReadOnly, o.ViewSeq())
	var seen []string
	for _, id := range o.Visible() {
		if o.Sees(id) {
			seen = append(seen, id)
			got, _ := o.View().VisibleEntities.Get(id)
			want, _ := fresh.View().VisibleEntities.Get(id)
			if diff := cmp.Diff(canonical(want), canonical(got)); diff != "" {
				t.Fatalf("%s %s: %s (-new +kept)\n%s", o.Agent(), text, id, diff)
			}
		}
	}
	if diff := cmp.Diff(fresh.Visible(), seen, cmp.Transformer("", func(s []string) string { return fmt.Sprint(s) })); diff != "" {
		t.Fatalf("%s %s: (-new +kept)\n%s", o.Agent(), text, diff)
	}
	if got, want := canonical(o.View().VisibleRelationships), canonical(fresh.View().VisibleRelationships); got != want {
		t.Fatalf("%s %s: relationships %s, of a new observer %s", o.Agent(), text, got, want)
	}
}

func canonical(v signal.Value) string { return string(jsondoc.AppendCanonical(nil, v)) }

// value makes a value of anything that encodes as JSON.
func value(t rapid.TB, v any) signal.Value {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, string(b))
}

func parse(t rapid.TB, text string) signal.Value {
	t.Helper()
	v, err := signal.ParseValue([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

func compile(t rapid.TB, text string) *agentview.CompiledPolicy {
	t.Helper()
	lens, err := agentview.CompilePolicy(parse(t, text), customs)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return lens
}
