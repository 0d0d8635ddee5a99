// Package jaeger reads the traces that Jaeger exports as JSON: what its user interface saves
// and its API answers.
package jaeger

import (
	"iter"
	"strconv"
	"time"

	"github.com/sajou-dev/sajou-go/ingest/recording"
	"github.com/sajou-dev/sajou-go/ingest/spans"
	"github.com/sajou-dev/sajou-go/signal"
)

// Name is the name of the format.
const Name = "jaeger"

// Format returns the format.
func Format() recording.Format {
	return recording.Format{
		Name: Name, Title: "Jaeger traces", Agent: "agent",
		Recognized: "a JSON object with data[].spans[] that have traceID and operationName",
		Detect: func(s *recording.Sample) string {
			for _, path := range []string{"data[].spans[]", "spans[]"} {
				if s.Has(path+".traceID", path+".operationName") {
					return "its " + path + " have traceID and operationName"
				}
			}
			return ""
		},
		Map: mapFile,
	}
}

func isDocument(v signal.Value) bool {
	return v.Member("data").Kind() == signal.KindArray || v.Member("spans").Kind() == signal.KindArray
}

func mapFile(in *recording.Recorded, m *recording.Mapping) error {
	c := spans.NewCollection(m)
	for doc, err := range c.Documents(in, in.Name, isDocument) {
		if err != nil {
			return err
		}
		if !isDocument(doc.Value) {
			c.Unreadable(doc, "it has neither data nor spans", doc.Value.AppendJSON(nil))
			continue
		}
		if list := doc.Value.Member("data"); list.Kind() == signal.KindArray {
			i := 0
			for trace := range list.Elements() {
				if err := addTrace(c, &doc, "/data/"+strconv.Itoa(i), trace); err != nil {
					return err
				}
				i++
			}
		} else if err := addTrace(c, &doc, "", doc.Value); err != nil {
			return err
		}
	}
	c.Map()
	return nil
}

func addTrace(c *spans.Collection, doc *recording.NativeRecord, pointer string, trace signal.Value) error {
	i := 0
	for v := range trace.Member("spans").Elements() {
		rec := spans.Within(doc, pointer+"/spans/"+strconv.Itoa(i), v)
		i++
		if v.TextOf("spanID") == "" {
			c.Unreadable(rec, "it is no span with a spanID", v.AppendJSON(nil))
			continue
		}
		s := spans.TraceSpan{
			Record: rec, Trace: v.TextOf("traceID"), ID: v.TextOf("spanID"), Parent: parent(v), Name: v.TextOf("operationName"),
			Attributes: tags(v.Member("tags")), Service: trace.Member("processes").Member(v.TextOf("processID")).TextOf("serviceName"),
		}
		if s.Service == "" {
			s.Service = v.Member("process").TextOf("serviceName")
		}
		s.Start, s.Timed = recording.TimeValue(v.Member("startTime"), time.Microsecond)
		length, hasLength := recording.TimeValue(v.Member("duration"), time.Microsecond)
		s.End, s.Open = s.Start+length, !hasLength
		for log := range v.Member("logs").Elements() {
			fields := tags(log.Member("fields"))
			e := spans.SpanEvent{Attributes: fields}
			for name, value := range fields {
				if name == "event" {
					e.Name, _ = value.Text()
				}
			}
			s.Events = append(s.Events, e)
		}
		if err := c.Add(s); err != nil {
			return err
		}
	}
	return nil
}

// parent returns the span that a span is a child of, or else the first one that it refers to.
func parent(v signal.Value) string {
	first := ""
	for r := range v.Member("references").Elements() {
		if r.TextOf("traceID") != v.TextOf("traceID") {
			continue
		}
		if r.TextOf("refType") == "CHILD_OF" {
			return r.TextOf("spanID")
		}
		if first == "" {
			first = r.TextOf("spanID")
		}
	}
	if first == "" {
		first = v.TextOf("parentSpanID")
	}
	return first
}

// tags yields the attributes of a list of {key, type, value}.
func tags(list signal.Value) iter.Seq2[string, signal.Value] {
	return func(yield func(string, signal.Value) bool) {
		for t := range list.Elements() {
			if !yield(t.TextOf("key"), t.Member("value")) {
				return
			}
		}
	}
}
