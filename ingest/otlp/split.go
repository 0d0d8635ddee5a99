package otlp

import (
	"errors"
	"fmt"
	"iter"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/sajou-dev/sajou-go/ingest/recording"
	"github.com/sajou-dev/sajou-go/signal"
)

// ErrExport is wrapped by the errors about an export that cannot be read at all.
var ErrExport = errors.New("the export cannot be read")

// ExportPart is one span or log record of an export.
type ExportPart struct {
	// Text is an export of this record alone, in the encoding of the whole. Of the
	// resource it keeps the name of the service.
	Text []byte
	JSON bool // the encoding; else protobuf

	Log bool // it is a log record

	// Trace, Span and Parent are ids in hexadecimal. A log record may have no Trace; its
	// Parent is the span that it belongs to. "" is none.
	Trace, Span, Parent string

	// Session is the native session that a log record tells of, or "".
	Session string

	Ended bool // a span that has its end
}

// RefusedParts counts the records of an export that cannot be read.
type RefusedParts struct {
	Count int
	First string // the place of the first one, and the reason
}

func (r *RefusedParts) add(pointer string, reason error) {
	if r.Count++; r.Count == 1 {
		r.First = pointer + ": " + reason.Error()
	}
}

// The reasons why a record is refused.
var (
	errNoSpanID  = errors.New("the span id is not 8 bytes other than zero")
	errNoTraceID = errors.New("the trace id is not 16 bytes other than zero")
	errNoRecord  = errors.New("it is not an object")
)

// SplitSpans divides an ExportTraceServiceRequest into its spans, so that each can be kept
// and mapped without the others; see [Live]. A span that cannot be read is refused and
// costs no other. The error wraps [ErrExport].
func SplitSpans(text []byte, inJSON bool) ([]ExportPart, RefusedParts, error) {
	if inJSON {
		return splitJSON(text, "resourceSpans", "spans", jsonSpan, "scopeSpans", "scope_spans", "instrumentationLibrarySpans")
	}
	return splitProto(text, protoSpan)
}

// SplitLogs divides an ExportLogsServiceRequest in the same way. Log records that tell nothing of an
// agent are left out.
func SplitLogs(text []byte, inJSON bool) ([]ExportPart, RefusedParts, error) {
	if inJSON {
		return splitJSON(text, "resourceLogs", "logRecords", jsonLog, "scopeLogs", "scope_logs", "instrumentationLibraryLogs")
	}
	return splitProto(text, protoLog)
}

// splitProto divides an export in protobuf. Read returns no part for a record that is left
// out.
func splitProto(text []byte, read func(record []byte) (ExportPart, bool, error)) (parts []ExportPart, refused RefusedParts, err error) {
	i := 0
	for resource, err := range fields(text, fieldResources) {
		if err != nil {
			return nil, refused, fmt.Errorf("%w: %w", ErrExport, err)
		}
		service := ""
		for r, err := range fields(resource, fieldResource) {
			if err != nil {
				return nil, refused, fmt.Errorf("%w: resource %d: %w", ErrExport, i, err)
			}
			if name, ok := serviceIn(r); ok {
				service = name
			}
		}
		around := protoResource(service)
		j := 0
		for scope, err := range fields(resource, fieldScopes) {
			if err != nil {
				return nil, refused, fmt.Errorf("%w: resource %d: %w", ErrExport, i, err)
			}
			k := 0
			for record, err := range fields(scope, fieldRecords) {
				if err != nil {
					return nil, refused, fmt.Errorf("%w: resource %d, scope %d: %w", ErrExport, i, j, err)
				}
				part, wanted, err := read(record)
				switch {
				case err != nil:
					refused.add(fmt.Sprintf("/resources/%d/scopes/%d/records/%d", i, j, k), err)
				case wanted:
					inner := nested(nested(nil, fieldRecords, record), fieldScopes, nil)
					part.Text = nested(append(around[:len(around):len(around)], inner...), fieldResources, nil)
					parts = append(parts, part)
				}
				k++
			}
			j++
		}
		i++
	}
	return parts, refused, nil
}

// fields yields the messages in one field of a message, and checks that the message is
// well formed.
func fields(b []byte, field protowire.Number) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for len(b) > 0 {
			num, kind, n := protowire.ConsumeTag(b)
			if n < 0 {
				yield(nil, protowire.ParseError(n))
				return
			}
			m := protowire.ConsumeFieldValue(num, kind, b[n:])
			if m < 0 {
				yield(nil, protowire.ParseError(m))
				return
			}
			if num == field && kind == protowire.BytesType {
				if content, _ := protowire.ConsumeBytes(b[n:]); !yield(content, nil) {
					return
				}
			}
			b = b[n+m:]
		}
	}
}

// protoResource returns the field of a resource that has the name of a service alone.
func protoResource(service string) []byte {
	if service == "" {
		return nil
	}
	value := nested(nil, 1, []byte(service))
	attribute := append(nested(nil, 1, []byte("service.name")), nested(nil, 2, value)...)
	return nested(nested(nil, 1, attribute), fieldResource, nil)
}

func protoSpan(b []byte) (part ExportPart, wanted bool, err error) {
	if err := checkShape(b, shapeSpan); err != nil {
		return part, false, err
	}
	_, v, err := decodeSpan(b)
	if err != nil {
		return part, false, err
	}
	part = ExportPart{Trace: idText(v.TraceID().String()), Span: idText(v.SpanID().String()), Parent: idText(v.ParentSpanID().String())}
	_, part.Ended = timeOf(v.EndTimestamp())
	return part, true, part.check()
}

func protoLog(b []byte) (part ExportPart, wanted bool, err error) {
	if err := checkShape(b, shapeLog); err != nil {
		return part, false, err
	}
	r, err := decodeLog(b)
	if err != nil {
		return part, false, err
	}
	part, wanted = r.part()
	return part, wanted, nil
}

// part returns the part that a log record is, without its text, and whether it tells of an
// agent.
func (r *logRecord) part() (part ExportPart, wanted bool) {
	return ExportPart{Log: true, Trace: r.trace, Parent: r.span, Session: r.session()}, relevant(r.event())
}

// check checks the ids of a span.
func (p *ExportPart) check() error {
	switch {
	case !isID(p.Trace, 16):
		return errNoTraceID
	case !isID(p.Span, 8):
		return errNoSpanID
	}
	if !isID(p.Parent, 8) {
		p.Parent = ""
	}
	return nil
}

// isID reports whether an id is one of n bytes.
func isID(id string, n int) bool { return len(id) == 2*n && isHex(id) }

// splitJSON divides an export in JSON.
func splitJSON(text []byte, root, records string, read func(recording.NativeRecord, signal.Value) (ExportPart, bool, error), scopes ...string) (parts []ExportPart, refused RefusedParts, err error) {
	v, _, err := recording.ParseJSON(text)
	if err != nil {
		return nil, refused, fmt.Errorf("%w: %w", ErrExport, err)
	}
	if v.Kind() != signal.KindObject {
		return nil, refused, fmt.Errorf("%w: it is not a JSON object", ErrExport)
	}
	name, list := member(v, root, "resource_"+root[len("resource"):])
	switch list.Kind() {
	case signal.KindArray:
	case signal.KindAbsent:
		return nil, refused, nil // an export without records
	default:
		return nil, refused, fmt.Errorf("%w: /%s is not an array", ErrExport, name)
	}
	err = eachScope(list, "/"+name, records, func(pointer string, resource, record signal.Value) error {
		if record.Kind() != signal.KindObject {
			refused.add(pointer, errNoRecord)
			return nil
		}
		part, wanted, err := read(recording.NativeRecord{Value: record}, resource)
		if err != nil {
			refused.add(pointer, err)
		} else if wanted {
			part.JSON = true
			part.Text = jsonExport(root, scopes[0], records, service(resource), record)
			parts = append(parts, part)
		}
		return nil
	}, scopes...)
	return parts, refused, err
}

// jsonExport returns an export of one record.
func jsonExport(root, scopes, records, service string, record signal.Value) []byte {
	text := make([]byte, 0, len(record)+256)
	text = append(strconv.AppendQuote(append(text, '{'), root), `:[{`...)
	if service != "" {
		text = append(text, `"resource":{"attributes":[{"key":"service.name","value":{"stringValue":`...)
		text = append(signal.Text(service).AppendJSON(text), `}}]},`...)
	}
	text = append(strconv.AppendQuote(text, scopes), `:[{`...)
	text = append(strconv.AppendQuote(text, records), `:[`...)
	return append(record.AppendJSON(text), `]}]}]}`...)
}

func jsonSpan(rec recording.NativeRecord, _ signal.Value) (part ExportPart, wanted bool, err error) {
	v := rec.Value
	part = ExportPart{
		Trace: identifier(member1(v, "traceId", "trace_id")), Span: identifier(member1(v, "spanId", "span_id")),
		Parent: identifier(member1(v, "parentSpanId", "parent_span_id")),
	}
	_, part.Ended = instant(member1(v, "endTimeUnixNano", "end_time_unix_nano"))
	return part, true, part.check()
}

func jsonLog(rec recording.NativeRecord, resource signal.Value) (part ExportPart, wanted bool, err error) {
	r := logOf(rec, resource)
	part, wanted = r.part()
	if !isID(part.Trace, 16) {
		part.Trace = ""
	}
	if !isID(part.Parent, 8) {
		part.Parent = ""
	}
	return part, wanted, nil
}
