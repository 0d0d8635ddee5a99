package picture

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/png"
	"io"
	"slices"
	"sync"
)

// EncodePNG writes an image as PNG, compressed for speed rather than for size. The same
// image always gives the same bytes.
func EncodePNG(w io.Writer, img image.Image) error {
	var err error
	if pixels, ok := img.(*image.RGBA); ok && !pixels.Rect.Empty() {
		e, _ := pngEncoders.Get().(*pngEncoder)
		if e == nil {
			e = &pngEncoder{}
		}
		err = e.encode(w, pixels)
		if cap(e.out) <= mostPooled {
			pngEncoders.Put(e)
		}
	} else {
		err = (&png.Encoder{CompressionLevel: png.BestSpeed}).Encode(w, img)
	}
	if err != nil {
		return fmt.Errorf("picture: write png: %w", err)
	}
	return nil
}

// pngEncoder writes images of a rasterizer. Package image/png tries five filters on
// every row, which takes most of its time. This encoder always writes the difference to
// the row above: the rows of a drawing are mostly those above them, so most differences
// are zeros.
type pngEncoder struct {
	out        []byte
	compressor deflater
	line       []byte // the filter and the filtered row
}

// pngEncoders are encoders to use again, each with up to mostPooled bytes of output.
var pngEncoders sync.Pool

const mostPooled = 4 << 20

// The parts of the format that the encoder uses.
const (
	pngSignature = "\x89PNG\r\n\x1a\n"
	pngRGB       = 2
	pngRGBA      = 6
	pngUp        = 2 // a row is the difference to the one above
)

func (e *pngEncoder) encode(w io.Writer, img *image.RGBA) error {
	size, kind, depth := img.Rect.Size(), byte(pngRGB), 3
	if !img.Opaque() {
		kind, depth = pngRGBA, 4
	}
	header := binary.BigEndian.AppendUint32(nil, uint32(size.X))
	header = binary.BigEndian.AppendUint32(header, uint32(size.Y))
	e.out = append(e.out[:0], pngSignature...)
	start := e.begin("IHDR")
	e.out = append(append(e.out, header...), 8, kind, 0, 0, 0) // 8 bits a channel, not interlaced
	e.end(start)
	start = e.begin("IDAT")
	e.rows(img, size, depth)
	e.end(start)
	e.end(e.begin("IEND"))
	_, err := w.Write(e.out)
	return err
}

// begin starts a chunk, whose length end fills in.
func (e *pngEncoder) begin(name string) (start int) {
	start = len(e.out)
	e.out = append(e.out, "\x00\x00\x00\x00"+name...)
	return start
}

// end writes the length and the checksum of a chunk.
func (e *pngEncoder) end(start int) {
	chunk := e.out[start:]
	binary.BigEndian.PutUint32(chunk, uint32(len(chunk)-8))
	e.out = binary.BigEndian.AppendUint32(e.out, crc32.ChecksumIEEE(chunk[4:]))
}

// rows compresses the rows of an image, depth bytes a pixel.
func (e *pngEncoder) rows(img *image.RGBA, size image.Point, depth int) {
	e.compressor.begin(e.out)
	n := 1 + depth*size.X
	e.line = slices.Grow(e.line[:0], n)[:n]
	e.line[0] = pngUp
	above := make([]byte, 4*size.X) // transparent black above the first row
	for y := range size.Y {
		row := img.Pix[y*img.Stride:][:4*size.X]
		if depth == 3 {
			upRGB(e.line[1:], row, above)
		} else {
			upNRGBA(e.line[1:], row, above)
		}
		e.compressor.write(e.line)
		above = row
	}
	e.out = e.compressor.end()
}

// upRGB writes the differences of the colors of two rows of opaque pixels.
func upRGB(dst, row, above []byte) {
	clear(dst)
	for at := 0; len(row) >= 4 && len(above) >= 4; row, above, at = row[4:], above[4:], at+3 {
		if binary.LittleEndian.Uint32(row) != binary.LittleEndian.Uint32(above) {
			d := dst[at:][:3]
			d[0], d[1], d[2] = row[0]-above[0], row[1]-above[1], row[2]-above[2]
		}
	}
}

// upNRGBA writes the differences of the pixels of two rows as PNG has them, whose colors
// are not multiplied by the alpha.
func upNRGBA(dst, row, above []byte) {
	clear(dst)
	for at := 0; len(row) >= 4 && len(above) >= 4; row, above, at = row[4:], above[4:], at+4 {
		if binary.LittleEndian.Uint32(row) != binary.LittleEndian.Uint32(above) {
			p, q := straight(row), straight(above)
			d := dst[at:][:4]
			d[0], d[1], d[2], d[3] = p.R-q.R, p.G-q.G, p.B-q.B, p.A-q.A
		}
	}
}

// straight returns a pixel with its colors not multiplied by its alpha.
func straight(p []byte) color.NRGBA {
	c, _ := color.NRGBAModel.Convert(color.RGBA{p[0], p[1], p[2], p[3]}).(color.NRGBA)
	return c
}
