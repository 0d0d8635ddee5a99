package openai_test

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/sajou-dev/sajou-go/adapter/openai"
)

func TestEvents(t *testing.T) {
	for _, tc := range []struct {
		name, stream string
		want         []openai.Event
	}{
		{"one", "data: a\n\n", []openai.Event{{"", "a"}}},
		{"a name", "event: error\ndata: a\n\ndata: b\n\n", []openai.Event{{"error", "a"}, {"", "b"}}},
		{"lines", "data: a\ndata\ndata:  b\n\n", []openai.Event{{"", "a\n\n b"}}},
		{"mixed ends", "data: a\r\ndata: b\rdata: c\n\r\n\rdata: d\r\r", []openai.Event{{"", "a\nb\nc"}, {"", "d"}}},
		{"no data", ": c\n\nevent: ping\n\ndata:\n\ndata: \ndata:\t\n\nid: 1\n\ndata: a\n\n", []openai.Event{{"", "a"}}},
		{"fields of other names", "Data: a\n data: b\ndatax: c\ndata: d\n\n", []openai.Event{{"", "d"}}},
		{"no end of the event", "data: a\n", []openai.Event{{"", "a"}}},
		{"no end of the line", "data: a\n\nevent: e\ndata: b", []openai.Event{{"", "a"}, {"e", "b"}}},
		{"nothing", "", nil},
	} {
		got, err := openai.ReadEvents(strings.NewReader(tc.stream))
		if diff := cmp.Diff(tc.want, got); !errors.Is(err, io.EOF) || diff != "" {
			t.Errorf("%s: error %v, events (-want +got):\n%s", tc.name, err, diff)
		}
	}
}

// An event is returned at its empty line, before further bytes arrive, also if the
// line ends with a CR, which may be half of a CRLF.
func TestEventsDoNotWait(t *testing.T) {
	broke := errors.New("the connection broke")
	for _, stream := range []string{"data: a\n\n", "data: a\r\n\r", "data: a\r\r", "data: a\r\n\r\n"} {
		got, err := openai.ReadEvents(io.MultiReader(strings.NewReader(stream), iotest.ErrReader(broke)))
		if !errors.Is(err, broke) || !slices.Equal(got, []openai.Event{{"", "a"}}) {
			t.Errorf("%q: %v, %v", stream, got, err)
		}
	}
	// An event that was incomplete when the connection broke is dropped.
	if got, err := openai.ReadEvents(io.MultiReader(strings.NewReader("data: a\n"), iotest.ErrReader(broke))); len(got) != 0 || !errors.Is(err, broke) {
		t.Errorf("%v, %v", got, err)
	}
}

func TestEventLimits(t *testing.T) {
	line := strings.Repeat("x", 64<<10-len("data:"))
	for _, tc := range []struct {
		name, stream string
		want         error
	}{
		{"a line", "data:" + line + "\r\n\n", io.EOF},
		{"a line too long", "data:" + line + "x", openai.ErrLimit},
		{"a comment too long", ":" + strings.Repeat("x", 64<<10), openai.ErrLimit},
		{"an event", strings.Repeat("data:"+line+"\n", 4) + "\n", io.EOF},
		{"an event too long", strings.Repeat("data:"+line+"\n", 4) + "data: and a little more than that\n", openai.ErrLimit},
		{"many events", strings.Repeat("data:"+line+"\n\n", 9), io.EOF},
	} {
		if _, err := openai.ReadEvents(strings.NewReader(tc.stream)); !errors.Is(err, tc.want) {
			t.Errorf("%s: error %v, want %v", tc.name, err, tc.want)
		}
	}
}

// model is a simple reader of events, which needs the whole stream.
func model(stream string) (all []openai.Event) {
	stream = strings.ReplaceAll(strings.ReplaceAll(stream, "\r\n", "\n"), "\r", "\n")
	var data []string
	name := ""
	for _, line := range append(strings.Split(stream, "\n"), "") {
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "":
			if text := strings.Join(data, "\n"); strings.TrimSpace(text) != "" {
				all = append(all, openai.Event{Name: name, Data: text})
			}
			data, name = nil, ""
		case field == "data":
			data = append(data, value)
		case field == "event":
			name = value
		}
	}
	return all
}

// For any bytes, in pieces of any size, the reader agrees with the model, or fails
// with ErrLimit.
func FuzzEvents(f *testing.F) {
	for _, seed := range []string{"", "data: a\n\n", "event: e\r\ndata: a\r\ndata: b\r\n\r\n", ": c\rdata\r\rdata:x", delta("a") + end, "\n\r\n\rdata: \n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, stream string) {
		got, err := openai.ReadEvents(strings.NewReader(stream))
		if len(stream) > 64<<10 && errors.Is(err, openai.ErrLimit) {
			return
		}
		if !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		if diff := cmp.Diff(model(stream), got); diff != "" {
			t.Errorf("%q (-model +got):\n%s", stream, diff)
		}
		bytewise, err := openai.ReadEvents(iotest.OneByteReader(strings.NewReader(stream)))
		if !errors.Is(err, io.EOF) || !slices.Equal(got, bytewise) {
			t.Errorf("%q: in bytes %v, %v; at once %v", stream, bytewise, err, got)
		}
	})
}

// Any bytes give an answer with valid UTF-8 or one of the package's errors.
func FuzzAnswer(f *testing.F) {
	for _, seed := range []string{
		"", "{}", "null", "[]", `{"choices":[{"delta":{"content":"a"}}]}`, `{"choices":[{"message":{"content":"\ud800"},"finish_reason":"stop"}]}`,
		`{"error":{"code":"500","type":7}}`, `{"error":"x","choices":0}`, `{"error":{"code":1e999}}`, `{"usage":{"total_tokens":-1.5},"choices":[{"index":-1}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := openai.Take(data)
		if c.Text != strings.ToValidUTF8(c.Text, "") {
			t.Errorf("%q: text %q", data, c.Text)
		}
		known := []error{openai.ErrService, openai.ErrMalformed, openai.ErrTruncated}
		if err != nil && !slices.ContainsFunc(known, func(k error) bool { return errors.Is(err, k) }) {
			t.Errorf("%q: error %v", data, err)
		}
	})
}
