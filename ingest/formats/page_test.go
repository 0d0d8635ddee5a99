package formats_test

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/ingest/formats"
	"github.com/sajou-dev/sajou-go/ingest/recording"
	"github.com/sajou-dev/sajou-go/internal/recordingtest"
)

var update = flag.Bool("update", false, "rewrite the signals in docs/import.md")

// example is a recording in the page, whose fence names format and file, and the signals below it.
var example = regexp.MustCompile("(?s)(```[a-z]+ ([a-z0-9-]+) (\\S+)\n(.*?)```\n```text\n)(.*?)```\n")

// The examples of the page are recognized as what they are, and their signals are those
// that the page shows.
func TestImportPage(t *testing.T) {
	const name = "../../docs/import.md"
	page, err := os.ReadFile(name)
	require.NoError(t, err)
	n := 0
	got := example.ReplaceAllStringFunc(string(page), func(text string) string {
		n++
		part := example.FindStringSubmatch(text)
		file, native := part[3], []byte(part[4])
		found := formats.Detect(recording.NewSample(file, native, true))
		require.Len(t, found, 1, "%s: %s", file, formats.Describe(found))
		require.Equal(t, part[2], found[0].Format.Name)
		if found[0].Format.Map == nil {
			return text
		}
		list, _ := recordingtest.Read(t, found[0].Format, recordingtest.File(file, native), file, recording.Options{Final: true})
		var b strings.Builder
		for _, s := range list {
			b.WriteString(s.Type)
			if s.CorrelationID != nil {
				fmt.Fprintf(&b, " (%s)", *s.CorrelationID)
			}
			fmt.Fprintf(&b, " %s\n", s.Payload.AppendJSON(nil))
		}
		return part[1] + b.String() + "```\n"
	})
	assert.Equal(t, strings.Count(string(page), "```text\n"), n, "each block of signals stands below a recording")
	if *update {
		require.NoError(t, os.WriteFile(name, []byte(got), 0o644))
		return
	}
	assert.Equal(t, string(page), got, "run go test ./ingest/formats -update")
}
