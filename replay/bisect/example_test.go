package bisect_test

import (
	"fmt"

	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/bisect"
)

// A bug that comes and goes: a search for any transition finds one, and its probes find
// that there are others.
func Example() {
	wrong := map[int]bool{3: true, 7: true, 8: true, 9: true}
	candidates := make([]bisect.Stretch, 10)
	for i := range candidates {
		candidates[i] = bisect.Stretch{From: replay.Moment{Seq: 1}, Input: bisect.InputHash{byte(i)}}
	}
	s := bisect.New(candidates, bisect.Options{Probes: bisect.DefaultProbes})
	for p, ok := s.Next(); ok; p, ok = s.Next() {
		result := bisect.Good
		if wrong[p.Index] {
			result = bisect.Bad
		}
		if err := s.Judge(p.Index, result); err != nil {
			panic(err)
		}
	}
	c := s.Conclusion()
	fmt.Println("candidate", c.Good, "is good and", c.Bad, "is bad")
	for _, island := range c.Islands() {
		fmt.Println("but", island.First, "is", island.Result)
	}
	// Output:
	// candidate 6 is good and 7 is bad
	// but 3 is bad
}
