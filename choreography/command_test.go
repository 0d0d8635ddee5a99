package choreography_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"

	"github.com/sajou-dev/sajou-go/choreography"
)

// TestCommandJSON shows the written form of each kind, that it reads back, and
// that a command finds its call of a sink.
func TestCommandJSON(t *testing.T) {
	tests := []struct {
		command choreography.Command
		json    string
	}{
		{
			choreography.ActionStart{
				At: 1500 * time.Microsecond, PerformanceID: "p-1-1", Action: "move", EntityRef: "a",
				Params: map[string]any{"z": nil, "a": "x"}, Duration: -5, Easing: "arc",
			}.Command(),
			`{"t":1.5,"kind":"start","performance":"p-1-1","action":"move","entityRef":"a","params":{"a":"x","z":null},"duration":-5,"easing":"arc"}`,
		},
		{
			choreography.ActionUpdate{
				At: time.Millisecond, PerformanceID: "p-1-1", Action: "move", Params: map[string]any{}, Progress: 0.5, Elapsed: 1,
			}.Command(),
			`{"t":1,"kind":"update","performance":"p-1-1","action":"move","entityRef":"","params":{},"progress":0.5,"elapsed":0.000001}`,
		},
		{
			choreography.ActionComplete{PerformanceID: "p-1-1", Action: "move", Params: map[string]any{}}.Command(),
			`{"t":0,"kind":"complete","performance":"p-1-1","action":"move","entityRef":"","params":{}}`,
		},
		{
			choreography.ActionExecute{PerformanceID: "p-1-1", Action: "spawn", Params: map[string]any{"n": 1.0}}.Command(),
			`{"t":0,"kind":"execute","performance":"p-1-1","action":"spawn","entityRef":"","params":{"n":1}}`,
		},
		{
			choreography.Interrupt{PerformanceID: "p-1-1", CorrelationID: "", InterruptedBy: "stop"}.Command(),
			`{"t":0,"kind":"interrupt","performance":"p-1-1","correlationId":"","interruptedBy":"stop"}`,
		},
	}
	for _, tt := range tests {
		got, err := json.Marshal(tt.command)
		if err != nil || string(got) != tt.json {
			t.Errorf("got  %s, %v\nwant %s", got, err, tt.json)
		}
		var back choreography.Command
		assert.NoError(t, json.Unmarshal(got, &back))
		if diff := cmp.Diff(tt.command, back); diff != "" {
			t.Errorf("read back (-want +got):\n%s", diff)
		}
	}
}

// TestManualClock drives a scheduler by a clock's frames, as an edge would.
func TestManualClock(t *testing.T) {
	var (
		clock  choreography.ManualClock
		frames []time.Duration
		frame  func(time.Duration)
	)
	frame = func(now time.Duration) {
		frames = append(frames, now)
		clock.RequestFrame(frame)
	}
	cancel := clock.RequestFrame(frame)
	clock.RequestFrame(func(time.Duration) { t.Error("a cancelled frame was drawn") })()
	clock.Advance(16 * time.Millisecond)
	clock.Advance(484 * time.Millisecond)
	clock.Advance(-time.Second)
	cancel() // long drawn: nothing happens
	want := []time.Duration{16 * time.Millisecond, 500 * time.Millisecond, 500 * time.Millisecond}
	if diff := cmp.Diff(want, frames); diff != "" {
		t.Errorf("frames (-want +got):\n%s", diff)
	}
	if clock.Now() != 500*time.Millisecond {
		t.Errorf("now = %v", clock.Now())
	}
}
