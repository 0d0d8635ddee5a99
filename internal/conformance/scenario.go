// Package conformance reads, runs and judges scenarios: small recorded stories
// that say which commands a choreography gives for which signals.
//
// A scenario is a JSON object; a file holds one or an array of them:
//
//	{ "id", "name", "tags", "notes"?, "quantised"?,
//	  "definitions": [ declaration ],
//	  "script":      [ {"signal": envelope} | {"advance": ms} ],
//	  "expected"?:   [ command ] }
//
// A declaration is a choreography, or a sequence, an easing or a binding, told
// apart by their members as [choreography.WordFor] does. The scenario is run on
// an empty scheduler at time 0 with the declarations in the order given. A signal is handed over at the present time, whatever its timestamp
// says; an advance moves time on and runs up to and including the new instant.
// Performances are called p1, p2, … by their first appearance in the stream.
package conformance

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/signal"
)

// ErrScenario is wrapped by the errors of [Load] and [Parse] about a file
// that could be read but is no scenario.
var ErrScenario = errors.New("not a scenario")

// Scenario is one story and what should come of it.
type Scenario struct {
	ID          string
	Name        string
	Tags        []string
	Notes       string
	Definitions []choreography.Declaration
	Script      []Step
	Expected    []choreography.Command
	// Judged says that the file has an "expected", be it empty.
	Judged bool
}

// Step is one step of a script: a signal, or else an advance.
type Step struct {
	Signal  *signal.Signal
	Advance time.Duration
}

// Tagged reports whether the scenario carries a tag.
func (s *Scenario) Tagged(tag string) bool { return slices.Contains(s.Tags, tag) }

// Load reads the scenarios of one file.
func Load(file string) ([]*Scenario, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return read(file, text)
}

// Parse reads the scenarios of a text, as [Read] does.
func Parse(text []byte) ([]*Scenario, error) { return read("scenario", text) }

func read(file string, text []byte) ([]*Scenario, error) {
	scenarios, diagnostics := Read(file, text)
	if len(diagnostics) > 0 {
		return nil, fmt.Errorf("%w: %w", ErrScenario, diagnostics)
	}
	return scenarios, nil
}

// Run plays a scenario and returns its commands, performances renamed p1, p2, …
// by first appearance. Signals are numbered from 1, as a log would.
func Run(s *Scenario) []choreography.Command {
	var sink choreography.RecordingSink
	scheduler := choreography.NewScheduler()
	scheduler.SetSink(&sink)
	for _, d := range s.Definitions {
		if err := scheduler.Define(d); err != nil {
			panic("conformance: " + err.Error()) // Parse has tried it
		}
	}
	seq := uint64(0)
	for _, step := range s.Script {
		if step.Signal != nil {
			seq++
			scheduler.Signal(seq, step.Signal)
			continue
		}
		to := scheduler.Now() + step.Advance
		if to < scheduler.Now() {
			to = math.MaxInt64
		}
		scheduler.Advance(to)
	}
	rename(sink.Commands)
	return sink.Commands
}

func rename(commands []choreography.Command) {
	names := map[string]string{}
	for i := range commands {
		id := commands[i].PerformanceID
		name, ok := names[id]
		if !ok {
			name = "p" + strconv.Itoa(len(names)+1)
			names[id] = name
		}
		commands[i].PerformanceID = name
	}
}

// Tolerances of [Compare].
const (
	progressTolerance = 1e-9
	// timeTolerance is the engine's own resolution: a script's fractional
	// milliseconds may not add up exactly in a double.
	timeTolerance = time.Nanosecond
)

// Verdict is what a comparison found.
type Verdict struct {
	Same bool
	// Interleaving says that the streams differ, but each performance's own
	// stream is the same: only the order between performances is another.
	Interleaving bool
	// Index is the first place where the streams differ, if they do.
	Index int
	// Difference says in words how.
	Difference string
}

// Compare judges commands against what is expected: the order and every field,
// progress within 1e-9, times to the nanosecond, other numbers as numbers.
func Compare(got, want []choreography.Command) Verdict {
	i, difference := firstDifference(got, want)
	if i < 0 {
		return Verdict{Same: true}
	}
	v := Verdict{Index: i, Difference: difference}
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

// samePerPerformance compares stream by stream. The names p1, p2, … follow the
// order of appearance, which is just what may differ; so streams are matched by
// their content.
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

// streams splits commands by performance and takes the names away.
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
	for _, c := range []*choreography.Command{&got, &want} {
		c.At, c.Elapsed, c.Progress, c.Params = 0, 0, 0, nil
	}
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
