// Package flatspans reads lists of spans as programs of their own write them: an array, an object
// with spans, or one span a line, with trace_id, span_id, start_time and a map of attributes. The
// console exporter of OpenTelemetry, which puts the ids into context, is one of them.
package flatspans

import (
	"strconv"
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go/ingest/recording"
	"github.com/sajou-dev/sajou-go/ingest/spans"
	"github.com/sajou-dev/sajou-go/signal"
)

// Name is the name of the format.
const Name = "flat-spans"

// Format returns the format.
func Format() recording.Format {
	return recording.Format{
		Name: Name, Title: "List of spans", Agent: "agent",
		Recognized: "objects with trace_id, span_id (or both in context), start_time and a map of attributes: an array, the member spans, or by lines",
		Detect:     detect,
		Map:        mapFile,
	}
}

func detect(s *recording.Sample) string {
	for _, path := range []string{"[]", "spans[]", ""} {
		at := strings.TrimPrefix(path+".", ".")
		if !s.Has(at+"start_time", at+"attributes") {
			continue
		}
		if s.Has(at+"trace_id", at+"span_id") || s.Has(at+"context.trace_id", at+"context.span_id") {
			return "its spans have trace_id, span_id, start_time and attributes"
		}
	}
	return ""
}

func isSpan(v signal.Value) bool {
	return v.Member("attributes").Kind() != signal.KindAbsent && (v.TextOf("span_id") != "" || v.Member("context").TextOf("span_id") != "")
}

func isDocument(v signal.Value) bool {
	return v.Kind() == signal.KindArray || v.Member("spans").Kind() == signal.KindArray || isSpan(v)
}

func mapFile(in *recording.Recorded, m *recording.Mapping) error {
	c := spans.NewCollection(m)
	for doc, err := range c.Documents(in, in.Name, isDocument) {
		if err != nil {
			return err
		}
		list, pointer := doc.Value, ""
		if inner := doc.Value.Member("spans"); inner.Kind() == signal.KindArray {
			list, pointer = inner, "/spans"
			c.SetSession(doc.Value.TextOf("session_id"))
		}
		if list.Kind() != signal.KindArray {
			if err := addSpan(c, doc); err != nil {
				return err
			}
			continue
		}
		i := 0
		for v := range list.Elements() {
			if err := addSpan(c, spans.Within(&doc, pointer+"/"+strconv.Itoa(i), v)); err != nil {
				return err
			}
			i++
		}
	}
	c.Map()
	return nil
}

func addSpan(c *spans.Collection, rec recording.NativeRecord) error {
	v := rec.Value
	ids := v
	if context := v.Member("context"); context.Kind() == signal.KindObject {
		ids = context
	}
	id := identifier(ids.TextOf("span_id"))
	if id == "" {
		c.Unreadable(rec, "it is no span with a span_id", v.AppendJSON(nil))
		return nil
	}
	parent := v.TextOf("parent_span_id")
	if parent == "" {
		parent = v.TextOf("parent_id")
	}
	status := v.Member("status")
	code := status.TextOf("code")
	if code == "" {
		code = status.TextOf("status_code")
	}
	if code == "" {
		code = v.TextOf("status_code")
	}
	message := status.TextOf("message")
	if message == "" {
		message = status.TextOf("description")
	}
	s := spans.TraceSpan{
		Record: rec, Trace: identifier(ids.TextOf("trace_id")), ID: id, Parent: identifier(parent), Name: v.TextOf("name"),
		Attributes: spans.Attributes(v.Member("attributes")),
		Service:    serviceOf(v),
		Failed:     strings.HasSuffix(strings.ToUpper(code), "ERROR"),
		Message:    message,
	}
	s.Start, s.Timed = instant(v.Member("start_time"))
	ended := false
	s.End, ended = instant(v.Member("end_time"))
	s.Open = !ended
	for _, name := range []string{"span_events", "events"} {
		for e := range v.Member(name).Elements() {
			s.Events = append(s.Events, spans.SpanEvent{Name: e.TextOf("name"), Attributes: spans.Attributes(e.Member("attributes"))})
		}
	}
	return c.Add(s)
}

func serviceOf(v signal.Value) string {
	resource := v.Member("resource")
	if inner := resource.Member("attributes"); inner.Kind() == signal.KindObject {
		resource = inner
	}
	name, _ := resource.Member("service.name").Text()
	return name
}

// identifier returns an id without the 0x that the console exporter puts before it. An
// id of zeros is none.
func identifier(id string) string {
	id = strings.TrimPrefix(id, "0x")
	if strings.Trim(id, "0") == "" {
		return ""
	}
	return id
}

// instant reads a time: a text, or a number whose size tells its unit.
func instant(v signal.Value) (recording.Instant, bool) {
	n, isNumber := v.Float64()
	if i, isInt := v.Int64(); isInt {
		n, isNumber = float64(i), true
	}
	unit := time.Nanosecond
	switch {
	case !isNumber:
	case n < 1e11:
		unit = time.Second
	case n < 1e14:
		unit = time.Millisecond
	case n < 1e17:
		unit = time.Microsecond
	}
	t, ok := recording.TimeValue(v, unit)
	return t, ok && t > 0
}
