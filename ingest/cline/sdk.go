package cline

import (
	"cmp"
	"strconv"
	"time"

	"github.com/sajou-dev/sajou-go/ingest/recording"
	"github.com/sajou-dev/sajou-go/signal"
)

// message reads a message of the document of the SDK.
func (s *session) message(v signal.Value, index int) {
	id := v.TextOf("id")
	if id != "" && !s.Repeats("message "+id) {
		s.SetNativeID(id)
	} else {
		id = strconv.Itoa(index)
	}
	s.SetTime(recording.TimeValue(v.Member("ts"), time.Millisecond))
	content := v.Member("content")
	text := recording.Texts(content)
	switch v.TextOf("role") {
	case "user":
		if s.results(content) {
			return
		}
		var files []signal.Value
		for block := range content.Elements() {
			if path := block.Member("path"); block.TextOf("type") == "file" && path.Kind() != signal.KindAbsent {
				files = append(files, path)
			}
		}
		if len(files) > 0 {
			s.AddMeta("files", signal.Array(files...))
		}
		if text == "" {
			s.Skip("empty message")
			return
		}
		s.prompt("turn-"+id, text)
	case "assistant":
		s.assistant(v, content)
	case "system":
		s.Skip("system prompt")
	}
}

// results emits the results in a message of the user, and reports whether there are any.
func (s *session) results(content signal.Value) bool {
	found := false
	for block := range content.Elements() {
		if block.TextOf("type") != "tool_result" {
			continue
		}
		found = true
		output := recording.Nested(block.Member("content"))
		if text := recording.Texts(output); text != "" {
			output = recording.Nested(signal.Text(text))
		}
		s.Result("", recording.Answer{
			CallID: block.TextOf("tool_use_id"), Tool: block.TextOf("name"), Agent: agentID,
			Success: !block.BoolOf("is_error") && !failed(output), Output: output,
		})
	}
	return found
}

// failed reports whether the content of a result tells of a failure.
func failed(v signal.Value) bool {
	switch v.Kind() {
	case signal.KindArray:
		for element := range v.Elements() {
			if failed(element) {
				return true
			}
		}
	case signal.KindObject:
		if success, is := v.Member("success").Bool(); is && !success {
			return true
		}
		switch e := v.Member("error"); e.Kind() {
		case signal.KindString:
			text, _ := e.Text()
			return text != ""
		case signal.KindObject:
			return true
		case signal.KindBool:
			is, _ := e.Bool()
			return is
		default:
		}
	default:
	}
	return false
}

// assistant reads a message of the model.
func (s *session) assistant(v, content signal.Value) {
	calls := 0
	if text, is := content.Text(); is && text != "" {
		s.Text(s.corr, agentID, text)
	}
	for block := range content.Elements() {
		switch kind := block.TextOf("type"); kind {
		case "text":
			if text := block.TextOf("text"); text != "" {
				s.Text(s.corr, agentID, text)
			}
		case "thinking", "reasoning":
			if thought := cmp.Or(block.TextOf("thinking"), block.TextOf("text")); thought != "" {
				s.Thought(s.corr, agentID, thought)
			}
		case "redacted_thinking":
		case "tool_use":
			calls++
			s.Call(s.corr, agentID, cmp.Or(block.TextOf("name"), "unknown"), block.TextOf("id"), block.Member("input"))
		default:
			s.Emit(name+".block", s.corr, recording.AsObject(block))
		}
	}
	if metrics := v.Member("metrics"); metrics.Kind() == signal.KindObject {
		u := recording.TokenCount{
			Model:      v.Member("modelInfo").TextOf("id"),
			Prompt:     metrics.IntOf("inputTokens"),
			Completion: metrics.IntOf("outputTokens"),
			CacheRead:  metrics.IntOf("cacheReadTokens"),
			CacheWrite: metrics.IntOf("cacheWriteTokens"),
		}
		u.Cost, _ = metrics.Member("cost").Float64()
		s.Tokens(s.corr, agentID, u)
	}
	s.Skip("empty message")
	if calls == 0 {
		s.complete(true, "")
	}
}
