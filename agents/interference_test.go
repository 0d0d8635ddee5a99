package agents_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/agents"
	agentworld "github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/internal/attack"
	"github.com/sajou-dev/sajou-go/signal"
)

// heard is all that the agent "me" gets of a world: refusals and outcomes,
// deliveries and cancellations, in its own numbers.
type heard struct {
	t    rapid.TB
	core *agents.Core
	now  time.Duration
	text strings.Builder
}

func newHeard(t rapid.TB, config, world, policy string) *heard {
	t.Helper()
	h := &heard{t: t}
	c, err := agents.NewCore(agents.Options{Handlers: []agentworld.Handler{{
		// Refuses in words that tell what it saw.
		Kind: "Count", Version: 1, Plan: func(w agentworld.ReadOnly, e agentworld.Effect) ([]agentworld.Change, error) {
			if w.Len() > 2 {
				return nil, fmt.Errorf("%d entities", w.Len())
			}
			return nil, nil
		},
	}}, Validators: []agents.Validator{{Name: "census", Check: func(w agentworld.ReadOnly, in agents.Intent) []agents.Problem {
		if in.Kind != "Custom" {
			return nil
		}
		return []agents.Problem{{Path: "/payload", Reason: fmt.Sprint(w.Len(), w.Value(), w.Within(agentworld.Position{}, 1e6))}}
	}}}})
	if err != nil {
		t.Fatal(err)
	}
	h.core = c
	c.Bind("w", nil)
	h.must(c.Configure(parse(t, config)))
	h.must(c.Begin(parse(t, world)))
	h.must(c.Register(agents.Registration{AgentID: "me", Policy: parse(t, policy)}))
	return h
}

func (h *heard) must(records []signal.Record, err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
	h.keep(records)
}

func (h *heard) keep(records []signal.Record) {
	h.t.Helper()
	for _, r := range records {
		out := h.core.Apply(h.now, r)
		if out.Err != nil {
			h.t.Fatal(out.Err)
		}
		h.take(out)
	}
}

func (h *heard) take(out agents.Applied) {
	for _, d := range out.Deliveries {
		if d.Agent == "me" {
			d.Delta.ViewSeq = d.Number - 1
			fmt.Fprintf(&h.text, "told %v at %v\n", d.Delta.Value(), d.At)
		}
	}
	for _, c := range out.Cancellations {
		if c.Agent == "me" {
			fmt.Fprintf(&h.text, "stop %s %s at %v\n", c.ReqID, c.Reason, c.At)
		}
	}
}

// pass lets time pass.
func (h *heard) pass(d time.Duration) {
	h.now += d
	h.take(h.core.Advance(h.now))
}

// hidden does something in the name of the world.
func (h *heard) hidden(kind, source, payload string) {
	h.t.Helper()
	o, records := h.core.Broadcast(h.now, agents.EffectDraft{Kind: kind, SourceID: source, Payload: parse(h.t, payload)})
	if !o.OK() {
		h.t.Fatal(o.Err())
	}
	h.keep(records)
}

// ask asks for something, and notes the answer and whether it was recorded.
func (h *heard) ask(kind, req, payload string) agents.Outcome {
	h.t.Helper()
	in := agents.Intent{
		Kind: kind, AgentID: "me", ReqID: req, Payload: parse(h.t, payload),
		ContextSeq: h.core.LatestViewSeq(h.now, "me"),
	}
	o, records := h.core.Submit(h.now, in)
	h.note(o)
	kept := make([]string, len(records))
	for i, r := range records {
		kept[i] = r.Word
	}
	fmt.Fprintf(&h.text, "kept %v\n", kept)
	h.keep(records)
	return o
}

func (h *heard) note(o agents.Outcome) {
	fmt.Fprintf(&h.text, "%v %d %s", o.Status, o.Number, o.UUID)
	if r := o.Rejection; r != nil {
		fmt.Fprintf(&h.text, " %s %s %q %v %v %d %d", r.Code, r.Recovery, r.Reason, r.Problems, r.RetryAfter,
			h.core.Number("me", r.ExpectedSeq), h.core.Number("me", r.ActualSeq))
	}
	h.text.WriteByte('\n')
}

func (h *heard) standing() string {
	s := h.core.AdmissionStatus(h.now, "me")
	return fmt.Sprint(s.Intents, s.Tokens, s.Cooldowns)
}

// same runs the same in two worlds and holds what the agent gets against each
// other, byte by byte.
func same(t rapid.TB, one, other *heard, f func(h *heard)) {
	t.Helper()
	f(one)
	f(other)
	if a, b := one.text.String(), other.text.String(); a != b {
		t.Fatalf("the agent tells the worlds apart:\n%s\nand\n%s", a, b)
	}
	if a, b := one.standing(), other.standing(); a != b {
		t.Fatalf("the agent's quotas differ: %s and %s", a, b)
	}
}

const interferenceConfig = `{"cooldowns":"off","rules":{"max_interact_distance":5,"max_move_distance":50},
	"intent_kinds":["EntityUpdated","EntityRemoved","EntityCreated","RelationshipAdded","RelationshipRemoved"]}`

// TestHiddenIsAbsent shows that the answer to a request about a hidden entity has the
// same bytes as if the entity did not exist, wherever it is.
func TestHiddenIsAbsent(t *testing.T) {
	worlds := map[string]string{
		"absent": `{"entities":{"me":{},"you":{}},"spatial_index":{"me":[0,0],"you":[3,0]}}`,
		"far":    `{"entities":{"me":{},"you":{},"spy":{"team":"red"}},"spatial_index":{"me":[0,0],"you":[3,0],"spy":[20,0]}}`,
		"nearer": `{"entities":{"me":{},"you":{},"spy":{"team":"red"},"mole":{}},"spatial_index":{"me":[0,0],"you":[3,0],"spy":[0,11]},"relationships":{"you":["spy"],"spy":["you"]}}`,
	}
	asks := [][2]string{
		{"Interact", `{"target_id":"spy"}`},
		{"Interact", `{"target":"spy"}`},
		{"Interact", `{"target_id":"you"}`},
		{"Speak", `{"text":"hi","channel":"private","target_id":"spy"}`},
		{"EntityUpdated", `{"entity_id":"spy","fields":{"x":1}}`},
		{"EntityRemoved", `{"entity_id":"spy"}`},
		{"EntityCreated", `{"entity_id":"spy"}`},
		{"RelationshipAdded", `{"from":"me","to":"spy"}`},
		{"RelationshipRemoved", `{"from":"spy","to":"me"}`},
		{"Move", `{"to":[1,1]}`},
		{"Move", `{"to":[999,0]}`},
		{"Custom", `{}`},
	}
	for _, policy := range []string{`{"policy":"distance","limit":10}`, `{"policy":"any","of":[{"policy":"distance","limit":10},{"policy":"team"}]}`} {
		for name, world := range worlds {
			one := newHeard(t, interferenceConfig, worlds["absent"], policy)
			other := newHeard(t, interferenceConfig, world, policy)
			t.Run(name, func(t *testing.T) {
				same(t, one, other, func(h *heard) {
					for i, ask := range asks {
						h.ask(ask[0], fmt.Sprint(i), ask[1])
					}
				})
			})
		}
	}
}

// TestMadeEntitiesAreFurnishedAsNamed shows that a restricted kind of a handler cannot
// give what it makes more than it may make it with, and makes no body of another
// agent.
func TestMadeEntitiesAreFurnishedAsNamed(t *testing.T) {
	made := func(changes ...agentworld.Change) agentworld.Handler {
		return agentworld.Handler{Kind: "Craft", Version: 1, Plan: func(agentworld.ReadOnly, agentworld.Effect) ([]agentworld.Change, error) {
			return append([]agentworld.Change{agentworld.PutEntity("me/thing", parse(t, `{}`))}, changes...), nil
		}}
	}
	for name, tt := range map[string]struct {
		handler  agentworld.Handler
		register string
		ok       bool
	}{
		"plain":               {made(agentworld.SetField("me/thing", "hp", parse(t, `1`))), "", true},
		"to what is seen":     {made(agentworld.Relate("me/thing", agentworld.Relation{To: "you"})), "", true},
		"to itself":           {made(agentworld.Relate("me/thing", agentworld.Relation{To: "me"})), "", true},
		"protected afterward": {made(agentworld.SetField("me/thing", "team", parse(t, `"blue"`))), "", false},
		"to what is hidden":   {made(agentworld.Relate("me/thing", agentworld.Relation{To: "spy"})), "", false},
		"an agent's":          {made(), "me/thing", false},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := agents.NewCore(agents.Options{Handlers: []agentworld.Handler{tt.handler}})
			require.NoError(t, err)
			h := &heard{t: t, core: c}
			c.Bind("w", nil)
			h.must(c.Configure(parse(t, `{"intent_kinds":[{"kind":"Craft","create":["{agent}/"]}]}`)))
			h.must(c.Begin(parse(t, `{"entities":{"me":{},"you":{},"spy":{}},"spatial_index":{"me":[0,0],"you":[3,0],"spy":[99,0]}}`)))
			h.must(c.Register(agents.Registration{AgentID: "me", Policy: parse(t, `{"distance_limit":10}`)}))
			if tt.register != "" {
				h.must(c.Register(agents.Registration{AgentID: tt.register}))
			}
			if o := h.ask("Craft", "1", `{}`); o.OK() != tt.ok {
				t.Errorf("accepted: %v; %v", o.OK(), o.Err())
			}
		})
	}
}

// TestHiddenTypesOfRelations shows that an agent that is not shown the types of
// relations cannot find out one by what it takes away or adds.
func TestHiddenTypesOfRelations(t *testing.T) {
	const config = `{"cooldowns":"off","intent_kinds":[{"kind":"RelationshipAdded","relate":true},{"kind":"RelationshipRemoved","relate":true}]}`
	world := func(relation string) string {
		return `{"entities":{"me":{},"you":{}},"relationships":{"me":[` + relation + `],"you":[` + strings.ReplaceAll(relation, "you", "me") + `]}}`
	}
	for name, asks := range map[string][][2]string{
		"takes a type away":      {{"RelationshipRemoved", `{"from":"me","to":"you","type":"foe","mutual":true}`}},
		"takes all away":         {{"RelationshipRemoved", `{"from":"me","to":"you","mutual":true}`}},
		"adds and takes away":    {{"RelationshipAdded", `{"from":"me","to":"you","type":"foe"}`}, {"RelationshipRemoved", `{"from":"me","to":"you","type":"foe"}`}},
		"adds beside":            {{"RelationshipAdded", `{"from":"me","to":"you","type":"foe","strength":1}`}, {"RelationshipAdded", `{"from":"me","to":"you"}`}},
		"takes the other's away": {{"RelationshipRemoved", `{"from":"you","to":"me","relationship_type":"foe"}`}},
	} {
		for _, others := range []string{`{"to":"you","type":"foe"}`, `"you"`, `{"to":"you","type":"friend"},{"to":"you","type":"foe"}`} {
			t.Run(name, func(t *testing.T) {
				const policy = `{"policy":"everything"}`
				same(t, newHeard(t, config, world(`{"to":"you","type":"friend"}`), policy), newHeard(t, config, world(others), policy), func(h *heard) {
					for i, ask := range asks {
						h.ask(ask[0], fmt.Sprint(i), ask[1])
					}
				})
			})
		}
	}
	h := newHeard(t, config, world(`{"to":"you","type":"friend"},{"to":"you","type":"foe"}`), `{"typed_relationships":true}`)
	if o := h.ask("RelationshipRemoved", "typed", `{"from":"me","to":"you","type":"foe"}`); !o.OK() {
		t.Errorf("an agent that is shown types: %v", o.Err())
	}
}

// TestOrderOfOneRequest shows that of two intents of one req_id in a quantum the one
// that comes first does not depend on numbers of the log.
func TestOrderOfOneRequest(t *testing.T) {
	const world = `{"entities":{"me":{},"spy":{}},"spatial_index":{"me":[0,0],"spy":[99,0]}}`
	for noise := range 12 {
		one, other := newHeard(t, interferenceConfig, world, `{"distance_limit":10}`), newHeard(t, interferenceConfig, world, `{"distance_limit":10}`)
		same(t, one, other, func(h *heard) {
			if h == other {
				for range noise {
					h.hidden("EntityUpdated", "spy", `{"entity_id":"spy","fields":{"hp":1}}`)
				}
			}
			h.ask("Speak", "before", `{"text":"now"}`)
			in := agents.Intent{Kind: "Speak", AgentID: "me", ReqID: "twice", ContextSeq: h.core.LatestViewSeq(h.now, "me")}
			d := h.core.Decide(h.now, agents.Quantum{By: agents.CloseFlush}, []agents.Submission{
				{Intent: with(in, parse(t, `{"text":"one"}`))}, {Intent: with(in, parse(t, `{"text":"two"}`))},
			})
			for _, o := range d.Outcomes {
				h.note(o)
			}
			h.keep(d.Records)
		})
	}
}

func with(in agents.Intent, payload signal.Value) *agents.Intent {
	in.Payload = payload
	return &in
}

// TestHiddenEffectsDoNotCount shows that nothing that happens out of sight
// changes a number, a delay, a threshold or what is in conflict.
func TestHiddenEffectsDoNotCount(t *testing.T) {
	const world = `{"entities":{"me":{},"you":{},"spy":{}},"spatial_index":{"me":[0,0],"you":[3,0],"spy":[99,0]}}`
	for _, policy := range []string{
		`{"policy":"fog","of":{"policy":"distance","limit":10}}`,
		`{"policy":"distance","limit":10,"latency_model":{"model":"distance","base_ms":5,"per_unit_ms":3,"spread_ms":40,"seed":7}}`,
		`{"policy":"distance","limit":10,"staleness_threshold":2}`,
		`{"policy":"distance","limit":10,"interrupt":"only_conflict","debounce_ms":0}`,
	} {
		one, other := newHeard(t, interferenceConfig, world, policy), newHeard(t, interferenceConfig, world, policy)
		same(t, one, other, func(h *heard) {
			noise := func() {
				if h == other {
					for range 3 {
						h.hidden("Move", "spy", `{"to":[98,1]}`)
						h.hidden("EntityUpdated", "spy", `{"entity_id":"spy","fields":{"hp":1}}`)
					}
				}
			}
			number := h.core.Number("me", h.core.LatestViewSeq(h.now, "me"))
			context := func() uint64 { return h.core.ContextSeq(h.now, "me", number) }
			noise()
			for i := range 4 {
				_, records, err := h.core.Issue(h.now, agents.TokenRequest{
					AgentID: "me", ReqID: fmt.Sprint("t", i), ContextSeq: context(), Reads: []string{"/relationships/you/spy", "/entities/spy"},
				})
				h.must(records, err)
				h.hidden("EntityUpdated", "you", fmt.Sprintf(`{"entity_id":"you","fields":{"n":%d}}`, i))
				noise()
				h.pass(200 * time.Millisecond)
				o, records := h.core.Submit(h.now, agents.Intent{Kind: "Speak", AgentID: "me", ReqID: fmt.Sprint("s", i), Payload: parse(h.t, `{"text":"x"}`), ContextSeq: context()})
				h.note(o)
				h.keep(records)
			}
			h.hidden("Move", "you", `{"to":[90,0]}`)
			noise()
			h.must(h.core.Register(agents.Registration{AgentID: "me", Policy: parse(h.t, policy)}))
			h.pass(time.Second)
			h.hidden("Move", "you", `{"to":[4,0]}`)
			h.pass(time.Second)
		})
	}
}

// TestVisiblePartnersHideWhomTheyMeet shows that an observed effect reveals nothing
// about its hidden end, neither to a generation that reads its path nor by its delay.
func TestVisiblePartnersHideWhomTheyMeet(t *testing.T) {
	world := func(spy string) string {
		return `{"entities":{"me":{},"you":{},"spy":{},"mole":{}},"spatial_index":{"me":[0,0],"you":[3,0],"spy":` + spy + `,"mole":[60,0]}}`
	}
	policy := `{"policy":"distance","limit":10,"interrupt":"only_conflict","debounce_ms":0,"latency_model":{"model":"distance","per_unit_ms":3}}`
	one, other := newHeard(t, interferenceConfig, world("[90,0]"), policy), newHeard(t, interferenceConfig, world("[70,0]"), policy)
	same(t, one, other, func(h *heard) {
		_, records, err := h.core.Issue(h.now, agents.TokenRequest{AgentID: "me", ReqID: "t", Current: true, Reads: []string{"/relationships/you/spy"}})
		h.must(records, err)
		whom := "mole"
		if h == other {
			whom = "spy"
		}
		h.hidden("Interact", "you", `{"target_id":"`+whom+`"}`)
		h.hidden("Touch", "spy", `{"target_id":"you"}`) // observed, for its target is in sight
		h.pass(time.Second)
	})
}

// TestDeclassifiedWords shows the declassified answers: they name nothing hidden, and
// their text does not depend on it.
func TestDeclassifiedWords(t *testing.T) {
	const config = `{"cooldowns":"off","rules":{"min_separation":2,"max_interact_distance":5,"max_move_distance":50},
		"intent_kinds":[{"kind":"EntityCreated","create":["{agent}/","box"]}]}`
	list := map[string]agents.DeclassifiedAnswer{}
	for _, d := range agents.Declassified() {
		if list[d.Name] != (agents.DeclassifiedAnswer{}) || d.Meaning == "" {
			t.Errorf("the answer %q: %+v", d.Name, d)
		}
		list[d.Name] = d
	}
	wantOnly := func(name string, o agents.Outcome) {
		t.Helper()
		want := list[name]
		if o.Rejection == nil || o.Rejection.Code != want.Code || len(o.Rejection.Problems) != 1 ||
			!strings.Contains(want.Path, o.Rejection.Problems[0].Path) || o.Rejection.Problems[0].Reason != want.Reason {
			t.Errorf("%s: %v, want %s %q", name, o.Err(), want.Code, want.Reason)
		}
	}
	const world = `{"entities":{"me":{},"you":{},"spy":{},"boxspy":{}},"spatial_index":{"me":[0,0],"you":[3,0],"spy":[%s,0],"boxspy":[80,0]}}`
	one := newHeard(t, config, fmt.Sprintf(world, "20"), `{"policy":"distance","limit":10}`)
	other := newHeard(t, config, fmt.Sprintf(world, "21"), `{"policy":"distance","limit":10}`)
	same(t, one, other, func(h *heard) {
		wantOnly("occupied", h.ask("Move", "1", `{"to":[20.5,0]}`))
		wantOnly("taken", h.ask("EntityCreated", "2", `{"entity_id":"boxspy"}`))
		wantOnly("handler", h.ask("Count", "3", `{}`))
		if o := h.ask("Move", "4", `{"to":[2,0]}`); o.OK() || o.Rejection.Problems[0].Reason != `"you" is there` {
			t.Errorf("what is in sight is named: %v", o.Err())
		}
		if o := h.ask("Move", "5", `{"to":[70,0]}`); o.OK() || o.Rejection.Problems[0].Reason != "70 away, at most 50" {
			t.Errorf("a problem that the agent may know: %v", o.Err())
		}
	})
	blind := newHeard(t, config, fmt.Sprintf(world, "20"), `{"include_spatial_index":false}`)
	wantOnly("own-distance", blind.ask("Move", "1", `{"to":[70,0]}`))
	wantOnly("occupied", blind.ask("Move", "2", `{"to":[3,0.5]}`))
	if o := blind.ask("Interact", "3", `{"target_id":"spy"}`); !o.OK() {
		t.Errorf("a hidden position is treated as none: %v", o.Err())
	}
	big := newHeard(t, `{"cooldowns":"off"}`, `{"entities":{"me":{},"you":{"secret":"`+strings.Repeat("x", 65_000)+`"}},"spatial_index":{"me":[0,0],"you":[3,0]}}`,
		`{"field_visibility":{"secret":false}}`)
	wantOnly("limit", big.ask("Speak", "1", `{"text":"`+strings.Repeat("y", 900)+`","channel":"private","target_id":"you"}`))
}

// TestDerivedFields shows that hiding a position hides whatever the world derives
// from it.
func TestDerivedFields(t *testing.T) {
	const world = `{"entities":{"me":{"position":[0,0]},"you":{"position":[3,0]}},"spatial_index":{"me":[0,0],"you":[3,0]}}`
	for _, policy := range []string{
		`{"include_spatial_index":false}`, `{"field_visibility":{"position":false}}`,
		`{"policy":"fields","fields":{"position":false}}`, `{"policy":"all","of":[{"policy":"everything"},{"policy":"fields","fields":{"position":false}}]}`,
	} {
		h := newHeard(t, `{"cooldowns":"off"}`, world, policy)
		h.hidden("Move", "you", `{"to":[4,0]}`)
		h.hidden("Move", "you", `{"to":[5,0]}`)
		h.ask("Move", "1", `{"to":[1,1]}`)
		v, _ := h.core.View("me")
		for _, word := range []string{"position", "last_position", "last_move_time"} {
			if strings.Contains(v.Value().String(), word) || strings.Contains(h.text.String(), word) {
				t.Errorf("%s: %s is shown: %v", policy, word, v.Value())
			}
		}
	}
}

// TestInteractDoesNotReveal shows that a guessed id makes nothing visible.
func TestInteractDoesNotReveal(t *testing.T) {
	const world = `{"entities":{"me":{},"you":{},"spy":{"secret":1}},"relationships":{"me":["you"]}}`
	h := newHeard(t, `{"cooldowns":"off"}`, world, `{"policy":"relationships","depth":1}`)
	if o := h.ask("Interact", "1", `{"target_id":"spy"}`); o.OK() {
		t.Error("the agent relates itself to what it may not see")
	}
	if v, _ := h.core.View("me"); strings.Contains(v.Value().String(), "spy") {
		t.Errorf("it is visible: %v", v.Value())
	}
	if o := h.ask("Interact", "2", `{"target_id":"you"}`); !o.OK() {
		t.Errorf("what it sees: %v", o.Err())
	}
}

// TestKindsTouchWhatTheyName shows that a kind of intent writes what the world or
// the configuration names, and nothing else.
func TestKindsTouchWhatTheyName(t *testing.T) {
	const world = `{"entities":{"me":{"team":"red"},"you":{"team":"blue","team_message":{"text":"psst","team":"blue"}}},"spatial_index":{"me":[0,0],"you":[3,0]}}`
	all := [][2]string{
		{"EntityUpdated", `{"entity_id":"me","fields":{"team":"blue"}}`},
		{"EntityUpdated", `{"entity_id":"me","remove":["team"]}`},
		{"EntityUpdated", `{"entity_id":"you","fields":{"hp":0}}`},
		{"EntityRemoved", `{"entity_id":"you"}`},
		{"EntityRemoved", `{"entity_id":"me"}`},
		{"EntityCreated", `{"entity_id":"me","entity_data":{"team":"blue"}}`},
		{"EntityCreated", `{"entity_id":"x"}`},
		{"RelationshipAdded", `{"from":"me","to":"you"}`},
		{"RelationshipRemoved", `{"from":"you","to":"me"}`},
	}
	h := newHeard(t, `{"cooldowns":"off","intent_kinds":["EntityUpdated","EntityRemoved","EntityCreated","RelationshipAdded","RelationshipRemoved"]}`, world, `{}`)
	before := h.core.World().Value()
	for i, ask := range all[:8] {
		if o := h.ask(ask[0], fmt.Sprint(i), ask[1]); o.OK() {
			t.Errorf("%v is accepted", ask)
		}
	}
	if after := h.core.World().Value(); string(after) != string(before) {
		t.Errorf("the world is %v", after)
	}
	named := newHeard(t, `{"cooldowns":"off","intent_kinds":[{"kind":"EntityUpdated","own":["mood"],"others":["mark"]},
		{"kind":"EntityCreated","create":["{agent}/"]},{"kind":"RelationshipAdded","relate":true},{"kind":"EntityRemoved","remove":["others"]}]}`, world, `{}`)
	for i, tt := range []struct {
		ok            bool
		kind, payload string
	}{
		{true, "EntityUpdated", `{"entity_id":"me","fields":{"mood":"glad"}}`},
		{false, "EntityUpdated", `{"entity_id":"me","fields":{"mood":1,"team":"blue"}}`},
		{true, "EntityUpdated", `{"entity_id":"you","fields":{"mark":1}}`},
		{false, "EntityUpdated", `{"entity_id":"me","fields":{"mark":1}}`},
		{true, "EntityCreated", `{"entity_id":"me/note","position":[1,1]}`},
		{false, "EntityCreated", `{"entity_id":"me/note"}`},
		{false, "EntityCreated", `{"entity_id":"you/note"}`},
		{false, "EntityCreated", `{"entity_id":"me/spy","entity_data":{"team":"blue"}}`},
		{true, "RelationshipAdded", `{"from":"me","to":"you","type":"friend"}`},
		{false, "RelationshipAdded", `{"from":"you","to":"me/note"}`},
		{true, "EntityRemoved", `{"entity_id":"you"}`},
		{false, "EntityRemoved", `{"entity_id":"me"}`},
	} {
		if o := named.ask(tt.kind, fmt.Sprint(i), tt.payload); o.OK() != tt.ok {
			t.Errorf("%s %s: %v", tt.kind, tt.payload, o.Err())
		}
	}
	for _, bad := range []string{`[3]`, `[{}]`, `[{"kind":""}]`, `[{"kind":"X","other":1}]`, `[{"kind":"X","remove":["all"]}]`, `[{"kind":"X","own":"team"}]`, `{}`} {
		if _, err := agents.ParseConfig(parse(t, `{"intent_kinds":`+bad+`}`)); err == nil {
			t.Errorf("intent_kinds %s is accepted", bad)
		}
	}
}

// TestNumbersSurvive shows that an agent's own numbers go on after a restore and
// after it has left and come again.
func TestNumbersSurvive(t *testing.T) {
	h := newHeard(t, interferenceConfig, `{"entities":{"me":{},"you":{}}}`, `{}`)
	for i := range 2 * agents.MaxSent {
		h.hidden("EntityUpdated", "you", fmt.Sprintf(`{"entity_id":"you","fields":{"n":%d}}`, i))
	}
	c, err := agents.RestoreCore(h.core.AppendState(nil), agents.Options{Handlers: []agentworld.Handler{{Kind: "Count", Version: 1, Plan: func(agentworld.ReadOnly, agentworld.Effect) ([]agentworld.Change, error) { return nil, nil }}}})
	require.NoError(t, err)
	latest := c.LatestViewSeq(h.now, "me")
	if a, b := h.core.Number("me", latest), c.Number("me", latest); a != b || a != 2*agents.MaxSent {
		t.Errorf("number %d, restored %d", a, b)
	}
	for number := range uint64(2*agents.MaxSent + 5) {
		seq := c.ContextSeq(h.now, "me", number)
		if kept := number > agents.MaxSent; kept && c.Number("me", seq) != min(number, 2*agents.MaxSent) {
			t.Fatalf("number %d is view_seq %d, and that number %d", number, seq, c.Number("me", seq))
		}
	}
	h.must(h.core.Leave("me"))
	h.must(h.core.Register(agents.Registration{AgentID: "me"}))
	if got := h.core.Number("me", h.core.LatestViewSeq(h.now, "me")); got != 2*agents.MaxSent+1 {
		t.Errorf("after it came again: number %d", got)
	}
}

// TestAttackDistinguish draws two worlds that differ in what the agent may not
// see, and lets it ask for anything: it gets the same bytes in both.
func TestAttackDistinguish(t *testing.T) {
	policies := []string{
		`{"policy":"distance","limit":4}`, `{"policy":"fog","of":{"policy":"distance","limit":4}}`, `{"policy":"self"}`,
		`{"policy":"relationships","depth":2}`, `{"policy":"any","of":[{"policy":"distance","limit":2},{"policy":"team"}]}`,
		`{"policy":"distance","limit":4,"include_spatial_index":false,"interrupt":"only_conflict","latency_model":{"spread_ms":30}}`,
	}
	config := `{"cooldowns":"off","quota_intents_per_minute":-1,"quota_tokens_per_minute":-1,"rules":{"max_interact_distance":3},
		"intent_kinds":["EntityUpdated","EntityRemoved","EntityCreated",{"kind":"RelationshipAdded","relate":true}]}`
	rapid.Check(t, func(t *rapid.T) {
		policy := rapid.SampledFrom(policies).Draw(t, "policy")
		const world = `{"entities":{"me":{"team":"red"},"you":{},"h1":{}%s},"spatial_index":{"me":[0,0],"you":[1,0],"h1":[500,0]},"relationships":{"me":["you"]}}`
		one := newHeard(t, config, fmt.Sprintf(world, ""), policy)
		other := newHeard(t, config, fmt.Sprintf(world, `,"h2":{"team":"blue"},"h3":{}`), policy)
		type step struct {
			kind, payload string
			noise         int
		}
		var steps []step
		for range rapid.IntRange(1, attack.Rounds(12, 60)).Draw(t, "steps") {
			id := rapid.SampledFrom([]string{"me", "you", "h1", "h2", "h3", "none"}).Draw(t, "id")
			kind := rapid.SampledFrom([]string{"Interact", "Speak", "Move", "EntityUpdated", "EntityRemoved", "EntityCreated", "RelationshipAdded", "Custom", "visible"}).Draw(t, "kind")
			payload := map[string]any{"target_id": id, "entity_id": id, "from": "me", "text": "x", "type": "t", "fields": map[string]any{"f": 1}, "to": id}
			if kind == "Move" {
				payload["to"] = []int{rapid.IntRange(-3, 3).Draw(t, "x"), 0}
			}
			if kind == "Speak" && rapid.Bool().Draw(t, "private") {
				payload["channel"] = "private"
			}
			steps = append(steps, step{kind, value(t, payload).String(), rapid.IntRange(0, 3).Draw(t, "noise")})
		}
		same(t, one, other, func(h *heard) {
			for i, s := range steps {
				if h == other {
					for n := range s.noise {
						h.hidden("Move", "h3", fmt.Sprintf(`{"to":[%d,%d]}`, 100+i, n))
						h.hidden("RelationshipAdded", "", `{"from":"h2","to":"h3"}`)
					}
				}
				if s.kind == "visible" {
					h.hidden("EntityUpdated", "you", fmt.Sprintf(`{"entity_id":"you","fields":{"n":%d}}`, i))
				} else {
					h.ask(s.kind, fmt.Sprint(i), s.payload)
				}
				h.pass(20 * time.Millisecond)
			}
		})
	})
}

// FuzzKinds reads configurations of kinds: no bytes make it panic, and what is
// read is read alike again.
func FuzzKinds(f *testing.F) {
	for _, text := range []string{`["A"]`, `[{"kind":"EntityUpdated","own":["a"],"create":["{agent}/"],"remove":["own"]}]`, `[{"kind":1}]`} {
		v, err := signal.ParseValue([]byte(`{"intent_kinds":` + text + `}`))
		require.NoError(f, err)
		f.Add([]byte(v))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		v, rest, err := signal.CheckValue(b)
		if err != nil || len(rest) > 0 {
			return
		}
		one, err1 := agents.ParseConfig(v)
		other, err2 := agents.ParseConfig(v)
		if (err1 == nil) != (err2 == nil) || fmt.Sprint(one.Touches) != fmt.Sprint(other.Touches) {
			t.Fatalf("%v, %v; %v, %v", one.Touches, err1, other.Touches, err2)
		}
	})
}
