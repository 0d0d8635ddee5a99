package timers_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/agents/internal/timers"
)

// TestList compares a list with a map of agents to times: the first timer, and the
// timers that are due up to every time. Until must descend to both children of every
// node, so the lists have up to four levels.
func TestList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var list timers.List
		all := make([]timers.Timer, 15)
		model := map[string]time.Duration{}
		for i := range all {
			all[i].Agent = fmt.Sprintf("agent%02d", i)
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			timer := &all[rapid.IntRange(0, len(all)-1).Draw(t, "timer")]
			at := time.Duration(rapid.IntRange(0, 9).Draw(t, "at"))
			due := rapid.IntRange(0, 4).Draw(t, "due") > 0
			list.Set(timer, at, due)
			if delete(model, timer.Agent); due {
				model[timer.Agent] = at
			}
			order := []string{}
			for agent, at := range model {
				order = append(order, fmt.Sprintf("%d %s", at, agent))
			}
			slices.Sort(order)
			var first string
			if next := list.Next(); next != nil {
				first = fmt.Sprintf("%d %s", next.At, next.Agent)
			}
			if want := strings.Join(order[:min(1, len(order))], ""); first != want {
				t.Fatalf("the first is %q, want %q", first, want)
			}
			for now := range time.Duration(10) {
				want := slices.DeleteFunc(slices.Clone(order), func(s string) bool { return s[:1] > fmt.Sprint(int64(now)) })
				got := []string{}
				list.Until(now, func(t *timers.Timer) { got = append(got, fmt.Sprintf("%d %s", t.At, t.Agent)) })
				if slices.Sort(got); !slices.Equal(got, want) {
					t.Fatalf("until %d: %q, want %q", now, got, want)
				}
			}
		}
	})
}
