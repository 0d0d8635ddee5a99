package otlp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/sajou-dev/sajou-go/ingest/recording"
	"github.com/sajou-dev/sajou-go/ingest/spans"
	"github.com/sajou-dev/sajou-go/signal"
)

// The numbers of the fields on the way to a span or a log record. They are the same for both.
const (
	fieldResources = 1 // of an export: ResourceSpans or ResourceLogs
	fieldResource  = 1 // of these: what recorded them
	fieldScopes    = 2
	fieldRecords   = 2 // of ScopeSpans and ScopeLogs
)

// frameHead is the length of what the collector writes before each message of a file.
const frameHead = 4

// isProto reports whether a file begins like an export in protobuf: a list of resources, of
// which the first one holds a resource and then scopes, or begins with scopes.
func isProto(head []byte) bool {
	if jsonText(head) {
		return false
	}
	if len(head) > frameHead && head[0] == 0 && head[frameHead] == 0x0a {
		return beginsResources(head[frameHead:])
	}
	return beginsResources(head)
}

func beginsResources(head []byte) bool {
	size, rest := lengthOf(head, fieldResources)
	if size < 2 {
		return false
	}
	if rest[0] == fieldScopes<<3|byte(protowire.BytesType) {
		n, inner := lengthOf(rest, fieldScopes)
		return n > 0 && n <= size && len(inner) > 0
	}
	n, inner := lengthOf(rest, fieldResource)
	if n < 0 || n >= size {
		return false
	}
	if n >= len(inner) {
		// The resource is longer than what is seen: it has attributes at least.
		return len(inner) > 0 && inner[0] == 0x0a
	}
	return inner[n] == fieldScopes<<3|byte(protowire.BytesType)
}

// lengthOf reads the head of a message, which must be a field of the number. It returns -1 if it is
// none, or if nothing follows.
func lengthOf(b []byte, number protowire.Number) (size int, rest []byte) {
	num, kind, n := protowire.ConsumeTag(b)
	if n < 0 || num != number || kind != protowire.BytesType {
		return -1, nil
	}
	length, m := protowire.ConsumeVarint(b[n:])
	if m < 0 || length > recording.MaxDocument || len(b) <= n+m {
		return -1, nil
	}
	return int(length), b[n+m:]
}

// protoReader reads one file. It goes down to the spans itself, so that one that cannot be read
// costs no other, and lets the decoder of the collector read each: that one has no
// bound on depth and on the number of parts, so they are checked before.
type protoReader struct {
	c       *spans.Collection
	file    string
	text    []byte
	native  bool // the records keep their values
	service string
	logs    *logs
}

func readProto(in *recording.Recorded, l *logs, native bool) error {
	text, err := in.ReadFile(in.Name)
	if err != nil {
		return err
	}
	p := &protoReader{c: l.c, file: in.Name, text: text, native: native, logs: l}
	if len(text) > frameHead && text[0] == 0 {
		return p.frames()
	}
	return p.export(0, len(text), "")
}

// frames reads messages that each have their length before them.
func (p *protoReader) frames() error {
	for at, i := 0, 0; at < len(p.text); i++ {
		if len(p.text)-at < frameHead {
			p.unreadable(at, len(p.text), fmt.Sprintf("/%d", i), errTruncated)
			return nil
		}
		size := int(binary.BigEndian.Uint32(p.text[at:]))
		from := at + frameHead
		at = from + size
		if at > len(p.text) {
			p.unreadable(from, len(p.text), fmt.Sprintf("/%d", i), errTruncated)
			return nil
		}
		if err := p.export(from, at, fmt.Sprintf("/%d", i)); err != nil {
			return err
		}
	}
	return nil
}

var errTruncated = errors.New("the file ends within it")

// each yields the places of the messages in a field of a message, with their number. Other fields are passed
// over. A message that is not whole ends it with an error.
func (p *protoReader) each(from, to int, do func(number protowire.Number, from, to int) error) error {
	for at := from; at < to; {
		num, kind, n := protowire.ConsumeTag(p.text[at:to])
		if n < 0 {
			return protowire.ParseError(n)
		}
		at += n
		if kind != protowire.BytesType {
			if n = protowire.ConsumeFieldValue(num, kind, p.text[at:to]); n < 0 {
				return protowire.ParseError(n)
			}
			at += n
			continue
		}
		b, n := protowire.ConsumeBytes(p.text[at:to])
		if n < 0 {
			return protowire.ParseError(n)
		}
		at += n
		if err := do(num, at-len(b), at); err != nil {
			return err
		}
	}
	return nil
}

// export reads one export. An error that it returns is one of the collection.
func (p *protoReader) export(from, to int, pointer string) error {
	i := 0
	return p.walk(from, to, pointer, func(num protowire.Number, from, to int) error {
		if num != fieldResources {
			return nil
		}
		at := fmt.Sprintf("%s/resources/%d", pointer, i)
		i++
		p.service = p.serviceOf(from, to)
		j := 0
		return p.walk(from, to, at, func(num protowire.Number, from, to int) error {
			if num != fieldScopes {
				return nil
			}
			at := fmt.Sprintf("%s/scopes/%d", at, j)
			j++
			k := 0
			return p.walk(from, to, at, func(num protowire.Number, from, to int) error {
				if num != fieldRecords {
					return nil
				}
				at := fmt.Sprintf("%s/records/%d", at, k)
				k++
				return p.record(from, to, at)
			})
		})
	})
}

// walk calls do for the messages in a message, and makes what cannot be read of it a record.
func (p *protoReader) walk(from, to int, pointer string, do func(number protowire.Number, from, to int) error) error {
	var failed error
	err := p.each(from, to, func(number protowire.Number, from, to int) error {
		failed = do(number, from, to)
		return failed
	})
	if err != nil && failed == nil {
		p.unreadable(from, to, pointer, err)
		return nil
	}
	return err
}

func (p *protoReader) place(from, to int, pointer string) recording.NativeRecord {
	return recording.NativeRecord{Place: recording.Place{File: p.file, Offset: int64(from), Pointer: pointer}, Size: to - from}
}

func (p *protoReader) unreadable(from, to int, pointer string, err error) {
	p.c.Unreadable(p.place(from, to, pointer), fmt.Sprintf("%d bytes of protobuf: %v", to-from, err), nil)
}

// record reads a span or a log record.
func (p *protoReader) record(from, to int, pointer string) error {
	b := p.text[from:to]
	isLog, err := checkRecord(b)
	if err != nil {
		p.unreadable(from, to, pointer, err)
		return nil
	}
	if isLog {
		return p.log(from, to, pointer)
	}
	traces, v, err := decodeSpan(b)
	if err != nil {
		p.unreadable(from, to, pointer, err)
		return nil
	}
	if v.SpanID().IsEmpty() {
		p.unreadable(from, to, pointer, errors.New("it is no span with a span id"))
		return nil
	}
	s := spans.TraceSpan{
		Record: p.place(from, to, pointer), Trace: idText(v.TraceID().String()), ID: v.SpanID().String(), Parent: idText(v.ParentSpanID().String()), Name: clean(v.Name()),
		Attributes: mapOf(v.Attributes()), Service: p.service,
		Failed: v.Status().Code() == ptrace.StatusCodeError, Message: clean(v.Status().Message()),
	}
	if p.native {
		s.Record.Value = nativeSpan(traces)
	}
	s.Start, s.Timed = timeOf(v.StartTimestamp())
	ended := false
	s.End, ended = timeOf(v.EndTimestamp())
	s.Open = !ended
	for _, e := range v.Events().All() {
		s.Events = append(s.Events, spans.SpanEvent{Name: clean(e.Name()), Attributes: mapOf(e.Attributes())})
	}
	return p.c.Add(s)
}

// decodeSpan decodes a span whose shape was checked. The traces hold it alone.
func decodeSpan(b []byte) (ptrace.Traces, ptrace.Span, error) {
	export := nested(nested(nested(nil, fieldRecords, b), fieldScopes, nil), fieldResources, nil)
	traces, err := (&ptrace.ProtoUnmarshaler{}).UnmarshalTraces(export)
	if err != nil {
		return traces, ptrace.Span{}, err
	}
	return traces, traces.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0), nil
}

// log reads a log record.
func (p *protoReader) log(from, to int, pointer string) error {
	r, err := decodeLog(p.text[from:to])
	if err != nil {
		p.unreadable(from, to, pointer, err)
		return nil
	}
	r.rec, r.service = p.place(from, to, pointer), p.service
	if p.native {
		r.rec.Value = r.about
	}
	return p.logs.add(r)
}

// decodeLog decodes a log record whose shape was checked.
func decodeLog(b []byte) (logRecord, error) {
	export := nested(nested(nested(nil, fieldRecords, b), fieldScopes, nil), fieldResources, nil)
	all, err := (&plog.ProtoUnmarshaler{}).UnmarshalLogs(export)
	if err != nil {
		return logRecord{}, err
	}
	v := all.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0)
	r := logRecord{
		name: clean(v.EventName()), body: valueOf(v.Body()), about: objectOf(mapOf(v.Attributes())),
		trace: idText(v.TraceID().String()), span: idText(v.SpanID().String()),
	}
	if r.at, r.timed = timeOf(v.Timestamp()); !r.timed {
		r.at, r.timed = timeOf(v.ObservedTimestamp())
	}
	return r, nil
}

// nested returns a message of one field: the given bytes, or with nil those of inner.
func nested(inner []byte, field protowire.Number, b []byte) []byte {
	if b == nil {
		b = inner
	}
	out := make([]byte, 0, len(b)+12)
	out = protowire.AppendTag(out, field, protowire.BytesType)
	return protowire.AppendBytes(out, b)
}

// nativeSpan returns a span as OTLP in JSON has it.
func nativeSpan(traces ptrace.Traces) signal.Value {
	text, err := (&ptrace.JSONMarshaler{}).MarshalTraces(traces)
	if err != nil {
		return nil
	}
	v, _, err := recording.ParseJSON(text)
	if err != nil {
		return nil
	}
	for r := range v.Member("resourceSpans").Elements() {
		for s := range r.Member("scopeSpans").Elements() {
			for span := range s.Member("spans").Elements() {
				return span
			}
		}
	}
	return nil
}

// idText returns the text of an id; one of zeros is none.
func idText(id string) string {
	if strings.Trim(id, "0") == "" {
		return ""
	}
	return id
}

func timeOf(t pcommon.Timestamp) (recording.Instant, bool) {
	const most = 9_190_000_000_000_000_000 // as recording.TimeValue has it
	if t == 0 || t > most {
		return 0, false
	}
	return recording.Instant(t), true
}

// serviceOf returns the name of the service of a list of scopes. Its resource may stand behind
// them: the collector writes the fields in reverse.
func (p *protoReader) serviceOf(from, to int) (name string) {
	// What is not whole is found when the scopes are read.
	_ = p.each(from, to, func(num protowire.Number, from, to int) error {
		if num == fieldResource {
			if service, ok := serviceIn(p.text[from:to]); ok {
				name = service
			}
		}
		return nil
	})
	return name
}

// serviceIn returns the name of the service of a resource. One that cannot be read has none.
func serviceIn(resource []byte) (string, bool) {
	if checkShape(resource, shapeResource) != nil {
		return "", false
	}
	traces, err := (&ptrace.ProtoUnmarshaler{}).UnmarshalTraces(nested(nested(nil, fieldResource, resource), fieldResources, nil))
	if err != nil {
		return "", false
	}
	v, ok := traces.ResourceSpans().At(0).Resource().Attributes().Get("service.name")
	if !ok {
		return "", false
	}
	return clean(v.AsString()), true
}

// clean makes a text valid UTF-8.
func clean(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

// mapOf yields the attributes of a map of the collector.
func mapOf(m pcommon.Map) iter.Seq2[string, signal.Value] {
	return func(yield func(string, signal.Value) bool) {
		for name, v := range m.All() {
			if !yield(clean(name), valueOf(v)) {
				return
			}
		}
	}
}

// valueOf returns a value of the collector. Its depth was checked.
func valueOf(v pcommon.Value) signal.Value {
	switch v.Type() {
	case pcommon.ValueTypeStr:
		return signal.Text(clean(v.Str()))
	case pcommon.ValueTypeBool:
		return signal.Bool(v.Bool())
	case pcommon.ValueTypeInt:
		return signal.NewObject(1).Int("n", v.Int()).Value().Member("n")
	case pcommon.ValueTypeDouble:
		d, err := signal.Marshal(v.Double())
		if err != nil { // NaN and infinities
			return signal.Text(v.AsString())
		}
		return d
	case pcommon.ValueTypeBytes:
		return signal.Text(v.AsString())
	case pcommon.ValueTypeSlice:
		var list []signal.Value
		for _, e := range v.Slice().All() {
			list = append(list, orNull(valueOf(e)))
		}
		return signal.Array(list...)
	case pcommon.ValueTypeMap:
		o, seen := signal.NewObject(v.Map().Len()), map[string]bool{}
		for name, e := range v.Map().All() {
			if name = clean(name); !seen[name] {
				seen[name] = true
				o.Add(name, orNull(valueOf(e)))
			}
		}
		return o.Value()
	default:
		return nil
	}
}
