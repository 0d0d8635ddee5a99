package edits_test

import (
	"context"
	"fmt"

	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/edits"
)

// Which version of a choreography first takes ann too far, and from which moment on?
func Example() {
	ctx := context.Background()
	versions := []edits.Version{walkTo(100), walkTo(200), walkTo(800), walkTo(900)}
	for i := range versions {
		versions[i].Name = fmt.Sprintf("v%d", i+1)
	}
	found, err := edits.Find(ctx, walks(3), versions, far, config(replay.Moment{Seq: 4}))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(versions[found.Good].Name, "is good,", versions[found.Bad].Name, "is bad")
	fmt.Println("they part at", found.Parting.Moment)
	// Output:
	// v2 is good, v3 is bad
	// they part at 2+233ms
}
