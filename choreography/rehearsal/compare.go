package rehearsal

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"time"

	"github.com/sajou-dev/sajou-go/choreography"
)

// Tolerances of [Compare].
const (
	progressTolerance = 1e-9
	// timeTolerance is the resolution of session time: the fractional milliseconds
	// of a script need not add up exactly in a float64.
	timeTolerance = time.Nanosecond
)

// Comparison is the result of [Compare].
type Comparison struct {
	Same bool
	// Interleaving reports that only the order between performances differs: each
	// performance by itself has the same commands.
	Interleaving bool
	// Index is that of the first command that differs.
	Index int
	// Difference describes it.
	Difference string
}

// Compare compares commands with the expected ones: their order and every field,
// progress within 1e-9, times to the nanosecond, other numbers by value.
func Compare(got, want []choreography.Command) Comparison {
	i, difference := firstDifference(got, want)
	if i < 0 {
		return Comparison{Same: true}
	}
	v := Comparison{Index: i, Difference: difference}
	if len(got) == len(want) && samePerPerformance(got, want) {
		v.Interleaving = true
		v.Difference = "same per performance, other interleaving: " + difference
	}
	return v
}

func firstDifference(got, want []choreography.Command) (int, string) {
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			return i, fmt.Sprintf("command %d is missing: want %s", i, text(want[i]))
		case i >= len(want):
			return i, fmt.Sprintf("command %d is too many: got %s", i, text(got[i]))
		case !equal(got[i], want[i]):
			return i, fmt.Sprintf("command %d differs\n got %s\nwant %s", i, text(got[i]), text(want[i]))
		}
	}
	return -1, ""
}

// samePerPerformance reports whether both have the same commands for each
// performance. The names p1, p2, … depend on the order of first commands, which is
// what may differ here, so performances are matched by their commands.
func samePerPerformance(got, want []choreography.Command) bool {
	remaining := streams(want)
	for _, stream := range streams(got) {
		i := slices.IndexFunc(remaining, func(other []choreography.Command) bool {
			at, _ := firstDifference(stream, other)
			return at < 0
		})
		if i < 0 {
			return false
		}
		remaining = slices.Delete(remaining, i, i+1)
	}
	return len(remaining) == 0
}

// streams splits commands by performance and clears the names.
func streams(commands []choreography.Command) [][]choreography.Command {
	var out [][]choreography.Command
	places := map[string]int{}
	for _, c := range commands {
		at, ok := places[c.PerformanceID]
		if !ok {
			at = len(out)
			places[c.PerformanceID] = at
			out = append(out, nil)
		}
		c.PerformanceID = ""
		out[at] = append(out[at], c)
	}
	return out
}

func equal(got, want choreography.Command) bool {
	if !near(got.At, want.At) || !near(got.Elapsed, want.Elapsed) ||
		math.Abs(got.Progress-want.Progress) > progressTolerance || !equalParams(got.Params, want.Params) {
		return false
	}
	got.At, got.Elapsed, got.Progress, got.Params = want.At, want.Elapsed, want.Progress, want.Params
	return reflect.DeepEqual(got, want)
}

func near(a, b time.Duration) bool {
	d := a - b
	return -timeTolerance <= d && d <= timeTolerance
}

func equalParams(got, want map[string]any) bool {
	if len(got) != len(want) {
		return false
	}
	for k, w := range want {
		if g, ok := got[k]; !ok || !equalValues(g, w) {
			return false
		}
	}
	return true
}

func equalValues(got, want any) bool {
	if g, ok := number(got); ok {
		w, ok := number(want)
		return ok && g == w
	}
	switch w := want.(type) {
	case []any:
		g, ok := got.([]any)
		return ok && slices.EqualFunc(g, w, equalValues)
	case map[string]any:
		g, ok := got.(map[string]any)
		return ok && equalParams(g, w)
	default:
		return reflect.DeepEqual(got, want)
	}
}

func number(v any) (float64, bool) {
	switch n := v.(type) {
	case float64:
		return n, true
	case int64:
		return float64(n), true
	case uint64:
		return float64(n), true
	default:
		return 0, false
	}
}

func text(c choreography.Command) string {
	b, err := json.Marshal(c)
	if err != nil {
		return fmt.Sprintf("%+v", c)
	}
	return string(b)
}
