package scene

import (
	_ "embed"
	"fmt"
	"sync"

	"github.com/sajou-dev/sajou-go/signal"
)

//go:embed default.json
var defaultText []byte

// Default returns the scene that is shown when no other is in force: room for a
// dozen agents, an orchestrator behind them, whoever uses them at the door. It
// is always the same one, and its Value is absent.
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
