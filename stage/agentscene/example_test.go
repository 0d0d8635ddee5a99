package agentscene_test

import (
	"fmt"

	"github.com/sajou-dev/sajou-go/stage/agentscene"
)

// An import brings the declarations into force before the first signal.
func ExampleDeclarations() {
	counts := map[string]int{}
	for _, d := range agentscene.Declarations() {
		counts[d.Word()]++
	}
	fmt.Println(counts)
	// Output:
	// map[choreography:12 scene:1]
}
