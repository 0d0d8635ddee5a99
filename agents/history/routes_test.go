package history_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sajou-dev/sajou-go/agents/history"
	agentslive "github.com/sajou-dev/sajou-go/agents/live"
	"github.com/sajou-dev/sajou-go/agents/message"
	"github.com/sajou-dev/sajou-go/agents/rl"
	"github.com/sajou-dev/sajou-go/director/live"
)

// Each method by which a program gets something from the engine that an agent may be
// sent is classified: the coverage of a new one has to be decided.
func TestEverySendingIsClassified(t *testing.T) {
	want, got := []string{"generate.Run"}, []string(nil) // a function
	for name, of := range map[string]any{
		"Agent": &agentslive.Agent{}, "Agents": &agentslive.Agents{}, "Generation": &agentslive.Generation{}, "Submitted": &agentslive.Submitted{},
		"Driver":   agentslive.Driver{},
		"Director": &live.Director{}, "message.Room": &message.Room{}, "rl.Env": &rl.Env[int]{}, "rl.AEC": &rl.AEC[int]{},
	} {
		for m := range reflect.TypeOf(of).Methods() {
			want = append(want, name+"."+m.Name)
		}
	}
	for _, s := range history.Sendings() {
		got = append(got, s.Type+"."+s.Method)
		if routed := s.Coverage == history.Searched || s.Coverage == history.Named; routed != (s.Route != "") || s.What == "" {
			t.Errorf("%s.%s: %q by route %q is %s", s.Type, s.Method, s.What, s.Route, s.Coverage)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, slices.Compact(got)); diff != "" {
		t.Errorf("methods (-there are +are classified)\n%s", diff)
	}
}
