package picture_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/stage"
	"github.com/sajou-dev/sajou-go/stage/picture"
	"github.com/sajou-dev/sajou-go/stage/scene"
)

// No speech overwrites another, however many figures speak at one place: each speech in
// the text is complete, or is not there.
func TestSpeechIsCompleteOrAbsent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := &stage.Frame{}
		whole := map[string]bool{}
		for i := range rapid.IntRange(1, 12).Draw(t, "figures") {
			text := strings.Repeat(fmt.Sprint(i%10), rapid.IntRange(1, 12).Draw(t, "length"))
			whole[text] = true
			f.Figures = append(f.Figures, stage.Figure{
				ID: fmt.Sprint("f", i), Look: scene.Look{Figure: "person"}, Visible: true, Opacity: 1, Scale: 1, Text: text, TextOpacity: 1,
				X: rapid.Float64Range(0, 960).Draw(t, "x"), Y: rapid.Float64Range(0, 540).Draw(t, "y"),
			})
		}
		cols, rows := rapid.IntRange(20, 60).Draw(t, "cols"), rapid.IntRange(1, 12).Draw(t, "rows")
		text := picture.Terminal(f, cols, rows, false)
		for _, part := range strings.Split(text, "“")[1:] {
			said, _, ok := strings.Cut(part, "”")
			require.True(t, ok, "a speech without an end in\n%s", text)
			require.True(t, whole[said], "%q is not the whole of a speech in\n%s", said, text)
		}
		require.Equal(t, strings.Count(text, "“"), strings.Count(text, "”"), text)
	})
}

// A scene of no size is shown as one of the usual size.
func TestTerminalOfNoSize(t *testing.T) {
	shown := func(w, h float64) string {
		f := &stage.Frame{Scene: &scene.Scene{Width: w, Height: h}}
		f.Figures = []stage.Figure{{ID: "a", Look: scene.Look{Figure: "person"}, Visible: true, Opacity: 1, Scale: 1, X: 480, Y: 270}}
		return picture.Terminal(f, 40, 10, false)
	}
	usual := shown(960, 540)
	require.Contains(t, usual, "◉")
	for _, size := range [][2]float64{{0, 540}, {960, 0}, {-1, 540}, {960, -1}, {math.NaN(), 540}, {960, math.Inf(1)}} {
		require.Equal(t, usual, shown(size[0], size[1]), "%v", size)
	}
}
