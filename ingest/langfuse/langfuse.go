// Package langfuse reads the traces that Langfuse exports: an object with trace and observations,
// or a trace that holds its observations, as its API answers.
package langfuse

import (
	"strconv"
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go/ingest/recording"
	"github.com/sajou-dev/sajou-go/ingest/spans"
	"github.com/sajou-dev/sajou-go/signal"
)

// Name is the name of the format.
const Name = "langfuse"

// Format returns the format.
func Format() recording.Format {
	return recording.Format{
		Name: Name, Title: "Langfuse traces", Agent: "agent",
		Recognized: "a JSON object with trace and observations, or with observations that have traceId",
		Detect: func(s *recording.Sample) string {
			if s.Has("trace", "observations") || s.Has("observations[].traceId") {
				return "it has observations of a trace"
			}
			return ""
		},
		Map: mapFile,
	}
}

func isDocument(v signal.Value) bool { return v.Member("observations").Kind() == signal.KindArray }

func mapFile(in *recording.Recorded, m *recording.Mapping) error {
	c := spans.NewCollection(m)
	for doc, err := range c.Documents(in, in.Name, isDocument) {
		if err != nil {
			return err
		}
		if !isDocument(doc.Value) {
			c.Unreadable(doc, "it has no observations", doc.Value.AppendJSON(nil))
			continue
		}
		if err := addTrace(c, doc); err != nil {
			return err
		}
	}
	c.Map()
	return nil
}

// observation is one observation, before its end is known.
type observation struct {
	span   spans.TraceSpan
	v      signal.Value
	meta   signal.Value // its metadata, which the export has as text
	attr   signal.Value // the attributes in it
	phase  string       // of one that is written in several: start, success, error or finish
	base   string       // its name without the phase
	joined bool         // it is a part of another one
}

func addTrace(c *spans.Collection, doc recording.NativeRecord) error {
	trace := doc.Value.Member("trace")
	if trace.Kind() != signal.KindObject {
		trace = doc.Value
	}
	meta := unquoted(trace.Member("metadata"))
	c.SetSession(firstText(trace.TextOf("sessionId"), meta.TextOf("thread_id"), meta.TextOf("session_id"), meta.Member("attributes").TextOf("langsmith.metadata.session_id")))
	var list []*observation
	i := 0
	for v := range doc.Value.Member("observations").Elements() {
		rec := spans.Within(&doc, "/observations/"+strconv.Itoa(i), v)
		i++
		if v.TextOf("id") == "" {
			c.Unreadable(rec, "it is no observation with an id", v.AppendJSON(nil))
			continue
		}
		list = append(list, newObservation(rec, trace))
	}
	t := newTree(list)
	t.join()
	t.ends()
	t.tools()
	if err := t.root(c, doc, trace); err != nil {
		return err
	}
	for _, o := range list {
		if o.joined {
			c.Skip(o.span.Record, "part of another observation")
			continue
		}
		if err := c.Add(o.span); err != nil {
			return err
		}
	}
	return nil
}

// types are the parts that the types of observations have. A span says nothing; a root is
// a chain, which becomes the workflow of a trace without agents.
var types = map[string]spans.SpanKind{
	"AGENT": spans.Agent, "TOOL": spans.Tool, "GENERATION": spans.Chat, "CHAIN": spans.Chain,
	"RETRIEVER": spans.Transport, "EVALUATOR": spans.Transport, "EMBEDDING": spans.Transport, "GUARDRAIL": spans.Transport, "EVENT": spans.Transport,
}

// prefixes are the beginnings of names that tell the part where type and attributes do not.
var prefixes = []struct {
	prefix string
	kind   spans.SpanKind
}{{"tool.", spans.Tool}, {"llm.", spans.Chat}, {"agent.", spans.Agent}, {"node.", spans.Chain}}

// phases are the ends of the names of observations that some libraries write for one call.
var phases = []string{"start", "success", "error", "finish"}

func newObservation(rec recording.NativeRecord, trace signal.Value) *observation {
	v := rec.Value
	o := &observation{v: v, meta: unquoted(v.Member("metadata"))}
	o.attr = unquoted(o.meta.Member("attributes"))
	name := v.TextOf("name")
	s := &o.span
	*s = spans.TraceSpan{
		Record: rec, Trace: firstText(v.TextOf("traceId"), trace.TextOf("id")), ID: v.TextOf("id"), Parent: v.TextOf("parentObservationId"), Name: name,
		Kind:    types[v.TextOf("type")],
		Service: o.meta.Member("resourceAttributes").TextOf("service.name"),
		Failed:  v.TextOf("level") == "ERROR", Message: v.TextOf("statusMessage"),
	}
	if s.Kind == spans.Unknown {
		for _, p := range prefixes {
			if rest, ok := strings.CutPrefix(name, p.prefix); ok {
				s.Kind, s.Name = p.kind, rest
			}
		}
	}
	if s.Kind == spans.Unknown && s.Parent == "" {
		s.Kind = spans.Chain
	}
	s.Start, s.Timed = recording.TimeValue(v.Member("startTime"), time.Millisecond)
	ended := false
	s.End, ended = recording.TimeValue(v.Member("endTime"), time.Millisecond)
	s.Open = !ended
	if v.TextOf("level") == "WARNING" && s.Message != "" {
		warning := signal.NewObject(1).Text("exception.message", s.Message).Value()
		s.Events = append(s.Events, spans.SpanEvent{Name: "exception", Attributes: warning.Members()})
	}
	for _, phase := range phases {
		if base, ok := strings.CutSuffix(name, "."+phase); ok {
			o.phase, o.base = phase, base
		}
	}
	s.Attributes = spans.Joined(o.attr.Members(), session(o.meta), described(v, v.Member("output")))
	return o
}

// described yields what an observation says under the names of spans.
func described(v, output signal.Value) func(func(string, signal.Value) bool) {
	o := signal.NewObject(8)
	add := func(name string, value signal.Value) {
		if k := value.Kind(); k != signal.KindAbsent && k != signal.KindNull {
			o.Add(name, value)
		}
	}
	add("input.value", unquoted(v.Member("input")))
	add("output.value", unquoted(output))
	add("gen_ai.response.model", v.Member("model"))
	add("llm.cost.total", v.Member("costDetails").Member("total"))
	usage(o, unquoted(v.Member("usageDetails")))
	return o.Value().Members()
}

// usage adds the tokens of a generation. Some libraries count the cached tokens apart from
// the input, so that the input is what the total has beside the output.
func usage(o *signal.Object, details signal.Value) {
	sum := func(prefix string) (n int64, known bool) {
		if n, ok := details.Member(prefix).Int64(); ok {
			return n, true
		}
		for name, v := range details.Members() {
			if i, ok := v.Int64(); ok && strings.HasPrefix(name, prefix) {
				n, known = n+i, true
			}
		}
		return n, known
	}
	in, hasIn := sum("input")
	out, hasOut := sum("output")
	total, hasTotal := details.Member("total").Int64()
	if !hasIn && !hasOut || in == 0 && out == 0 && total == 0 {
		return
	}
	if hasTotal {
		in = max(in, total-out)
	}
	o.Int("gen_ai.usage.input_tokens", in).Int("gen_ai.usage.output_tokens", out)
	first := func(name string, members ...string) {
		for _, m := range members {
			if n, ok := details.Member(m).Int64(); ok && n > 0 {
				o.Int(name, n)
				return
			}
		}
	}
	first("gen_ai.usage.cache_read.input_tokens", "input_cache_read", "cache_read_input_tokens", "input_cached_tokens", "prompt_details.cache_read")
	first("gen_ai.usage.cache_creation.input_tokens", "input_cache_creation", "cache_creation_input_tokens", "prompt_details.cache_write")
	first("gen_ai.usage.reasoning.output_tokens", "output_reasoning", "output_reasoning_tokens", "completion_details.reasoning")
}

// session yields the session that the metadata of an observation has.
func session(meta signal.Value) func(func(string, signal.Value) bool) {
	return func(yield func(string, signal.Value) bool) {
		for _, name := range []string{"thread_id", "session_id"} {
			if v := meta.Member(name); v.Kind() == signal.KindString {
				yield("session.id", v)
				return
			}
		}
	}
}

// unquoted returns the value in a text, also in the text of a text: exports encode values once
// or twice.
func unquoted(v signal.Value) signal.Value {
	for range 2 {
		text, isText := v.Text()
		if !isText || text == "" || !strings.ContainsRune("{[\"", rune(text[0])) {
			return v
		}
		inner, _, err := recording.ParseJSON([]byte(text))
		if err != nil {
			return v
		}
		v = inner
	}
	return v
}

func firstText(list ...string) string {
	for _, t := range list {
		if t != "" {
			return t
		}
	}
	return ""
}
