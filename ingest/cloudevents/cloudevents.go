// Package cloudevents reads events of CloudEvents 1.0 in JSON: one a line, a batch, or one
// alone. An event whose data is a signal of Sajou becomes that signal, with its type,
// payload, time, correlation id and metadata; its own id and source are in the metadata. Every
// other event is kept as it is, as a signal whose type is the
// name of the format, a dot, and its own type.
package cloudevents

import (
	"encoding/base64"
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go/ingest/recording"
	"github.com/sajou-dev/sajou-go/signal"
)

// Format returns the format of CloudEvents 1.0.
func Format() recording.Format {
	return recording.Format{
		Name:       "cloudevents",
		Title:      "CloudEvents 1.0",
		Recognized: "lines, a batch or one object with specversion, id, source and type",
		Grows:      true,
		Detect:     detect,
		Map:        read,
	}
}

// required are the attributes that every event has.
var required = []string{"specversion", "id", "source", "type"}

func detect(s *recording.Sample) string {
	var batch []string
	for _, name := range required {
		batch = append(batch, "[]."+name)
	}
	if s.Has(required...) || s.Has(batch...) || s.AnyLine(isEvent) {
		return "it has specversion, id, source and type"
	}
	return ""
}

func isEvent(v signal.Value) bool {
	for _, name := range required {
		if v.TextOf(name) == "" {
			return false
		}
	}
	return true
}

func read(in *recording.Recorded, m *recording.Mapping) error {
	begun := false
	for rec, err := range in.Records(in.Name) {
		if err != nil {
			return err
		}
		v := rec.Value
		data := dataOf(v)
		sig := asSignal(data)
		at, timed := recording.TimeText(v.TextOf("time"))
		if own, ok := recording.TimeValue(data.Member("timestamp"), time.Millisecond); ok && sig != nil {
			at, timed = own, true
		}
		if !begun && !timed {
			m.Invent()
		}
		begun = true
		m.SetTime(at, timed)
		event(m, v, data, sig)
	}
	return nil
}

// event maps one event. Its id is unique for its source.
func event(m *recording.Mapping, v, data signal.Value, sig *signal.Signal) {
	if isEvent(v) {
		id := v.TextOf("source") + " " + v.TextOf("id")
		if m.Repeats(id) {
			m.Skip("repeated event")
			return
		}
		m.SetNativeID(id)
		m.Origin("source", v.Member("source"))
	}
	m.SetLength(len(data))
	if sig == nil {
		kind := v.TextOf("type")
		if kind == "" {
			kind = "record"
		}
		m.Keep(kind)
		return
	}
	for name, member := range data.Member("metadata").Members() {
		if name != "native" && name != "sessionId" && name != "signal" {
			m.AddMeta(name, member)
		}
	}
	o := signal.NewObject(2)
	for _, name := range []string{"id", "source"} {
		if text := data.TextOf(name); text != "" {
			o.Text(name, text)
		}
	}
	if len(*o) > 0 {
		m.AddMeta("signal", o.Value())
	}
	m.Emit(sig.Type, data.TextOf("correlationId"), sig.Payload)
}

// dataOf returns the data of an event. JSON that was written as a text, or in base64, is read.
func dataOf(v signal.Value) signal.Value {
	if data, ok := v.Get("data"); ok {
		return recording.Nested(data)
	}
	text, err := base64.StdEncoding.DecodeString(v.TextOf("data_base64"))
	if err != nil || len(text) == 0 {
		return nil
	}
	data, _, err := recording.ParseJSON(text)
	if err != nil {
		return nil
	}
	return data
}

// asSignal returns data as a signal, nil if it is none, or none that may be recorded: the types of
// the signals that describe a recording are those of the import itself.
func asSignal(data signal.Value) *signal.Signal {
	typ := data.TextOf("type")
	payload, hasPayload := data.Get("payload")
	if typ == "" || !hasPayload || strings.HasPrefix(typ, "import.") {
		return nil
	}
	sig := &signal.Signal{ID: "id", Type: typ, Source: "source", Timestamp: signal.Int(0), Payload: payload}
	if sig.Validate() != nil {
		return nil
	}
	return sig
}
