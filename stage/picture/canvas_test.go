package picture_test

import (
	"image/color"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"

	"github.com/sajou-dev/sajou-go/stage/picture"
)

// A canvas draws its shapes in their order, and leaves out those with a number that cannot
// be drawn and lines of less than two points.
func TestCanvas(t *testing.T) {
	red := color.NRGBA{255, 0, 0, 255}
	c := picture.NewCanvas(200, "")
	c.Rect(1, 2, 30, 40, 5, red)
	c.Frame(2, 3, 31, 41, 6, 1.5, red)
	c.Bar(3, 4, 32, 42, 0, red)
	c.Dot(50, 60, 7, red)
	c.Stroke(1, 2, 3, 4, 2.5, red)
	c.Path([][2]float64{{1, 2}, {3, 4}}, false, 2, red)
	c.Path([][2]float64{{1, 2}, {3, 4}, {5, 0}}, true, 2, red)
	odd := math.NaN()
	c.Rect(odd, 2, 30, 40, 5, red)
	c.Frame(2, 3, 31, odd, 6, 1.5, red)
	c.Dot(50, 60, math.Inf(1), red)
	c.Stroke(1, 1e9, 3, 4, 2.5, red)
	c.Path(nil, false, 2, red)
	c.Path([][2]float64{{1, 2}}, true, 2, red)
	c.Path([][2]float64{{1, 2}, {odd, 4}, {5, 0}}, true, 2, red)
	c.Path([][2]float64{{1, 2}, {3, 4}, {5, odd}}, false, 2, red)
	c.Omit(3)
	d := c.Finish(100)
	_, shapes, _ := strings.Cut(string(d.AppendSVG(nil)), "<defs>")
	if shapes == "" {
		shapes = string(d.AppendSVG(nil))
	}
	_, shapes, _ = strings.Cut(shapes, "<rect width=")
	const want = `"200" height="100" fill="#090d15"/>
<rect x="1" y="2" width="30" height="40" rx="5" fill="#f00"/>
<rect x="2" y="3" width="31" height="41" rx="6" fill="none" stroke="#f00" stroke-width="1.5"/>
<rect x="3" y="4" width="32" height="42" fill="#f00"/>
<circle cx="50" cy="60" r="7" fill="#f00"/>
<line x1="1" y1="2" x2="3" y2="4" stroke="#f00" stroke-width="2.5" stroke-linecap="round" stroke-linejoin="round"/>
<path d="M1 2L3 4" fill="none" stroke="#f00" stroke-width="2" stroke-linecap="round" stroke-linejoin="round"/>
<path d="M1 2L3 4L5 0Z" fill="#f00"/>
</svg>
`
	if diff := cmp.Diff(want, shapes); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	assert.Equal(t, []picture.Box{{Kind: picture.BoxBar, X: 3, Y: 4, W: 32, H: 42}}, d.Boxes())
	assert.Equal(t, 3, d.Omitted())
}

// A line is written at its beginning, its middle or its end, and cut to its greatest width.
func TestCanvasTexts(t *testing.T) {
	const size, text = 10, "hello"
	wide := picture.TextWidth(text, size, true)
	write := func(l picture.CanvasText) picture.Box {
		c := picture.NewCanvas(200, "")
		l.Size, l.Bold, l.Color = size, true, c.Colors.Text
		box := c.Write(l)
		if boxes := c.Finish(50).Boxes(); box.Text != "" {
			assert.Equal(t, []picture.Box{box}, boxes)
		} else {
			assert.Empty(t, boxes)
		}
		return box
	}
	for align, left := range map[picture.Align]float64{picture.AlignStart: 100, picture.AlignMiddle: 100 - wide/2, picture.AlignEnd: 100 - wide} {
		got := write(picture.CanvasText{Text: "  hello\n", X: 100, Y: 20, Most: wide, Align: align})
		assert.Equal(t, picture.Box{Kind: picture.BoxText, Text: text, X: left, Y: 12, W: wide, H: size}, got)
	}
	cut := write(picture.CanvasText{Text: text, X: 10, Y: 20, Most: wide - 0.01})
	assert.True(t, strings.HasSuffix(cut.Text, "…"), cut.Text)
	assert.Less(t, cut.W, wide)
	for _, nothing := range []picture.CanvasText{{Text: " ", Most: 90}, {Text: text, Most: 1}, {Text: text, X: math.NaN(), Most: 90}, {Text: text, Y: math.Inf(1), Most: 90}} {
		assert.Equal(t, picture.Box{}, write(nothing))
	}
}

// The sizes of a canvas and the shares of a color are bounded.
func TestCanvasBounds(t *testing.T) {
	for width, want := range map[float64]float64{15: 16, 16: 16, 17: 17, 4 * 8192: 4 * 8192, 4*8192 + 1: 4 * 8192, math.NaN(): 16} {
		assert.Equal(t, want, picture.NewCanvas(width, "").Width())
	}
	for height, want := range map[float64]float64{0: 1, 1: 1, 2: 2, 1e6: 1e6, 2e6: 1e6} {
		_, got := picture.NewCanvas(100, "").Finish(height).Size()
		assert.Equal(t, want, got)
	}
	c, other := color.NRGBA{200, 100, 0, 200}, color.NRGBA{100, 0, 200, 200}
	assert.Equal(t, c, picture.Mix(c, other, -1))
	assert.Equal(t, other, picture.Mix(c, other, 2))
	assert.Equal(t, c, picture.Fade(c, 2))
	assert.Zero(t, picture.Fade(c, -1).A)
	for _, bold := range []bool{false, true} {
		assert.Equal(t, picture.TextWidth("ab", 10, bold), picture.TextWidth("\tab ", 10, bold))
	}
	assert.Greater(t, picture.TextWidth("ab", 10, true), picture.TextWidth("ab", 10, false))
}
