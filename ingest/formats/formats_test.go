package formats_test

import (
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/ingest/formats"
	"github.com/sajou-dev/sajou-go/ingest/recording"
	"github.com/sajou-dev/sajou-go/internal/recordingtest"
)

func TestFormats(t *testing.T) {
	names := formats.Names()
	unique := slices.Compact(slices.Sorted(slices.Values(names)))
	assert.Len(t, unique, len(names))
	for _, f := range formats.All() {
		assert.NotEmpty(t, f.Title, f.Name)
		assert.NotEmpty(t, f.Recognized, f.Name)
		assert.NotNil(t, f.Detect, f.Name)
		assert.Equal(t, f.Name == formats.Sajou, f.Map == nil, f.Name)
		assert.Regexp(t, `^[a-z][a-z0-9]*(-[a-z0-9]+)*$`, f.Name)
		assert.Empty(t, f.Detect(recording.NewSample("empty", nil, true)), f.Name)
		assert.Empty(t, f.Detect(recording.NewFolderSample("empty", nil)), f.Name)
	}
	_, known := formats.Named("nothing")
	assert.False(t, known)
}

// byFolder is the format of all real recordings in a folder.
var byFolder = map[string]string{
	"atif": "atif", "cline": "cline", "mini-swe-agent": "mini-swe-agent", "openhands": "openhands", "swe-agent": "swe-agent",
}

// No real recording has two candidates, and each has the right one.
func TestDetectReal(t *testing.T) {
	files, is := recordingtest.Real("../..", ".")
	if !is {
		return
	}
	seen := map[string]int{}
	require.NoError(t, fs.WalkDir(files, ".", func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := fs.ReadFile(files, p)
		if err != nil {
			return err
		}
		got := formats.Detect(recording.NewSample(p, text[:min(len(text), recording.SampleBytes)], len(text) <= recording.SampleBytes))
		folder, rest, _ := strings.Cut(p, "/")
		assert.LessOrEqual(t, len(got), 1, "%s: %s", p, formats.Describe(got))
		if want := byFolder[folder]; want != "" && !strings.Contains(rest, "/") {
			require.Len(t, got, 1, p)
			assert.Equal(t, want, got[0].Format.Name, p)
			seen[folder]++
		}
		return nil
	}))
	assert.Len(t, seen, len(byFolder))
}

func TestDetect(t *testing.T) {
	for _, tt := range []struct{ name, head, want string }{
		{"s.jsonl", `{"id":"1","type":"x","timestamp":1,"source":"a","payload":{}}` + "\n", formats.Sajou},
	} {
		got := formats.Detect(recording.NewSample(tt.name, []byte(tt.head), true))
		require.Len(t, got, 1, formats.Describe(got))
		assert.Equal(t, tt.want, got[0].Format.Name)
	}
}
