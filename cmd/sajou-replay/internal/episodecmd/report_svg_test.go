package episodecmd

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/director/explore"
)

// TestReportTextsHold: whatever the names and the viewer's font are, each text of a chart is
// fitted and clipped to a box that lies in the chart and touches no other text.
func TestReportTextsHold(t *testing.T) {
	name := rapid.OneOf(rapid.SampledFrom([]string{"WWWWWWWWWWWWWWWWWWWWWWWWWWWWWW", "a", "日本語日本語日本語日本語日本語日本語日本語"}), rapid.String())
	count := rapid.IntRange(0, 1_000_000)
	rapid.Check(t, func(t *rapid.T) {
		r := explore.Report{Episode: name.Draw(t, "episode"), Sessions: count.Draw(t, "sessions"), Turns: count.Draw(t, "turns")}
		rate := func() explore.Rate {
			of := count.Draw(t, "of")
			return explore.Rate{N: rapid.IntRange(0, of).Draw(t, "n"), Of: of}
		}
		r.Beats = []explore.BeatReport{{Beat: name.Draw(t, "beat"), Landed: rate(), Median: -200, P95: 200, NeverEligible: rapid.Bool().Draw(t, "never")}}
		r.Choices = []explore.ChoiceReport{{ChoicePoint: name.Draw(t, "point"), Offered: 9, Options: []string{name.Draw(t, "option")}, Selected: []int{4}}}
		var svg bytes.Buffer
		require.NoError(t, writeReportSVG(&svg, []explore.Report{r, r}))

		type box struct{ x, y, w, h int }
		var boxes []box
		depth := 0
		for d := xml.NewDecoder(&svg); ; {
			token, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err)
			switch e := token.(type) {
			case xml.StartElement:
				at := map[string]int{}
				for _, a := range e.Attr {
					at[a.Name.Local], _ = strconv.Atoi(a.Value)
				}
				switch e.Name.Local {
				case "svg":
					if depth++; depth == 2 {
						boxes = append(boxes, box{at["x"], at["y"], at["width"], at["height"]})
					}
				case "text":
					require.Equal(t, 2, depth, "a text is not clipped")
					require.Equal(t, boxes[len(boxes)-1].w, at["textLength"], "a text is not fitted to its box")
				}
			case xml.EndElement:
				if e.Name.Local == "svg" {
					depth--
				}
			}
		}
		require.Greater(t, len(boxes), 20)
		for i, a := range boxes {
			require.True(t, a.x >= 0 && a.x+a.w <= chartWidth, "%v is not in the chart", a)
			for _, b := range boxes[:i] {
				require.False(t, a.x < b.x+b.w && b.x < a.x+a.w && a.y < b.y+b.h && b.y < a.y+a.h, "%v and %v overlap", a, b)
			}
		}
	})
}
