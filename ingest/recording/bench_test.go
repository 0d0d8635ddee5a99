package recording_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/sajou-dev/sajou-go/ingest/recording"
)

// transcript is some text of the toy format, with records of the size that transcripts have.
func transcript(bytes int) string {
	var b strings.Builder
	output := strings.Repeat("the quick brown fox jumps over the lazy dog\\n", 30)
	for i := 0; b.Len() < bytes; i++ {
		fmt.Fprintf(&b, `{"id":"p%d","t":%d,"do":"prompt","text":"find the file number %d"}`+"\n", i, i, i)
		fmt.Fprintf(&b, `{"id":"c%d","t":%d,"do":"call","call":"k%d","input":{"pattern":"x%d","path":"/src","flags":["-r","-n"]}}`+"\n", i, i, i, i)
		fmt.Fprintf(&b, `{"id":"r%d","t":%d,"do":"result","call":"k%d","output":{"stdout":"%s","code":0}}`+"\n", i, i, i, output)
	}
	return b.String()
}

// Reading a recording, and as a measure the decoding of the same bytes alone.
func BenchmarkReading(b *testing.B) {
	text := transcript(4 << 20)
	b.Run("reading", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		files := fstest.MapFS{"f": {Data: []byte(text)}}
		for b.Loop() {
			for _, err := range toy.Open(files, "f", recording.Options{}).Items() {
				if err != nil {
					b.Fatal(err)
				}
			}
		}
	})
	b.Run("unmarshal", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			for line := range strings.Lines(text) {
				var v any
				if err := json.Unmarshal([]byte(line), &v); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
}
