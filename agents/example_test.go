package agents_test

import (
	"fmt"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/jsondoc"
	"github.com/sajou-dev/sajou-go/agents/view"
	"github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/signal"
)

func Example() {
	read := func(json string) signal.Value {
		v, err := signal.ParseValue([]byte(json))
		if err != nil {
			panic(err)
		}
		return v
	}
	world, err := world.ParseWorld(read(`{
		"entities": {"scout": {"hp": 3}, "king": {"hp": 9}, "spy": {"hp": 1}},
		"spatial_index": {"scout": [0, 0], "king": [3, 4], "spy": [70, 0]}
	}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	lens, err := view.CompilePolicy(read(`{"distance_limit": 5}`), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	scout, audience := view.NewObserver("scout", lens, 0), view.NewAudience()
	audience.Add(world.ReadOnly, "scout", lens)
	fmt.Println(scout.Begin(world.ReadOnly, 0).Value())

	for i, draft := range []agents.EffectDraft{
		{Kind: "Speak", Payload: read(`{"text": "Come!"}`), SourceID: "king"},
		{Kind: "Move", Payload: read(`{"to": [71, 0]}`), SourceID: "spy"},
		{Kind: "Move", Payload: read(`{"to": [30, 40]}`), SourceID: "king"},
	} {
		effect := draft.Effect(fmt.Sprint("u", i), uint64(i+1), 0.5, "")
		changes, err := world.Apply(effect)
		if err != nil {
			fmt.Println(err)
			return
		}
		for range audience.Follow(world.ReadOnly, effect, changes) {
			if delta, ok := scout.Update(world.ReadOnly, effect, changes); ok {
				fmt.Println(delta.ViewSeq, jsondoc.PatchValue(delta.Patches))
			}
		}
	}
	// Output:
	// {"view_seq":0,"patches":[{"op":"replace","path":"/visible_entities","value":{"king":{"hp":9,"position":[3.0,4.0,0.0]},"scout":{"hp":3,"position":[0.0,0.0,0.0]}}},{"op":"replace","path":"/visible_relationships","value":{}}],"context_digest":"77e02d89ddd7a295c9696eb145ffb8de09b2bdb40e036e9608937bfd91a8629e","schema_version":"1.0.0"}
	// 1 [{"op":"add","path":"/visible_entities/king/last_message","value":"Come!"},{"op":"add","path":"/visible_entities/king/last_speak_time","value":0.5},{"op":"add","path":"/visible_entities/king/message_count","value":1}]
	// 3 [{"op":"remove","path":"/visible_entities/king"}]
}
