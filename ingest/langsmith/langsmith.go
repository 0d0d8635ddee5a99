// Package langsmith reads the runs that LangSmith exports: one a line, a list, or a run with its
// child_runs.
package langsmith

import (
	"strconv"
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go/ingest/recording"
	"github.com/sajou-dev/sajou-go/ingest/spans"
	"github.com/sajou-dev/sajou-go/signal"
)

// Name is the name of the format.
const Name = "langsmith"

// Format returns the format.
func Format() recording.Format {
	return recording.Format{
		Name: Name, Title: "LangSmith runs", Agent: "agent",
		Recognized: "objects with run_type and dotted_order or start_time: lines, a list, the member runs, or one with child_runs",
		Detect: func(s *recording.Sample) string {
			for _, path := range []string{"", "[].", "runs[]."} {
				if s.Has(path+"run_type", path+"dotted_order") || s.Has(path+"run_type", path+"start_time", path+"inputs") {
					return "its runs have run_type"
				}
			}
			if s.AnyLine(isRun) {
				return "its runs have run_type"
			}
			return ""
		},
		Map: mapFile,
	}
}

func isRun(v signal.Value) bool {
	return v.TextOf("run_type") != "" && v.TextOf("id") != ""
}

func isDocument(v signal.Value) bool {
	return isRun(v) || v.Kind() == signal.KindArray || v.Member("runs").Kind() == signal.KindArray
}

func mapFile(in *recording.Recorded, m *recording.Mapping) error {
	r := reader{spans.NewCollection(m)}
	for doc, err := range r.c.Documents(in, in.Name, isDocument) {
		if err != nil {
			return err
		}
		list, pointer := doc.Value, ""
		if inner := list.Member("runs"); inner.Kind() == signal.KindArray {
			list, pointer = inner, "/runs"
		}
		if list.Kind() == signal.KindArray {
			err = r.addList(&doc, pointer, "", "", list, 0)
		} else {
			err = r.add(&doc, "", "", "", list, 0)
		}
		if err != nil {
			return err
		}
	}
	r.c.Map()
	return nil
}

type reader struct{ c *spans.Collection }

func (r reader) addList(doc *recording.NativeRecord, pointer, trace, parent string, list signal.Value, depth int) error {
	i := 0
	for v := range list.Elements() {
		if err := r.add(doc, pointer+"/"+strconv.Itoa(i), trace, parent, v, depth); err != nil {
			return err
		}
		i++
	}
	return nil
}

// maxDepth bounds runs within runs.
const maxDepth = 200

// add adds a run and the runs within it.
func (r reader) add(doc *recording.NativeRecord, pointer, trace, parent string, v signal.Value, depth int) error {
	rec := spans.Within(doc, pointer, v)
	if !isRun(v) || depth > maxDepth {
		r.c.Unreadable(rec, "it is no run with an id and a run_type", v.AppendJSON(nil))
		return nil
	}
	if t := v.TextOf("trace_id"); t != "" {
		trace = t
	} else if order := v.TextOf("dotted_order"); order != "" && trace == "" {
		// 20260105T100000000000Z<id of the root>.20260105T…<id>
		root, _, _ := strings.Cut(order, ".")
		if _, id, ok := strings.Cut(root, "Z"); ok {
			trace = id
		}
	}
	if trace == "" && parent == "" {
		trace = v.TextOf("id")
	}
	if p := v.TextOf("parent_run_id"); p != "" {
		parent = p
	}
	s := spans.TraceSpan{
		Record: rec, Trace: trace, ID: v.TextOf("id"), Parent: parent, Name: v.TextOf("name"),
		Attributes: attributes(v), Kind: kind(v, parent),
	}
	s.Strong = s.Kind != spans.Unknown
	s.Start, s.Timed = recording.TimeValue(v.Member("start_time"), time.Millisecond)
	ended := false
	s.End, ended = recording.TimeValue(v.Member("end_time"), time.Millisecond)
	s.Open = !ended
	if t := v.TextOf("error"); t != "" {
		s.Failed, s.Message = true, t
	}
	if err := r.c.Add(s); err != nil {
		return err
	}
	return r.addList(doc, pointer+"/child_runs", trace, s.ID, v.Member("child_runs"), depth+1)
}

// kind tells the part of a run: a root, or a chain that is named like an agent, is a task.
func kind(v signal.Value, parent string) spans.SpanKind {
	switch v.TextOf("run_type") {
	case "llm":
		return spans.Chat
	case "tool":
		return spans.Tool
	case "chain":
		switch {
		case parent == "":
			return spans.Workflow
		case strings.Contains(strings.ToLower(v.TextOf("name")), "agent"):
			return spans.Agent
		}
	}
	return spans.Transport
}

// attributes yields what a run says under the names of spans.
func attributes(v signal.Value) func(func(string, signal.Value) bool) {
	o := signal.NewObject(12)
	add := func(name string, value signal.Value) {
		if k := value.Kind(); k != signal.KindAbsent && k != signal.KindNull {
			o.Add(name, value)
		}
	}
	add("input.value", v.Member("inputs"))
	add("output.value", v.Member("outputs"))
	metadata := v.Member("extra").Member("metadata")
	for _, name := range []string{"session_id", "thread_id", "conversation_id"} {
		if metadata.TextOf(name) != "" {
			add("gen_ai.conversation.id", metadata.Member(name))
			break
		}
	}
	add("gen_ai.request.model", metadata.Member("ls_model_name"))
	add("gen_ai.provider.name", metadata.Member("ls_provider"))
	usage := find(v.Member("outputs"), "usage_metadata", 0)
	tokens := func(name string, members ...string) {
		for _, m := range members {
			value := v.Member(m)
			if value.Kind() != signal.KindInt {
				value = usage.Member(m)
			}
			if value.Kind() == signal.KindInt {
				o.Add(name, value)
				return
			}
		}
	}
	tokens("gen_ai.usage.input_tokens", "prompt_tokens", "input_tokens")
	tokens("gen_ai.usage.output_tokens", "completion_tokens", "output_tokens")
	tokens("gen_ai.usage.total_tokens", "total_tokens")
	details := usage.Member("input_token_details")
	add("gen_ai.usage.cache_read.input_tokens", details.Member("cache_read"))
	add("gen_ai.usage.cache_creation.input_tokens", details.Member("cache_creation"))
	add("gen_ai.usage.reasoning.output_tokens", usage.Member("output_token_details").Member("reasoning"))
	add("llm.cost.total", v.Member("total_cost"))
	return o.Value().Members()
}

// find returns the first member of a name in a value, a few levels deep.
func find(v signal.Value, name string, depth int) signal.Value {
	const most = 8
	switch v.Kind() {
	case signal.KindObject:
		if m := v.Member(name); m.Kind() == signal.KindObject {
			return m
		}
	case signal.KindArray:
	default:
		return nil
	}
	if depth == most {
		return nil
	}
	if v.Kind() == signal.KindArray {
		for e := range v.Elements() {
			if m := find(e, name, depth+1); m != nil {
				return m
			}
		}
		return nil
	}
	for _, inner := range v.Members() {
		if m := find(inner, name, depth+1); m != nil {
			return m
		}
	}
	return nil
}
