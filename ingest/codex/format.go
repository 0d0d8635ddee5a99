// Package codex reads what the Codex CLI leaves behind: its rollouts, in the layout of today
// and in the flat one of early versions, and the output of codex exec --json.
//
// # Where the files are
//
//	~/.codex/sessions/YYYY/MM/DD/rollout-TIME-THREAD.jsonl
//
// The thread of a subagent is a file of its own, whose first record names the thread that
// started it. It is a recording of its own.
//
// # What counts
//
// A rollout tells most facts twice, as the items that the model saw and as the events that the
// screen showed. Calls, results, reasoning and answers come from the items; prompts, token
// counts and the limits of turns from the events. A result takes its success from the event of
// its call, which stands before it. Nothing is imported from the history that a
// compaction repeats.
package codex

import (
	"github.com/sajou-dev/sajou-go/ingest/recording"
	"github.com/sajou-dev/sajou-go/signal"
)

// mainAgent is the id of the agent of a root thread.
const mainAgent = "codex"

// Format returns the format of the recordings of the Codex CLI.
func Format() recording.Format {
	return recording.Format{
		Name:       "codex",
		Title:      "Codex CLI rollout",
		Agent:      mainAgent,
		Recognized: "lines with timestamp, type and payload, a header with instructions, or thread.started",
		Grows:      true,
		Detect:     detect,
		Map:        read,
	}
}

// lineTypes are the types of the lines of a rollout.
var lineTypes = map[string]bool{
	"session_meta": true, "turn_context": true, "response_item": true, "event_msg": true, "compacted": true,
	"world_state": true, "inter_agent_communication_metadata": true,
}

func detect(s *recording.Sample) string {
	switch {
	case s.AnyLine(isRollout):
		return "a line has timestamp, type and payload of a rollout"
	case s.AnyLine(isExec):
		return "a line is an event of codex exec --json"
	case isFlat(s.Lines()):
		return "the first line has id, timestamp and instructions, and items follow"
	}
	return ""
}

func isRollout(v signal.Value) bool {
	return lineTypes[v.TextOf("type")] && v.Member("payload").Kind() == signal.KindObject
}

// isExec reports whether a line is the first one of codex exec --json, or one that names an item.
func isExec(v signal.Value) bool {
	switch v.TextOf("type") {
	case "thread.started":
		return v.TextOf("thread_id") != ""
	case "item.started", "item.completed":
		return v.Member("item").TextOf("type") != ""
	}
	return false
}

func isHeader(v signal.Value) bool {
	_, hasType := v.Get("type")
	_, hasInstructions := v.Get("instructions")
	return !hasType && hasInstructions && v.TextOf("id") != "" && v.TextOf("timestamp") != ""
}

// isFlat reports whether lines are a rollout of the early layout, whose header has no type.
func isFlat(lines []signal.Value) bool {
	return len(lines) > 0 && isHeader(lines[0])
}

func read(in *recording.Recorded, m *recording.Mapping) error {
	r := newReader(m)
	for rec, err := range in.Lines(in.Name) {
		if err != nil {
			return err
		}
		r.line(rec.Value)
	}
	if in.Final() {
		r.finish()
	}
	return nil
}
