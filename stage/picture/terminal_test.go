package picture_test

import (
	"fmt"
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
