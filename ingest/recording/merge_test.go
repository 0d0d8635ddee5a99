package recording_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/ingest/recording"
	"github.com/sajou-dev/sajou-go/signal"
)

// parts is a format of a main file and files beside it, of lines such as {"t":3,"is":"a"}.
func parts(beside ...string) recording.Format {
	return recording.Format{
		Name: "parts", Title: "Parts", Grows: true,
		Map: func(in *recording.Recorded, m *recording.Mapping) error {
			timeOf := func(v signal.Value) (recording.Instant, bool) {
				return recording.TimeValue(v.Member("t"), time.Second)
			}
			for rec, err := range in.Merged("main", beside, timeOf) {
				if err != nil {
					return err
				}
				m.SetTime(timeOf(rec.Value))
				m.Text("c", "a", rec.Value.TextOf("is"))
			}
			return nil
		},
	}
}

// merge returns the words of the records in their order.
func merge(t require.TestingT, final bool, main string, beside ...string) (string, recording.Balance) {
	files := fstest.MapFS{"main": {Data: []byte(main)}}
	var names []string
	for i, text := range beside {
		name := fmt.Sprintf("beside/%d", i)
		files[name] = &fstest.MapFile{Data: []byte(text)}
		names = append(names, name)
	}
	r := parts(names...).Open(files, "main", recording.Options{Final: final, MaxBad: 1})
	var words []string
	for item, err := range r.Items() {
		require.NoError(t, err)
		if item.Signal.Type == "text_delta" {
			words = append(words, item.Signal.Payload.TextOf("content"))
		}
	}
	b := r.Balance()
	require.Equal(t, b.Records, b.Mapped+b.Kept+b.Total()+b.Held+b.Unreadable)
	return strings.Join(words, " "), b
}

func lines(records ...string) string {
	var b strings.Builder
	for _, r := range records {
		at, word, _ := strings.Cut(r, " ")
		if at == "-" {
			fmt.Fprintf(&b, "{\"is\":%q}\n", word)
		} else {
			fmt.Fprintf(&b, "{\"t\":%s,\"is\":%q}\n", at, word)
		}
	}
	return b.String()
}

func TestMerged(t *testing.T) {
	const century = "3153600000"
	tests := []struct {
		name   string
		main   string
		beside []string
		open   string // the words of a recording that is not final
		rest   string // the further words of one that is
	}{
		{"by time", lines("1 a", "5 b", "9 c"), []string{lines("2 x", "6 y"), lines("3 p", "4 q")}, "a x p q b y c", ""},
		{"the main file leads", lines("1 a", "5 b"), []string{lines("2 x", "6 y", "7 z")}, "a x b", " y z"},
		{"equal times", lines("1 a", "5 b", "7 c"), []string{lines("1 x", "5 y"), lines("5 p")}, "a x y b p c", ""},
		{"the order of a file is kept", lines("1 a", "5 b", "9 c"), []string{lines("6 x", "2 y", "7 z")}, "a b x y z c", ""},
		{"records without times", lines("1 a", "- b", "5 c"), []string{lines("- x", "2 y", "- z")}, "x a b y z c", ""},
		{"a wrong clock in the main file", lines("1 a", century+" b", "5 c"), []string{lines("2 x", "6 y")}, "a b x c", " y"},
		{"a wrong clock beside", lines("1 a", "5 b", "9 c"), []string{lines("2 x", century+" y", "6 z")}, "a x y b z c", ""},
		{"no time in the main file", lines("- a", "- b"), []string{lines("1 x")}, "a b", " x"},
		{"empty files", "", []string{lines("1 x"), ""}, "", "x"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			open, balance := merge(t, false, tt.main, tt.beside...)
			final, whole := merge(t, true, tt.main, tt.beside...)
			assert.Equal(t, tt.open+tt.rest, final)
			// The time of the very first record may wait for the next one.
			assert.True(t, strings.HasPrefix(tt.open, open), "%q", open)
			assert.Equal(t, len(strings.Fields(tt.rest)), balance.Held)
			assert.Equal(t, whole.Records, balance.Records)
		})
	}
}

// However the records of the files lie in time, each file keeps its order, and the signals of
// a beginning of the main file are a beginning of the signals of the whole.
func TestMergedPrefixes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		file := func(name string) []string {
			at := 1000
			var records []string
			for i := range rapid.IntRange(0, 20).Draw(t, name) {
				at += rapid.IntRange(-2, 5).Draw(t, "step")
				records = append(records, fmt.Sprintf("%d %s%d", at, name, i))
			}
			return records
		}
		main, a, b := file("m"), file("a"), file("b")
		whole, _ := merge(t, false, lines(main...), lines(a...), lines(b...))
		final, _ := merge(t, true, lines(main...), lines(a...), lines(b...))
		require.True(t, strings.HasPrefix(final, whole))
		require.Len(t, strings.Fields(final), len(main)+len(a)+len(b))
		for name, records := range map[string][]string{"m": main, "a": a, "b": b} {
			next := 0
			for word := range strings.FieldsSeq(final) {
				if strings.HasPrefix(word, name) {
					require.Equal(t, fmt.Sprint(name, next), word)
					next++
				}
			}
			require.Len(t, records, next)
		}
		n := rapid.IntRange(0, len(main)).Draw(t, "prefix")
		prefix, _ := merge(t, false, lines(main[:n]...), lines(a...), lines(b...))
		require.True(t, strings.HasPrefix(whole, prefix), "%q is no beginning of %q", prefix, whole)
	})
}
