package picture_test

import (
	"io"
	"testing"

	"github.com/sajou-dev/sajou-go/stage/picture"
)

// Drawing a frame of 200 figures with labels and states, from the frame to the bytes.

func BenchmarkSVG(b *testing.B) {
	f := crowd(200)
	var dst []byte
	b.ReportAllocs()
	for b.Loop() {
		dst = picture.Draw(f, picture.Options{}).AppendSVG(dst[:0])
	}
	b.SetBytes(int64(len(dst)))
}

func BenchmarkImage(b *testing.B) {
	f, r := crowd(200), picture.NewRasterizer()
	b.ReportAllocs()
	for b.Loop() {
		r.Image(picture.Draw(f, picture.Options{}), 960)
	}
}

func BenchmarkPNG(b *testing.B) {
	f, r := crowd(200), picture.NewRasterizer()
	b.ReportAllocs()
	for b.Loop() {
		if err := picture.EncodePNG(io.Discard, r.Image(picture.Draw(f, picture.Options{}), 960)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkTerminal(b *testing.B) {
	f := crowd(200)
	b.ReportAllocs()
	for b.Loop() {
		picture.Terminal(f, 120, 40, true)
	}
}
