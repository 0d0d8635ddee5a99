package picture

import (
	"fmt"
	"image"
	"image/color"
)

// PixelDifference describes how two images differ.
type PixelDifference struct {
	Compared int     // pixels that the mask does not exclude
	Differ   int     // those of them that differ by more than the tolerance
	Share    float64 // Differ of Compared, 0 to 1
	Most     int     // the greatest difference of any channel, 0 to 255

	// Image shows the first image faintly, differing pixels in red, and pixels that were
	// not compared in grey.
	Image *image.RGBA
}

// SizeError is the error of images of different sizes.
type SizeError struct {
	What string // the image whose size differs from the first
	A, B image.Point
}

func (e *SizeError) Error() string {
	return fmt.Sprintf("picture: compare images: the first is %d by %d, the %s %d by %d", e.A.X, e.A.Y, e.What, e.B.X, e.B.Y)
}

// DiffImages compares two images of one size. It skips the pixels at which the mask is
// not transparent; a nil mask skips none. Pixels whose channels differ by at most the
// tolerance count as equal.
func DiffImages(a, b, mask image.Image, tolerance int) (*PixelDifference, error) {
	size := a.Bounds().Size()
	if s := b.Bounds().Size(); s != size {
		return nil, &SizeError{"second", size, s}
	}
	if mask != nil {
		if s := mask.Bounds().Size(); s != size {
			return nil, &SizeError{"mask", size, s}
		}
	}
	d := &PixelDifference{Image: image.NewRGBA(image.Rectangle{Max: size})}
	for y := range size.Y {
		for x := range size.X {
			p := pixel(a, x, y)
			grey := uint8((299*int(p.R) + 587*int(p.G) + 114*int(p.B)) / 1000)
			if mask != nil {
				if m := mask.Bounds().Min; alpha(mask.At(m.X+x, m.Y+y)) > 0 {
					d.Image.SetRGBA(x, y, color.RGBA{128, 128, 128, 255})
					continue
				}
			}
			d.Compared++
			q := pixel(b, x, y)
			most := max(apart(p.R, q.R), apart(p.G, q.G), apart(p.B, q.B), apart(p.A, q.A))
			d.Most = max(d.Most, most)
			if most > tolerance {
				d.Differ++
				d.Image.SetRGBA(x, y, color.RGBA{255, uint8(96 - most*96/255), uint8(96 - most*96/255), 255})
				continue
			}
			faint := 176 + grey/4
			d.Image.SetRGBA(x, y, color.RGBA{faint, faint, faint, 255})
		}
	}
	if d.Compared > 0 {
		d.Share = float64(d.Differ) / float64(d.Compared)
	}
	return d, nil
}

func pixel(img image.Image, x, y int) color.RGBA {
	at := img.Bounds().Min.Add(image.Pt(x, y))
	if m, ok := img.(*image.RGBA); ok {
		return m.RGBAAt(at.X, at.Y)
	}
	r, g, b, a := img.At(at.X, at.Y).RGBA()
	return color.RGBA{uint8(r >> 8), uint8(g >> 8), uint8(b >> 8), uint8(a >> 8)}
}

func alpha(c color.Color) uint32 {
	_, _, _, a := c.RGBA()
	return a
}

func apart(a, b uint8) int { return max(int(a)-int(b), int(b)-int(a)) }
