// Package recordingtest helps to test the readers of foreign recordings: it reads
// recordings, tells their signals in a short form, and checks the properties that every
// format promises. Only tests import this package.
package recordingtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/ingest/recording"
	"github.com/sajou-dev/sajou-go/signal"
)

// Read reads a recording whole. It checks that the signals are valid, that their times do
// not decrease, that their ids are unique, and that the balance adds up.
func Read(t testing.TB, f recording.Format, fsys fs.FS, name string, o recording.Options) ([]*signal.Signal, recording.Balance) {
	t.Helper()
	list, balance, err := TryRead(t, f, fsys, name, o)
	require.NoError(t, err)
	return list, balance
}

// TryRead is [Read] for recordings whose reading may end with an error.
func TryRead(t testing.TB, f recording.Format, fsys fs.FS, name string, o recording.Options) ([]*signal.Signal, recording.Balance, error) {
	t.Helper()
	r := f.Open(fsys, name, o)
	var list []*signal.Signal
	ids := map[string]bool{}
	var failed error
	last := -1.0
	for item, err := range r.Items() {
		if err != nil {
			failed = err
			break
		}
		s := item.Signal
		require.Empty(t, s.Problem, "%v %s", item.Place, s.Type)
		at := Milliseconds(s)
		require.GreaterOrEqual(t, at, last, "%v", item.Place)
		last = at
		require.False(t, ids[s.ID], "%v %s: the id is not unique", item.Place, s.Type)
		ids[s.ID] = true
		list = append(list, s)
	}
	b := r.Balance()
	assert.Equal(t, b.Records, b.Mapped+b.Kept+b.Total()+b.Unreadable+b.Held, "every record counts once: %+v", b)
	return list, b, failed
}

// Milliseconds returns the timestamp of a signal.
func Milliseconds(s *signal.Signal) float64 {
	ms, _ := s.Timestamp.Value().Float64()
	return ms
}

// File returns a file system with one file.
func File(name string, text []byte) fs.FS { return fstest.MapFS{name: {Data: text}} }

// Tell writes one line for each signal: the native line, the time since the first signal, the
// type, the correlation id, the payload, and the metadata that not every signal has.
func Tell(list []*signal.Signal) string {
	var b strings.Builder
	for _, s := range list {
		fmt.Fprintf(&b, "%3d %9.3f %s", s.Metadata.Member("native").IntOf("line"), (Milliseconds(s)-Milliseconds(list[0]))/1000, s.Type)
		if s.CorrelationID != nil {
			fmt.Fprintf(&b, " (%s)", *s.CorrelationID)
		}
		fmt.Fprintf(&b, " %s", s.Payload.AppendJSON(nil))
		rest := signal.NewObject(4)
		for name, v := range s.Metadata.Members() {
			switch name {
			case "native", "sessionId", "timeSource":
			default:
				rest.Add(name, v)
			}
		}
		if rest.Value().Len() > 0 {
			fmt.Fprintf(&b, " %s", rest.Value().AppendJSON(nil))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// TellBalance writes the counts of a balance that are not zero.
func TellBalance(b recording.Balance) string {
	var parts []string
	for _, c := range []struct {
		name string
		n    int
	}{
		{"records", b.Records},
		{"mapped", b.Mapped},
		{"kept", b.Kept},
		{"unreadable", b.Unreadable},
		{"held", b.Held},
		{"moved", b.Clamped},
		{"ahead", b.Ahead},
		{"repaired", b.Repaired},
		{"cut", b.Cut},
	} {
		if c.n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", c.name, c.n))
		}
	}
	text := strings.Join(parts, ", ") + "\n"
	if len(b.Skipped) > 0 {
		text += "skipped " + strings.TrimPrefix(fmt.Sprint(b.Skipped), "map") + "\n"
	}
	return text
}

// Story reads the recording whose files are the parts of a golden story, and tells its
// signals and balance. The first file is the main one. For a format that grows it also tells
// what the reading of a recording that is not final holds back, and checks [Prefixes].
func Story(t *testing.T, f recording.Format, in []txtar.File) []txtar.File {
	t.Helper()
	fsys := fstest.MapFS{}
	for _, file := range in {
		fsys[file.Name] = &fstest.MapFile{Data: file.Data}
	}
	final, balance := Read(t, f, fsys, in[0].Name, recording.Options{Final: true})
	told := Tell(final) + TellBalance(balance)
	if !f.Grows {
		return []txtar.File{{Name: "told", Data: []byte(told)}}
	}
	open, balance := Read(t, f, fsys, in[0].Name, recording.Options{})
	require.LessOrEqual(t, len(open), len(final))
	require.Equal(t, Tell(final[:len(open)]), Tell(open), "the signals of a recording that goes on")
	if path.Ext(in[0].Name) == ".jsonl" {
		Prefixes(t, f, fsys, in[0].Name)
	}
	return []txtar.File{
		{Name: "told", Data: []byte(told)},
		{Name: "goes on", Data: []byte(fmt.Sprintf("%d signals fewer\n", len(final)-len(open)) + TellBalance(balance))},
	}
}

// Prefixes checks, for a recording that grows, that the signals of each beginning of its main
// file, at the ends of lines and within some, are a beginning of the signals of the whole.
func Prefixes(t *testing.T, f recording.Format, fsys fs.FS, name string) {
	t.Helper()
	require.True(t, f.Grows)
	text, err := fs.ReadFile(fsys, name)
	require.NoError(t, err)
	whole, _ := Read(t, f, fsys, name, recording.Options{})
	lines := encode(whole)
	check := func(cut int) bool {
		got, balance, err := TryRead(t, f, Overlay{fsys, name, text[:cut]}, name, recording.Options{})
		part := encode(got)
		return assert.NoError(t, err) && assert.LessOrEqual(t, len(part), len(lines)) &&
			assert.Equal(t, lines[:len(part)], part, "%s: the first %d bytes (%+v)", name, cut, balance)
	}
	// A cut in each line of a long file would take seconds.
	step := 1 + len(text)>>14
	end, n := 0, 0
	for line := range bytes.Lines(text) {
		if n++; n%step == 0 && !check(end+len(line)/2) {
			return
		}
		if end += len(line); !check(end) {
			return
		}
	}
}

func encode(list []*signal.Signal) []string {
	lines := make([]string, 0, len(list))
	for _, s := range list {
		lines = append(lines, string(s.Append(nil)))
	}
	return lines
}

// Overlay is a file system in which one file has another content.
type Overlay struct {
	fs.FS
	Name string
	Data []byte
}

// Open opens a file of the file system, or the other content.
func (o Overlay) Open(name string) (fs.File, error) {
	if name == o.Name {
		return File(path.Base(name), o.Data).Open(path.Base(name))
	}
	return o.FS.Open(name)
}

// Benchmark measures the reading of a file of lines beside the decoding of the same lines by
// encoding/json, in one run. It reports the speed of both in MB/s, and the ratio.
func Benchmark(b *testing.B, f recording.Format, text []byte) {
	fsys := File("s.jsonl", text)
	var reading, decoding time.Duration
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		start := time.Now()
		for _, err := range f.Open(fsys, "s.jsonl", recording.Options{Final: true}).Items() {
			if err != nil {
				b.Fatal(err)
			}
		}
		reading += time.Since(start)
		b.StopTimer()
		start = time.Now()
		for line := range bytes.Lines(text) {
			var v any
			if err := json.Unmarshal(line, &v); err != nil {
				b.Fatal(err)
			}
		}
		decoding += time.Since(start)
		b.StartTimer()
	}
	mb := float64(len(text)) * float64(b.N) / 1e6
	b.ReportMetric(mb/decoding.Seconds(), "json-MB/s")
	b.ReportMetric(decoding.Seconds()/reading.Seconds(), "ratio")
}

// Count counts the signals of each type.
func Count(list []*signal.Signal) map[string]int {
	n := map[string]int{}
	for _, s := range list {
		n[s.Type]++
	}
	return n
}

// Real returns a folder of real recordings that stands beside a checkout of the module, and
// whether it is there. Dir is the path from the test's folder to the module's root.
func Real(root, dir string) (fs.FS, bool) {
	name := path.Join(root, "../shared/data/real-sessions", dir)
	if info, err := os.Stat(name); err != nil || !info.IsDir() {
		return nil, false
	}
	return os.DirFS(name), true
}
