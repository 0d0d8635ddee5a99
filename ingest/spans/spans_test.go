package spans_test

import (
	"fmt"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/sajou-dev/sajou-go/ingest/flatspans"
	"github.com/sajou-dev/sajou-go/ingest/recording"
	"github.com/sajou-dev/sajou-go/internal/golden"
	"github.com/sajou-dev/sajou-go/internal/recordingtest"
)

// The stories are lists of spans, whose format adds least of its own.
func TestStories(t *testing.T) {
	golden.Run(t, "testdata/*.txtar", func(t *testing.T, in []txtar.File) []txtar.File {
		list, b := recordingtest.Read(t, flatspans.Format(), recordingtest.File(in[0].Name, in[0].Data), in[0].Name, recording.Options{Final: true, MaxBad: 1})
		told := recordingtest.Tell(list) + recordingtest.TellBalance(b)
		if b.Sorted > 0 {
			told += fmt.Sprintf("sorted %d, by %v\n", b.Sorted, b.MaxSorted)
		}
		for _, note := range b.Notes {
			told += "note: " + note + "\n"
		}
		return []txtar.File{{Name: "told", Data: []byte(told)}}
	})
}
