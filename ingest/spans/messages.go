package spans

import (
	"strings"

	"github.com/sajou-dev/sajou-go/ingest/recording"
	"github.com/sajou-dev/sajou-go/signal"
)

// part is a text of a message of a model.
type part struct {
	Thought bool
	Text    string
}

// textMessage is one message, with its texts alone.
type textMessage struct {
	role  string
	parts []part
}

// thoughtKinds are the types of parts that are thoughts.
var thoughtKinds = map[string]bool{"reasoning": true, "thinking": true, "thought": true}

// silentKinds are the types of parts that are neither text nor thought.
var silentKinds = map[string]bool{
	"tool_call": true, "tool_use": true, "tool_result": true, "tool_call_response": true, "function_call": true,
	"function_call_output": true, "image": true, "image_url": true, "blob": true, "uri": true, "file": true,
	"redacted_thinking": true, "input_image": true, "refusal": true,
}

// maxNesting bounds the search for messages in a value.
const maxNesting = 8

// messagesOf returns the messages of a value in any of the shapes that are met: a list of
// messages, an object with messages, choices, generations or output, or one message.
func messagesOf(v signal.Value, depth int) []textMessage {
	if depth > maxNesting {
		return nil
	}
	switch v.Kind() {
	case signal.KindArray:
		var all []textMessage
		for e := range v.Elements() {
			all = append(all, messagesOf(e, depth+1)...)
		}
		return all
	case signal.KindObject:
	default:
		return nil
	}
	for _, name := range []string{"messages", "choices", "generations", "output", "message", "kwargs"} {
		inner := v.Member(name)
		if k := inner.Kind(); k == signal.KindArray || k == signal.KindObject {
			if list := messagesOf(inner, depth+1); len(list) > 0 {
				return list
			}
		}
	}
	one := textMessage{role: v.TextOf("role")}
	if one.role == "" {
		// LangChain: {"type": "human", "content": ...}
		switch t := v.TextOf("type"); t {
		case "human":
			one.role = "user"
		case "ai", "AIMessage":
			one.role = "assistant"
		case "tool", "system":
			one.role = t
		case "reasoning":
			for e := range v.Member("summary").Elements() {
				one.parts = append(one.parts, part{true, e.TextOf("text")})
			}
			one.role = "assistant"
			return []textMessage{one}
		}
	}
	if silentKinds[v.TextOf("type")] {
		return nil
	}
	for _, name := range []string{"parts", "content", "text"} {
		if one.parts = partsOf(v.Member(name)); len(one.parts) > 0 {
			break
		}
	}
	if thought := v.TextOf("reasoning_content"); thought != "" {
		one.parts = append([]part{{true, thought}}, one.parts...)
	}
	if one.role == "" && len(one.parts) == 0 {
		return nil
	}
	return []textMessage{one}
}

// partsOf returns the texts of the content of a message: a text, a part, or a list of
// them. Text that is no JSON, such as the notation of a Python object, is text.
func partsOf(v signal.Value) []part {
	return appendParts(nil, v, 0)
}

func appendParts(list []part, v signal.Value, depth int) []part {
	if depth > maxNesting {
		return list
	}
	switch v.Kind() {
	case signal.KindString:
		if t := text(v); strings.TrimSpace(t) != "" {
			list = append(list, part{Text: t})
		}
	case signal.KindArray:
		for e := range v.Elements() {
			list = appendParts(list, e, depth+1)
		}
	case signal.KindObject:
		kind := v.TextOf("type")
		if silentKinds[kind] {
			return list
		}
		for _, name := range []string{"content", "text", "thinking", "reasoning", "parts"} {
			inner := v.Member(name)
			if inner.Kind() == signal.KindAbsent || inner.Kind() == signal.KindNull {
				continue
			}
			n := len(list)
			list = appendParts(list, inner, depth+1)
			if thought, _ := v.Member("thought").Bool(); thought || thoughtKinds[kind] || name == "thinking" || name == "reasoning" {
				for i := n; i < len(list); i++ {
					list[i].Thought = true
				}
			}
			return list
		}
	default:
	}
	return list
}

// joined returns the texts that are no thoughts.
func joined(parts []part) string {
	var b strings.Builder
	for _, p := range parts {
		if p.Thought {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(p.Text)
	}
	return b.String()
}

// lastUser returns the text of the last message of a person.
func lastUser(list []textMessage) string {
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].role == "user" {
			if t := joined(list[i].parts); t != "" {
				return t
			}
		}
	}
	return ""
}

// promptOf returns the task in what a span was given: the last message of a person, a member
// that is named like a task, or the text itself.
func promptOf(v signal.Value) string {
	inner := recording.Nested(recording.Nested(v))
	switch inner.Kind() {
	case signal.KindObject:
		if p := lastUser(messagesOf(inner, 0)); p != "" {
			return p
		}
		for _, name := range []string{"task", "prompt", "input", "query", "question", "content"} {
			if t := inner.TextOf(name); t != "" {
				return t
			}
		}
	case signal.KindArray:
		if p := lastUser(messagesOf(inner, 0)); p != "" {
			return p
		}
	default:
	}
	return text(v)
}

// resultText returns the text of what an agent gave.
func resultText(v signal.Value) string {
	inner := recording.Nested(recording.Nested(v))
	if k := inner.Kind(); k == signal.KindObject || k == signal.KindArray {
		list := messagesOf(inner, 0)
		for i := len(list) - 1; i >= 0; i-- {
			if list[i].role == "user" {
				break
			}
			if t := joined(list[i].parts); t != "" {
				return t
			}
		}
	}
	return text(v)
}
