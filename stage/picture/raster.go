package picture

import (
	"encoding/binary"
	"image"
	"image/color"
	"image/draw"
	"math"
	"slices"

	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/vector"
)

// mostPixels bounds the area of an image: that of a picture of the greatest width in the
// shape of a screen.
const mostPixels = 8192 * 4608

// Image paints the drawing as an image of the given width, 16 to 8192 pixels;
// 0 means the drawing's own. An image of more than 37 million pixels is made smaller.
func (d *Drawing) Image(width int) *image.RGBA {
	return NewRasterizer().Image(d, width)
}

// Rasterizer paints drawings one after the other in the same memory. Only one goroutine
// may use it at a time.
type Rasterizer struct {
	z       vector.Rasterizer
	foreign *Font // for characters that the built-in fonts lack
	canvas  *image.RGBA
	layers  []*image.RGBA // for groups, by their depth of nesting
	paint   image.Uniform
	mask    []uint8 // of the shape being painted
	font    sfnt.Buffer
	glyphs  [2]map[sfnt.GlyphIndex][]segment // outlines, in ems

	points []point // of the path being painted
	ends   []int   // the end of each of its subpaths in points
	clipped

	images    int // that were painted
	sprites   sprites
	stamping  bool // shapes of a stamp are painted, which are no stamps themselves
	recording bool // fill records and does not paint
	record    recorder

	kept       *image.RGBA // the backdrop of the last drawing
	keptShapes []shape
	keptScale  float64
}

// clipped holds the two sides of the clipping of a polygon.
type clipped struct{ here, there []point }

// NewRasterizer returns a rasterizer. It allocates its memory as it needs it.
func NewRasterizer() *Rasterizer {
	return &Rasterizer{glyphs: [2]map[sfnt.GlyphIndex][]segment{{}, {}}}
}

// Image paints the drawing as [Drawing.Image] does. The image is valid until
// the next call.
func (r *Rasterizer) Image(d *Drawing, width int) *image.RGBA {
	if width == 0 {
		width = int(d.width)
	}
	width = min(max(width, leastWidth), mostWidth)
	dw, dh := math.Max(d.width, 1), math.Max(d.height, 1)
	scale := float64(width) / dw
	height := math.Max(1, math.Round(dh*scale))
	if area := height * float64(width); area > mostPixels {
		scale *= math.Sqrt(mostPixels / area)
		width = max(1, int(dw*scale))
		height = math.Max(1, math.Floor(dh*scale))
	}
	r.images++
	r.canvas = scratch(r.canvas, image.Rect(0, 0, width, int(height)))
	m := matrix{a: scale, d: scale}
	r.backdrop(d, m)
	r.shapes(r.canvas, d.shapes[d.ground:], m, 1, 0)
	return r.canvas
}

// mostKept bounds the bytes of a backdrop that is kept. Series of larger pictures are
// rare.
const mostKept = 16 << 20

// backdrop paints the shapes that the drawings of one scene begin with. They cover the
// whole picture, rarely change and take a third of the work of a frame, so the result is
// kept.
func (r *Rasterizer) backdrop(d *Drawing, m matrix) {
	ground := d.shapes[:d.ground]
	same := r.kept != nil && r.kept.Rect == r.canvas.Rect && r.keptScale == m.a && slices.EqualFunc(r.keptShapes, ground, func(a, b shape) bool {
		return a.kind == b.kind && a.x == b.x && a.y == b.y && a.w == b.w && a.h == b.h && a.r == b.r && a.fill == b.fill
	})
	if !same {
		r.shapes(r.canvas, ground, m, 1, 0)
		if len(r.canvas.Pix) > mostKept {
			r.kept = nil
			return
		}
		r.kept = scratch(r.kept, r.canvas.Rect)
		copy(r.kept.Pix, r.canvas.Pix)
		r.keptShapes, r.keptScale = append(r.keptShapes[:0], ground...), m.a
		return
	}
	copy(r.canvas.Pix, r.kept.Pix)
}

// scratch returns a transparent image of the given bounds, in the memory of old if it is
// large enough.
func scratch(old *image.RGBA, bounds image.Rectangle) *image.RGBA {
	n := 4 * bounds.Dx() * bounds.Dy()
	if old == nil || cap(old.Pix) < n {
		return image.NewRGBA(bounds)
	}
	old.Pix, old.Stride, old.Rect = old.Pix[:n], 4*bounds.Dx(), bounds
	clear(old.Pix)
	return old
}

// pixels returns the part of within that the bounding box of the points touches.
func pixels(points []point, within image.Rectangle) image.Rectangle {
	if len(points) == 0 {
		return image.Rectangle{}
	}
	low, high := points[0], points[0]
	for _, p := range points[1:] {
		low.x, low.y = min(low.x, p.x), min(low.y, p.y)
		high.x, high.y = max(high.x, p.x), max(high.y, p.y)
	}
	if !finite(low.x, low.y, high.x, high.y) {
		return image.Rectangle{}
	}
	return image.Rect(int(math.Floor(low.x)), int(math.Floor(low.y)), int(math.Ceil(high.x)), int(math.Ceil(high.y))).Intersect(within)
}

// deepest bounds the nesting of drawings and groups.
const deepest = 6

func (r *Rasterizer) shapes(dst *image.RGBA, shapes []shape, m matrix, opacity float64, depth int) {
	for i := range shapes {
		r.shape(dst, &shapes[i], m, opacity, depth)
	}
}

func (r *Rasterizer) shape(dst *image.RGBA, s *shape, m matrix, opacity float64, depth int) {
	switch s.kind {
	case rect:
		if s.r > 0 && s.pen == 0 && !r.stamping {
			l := look{kind: rect, fill: s.fill, w: s.w, h: s.h, r: s.r, share: 255}
			r.stamp(dst, l, m.of(matrix{a: 1, d: 1, e: s.x, f: s.y}), 0, 0, s.w, s.h, func(dst *image.RGBA, m matrix) {
				r.box(0, 0, s.w, s.h, s.r, m, false)
				r.fill(dst, s.fill)
			})
			return
		}
		if s.fill.A > 0 && s.r == 0 && s.pen == 0 && r.block(dst, s, m) {
			return
		}
		r.box(s.x, s.y, s.w, s.h, s.r, m, false)
		r.fill(dst, s.fill)
		if s.pen > 0 {
			e := float64(s.pen / 2)
			r.box(s.x-e, s.y-e, s.w+s.pen, s.h+s.pen, s.r+e, m, false)
			r.box(s.x+e, s.y+e, s.w-s.pen, s.h-s.pen, s.r-e, m, true)
			r.fill(dst, s.stroke)
		}
	case ellipse:
		if s.fill.A > 0 {
			r.oval(s.x, s.y, s.w, s.h, m, false)
			r.fill(dst, s.fill)
		}
		if s.pen > 0 {
			e := float64(s.pen / 2)
			r.oval(s.x, s.y, s.w+e, s.h+e, m, false)
			r.oval(s.x, s.y, s.w-e, s.h-e, m, true)
			r.fill(dst, s.stroke)
		}
	case line:
		r.stroke(point{s.x, s.y}, point{s.w, s.h}, s.pen, m, true)
		r.fill(dst, s.stroke)
	case outline:
		if s.fill.A > 0 {
			r.path(s.path, m)
			r.fill(dst, s.fill)
		}
		if s.pen > 0 {
			r.strokes(dst, s, m)
		}
	case text:
		l := look{kind: text, name: s.text, bold: s.bold, size: s.size, fill: s.fill, share: 255}
		rise := float64(s.size * 1.1)
		r.stamp(dst, l, m.of(matrix{a: 1, d: 1, e: s.x, f: s.y}), -float64(s.size/2), -rise, s.w+s.size, rise+float64(s.size/2), func(dst *image.RGBA, m matrix) {
			r.text(dst, s, m)
		})
	case use:
		r.use(dst, s, m, opacity, depth)
	case group:
		if depth < deepest {
			r.layer(dst, m.bounds(s.x, s.y, s.w, s.h, dst.Rect), s.opacity, depth, func(dst *image.RGBA) {
				r.shapes(dst, s.children, m, opacity, depth+1)
			})
		}
	case panel:
		if depth < deepest {
			inner := m.of(matrix{a: s.w / s.inner.width, d: s.h / s.inner.height, e: s.x, f: s.y})
			clip, ok := dst.SubImage(m.bounds(s.x, s.y, s.w, s.h, dst.Rect)).(*image.RGBA)
			if ok && !clip.Rect.Empty() {
				r.shapes(clip, s.inner.shapes, inner, opacity, depth+1)
			}
		}
	}
}

// block fills a rectangle whose edges are on pixel boundaries, which needs no mask.
func (r *Rasterizer) block(dst *image.RGBA, s *shape, m matrix) bool {
	p, q := m.apply(point{s.x, s.y}), m.apply(point{s.x + s.w, s.y + s.h})
	whole := func(v float64) bool { return math.Abs(v-math.Round(v)) < 1e-6 }
	if m.b != 0 || m.c != 0 || !whole(p.x) || !whole(p.y) || !whole(q.x) || !whole(q.y) || !finite(p.x, p.y, q.x, q.y) {
		return false
	}
	r.paint.C = s.fill
	b := image.Rect(int(math.Round(p.x)), int(math.Round(p.y)), int(math.Round(q.x)), int(math.Round(q.y)))
	draw.Draw(dst, b.Intersect(dst.Rect), &r.paint, image.Point{}, draw.Over)
	return true
}

// use paints a symbol. A translucent one is painted on a layer first, so that shapes
// under others do not show through.
func (r *Rasterizer) use(dst *image.RGBA, s *shape, m matrix, opacity float64, depth int) {
	if depth >= deepest {
		return
	}
	y := s.symbol
	local := matrix{a: s.size, d: s.size, e: s.x, f: s.y}
	if s.turn != 0 {
		sin, cos := sincos(s.turn)
		pivot := float64(y.pivot * s.size)
		local = matrix{
			a: float64(cos * s.size), b: float64(sin * s.size), c: -float64(sin * s.size), d: float64(cos * s.size),
			e: s.x + float64(sin*pivot), f: s.y + pivot - float64(cos*pivot),
		}
	}
	share := level(s.opacity)
	if share == 0 {
		return
	}
	box := area{y.x, y.y, y.w, y.h}
	if y.cover.w > 0 {
		box = y.cover
	}
	l := look{kind: use, name: y.name, share: share}
	r.stamp(dst, l, m.of(local), box.x, box.y, box.w, box.h, func(dst *image.RGBA, m matrix) {
		if share == 255 || r.recording {
			r.shapes(dst, y.shapes, m, opacity, depth+1)
			return
		}
		r.layer(dst, m.bounds(y.x, y.y, y.w, y.h, dst.Rect), s.opacity, depth, func(dst *image.RGBA) {
			r.shapes(dst, y.shapes, m, opacity, depth+1)
		})
	})
}

// layer lets paint draw on an empty image of the given bounds and draws that on dst with
// one opacity.
func (r *Rasterizer) layer(dst *image.RGBA, bounds image.Rectangle, opacity float64, depth int, paint func(*image.RGBA)) {
	bounds = bounds.Intersect(dst.Rect)
	share := uint32(level(opacity))
	if bounds.Empty() || share == 0 {
		return
	}
	if share == 255 {
		paint(dst)
		return
	}
	for len(r.layers) <= depth {
		r.layers = append(r.layers, nil)
	}
	r.layers[depth] = scratch(r.layers[depth], bounds)
	src := r.layers[depth]
	paint(src)
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		over := dst.Pix[dst.PixOffset(bounds.Min.X, y):][:4*bounds.Dx()]
		with := src.Pix[src.PixOffset(bounds.Min.X, y):][:4*bounds.Dx()]
		for i := 0; i < len(over); i += 4 {
			if with[i+3] == 0 {
				continue
			}
			left := 255*255 - uint32(with[i+3])*share
			for c := range 4 {
				over[i+c] = uint8((uint32(with[i+c])*share*255 + uint32(over[i+c])*left + 255*255/2) / (255 * 255))
			}
		}
	}
}

// begin starts a subpath.
func (r *Rasterizer) begin() {
	if n := len(r.points); n > 0 && (len(r.ends) == 0 || r.ends[len(r.ends)-1] < n) {
		r.ends = append(r.ends, n)
	}
}

// curve adds points of a Bézier curve after the last one, so dense that the chords look
// like the curve.
func (r *Rasterizer) curve(p0, p1, p2, p3 point) {
	bend := math.Max(math.Abs(p0.x-2*p1.x+p2.x)+math.Abs(p0.y-2*p1.y+p2.y), math.Abs(p1.x-2*p2.x+p3.x)+math.Abs(p1.y-2*p2.y+p3.y))
	n := int(clamp(math.Ceil(math.Sqrt(bend*2.5)), 1, 64))
	for i := 1; i < n; i++ {
		t := float64(i) / float64(n)
		v := 1 - t
		a, b, c, d := float64(v*v)*v, 3*float64(v*v)*t, 3*float64(t*t)*v, float64(t*t)*t
		r.points = append(r.points, point{
			float64(a*p0.x) + float64(b*p1.x) + float64(c*p2.x) + float64(d*p3.x),
			float64(a*p0.y) + float64(b*p1.y) + float64(c*p2.y) + float64(d*p3.y),
		})
	}
	r.points = append(r.points, p3)
}

// path adds a path under a matrix, its curves as chords.
func (r *Rasterizer) path(path []segment, m matrix) {
	var at, first point
	for i := range path {
		s := &path[i]
		switch s.verb {
		case 'M':
			r.begin()
			at = m.apply(s.p[0])
			first = at
			r.points = append(r.points, at)
		case 'L':
			at = m.apply(s.p[0])
			r.points = append(r.points, at)
		case 'Q':
			q, to := m.apply(s.p[0]), m.apply(s.p[1])
			r.curve(at, toward(at, q), toward(to, q), to)
			at = to
		case 'C':
			to := m.apply(s.p[2])
			r.curve(at, m.apply(s.p[0]), m.apply(s.p[1]), to)
			at = to
		case 'Z':
			r.points = append(r.points, first)
			at = first
		}
	}
	r.begin()
}

// toward returns the control point of the cubic that equals the quadratic curve
// from p with the control point q.
func toward(p, q point) point {
	return point{p.x + (q.x-p.x)*2/3, p.y + (q.y-p.y)*2/3}
}

// arc is the distance of the control points of a quarter of a circle from its ends, in
// radii.
const arc = 0.5522847498

// quarter adds a quarter of an ellipse from p to q about the corner between.
func (r *Rasterizer) quarter(m matrix, p, corner, q point) {
	near := func(p point) point {
		return m.apply(point{p.x + float64((corner.x-p.x)*arc), p.y + float64((corner.y-p.y)*arc)})
	}
	r.curve(m.apply(p), near(p), near(q), m.apply(q))
}

func (r *Rasterizer) oval(x, y, rx, ry float64, m matrix, hole bool) {
	r.box(x-rx, y-ry, 2*rx, 2*ry, math.Inf(1), m, hole)
}

// box adds a rectangle with round corners, in the opposite direction for a hole. A radius
// that is too large makes an ellipse.
func (r *Rasterizer) box(x, y, w, h, radius float64, m matrix, hole bool) {
	if !(w > 0 && h > 0) {
		return
	}
	r.begin()
	from := len(r.points)
	rx, ry := clamp(radius, 0, w/2), clamp(radius, 0, h/2)
	x2, y2 := x+w, y+h
	if rx == 0 {
		r.points = append(r.points, m.apply(point{x, y}), m.apply(point{x2, y}), m.apply(point{x2, y2}), m.apply(point{x, y2}))
	} else {
		r.points = append(r.points, m.apply(point{x2 - rx, y}))
		r.quarter(m, point{x2 - rx, y}, point{x2, y}, point{x2, y + ry})
		r.points = append(r.points, m.apply(point{x2, y2 - ry}))
		r.quarter(m, point{x2, y2 - ry}, point{x2, y2}, point{x2 - rx, y2})
		r.points = append(r.points, m.apply(point{x + rx, y2}))
		r.quarter(m, point{x + rx, y2}, point{x, y2}, point{x, y2 - ry})
		r.points = append(r.points, m.apply(point{x, y + ry}))
		r.quarter(m, point{x, y + ry}, point{x, y}, point{x + rx, y})
	}
	if hole {
		for i, j := from, len(r.points)-1; i < j; i, j = i+1, j-1 {
			r.points[i], r.points[j] = r.points[j], r.points[i]
		}
	}
	r.begin()
}

// stroke adds a line as a polygon, with half circles at its ends if round.
func (r *Rasterizer) stroke(p, q point, pen float64, m matrix, round bool) {
	e := pen / 2
	length := distance(p.x, p.y, q.x, q.y)
	if !finite(length, e) {
		return
	}
	if length == 0 {
		r.oval(p.x, p.y, e, e, m, false)
		return
	}
	ux, uy := (q.x-p.x)/length, (q.y-p.y)/length
	nx, ny := float64(-uy*e), float64(ux*e)
	r.begin()
	r.points = append(r.points, m.apply(point{p.x - nx, p.y - ny}))
	side := func(at point, nx, ny, fx, fy float64) {
		a, b := point{at.x + nx, at.y + ny}, point{at.x - nx, at.y - ny}
		if !round {
			r.points = append(r.points, m.apply(b), m.apply(a))
			return
		}
		tip := point{at.x + fx, at.y + fy}
		r.points = append(r.points, m.apply(b))
		r.quarter(m, b, point{b.x + fx, b.y + fy}, tip)
		r.quarter(m, tip, point{a.x + fx, a.y + fy}, a)
	}
	fx, fy := float64(ux*e), float64(uy*e)
	side(q, nx, ny, fx, fy)
	side(p, -nx, -ny, -fx, -fy)
	r.begin()
}

// strokes paints the stroke of a path: each chord as a line with round ends. All lines
// have the same direction, so that they merge where they overlap.
func (r *Rasterizer) strokes(dst *image.RGBA, s *shape, m matrix) {
	r.path(s.path, m)
	points, ends := append([]point(nil), r.points...), append([]int(nil), r.ends...)
	r.points, r.ends = r.points[:0], r.ends[:0]
	pen := float64(s.pen * m.scale())
	from := 0
	for _, to := range ends {
		for i := from + 1; i < to; i++ {
			// The joins of a hairline are invisible.
			r.stroke(points[i-1], points[i], pen, matrix{a: 1, d: 1}, pen > 1.2)
		}
		from = to
	}
	r.fill(dst, s.stroke)
}

// fill paints the paths that were added since the last fill by the non-zero rule, and
// removes them.
func (r *Rasterizer) fill(dst *image.RGBA, c color.NRGBA) {
	r.begin()
	points, ends := r.points, r.ends
	r.points, r.ends = r.points[:0], r.ends[:0]
	if c.A == 0 {
		return
	}
	touched := pixels(points, dst.Rect)
	if touched.Empty() {
		return
	}
	r.z.Reset(touched.Dx(), touched.Dy())
	inside := pixels(points, image.Rect(-1e9, -1e9, 1e9, 1e9)) == touched
	from := 0
	for _, to := range ends {
		polygon := points[from:to]
		from = to
		if !inside {
			polygon = r.clip(polygon, touched)
		}
		for i, p := range polygon {
			x, y := float32(p.x-float64(touched.Min.X)), float32(p.y-float64(touched.Min.Y))
			if i == 0 {
				r.z.MoveTo(x, y)
			} else {
				r.z.LineTo(x, y)
			}
		}
		r.z.ClosePath()
	}
	if n := touched.Dx() * touched.Dy(); cap(r.mask) < n {
		r.mask = make([]uint8, n)
	}
	mask := image.Alpha{Pix: r.mask[:touched.Dx()*touched.Dy()], Stride: touched.Dx(), Rect: r.z.Bounds()}
	r.z.DrawOp = draw.Src
	r.z.Draw(&mask, mask.Rect, image.Opaque, image.Point{})
	if r.recording {
		r.record.blend(touched, mask.Pix, c)
		return
	}
	blend(dst, touched, mask.Pix, c)
}

// blend paints a color through a mask. The vector package could do this, but spends the
// same time on every pixel, while most pixels of a shape's box are fully outside or fully
// inside. These are skipped and painted eight at a time.
func blend(dst *image.RGBA, at image.Rectangle, mask []uint8, c color.NRGBA) {
	alpha := uint32(c.A)
	pr, pg, pb := uint32(c.R)*alpha, uint32(c.G)*alpha, uint32(c.B)*alpha // up to 255²
	two := uint64(c.R) | uint64(c.G)<<8 | uint64(c.B)<<16 | 255<<24       // a pixel, and then two
	two |= two << 32
	w := at.Dx()
	var from, to uint32 // the last pixel, before and after
	var through uint8   // the mask there, 0 for none
	for y := at.Min.Y; y < at.Max.Y; y++ {
		row := dst.Pix[dst.PixOffset(at.Min.X, y):][:4*w]
		cover := mask[:w]
		mask = mask[w:]
		for i := 0; i < w; i++ {
			m := cover[i]
			if m == 0 || m == 255 && alpha == 255 {
				if w-i >= 8 && binary.LittleEndian.Uint64(cover[i:]) == uint64(m)*0x0101_0101_0101_0101 {
					if m == 255 {
						for j := 4 * i; j < 4*i+32; j += 8 {
							binary.LittleEndian.PutUint64(row[j:], two)
						}
					}
					i += 7
					continue
				}
			}
			if m == 0 {
				continue
			}
			p := row[4*i:][:4:4]
			if m == 255 && alpha == 255 {
				p[0], p[1], p[2], p[3] = c.R, c.G, c.B, 255
				continue
			}
			ground := binary.LittleEndian.Uint32(p)
			if ground == from && m == through {
				binary.LittleEndian.PutUint32(p, to) // as the pixel before
				continue
			}
			from, through = ground, m
			k := uint32(m)
			left := 255*255 - alpha*k
			p[0] = uint8((pr*k + uint32(p[0])*left + 255*255/2) / (255 * 255))
			p[1] = uint8((pg*k + uint32(p[1])*left + 255*255/2) / (255 * 255))
			p[2] = uint8((pb*k + uint32(p[2])*left + 255*255/2) / (255 * 255))
			p[3] = uint8((alpha*k*255 + uint32(p[3])*left + 255*255/2) / (255 * 255))
			to = binary.LittleEndian.Uint32(p)
		}
	}
}

// clip returns the part of a polygon in a rectangle. The vector package accepts lines
// outside, but iterates over their whole length, and counts in 32 bits.
func (r *Rasterizer) clip(polygon []point, to image.Rectangle) []point {
	r.here = append(r.here[:0], polygon...)
	for side := range 4 {
		along := func(p point) float64 {
			switch side {
			case 0:
				return p.x - float64(to.Min.X)
			case 1:
				return float64(to.Max.X) - p.x
			case 2:
				return p.y - float64(to.Min.Y)
			}
			return float64(to.Max.Y) - p.y
		}
		r.there = r.there[:0]
		for i, p := range r.here {
			q := r.here[(i+1)%len(r.here)]
			dp, dq := along(p), along(q)
			if dp >= 0 {
				r.there = append(r.there, p)
			}
			if (dp >= 0) != (dq >= 0) {
				t := dp / (dp - dq)
				r.there = append(r.there, point{p.x + float64((q.x-p.x)*t), p.y + float64((q.y-p.y)*t)})
			}
		}
		r.here, r.there = r.there, r.here
	}
	return r.here
}
