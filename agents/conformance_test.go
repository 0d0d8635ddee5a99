package agents_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/signal"
)

// scenario is one file of the conformance set of agents.
type scenario struct {
	ID, Kind, Title string
	Input, Expected signal.Value
}

// judges has the kinds of scenario that the world alone can answer.
var judges = map[string]func(*testing.T, scenario){
	"visibility":       judgeVisibility,
	"field_visibility": judgeFields,
	"event_visibility": judgeEvent,
	"delta":            judgeDelta,
	"patch_apply":      judgePatch,
	"move":             judgeMove,
	"chain":            judgeChain,
	"integrity":        judgeIntegrity,
	"replay":           judgeReplay,
}

// TestConformance judges our own scenarios and, where it lies beside the
// repository or SAJOU_CONFORMANCE names one, another set.
func TestConformance(t *testing.T) {
	sets := []string{"testdata/conformance"}
	if named := os.Getenv("SAJOU_CONFORMANCE"); named != "" {
		if !filepath.IsAbs(named) {
			named = filepath.Join("..", named)
		}
		sets = append(sets, filepath.Join(named, "agents"))
	} else {
		sets = append(sets, "../../shared/conformance/agents")
	}
	judged := map[string]int{}
	for _, set := range sets {
		files, err := filepath.Glob(filepath.Join(set, "*.json"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var s scenario
			if err := json.Unmarshal(b, &s); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			if judge, ok := judges[s.Kind]; ok {
				judged[s.Kind]++
				t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) { judge(t, s) })
			}
		}
	}
	for kind := range judges {
		if judged[kind] == 0 {
			t.Errorf("no scenario of kind %s", kind)
		}
	}
}

func get(t *testing.T, v signal.Value, path string) signal.Value {
	t.Helper()
	m, ok := v.Lookup(path)
	if !ok {
		t.Fatalf("no %s in %v", path, v)
	}
	return m
}

func text(t *testing.T, v signal.Value, path string) string {
	t.Helper()
	s, ok := get(t, v, path).Text()
	if !ok {
		t.Fatalf("%s is no string in %v", path, v)
	}
	return s
}

func texts(t *testing.T, v signal.Value, path string) []string {
	t.Helper()
	list := []string{}
	for e := range get(t, v, path).Elements() {
		s, _ := e.Text()
		list = append(list, s)
	}
	return list
}

func look(t *testing.T, w *agents.World, agent string, policy signal.Value) *agents.Observer {
	t.Helper()
	lens, err := agents.CompileLens(policy, nil)
	if err != nil {
		t.Fatal(err)
	}
	o := agents.NewObserver(agent, lens)
	o.Begin(w.Reader, 0)
	return o
}

func readWorld(t *testing.T, s scenario) *agents.World {
	t.Helper()
	w, err := agents.ParseWorld(get(t, s.Input, "world"))
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func judgeVisibility(t *testing.T, s scenario) {
	agent := text(t, s.Input, "agent_id")
	got := look(t, readWorld(t, s), agent, get(t, s.Input, "policy")).Visible()
	want := texts(t, s.Expected, "visible_entities")
	if out, _ := get(t, s.Expected, "excluding_self").Bool(); out {
		got = slices.DeleteFunc(got, func(id string) bool { return id == agent })
		want = slices.DeleteFunc(want, func(id string) bool { return id == agent })
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func judgeFields(t *testing.T, s scenario) {
	view := look(t, readWorld(t, s), text(t, s.Input, "agent_id"), get(t, s.Input, "policy")).View()
	entity, ok := view.VisibleEntities.Get(text(t, s.Input, "entity_id"))
	if !ok {
		t.Fatalf("not visible in %v", view.Value())
	}
	want := get(t, s.Expected, "fields")
	for name, v := range want.Members() {
		if got, ok := entity.Get(name); !ok || canonical(got) != canonical(v) {
			t.Errorf("%s = %v, want %v", name, got, v)
		}
	}
	for name := range entity.Members() {
		if _, ok := want.Get(name); !ok && name != "position" {
			t.Errorf("%s is shown", name)
		}
	}
}

func judgeEvent(t *testing.T, s scenario) {
	w := readWorld(t, s)
	audience, observers := agents.NewAudience(), map[string]*agents.Observer{}
	for agent, policy := range get(t, s.Input, "policies").Members() {
		observers[agent] = look(t, w, agent, policy)
		audience.Add(w.Reader, agent, observers[agent].Lens())
	}
	draft := get(t, s.Input, "draft")
	d := agents.Draft{Kind: text(t, draft, "kind"), Payload: get(t, draft, "payload"), SourceID: text(t, draft, "source_id")}
	e := d.Effect("u1", 1, 0.5, "")
	c, err := w.Apply(e)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, agent := range audience.Follow(w.Reader, e, c) {
		if _, ok := observers[agent].Update(w.Reader, e, c); ok {
			got = append(got, agent)
		}
	}
	for _, agent := range texts(t, s.Expected, "receives") {
		if !slices.Contains(got, agent) {
			t.Errorf("%s receives nothing", agent)
		}
	}
	for _, agent := range texts(t, s.Expected, "does_not_receive") {
		if slices.Contains(got, agent) {
			t.Errorf("%s receives a delta", agent)
		}
	}
}

func judgeDelta(t *testing.T, s scenario) {
	old, now := get(t, s.Input, "old_view"), get(t, s.Input, "new_view")
	patch := agents.PatchValue(agents.Diff(old, now, 0))
	got, err := applyPatch(old, patch)
	if want := get(t, s.Expected, "apply_gives"); err != nil || canonical(got) != canonical(want) {
		t.Errorf("%v gives %v, %v, want %v", patch, got, err, want)
	}
	if theirs := otherApplier(t, old, patch); canonical(theirs) != canonical(got) {
		t.Errorf("another applier makes %v of it", theirs)
	}
	required, _ := s.Expected.Get("required_ops")
	for want := range required.Elements() {
		found := false
		for op := range patch.Elements() {
			all := true
			for name, v := range want.Members() {
				m, _ := op.Get(name)
				all = all && canonical(m) == canonical(v)
			}
			found = found || all
		}
		if !found {
			t.Errorf("%v does not occur in %v", want, patch)
		}
	}
}

func judgePatch(t *testing.T, s scenario) {
	doc := get(t, s.Input, "document")
	before := canonical(doc)
	got, err := applyPatch(doc, get(t, s.Input, "patch"))
	if want, ok := s.Expected.Get("result"); ok {
		if err != nil || canonical(got) != canonical(want) {
			t.Errorf("got %v, %v, want %v", got, err, want)
		}
	} else if err == nil {
		t.Errorf("got %v, want an error", got)
	}
	if canonical(doc) != before {
		t.Errorf("the document became %v", doc)
	}
}

func judgeMove(t *testing.T, s scenario) {
	at, err := agents.MoveTarget(get(t, s.Input, "payload"))
	if valid, _ := get(t, s.Expected, "valid").Bool(); valid != (err == nil) {
		t.Errorf("err = %v, want valid = %v", err, valid)
	} else if valid {
		if want := get(t, s.Expected, "position"); canonical(at.Value()) != canonical(want) {
			t.Errorf("got %v, want %v", at.Value(), want)
		}
	}
}

func judgeChain(t *testing.T, s scenario) {
	prev := ""
	lines, sums := texts(t, s.Expected, "canonical_json"), texts(t, s.Expected, "checksums")
	i := 0
	for v := range get(t, s.Input, "effects").Elements() {
		prev = agents.Checksum(prev, v)
		if got := canonical(v); got != lines[i] || prev != sums[i] {
			t.Errorf("effect %d:\n got %s %s\nwant %s %s", i, got, prev, lines[i], sums[i])
		}
		// An effect that went through our own form is the same to the byte.
		e, err := agents.ParseEffect(v)
		if err != nil || canonical(e.Value()) != canonical(v) {
			t.Errorf("effect %d reads back as %s, %v", i, canonical(e.Value()), err)
		}
		i++
	}
}

func judgeIntegrity(t *testing.T, s scenario) {
	sums := texts(t, s.Input, "checksums")
	var entries []agents.ChainEntry
	for v := range get(t, s.Input, "effects").Elements() {
		entries = append(entries, agents.ChainEntry{Effect: v, Checksum: sums[len(entries)]})
	}
	got := agents.Verify("w", entries)
	if valid, _ := get(t, s.Expected, "valid").Bool(); got.Valid != valid {
		t.Errorf("%+v, want valid = %v", got, valid)
	}
	if want, ok := s.Expected.Get("first_bad_index"); ok {
		if want.String() != fmt.Sprint(got.FirstBadIndex()) && !(want.Kind() == signal.KindNull && got.FirstBadIndex() < 0) {
			t.Errorf("%+v, want the first bad index %v", got, want)
		}
	}
	if want, ok := s.Expected.Get("missing_sequences"); ok {
		b, err := json.Marshal(got.MissingSequences)
		if err != nil || want.String() != string(b) {
			t.Errorf("missing %s, %v, want %v", b, err, want)
		}
	}
}

func judgeReplay(t *testing.T, s scenario) {
	run := func() string {
		w, err := agents.NewWorld()
		if err != nil {
			t.Fatal(err)
		}
		sums, prev := "", ""
		for v := range get(t, s.Input, "effects").Elements() {
			e, err := agents.ParseEffect(v)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.Apply(e); err != nil {
				t.Fatal(err)
			}
			prev = agents.Checksum(prev, e.Value())
			sums += fmt.Sprint(e.GlobalSeq, prev)
		}
		return sums + string(w.AppendState(nil))
	}
	if a, b := run(), run(); a != b {
		t.Errorf("one run gives\n%q\nand another\n%q", a, b)
	}
}
