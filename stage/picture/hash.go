package picture

import (
	"crypto/sha256"
	"encoding/binary"
	"image/color"
	"math"
)

// Hash returns the SHA-256 of everything that determines the images and the documents of
// the drawing, and its boxes. Drawings with equal hashes look the same, so a program can
// compare pictures without painting them. Another version of this package may have other
// hashes.
func (d *Drawing) Hash() [32]byte { return sha256.Sum256(d.appendAll(nil)) }

func (d *Drawing) appendAll(dst []byte) []byte {
	dst = appendFloats(dst, d.width, d.height)
	dst = binary.AppendUvarint(dst, uint64(d.ground))
	dst = binary.AppendUvarint(dst, uint64(d.omitted))
	dst = appendShapes(dst, d.shapes)
	dst = binary.AppendUvarint(dst, uint64(len(d.boxes)))
	for i := range d.boxes {
		b := &d.boxes[i]
		dst = appendText(dst, string(b.Kind))
		dst = appendText(dst, b.Entity)
		dst = appendText(dst, b.Text)
		dst = appendFloats(dst, b.X, b.Y, b.W, b.H)
	}
	return dst
}

func appendShapes(dst []byte, shapes []shape) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(shapes)))
	for i := range shapes {
		s := &shapes[i]
		dst = append(dst, byte(s.kind), flag(s.bold)|flag(s.whole)<<1|flag(s.symbol != nil)<<2|flag(s.inner != nil)<<3)
		dst = appendColor(appendColor(dst, s.fill), s.stroke)
		dst = appendFloats(dst, s.opacity, s.x, s.y, s.w, s.h, s.r, s.pen, s.size, s.turn)
		dst = appendText(dst, s.text)
		dst = binary.AppendUvarint(dst, uint64(len(s.path)))
		for _, seg := range s.path {
			dst = append(dst, seg.verb)
			for _, p := range seg.p {
				dst = appendFloats(dst, p.x, p.y)
			}
		}
		if s.symbol != nil {
			dst = appendText(dst, s.symbol.name) // it determines the symbol's shapes
		}
		dst = appendShapes(dst, s.children)
		if s.inner != nil {
			dst = s.inner.appendAll(dst)
		}
	}
	return dst
}

func flag(set bool) byte {
	if set {
		return 1
	}
	return 0
}

func appendText(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

func appendColor(dst []byte, c color.NRGBA) []byte { return append(dst, c.R, c.G, c.B, c.A) }

func appendFloats(dst []byte, values ...float64) []byte {
	for _, v := range values {
		dst = binary.BigEndian.AppendUint64(dst, math.Float64bits(v))
	}
	return dst
}
