package variant_test

import (
	"context"
	"fmt"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/variant"
	"github.com/sajou-dev/sajou-go/session"
)

// What would the stage show if one signal had not come?
func Example() {
	ctx := context.Background()
	parent := taped(func(d *session.Drafts) {
		d.Opened(0, session.TimeManual)
		d.Signal(100*ms, sig("go", 1))
		d.Signal(200*ms, sig("stop", 2))
		d.Signal(300*ms, sig("go", 3))
	})
	v, err := variant.New(ctx, parent, variant.Edits{Drop: []eventlog.Seq{3}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for e, err := range v.Entries(ctx, 2) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(e.Seq, e.Kind, e.At)
	}
	r := session.NewReplay(v, session.Projections(session.ProjectionConfig{}), nil)
	f, err := r.At(ctx, replay.Moment{Seq: 4})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(session.StateOf(f).View().(map[string]any)["entries"])
	// Output:
	// 2 signal 100ms
	// 3 session 200ms
	// 4 signal 300ms
	// map[beat:0 define:0 effect:0 session:2 signal:2]
}
