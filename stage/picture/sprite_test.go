package picture_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/stage"
	"github.com/sajou-dev/sajou-go/stage/picture"
)

// TestSpritesKeepPixels: a rasterizer that has painted the figures and texts of a picture
// before, there or elsewhere, gives the same pixels as one that paints each shape.
func TestSpritesKeepPixels(t *testing.T) {
	most := 0
	rapid.Check(t, func(t *rapid.T) {
		kept, plain := picture.NewRasterizer(), picture.NewPlainRasterizer()
		f := forge("#101826")
		if rapid.Bool().Draw(t, "bright") {
			f = forge("ivory")
		}
		f.Figures = append(f.Figures, everyone().Figures...)
		width := rapid.SampledFrom([]int{0, 333, 700}).Draw(t, "width")
		for range 5 {
			for i := range f.Figures {
				g := &f.Figures[i]
				switch rapid.IntRange(0, 9).Draw(t, "what") {
				case 0, 1, 2: // to another place, by whole pixels or not, in the picture or not
					g.X += rapid.SampledFrom([]float64{1, 37, -200, .5, 1. / 3}).Draw(t, "x")
					g.Y += rapid.SampledFrom([]float64{1, -11, 100, .25, -400}).Draw(t, "y")
				case 3:
					g.Opacity = rapid.SampledFrom([]float64{1, .999, .5, .01}).Draw(t, "opacity")
				case 4:
					g.Rotation = rapid.SampledFrom([]float64{0, 30, -90}).Draw(t, "rotation")
				case 5:
					g.Text, g.TextOpacity = "words …", rapid.SampledFrom([]float64{1, .5}).Draw(t, "text")
				}
			}
			d := picture.Draw(f, picture.Options{Clock: true})
			want, got := plain.Image(d, width), kept.Image(d, width)
			if !bytes.Equal(want.Pix, got.Pix) {
				diff, err := picture.DiffImages(want, got, nil, 0)
				require.NoError(t, err)
				t.Fatalf("%d pixels differ, by up to %d", diff.Differ, diff.Most)
			}
		}
		most = max(most, kept.Sprites())
	})
	require.Greater(t, most, 20, "hardly any sprite was used")
}

// TestSpritesAreBounded paints pictures that have nothing in common: what was painted long
// ago is dropped, and what is painted in each is kept.
func TestSpritesAreBounded(t *testing.T) {
	r := picture.NewRasterizer()
	f := &stage.Frame{Figures: crowd(100).Figures}
	for i := range 120 {
		for j := range f.Figures[1:] {
			f.Figures[1+j].X += .37 * float64(1+i%3)
			f.Figures[1+j].Scale = 1 + float64(i)/1000
		}
		r.Image(picture.Draw(f, picture.Options{}), 0)
		require.LessOrEqual(t, r.Looks(), 2*picture.MostLooks)
		if i > 2 {
			require.Positive(t, r.Sprites(), "the sprites of the figure that stands still are gone after %d pictures", i)
		}
	}
}
