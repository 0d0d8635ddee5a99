package picture_test

import (
	"image"
	"image/color"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/stage/picture"
)

// pixels returns an image of one line, with counts of colors.
func pixels(counts ...pixel) *image.RGBA {
	var pix []uint8
	for _, p := range counts {
		for range p.n {
			pix = append(pix, p.c.R, p.c.G, p.c.B, 255)
		}
	}
	return &image.RGBA{Pix: pix, Stride: len(pix), Rect: image.Rect(0, 0, len(pix)/4, 1)}
}

type pixel struct {
	c color.RGBA
	n int
}

func rgb(r, g, b uint8) color.RGBA { return color.RGBA{r, g, b, 255} }

// cube is the even part of each palette.
func cube() (all []color.RGBA) {
	for _, r := range []uint8{0, 85, 170, 255} {
		for _, g := range []uint8{0, 85, 170, 255} {
			for _, b := range []uint8{0, 85, 170, 255} {
				all = append(all, rgb(r, g, b))
			}
		}
	}
	return all
}

// A palette is the cube, then the most frequent colors, those as frequent by value, and
// then the means of the boxes.
func TestPalette(t *testing.T) {
	assert.Equal(t, cube(), picture.Palette(256), "no image")

	img := pixels(pixel{rgb(9, 1, 2), 2}, pixel{rgb(200, 100, 50), 5}, pixel{rgb(1, 2, 3), 2}, pixel{rgb(9, 1, 2), 1}, pixel{rgb(1, 200, 3), 3})
	want := append(cube(), rgb(200, 100, 50), rgb(1, 200, 3), rgb(9, 1, 2), rgb(1, 2, 3))
	// The bins differ, so with room each is a box of its own. Boxes are cut in the widest
	// channel of the box with the widest spread.
	boxes := []color.RGBA{rgb(1, 2, 3), rgb(1, 200, 3), rgb(200, 100, 50), rgb(9, 1, 2)}
	assert.ElementsMatch(t, append(want, boxes...), picture.Palette(256, img))
	assert.Equal(t, want, picture.Palette(256, img)[:len(want)])
	// With room for two boxes, the green one is apart.
	two := picture.Palette(len(want)+2, img)
	require.Len(t, two, len(want)+2)
	assert.Equal(t, want, two[:len(want)])
	// With room for one it is the mean of all, rounded.
	one := picture.Palette(len(want)+1, img)
	assert.Equal(t, append(want, rgb(79, 85, 21)), one)

	// 81 colors are more than are kept unchanged: the least frequent one is left out.
	var many []pixel
	for i := range 81 {
		many = append(many, pixel{rgb(uint8(3*i), uint8(255-3*i), uint8(i%2*128)), 100 - i})
	}
	got := picture.Palette(64+80+1, pixels(many...))
	require.Len(t, got, 64+80+1)
	for i, p := range many[:80] {
		assert.Equalf(t, p.c, got[64+i], "color %d", i)
	}
}

// Colors of several images are counted together.
func TestPaletteOfImages(t *testing.T) {
	red, blue := pixels(pixel{rgb(250, 0, 0), 3}), pixels(pixel{rgb(0, 0, 250), 4})
	more := pixels(pixel{rgb(250, 0, 0), 2})
	assert.Equal(t, []color.RGBA{rgb(0, 0, 250), rgb(250, 0, 0)}, picture.Palette(256, red, blue)[64:66])
	assert.Equal(t, []color.RGBA{rgb(250, 0, 0), rgb(0, 0, 250)}, picture.Palette(256, red, blue, more)[64:66])
}
