package picture_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/sajou-dev/sajou-go/stage"
	"github.com/sajou-dev/sajou-go/stage/picture"
	"github.com/sajou-dev/sajou-go/stage/scene"
)

// TestStrip: the parts of a drawing are those of its own document, and only the first
// drawing with a figure or a letter defines it.
func TestStrip(t *testing.T) {
	draw := func(label string) *picture.Drawing {
		return picture.Draw(&stage.Frame{Figures: []stage.Figure{{
			ID: "a", Label: label, Look: scene.Look{Figure: "robot", Size: 64, Color: "#5aa9e6"}, X: 200, Y: 200, Visible: true, Opacity: 1, Scale: 1,
		}}}, picture.Options{})
	}
	var s picture.Strip
	defs, shapes := s.Append(draw("ab"))
	own := draw("ab").AppendSVG(nil)
	assert.Contains(t, string(own), string(defs))
	assert.True(t, bytes.HasSuffix(own, append(bytes.Clone(shapes), "</svg>\n"...)))
	assert.Equal(t, 2, bytes.Count(defs, []byte(`<path id="go`)))
	defs, shapes = s.Append(draw("ab"))
	assert.Empty(t, defs)
	assert.NotEmpty(t, shapes)
	defs, _ = s.Append(draw("abc"))
	assert.Equal(t, 1, bytes.Count(defs, []byte(" id=")), "the letter c alone: %s", defs)
}
