package limit_test

import (
	"fmt"
	"time"

	"github.com/sajou-dev/sajou-go/server/limit"
)

func Example() {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	l := limit.New(limit.Config{Rate: 10, Burst: 2, Now: func() time.Time { return now }})
	tap := limit.Requester{Name: "token:tap"}
	fmt.Println(l.Take(tap, 1), l.Take(tap, 1))
	fmt.Println(l.Take(tap, 1))
	// Output:
	// <nil> <nil>
	// too many requests of token:tap; try again in 100ms
}
