package world_test

import (
	"errors"
	"fmt"

	"github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/signal"
)

// Only effects change a world, and one that cannot be applied changes nothing.
func ExampleWorld() {
	value := func(text string) signal.Value {
		v, err := signal.ParseValue([]byte(text))
		if err != nil {
			panic(err) // the texts below are exact JSON
		}
		return v
	}
	w, err := world.ParseWorld(value(`{"entities": {"ann": {"team": "red"}}, "spatial_index": {"ann": [0, 0]}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	for i, effect := range []world.Effect{
		{Kind: world.KindEntityCreated, SourceID: "gm", Payload: value(`{"entity_id": "lamp", "entity_data": {"lit": false}, "position": [3, 4]}`)},
		{Kind: world.KindMove, SourceID: "ann", Payload: value(`{"to": [3, 3]}`)},
		{Kind: world.KindEntityRemoved, SourceID: "gm", Payload: value(`{"entity_id": "door"}`)},
	} {
		effect.GlobalSeq = uint64(i + 1)
		changes, err := w.Apply(effect)
		if errors.Is(err, world.ErrUnknownEntity) {
			fmt.Println(err)
			continue
		}
		fmt.Println(effect.Kind, changes.Paths())
	}
	at, _ := w.Position("ann")
	fmt.Println("near ann:", w.Within(at, 2))
	// Output:
	// EntityCreated [/entities/lamp /entities/lamp/lit /spatial_index/lamp]
	// Move [/entities/ann/last_move_time /entities/ann/last_position /entities/ann/position /spatial_index/ann]
	// agents: effect "EntityRemoved" /payload/entity_id: "door": no such entity
	// near ann: [ann lamp]
}
