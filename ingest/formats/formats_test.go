package formats_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/ingest/formats"
	"github.com/sajou-dev/sajou-go/ingest/recording"
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

func TestDetect(t *testing.T) {
	for _, tt := range []struct{ name, head, want string }{
		{"s.jsonl", `{"id":"1","type":"x","timestamp":1,"source":"a","payload":{}}` + "\n", formats.Sajou},
	} {
		got := formats.Detect(recording.NewSample(tt.name, []byte(tt.head), true))
		require.Len(t, got, 1, formats.Describe(got))
		assert.Equal(t, tt.want, got[0].Format.Name)
	}
}
