package dial

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/sajou-dev/sajou-go/ingest/recording"
	"github.com/sajou-dev/sajou-go/signal"
)

// Words of signals that a source did not make itself.
const (
	typeEvent     = "event"
	unknownSource = "unknown"
	codeNotJSON   = "not-json"
	codeTooLong   = "too-long"
)

// maxRaw bounds a signal whose envelope is irregular, so that its texts cannot be cut; an entry
// is at most 1 MiB.
const maxRaw = 960 << 10

// message takes one message. TooLong is about one of which the text is not there.
func (s *SignalSource) message(text []byte, tooLong bool, yield func(*signal.Signal) error) error {
	text = bytes.TrimSpace(text)
	if !tooLong && (len(text) == 0 || string(text) == "[DONE]") {
		return nil
	}
	s.counts.Messages++
	var sig *signal.Signal
	if tooLong {
		sig = s.unreadable(codeTooLong, fmt.Sprintf("a message has more than %d MiB and was left out", MaxMessage>>20), nil)
	} else {
		v, repaired, err := recording.ParseJSON(text)
		switch {
		case err != nil:
			sig = s.unreadable(codeNotJSON, "a message is not JSON: "+err.Error(), text)
		case truthy(v.Member("meta")):
			s.counts.Meta++
			return nil
		default:
			if sig, err = s.signal(v, repaired); err != nil {
				sig = s.unreadable(codeNotJSON, err.Error(), text)
			}
		}
	}
	if len(sig.Raw) > maxRaw {
		sig = s.unreadable(codeTooLong, fmt.Sprintf("a message that is not a regular signal has %d bytes and was left out", len(text)), text)
	}
	recording.Fit(sig)
	s.counts.Signals++
	if err := yield(sig); err != nil {
		return &consumerError{err}
	}
	return nil
}

// truthy reports whether JavaScript takes a value for true.
func truthy(v signal.Value) bool {
	switch v.Kind() {
	case signal.KindAbsent, signal.KindNull:
		return false
	case signal.KindBool:
		b, _ := v.Bool()
		return b
	case signal.KindString:
		text, _ := v.Text()
		return text != ""
	case signal.KindInt, signal.KindUint, signal.KindFloat:
		n, _ := v.Number()
		return n.Float64() != 0
	default:
		return true
	}
}

// signal makes a signal of a value, and fills in what is missing.
func (s *SignalSource) signal(v signal.Value, repaired bool) (*signal.Signal, error) {
	o := signal.ObjectOf(v)
	if v.Member("type").Kind() != signal.KindString {
		if v.Kind() != signal.KindObject {
			v = signal.NewObject(1).Add("value", v).Value()
		}
		o = *signal.NewObject(5).Text("type", typeEvent).Add("payload", v)
	}
	have := o.Value()
	missing := func(name string) bool {
		k := have.Member(name).Kind()
		return k == signal.KindAbsent || k == signal.KindNull
	}
	if missing("id") {
		o.Set("id", signal.Text(s.newID()))
	}
	if missing("timestamp") {
		o.Set("timestamp", signal.Int(s.cfg.Now().UnixMilli()).Value())
	} else if text, ok := have.Member("timestamp").Text(); ok {
		// Number("1700000000000"), as the reference parser reads it.
		if n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64); err == nil {
			o.Set("timestamp", signal.Int(n).Value())
		}
	}
	if missing("source") {
		o.Set("source", signal.Text(unknownSource))
	}
	if missing("payload") {
		o.Set("payload", signal.NewObject(0).Value())
	}
	if repaired {
		recording.NoteRepair(&o)
	}
	return signal.FromValueLenient(o.Value())
}

// newID returns the id of a signal whose source gave none.
func (s *SignalSource) newID() string {
	return recording.ID("dial", s.cfg.URL, fmt.Sprint(s.begun, "/", s.counts.Messages))
}

// unreadable makes the signal for a message that is none.
func (s *SignalSource) unreadable(code, reason string, text []byte) *signal.Signal {
	s.counts.Unreadable++
	const most = 1 << 10
	meta := signal.NewObject(1)
	if text != nil {
		meta.Text("text", strings.ToValidUTF8(string(text[:min(len(text), most)]), "\uFFFD"))
	}
	return &signal.Signal{
		ID: s.newID(), Type: "error", Source: "dial", Timestamp: signal.Int(s.cfg.Now().UnixMilli()), Metadata: meta.Value(),
		Payload: signal.NewObject(3).Text("message", strings.ToValidUTF8(reason, "\uFFFD")).Text("severity", recording.Warning).Text("code", code).Value(),
	}
}
