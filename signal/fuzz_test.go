package signal_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sajou-dev/sajou-go/internal/msgptest"
	"github.com/sajou-dev/sajou-go/signal"
)

// bounded runs f on an input of n bytes and fails if it allocated more than a
// small multiple of them. The fixed part is for what the runtime and the fuzzer do
// beside it.
func bounded(t *testing.T, n int, f func()) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	if got, most := after.TotalAlloc-before.TotalAlloc, uint64(256<<10+40*n); got > most {
		t.Errorf("%d bytes of input: %d bytes allocated, want at most %d", n, got, most)
	}
}

// exactness are the reasons for which JSON that others take is refused here.
var exactness = []string{"64 bits", "double", "800", "twice", "UTF-8", "surrogate", "nested"}

// FuzzParse: no text makes Parse panic; what is read is what encoding/json reads,
// and survives every way out and back; what encoding/json takes is refused for
// exactness alone.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		toolCall, `{}`, `[]`, `{"a":1e2,"b":-0.0,"c":18446744073709551615}`, `{"a":"\ud83d\ude00"}`, `{"":{"":[[[]]]}}`,
		envelope("user.zone", `{"bounds":{"x":0,"y":0,"w":-1,"h":1}}`), envelope("x", `{},"more":0.1234567890123456789`),
		`{"id":"a","id":"b"}`, "\"\xff\"", strings.Repeat("[", 600),
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var v signal.Value
		var s *signal.Signal
		var err, lenient error
		bounded(t, len(text), func() { v, err = signal.ParseValue(text) })
		bounded(t, len(text), func() { s, lenient = signal.ParseLenient(text) })
		if err != nil {
			if !errors.Is(err, signal.ErrSyntax) || !errors.Is(lenient, signal.ErrSyntax) {
				t.Fatalf("%q: ParseValue %v, ParseLenient %v", text, err, lenient)
			}
			if json.Valid(text) && !containsAny(err.Error(), exactness) {
				t.Fatalf("%q is JSON: %v", text, err)
			}
			return
		}
		sameAsReference(t, text, v)
		sameToOthers(t, v)
		if lenient == nil {
			roundTrip(t, text, s)
		} else if v.Kind() == signal.KindObject {
			t.Fatalf("%q: %v", text, lenient)
		}
	})
}

func containsAny(s string, parts []string) bool {
	for _, p := range parts {
		if strings.Contains(s, p) {
			return true
		}
	}
	return false
}

// FuzzDecode: no entry data makes Decode panic, and a decoded signal can be written
// and decoded again.
func FuzzDecode(f *testing.F) {
	for _, data := range entryData(f) {
		f.Add(data)
	}
	f.Add([]byte("\x92\xdf\xff\xff\xff\xff\xa1a"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var s signal.Signal
		var err error
		bounded(t, len(data), func() { s, err = signal.Decode(data) })
		if err != nil {
			if !errors.Is(err, signal.ErrCorrupt) {
				t.Fatalf("%x: %v", data, err)
			}
			return
		}
		back, err := signal.Decode(s.Append(nil))
		if err != nil {
			t.Fatalf("%x: decoded, written, refused: %v", data, err)
		}
		if diff := cmp.Diff(s, back, numbers); diff != "" {
			t.Fatalf("%x: (-first +second)\n%s", data, diff)
		}
		// What is inside the values has not been checked: it must be harmless
		// in any case, and be read back if it is sound.
		text := s.AppendJSON(nil)
		for _, v := range []signal.Value{s.Payload, s.Metadata, s.Raw} {
			if v == nil {
				continue
			}
			_ = v.Any()
			if _, _, err := signal.CheckValue(v); err != nil {
				return
			}
		}
		if _, err := signal.ParseLenient(text); err != nil {
			t.Fatalf("%x: written as %s: %v", data, text, err)
		}
	})
}

// DecodeSound accepts the data that Decode accepts and that has nothing in it that
// CheckValue refuses, in whichever part.
func FuzzDecodeSound(f *testing.F) {
	for _, data := range entryData(f) {
		f.Add(data)
	}
	f.Add([]byte("\x97\xa1i\xa1t\x01\xa1s\xc0\xc0\x81\x01\x02"))                                  // a key that is no string
	f.Add([]byte("\x97\xa1i\xa1t\x01\xa1s\xc0\x81\xa1k\xa1\xff\x80"))                             // metadata that are not UTF-8
	f.Add([]byte("\x92\x82\xa1a\x01\xa1a\x02\xa1p"))                                              // a key twice, as it came
	f.Add([]byte("\x97\xa1i\xa1t\x01\xa1s\xc0\xc0\x81\xa1k\xcb\x7f\xf8\x00\x00\x00\x00\x00\x00")) // not a number
	f.Fuzz(func(t *testing.T, data []byte) {
		var s signal.Signal
		var err error
		bounded(t, len(data), func() { s, err = signal.DecodeSound(data) })
		loose, looseErr := signal.Decode(data)
		sound := looseErr == nil
		for _, v := range []signal.Value{loose.Metadata, loose.Payload, loose.Raw} {
			if v == nil || loose.Raw != nil && &v[0] != &loose.Raw[0] {
				continue
			}
			if _, rest, err := signal.CheckValue(v); err != nil || len(rest) != 0 {
				sound = false
			}
		}
		if (err == nil) != sound || err != nil && !errors.Is(err, signal.ErrCorrupt) {
			t.Fatalf("%x: %v, and its values are sound: %v", data, err, sound)
		}
		if diff := cmp.Diff(s, loose, numbers); err == nil && diff != "" {
			t.Fatalf("%x: (-sound +loose)\n%s", data, diff)
		}
		if err == nil {
			entryToOthers(t, data, &s)
		}
	})
}

// sameToOthers fails if a library that shares no code with this package reads
// another value from checked bytes.
func sameToOthers(t *testing.T, v signal.Value) {
	t.Helper()
	got, err := msgptest.Decode(v)
	if err != nil || !reflect.DeepEqual(got, v.Any()) {
		t.Fatalf("%x is %s, but read by others %v, %v", []byte(v), v, got, err)
	}
}

// entryToOthers fails if such a library reads another signal from entry data
// that DecodeSound has accepted.
func entryToOthers(t *testing.T, data []byte, s *signal.Signal) {
	t.Helper()
	got, err := msgptest.Decode(data)
	list, ok := got.([]any)
	if err != nil || !ok {
		t.Fatalf("%x: read by others as %v, %v", data, got, err)
	}
	want := []any{s.Raw.Any(), s.Problem}
	if s.Raw == nil {
		want = []any{s.ID, s.Type, s.Timestamp.Value().Any(), s.Source, nil, s.Metadata.Any(), s.Payload.Any()}
		if s.CorrelationID != nil {
			want[4] = *s.CorrelationID
		}
		if s.Problem != "" {
			want = append(want, s.Problem)
		}
	}
	if !reflect.DeepEqual(list, want) {
		t.Fatalf("%x: read by others as %v, want %v", data, list, want)
	}
}

// FuzzCheckValue: no bytes make a reader panic, checked or not; what passes is a JSON
// value that this package reads back, and that other libraries read as the same.
func FuzzCheckValue(f *testing.F) {
	for _, data := range entryData(f) {
		f.Add(data)
	}
	f.Add([]byte("\xdf\x00\x00\x00\x11\xa1a"))
	f.Add([]byte(strings.Repeat("\x81\xa0", 600)))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) < 1<<10 {
			walk(data)
		}
		var v signal.Value
		var rest []byte
		var err error
		bounded(t, len(data), func() { v, rest, err = signal.CheckValue(data) })
		if err != nil {
			if !errors.Is(err, signal.ErrCorrupt) {
				t.Fatalf("%x: %v", data, err)
			}
			return
		}
		if len(v)+len(rest) != len(data) || len(v) == 0 {
			t.Fatalf("%x: %d bytes and %d make not %d", data, len(v), len(rest), len(data))
		}
		sameToOthers(t, v)
		back, err := signal.ParseValue(v.AppendJSON(nil))
		if err != nil {
			t.Fatalf("%x: written as %s: %v", data, v, err)
		}
		if !reflect.DeepEqual(v.Any(), back.Any()) {
			t.Fatalf("%x: checked as %s, read back as %s", data, v, back)
		}
	})
}
