package picture

import (
	"image/color"
	"math"
	"strings"

	"github.com/sajou-dev/sajou-go/stage"
)

// Cell is one picture of a contact sheet or of an animation.
type Cell struct {
	Frame   *stage.Frame
	Caption string // below the picture; with [Options.Clock] the session time is at its right
}

// Sheet lays frames out as a contact sheet, row by row. Zero columns means as many as make
// the sheet about as wide as it is high, at most eight. The options' width is that of one
// cell; zero means 320. Their title and address are above the sheet. Cells beyond a
// thousand are left out and counted.
func Sheet(cells []Cell, columns int, opt Options) *Drawing {
	const mostCells = 1000
	omitted := max(0, len(cells)-mostCells)
	cells = cells[:len(cells)-omitted]
	if opt.Width == 0 {
		opt.Width = 320
	}
	if columns <= 0 {
		columns = min(int(math.Ceil(math.Sqrt(float64(len(cells))))), 8)
	}
	columns = min(max(columns, 1), max(len(cells), 1))
	inner := Options{Width: opt.Width, Places: opt.Places, Theme: opt.Theme}
	cw := clamp(float64(opt.Width), leastWidth, mostWidth)
	u := clamp(cw/320, .7, 6)
	gap, size := math.Round(float64(10*u)), float64(11.5*u)
	line := math.Round(float64(22 * u))

	p := &page{d: &Drawing{omitted: omitted}, inks: opt.Theme.page()}
	x, y := gap, gap
	p.d.width = float64(float64(columns)*(cw+gap)) + gap
	if opt.Title != "" || opt.Address != "" {
		head := float64(15 * u)
		address := shorten(strings.TrimSpace(clean(opt.Address)), size, false, float64(p.d.width*.4))
		p.write(p.d.width-gap, y+float64(15*u), size, end, false, p.dim, address)
		p.write(gap, y+float64(15*u), head, start, true, p.text, shorten(strings.TrimSpace(clean(opt.Title)), head, true, float64(p.d.width*.55)))
		y += line + gap
	}
	row := 0.0
	for i, c := range cells {
		if i > 0 && i%columns == 0 {
			x, y, row = gap, y+row+line+gap, 0
		}
		d := Draw(c.Frame, inner)
		p.panel(x, y, d)
		right := x + cw
		if opt.Clock {
			t := clock(c.Frame.At)
			p.write(right, y+d.height+float64(15*u), size, end, false, p.dim, t)
			right -= width(t, size, false) + gap
		}
		caption := shorten(strings.TrimSpace(clean(c.Caption)), size, false, math.Max(0, right-x))
		p.write(x, y+d.height+float64(15*u), size, start, false, p.text, caption)
		row = math.Max(row, d.height)
		x += cw + gap
	}
	if len(cells) == 0 {
		p.write(gap, y+float64(15*u), size, start, false, p.dim, "no frames")
	}
	return p.finish(y + row + line + gap)
}

// page is a drawing on which other drawings are laid out.
type page struct {
	inks
	d *Drawing
}

func (p *page) write(x, y, size float64, a anchor, bold bool, c color.NRGBA, t string) {
	if t == "" {
		return
	}
	sh := textShape(x, y, size, a, bold, c, t)
	p.d.shapes = append(p.d.shapes, sh)
	p.d.boxes = append(p.d.boxes, sh.textBox())
}

// panel puts a drawing on the page in its natural size.
func (p *page) panel(x, y float64, d *Drawing) {
	p.d.shapes = append(p.d.shapes, shape{kind: panel, x: x, y: y, w: d.width, h: d.height, inner: d})
	p.d.omitted += d.omitted
	for _, b := range d.boxes {
		b.X, b.Y = b.X+x, b.Y+y
		p.d.boxes = append(p.d.boxes, b)
	}
}

// finish sets the height of the page and of its ground, which is its first shape.
func (p *page) finish(height float64) *Drawing {
	p.d.height = height
	ground := shape{kind: rect, w: p.d.width, h: height, fill: p.ground}
	p.d.shapes = append([]shape{ground}, p.d.shapes...)
	return p.d
}
