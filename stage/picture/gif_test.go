package picture_test

import (
	"bytes"
	"image"
	"image/draw"
	"image/gif"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/stage/picture"
)

// walk yields n frames in which one figure walks and then stands still.
func walk(n, still int) iter.Seq[picture.Cell] {
	return func(yield func(picture.Cell) bool) {
		for i := range n + still {
			f := forge("#101826")
			f.At = time.Second
			f.Beams, f.Sounds = nil, nil
			f.Figures[1].X += float64(3 * min(i, n-1))
			if !yield(picture.Cell{Frame: f}) {
				return
			}
		}
	}
}

// TestAnimate writes animations and plays them: each image is the picture of its frame,
// within the precision of 255 colors, and has the right duration.
func TestAnimate(t *testing.T) {
	const pixels = 240
	for _, tt := range []struct {
		n, still, rate int
		images, time   int // distinct pictures, hundredths of a second
	}{
		{1, 0, 0, 1, 5},
		{9, 0, 30, 9, 30},
		{5, 10, 10, 5, 150},
		{80, 3, 50, 80, 166},
	} {
		var b bytes.Buffer
		require.NoError(t, picture.Animate(&b, walk(tt.n, tt.still), picture.GIFOptions{Pixels: pixels, Rate: tt.rate}))
		g, err := gif.DecodeAll(&b)
		require.NoErrorf(t, err, "%+v", tt)
		total := 0
		for _, d := range g.Delay {
			total += d
		}
		if len(g.Image) != tt.images || total != tt.time || g.LoopCount != 0 {
			t.Errorf("%+v: %d images in %d hundredths, %d loops", tt, len(g.Image), total, g.LoopCount)
		}
		canvas := image.NewRGBA(g.Image[0].Rect)
		next, stop := iter.Pull(walk(tt.n, tt.still))
		for i, img := range g.Image {
			draw.Draw(canvas, img.Rect, img, img.Rect.Min, draw.Over)
			c, _ := next()
			d, err := picture.DiffImages(picture.Draw(c.Frame, picture.Options{}).Image(pixels), canvas, nil, 40)
			require.NoError(t, err)
			if d.Share > .002 {
				t.Errorf("%+v: frame %d: %d of %d pixels differ by more than 40, the most by %d", tt, i, d.Differ, d.Compared, d.Most)
			}
		}
		stop()
	}
}

// TestAnimateSameColors checks that unchanged areas keep their colors: from one frame to
// the next, only the box of the walker is written.
func TestAnimateSameColors(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, picture.Animate(&b, walk(4, 0), picture.GIFOptions{Pixels: 480, Once: true}))
	g, err := gif.DecodeAll(&b)
	require.NoError(t, err)
	if g.LoopCount != -1 {
		t.Errorf("loop count %d, want -1 for once", g.LoopCount)
	}
	for i, img := range g.Image[1:] {
		if r := img.Rect; r.Dx() > 130 || r.Dy() > 130 {
			t.Errorf("frame %d writes %v", i+1, r)
		}
	}
}

// TestAnimateCaptions checks that the caption of a frame replaces the address, and that a
// frame without one has the address of the animation.
func TestAnimateCaptions(t *testing.T) {
	const pixels = 960
	captions := []string{"812", "812+50ms", ""}
	var cells []picture.Cell
	for _, c := range captions {
		cells = append(cells, picture.Cell{Frame: forge("#101826"), Caption: c})
	}
	var b bytes.Buffer
	opt := picture.Options{Title: "A day at the forge", Address: "somewhere", Clock: true}
	require.NoError(t, picture.Animate(&b, slices.Values(cells), picture.GIFOptions{Options: opt, Pixels: pixels}))
	g, err := gif.DecodeAll(&b)
	if err != nil || len(g.Image) != len(cells) {
		t.Fatalf("%d images, %v", len(g.Image), err)
	}
	canvas := image.NewRGBA(g.Image[0].Rect)
	for i, img := range g.Image {
		draw.Draw(canvas, img.Rect, img, img.Rect.Min, draw.Over)
		want := opt
		if captions[i] != "" {
			want.Address = captions[i]
		}
		d, err := picture.DiffImages(picture.Draw(cells[i].Frame, want).Image(pixels), canvas, nil, 60)
		require.NoError(t, err)
		if d.Differ > 40 {
			t.Errorf("frame %d: %d pixels differ, the most by %d", i, d.Differ, d.Most)
		}
		if i > 0 && img.Rect.Min.Y < canvas.Rect.Dy()-40 {
			t.Errorf("frame %d writes %v, not only its line", i, img.Rect)
		}
	}
}

// TestAnimateErrors animates no frames, frames of two shapes, and to writers that fail
// after any number of bytes.
func TestAnimateErrors(t *testing.T) {
	assert.ErrorIs(t, picture.Animate(&bytes.Buffer{}, slices.Values[[]picture.Cell](nil), picture.GIFOptions{}), picture.ErrNoFrames)
	other := forge("")
	other.Scene.Width = 300
	shapes := []picture.Cell{{Frame: forge("")}, {Frame: other}, {Frame: forge("")}}
	var b bytes.Buffer
	require.NoError(t, picture.Animate(&b, slices.Values(shapes), picture.GIFOptions{Pixels: 64}))
	if g, err := gif.DecodeAll(bytes.NewReader(b.Bytes())); err != nil || len(g.Image) != 3 {
		t.Errorf("two shapes: %v", err)
	}
	for n := 0; n < b.Len(); n += 97 {
		err := picture.Animate(&failing{after: n}, slices.Values(shapes), picture.GIFOptions{Pixels: 64})
		assert.ErrorIsf(t, err, errFull, "after %d bytes: err = %v, want %v", n, err, errFull)
	}
}

// An animation of so many frames that they are written as they come has the error of its writer,
// wherever that fails.
func TestLongAnimateErrors(t *testing.T) {
	opt := picture.GIFOptions{Pixels: 16}
	var b bytes.Buffer
	require.NoError(t, picture.Animate(&b, walk(66, 0), opt))
	for _, n := range []int{0, b.Len() / 2, b.Len() - 40, b.Len() - 2, b.Len() - 1} {
		require.ErrorIs(t, picture.Animate(&failing{after: n}, walk(66, 0), opt), errFull, "after %d of %d bytes", n, b.Len())
	}
}
