// Package agentscene has the scene and the choreographies for recordings of agents that
// work with tools: a user, an agent, the subagents that it calls, and the places of their
// tools.
//
// [Declarations] returns what an import brings into force before the first signal of such a
// recording. It needs nothing of the session, so that a recording may be read as a stream.
//
// # What the scene shows
//
//   - The user is on the left, and the first agent is the lead in the middle. Each further
//     agent takes the first free place of the rows below, which have places for 32.
//   - An agent to which another agent gives a task is a subagent. It appears with the task,
//     and leaves two seconds after its completion.
//   - The tools are seven places at the top, by package toolplace. A place appears with the
//     first call of one of its tools. A call is a beam from the agent to the place, with the
//     tool's name as the agent's speech. The agent flashes red if the call fails.
//   - Thinking and texts are speech. States are badges. An error is speech and a red flash, a
//     completion a flash in green or red.
//
// Other signals show nothing, in particular those of unknown types.
//
// # Invariants
//
// The declarations are data and the same in every call. The rules of the scene are made from
// [toolplace.Patterns], after the rules for agents.
//
// docs/glossary.md has the nouns of all packages.
package agentscene

import (
	_ "embed"
	"sync"

	"github.com/sajou-dev/sajou-go/choreography/language"
	"github.com/sajou-dev/sajou-go/signal"
	"github.com/sajou-dev/sajou-go/stage/scene"
	"github.com/sajou-dev/sajou-go/stage/toolplace"
)

//go:embed scene.json
var sceneText []byte

//go:embed choreographies.json
var choreographiesText []byte

// Declarations returns the scene and the choreographies, in the order in which they come
// into force. The slice is the caller's; its elements are shared and immutable.
func Declarations() []language.Declaration {
	return append([]language.Declaration{Scene()}, theChoreographies()...)
}

// Scene returns the scene alone. It is always the same pointer.
func Scene() *scene.Scene { return theScene() }

var theScene = sync.OnceValue(func() *scene.Scene {
	v, err := signal.ParseValue(sceneText)
	if err != nil {
		panic("agentscene: scene.json: " + err.Error())
	}
	s, err := scene.Compile(withTools(v))
	if err != nil {
		panic("agentscene: scene.json: " + err.Error())
	}
	return s
})

var theChoreographies = sync.OnceValue(func() []language.Declaration {
	all, diagnostics := language.Parse("choreographies.json", choreographiesText)
	if diagnostics.Refused() {
		panic("agentscene: " + diagnostics.String())
	}
	return all
})

// withTools adds the rules of the tools to a scene.
func withTools(v signal.Value) signal.Value {
	o := signal.ObjectOf(v)
	var rules []signal.Value
	agents, _ := v.Get("agents")
	for rule := range agents.Elements() {
		rules = append(rules, rule)
	}
	for _, p := range toolplace.Patterns() {
		rules = append(rules, signal.NewObject(2).Text("match", p.Match).Text("entity", "place:"+string(p.Workplace)).Value())
	}
	o.Set("agents", signal.Array(rules...))
	return o.Value()
}
