package cloudevents_test

import (
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/sajou-dev/sajou-go/ingest/cloudevents"
	"github.com/sajou-dev/sajou-go/internal/golden"
	"github.com/sajou-dev/sajou-go/internal/recordingtest"
)

func TestStories(t *testing.T) {
	golden.Run(t, "testdata/*.txtar", func(t *testing.T, in []txtar.File) []txtar.File {
		return recordingtest.Story(t, cloudevents.Format(), in)
	})
}

func FuzzRead(f *testing.F) {
	recordingtest.Seeds(f, "testdata/*.txtar")
	f.Fuzz(func(t *testing.T, text []byte) {
		recordingtest.Fuzzed(t, cloudevents.Format(), "events.jsonl", text)
	})
}
