package langfuse_test

import (
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/sajou-dev/sajou-go/ingest/langfuse"
	"github.com/sajou-dev/sajou-go/ingest/recording"
	"github.com/sajou-dev/sajou-go/internal/golden"
	"github.com/sajou-dev/sajou-go/internal/recordingtest"
)

func TestStories(t *testing.T) {
	golden.Run(t, "testdata/*.txtar", func(t *testing.T, in []txtar.File) []txtar.File {
		list, b := recordingtest.Read(t, langfuse.Format(), recordingtest.File(in[0].Name, in[0].Data), in[0].Name, recording.Options{Final: true, MaxBad: 1})
		return []txtar.File{{Name: "told", Data: []byte(recordingtest.Tell(list) + recordingtest.TellBalance(b))}}
	})
}

func FuzzRead(f *testing.F) {
	recordingtest.Seeds(f, "testdata/*.txtar")
	f.Fuzz(func(t *testing.T, text []byte) { recordingtest.Fuzzed(t, langfuse.Format(), "s.json", text) })
}
