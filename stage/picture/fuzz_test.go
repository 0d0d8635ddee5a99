package picture_test

import (
	"encoding/binary"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/clipperhouse/displaywidth"

	"github.com/sajou-dev/sajou-go/stage"
	"github.com/sajou-dev/sajou-go/stage/picture"
	"github.com/sajou-dev/sajou-go/stage/scene"
)

// arbitrary makes a frame of bytes, with arbitrary floats and texts of arbitrary bytes.
func arbitrary(numbers []byte, words string) *stage.Frame {
	number := func() float64 {
		if len(numbers) == 0 {
			return 1
		}
		// Small numbers are more frequent.
		if numbers[0] < 200 {
			v := float64(numbers[0]) * 5
			numbers = numbers[1:]
			return v
		}
		var b [8]byte
		numbers = numbers[copy(b[:], numbers):]
		return math.Float64frombits(binary.LittleEndian.Uint64(b[:]))
	}
	texts := strings.Split(words, "|")
	next := 0
	word := func() string {
		next++
		return texts[next%len(texts)]
	}
	f := &stage.Frame{At: time.Duration(number() * 1e6)}
	if number() > 1 {
		f.Scene = &scene.Scene{
			Width: number(), Height: number(), Background: word(),
			Slots:     []scene.Slot{{Name: word(), At: scene.Point{X: number(), Y: number()}}},
			Waypoints: map[string]scene.Point{word(): {X: number(), Y: number()}, word(): {X: number(), Y: number()}},
			Routes:    map[string]scene.Route{word(): {Points: []scene.Point{{X: number(), Y: number()}, {X: number()}}, Closed: number() > 9}},
		}
	}
	for range 12 {
		if len(numbers) == 0 {
			break
		}
		f.Figures = append(f.Figures, stage.Figure{
			ID: word(), Label: word(), Look: scene.Look{Figure: word(), Color: word(), Size: number()},
			X: number(), Y: number(), Height: number(), Visible: number() != 7, Opacity: number() / 500, Tint: word(), Strength: number() / 500,
			Scale: number() / 500, Rotation: number(), State: word(), Text: word(), TextOpacity: number() / 500,
		})
		f.Beams = append(f.Beams, stage.Beam{
			From: word(), To: word(), FromX: number(), FromY: number(), ToX: number(), ToY: number(),
			Color: word(), Width: number(), Opacity: number() / 500,
		})
		f.Sounds = append(f.Sounds, stage.Sound{At: f.At - time.Duration(number()), Sound: word(), Entity: word()})
	}
	return f
}

// wellFormed reads a document to its end and fails the test on an error.
func wellFormed(data []byte) error {
	d := xml.NewDecoder(strings.NewReader(string(data)))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// FuzzDraw makes pictures of arbitrary frames: none panics, every document is
// XML, and no row of a terminal is too long or holds a control character.
func FuzzDraw(f *testing.F) {
	f.Add([]byte("\x00\x20\xc0\x6c"), "robot|claude|thinking|#4f8cff|gold|I think; therefore", 960)
	f.Add([]byte{20, 10, 200, 100, 60, 60, 60, 30, 30, 30, 30, 30, 30, 99, 99, 99, 99, 255, 255, 255, 255, 255, 255, 255, 255, 1, 2, 3}, "a\x00b|<&>\"'|\u202eabc|\xff\xfe|日本🙂|\u0301\u0301", 33)
	f.Add([]byte("\xff\x00\x00\x00\x00\x00\x00\xf0\x7f\xff\x00\x00\x00\x00\x00\x00\xf8\x7f"), "", -5)
	f.Fuzz(func(t *testing.T, numbers []byte, words string, width int) {
		if len(numbers) > 1024 || len(words) > 4096 {
			return // a larger frame tests nothing more
		}
		frame := arbitrary(numbers, words)
		opt := picture.Options{Width: min(width, 2000), Title: words, Address: words, Clock: width%2 == 0, Places: width%3 == 0}
		d := picture.Draw(frame, opt)
		data := d.AppendSVG(nil)
		if err := wellFormed(data); err != nil {
			t.Errorf("not XML: %v\n%s", err, data)
		}
		if strings.Contains(string(data), "NaN") && !strings.Contains(words, "NaN") {
			t.Errorf("a number that is none:\n%s", data)
		}
		d.Image(64)
		compared, _ := picture.Compare(frame, arbitrary(nil, words), picture.CompareOptions{Options: opt})
		if err := wellFormed(compared.AppendSVG(nil)); err != nil {
			t.Errorf("comparison is not XML: %v", err)
		}
		compared.Image(48)
		cols, rows := max(width%120, -1), len(words)%40
		text := picture.Terminal(frame, cols, rows, false)
		lines := strings.SplitAfter(text, "\n")
		if len(lines) > max(rows, 0)+1 {
			t.Errorf("%d lines, want at most %d", len(lines)-1, rows)
		}
		for _, l := range lines {
			l = strings.TrimSuffix(l, "\n")
			if w := displaywidth.String(l); w > cols && l != "" {
				t.Errorf("%q is %d wide, want at most %d", l, w, cols)
			}
			if strings.ContainsFunc(l, unicode.IsControl) {
				t.Errorf("%q holds a control character", l)
			}
		}
	})
}
