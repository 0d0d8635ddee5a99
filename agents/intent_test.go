package agents_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/jsondoc"
	"github.com/sajou-dev/sajou-go/agents/view"
	"github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/signal"
)

// TestParseIntent shows what is read of an intent's JSON, and that each member of another
// type or beyond its bounds is refused by name.
func TestParseIntent(t *testing.T) {
	in, err := agents.ParseIntent(parse(t, `{"kind":"K","req_id":"r","agent_id":"a","schema_version":"1.2","payload":{"x":1},"context_seq":7,"priority":-3,"other":[]}`))
	require.NoError(t, err)
	assert.Equal(t, agents.Intent{Kind: "K", ReqID: "r", AgentID: "a", SchemaVersion: "1.2", Payload: parse(t, `{"x":1}`), ContextSeq: 7, Priority: -3}, in)
	in, err = agents.ParseIntent(parse(t, `{"payload":null,"priority":null}`))
	require.NoError(t, err)
	assert.Equal(t, agents.Intent{Unprioritized: true}, in)
	for _, priority := range []string{"-100", "100", "0"} {
		_, err := agents.ParseIntent(parse(t, `{"priority":`+priority+`}`))
		assert.NoError(t, err, priority)
	}
	_, err = agents.ParseIntent(parse(t, `{"context_seq":0}`))
	assert.NoError(t, err)
	for text, want := range map[string]string{
		`[]`:                     "an intent is an object",
		`{"priority":-101}`:      "priority -101",
		`{"priority":101}`:       "priority 101",
		`{"priority":"high"}`:    "priority",
		`{"priority":0.5}`:       "priority 0.5",
		`{"context_seq":-1}`:     "context_seq -1",
		`{"context_seq":"1"}`:    "context_seq",
		`{"payload":[]}`:         "payload []",
		`{"kind":1}`:             "kind 1",
		`{"req_id":null}`:        "req_id null",
		`{"agent_id":{}}`:        "agent_id {}",
		`{"schema_version":1.0}`: "schema_version 1.0",
	} {
		_, err := agents.ParseIntent(parse(t, text))
		assert.ErrorContains(t, err, want, text)
	}
}

// TestIntentBounds shows that the members of a submitted intent may be as large as their
// bounds, and no larger: the problems name the members.
func TestIntentBounds(t *testing.T) {
	fits := func() agents.Intent {
		return agents.Intent{
			Kind: agents.KindCustom, ReqID: strings.Repeat("r", agents.MaxReqID), AgentID: "a", Priority: agents.MaxPriority,
			SchemaVersion: "1." + strings.Repeat("2", world.MaxID-2),
		}
	}
	for name, change := range map[string]func(*agents.Intent){
		"":                func(*agents.Intent) {},
		"least priority":  func(in *agents.Intent) { in.Priority = -agents.MaxPriority },
		"no version":      func(in *agents.Intent) { in.SchemaVersion = "" },
		"/req_id":         func(in *agents.Intent) { in.ReqID += "r" },
		"/req_id ":        func(in *agents.Intent) { in.ReqID = "" },
		"/agent_id":       func(in *agents.Intent) { in.AgentID = "" },
		"/agent_id ":      func(in *agents.Intent) { in.AgentID = strings.Repeat("a", world.MaxID+1) },
		"/kind":           func(in *agents.Intent) { in.Kind = "" },
		"/kind ":          func(in *agents.Intent) { in.Kind = "\xff" },
		"/priority":       func(in *agents.Intent) { in.Priority = agents.MaxPriority + 1 },
		"/priority ":      func(in *agents.Intent) { in.Priority = -agents.MaxPriority - 1 },
		"/schema_version": func(in *agents.Intent) { in.SchemaVersion += "2" },
		"/payload":        func(in *agents.Intent) { in.Payload = parse(t, `[1]`) },
		"/payload ":       func(in *agents.Intent) { in.Payload = append(parse(t, `{}`), 0xc0) },
		"/payload  ":      func(in *agents.Intent) { in.Payload = nested(t, world.MaxEntityDepth+1) },
	} {
		r := meadow(t, `{"cooldowns":"off"}`)
		in := fits()
		change(&in)
		o, _ := r.core.Submit(0, in)
		if !strings.HasPrefix(name, "/") {
			assert.NoError(t, o.Err(), name)
			continue
		}
		require.ErrorIs(t, o.Err(), agents.ErrInvalidIntent, name)
		require.Len(t, o.Rejection.Problems, 1, name)
		assert.Equal(t, strings.TrimSpace(name), o.Rejection.Problems[0].Path)
	}
	r := meadow(t, `{"cooldowns":"off"}`)
	in := fits()
	in.SchemaVersion = "2.0"
	o, _ := r.core.Submit(0, in)
	wantCode(t, o, agents.ErrVersionMismatch)
	in.SchemaVersion, in.Payload = "", nested(t, world.MaxEntityDepth)
	o, _ = r.core.Submit(0, in)
	require.NoError(t, o.Err())
}

// TestIntakeOfDrafts shows that drafts wait and are dropped like intents, under the
// world's own depth and backpressure, and that a quantum without a bound takes all.
func TestIntakeOfDrafts(t *testing.T) {
	draft := func(source string) agents.Submission {
		return agents.Submission{Draft: &agents.EffectDraft{Kind: "Ping", SourceID: source}}
	}
	for _, pressure := range []string{"defer", "drop_newest", "shed_oldest"} {
		r := meadow(t, `{"authority":"sim","max_queue_depth":2,"backpressure_policy":"`+pressure+`"}`)
		var intake agents.Intake
		var tickets []uint64
		for range 2 {
			o := intake.Offer(r.core, 0, draft("game"))
			require.NoError(t, o.Outcome.Err())
			tickets = append(tickets, o.Ticket)
		}
		require.Equal(t, []uint64{1, 2}, tickets)
		require.NotZero(t, intake.Offer(r.core, 0, draft("other")).Ticket, "a source of its own has a queue of its own")
		o := intake.Offer(r.core, 0, draft("game"))
		if pressure == "shed_oldest" {
			require.Equal(t, uint64(1), o.Shed.Ticket)
			require.Equal(t, "game", o.Refusal.AgentID)
			require.Equal(t, uint64(4), o.Ticket)
		} else {
			require.ErrorIs(t, o.Outcome.Err(), agents.ErrQueueFull)
			require.Equal(t, "game", o.Outcome.Rejection.AgentID)
			require.Zero(t, o.Ticket)
			require.Nil(t, o.Shed)
		}
		require.Equal(t, 2, intake.Waiting("game"))
		require.Zero(t, intake.Waiting("nobody"))
		require.Len(t, intake.Take(r.core, 1, math.Inf(1)), 1)
		require.Len(t, intake.Take(r.core, 0, math.Inf(1)), 2)
		require.Zero(t, intake.Len())
	}
	var intake agents.Intake
	require.ErrorIs(t, intake.Offer(meadow(t, `{}`).core, 0, agents.Submission{}).Outcome.Err(), agents.ErrInvalidIntent)
}

// TestCanonicalNumbers shows how numbers are written where digests are made of them.
func TestCanonicalNumbers(t *testing.T) {
	for text, want := range map[string]string{
		"0": "0", "-1": "-1", "9007199254740993": "9007199254740993", "18446744073709551615": "18446744073709551615",
		"0.0": "0.0", "1.0": "1.0", "1.5": "1.5", "-0.25": "-0.25", "0.00001": "0.00001", "1e-5": "0.00001",
		"9.999e-6": "9.999e-6", "1e-7": "1e-7", "-2.5e-10": "-2.5e-10", "1e-100": "1e-100",
		"1e15": "1000000000000000.0", "9999999999999998.0": "9999999999999998.0", "1e16": "1e16", "1.25e17": "1.25e17", "1e+100": "1e100",
	} {
		assert.Equal(t, want, string(jsondoc.AppendCanonical(nil, parse(t, text))), text)
	}
}

// TestDependencies shows the bounds that compound policies promise. What lies beyond is
// never evaluated, so too tight a bound hides, and too wide a one costs.
func TestDependencies(t *testing.T) {
	near, far := view.Distance(5, false), view.Distance(50, false)
	unplaced := view.Distance(0, true)
	team := view.Allies()
	friends := view.Relationships(view.RelationshipRule{Depth: 2})
	type bounds struct {
		everything bool
		radius     float64
		unplaced   bool
		team       bool
		depth      int
	}
	for name, tt := range map[string]struct {
		policy view.Policy
		want   bounds
	}{
		"all of distances":                  {view.All(far, near), bounds{radius: 5}},
		"all of distances, the other way":   {view.All(near, far), bounds{radius: 5}},
		"all of everything and a distance":  {view.All(view.Everything(), near), bounds{radius: 5}},
		"all of a team and a distance":      {view.All(team, near), bounds{radius: 5}},
		"all of a team and relations":       {view.All(team, friends), bounds{depth: 2}},
		"all of relations and a distance":   {view.All(friends, far), bounds{radius: 50}},
		"all of nobody and a distance":      {view.All(near, view.Self()), bounds{}},
		"all of none":                       {view.All(), bounds{everything: true}},
		"any of distances":                  {view.Any(near, far), bounds{radius: 50}},
		"any of a team and a distance":      {view.Any(team, near), bounds{radius: 5, team: true}},
		"any of relations and the unplaced": {view.Any(friends, unplaced), bounds{radius: math.SmallestNonzeroFloat64, unplaced: true, depth: 2}},
		"any of everything":                 {view.Any(near, view.Everything()), bounds{everything: true, radius: 5}},
		"any of none":                       {view.Any(), bounds{}},
		"not":                               {view.Not(near), bounds{everything: true}},
	} {
		d := tt.policy.Dependencies()
		assert.Equal(t, tt.want, bounds{d.Everything, d.Radius, d.Unplaced, d.Team, d.Depth}, name)
	}
}

// TestSameNumber shows that numbers of all forms are equal exactly if their values are.
func TestSameNumber(t *testing.T) {
	classes := [][]string{
		{"0", "0.0", "-0.0"},
		{"1", "1.0"},
		{"-1", "-1.0"},
		{"0.5"},
		{"-0.5"},
		{"1e300"},
		{"-1e300"},
		{"9007199254740992", "9007199254740992.0"},
		{"9007199254740993"},
		{"9223372036854775807"},
		{"9223372036854775808", "9223372036854775808.0"},
		{"-9223372036854775808", "-9223372036854775808.0"},
		{"-9223372036854777856.0"},
		{"18446744073709549568", "18446744073709549568.0"},
		{"18446744073709551615"},
		{"18446744073709551616.0"},
	}
	number := func(text string) signal.Number {
		n, ok := parse(t, text).Number()
		require.True(t, ok, text)
		return n
	}
	for i, one := range classes {
		for j, other := range classes {
			for _, a := range one {
				for _, b := range other {
					assert.Equal(t, i == j, jsondoc.SameNumber(number(a), number(b)), "%s and %s", a, b)
				}
			}
		}
	}
}

// TestPatchOperationsAreBounded shows the longest patch that is read.
func TestPatchOperationsAreBounded(t *testing.T) {
	patch := func(n int) signal.Value {
		return parse(t, "["+strings.TrimSuffix(strings.Repeat(`{"op":"test","path":"","value":0},`, n), ",")+"]")
	}
	list, err := jsondoc.ParsePatch(patch(jsondoc.MaxPatchOps))
	require.NoError(t, err)
	require.Len(t, list, jsondoc.MaxPatchOps)
	_, err = jsondoc.ParsePatch(patch(jsondoc.MaxPatchOps + 1))
	require.ErrorIs(t, err, jsondoc.ErrPatch)
}

// TestDiffOfOtherValues shows that only the patch between two views, which have two members
// and no others, is replaced by the full view when it has too many operations.
func TestDiffOfOtherValues(t *testing.T) {
	entities, relations := `"visible_entities":{"a":1,"b":1}`, `"visible_relationships":{}`
	for before, full := range map[string]bool{
		`{` + entities + `,` + relations + `}`:          true,
		`{` + entities + `,"other":{}}`:                 false,
		`{"other":{"a":1,"b":1},` + relations + `}`:     false,
		`{` + entities + `,` + relations + `,"more":1}`: false,
		`{` + entities + `}`:                            false,
		`7`:                                             false,
	} {
		after := `{"visible_entities":{"a":2,"b":2,"c":2},` + relations + `}`
		ops := view.Diff(parse(t, before), parse(t, after), 1)
		assert.Equal(t, full, view.Delta{Patches: ops}.IsFullView(), before)
		if before != `7` && before != `{`+entities+`}` {
			ops = view.Diff(parse(t, after), parse(t, before), 1)
			assert.Equal(t, full, view.Delta{Patches: ops}.IsFullView(), "to %s", before)
		}
		got, err := jsondoc.ApplyPatch(parse(t, before), view.Diff(parse(t, before), parse(t, after), 1))
		require.NoError(t, err)
		assert.Equal(t, canonical(parse(t, after)), canonical(got))
	}
}

// TestOneOperationConflicts shows that a generation that is based on everything is
// interrupted by a delta of a single operation, and by none that changes nothing it sees.
func TestOneOperationConflicts(t *testing.T) {
	r := meadow(t, `{"interrupt":"only_conflict","debounce_ms":0,"cooldowns":"off"}`)
	r.issue("one")
	r.draft(agents.EffectDraft{Kind: "Ping", SourceID: "b"})
	r.advance(time.Millisecond)
	require.Empty(t, r.gone)
	r.draft(agents.EffectDraft{Kind: "EntityUpdated", SourceID: "b", Payload: parse(t, `{"entity_id":"b","fields":{"x":1}}`)})
	require.Len(t, r.arrived["a"].Delta.Patches, 1)
	require.Len(t, r.gone, 1)
}
