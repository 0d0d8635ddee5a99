// Package otlp reads OpenTelemetry traces and logs: OTLP in JSON, whole or one object a line as
// the collector writes it, OTLP in protobuf, and the exports of Tempo, which are like it.
package otlp

import (
	"bytes"

	"github.com/sajou-dev/sajou-go/ingest/recording"
	"github.com/sajou-dev/sajou-go/ingest/spans"
	"github.com/sajou-dev/sajou-go/signal"
)

// Name is the name of the format.
const Name = "otlp"

// Format returns the format.
func Format() recording.Format {
	return recording.Format{
		Name: Name, Title: "OpenTelemetry traces and logs (OTLP), Tempo", Agent: "agent",
		Recognized: "JSON with resourceSpans, resourceLogs or batches, whole or by lines; or the protobuf of it",
		Detect:     detect,
		Map:        mapFile,
	}
}

// roots are the members of a document that hold its spans or logs.
var roots = []string{"resourceSpans", "resource_spans", "batches", "resourceLogs", "resource_logs"}

func detect(s *recording.Sample) string {
	for _, root := range roots {
		for _, path := range []string{root, "trace." + root, "result." + root} {
			if s.Has(path) && (s.Has(path+"[].resource") || s.Has(path+"[].scopeSpans") || s.Has(path+"[].scope_spans") ||
				s.Has(path+"[].instrumentationLibrarySpans") || s.Has(path+"[].scopeLogs") || s.Has(path+"[].scope_logs")) {
				return "it has " + path
			}
		}
	}
	if isProto(s.Head) {
		return "it begins like a list of resources in protobuf"
	}
	return ""
}

// document returns the part of a value that holds spans or logs.
func document(v signal.Value) signal.Value {
	for _, wrap := range []string{"trace", "result"} {
		if inner := v.Member(wrap); inner.Kind() == signal.KindObject {
			v = inner
			break
		}
	}
	return v
}

func isDocument(v signal.Value) bool {
	v = document(v)
	for _, root := range roots {
		if v.Member(root).Kind() == signal.KindArray {
			return true
		}
	}
	return false
}

func mapFile(in *recording.Recorded, m *recording.Mapping) error {
	c := spans.NewCollection(m)
	l := &logs{c: c}
	proto, err := fileIsProto(in)
	switch {
	case err != nil:
		return err
	case proto:
		err = readProto(in, l, m.KeepsNative())
	default:
		err = readJSON(in, l)
	}
	if err == nil {
		err = l.addSpans()
	}
	if err != nil {
		return err
	}
	c.Map()
	return nil
}

// fileIsProto reports whether a file is protobuf.
func fileIsProto(in *recording.Recorded) (bool, error) {
	file, err := in.FS.Open(in.Name)
	if err != nil {
		return false, err
	}
	defer file.Close()
	head := make([]byte, 64)
	n, _ := file.Read(head)
	return isProto(head[:n]), nil
}

func readJSON(in *recording.Recorded, l *logs) error {
	c := l.c
	for doc, err := range c.Documents(in, in.Name, isDocument) {
		if err != nil {
			return err
		}
		if !isDocument(doc.Value) {
			c.Unreadable(doc, "it has none of resourceSpans, resourceLogs and batches", doc.Value.AppendJSON(nil))
			continue
		}
		if err := addDocument(l, doc); err != nil {
			return err
		}
	}
	return nil
}

// member returns the first of several members that a value has.
func member(v signal.Value, names ...string) (name string, found signal.Value) {
	for _, name := range names {
		if m := v.Member(name); m.Kind() != signal.KindAbsent && m.Kind() != signal.KindNull {
			return name, m
		}
	}
	return names[0], nil
}

// jsonText reports whether a text begins like JSON. A message in protobuf whose length happens to be
// the number of a brace does too, but it has bytes that no JSON text has.
func jsonText(head []byte) bool {
	begin := bytes.TrimLeft(head, "\xef\xbb\xbf \t\r\n")
	return len(begin) > 0 && (begin[0] == '{' || begin[0] == '[' || begin[0] == '"') &&
		!bytes.ContainsFunc(begin, func(r rune) bool { return r < ' ' && r != '\t' && r != '\r' && r != '\n' })
}
