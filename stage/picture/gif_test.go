package picture_test

import (
	"bytes"
	"errors"
	"image"
	"image/draw"
	"image/gif"
	"iter"
	"slices"
	"testing"
	"time"

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

// TestAnimate writes animations and plays them: each frame is, as far as 255
// colors go, the picture of its frame, for the right time.
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
		if err := picture.Animate(&b, walk(tt.n, tt.still), picture.Animation{Pixels: pixels, Rate: tt.rate}); err != nil {
			t.Fatal(err)
		}
		g, err := gif.DecodeAll(&b)
		if err != nil {
			t.Fatalf("%+v: %v", tt, err)
		}
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
			if err != nil {
				t.Fatal(err)
			}
			if d.Share > .002 {
				t.Errorf("%+v: frame %d: %d of %d pixels differ by more than 40, the most by %d", tt, i, d.Differ, d.Compared, d.Most)
			}
		}
		stop()
	}
}

// TestAnimateSameColors shows that what does not change keeps its color: from
// one frame to the next, only the box of the walker is written.
func TestAnimateSameColors(t *testing.T) {
	var b bytes.Buffer
	if err := picture.Animate(&b, walk(4, 0), picture.Animation{Pixels: 480, Once: true}); err != nil {
		t.Fatal(err)
	}
	g, err := gif.DecodeAll(&b)
	if err != nil {
		t.Fatal(err)
	}
	if g.LoopCount != -1 {
		t.Errorf("loop count %d, want -1 for once", g.LoopCount)
	}
	for i, img := range g.Image[1:] {
		if r := img.Rect; r.Dx() > 130 || r.Dy() > 130 {
			t.Errorf("frame %d writes %v", i+1, r)
		}
	}
}

// TestAnimateCaptions finds the caption of each frame where its address would
// stand, and the animation's own address where a frame has none.
func TestAnimateCaptions(t *testing.T) {
	const pixels = 960
	captions := []string{"812", "812+50ms", ""}
	var cells []picture.Cell
	for _, c := range captions {
		cells = append(cells, picture.Cell{Frame: forge("#101826"), Caption: c})
	}
	var b bytes.Buffer
	opt := picture.Options{Title: "A day at the forge", Address: "somewhere", Clock: true}
	if err := picture.Animate(&b, slices.Values(cells), picture.Animation{Options: opt, Pixels: pixels}); err != nil {
		t.Fatal(err)
	}
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
		if err != nil {
			t.Fatal(err)
		}
		if d.Differ > 40 {
			t.Errorf("frame %d: %d pixels differ, the most by %d", i, d.Differ, d.Most)
		}
		if i > 0 && img.Rect.Min.Y < canvas.Rect.Dy()-40 {
			t.Errorf("frame %d writes %v, not only its line", i, img.Rect)
		}
	}
}

// TestAnimateErrors animates nothing, frames of two shapes, and to writers that
// fail after any number of bytes.
func TestAnimateErrors(t *testing.T) {
	if err := picture.Animate(&bytes.Buffer{}, slices.Values[[]picture.Cell](nil), picture.Animation{}); !errors.Is(err, picture.ErrNoFrames) {
		t.Errorf("err = %v, want ErrNoFrames", err)
	}
	other := forge("")
	other.Scene.Width = 300
	shapes := []picture.Cell{{Frame: forge("")}, {Frame: other}, {Frame: forge("")}}
	var b bytes.Buffer
	if err := picture.Animate(&b, slices.Values(shapes), picture.Animation{Pixels: 64}); err != nil {
		t.Fatal(err)
	}
	if g, err := gif.DecodeAll(bytes.NewReader(b.Bytes())); err != nil || len(g.Image) != 3 {
		t.Errorf("two shapes: %v", err)
	}
	for n := 0; n < b.Len(); n += 97 {
		err := picture.Animate(&failing{after: n}, slices.Values(shapes), picture.Animation{Pixels: 64})
		if !errors.Is(err, errFull) {
			t.Errorf("after %d bytes: err = %v, want %v", n, err, errFull)
		}
	}
}
