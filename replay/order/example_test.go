package order_test

import (
	"fmt"

	"github.com/sajou-dev/sajou-go/replay/order"
)

// Two movements of one figure: the later one has the last word.
func Example() {
	src := played(exampleT{}, line{"east", "ann", 10}, line{"west", "ann", 12}, line{"ring", "", 400})
	stats, err := order.Search(bg, replayOf(src), order.Config{}, func(s *order.Swap) error {
		fmt.Println(s.Seq, s.Cause, "from", s.First, "lasting:", s.Lasting())
		return nil
	})
	fmt.Println(stats.Pairs, stats.Order, err)
	// Output:
	// 7 order from 8 lasting: true
	// 1 1 <nil>
}

// exampleT fails an example.
type exampleT struct{}

func (exampleT) Errorf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
func (exampleT) FailNow()                          { panic("failed") }
