// Package atif reads trajectories in the Agent Trajectory Interchange Format of Harbor.
package atif

import (
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go/ingest/recording"
	"github.com/sajou-dev/sajou-go/signal"
)

// Format returns the format: one JSON document with a list of steps.
//
// A step of the user is a task; a step of the agent gives its text, its calls with the
// results, and its tokens. The results of a step name their calls; if none does, each
// belongs to the call of the same position. The format has no flag of success, so every
// result is a success. The sums in final_metrics are read only if no step has metrics, since
// they repeat those of the steps.
func Format() recording.Format {
	return recording.Format{
		Name: "atif", Title: "ATIF trajectory (Harbor)", Agent: "agent",
		Recognized: `a document whose schema_version begins with "ATIF-"`,
		Detect: func(s *recording.Sample) string {
			if version := s.Text("schema_version"); strings.HasPrefix(version, "ATIF-") {
				return "the document has the schema_version " + version
			}
			return ""
		},
		Map: read,
	}
}

// trajectory is a reading of one document.
type trajectory struct {
	*recording.Mapping
	agent, model string
	corr         string
	turns        int
	metrics      bool // a step had metrics
}

func read(in *recording.Recorded, m *recording.Mapping) error {
	doc, err := in.Document(in.Name)
	if err != nil {
		return err
	}
	t := &trajectory{Mapping: m, agent: doc.Member("agent").TextOf("name"), model: doc.Member("agent").TextOf("model_name"), corr: "task"}
	if t.agent == "" {
		t.agent = "agent"
	}
	m.SetSession(doc.TextOf("session_id"))
	m.Origin("version", doc.Member("schema_version"))
	m.Origin("agentVersion", doc.Member("agent").Member("version"))
	steps := doc.Member("steps")
	timed := false
	for step := range steps.Elements() {
		_, is := recording.TimeText(step.TextOf("timestamp"))
		timed = timed || is
	}
	if !timed {
		m.Invent()
	}
	for _, rec := range in.Elements(in.Name, "/steps", steps) {
		m.SetTime(recording.TimeValue(rec.Value.Member("timestamp"), time.Second))
		t.step(rec.Value)
	}
	if final := doc.Member("final_metrics"); !t.metrics && final.Kind() == signal.KindObject && !m.Stopped() {
		in.Part(in.Name, "/final_metrics", final)
		t.tokens(final, "total_", t.model)
		m.Skip("no metrics")
	}
	return nil
}

func (t *trajectory) step(v signal.Value) {
	if v.BoolOf("is_copied_context") {
		t.Skip("copied context")
		return
	}
	said := recording.Texts(v.Member("message"))
	t.SetLength(len(said))
	switch v.TextOf("source") {
	case "user":
		t.turns++
		if t.turns > 1 {
			t.corr = "task-" + id(v, t.turns)
		}
		t.Dispatch(t.corr, t.corr, recording.User, t.agent, said)
		t.results(v, nil)
	case "agent":
		if thought := recording.Texts(v.Member("reasoning_content")); thought != "" {
			t.Thought(t.corr, t.agent, thought)
		}
		if said != "" {
			t.Text(t.corr, t.agent, said)
		}
		t.calls(v)
		model := v.TextOf("model_name")
		if model == "" {
			model = t.model
		}
		if metrics := v.Member("metrics"); metrics.Kind() == signal.KindObject {
			t.metrics = true
			t.tokens(metrics, "", model)
		}
	case "system":
		t.results(v, nil)
		t.Skip("system prompt")
	}
}

// calls emits the calls of a step, and their results.
func (t *trajectory) calls(v signal.Value) {
	var ids []string
	for call := range v.Member("tool_calls").Elements() {
		callID := call.TextOf("tool_call_id")
		name := call.TextOf("function_name")
		if name == "" {
			name = "unknown"
		}
		t.Call(t.corr, t.agent, name, callID, call.Member("arguments"))
		ids = append(ids, callID)
	}
	if len(ids) > 0 {
		t.Elapse(time.Second)
	}
	t.results(v, ids)
}

// results emits the results of an observation. One that belongs to no call is kept.
func (t *trajectory) results(v signal.Value, calls []string) {
	results := v.Member("observation").Member("results")
	for result := range results.Elements() {
		if result.TextOf("source_call_id") != "" {
			calls = nil // the results name their calls
		}
	}
	i := -1
	for result := range results.Elements() {
		i++
		callID := result.TextOf("source_call_id")
		if callID == "" && i < len(calls) {
			callID = calls[i]
		}
		if callID == "" {
			t.Emit("atif.observation", t.corr, recording.AsObject(result))
			continue
		}
		output := result.Member("content")
		if parts := recording.Texts(output); parts != "" {
			output = signal.Text(parts)
		}
		if ref := result.Member("subagent_trajectory_ref"); ref.Kind() != signal.KindAbsent {
			output = signal.NewObject(2).Add("content", signal.Text(recording.Texts(output))).Add("subagent_trajectory_ref", ref).Value()
		}
		t.Result(t.corr, recording.Answer{CallID: callID, Agent: t.agent, Success: true, Output: output})
	}
}

// tokens emits the counts of a step, or of the whole with the prefix "total_".
func (t *trajectory) tokens(v signal.Value, prefix, model string) {
	u := recording.TokenCount{
		Model:      model,
		Prompt:     v.IntOf(prefix + "prompt_tokens"),
		Completion: v.IntOf(prefix + "completion_tokens"),
		CacheRead:  v.IntOf(prefix + "cached_tokens"),
	}
	u.Cost, _ = v.Member(prefix + "cost_usd").Float64()
	if u.Prompt+u.Completion > 0 {
		t.Tokens(t.corr, t.agent, u)
	}
}

// id names a step.
func id(v signal.Value, turn int) string {
	if n, is := v.Member("step_id").Int64(); is {
		return signal.Int(n).Value().String()
	}
	return signal.Int(int64(turn)).Value().String()
}
