package course_test

import (
	"context"
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/choreography/language"
	"github.com/sajou-dev/sajou-go/replay/course"
	"github.com/sajou-dev/sajou-go/signal"
)

// instants is a sink that prints the instant actions of a session.
type instants struct{ noted }

func (i *instants) OnActionExecute(c choreography.ActionExecute) {
	fmt.Println(c.At, c.PerformanceID, c.Action, c.EntityRef)
}

// A course tells what a session did, in its order.
func ExampleWalk() {
	ctx := context.Background()
	eng, err := sajou.Open("store", sajou.Config{FS: vfs.NewMem()})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer eng.Close()
	ses, err := eng.Session(ctx, "a")
	if err != nil {
		fmt.Println(err)
		return
	}
	definitions, _ := language.Parse("bell.json", []byte(`{"on":"note","steps":[{"action":"wait","duration":250},{"action":"playSound","entity":"bell"}]}`))
	if _, err := ses.Define(ctx, definitions...); err != nil {
		fmt.Println(err)
		return
	}
	sig, _ := signal.Parse([]byte(`{"id":"1","type":"note","timestamp":1000,"source":"s","payload":{}}`))
	if _, err := ses.Signal(ctx, sig); err != nil {
		fmt.Println(err)
		return
	}
	past, err := eng.Replay("a")
	if err != nil {
		fmt.Println(err)
		return
	}
	end, err := course.Walk(ctx, past, course.Passage{}, &instants{noted{lives: map[string]life{}}})
	fmt.Println(end, err)
	// Output:
	// 250ms p-3-1 playSound bell
	// 250ms <nil>
}
