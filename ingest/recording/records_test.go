package recording_test

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/ingest/recording"
)

func TestRecords(t *testing.T) {
	words := recording.Format{
		Name: "words", Title: "Words", Grows: true,
		Map: func(in *recording.Recorded, m *recording.Mapping) error {
			m.Invent()
			for rec, err := range in.Records(in.Name) {
				if err != nil {
					return err
				}
				m.Text("c", "a", rec.Value.TextOf("is"))
			}
			return nil
		},
	}
	tests := []struct {
		name, text string
		document   bool
		want       []string
	}{
		{"lines", "{\"is\":\"a\"}\n{\"is\":\"b\"}\n", false, []string{"a", "b"}},
		{"one line", `{"is":"a"}`, false, []string{"a"}},
		{"an array", `[{"is":"a"},` + "\n" + `{"is":"b"}]`, true, []string{"a", "b"}},
		{"a mark and blank lines", "\xef\xbb\xbf\n\n[{\"is\":\"a\"}]", true, []string{"a"}},
		{"one object of several lines", "{\n \"is\":\"a\"\n}", true, []string{"a"}},
		{"a damaged first line", "{\"is\":\"a\"\"}\n{\"is\":\"b\"}\n", false, []string{"", "b"}},
		{"a first line that is being written", `{"is":"a`, false, nil},
		{"nothing", "", false, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			files := fstest.MapFS{"f": {Data: []byte(tt.text)}}
			document, err := (&recording.Recorded{FS: files, Name: "f"}).IsDocument("f")
			require.NoError(t, err)
			assert.Equal(t, tt.document, document)
			var got []string
			for item, err := range words.Open(files, "f", recording.Options{}).Items() {
				require.NoError(t, err)
				if item.Signal.Type != recording.TypeRecording {
					got = append(got, item.Signal.Payload.TextOf("content"))
				}
			}
			assert.Equal(t, tt.want, got)
		})
	}
}

// A record that was held can be mapped while it is still the current one, at the end. It counts
// once, and its further signals have ids of their own.
func TestWithinCurrent(t *testing.T) {
	held := recording.Format{
		Name: "held", Title: "Held", Grows: true,
		Map: func(in *recording.Recorded, m *recording.Mapping) error {
			for _, err := range in.Lines(in.Name) {
				if err != nil {
					return err
				}
				m.Hold()
				mark := m.Save()
				m.Within(mark, func() { m.Text("c", "a", "first") })
				m.Text("c", "a", "second")
			}
			return nil
		},
	}
	r := held.Open(fstest.MapFS{"f": {Data: []byte(`{"t":1}` + "\n")}}, "f", recording.Options{Final: true})
	ids := map[string]bool{}
	n := 0
	for item, err := range r.Items() {
		require.NoError(t, err)
		ids[item.Signal.ID] = true
		n++
	}
	assert.Equal(t, 4, n)
	assert.Len(t, ids, n)
	b := r.Balance()
	assert.Equal(t, [3]int{1, 1, 0}, [3]int{b.Records, b.Mapped, b.Held})
}
