package picture

import (
	"bufio"
	"compress/lzw"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"io"
	"iter"
)

// GIFOptions are the options of an animated GIF.
type GIFOptions struct {
	Options // of every frame; a cell's caption replaces the address

	// Pixels is the width of the animation, 16 to 2048. Zero means the drawing's
	// own width.
	Pixels int

	// Rate is the number of frames a second, 1 to 50, because GIF measures time in
	// hundredths of a second. Zero means 20.
	Rate int

	// Once plays the animation once. Otherwise it repeats forever.
	Once bool

	// Font has the characters that the built-in fonts lack; nil for none.
	Font *Font
}

// ErrNoFrames is the error of an animation without a frame.
var ErrNoFrames = errors.New("picture: no frames to animate")

const (
	mostGIFWidth = 2048
	// The colors are chosen from looked of the first ahead frames. The others are kept as
	// frames and not as images, to save memory.
	ahead, looked = 64, 8
)

// Animate writes the frames as an animated GIF. All of them have one palette,
// chosen from the first sixty-four with an even cube for the colors of later frames, and
// no dithering, so that unchanged areas do not flicker. Each frame is written as its
// difference from the one before, and at most three images are in memory, however long
// the animation is.
//
// The caption of a cell is shown in place of the address. All frames have the size of the
// first. After an error of w the output is incomplete.
func Animate(w io.Writer, cells iter.Seq[Cell], opt GIFOptions) error {
	a := animator{opt: opt, w: w, r: NewRasterizer(), width: min(opt.Pixels, mostGIFWidth)}
	a.r.SetFont(opt.Font)
	for c := range cells {
		if a.gif == nil && len(a.first) < ahead {
			a.first = append(a.first, c)
			continue
		}
		if err := a.begin(); err != nil {
			return err
		}
		if err := a.show(c); err != nil {
			return err
		}
	}
	if len(a.first) == 0 && a.gif == nil {
		return ErrNoFrames
	}
	if err := a.begin(); err != nil {
		return err
	}
	return a.gif.end()
}

// animator keeps the first frames until it knows the colors.
type animator struct {
	opt   GIFOptions
	w     io.Writer
	r     *Rasterizer
	width int
	size  image.Rectangle
	first []Cell
	gif   *gifWriter // nil until the colors are chosen
	same  *image.RGBA
}

// begin chooses the colors and shows the frames that were kept, once.
func (a *animator) begin() error {
	if a.gif != nil {
		return nil
	}
	var h histogram
	for i := 0; i < len(a.first); i += max(1, len(a.first)/looked) {
		d := a.draw(a.first[i])
		if a.width <= 0 {
			a.width = min(int(d.width), mostGIFWidth)
		}
		img := a.r.Image(d, a.width)
		if i == 0 {
			a.size = img.Rect
		}
		h.add(img)
	}
	a.gif = newGIF(a.w, a.size, h.palette(255), a.opt)
	for _, c := range a.first {
		if err := a.show(c); err != nil {
			return err
		}
	}
	a.first = nil
	return nil
}

func (a *animator) draw(c Cell) *Drawing {
	opt := a.opt.Options
	if c.Caption != "" {
		opt.Address = c.Caption
	}
	return Draw(c.Frame, opt)
}

func (a *animator) show(c Cell) error {
	img := a.r.Image(a.draw(c), a.width)
	if img.Rect != a.size {
		// The scene has another shape: its picture is cropped, or padded with black.
		a.same = scratch(a.same, a.size)
		draw.Draw(a.same, a.size, image.Black, image.Point{}, draw.Src)
		draw.Draw(a.same, img.Rect, img, image.Point{}, draw.Src)
		img = a.same
	}
	return a.gif.frame(img)
}

// gifWriter writes a GIF frame by frame. image/gif needs all frames at once.
type gifWriter struct {
	w       *bufio.Writer
	size    image.Rectangle
	palette []color.RGBA
	nearest [1 << 21]uint8 // of a color of 7 bits a channel, 0 if not looked up yet
	rate    int
	shown   []uint8 // the image as it is displayed so far
	now     []uint8
	part    []uint8 // the pixels of the frame that is held back
	at      image.Rectangle
	held    int // the number of equal frames that are held back as one
	count   int // frames before it
}

// clearIndex is the transparent color: the frame before shows through.
const clearIndex = 0

func newGIF(w io.Writer, size image.Rectangle, palette []color.RGBA, opt GIFOptions) *gifWriter {
	g := &gifWriter{w: bufio.NewWriter(w), size: size, palette: palette, rate: min(max(opt.Rate, 0), 50)}
	if g.rate == 0 {
		g.rate = 20
	}
	n := size.Dx() * size.Dy()
	g.shown, g.now = make([]uint8, n), make([]uint8, n)

	// Header, screen of 256 colors, the colors. bufio keeps the first error
	// for the flush at the end, as for all that follows.
	g.bytes([]byte("GIF89a"))
	g.word(size.Dx())
	g.word(size.Dy())
	g.bytes([]byte{0xf7, 0, 0})
	g.bytes([]byte{0, 0, 0})
	for i := range 255 {
		var c color.RGBA
		if i < len(palette) {
			c = palette[i]
		}
		g.bytes([]byte{c.R, c.G, c.B})
	}
	if !opt.Once {
		g.bytes([]byte("\x21\xff\x0bNETSCAPE2.0\x03\x01\x00\x00\x00"))
	}
	return g
}

// bytes writes b. The buffered writer keeps the error, which the caller gets later.
func (g *gifWriter) bytes(b []byte) { _, _ = g.w.Write(b) }

func (g *gifWriter) word(v int) { g.bytes([]byte{uint8(v), uint8(v >> 8)}) }

// frame adds the next frame. It is held back until a different one follows, because its
// duration is written before its pixels.
func (g *gifWriter) frame(img *image.RGBA) error {
	for i := range g.now {
		p := img.Pix[4*i:][:4]
		g.now[i] = g.index(p[0], p[1], p[2])
	}
	first := g.count == 0 && g.held == 0
	changed := g.size
	if !first {
		changed = g.changed()
		if changed.Empty() {
			g.held++
			return nil
		}
	}
	if err := g.release(); err != nil {
		return err
	}
	g.at, g.held = changed, 1
	g.part = g.part[:0]
	for y := changed.Min.Y; y < changed.Max.Y; y++ {
		row := y * g.size.Dx()
		for i := row + changed.Min.X; i < row+changed.Max.X; i++ {
			c := g.now[i]
			if !first && c == g.shown[i] {
				c = clearIndex
			}
			g.part = append(g.part, c)
		}
	}
	g.shown, g.now = g.now, g.shown
	return nil
}

// changed returns the smallest rectangle that contains every difference between now and
// the displayed image.
func (g *gifWriter) changed() image.Rectangle {
	var r image.Rectangle
	w := g.size.Dx()
	for y := range g.size.Dy() {
		now, shown := g.now[y*w:][:w], g.shown[y*w:][:w]
		from := 0
		for from < w && now[from] == shown[from] {
			from++
		}
		if from == w {
			continue
		}
		to := w
		for now[to-1] == shown[to-1] {
			to--
		}
		r = r.Union(image.Rect(from, y, to, y+1))
	}
	return r
}

// release writes the frame that was held back.
func (g *gifWriter) release() error {
	if g.held == 0 {
		return nil
	}
	// The time since the beginning is rounded, not the time between two frames, so that
	// rounding errors do not add up.
	at := func(frame int) int { return (frame*100 + g.rate/2) / g.rate }
	delay := at(g.count+g.held) - at(g.count)
	g.count += g.held
	g.held = 0
	g.bytes([]byte{0x21, 0xf9, 4, 1<<2 | 1})
	g.word(min(delay, 0xffff))
	g.bytes([]byte{clearIndex, 0})
	g.bytes([]byte{0x2c})
	g.word(g.at.Min.X)
	g.word(g.at.Min.Y)
	g.word(g.at.Dx())
	g.word(g.at.Dy())
	g.bytes([]byte{0, 8})
	b := &blocks{w: g.w}
	z := lzw.NewWriter(b, lzw.LSB, 8)
	if _, err := z.Write(g.part); err != nil {
		return fmt.Errorf("picture: write frame %d: %w", g.count, err)
	}
	if err := z.Close(); err != nil {
		return fmt.Errorf("picture: write frame %d: %w", g.count, err)
	}
	if err := b.close(); err != nil {
		return fmt.Errorf("picture: write frame %d: %w", g.count, err)
	}
	return nil
}

func (g *gifWriter) end() error {
	if err := g.release(); err != nil {
		return err
	}
	g.bytes([]byte{0x3b})
	if err := g.w.Flush(); err != nil {
		return fmt.Errorf("picture: write the animation: %w", err)
	}
	return nil
}

// index returns the nearest color of the palette. Colors with equal upper seven bits
// share one search.
func (g *gifWriter) index(r, gr, b uint8) uint8 {
	key := int(r>>1)<<14 | int(gr>>1)<<7 | int(b>>1)
	if i := g.nearest[key]; i != 0 {
		return i
	}
	best, least := 0, 1<<30
	for i, c := range g.palette {
		dr, dg, db := int(c.R)-int(r), int(c.G)-int(gr), int(c.B)-int(b)
		if d := 2*dr*dr + 4*dg*dg + 3*db*db; d < least {
			best, least = i, d
		}
	}
	g.nearest[key] = uint8(best + 1) // 0 means not looked up; the transparent color is never nearest
	return g.nearest[key]
}

// blocks cuts data into GIF's blocks of at most 255 bytes.
type blocks struct {
	w   *bufio.Writer
	buf [256]byte // the length and the bytes
	n   int
}

func (b *blocks) Write(p []byte) (int, error) {
	total := len(p)
	for len(p) > 0 {
		n := copy(b.buf[1+b.n:], p)
		b.n += n
		p = p[n:]
		if b.n == 255 {
			if err := b.flush(); err != nil {
				return total - len(p), err
			}
		}
	}
	return total, nil
}

func (b *blocks) flush() error {
	b.buf[0] = byte(b.n)
	_, err := b.w.Write(b.buf[:1+b.n])
	b.n = 0
	return err
}

// close writes the remaining bytes and the empty block that ends the data.
func (b *blocks) close() error {
	if b.n > 0 {
		if err := b.flush(); err != nil {
			return err
		}
	}
	return b.w.WriteByte(0)
}
