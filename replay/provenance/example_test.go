package provenance_test

import (
	"context"
	"fmt"

	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/provenance"
)

// recordedWalk returns a session in which ann walks from entry 4 on.
func recordedWalk() *replay.Replay { return story(panicking{}).replay() }

// Blame names the act that set a value, also while the value still changes.
func ExampleBlame() {
	path, err := provenance.ParsePath("stage.entities.ann.x")
	if err != nil {
		fmt.Println(err)
		return
	}
	b, err := provenance.Blame(context.Background(), recordedWalk(), path, replay.Moment{Seq: 5})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s of %s, step %s of %s, at entry %v\n", b.Setter.Action, b.Setter.Entity, b.Setter.Step, b.Setter.Definition, b.Setting.Moment)
	// Output: move of ann, step 1 of walk, at entry 4
}
