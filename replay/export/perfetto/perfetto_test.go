package perfetto_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/enginetest"
	"github.com/sajou-dev/sajou-go/internal/golden"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/course"
	"github.com/sajou-dev/sajou-go/replay/export/perfetto"
)

// event is a trace event as a viewer reads it.
type event struct {
	Ph   string      `json:"ph"`
	Name string      `json:"name"`
	Cat  string      `json:"cat"`
	Pid  int         `json:"pid"`
	Tid  int         `json:"tid"`
	TS   json.Number `json:"ts"`
	ID   string      `json:"id"`
	Args map[string]any
}

func (e *event) at(t *testing.T) time.Duration {
	t.Helper()
	whole, fraction, _ := strings.Cut(e.TS.String(), ".")
	us, err := strconv.ParseInt(whole, 10, 64)
	require.NoError(t, err)
	ns, err := strconv.ParseInt((fraction + "000")[:3], 10, 64)
	require.NoError(t, err)
	return time.Duration(us*1000 + ns)
}

func written(t *testing.T, r *replay.Replay, over course.Passage) []byte {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, perfetto.Write(t.Context(), &out, r, over))
	return out.Bytes()
}

func parsed(t *testing.T, data []byte) []event {
	t.Helper()
	var trace struct {
		TraceEvents []event `json:"traceEvents"`
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	require.NoError(t, d.Decode(&trace))
	return trace.TraceEvents
}

// TestStories writes the sessions of the stories.
func TestStories(t *testing.T) {
	golden.Tell(t, "testdata/*.txtar", func(t *testing.T, files map[string]string) string {
		_, r := enginetest.Recorded(t, strings.Split(strings.TrimSpace(files["signals"]), "\n"), files["definitions.json"])
		return string(written(t, r, course.Passage{}))
	})
}

// lives is a sink that notes when performances begin and end.
type lives struct {
	choreography.RecordingSink

	began, ended map[string]time.Duration
}

func (l *lives) OnEntry(*eventlog.Entry) error                { return nil }
func (l *lives) OnPerformance(p choreography.Performance)     { l.began[p.ID()] = p.Began }
func (l *lives) OnPerformanceEnd(at time.Duration, id string) { l.ended[id] = at }

// TestTrace reads traces as a viewer does: slices of a track nest and end, performances
// begin and end when they do in the session, the animated actions are all there, and each
// flow ends after it began, on a track on which a slice stands at that time.
func TestTrace(t *testing.T) {
	for seed := range uint64(8) {
		_, r := enginetest.Recorded(t, enginetest.BustleSignals(seed, 60), enginetest.Bustle)
		want := &lives{began: map[string]time.Duration{}, ended: map[string]time.Duration{}}
		end, err := course.Walk(t.Context(), r, course.Passage{}, want)
		require.NoError(t, err)
		open := map[string][]string{} // the slices of each track
		began, ended := map[string]time.Duration{}, map[string]time.Duration{}
		flows := map[string]bool{}
		started, finished := 0, 0
		named := map[int]bool{}
		slices := map[[2]int]time.Duration{}
		last := map[string]time.Duration{} // of each track
		for _, e := range parsed(t, written(t, r, course.Passage{})) {
			at := e.at(t)
			assert.LessOrEqual(t, at, end)
			if e.Ph == "M" {
				named[e.Pid] = named[e.Pid] || e.Name == "process_name"
				continue
			}
			require.True(t, named[e.Pid], "seed %d: an event before its process has a name", seed)
			track := fmt.Sprint(e.Pid, " ", e.Tid)
			if e.Cat == "performance" {
				track = e.ID
				require.NotEmpty(t, e.ID)
			}
			require.GreaterOrEqual(t, at, last[track], "seed %d: the times of the track %s go back", seed, track)
			last[track] = at
			switch e.Ph {
			case "b":
				if len(open[e.ID]) == 0 && !strings.Contains(e.ID, "/") {
					began[e.ID] = at
				} else {
					started++
				}
				open[e.ID] = append(open[e.ID], e.Name)
			case "e":
				stack := open[e.ID]
				require.NotEmpty(t, stack, "seed %d: %s ends twice", seed, e.ID)
				require.Equal(t, stack[len(stack)-1], e.Name, "seed %d: slices of %s do not nest", seed, e.ID)
				if open[e.ID] = stack[:len(stack)-1]; len(stack) == 1 && !strings.Contains(e.ID, "/") {
					ended[e.ID] = at
				} else {
					finished++
				}
			case "X":
				slices[[2]int{e.Pid, e.Tid}] = at
			case "s":
				require.Equal(t, at, slices[[2]int{e.Pid, e.Tid}])
				flows[e.ID] = true
			case "f":
				require.True(t, flows[e.ID], "seed %d: a flow ends before it begins", seed)
				require.Equal(t, at, slices[[2]int{e.Pid, e.Tid}])
				delete(flows, e.ID)
			case "i", "n":
			default:
				t.Errorf("seed %d: an event %q", seed, e.Ph)
			}
		}
		for id, stack := range open {
			assert.Empty(t, stack, "seed %d: %s does not end", seed, id)
		}
		assert.Equal(t, want.began, began, "seed %d", seed)
		assert.Equal(t, want.ended, ended, "seed %d", seed)
		starts := 0
		for _, c := range want.Commands {
			if c.Kind == choreography.CommandStart {
				starts++
			}
		}
		assert.Equal(t, starts, started, "seed %d", seed)
		assert.Equal(t, starts, finished, "seed %d", seed)
	}
}

// TestRange: a part of a session begins with what is under way there, and ends all of it.
func TestRange(t *testing.T) {
	_, r := enginetest.Recorded(t, enginetest.BustleSignals(3, 60), enginetest.Bustle)
	for from := eventlog.Seq(1); from < 60; from += 7 {
		open := 0
		for _, e := range parsed(t, written(t, r, course.Passage{From: from, To: from + 5})) {
			switch e.Ph {
			case "b":
				open++
			case "e":
				open--
			}
			assert.GreaterOrEqual(t, open, 0)
		}
		assert.Zero(t, open)
	}
}

// TestHostile: recorded text cannot break the JSON, and long text is cut.
func TestHostile(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	_, r := enginetest.Recorded(t, []string{
		`{"id":"1","type":"tool_call","timestamp":1000,"source":"s","payload":{"toolName":"\"}],","agentId":"a\u2028</script>\u0000","callId":"` + long + `"}}`,
		`{"id":"2","type":"tool_result","timestamp":1001,"source":"s","payload":{"toolName":"x","agentId":"b","success":true,"callId":"` + long + `"}}`,
	}, enginetest.Bustle)
	data := written(t, r, course.Passage{})
	assert.Less(t, len(data), 30_000)
	flows := 0
	for _, e := range parsed(t, data) {
		if e.Ph == "f" {
			flows++
		}
	}
	assert.Equal(t, 1, flows, "ids that are cut for people still match whole")
}
