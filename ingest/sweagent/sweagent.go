// Package sweagent reads the trajectories (.traj) of SWE-agent.
package sweagent

import (
	"slices"
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go/ingest/recording"
	"github.com/sajou-dev/sajou-go/signal"
)

const (
	agentID = "swe-agent"
	task    = "task"
)

// Format returns the format: one JSON document with the steps of a run (trajectory) and
// the messages of the model (history).
//
// A step is a thought, a call and its result. The call has the name and the arguments of the
// function call in the history, if there is one for it, and else the first word of the
// action. The first message of the user that is no demonstration is the task; the other
// messages repeat the steps. The format has no flag of success and no times.
func Format() recording.Format {
	return recording.Format{
		Name: "swe-agent", Title: "SWE-agent trajectory", Agent: agentID, Invented: true,
		Recognized: "a document with trajectory[] of action, observation and response or thought",
		Detect: func(s *recording.Sample) string {
			if s.Has("trajectory[].action", "trajectory[].observation") && (s.Has("trajectory[].response") || s.Has("trajectory[].thought")) {
				return "trajectory[] has actions with observations"
			}
			return ""
		},
		Map: read,
	}
}

func read(in *recording.Recorded, m *recording.Mapping) error {
	doc, err := in.Document(in.Name)
	if err != nil {
		return err
	}
	m.Origin("environment", doc.Member("environment"))
	info := doc.Member("info")
	m.Origin("version", info.Member("swe_agent_version"))
	calls := history(in, m, doc.Member("history"))
	for _, rec := range in.Elements(in.Name, "/trajectory", doc.Member("trajectory")) {
		calls = step(m, rec, calls)
	}
	if info.Kind() == signal.KindObject && !m.Stopped() {
		in.Part(in.Name, "/info", info)
		end(m, info)
	}
	return nil
}

// modelCall is a function call of the model in the history, with the action that it became.
type modelCall struct {
	action    string
	id, name  string
	arguments signal.Value
}

// history emits the task and returns the function calls in their order.
func history(in *recording.Recorded, m *recording.Mapping, list signal.Value) (calls []modelCall) {
	prompted := false
	for _, rec := range in.Elements(in.Name, "/history", list) {
		v := rec.Value
		kind := v.TextOf("message_type")
		switch role := v.TextOf("role"); {
		case v.BoolOf("is_demo") || kind == "demonstration":
			m.Skip("demonstration")
		case role == "system":
			m.Skip("system prompt")
		case role == "user" && !prompted:
			prompted = true
			prompt := recording.Texts(v.Member("content"))
			m.SetLength(len(prompt))
			m.Dispatch(task, task, recording.User, agentID, prompt)
		case role == "user" || role == "tool" || role == "assistant":
			for call := range v.Member("tool_calls").Elements() {
				function := call.Member("function")
				calls = append(calls, modelCall{v.TextOf("action"), call.TextOf("id"), function.TextOf("name"), function.Member("arguments")})
			}
			m.Skip("repeats the trajectory")
		}
	}
	return calls
}

// step emits a step, and returns the function calls that are left.
func step(m *recording.Mapping, rec recording.NativeRecord, calls []modelCall) []modelCall {
	v := rec.Value
	thought := v.TextOf("thought")
	if thought = strings.TrimSpace(thought); thought != "" {
		m.Thought(task, agentID, thought)
	}
	m.SetLength(len(thought))
	action := v.TextOf("action")
	words := strings.Fields(action)
	if len(words) == 0 {
		if observed := v.TextOf("observation"); observed != "" {
			m.Emit(agentID+".observation", task, signal.NewObject(1).Text("observation", observed).Value())
		}
		m.Skip("a step without an action")
		return calls
	}
	c := modelCall{name: words[0], id: "call" + rec.Place.Pointer, arguments: signal.NewObject(1).Text("command", strings.TrimSpace(action)).Value()}
	// Some calls have no step, as those whose format was refused.
	if at := slices.IndexFunc(calls, func(c modelCall) bool { return c.action == action }); at >= 0 {
		if calls[at].name != "" {
			c.name, c.arguments = calls[at].name, calls[at].arguments
		}
		if calls[at].id != "" && !m.Repeats(calls[at].id) {
			c.id = calls[at].id
		}
		calls = calls[at+1:]
	}
	m.Call(task, agentID, c.name, c.id, c.arguments)
	seconds, timed := v.Member("execution_time").Float64()
	if !timed || !(seconds > 0 && seconds < 86_400) {
		seconds = 1
	}
	m.Elapse(time.Duration(seconds*1e6) * time.Microsecond)
	m.Result(task, recording.Answer{CallID: c.id, Success: true, Output: v.Member("observation")})
	return calls
}

// end emits what the document says of the whole run.
func end(m *recording.Mapping, info signal.Value) {
	stats := info.Member("model_stats")
	u := recording.TokenCount{Prompt: stats.IntOf("tokens_sent"), Completion: stats.IntOf("tokens_received")}
	u.Cost, _ = stats.Member("instance_cost").Float64()
	if u.Prompt+u.Completion > 0 {
		m.Tokens(task, agentID, u)
	}
	if status := info.TextOf("exit_status"); status != "" {
		m.Complete(task, task, agentID, status == "submitted", status)
	}
	m.Skip("no exit status")
}
