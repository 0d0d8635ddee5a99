package recording

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go/signal"
)

// ParseJSON parses one JSON value. Text that breaks a rule which real recordings break is
// mended: what is not UTF-8 becomes U+FFFD, of equal keys the last one counts, and a
// number that a value cannot hold becomes its text. Repaired reports that.
func ParseJSON(text []byte) (v signal.Value, repaired bool, err error) {
	v, err = signal.ParseValue(text)
	if err == nil {
		return v, false, nil
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var loose any
	if d.Decode(&loose) != nil || !ended(d) {
		return nil, false, err // of the exact parser, whose message has the place
	}
	v, failed := signal.Marshal(exactNumbers(loose))
	if failed != nil {
		return nil, false, err
	}
	return v, true, nil
}

// NoteRepair notes in the metadata of an envelope that its text was repaired. Metadata that is
// not an object is left as it is.
func NoteRepair(envelope *signal.Object) {
	meta := envelope.Value().Member("metadata")
	if k := meta.Kind(); k != signal.KindObject && k != signal.KindAbsent {
		return
	}
	o := signal.ObjectOf(meta)
	o.Set("repaired", signal.Bool(true))
	envelope.Set("metadata", o.Value())
}

func ended(d *json.Decoder) bool {
	_, err := d.Token()
	return errors.Is(err, io.EOF)
}

// exactNumbers replaces the numbers that a value cannot hold exactly by their text.
func exactNumbers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			v[name] = exactNumbers(member)
		}
	case []any:
		for i, element := range v {
			v[i] = exactNumbers(element)
		}
	case json.Number:
		if _, err := signal.ParseValue([]byte(v)); err != nil {
			return v.String()
		}
	}
	return v
}

// Nested returns the value of a text that is itself a JSON object or array, as tools write
// arguments and results; any other value is returned as it is.
func Nested(v signal.Value) signal.Value {
	text, ok := v.Text()
	if !ok {
		return v
	}
	trimmed := strings.TrimSpace(text)
	if trimmed == "" || trimmed[0] != '{' && trimmed[0] != '[' {
		return v
	}
	inner, _, err := ParseJSON([]byte(trimmed))
	if err != nil {
		return v
	}
	return inner
}

// Texts returns a text, or the texts of a list of parts such as {"type":"text","text":"…"},
// joined by line ends. Parts without a text are left out.
func Texts(v signal.Value) string {
	if text, ok := v.Text(); ok {
		return text
	}
	if v.Kind() != signal.KindArray {
		return ""
	}
	var parts []string
	for part := range v.Elements() {
		text, ok := part.Text()
		if !ok {
			text = part.TextOf("text")
		}
		if text != "" {
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, "\n")
}

// AsObject returns an object for the input or output of a tool: the value itself
// if it is an object or a text that parses as one, {} if it is absent or null, and else
// {"value": v}.
func AsObject(v signal.Value) signal.Value {
	switch v.Kind() {
	case signal.KindObject:
		return v
	case signal.KindAbsent, signal.KindNull:
		return signal.NewObject(0).Value()
	default:
	}
	if inner := Nested(v); inner.Kind() == signal.KindObject {
		return inner
	}
	return signal.NewObject(1).Add("value", v).Value()
}

// Trimmed reports whether a value is a mark that a publisher left in the place of one,
// such as "[trimmed for fixture]".
func Trimmed(v signal.Value) bool {
	text, ok := v.Text()
	return ok && strings.HasPrefix(text, "[trimmed") && strings.HasSuffix(text, "]")
}

// Instant is a point in time, in nanoseconds since 1970 UTC.
type Instant int64

// The instants that a recording may have: the years 1970 to 2261.
const maxInstant = Instant(9_190_000_000 * int64(time.Second))

// valid reports whether an instant can be recorded.
func (t Instant) valid() bool { return t >= 0 && t <= maxInstant }

// Milliseconds returns the instant as the timestamp of a signal. Whole milliseconds are an
// integer.
func (t Instant) Milliseconds() signal.Number {
	const ms = Instant(time.Millisecond)
	if t%ms == 0 {
		return signal.Int(int64(t / ms))
	}
	return signal.Float(float64(t) / float64(ms))
}

// zones are the layouts of times as they are met, the most frequent first. Those
// without a zone are read as UTC.
var zones = []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999Z07:00", "2006-01-02 15:04:05.999999999"}

// TimeText reads a time that is a text. ok is false if it is none, or out of range.
func TimeText(text string) (t Instant, ok bool) {
	if len(text) < len("2006-01-02T15:04:05") || len(text) > 64 {
		return 0, false
	}
	for _, layout := range zones {
		if at, err := time.Parse(layout, text); err == nil {
			if at.Year() < 1970 || at.Year() > 2261 {
				return 0, false
			}
			t = Instant(at.UnixNano())
			return t, t.valid()
		}
	}
	return 0, false
}

// TimeValue reads a time that is a text, or a number of the given unit since 1970. A
// text of digits is such a number too. ok is false if it is none, or out of range.
func TimeValue(v signal.Value, unit time.Duration) (t Instant, ok bool) {
	if text, isText := v.Text(); isText {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return TimeText(text)
		}
		return whole(n, unit)
	}
	if n, isInt := v.Int64(); isInt {
		return whole(n, unit)
	}
	f, isNumber := v.Float64()
	if !isNumber || !(f >= 0 && f <= float64(maxInstant)/float64(unit)) {
		return 0, false
	}
	// A float of seconds has microseconds at most; round its error away.
	t = Instant(float64(f*float64(unit))+500) / 1000 * 1000
	return t, t.valid()
}

func whole(n int64, unit time.Duration) (Instant, bool) {
	if n < 0 || n > int64(maxInstant)/int64(unit) {
		return 0, false
	}
	return Instant(n * int64(unit)), true
}
