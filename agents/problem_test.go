package agents_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/signal"
)

// problemOptions have handlers that refuse, panic, or return changes that the world
// refuses, and a validator that panics.
var problemOptions = agents.Options{
	Handlers: []world.Handler{
		{Kind: "Refuse", Plan: func(world.ReadOnly, world.Effect) ([]world.Change, error) { return nil, errors.New("not today") }},
		{Kind: "Panic", Plan: func(world.ReadOnly, world.Effect) ([]world.Change, error) { panic("boom") }},
		{Kind: "StageID", Plan: func(world.ReadOnly, world.Effect) ([]world.Change, error) {
			return []world.Change{world.Unplace("")}, nil
		}},
		{Kind: "StageValue", Plan: func(world.ReadOnly, world.Effect) ([]world.Change, error) {
			return []world.Change{world.SetField("ada", "x", nil)}, nil
		}},
		{Kind: "StageEntity", Plan: func(world.ReadOnly, world.Effect) ([]world.Change, error) {
			return []world.Change{world.PutEntity("ada", signal.Text("no object"))}, nil
		}},
		{Kind: "StagePlace", Plan: func(world.ReadOnly, world.Effect) ([]world.Change, error) {
			return []world.Change{world.Place("ada", world.Position{X: 1e13})}, nil
		}},
		{Kind: "Teleport", Plan: func(world.ReadOnly, world.Effect) ([]world.Change, error) {
			return []world.Change{world.Place("bob", world.Position{X: 9})}, nil
		}},
		{Kind: "Plant", Plan: func(world.ReadOnly, world.Effect) ([]world.Change, error) {
			return []world.Change{world.PutEntity("ada/2", signal.NewObject(0).Value()), world.Relate("ada/2", world.Relation{To: "cat"})}, nil
		}},
		{Kind: "Vanish", Plan: func(world.ReadOnly, world.Effect) ([]world.Change, error) {
			return []world.Change{{Op: 99, ID: "ada"}}, nil // of no known operation
		}},
		{Kind: "StageMany", Plan: func(world.ReadOnly, world.Effect) ([]world.Change, error) {
			return make([]world.Change, world.MaxChanges+1), nil
		}},
	},
	Validators: []agents.Validator{
		{Name: "calm", Check: func(_ world.ReadOnly, in agents.Intent) []agents.Problem {
			if in.Payload.TextOf("text") == "bang" {
				panic("bang")
			}
			return nil
		}},
		{Name: "hushed", Order: 1, Check: func(_ world.ReadOnly, in agents.Intent) []agents.Problem {
			if in.Payload.TextOf("text") == "hey" {
				return []agents.Problem{{Path: "/payload/text"}}
			}
			return nil
		}},
	},
}

// The texts of refusals are recorded, so they are part of the format of the log. There
// is one case for each text; no expected text may change.
func TestRefusalsAreFormat(t *testing.T) {
	core, err := agents.NewCore(problemOptions)
	require.NoError(t, err)
	core.Bind("w", nil)
	keep := func(records []signal.Record, err error) {
		require.NoError(t, err)
		for _, r := range records {
			require.NoError(t, core.Apply(0, r).Err)
		}
	}
	keep(core.Begin(parse(t, `{"entities":{"ada":{"position":[0,0]},"bob":{"position":[3,0]},"cat":{"position":[50,0]},"eve":{}},"spatial_index":{"ada":[0,0],"bob":[3,0],"cat":[50,0],"eve":[-20,0]}}`)))
	keep(core.Configure(parse(t, `{"cooldowns":"off","quota_intents_per_minute":-1,"quota_tokens_per_minute":-1,
		"intent_kinds":["EntityRemoved","RelationshipAdded","RelationshipRemoved","SpeakResponse","TeamSet",
			"Teleport",{"kind":"Teleport","place":true},{"kind":"Vanish","place":true},{"kind":"Plant","create":["{agent}/"]},{"kind":"EntityCreated","create":["{agent}/"]},{"kind":"EntityUpdated","own":["hat"]}],
		"rules":{"max_payload_bytes":300,"max_text":10,"refused_words":["fool"],"max_move_distance":60,"min_separation":1,
			"max_interact_distance":2,"interaction_types":["wave","nod"]}}`)))
	keep(core.Register(agents.Registration{AgentID: "ada", Policy: parse(t, `{"policy":"distance","limit":10}`)}))
	keep(core.Register(agents.Registration{AgentID: "bob", Policy: parse(t, `{"policy":"distance","limit":10}`), Permissions: []string{"submit_intent"}}))
	keep(core.Register(agents.Registration{AgentID: "eve", Policy: parse(t, `{"policy":"fields","fields":{"position":false}}`)}))

	for i, tt := range []struct{ agent, kind, payload, want string }{
		{"bob", "Move", `{}`, `FORBIDDEN no permission for Move`},
		{"ada", "Custom", `{"x":"` + strings.Repeat("x", 400) + `"}`, `INTENT_VALIDATION_FAILED /payload: 408 bytes, at most 300`},
		{"ada", "Custom", `{"x":"` + strings.Repeat(`\u0001`, 49) + `"}`, `INTENT_VALIDATION_FAILED /payload: 302 bytes, at most 300`}, // of 54 bytes as it is kept
		{"ada", "Dance", `{}`, `INTENT_VALIDATION_FAILED /kind: "Dance" is no kind of intent`},
		{"ada", "Speak", `{}`, `INTENT_VALIDATION_FAILED /payload/text: missing`},
		{"ada", "Speak", `{"text":" "}`, `INTENT_VALIDATION_FAILED /payload/text: nothing is said`},
		{"ada", "Speak", `{"text":"You old fool."}`, `INTENT_VALIDATION_FAILED /payload/text: more than 10 characters; /payload/text: the word "fool" is refused`},
		{"ada", "Speak", `{"text":"bang"}`, `INTENT_VALIDATION_FAILED : calm panicked: bang`},
		{"ada", "Speak", `{"text":"hey"}`, `INTENT_VALIDATION_FAILED /payload/text: hushed`},
		{"ada", "Speak", `{"text":"a","channel":"radio"}`, `INTENT_VALIDATION_FAILED /payload/channel: "radio", want public, team or private: malformed effect`},
		{"ada", "SpeakResponse", `{"text":1}`, `INTENT_VALIDATION_FAILED /payload/text: integer, want a string: malformed effect`},
		{"ada", "Move", `{"to":[3.5,0]}`, `INTENT_VALIDATION_FAILED /payload/to: "bob" is there`},
		{"ada", "Move", `{"to":[99,0]}`, `INTENT_VALIDATION_FAILED /payload/to: 99 away, at most 60`},
		{"ada", "Move", `{"to":[50,0]}`, `INTENT_VALIDATION_FAILED /payload/to: something is there`},
		{"ada", "Move", `{}`, `INTENT_VALIDATION_FAILED /payload/to: missing: malformed effect`},
		{"ada", "Move", `{"to":[1]}`, `INTENT_VALIDATION_FAILED /payload/to: want an array of two or three numbers: malformed effect`},
		{"ada", "Move", `{"to":[1,"2"]}`, `INTENT_VALIDATION_FAILED /payload/to: element 1 is no number: malformed effect`},
		{"ada", "Move", `{"to":[1,2e12]}`, `INTENT_VALIDATION_FAILED /payload/to: element 1 is beyond 1e+12: malformed effect`},
		{"ada", "Interact", `{"target_id":"bob","type":"wave"}`, `INTENT_VALIDATION_FAILED /payload/target_id: 3 away, at most 2`},
		{"ada", "Interact", `{"target_id":"ada","type":"hug"}`, `INTENT_VALIDATION_FAILED /payload/type: want one of wave, nod`},
		{"ada", "Interact", `{"target_id":"cat","type":"nod"}`, `INTENT_VALIDATION_FAILED /payload/target_id: "cat": no such entity`},
		{"ada", "Interact", `{"target_id":1,"type":"nod"}`, `INTENT_VALIDATION_FAILED /payload/target_id: integer, want an id: malformed effect`},
		{"ada", "Interact", `{"target_id":"","type":"nod"}`, `INTENT_VALIDATION_FAILED /payload/target_id: an id has 1 to 256 bytes: malformed effect`},
		{"ada", "EntityUpdated", `{"entity_id":"ada","fields":1}`, `INTENT_VALIDATION_FAILED /payload/fields: integer, want an object: malformed effect`},
		{"ada", "EntityUpdated", `{"entity_id":"ada","remove":1}`, `INTENT_VALIDATION_FAILED /payload/remove: integer, want an array of names: malformed effect`},
		{"ada", "EntityUpdated", `{"entity_id":"ada","remove":[1]}`, `INTENT_VALIDATION_FAILED /payload/remove: integer, want names: malformed effect`},
		{"ada", "EntityUpdated", `{"entity_id":"ada","fields":{"coat":1}}`, `INTENT_VALIDATION_FAILED /kind: EntityUpdated may not write "coat" of "ada"`},
		{"ada", "EntityCreated", `{"entity_id":"tree"}`, `INTENT_VALIDATION_FAILED /kind: EntityCreated may not make the entity "tree"`},
		{"ada", "EntityCreated", `{"entity_id":"ada/1","entity_data":{"team":"red"}}`, `INTENT_VALIDATION_FAILED /kind: EntityCreated may not write "team" of "ada/1"`},
		{"ada", "EntityRemoved", `{"entity_id":"bob"}`, `INTENT_VALIDATION_FAILED /kind: EntityRemoved may not remove "bob"`},
		{"ada", "RelationshipAdded", `{"from":"ada","to":"bob"}`, `INTENT_VALIDATION_FAILED /kind: RelationshipAdded may not relate "ada" and "bob"`},
		{"ada", "RelationshipAdded", `{"from":"ada","to":"bob","mutual":1}`, `INTENT_VALIDATION_FAILED /payload/mutual: integer, want true or false: malformed effect`},
		{"ada", "RelationshipAdded", `{"from":"ada","to":"bob","type":1}`, `INTENT_VALIDATION_FAILED /payload/type: want a string of at most 256 bytes: malformed effect`},
		{"ada", "RelationshipAdded", `{"from":"ada","to":"bob","strength":"x"}`, `INTENT_VALIDATION_FAILED /payload/strength: string, want a number: malformed effect`},
		{"ada", "RelationshipRemoved", `{"from":"ada","to":"bob","type":"x"}`, `INTENT_VALIDATION_FAILED /payload/type: the agent is not shown the types of relations, so it cannot choose one: malformed effect`},
		{"ada", "Refuse", `{}`, `INTENT_VALIDATION_FAILED : not today: refused by the handler: not today`},
		{"ada", "Panic", `{}`, `INTENT_VALIDATION_FAILED : the handler panicked: boom: refused by the handler: the handler panicked: boom`},
		{"ada", "StageID", `{}`, `INTENT_VALIDATION_FAILED : "": an id has 1 to 256 bytes: malformed effect`},
		{"ada", "StageValue", `{}`, `INTENT_VALIDATION_FAILED : the value of field "x" is none: malformed effect`},
		{"ada", "StageEntity", `{}`, `INTENT_VALIDATION_FAILED : entity "ada": an entity is an object: malformed effect`},
		{"ada", "StagePlace", `{}`, `INTENT_VALIDATION_FAILED : "ada" is placed beyond 1e+12: malformed effect`},
		{"ada", "StageMany", `{}`, `INTENT_VALIDATION_FAILED : beyond a limit of the world`},
		{"ada", "Teleport", `{}`, `INTENT_VALIDATION_FAILED /kind: Teleport may not place "bob"`},
		{"ada", "Vanish", `{}`, `INTENT_VALIDATION_FAILED /kind: Vanish may not change the world`},
		{"ada", "Plant", `{}`, `INTENT_VALIDATION_FAILED /kind: Plant may not relate "ada/2" and "cat"`},
		{"ada", "EntityCreated", `{"entity_id":"ada"}`, `INTENT_VALIDATION_FAILED /kind: EntityCreated may not make the entity "ada"`},
		{"eve", "Move", `{"to":[99,0]}`, `INTENT_VALIDATION_FAILED /payload/to: too far`},
		{"eve", "EntityCreated", `{"entity_id":"eve/1","position":1}`, `INTENT_VALIDATION_FAILED /payload/position: want an array of two or three numbers: malformed effect`},
	} {
		o, records := core.Submit(0, agents.Intent{AgentID: tt.agent, ReqID: fmt.Sprint(i), Kind: tt.kind, Payload: parse(t, tt.payload)})
		if !assert.Len(t, records, 1, "%s %s: %v", tt.kind, tt.payload, o) {
			continue
		}
		assert.Equal(t, tt.want, refusalText(records[0].Value), "%s %s", tt.kind, tt.payload)
		keep(records, nil)
	}

	token := func(id string, d time.Duration) {
		_, records, err := core.Issue(0, agents.TokenRequest{AgentID: "ada", ReqID: id, Current: true, Deadline: d})
		keep(records, err)
	}
	token("late", time.Second)
	records := core.Expire(time.Second)
	require.Len(t, records, 1)
	assert.Equal(t, "TIMEOUT deadline_exceeded", refusalText(records[0].Value))
	records = core.Withdraw("ada", "gone")
	require.Len(t, records, 1)
	assert.Equal(t, "GENERATION_CANCELLED user_requested", refusalText(records[0].Value))
	records, ok := core.Cancel("ada", "late", "")
	require.True(t, ok)
	assert.Equal(t, "user_requested", records[0].Value.TextOf("reason"))
}

// The refusals of an effect by its envelope. An intent that passes the core's own
// checks has no such envelope, but a draft can.
func TestEnvelopeRefusalsAreFormat(t *testing.T) {
	w, err := world.NewWorld()
	require.NoError(t, err)
	long := strings.Repeat("x", world.MaxID+1)
	for _, tt := range []struct {
		effect             world.Effect
		path, reason, base string
	}{
		{world.Effect{}, "/kind", "want 1 to 256 bytes", "malformed effect"},
		{world.Effect{Kind: long}, "/kind", "want 1 to 256 bytes", "malformed effect"},
		{world.Effect{Kind: "Boom", SourceID: long}, "/source_id", "more than 256 bytes", "malformed effect"},
		{world.Effect{Kind: "Boom", Payload: signal.Text("bang")}, "/payload", "string, want an object", "malformed effect"},
		{world.Effect{Kind: "Boom", SimTime: math.Inf(1)}, "/sim_time", "no finite number", "malformed effect"},
		{
			world.Effect{Kind: "Boom", Payload: parse(t, `{"text":"`+strings.Repeat("x", world.MaxPayload)+`"}`)},
			"/payload", "more than 1048576 bytes", "beyond a limit of the world",
		},
	} {
		_, err := w.Plan(tt.effect)
		refusal, ok := errors.AsType[*world.EffectError](err)
		if assert.True(t, ok, "%s: %v", tt.path, err) {
			assert.Equal(t, [3]string{tt.path, tt.reason, tt.base}, [3]string{refusal.Path, refusal.Reason, refusal.Err.Error()})
		}
	}
}

// The texts that reach no record of a refusal, but cancellations, which folding a log
// must give again, or outcomes.
func TestReasonsAreFormat(t *testing.T) {
	assert.Equal(t, []string{
		"stale_due_to", "user_requested", "replaced_by_new_token", "agent_left", "deadline_exceeded",
		"not possible any more after what came first in its quantum",
	}, []string{
		agents.ReasonStale, agents.ReasonUser, agents.ReasonReplaced, agents.ReasonLeft, agents.ReasonTimeout, agents.ReasonConflict,
	})
	assert.Equal(t, []string{"%s_seq_gap_%d_threshold_%d", "_conflict"}, []string{agents.TextStale, agents.TextConflict})
	var declassified []string
	for _, d := range agents.Declassified() {
		if d.Reason != "" {
			declassified = append(declassified, d.Reason)
		}
	}
	assert.Equal(t, []string{"something is there", "too far", "beyond a limit of the world", "refused by the handler", "the id is taken"}, declassified)
}

// refusalText is a recorded refusal in one line.
func refusalText(v signal.Value) string {
	text := strings.TrimSpace(v.TextOf("code") + " " + v.TextOf("reason"))
	sep := " "
	for p := range v.Member("problems").Elements() {
		text += sep + p.TextOf("path") + ": " + p.TextOf("reason")
		sep = "; "
	}
	return text
}
