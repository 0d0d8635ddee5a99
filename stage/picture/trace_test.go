package picture_test

import (
	"crypto/sha256"
	"fmt"
	"image"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/internal/golden"
	"github.com/sajou-dev/sajou-go/stage"
	"github.com/sajou-dev/sajou-go/stage/picture"
	"github.com/sajou-dev/sajou-go/stage/scene"
)

// drawnFrame draws a frame with all that a stage can show, also at the edges.
func drawnFrame(d *golden.Dice) *stage.Frame {
	pick := func(texts ...string) string { return golden.Pick(d, texts...) }
	number := func(from, to int) float64 { return float64(from) + float64(d.N((to-from)*4+1))/4 }
	share := func() float64 { return golden.Pick(d, 0.0, 0.25, 0.5, 1, 1, 1) }
	w, h := golden.Pick(d, 320.0, 960, 200, 1000), golden.Pick(d, 180.0, 540, 600)
	color := func() string { return pick(append(testColors, "gold", "#fff8", "transparent", "", "ivory")...) }
	f := &stage.Frame{At: time.Duration(d.N(20000)) * time.Millisecond, Scene: &scene.Scene{
		Width: w, Height: h, Background: pick("#101826", "ivory", "", "white", "#334"), Layers: []string{"a", "b"},
		Slots:     []scene.Slot{{Name: "left", At: scene.Point{X: w / 4, Y: h / 2}}, {Name: "a long name of a place", At: scene.Point{X: w - 5, Y: h - 5}}},
		Waypoints: map[string]scene.Point{"mine": {X: w / 2, Y: h / 3}, "": {X: 3, Y: 3}},
		Routes: map[string]scene.Route{
			"way":   {Points: []scene.Point{{X: 10, Y: 10}, {X: w / 2, Y: h / 2}, {X: w, Y: 20}}},
			"round": {Points: []scene.Point{{X: 60, Y: 80}, {X: 160, Y: 80}, {X: 160, Y: 130}}, Closed: true},
		},
	}, Mark: pick("", "", "redacted: 3 members")}
	looks := append(picture.Figures(), "unheard of")
	for i := range d.N(14) {
		g := stage.Figure{
			ID: fmt.Sprint("agent-", i), Label: pick("", "agent", "A rather long label of an agent that works", "日本", "a\nb", "x <&> \"y\""),
			Look: scene.Look{Figure: pick(looks...), Color: color(), Size: number(20, 140)}, X: number(-20, int(w)+20), Y: number(-20, int(h)+20),
			Layer: d.N(2), Visible: !d.Once(8), Opacity: share(), Scale: golden.Pick(d, 0.0, 0.5, 1, 1, 1, 1.5), Rotation: golden.Pick(d, 0.0, 0, 0, 25, -90, 180, 370.5),
			State: pick(testStates...), Height: golden.Pick(d, 0.0, 0, 0, 40, 200),
		}
		if d.Once(3) {
			g.Tint, g.Strength = color(), share()
		}
		if d.Once(2) {
			g.Text = pick("Hi.", "I read the specification first, then I write the tests, and then I run them all again", "日本語 and 🙂 stay", strings.Repeat("long ", 60), "oneverylongwordthatdoesnotfitintoanyline", "a\n\nb", "שלום עולם")
			g.TextOpacity = share()
		}
		f.Figures = append(f.Figures, g)
	}
	for range d.N(4) {
		f.Beams = append(f.Beams, stage.Beam{From: "agent-0", To: pick("agent-1", "mine", ""), FromX: number(0, int(w)), FromY: number(0, int(h)), ToX: number(0, int(w)), ToY: number(0, int(h)), Color: color(), Width: number(0, 8), Opacity: share()})
	}
	for range d.N(6) {
		f.Sounds = append(f.Sounds, stage.Sound{At: f.At - time.Duration(d.N(1500))*time.Millisecond, Sound: pick("hammer", "door", "a long name of a sound that is played"), Entity: pick("", "agent-0", "agent-2", "nobody")})
	}
	slices.SortStableFunc(f.Sounds, func(a, b stage.Sound) int { return int(a.At - b.At) })
	return f
}

// oddFrame draws a frame with what no stage shows by itself, and with more than a picture
// has room for.
func oddFrame(d *golden.Dice) *stage.Frame {
	f := drawnFrame(d)
	odd := func() float64 {
		return golden.Pick(d, 0, -1, -0.5, 1e-9, 1, 2.25, 17, 400, 5000, 1e12, math.NaN(), math.Inf(1), math.Inf(-1))
	}
	for i := range f.Figures {
		g := &f.Figures[i]
		for _, member := range []*float64{&g.X, &g.Y, &g.Opacity, &g.Scale, &g.Rotation, &g.Height, &g.Strength, &g.TextOpacity, &g.Look.Size} {
			if d.Once(7) {
				*member = odd()
			}
		}
		if d.Once(5) {
			g.ID = golden.Pick(d, "agent-0", "agent-1", "", "é")
		}
		if d.Once(4) {
			g.State = golden.Pick(d, "acting", "spark", "idle", "waiting", "done", "error", " odd state ", "")
		}
	}
	for i := range f.Beams {
		b := &f.Beams[i]
		for _, member := range []*float64{&b.FromX, &b.FromY, &b.ToX, &b.ToY, &b.Width, &b.Opacity} {
			if d.Once(6) {
				*member = odd()
			}
		}
	}
	sc := f.Scene
	switch d.N(8) {
	case 0:
		f.Scene = nil
	case 1:
		sc.Width, sc.Height = golden.Pick(d, 1.0, 0, 100, 5000), golden.Pick(d, 1.0, -3, 100, 5000)
	case 2:
		sc.Width, sc.Height = odd(), odd()
	case 3:
		// One more than is shown of each kind, and one less.
		for i := range 499 + d.N(4) {
			x, y := float64(20*i%300), float64(15*i/300*9)
			sc.Slots = append(sc.Slots, scene.Slot{Name: golden.Pick(d, "", "s", fmt.Sprint("slot ", i)), At: scene.Point{X: x, Y: y}})
			sc.Waypoints[fmt.Sprintf("w%03d", i)] = scene.Point{X: y, Y: x}
			sc.Routes[fmt.Sprintf("r%03d", i)] = scene.Route{Points: []scene.Point{{X: x, Y: 1}, {X: y, Y: 2}}}
			f.Beams = append(f.Beams, stage.Beam{FromX: x, FromY: y, ToX: y, ToY: x, Color: "red", Width: 1, Opacity: 1})
		}
	case 4:
		for i := range golden.Pick(d, 60, 299, 305, 999, 1003) {
			g := stage.Figure{ID: fmt.Sprint("c", i), Look: scene.Look{Figure: "token", Size: 12}, X: float64(i * 37 % 900), Y: float64(i * 11 % 500), Visible: true, Opacity: 1, Scale: 1, State: fmt.Sprint("state ", i%90), TextOpacity: 1}
			if d.Once(3) {
				g.Text, g.Label = "Hello", "someone with a name"
			}
			f.Figures = append(f.Figures, g)
		}
	case 5:
		for i := range 30 {
			f.Figures = append(f.Figures, stage.Figure{ID: fmt.Sprint("big", i), Look: scene.Look{Figure: "person", Size: sc.Height * 2}, X: sc.Width / 2, Y: sc.Height, Visible: true, Opacity: 1, Scale: 1})
		}
	case 6:
		sc.Routes["short"] = scene.Route{Points: []scene.Point{{X: 1, Y: 1}}}
		sc.Routes["odd"] = scene.Route{Points: []scene.Point{{X: 1, Y: 1}, {X: odd(), Y: odd()}}, Closed: true}
		sc.Routes["long"] = scene.Route{Points: make([]scene.Point, 500+d.N(2))}
		sc.Slots = append(sc.Slots, scene.Slot{Name: "edge", At: scene.Point{X: sc.Width, Y: 0}}, scene.Slot{Name: "odd", At: scene.Point{X: odd(), Y: odd()}}, scene.Slot{Name: "beyond", At: scene.Point{X: sc.Width + 1, Y: sc.Height}})
		sc.Waypoints["edge"], sc.Waypoints["odd"] = scene.Point{X: 0, Y: sc.Height}, scene.Point{X: odd(), Y: odd()}
	}
	if d.Once(3) {
		f.Mark = strings.Repeat("a long mark ", d.N(12))
	}
	return f
}

// digestOf tells of an image by its digest.
func digestOf(img *image.RGBA) string {
	return fmt.Sprintf("%v %x\n", img.Rect, sha256.Sum256(img.Pix))
}

// Drawn frames have the pictures, pixels and differences that they had.
func TestRecordedPictures(t *testing.T) {
	r := picture.NewRasterizer()
	golden.Trace(t, "testdata/trace.txt", func(step func(name, text string)) {
		for n := range uint64(300) {
			d := golden.NewDice(n)
			a, b := drawnFrame(d), drawnFrame(d)
			opt := picture.Options{
				Width: golden.Pick(d, 0, 240, 480, 960), Title: golden.Pick(d, "", "", "A title", strings.Repeat("A long title ", 12)), Address: golden.Pick(d, "", "812+350ms"),
				Clock: d.Once(2), Places: d.Once(2), Theme: golden.Pick(d, append(picture.Themes(), "")...),
			}
			drawing := picture.Draw(a, opt)
			tell := func(d *picture.Drawing) string {
				w, h := d.Size()
				return fmt.Sprintf("%v %v %d %+v\n%s\n", w, h, d.Omitted(), d.Boxes(), d.AppendSVG(nil))
			}
			step(fmt.Sprintf("%d drawn", n), tell(drawing))
			img := r.Image(drawing, golden.Pick(d, 160, 200, 333))
			step(fmt.Sprintf("%d painted", n), digestOf(img))
			if n%2 == 0 {
				step(fmt.Sprintf("%d terminal", n), picture.Terminal(a, golden.Pick(d, 20, 60, 81), golden.Pick(d, 8, 20), d.Once(2)))
			}
			// A frame that differs in a few members.
			c := *a
			c.Figures = slices.Clone(a.Figures)
			for i := range c.Figures {
				if g := &c.Figures[i]; i < len(b.Figures) {
					o := b.Figures[i]
					switch d.N(9) {
					case 0:
						g.X, g.Y = o.X, o.Y
					case 1:
						g.Look, g.Label = o.Look, o.Label
					case 2:
						g.Opacity, g.Scale, g.Rotation = o.Opacity, o.Scale, o.Rotation
					case 3:
						g.Tint, g.Strength, g.State = o.Tint, o.Strength, o.State
					case 4:
						g.Text, g.TextOpacity, g.Layer = o.Text, o.TextOpacity, o.Layer
					case 5:
						g.Visible, g.Height = o.Visible, o.Height
					case 6:
						g.X += 0.4
					}
				}
			}
			if d.Once(2) {
				c.Beams = b.Beams
			}
			if d.Once(3) {
				c.Figures, c.Sounds = c.Figures[:len(c.Figures)/2], b.Sounds
			}
			if n%2 == 1 {
				compared, differences := picture.Compare(a, &c, picture.CompareOptions{Options: opt, Before: "was", After: golden.Pick(d, "", "is"), Tolerance: golden.Pick(d, 0.0, 0.5, 3)})
				step(fmt.Sprintf("%d compared", n), fmt.Sprint(differences)+tell(compared))
				sheet := picture.Sheet([]picture.Cell{{Frame: a, Caption: "1"}, {Frame: &c, Caption: strings.Repeat("wide ", d.N(20))}, {Frame: b}}[:1+d.N(3)], d.N(4), opt)
				step(fmt.Sprintf("%d sheet", n), tell(sheet))
			}
			if n%4 == 0 {
				mask := image.NewRGBA(img.Rect)
				for i := range d.N(len(mask.Pix)) {
					if i%4 == 3 {
						mask.Pix[i] = 255
					}
				}
				first := r.Image(drawing, img.Rect.Dx())
				first = &image.RGBA{Pix: slices.Clone(first.Pix), Stride: first.Stride, Rect: first.Rect}
				other := r.Image(picture.Draw(&c, opt), img.Rect.Dx())
				diff, err := picture.DiffImages(first, other, golden.Pick[image.Image](d, mask, nil), d.N(40))
				require.NoError(t, err)
				step(fmt.Sprintf("%d differs", n), fmt.Sprint(diff.Compared, diff.Differ, diff.Share, diff.Most, digestOf(diff.Image)))
			}
			if n%8 == 0 {
				var b2 strings.Builder
				cells := func(yield func(picture.Cell) bool) {
					_ = yield(picture.Cell{Frame: a, Caption: "1"}) && yield(picture.Cell{Frame: &c, Caption: "2"})
				}
				require.NoError(t, picture.Animate(&b2, cells, picture.GIFOptions{Options: opt, Pixels: 120, Rate: golden.Pick(d, 0, 7, 50), Once: d.Once(2)}))
				step(fmt.Sprintf("%d animated", n), b2.String())
			}
		}
		for n := range uint64(160) {
			d := golden.NewDice(n)
			f := oddFrame(d)
			opt := picture.Options{
				Width: golden.Pick(d, 0, 1, 16, 17, 100, 640, 2000, 8192, 9000, -5), Title: golden.Pick(d, "", " ", "A title"), Address: golden.Pick(d, "", "812", strings.Repeat("812+350ms ", 20)),
				Clock: d.Once(2), Places: !d.Once(3), Theme: golden.Pick(d, append(picture.Themes(), "")...),
			}
			drawing := picture.Draw(f, opt)
			w, h := drawing.Size()
			text := fmt.Sprintf("%v %v %d %+v\n%s\n", w, h, drawing.Omitted(), drawing.Boxes(), drawing.AppendSVG(nil))
			if n%6 == 0 {
				text += digestOf(r.Image(drawing, golden.Pick(d, 90, 140)))
			}
			for i := range f.Figures {
				if g := &f.Figures[i]; d.Once(4) {
					g.Opacity, g.Text = golden.Pick(d, 0.3, g.Opacity), strings.Repeat("ab c", d.N(14))+golden.Pick(d, "", "d", "de", "日")
				}
			}
			for range 3 {
				text += picture.Terminal(f, golden.Pick(d, 0, 1, 2, 5, 20, 51, 52, 60, 1000, 1001), golden.Pick(d, 0, 1, 2, 3, 4, 8, 20), d.Once(2))
			}
			if n%4 == 0 {
				other := oddFrame(d)
				compared, differences := picture.Compare(f, other, picture.CompareOptions{Options: opt, Before: "was", After: "is", Tolerance: golden.Pick(d, -1.0, 0, 40)})
				sheet := picture.Sheet([]picture.Cell{{Frame: f, Caption: "1"}, {Frame: other}, {Frame: f, Caption: "3"}}, golden.Pick(d, -1, 0, 1, 2, 9), opt)
				for _, d := range []*picture.Drawing{compared, sheet} {
					w, h := d.Size()
					text += fmt.Sprintf("%v %v %v %d %+v\n%s\n", differences, w, h, d.Omitted(), d.Boxes(), d.AppendSVG(nil))
				}
			}
			step(fmt.Sprintf("%d odd", n), text)
		}
	})
}
