package scene

import (
	_ "embed"
	"fmt"
	"sync"

	"github.com/sajou-dev/sajou-go/signal"
)

//go:embed default.json
var defaultText []byte

// Default returns the scene of a session that has declared none: room for a dozen agents,
// an orchestrator behind them, their user at the door. It is always the same pointer, and
// its Value is absent.
func Default() *Scene { return theDefault() }

var theDefault = sync.OnceValue(func() *Scene {
	v, err := signal.ParseValue(defaultText)
	if err != nil {
		panic(fmt.Sprintf("scene: default.json: %v", err))
	}
	s, err := Compile(v)
	if err != nil {
		panic(fmt.Sprintf("scene: default.json: %v", err))
	}
	s.value = nil
	return s
})

//go:embed scene.schema.json
var schemaText string

// Schema returns the JSON Schema (draft 2020-12) of scenes. A value that it
// accepts is a scene, with the exceptions in the package comment.
func Schema() []byte { return []byte(schemaText) }
