package otlp

import (
	"encoding/base64"
	"encoding/hex"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go/ingest/recording"
	"github.com/sajou-dev/sajou-go/ingest/spans"
	"github.com/sajou-dev/sajou-go/signal"
)

// OTLP in JSON is read from exact values, not by the decoder of the collector: that one fails a whole
// document for one bad id, and refuses what Tempo writes. A test compares the two.

// addDocument adds the spans and logs of one document.
func addDocument(l *logs, doc recording.NativeRecord) error {
	c := l.c
	base := ""
	root := document(doc.Value)
	if len(root) != len(doc.Value) {
		for _, wrap := range []string{"trace", "result"} {
			if doc.Value.Member(wrap).Kind() == signal.KindObject {
				base = "/" + wrap
				break
			}
		}
	}
	if name, list := member(root, "resourceSpans", "resource_spans", "batches"); list.Kind() == signal.KindArray {
		if err := eachScope(list, base+"/"+name, "spans", func(pointer string, resource signal.Value, v signal.Value) error {
			return addSpan(c, spans.Within(&doc, pointer, v), resource)
		}, "scopeSpans", "scope_spans", "instrumentationLibrarySpans"); err != nil {
			return err
		}
	}
	if name, list := member(root, "resourceLogs", "resource_logs"); list.Kind() == signal.KindArray {
		return eachScope(list, base+"/"+name, "logRecords", func(pointer string, resource signal.Value, v signal.Value) error {
			return addLog(l, spans.Within(&doc, pointer, v), resource)
		}, "scopeLogs", "scope_logs", "instrumentationLibraryLogs")
	}
	return nil
}

func addLog(l *logs, rec recording.NativeRecord, resource signal.Value) error {
	v := rec.Value
	if v.Kind() != signal.KindObject {
		l.c.Unreadable(rec, "it is no log record", v.AppendJSON(nil))
		return nil
	}
	return l.add(logOf(rec, resource))
}

// logOf reads a log record.
func logOf(rec recording.NativeRecord, resource signal.Value) logRecord {
	v := rec.Value
	r := logRecord{rec: rec, body: anyValue(v.Member("body")), about: objectOf(attributes(v.Member("attributes"))), service: service(resource)}
	_, at := member(v, "timeUnixNano", "time_unix_nano")
	if r.at, r.timed = instant(at); !r.timed {
		_, at = member(v, "observedTimeUnixNano", "observed_time_unix_nano")
		r.at, r.timed = instant(at)
	}
	r.name, _ = member1(v, "eventName", "event_name").Text()
	r.trace, r.span = identifier(member1(v, "traceId", "trace_id")), identifier(member1(v, "spanId", "span_id"))
	return r
}

// objectOf returns attributes as an object. Of one name, the first counts.
func objectOf(list iter.Seq2[string, signal.Value]) signal.Value {
	o, seen := signal.NewObject(0), map[string]bool{}
	for name, v := range list {
		if !seen[name] {
			seen[name] = true
			o.Add(name, orNull(v))
		}
	}
	return o.Value()
}

// eachScope calls do for each record of a list of resources.
func eachScope(resources signal.Value, pointer, records string, do func(pointer string, resource, record signal.Value) error, scopes ...string) error {
	i := 0
	for r := range resources.Elements() {
		name, list := member(r, scopes...)
		j := 0
		for scope := range list.Elements() {
			k := 0
			_, inner := member(scope, records, snake(records))
			for v := range inner.Elements() {
				at := pointer + "/" + strconv.Itoa(i) + "/" + name + "/" + strconv.Itoa(j) + "/" + records + "/" + strconv.Itoa(k)
				if err := do(at, r.Member("resource"), v); err != nil {
					return err
				}
				k++
			}
			j++
		}
		i++
	}
	return nil
}

func snake(name string) string {
	if name == "logRecords" {
		return "log_records"
	}
	return name
}

func addSpan(c *spans.Collection, rec recording.NativeRecord, resource signal.Value) error {
	v := rec.Value
	_, id := member(v, "spanId", "span_id")
	if v.Kind() != signal.KindObject || identifier(id) == "" {
		c.Unreadable(rec, "it is no span with a spanId", v.AppendJSON(nil))
		return nil
	}
	_, trace := member(v, "traceId", "trace_id")
	_, parent := member(v, "parentSpanId", "parent_span_id")
	_, start := member(v, "startTimeUnixNano", "start_time_unix_nano")
	_, end := member(v, "endTimeUnixNano", "end_time_unix_nano")
	s := spans.TraceSpan{
		Record: rec, Trace: identifier(trace), ID: identifier(id), Parent: identifier(parent), Name: v.TextOf("name"),
		Attributes: attributes(v.Member("attributes")), Service: service(resource),
	}
	s.Start, s.Timed = instant(start)
	ended := false
	s.End, ended = instant(end)
	s.Open = !ended
	s.Failed, s.Message = status(v.Member("status"))
	for e := range v.Member("events").Elements() {
		s.Events = append(s.Events, spans.SpanEvent{Name: e.TextOf("name"), Attributes: attributes(e.Member("attributes"))})
	}
	return c.Add(s)
}

// instant reads a time in nanoseconds. Zero is none.
func instant(v signal.Value) (recording.Instant, bool) {
	t, ok := recording.TimeValue(v, time.Nanosecond)
	return t, ok && t > 0
}

// status reads the status of a span: {"code": 2} or {"code": "STATUS_CODE_ERROR"}.
func status(v signal.Value) (bool, string) {
	code := v.Member("code")
	if n, ok := code.Int64(); ok {
		return n == 2, v.TextOf("message")
	}
	t, _ := code.Text()
	return strings.HasSuffix(t, "ERROR") || t == "2", v.TextOf("message")
}

func service(resource signal.Value) string {
	for name, v := range attributes(resource.Member("attributes")) {
		if name == "service.name" {
			t, _ := v.Text()
			return t
		}
	}
	return ""
}

// identifier returns an id in hexadecimal. Tempo also writes base64.
func identifier(v signal.Value) string {
	t, _ := v.Text()
	if t == "" || isHex(t) {
		if strings.Trim(t, "0") == "" {
			return ""
		}
		return strings.ToLower(t)
	}
	if raw, err := base64.StdEncoding.DecodeString(t); err == nil && (len(raw) == 8 || len(raw) == 16) {
		return identifier(signal.Text(hex.EncodeToString(raw)))
	}
	return t
}

func isHex(t string) bool {
	for i := range len(t) {
		if c := t[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') && (c < 'A' || c > 'F') {
			return false
		}
	}
	// 12 and 24 letters can be base64 of 8 and 16 bytes too, but those end in "=".
	return true
}

// attributes yields the attributes of a list of {key, value}.
func attributes(list signal.Value) iter.Seq2[string, signal.Value] {
	return func(yield func(string, signal.Value) bool) {
		for a := range list.Elements() {
			if !yield(a.TextOf("key"), anyValue(a.Member("value"))) {
				return
			}
		}
	}
}

// anyValue returns the value of an attribute: {"stringValue": "x"} is "x".
func anyValue(v signal.Value) signal.Value {
	for name, inner := range v.Members() {
		switch name {
		case "stringValue", "string_value", "boolValue", "bool_value", "doubleValue", "double_value", "bytesValue", "bytes_value":
			return inner
		case "intValue", "int_value":
			if t, isText := inner.Text(); isText {
				if n, err := strconv.ParseInt(t, 10, 64); err == nil {
					return signal.NewObject(1).Int("n", n).Value().Member("n")
				}
			}
			return inner
		case "arrayValue", "array_value":
			var list []signal.Value
			for e := range inner.Member("values").Elements() {
				list = append(list, orNull(anyValue(e)))
			}
			return signal.Array(list...)
		case "kvlistValue", "kvlist_value":
			o, seen := signal.NewObject(0), map[string]bool{}
			for e := range inner.Member("values").Elements() {
				if key := e.TextOf("key"); !seen[key] {
					seen[key] = true
					o.Add(key, orNull(anyValue(e.Member("value"))))
				}
			}
			return o.Value()
		}
	}
	return nil
}

func orNull(v signal.Value) signal.Value {
	if v == nil {
		return signal.Null()
	}
	return v
}
