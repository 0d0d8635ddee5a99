package director_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/director/explore"
	"github.com/sajou-dev/sajou-go/internal/golden"
	"github.com/sajou-dev/sajou-go/signal"
)

// TestMeterCounts shows the measurements of the plays in testdata/meter: each script is
// lines of a story without its checks, and a line "again" begins another session.
func TestMeterCounts(t *testing.T) {
	golden.Tell(t, "testdata/meter/*.txtar", func(t *testing.T, files map[string]string) string {
		var m explore.Meter
		for script := range strings.SplitSeq(files["script"], "again\n") {
			var records []signal.Record
			var s director.State
			keep := func(more []signal.Record, err error) {
				require.NoError(t, err)
				play(t, &s, more)
				records = append(records, more...)
			}
			keep(s.Start(parse(t, files["episode.json"]), director.Opening{}))
			turn := 0
			for line := range strings.Lines(script) {
				verb, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
				switch verb {
				case "turn":
					turn++
					_, more, err := s.Guide(director.TurnInput{Turn: turn, Text: rest})
					keep(more, err)
				case "says":
					_, more, err := s.Respond(director.Response{Turn: turn, Text: rest})
					keep(more, err)
				case "expire":
					_, more, err := s.Expire("")
					keep(more, err)
				case "choose":
					point, option, _ := strings.Cut(rest, " ")
					_, more, err := s.Choose(point, option)
					keep(more, err)
				}
			}
			require.NoError(t, m.Session(func(yield func(signal.Record) bool) {
				for _, r := range records {
					if !yield(r) {
						return
					}
				}
			}))
		}
		var out strings.Builder
		for _, r := range m.Reports() {
			beats, choices := r.Beats, r.Choices
			r.Beats, r.Choices, r.Digest = nil, nil, [32]byte{}
			fmt.Fprintf(&out, "%+v\n", r)
			for _, b := range beats {
				fmt.Fprintf(&out, "%+v\n", b)
			}
			for _, c := range choices {
				fmt.Fprintf(&out, "%+v\n", c)
			}
		}
		return out.String()
	})
}
