package picture

import (
	"image"
	"image/color"
	"math"
	"slices"
)

// sprite is the effect that painting some shapes has on the pixels below, so that painting
// them again at another place needs no geometry. It gives exactly the pixels of the shapes.
type sprite struct {
	spans  []span
	pixels []uint8 // of the spans that are the same on every ground
	ops    []op
}

// span is a run of pixels in one row. Either they are copied, or the same operations are
// applied to each of them, one after the other.
type span struct {
	x, y, n int32
	at      int32 // in pixels, or in ops
	ops     int32 // their number, 0 for pixels that are copied
}

// op paints a color over a pixel: each channel becomes (its own + left × the old one) / 255².
type op struct{ r, g, b, a, left uint32 }

const full = 255 * 255

// opOf returns the operation that blend does for a mask of k.
func opOf(c color.NRGBA, k uint8) op {
	share := uint32(c.A) * uint32(k)
	return op{uint32(c.R)*share + full/2, uint32(c.G)*share + full/2, uint32(c.B)*share + full/2, 255*share + full/2, full - share}
}

// layerOp returns the operation that draws a pixel of a layer.
func layerOp(p [4]uint8, share uint32) op {
	k := 255 * share
	return op{uint32(p[0])*k + full/2, uint32(p[1])*k + full/2, uint32(p[2])*k + full/2, uint32(p[3])*k + full/2, full - uint32(p[3])*share}
}

func (o *op) apply(p *[4]uint8) {
	p[0] = uint8((o.r + uint32(p[0])*o.left) / full)
	p[1] = uint8((o.g + uint32(p[1])*o.left) / full)
	p[2] = uint8((o.b + uint32(p[2])*o.left) / full)
	p[3] = uint8((o.a + uint32(p[3])*o.left) / full)
}

// paint paints the sprite, which must be within the image.
func (s *sprite) paint(dst *image.RGBA) {
	for i := range s.spans {
		t := &s.spans[i]
		row := dst.Pix[dst.PixOffset(int(t.x), int(t.y)):][:4*t.n]
		if t.ops == 0 {
			copy(row, s.pixels[t.at:])
			continue
		}
		ops := s.ops[t.at:][:t.ops]
		if t.n == 1 {
			for i := range ops {
				ops[i].apply((*[4]uint8)(row))
			}
			continue
		}
		var from, to [4]uint8 // of the last pixel: a ground has many equal ones
		for i := 0; i < len(row); i += 4 {
			p := (*[4]uint8)(row[i:])
			if i == 0 || *p != from {
				from = *p
				for i := range ops {
					ops[i].apply(p)
				}
				to = *p
			} else {
				*p = to
			}
		}
	}
}

// recorder takes what the filling of some shapes would paint, and makes a sprite of it.
type recorder struct {
	at     image.Rectangle
	pixels []recorded // of at, row by row
	ops    []linkedOp
	made   sprite // in memory that is used again
}

// recorded is a pixel: its color if that is the same on every ground, and otherwise the
// operations that give it.
type recorded struct {
	known bool
	p     [4]uint8
	last  int32 // of its operations, in ops from 1; 0 if there is none
}

type linkedOp struct {
	op
	before int32 // the operation before it, as in recorded
}

// begin makes all pixels those of the ground, or transparent.
func (r *recorder) begin(at image.Rectangle, transparent bool) {
	n := at.Dx() * at.Dy()
	r.at, r.ops = at, r.ops[:0]
	r.pixels = slices.Grow(r.pixels[:0], n)[:n]
	for i := range r.pixels {
		r.pixels[i] = recorded{known: transparent}
	}
}

// blend notes a color through a mask.
func (r *recorder) blend(to image.Rectangle, mask []uint8, c color.NRGBA) {
	w := to.Dx()
	for y := to.Min.Y; y < to.Max.Y; y++ {
		row := r.pixels[(y-r.at.Min.Y)*r.at.Dx()+to.Min.X-r.at.Min.X:][:w]
		for i, k := range mask[:w] {
			p := &row[i]
			switch {
			case k == 0:
			case k == 255 && c.A == 255:
				*p = recorded{known: true, p: [4]uint8{c.R, c.G, c.B, 255}}
			case p.known:
				o := opOf(c, k)
				o.apply(&p.p)
			default:
				r.ops = append(r.ops, linkedOp{opOf(c, k), p.last})
				p.last = int32(len(r.ops))
			}
		}
		mask = mask[w:]
	}
}

// sprite makes the sprite. A share below 255 is the opacity of the layer that the shapes are
// painted on.
func (r *recorder) sprite(share uint8) *sprite {
	s := &r.made
	s.spans, s.pixels, s.ops = s.spans[:0], s.pixels[:0], s.ops[:0]
	var ops []op
	i := 0
	for y := r.at.Min.Y; y < r.at.Max.Y; y++ {
		for x := r.at.Min.X; x < r.at.Max.X; x++ {
			p := &r.pixels[i]
			i++
			switch {
			case share < 255:
				if p.p[3] > 0 {
					s.change(x, y, layerOp(p.p, uint32(share)))
				}
			case p.known:
				s.copied(x, y, p.p)
			case p.last > 0:
				ops = ops[:0]
				for at := p.last; at > 0; at = r.ops[at-1].before {
					ops = append(ops, r.ops[at-1].op)
				}
				slices.Reverse(ops)
				s.change(x, y, ops...)
			}
		}
	}
	return &sprite{slices.Clone(s.spans), slices.Clone(s.pixels), slices.Clone(s.ops)}
}

// last returns the last span if it ends before x, y.
func (s *sprite) last(x, y int) *span {
	if n := len(s.spans); n > 0 {
		if t := &s.spans[n-1]; int(t.y) == y && int(t.x+t.n) == x {
			return t
		}
	}
	return nil
}

func (s *sprite) copied(x, y int, p [4]uint8) {
	if t := s.last(x, y); t != nil && t.ops == 0 {
		t.n++
	} else {
		s.spans = append(s.spans, span{x: int32(x), y: int32(y), n: 1, at: int32(len(s.pixels))})
	}
	s.pixels = append(s.pixels, p[:]...)
}

func (s *sprite) change(x, y int, ops ...op) {
	if t := s.last(x, y); t != nil && t.ops > 0 && slices.Equal(s.ops[t.at:][:t.ops], ops) {
		t.n++
		return
	}
	s.spans = append(s.spans, span{x: int32(x), y: int32(y), n: 1, at: int32(len(s.ops)), ops: int32(len(ops))})
	s.ops = append(s.ops, ops...)
}

// size returns about how many bytes the sprite has.
func (s *sprite) size() int { return 64 + 20*len(s.spans) + len(s.pixels) + 20*len(s.ops) }

// look determines the pixels of a sprite, relative to the pixel of its origin.
type look struct {
	kind          kind
	name          string // of a symbol, or the text
	m             matrix // to the pixel of its origin
	share         uint8
	bold          bool
	fill          color.NRGBA
	size, w, h, r float64
}

// sprites keeps the sprites of looks that were painted lately more than once.
type sprites struct {
	young, old map[look]kept
	bytes      int  // of the young ones
	off        bool // for tests
}

// The bounds of what is kept. The sprites of a picture are a few hundred, of some kilobytes
// each, and most of them are in the next picture too.
const (
	mostLooks       = 4096
	mostSpriteBytes = 8 << 20
	mostSpriteArea  = 256 * 256
)

// kept is the sprite of a look, nil before it is painted in a second image. A sprite costs
// about as much as painting the shapes twice, so what moves has none.
type kept struct {
	s     *sprite
	image int // in which the look was painted first
}

// get returns what is kept of a look.
func (c *sprites) get(l look) (k kept, ok bool) {
	if k, ok = c.young[l]; ok {
		return k, ok
	}
	if k, ok = c.old[l]; ok {
		c.put(l, k)
	}
	return k, ok
}

// put keeps something of a look. When there are many, those that were not used since the last time are
// dropped.
func (c *sprites) put(l look, k kept) {
	if c.young == nil || len(c.young) >= mostLooks || c.bytes > mostSpriteBytes {
		if c.old == nil {
			c.old = make(map[look]kept)
		}
		clear(c.old)
		c.young, c.old, c.bytes = c.old, c.young, 0
	}
	c.young[l] = k
	if k.s != nil {
		c.bytes += k.s.size()
	}
}

// stamp paints shapes by a sprite if they were painted before, and by paint otherwise. It
// moves the origin of m, which is also that of the look, to the pixel of the picture in
// which it is: so the same shapes have the same pixels at each place, from a sprite or not.
// The box is that of the shapes under m.
func (r *Rasterizer) stamp(dst *image.RGBA, l look, m matrix, x, y, w, h float64, paint func(*image.RGBA, matrix)) {
	if !finite(m.e, m.f) {
		return
	}
	if r.stamping {
		paint(dst, m)
		return
	}
	r.stamping = true
	defer func() { r.stamping = false }()
	left, top := math.Floor(m.e), math.Floor(m.f)
	m.e, m.f = m.e-left, m.f-top
	at := *dst
	at.Rect = at.Rect.Sub(image.Pt(int(left), int(top)))
	box := m.bounds(x, y, w, h, image.Rect(-1e6, -1e6, 1e6, 1e6)).Inset(-1)
	if box.Intersect(at.Rect).Empty() {
		return
	}
	if r.sprites.off || !box.In(at.Rect) || box.Dx()*box.Dy() > mostSpriteArea {
		paint(&at, m)
		return
	}
	l.m = m
	k, ok := r.sprites.get(l)
	if k.s == nil {
		if !ok {
			r.sprites.put(l, kept{image: r.images})
		}
		if !ok || k.image == r.images {
			paint(&at, m)
			return
		}
		k.s = r.compile(box, l.share, m, paint)
		r.sprites.put(l, k)
	}
	k.s.paint(&at)
}

// compile makes the sprite of what paint fills.
func (r *Rasterizer) compile(box image.Rectangle, share uint8, m matrix, paint func(*image.RGBA, matrix)) *sprite {
	r.record.begin(box, share < 255)
	r.recording = true
	paint(&image.RGBA{Rect: box}, m)
	r.recording = false
	return r.record.sprite(share)
}
