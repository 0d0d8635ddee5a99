// Package agentssdk reads the traces of the OpenAI Agents SDK as its exporters send them: objects
// whose member object is "trace" or "trace.span", one a line, in a list, or in the member data.
package agentssdk

import (
	"strconv"
	"time"

	"github.com/sajou-dev/sajou-go/ingest/recording"
	"github.com/sajou-dev/sajou-go/ingest/spans"
	"github.com/sajou-dev/sajou-go/signal"
)

// Name is the name of the format.
const Name = "openai-agents"

// Format returns the format.
func Format() recording.Format {
	return recording.Format{
		Name: Name, Title: "OpenAI Agents SDK traces", Agent: "agent",
		Recognized: `objects whose member object is "trace" or "trace.span": lines, a list, or the member data`,
		Detect: func(s *recording.Sample) string {
			for _, path := range []string{"object", "[].object", "data[].object"} {
				if t := s.Text(path); t == "trace" || t == "trace.span" {
					return "its objects are of the kind " + t
				}
			}
			if s.AnyLine(isPart) {
				return "its lines are of the kind trace or trace.span"
			}
			return ""
		},
		Map: mapFile,
	}
}

func isPart(v signal.Value) bool {
	t := v.TextOf("object")
	return t == "trace" || t == "trace.span"
}

func isDocument(v signal.Value) bool {
	return isPart(v) || v.Kind() == signal.KindArray || v.Member("data").Kind() == signal.KindArray
}

func mapFile(in *recording.Recorded, m *recording.Mapping) error {
	c := spans.NewCollection(m)
	for doc, err := range c.Documents(in, in.Name, isDocument) {
		if err != nil {
			return err
		}
		list, pointer := doc.Value, ""
		if inner := list.Member("data"); inner.Kind() == signal.KindArray {
			list, pointer = inner, "/data"
		}
		if list.Kind() != signal.KindArray {
			if err := add(c, doc); err != nil {
				return err
			}
			continue
		}
		i := 0
		for v := range list.Elements() {
			if err := add(c, spans.Within(&doc, pointer+"/"+strconv.Itoa(i), v)); err != nil {
				return err
			}
			i++
		}
	}
	c.Map()
	return nil
}

// kinds are the types of spans that are parts of a session; the others, such as guardrail
// and custom, are transport.
var kinds = map[string]spans.SpanKind{
	"agent": spans.Agent, "function": spans.Tool, "generation": spans.Chat, "response": spans.Chat, "handoff": spans.Handoff,
}

func add(c *spans.Collection, rec recording.NativeRecord) error {
	v := rec.Value
	data := v.Member("span_data")
	switch {
	case v.TextOf("object") == "trace":
		c.SetSession(v.TextOf("group_id"))
		c.Skip(rec, "trace")
		return nil
	case !isPart(v) || v.TextOf("id") == "" || data.Kind() != signal.KindObject:
		c.Unreadable(rec, "it is no span with an id and span_data", v.AppendJSON(nil))
		return nil
	}
	kind, known := kinds[data.TextOf("type")]
	if !known {
		kind = spans.Transport
	}
	s := spans.TraceSpan{
		Record: rec, Trace: v.TextOf("trace_id"), ID: v.TextOf("id"), Parent: v.TextOf("parent_id"),
		Name: data.TextOf("name"), Kind: kind, Strong: true, Attributes: attributes(data),
		From: data.TextOf("from_agent"), To: data.TextOf("to_agent"),
	}
	if s.Name == "" {
		s.Name = data.TextOf("type")
	}
	s.Start, s.Timed = recording.TimeValue(v.Member("started_at"), time.Second)
	ended := false
	s.End, ended = recording.TimeValue(v.Member("ended_at"), time.Second)
	s.Open = !ended
	if e := v.Member("error"); e.Kind() == signal.KindObject {
		s.Failed, s.Message = true, e.TextOf("message")
	} else if t, isText := e.Text(); isText && t != "" {
		s.Failed, s.Message = true, t
	}
	return c.Add(s)
}

// attributes yields what a span says under the names of spans.
func attributes(data signal.Value) func(func(string, signal.Value) bool) {
	o := signal.NewObject(8)
	add := func(name string, values ...signal.Value) {
		for _, v := range values {
			if k := v.Kind(); k != signal.KindAbsent && k != signal.KindNull {
				o.Add(name, v)
				return
			}
		}
	}
	add("input.value", data.Member("input"))
	response := data.Member("response")
	add("output.value", data.Member("output"), response)
	add("gen_ai.request.model", data.Member("model"), response.Member("model"))
	usage := data.Member("usage")
	if usage.Kind() != signal.KindObject {
		usage = response.Member("usage")
	}
	add("gen_ai.usage.input_tokens", usage.Member("input_tokens"), usage.Member("prompt_tokens"))
	add("gen_ai.usage.output_tokens", usage.Member("output_tokens"), usage.Member("completion_tokens"))
	add("gen_ai.usage.total_tokens", usage.Member("total_tokens"))
	add("gen_ai.usage.cache_read.input_tokens", usage.Member("input_tokens_details").Member("cached_tokens"), usage.Member("prompt_tokens_details").Member("cached_tokens"))
	add("gen_ai.usage.reasoning.output_tokens", usage.Member("output_tokens_details").Member("reasoning_tokens"), usage.Member("completion_tokens_details").Member("reasoning_tokens"))
	return o.Value().Members()
}
