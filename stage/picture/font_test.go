package picture_test

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/image/font/gofont/goregular"

	"github.com/sajou-dev/sajou-go/stage"
	"github.com/sajou-dev/sajou-go/stage/picture"
	"github.com/sajou-dev/sajou-go/stage/scene"
)

// chinese returns the built-in font with the character U+4E00 in the place of U+FB01, so that it has
// one that the built-in fonts lack.
func chinese(t testing.TB) []byte {
	data := append([]byte(nil), goregular.TTF...)
	u16 := func(at int) int { return int(binary.BigEndian.Uint16(data[at:])) }
	for table := 12; table < 12+16*u16(4); table += 16 {
		if string(data[table:table+4]) != "cmap" {
			continue
		}
		cmap := int(binary.BigEndian.Uint32(data[table+8:]))
		for e := cmap + 4; e < cmap+4+8*u16(cmap+2); e += 8 {
			sub := cmap + int(binary.BigEndian.Uint32(data[e+4:]))
			if u16(sub) != 4 {
				continue
			}
			n := u16(sub+6) / 2
			for i := range n {
				end, start, delta := sub+14+2*i, sub+16+2*n+2*i, sub+16+4*n+2*i
				if u16(start) == 0xfb01 {
					shift := 0xfb01 - 0x4e00
					binary.BigEndian.PutUint16(data[end:], uint16(u16(end)-shift))
					binary.BigEndian.PutUint16(data[start:], 0x4e00)
					binary.BigEndian.PutUint16(data[delta:], uint16(u16(delta)+shift))
					return data
				}
			}
		}
	}
	t.Fatal("the built-in font has changed")
	return nil
}

func labelled(label string) *picture.Drawing {
	return picture.Draw(&stage.Frame{Scene: &scene.Scene{Width: 200, Height: 100}, Figures: []stage.Figure{
		{ID: "a", Label: label, Look: scene.Look{Figure: "dot", Size: 20}, X: 100, Y: 50, Visible: true, Opacity: 1, Scale: 1},
	}}, picture.Options{Width: 200})
}

// TestFont: a character that the font has is painted with its outline instead of a box, and
// the others are told.
func TestFont(t *testing.T) {
	f, err := picture.ParseFont(chinese(t))
	require.NoError(t, err)
	d := labelled("a 一 二")
	assert.Equal(t, []rune{'一', '二'}, d.Missing(nil))
	assert.Equal(t, []rune{'二'}, d.Missing(f))
	assert.Empty(t, labelled("plain Жλ").Missing(nil))
	with, without := picture.NewRasterizer(), picture.NewRasterizer()
	with.SetFont(f)
	assert.NotEqual(t, without.Image(d, 0).Pix, with.Image(d, 0).Pix)
	plain := labelled("plain Жλ 二")
	assert.Equal(t, without.Image(plain, 0).Pix, with.Image(plain, 0).Pix, "no other character changes")
}

// TestVisual: Arabic letters join, and runs from right to left are reversed with their marks.
func TestVisual(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{"plain 12", "plain 12"},
		{"שלום a", "םולש a"},
		{"a (שלום 12 שלום) b", "a (םולש 12 םולש) b"},
		{"بيت", "\ufe96\ufef4\ufe91"}, // initial, medial, final
		{"باب", "\ufe8f\ufe8e\ufe91"}, // alef joins nothing after it
		{"ء", "\ufe80"},
		{"日本", "日本"},
	} {
		assert.Equal(t, tc.want, string(picture.Visual(tc.text, true)), "%+q", tc.text)
		assert.Equal(t, tc.text, string(picture.Visual(tc.text, false)))
	}
}

// TestBadFonts: what is no font is refused.
func TestBadFonts(t *testing.T) {
	font := chinese(t)
	for _, data := range [][]byte{nil, []byte("ttcf"), []byte("text"), font[:40], font[:len(font)/2], make([]byte, 1000)} {
		_, err := picture.ParseFont(data)
		assert.ErrorIs(t, err, picture.ErrFont)
	}
}

// use paints a few characters with a font that may be damaged.
func useFont(data []byte) {
	f, err := picture.ParseFont(data)
	if err != nil {
		return
	}
	d := labelled("一二三日本語🙂بيت")
	d.Missing(f)
	r := picture.NewRasterizer()
	r.SetFont(f)
	r.Image(d, 0)
}

// TestDamagedFonts: a font with a few changed bytes is refused or used, without a panic.
func TestDamagedFonts(t *testing.T) {
	whole := chinese(t)
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		data := append([]byte(nil), whole...)
		for range 1 + random.IntN(6) {
			at := random.IntN(len(data))
			if random.IntN(2) == 0 {
				at = random.IntN(2000) // the tables of tables
			}
			data[at] = byte(random.IntN(256))
		}
		useFont(data)
	}
}

// FuzzFont changes a font at one place of its tables.
func FuzzFont(f *testing.F) {
	whole := chinese(f)
	f.Add(uint32(0), []byte{})
	f.Add(uint32(12), []byte("glyf"))
	f.Add(uint32(500), []byte{0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(_ *testing.T, at uint32, change []byte) {
		data := append([]byte(nil), whole...)
		copy(data[int(at)%len(data):], change)
		useFont(data)
		useFont(change)
	})
}
