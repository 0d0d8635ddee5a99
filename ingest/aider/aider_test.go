package aider_test

import (
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/sajou-dev/sajou-go/ingest/aider"
	"github.com/sajou-dev/sajou-go/internal/golden"
	"github.com/sajou-dev/sajou-go/internal/recordingtest"
)

func TestStories(t *testing.T) {
	golden.Run(t, "testdata/*.txtar", func(t *testing.T, in []txtar.File) []txtar.File {
		recordingtest.Prefixes(t, aider.Format(), recordingtest.File(in[0].Name, in[0].Data), in[0].Name)
		return recordingtest.Story(t, aider.Format(), in)
	})
}

// FuzzRead reads a file of any text.
func FuzzRead(f *testing.F) {
	recordingtest.Seeds(f, "testdata/*.txtar")
	f.Fuzz(func(t *testing.T, text []byte) { recordingtest.Fuzzed(t, aider.Format(), "recording", text) })
}
