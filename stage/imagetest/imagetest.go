// Package imagetest compares the stage with a reference image, and judges whether it
// differs.
//
// An [ImageTest] has the reference, the part of it that is compared, and two thresholds
// that are independent of each other:
//
//   - The color distance of two pixels is the greatest difference of their red, green, blue
//     and alpha values, an integer from 0 to 255. The colors are multiplied by the alpha
//     before. A pixel differs if its distance is above [Options.MaxColor].
//   - The share is the number of pixels that differ, divided by the number of pixels that
//     are compared, from 0 to 1. The picture differs if its share is above [Options.MaxDiff].
//
// A [Measurement] has both measured values. The same reference, options and frame give the
// same measurement.
//
// [ReadPNG] reads a reference from bytes of unknown origin. It checks the size in the header
// before it allocates pixels.
package imagetest

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"image"
	"image/draw"
	"math"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/sajou-dev/sajou-go/stage"
	"github.com/sajou-dev/sajou-go/stage/film"
	"github.com/sajou-dev/sajou-go/stage/picture"
)

// Options refine a comparison. The zero value compares all pixels, and one pixel of another
// color is a difference.
type Options struct {
	// Mask is an image of the size of the reference. Pixels at which it is not fully
	// transparent are not compared. Nil excludes none.
	Mask image.Image

	// Region is the part of the reference that is compared, in pixels from its upper left
	// corner. The empty rectangle stands for the whole image.
	Region image.Rectangle

	// Entity is the id of a figure. If it is not empty, only the area of that figure with
	// its badge, its label and its speech is compared: its area in the picture and, for a
	// reference of [FromFrame], its area in the reference. An image has no figures, so the
	// area in a reference of [New] is unknown. A picture without the figure then counts as
	// different in all pixels.
	Entity string

	// MaxDiff is the share of pixels that may differ, from 0 to 1.
	MaxDiff float64

	// MaxColor is the color distance up to which two pixels count as equal, from 0 to 255.
	MaxColor int

	// Same turns the test around: the stage is wrong if it does not differ.
	Same bool
}

// OptionError reports options that do not fit each other or the reference.
type OptionError struct{ Reason string }

func (e *OptionError) Error() string { return "imagetest: " + e.Reason }

func invalid(format string, args ...any) error { return &OptionError{fmt.Sprintf(format, args...)} }

// ImageTest is a reference image with the options of its comparison. It is safe for
// concurrent use.
type ImageTest struct {
	opt      Options
	want     *image.RGBA // its origin is 0, 0
	excluded []bool      // by pixel; nil if all pixels are compared
	areas    []image.Rectangle
	drawn    bool // the reference is a picture of a frame, so areas are complete
	painters sync.Pool
	seen     atomic.Bool // the figure of Options.Entity was in a compared picture
}

// New returns the test with an image as its reference. The picture of the stage is drawn at
// the width of the image. The error is a [*picture.SizeError] for a mask of another size,
// and an [*OptionError] for an image that is narrower or wider than any picture, for a
// region that is not within the image, for a mask that leaves no pixel to compare, and for
// thresholds out of their ranges.
func New(want image.Image, opt Options) (*ImageTest, error) {
	size := want.Bounds().Size()
	region := opt.Region
	switch {
	case size.X < film.MinWidth || size.X > film.MaxWidth:
		return nil, invalid("the image is %d pixels wide; a picture of the stage has from %d to %d", size.X, film.MinWidth, film.MaxWidth)
	case !(opt.MaxDiff >= 0 && opt.MaxDiff <= 1):
		return nil, invalid("the permitted share of differing pixels is %v; it must be from 0 to 1", opt.MaxDiff)
	case opt.MaxColor < 0 || opt.MaxColor > math.MaxUint8:
		return nil, invalid("the permitted color distance is %d; it must be from 0 to 255", opt.MaxColor)
	case !region.Empty() && !region.In(image.Rectangle{Max: size}):
		return nil, invalid("the region %s is not within the image, which is %dx%d", regionText(region), size.X, size.Y)
	}
	t := &ImageTest{opt: opt, want: image.NewRGBA(image.Rectangle{Max: size})}
	t.painters.New = func() any { return picture.NewRasterizer() }
	draw.Draw(t.want, t.want.Rect, want, want.Bounds().Min, draw.Src)
	if opt.Mask != nil {
		if s := opt.Mask.Bounds().Size(); s != size {
			return nil, &picture.SizeError{What: "mask", A: size, B: s}
		}
	}
	if opt.Mask != nil || !region.Empty() {
		t.excluded = make([]bool, size.X*size.Y)
		for i := range t.excluded {
			at := image.Pt(i%size.X, i/size.X)
			t.excluded[i] = !region.Empty() && !at.In(region) || opt.Mask != nil && covers(opt.Mask, at)
		}
		if !slices.Contains(t.excluded, false) {
			return nil, invalid("the mask leaves no pixel to compare")
		}
	}
	return t, nil
}

// FromFrame returns the test with the picture of a frame as its reference, width pixels wide.
// Its errors are those of [New].
func FromFrame(f *stage.Frame, width int, opt Options) (*ImageTest, error) {
	if width < film.MinWidth || width > film.MaxWidth {
		return nil, invalid("the image is %d pixels wide; a picture of the stage has from %d to %d", width, film.MinWidth, film.MaxWidth)
	}
	d := picture.Draw(f, picture.Options{Width: width})
	if err := film.CheckPNG(d); err != nil {
		return nil, err
	}
	t, err := New(d.Image(0), opt)
	if err != nil {
		return nil, err
	}
	t.areas, t.drawn = t.areasOf(d), true
	return t, nil
}

// covers reports whether a mask excludes the pixel at a point counted from its corner.
func covers(mask image.Image, at image.Point) bool {
	at = at.Add(mask.Bounds().Min)
	_, _, _, a := mask.At(at.X, at.Y).RGBA()
	return a > 0
}

// Size returns the size of the reference in pixels.
func (t *ImageTest) Size() image.Point { return t.want.Rect.Size() }

// Options returns the options of the test.
func (t *ImageTest) Options() Options { return t.opt }

// Identity returns the SHA-256 of all that determines the verdicts of the test, in
// hexadecimal: the pixels of the reference, those that are excluded, and the options.
func (t *ImageTest) Identity() string {
	h := sha256.New()
	fmt.Fprintf(h, "image %v %q %v %d %t %t %v\n", t.want.Rect.Size(), t.opt.Entity, t.opt.MaxDiff, t.opt.MaxColor, t.opt.Same, t.drawn, t.areas)
	h.Write(t.want.Pix)
	excluded := make([]byte, len(t.excluded))
	for i, yes := range t.excluded {
		if yes {
			excluded[i] = 1
		}
	}
	h.Write(binary.LittleEndian.AppendUint64(excluded, uint64(len(excluded))))
	return hex.EncodeToString(h.Sum(nil))
}

// Measurement is the result of one comparison.
type Measurement struct {
	Compared int     // pixels that were compared
	Differ   int     // those of them whose color distance is above the permitted one
	Share    float64 // Differ of Compared, 0 to 1; 0 if no pixel was compared
	Color    int     // the greatest color distance of the compared pixels, 0 to 255

	// Absent reports that the figure of Options.Entity is not in the picture and that its
	// area in the reference is unknown. Share is 1 then.
	Absent bool
}

// Draw returns the drawing of a frame that the test compares.
func (t *ImageTest) Draw(f *stage.Frame) *picture.Drawing {
	return picture.Draw(f, picture.Options{Width: t.want.Rect.Dx()})
}

// Compare draws a frame and compares it with the reference. The error is a
// [*picture.SizeError] if the picture has another height than the reference, because its
// scene has another shape.
func (t *ImageTest) Compare(f *stage.Frame) (Measurement, error) { return t.CompareDrawing(t.Draw(f)) }

// CompareDrawing compares a drawing of [ImageTest.Draw] with the reference, as
// [ImageTest.Compare] does.
func (t *ImageTest) CompareDrawing(d *picture.Drawing) (Measurement, error) {
	painter, _ := t.painters.Get().(*picture.Rasterizer)
	defer t.painters.Put(painter)
	got := painter.Image(d, 0)
	if a, b := t.want.Rect.Size(), got.Rect.Size(); a != b {
		return Measurement{}, &picture.SizeError{What: "second", A: a, B: b}
	}
	if t.opt.Entity == "" {
		return t.measure(got, []image.Rectangle{t.want.Rect}), nil
	}
	areas := t.areasOf(d)
	if len(areas) > 0 {
		t.seen.Store(true)
	}
	if len(areas) == 0 && !t.drawn {
		return Measurement{Absent: true, Share: 1}, nil
	}
	return t.measure(got, append(areas, t.areas...)), nil
}

// FigureSeen reports whether the figure of [Options.Entity] was in a picture that was
// compared so far. If it never was, its id may be misspelt.
func (t *ImageTest) FigureSeen() bool { return t.seen.Load() }

// edge is the number of pixels by which an area is larger than its box, for the edges of
// figures and bubbles.
const edge = 2

// areasOf returns the areas of the figure of Options.Entity in a drawing, in pixels.
func (t *ImageTest) areasOf(d *picture.Drawing) []image.Rectangle {
	var areas []image.Rectangle
	for _, b := range d.Boxes() {
		if b.Entity != t.opt.Entity {
			continue
		}
		r := image.Rect(int(math.Floor(b.X))-edge, int(math.Floor(b.Y))-edge, int(math.Ceil(b.X+b.W))+edge, int(math.Ceil(b.Y+b.H))+edge)
		if r = r.Intersect(t.want.Rect); !r.Empty() {
			areas = append(areas, r)
		}
	}
	return areas
}

// measure compares the pixels within areas, each once.
func (t *ImageTest) measure(got *image.RGBA, areas []image.Rectangle) Measurement {
	var m Measurement
	for i, area := range areas {
		for y := area.Min.Y; y < area.Max.Y; y++ {
			for x := area.Min.X; x < area.Max.X; x++ {
				if t.excluded != nil && t.excluded[y*t.want.Rect.Dx()+x] || within(areas[:i], x, y) {
					continue
				}
				m.Compared++
				d := distance(t.want.Pix[t.want.PixOffset(x, y):], got.Pix[got.PixOffset(x, y):])
				m.Color = max(m.Color, d)
				if d > t.opt.MaxColor {
					m.Differ++
				}
			}
		}
	}
	if m.Compared > 0 {
		m.Share = float64(m.Differ) / float64(m.Compared)
	}
	return m
}

func within(areas []image.Rectangle, x, y int) bool {
	for _, a := range areas {
		if (image.Point{X: x, Y: y}).In(a) {
			return true
		}
	}
	return false
}

// distance returns the color distance of two pixels of four bytes.
func distance(a, b []byte) int {
	most := 0
	for i := range 4 {
		most = max(most, int(a[i])-int(b[i]), int(b[i])-int(a[i]))
	}
	return most
}

// Differs reports whether a picture with measurement m differs from the reference.
func (t *ImageTest) Differs(m Measurement) bool { return m.Share > t.opt.MaxDiff }

// Wrong reports whether a picture with measurement m is wrong: whether it differs, or with
// Options.Same, whether it does not.
func (t *ImageTest) Wrong(m Measurement) bool { return t.Differs(m) != t.opt.Same }

// Text describes a measurement and the thresholds in one line.
func (t *ImageTest) Text(m Measurement) string {
	if m.Absent {
		return fmt.Sprintf("differs 100%%: %q is not in the picture", t.opt.Entity)
	}
	if m.Compared == 0 {
		return fmt.Sprintf("does not differ: %q is in neither picture", t.opt.Entity)
	}
	return fmt.Sprintf("differs %s (permitted %s), color distance %d (permitted %d)",
		Percent(m.Share), Percent(t.opt.MaxDiff), m.Color, t.opt.MaxColor)
}

// Percent formats a share. A share above zero never reads as 0.00%, one below 1 never as
// 100.00%.
func Percent(share float64) string {
	switch {
	case share > 0 && share < 0.0001:
		return "<0.01%"
	case share < 1 && share > 0.9999:
		return ">99.99%"
	}
	return strconv.FormatFloat(share*100, 'f', 2, 64) + "%"
}

func regionText(r image.Rectangle) string {
	return fmt.Sprintf("%d,%d,%d,%d", r.Min.X, r.Min.Y, r.Dx(), r.Dy())
}
