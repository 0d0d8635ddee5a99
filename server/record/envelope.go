package record

import (
	"sync"
	"time"

	"github.com/sajou-dev/sajou-go/ingest/recording"
	"github.com/sajou-dev/sajou-go/signal"
)

// wrappedType is the type of a signal that was made of a body without a type.
const wrappedType = "event"

// defaultSource is the source of a signal whose sender gave none.
const defaultSource = "http"

// mending is held while a body is mended, which takes many times its bytes.
var mending sync.Mutex

// Envelope makes a signal of any JSON as the reference server does: an object with a text
// as its type is the envelope, and everything else is the payload of an "event". An id, timestamp,
// source or payload that is missing or falsy in JavaScript (null, false, 0, "") is filled.
// JSON that JavaScript writes but a value cannot hold is mended, see [recording.ParseJSON].
// All else passes, and what the schema refuses becomes the Problem of the signal. Texts
// that do not fit an entry are cut, see [recording.Fit]. The only error is a
// [*signal.SyntaxError].
func Envelope(body []byte, now time.Time, newID func() string) (*signal.Signal, error) {
	v, err := signal.ParseValue(body)
	repaired := err != nil
	if repaired {
		if v, err = mend(body); err != nil {
			return nil, err
		}
	}
	sig, err := signal.FromValueLenient(v)
	// The envelope of nearly every signal is regular, and has all that the schema wants.
	if err != nil || repaired || sig.Raw != nil || sig.ID == "" || sig.Source == "" || sig.Timestamp == signal.Int(0) || sig.Timestamp.Float64() == 0 {
		if sig, err = filled(v, repaired, now, newID); err != nil {
			return nil, err
		}
	}
	recording.Fit(sig)
	return sig, nil
}

// mend parses a body that is not exact JSON.
func mend(body []byte) (signal.Value, error) {
	mending.Lock()
	defer mending.Unlock()
	v, _, err := recording.ParseJSON(body)
	return v, err
}

// filled makes a signal of a value in which something is missing, or that was repaired.
func filled(v signal.Value, repaired bool, now time.Time, newID func() string) (*signal.Signal, error) {
	var o signal.Object
	if v.Member("type").Kind() == signal.KindString {
		o = signal.ObjectOf(v)
	} else {
		o = *signal.NewObject(5).Text("type", wrappedType).Add("payload", v)
	}
	have := o.Value()
	for _, field := range []struct {
		name string
		fill func() signal.Value
	}{
		{"id", func() signal.Value { return signal.Text(newID()) }},
		{"timestamp", func() signal.Value { return signal.Int(now.UnixMilli()).Value() }},
		{"source", func() signal.Value { return signal.Text(defaultSource) }},
		{"payload", func() signal.Value { return signal.NewObject(0).Value() }},
	} {
		if falsy(have.Member(field.name)) {
			o.Set(field.name, field.fill())
		}
	}
	if repaired {
		recording.NoteRepair(&o)
	}
	return signal.FromValueLenient(o.Value())
}

// falsy reports whether JavaScript takes a value for false.
func falsy(v signal.Value) bool {
	switch v.Kind() {
	case signal.KindAbsent, signal.KindNull:
		return true
	case signal.KindBool:
		b, _ := v.Bool()
		return !b
	case signal.KindString:
		t, _ := v.Text()
		return t == ""
	case signal.KindInt, signal.KindUint, signal.KindFloat:
		f, _ := v.Float64()
		return f == 0
	default:
		return false
	}
}

// idJSON appends the id of a signal as its sender wrote it.
func idJSON(dst []byte, sig *signal.Signal) []byte {
	if sig.Raw != nil {
		return sig.Raw.Member("id").AppendJSON(dst)
	}
	return signal.Text(sig.ID).AppendJSON(dst)
}
