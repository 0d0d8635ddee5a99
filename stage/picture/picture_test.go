package picture_test

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/stage"
	"github.com/sajou-dev/sajou-go/stage/picture"
	"github.com/sajou-dev/sajou-go/stage/scene"
)

// TestOutputsAgree reads the SVG of a drawing back and paints it. The image is that of the
// drawing itself, except for SVG's rounding to hundredths.
func TestOutputsAgree(t *testing.T) {
	for name, d := range goldens() {
		t.Run(name, func(t *testing.T) {
			read, err := picture.ReadSVG(d.AppendSVG(nil))
			require.NoError(t, err)
			w, h := d.Size()
			if rw, rh := read.Size(); rw != w || rh != h {
				t.Errorf("size is %v by %v, want %v by %v", rw, rh, w, h)
			}
			diff, err := picture.DiffImages(d.Image(0), read.Image(0), nil, 12)
			require.NoError(t, err)
			if diff.Share > .0005 {
				t.Errorf("%d of %d pixels differ, by up to %d", diff.Differ, diff.Compared, diff.Most)
			}
			if diff.Differ == 0 && diff.Most == 0 && name == "figures" {
				t.Error("no pixel differs at all: was the drawing read back?")
			}
		})
	}
}

// TestDrawIsPure draws one frame twice, with other drawings in between, and expects the
// same bytes and pixels.
func TestDrawIsPure(t *testing.T) {
	r := picture.NewRasterizer()
	first := picture.Draw(forge(""), picture.Options{}).AppendSVG(nil)
	pixels := picture.Draw(forge(""), picture.Options{}).Image(500)
	r.Image(picture.Draw(everyone(), picture.Options{}), 700)
	r.Image(picture.Draw(forge("ivory"), picture.Options{}), 500)
	if diff := cmp.Diff(first, picture.Draw(forge(""), picture.Options{}).AppendSVG(nil)); diff != "" {
		t.Errorf("SVG differs:\n%s", diff)
	}
	for range 2 {
		d, err := picture.DiffImages(pixels, r.Image(picture.Draw(forge(""), picture.Options{}), 500), nil, 0)
		require.NoError(t, err)
		if d.Differ > 0 {
			t.Errorf("%d pixels differ in used memory", d.Differ)
		}
	}
}

// TestShadowOnGround checks that the shadow of a flying figure is below it, and that the
// figure's own position is unchanged.
func TestShadowOnGround(t *testing.T) {
	f := forge("#101826")
	f.Figures = f.Figures[3:4]
	f.Figures[0].Y -= 100
	f.Figures[0].Height = 100
	f.Beams, f.Sounds = nil, nil
	at := func(symbol string) string {
		svg := string(picture.Draw(f, picture.Options{}).AppendSVG(nil))
		_, use, ok := strings.Cut(svg, `<use href="#`+symbol)
		if !ok {
			t.Fatalf("no %s in\n%s", symbol, svg)
		}
		use, _, _ = strings.Cut(use, "/>")
		return use
	}
	bird, shadow := at("bird"), at("shadow")
	f.Figures[0].Height = 0
	if got := at("bird"); got != bird {
		t.Errorf("the figure on the ground is at %s, in the air at %s", got, bird)
	}
	f.Figures[0].Y += 100
	if got := at("shadow"); got != shadow {
		t.Errorf("the shadow is at %s, want %s", shadow, got)
	}
}

// TestSizes makes drawings and images of unusual sizes.
func TestSizes(t *testing.T) {
	frame := func(w, h float64) *stage.Frame {
		return &stage.Frame{Scene: &scene.Scene{Width: w, Height: h}}
	}
	tests := []struct {
		frame         *stage.Frame
		width         int
		footer        bool
		wantW, wantH  float64
		pixels        int
		wantPx, wantY int
	}{
		{frame(960, 540), 0, false, 960, 540, 0, 960, 540},
		{frame(960, 540), 0, true, 960, 568, 480, 480, 284},
		{frame(10, 10), 100, false, 100, 100, 4, 16, 16},
		{frame(1, 1e6), 100, false, 100, 200, 100000, 4344, 8688},
		{frame(1e6, 1), 100, false, 100, 25, 0, 100, 25},
		{frame(-1, 5), -3, false, 16, 9, 0, 16, 9},
		{frame(math.NaN(), math.Inf(1)), 99999, false, 8192, 4608, 160, 160, 90},
		{&stage.Frame{}, 0, false, 960, 540, 320, 320, 180},
	}
	for _, tt := range tests {
		d := picture.Draw(tt.frame, picture.Options{Width: tt.width, Clock: tt.footer})
		if w, h := d.Size(); w != tt.wantW || h != tt.wantH {
			t.Errorf("%+v: drawing of width %d is %v by %v, want %v by %v", tt.frame.Scene, tt.width, w, h, tt.wantW, tt.wantH)
		}
		if testing.Short() && tt.wantPx > 1000 {
			continue
		}
		if got, want := d.Image(tt.pixels).Rect.Max, image.Pt(tt.wantPx, tt.wantY); got != want {
			t.Errorf("%+v: image of %d is %v, want %v", tt.frame.Scene, tt.pixels, got, want)
		}
	}
}

// TestBounds draws frames that exceed the limits, and checks that the omissions are
// counted and shown.
func TestBounds(t *testing.T) {
	crowded := crowd(picture.MostFigures + 25)
	for i := range crowded.Figures {
		crowded.Figures[i].Look.Size, crowded.Figures[i].Label = 4, ""
	}
	huge := crowd(200)
	for i := range huge.Figures {
		huge.Figures[i].Scale, huge.Figures[i].Label = 1e6, ""
	}
	speaking := crowd(400)
	for i := range speaking.Figures {
		speaking.Figures[i].Text, speaking.Figures[i].TextOpacity, speaking.Figures[i].Label = "one word", 1, ""
	}
	bubbles := 0
	for _, b := range picture.Draw(speaking, picture.Options{Width: 320}).Boxes() {
		if b.Kind == picture.BoxBubble {
			bubbles++
		}
	}
	beaming := &stage.Frame{Beams: make([]stage.Beam, 700)}
	for _, tt := range []struct {
		name  string
		frame *stage.Frame
		want  int
	}{
		{"figures", crowded, 25},
		{"paint", huge, 200 - 24},
		{"speeches", speaking, 400 - bubbles},
		{"beams", beaming, 200},
	} {
		d := picture.Draw(tt.frame, picture.Options{Width: 320})
		if d.Omitted() != tt.want {
			t.Errorf("%s: %d omitted, want %d", tt.name, d.Omitted(), tt.want)
		}
		if data := d.AppendSVG(nil); !strings.Contains(string(data), fmt.Sprintf("+%d not shown", tt.want)) {
			t.Errorf("%s: the picture does not tell what is not shown", tt.name)
		}
		d.Image(160)
	}
}

// TestUnlabelled checks that the ID of a figure without a label is not shown, neither in
// pictures nor in text.
func TestUnlabelled(t *testing.T) {
	for label, want := range map[string]bool{"": false, "oak": true} {
		f := &stage.Frame{Figures: []stage.Figure{{ID: "oak", Label: label, X: 100, Y: 100, Visible: true, Opacity: 1, Scale: 1}}}
		if got := strings.Contains(string(picture.Draw(f, picture.Options{}).AppendSVG(nil)), `aria-label="oak"`); got != want {
			t.Errorf("label %q: shown in the SVG: %t, want %t", label, got, want)
		}
		if got := strings.Contains(picture.Terminal(f, 80, 24, false), "oak"); got != want {
			t.Errorf("label %q: shown on the terminal: %t, want %t", label, got, want)
		}
	}
}

// TestUnseen checks that invisible figures give the picture of an empty stage.
func TestUnseen(t *testing.T) {
	empty := picture.Draw(&stage.Frame{}, picture.Options{}).AppendSVG(nil)
	good := stage.Figure{ID: "a", X: 100, Y: 100, Visible: true, Opacity: 1, Scale: 1, Text: "x", TextOpacity: 1, State: "done"}
	for name, spoil := range map[string]func(*stage.Figure){
		"hidden":      func(f *stage.Figure) { f.Visible = false },
		"transparent": func(f *stage.Figure) { f.Opacity = 0 },
		"NaN opacity": func(f *stage.Figure) { f.Opacity = math.NaN() },
		"NaN":         func(f *stage.Figure) { f.X = math.NaN() },
		"Inf":         func(f *stage.Figure) { f.Y = math.Inf(-1) },
		"far":         func(f *stage.Figure) { f.X = 1e8 },
		"no scale":    func(f *stage.Figure) { f.Scale = 0 },
		"NaN scale":   func(f *stage.Figure) { f.Scale = math.NaN() },
		"Inf size":    func(f *stage.Figure) { f.Look.Size = math.Inf(1) },
	} {
		f := good
		spoil(&f)
		got := picture.Draw(&stage.Frame{Figures: []stage.Figure{f}}, picture.Options{}).AppendSVG(nil)
		if diff := cmp.Diff(string(empty), string(got)); diff != "" {
			t.Errorf("%s is seen:\n%s", name, diff)
		}
	}
	if got := picture.Draw(&stage.Frame{Figures: []stage.Figure{good}}, picture.Options{}).AppendSVG(nil); len(got) == len(empty) {
		t.Error("the good one is not seen")
	}
}

// A figure is drawn while the square in which it turns, 1.8 times its height wide, has a part
// in the picture. One that only touches an edge is not.
func TestFiguresAtTheEdges(t *testing.T) {
	sc := &scene.Scene{Width: 960, Height: 540}
	for at, want := range map[scene.Point]bool{
		{X: -90, Y: 300}: false, {X: -89.5, Y: 300}: true,
		{X: 1050, Y: 300}: false, {X: 1049.5, Y: 300}: true,
		{X: 300, Y: -40}: false, {X: 300, Y: -39.5}: true,
		{X: 300, Y: 680}: false, {X: 300, Y: 679.5}: true,
	} {
		d := picture.Draw(&stage.Frame{Scene: sc, Figures: []stage.Figure{{ID: "a", Look: scene.Look{Size: 100}, X: at.X, Y: at.Y, Visible: true, Opacity: 1, Scale: 1}}}, picture.Options{})
		if got := len(d.Boxes()) > 0; got != want {
			t.Errorf("a figure at %v: drawn %v, want %v", at, got, want)
		}
	}
}

// Differences that cannot be seen are none: up to the tolerance of a place, a tenth of a
// degree, 1/200 of the size and one of 255 steps of the opacity.
func TestDifferencesBegin(t *testing.T) {
	const tolerance = 0.5
	base := stage.Figure{ID: "a", X: 3, Y: 4, Visible: true, Opacity: 1. / 255, Scale: 1, Tint: "red"}
	for kind, change := range map[picture.ChangeKind]func(f *stage.Figure, much bool){
		picture.Moved:  func(f *stage.Figure, much bool) { f.X += map[bool]float64{false: 0.5, true: 0.5625}[much] },
		picture.Turned: func(f *stage.Figure, much bool) { f.Rotation = map[bool]float64{false: 0.1, true: 0.101}[much] },
		picture.Scaled: func(f *stage.Figure, much bool) { f.Scale += map[bool]float64{false: 0.004, true: 0.0055}[much] },
		picture.Faded:  func(f *stage.Figure, much bool) { f.Opacity = map[bool]float64{false: 2. / 255, true: 2.1 / 255}[much] },
		picture.Tinted: func(f *stage.Figure, much bool) { f.Strength = map[bool]float64{false: 0.001, true: 0.5}[much] },
		picture.Layered: func(f *stage.Figure, much bool) {
			if much {
				f.Layer = 1
			}
		},
	} {
		for _, much := range []bool{false, true} {
			f := base
			change(&f, much)
			var want []picture.ChangeKind
			if much {
				want = append(want, kind)
			}
			for _, pair := range [][2]stage.Figure{{base, f}, {f, base}} {
				var got []picture.ChangeKind
				for _, d := range picture.Differences(&stage.Frame{Figures: pair[:1]}, &stage.Frame{Figures: pair[1:]}, tolerance) {
					got = append(got, d.Change)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s, much: %v (-want +got):\n%s", kind, much, diff)
				}
			}
		}
	}
	beam := stage.Beam{From: "a", FromX: 1, FromY: 2, ToX: 3, ToY: 4, Color: "red"}
	for name, c := range map[string]struct {
		change func(*stage.Beam)
		want   int
	}{
		"its beginning, a little": {func(b *stage.Beam) { b.FromX += tolerance }, 0},
		"its beginning":           {func(b *stage.Beam) { b.FromY += tolerance + 0.01 }, 1},
		"its end, a little":       {func(b *stage.Beam) { b.ToX += tolerance }, 0},
		"its end":                 {func(b *stage.Beam) { b.ToY += tolerance + 0.01 }, 1},
		"its color":               {func(b *stage.Beam) { b.Color = "blue" }, 1},
		"its width":               {func(b *stage.Beam) { b.Width = 9 }, 0},
	} {
		other := beam
		c.change(&other)
		if got := picture.Differences(&stage.Frame{Beams: []stage.Beam{beam}}, &stage.Frame{Beams: []stage.Beam{other}}, tolerance); len(got) != c.want {
			t.Errorf("a beam with another %s: %v", name, got)
		}
	}
	// Without a tolerance it is a hundredth of a unit.
	for x, want := range map[float64]int{3.0099: 0, 3.011: 1} {
		f := base
		f.X = x
		if got := picture.Differences(&stage.Frame{Figures: []stage.Figure{base}}, &stage.Frame{Figures: []stage.Figure{f}}, 0); len(got) != want {
			t.Errorf("from 3 to %v: %v", x, got)
		}
	}
}

// TestSymbolsAreNamedByContent collects the symbols of many drawings and checks that one
// name always means the same shapes, so that documents can share a page.
func TestSymbolsAreNamedByContent(t *testing.T) {
	seen := map[string]string{}
	rapid.Check(t, func(t *rapid.T) {
		f := &stage.Frame{At: time.Duration(rapid.IntRange(0, 5000).Draw(t, "ms")) * time.Millisecond}
		f.Figures = []stage.Figure{{
			ID: "a", Look: scene.Look{Figure: rapid.SampledFrom(picture.Figures()).Draw(t, "figure"), Color: rapid.SampledFrom(testColors).Draw(t, "color"), Size: 80},
			X: 300, Y: 300, Visible: true, Opacity: 1, Scale: 1, State: rapid.SampledFrom(testStates).Draw(t, "state"),
			Tint: rapid.SampledFrom(testColors).Draw(t, "tint"), Strength: rapid.Float64Range(0, 1).Draw(t, "strength"),
		}}
		doc := string(picture.Draw(f, picture.Options{}).AppendSVG(nil))
		_, defs, _ := strings.Cut(doc, "<defs>\n")
		defs, _, _ = strings.Cut(defs, "</defs>")
		// A symbol has lines of its own, an outline of a letter has one.
		for _, g := range regexp.MustCompile(`(?s)<g id.*?</g>|<path id[^\n]*`).FindAllString(defs, -1) {
			name, body, ok := strings.Cut(g, ">")
			if letter, outline, one := strings.Cut(g, " d="); one && strings.HasPrefix(g, "<path") {
				name, body, ok = letter, outline, true
			}
			if was, known := seen[name]; ok && known && was != body {
				t.Fatalf("%s is\n%s\nand\n%s", name, was, body)
			}
			seen[name] = body
		}
	})
}

// TestParseColor parses CSS colors and texts that are not colors.
func TestParseColor(t *testing.T) {
	for text, want := range map[string][4]uint8{
		"#fff": {255, 255, 255, 255}, "#1a2B3c": {26, 43, 60, 255}, "#1234": {17, 34, 51, 68}, "#11223344": {17, 34, 51, 68},
		"gold": {255, 215, 0, 255}, " RebeccaPurple ": {102, 51, 153, 255}, "CornflowerBlue": {100, 149, 237, 255}, "transparent": {},
		"": {0, 0, 0, 255}, "#": {0, 0, 0, 255}, "#12": {0, 0, 0, 255}, "#ggg": {0, 0, 0, 255}, "#\x10\x11\x12": {0, 0, 0, 255},
		"#123456789": {0, 0, 0, 255}, "url(#x)": {0, 0, 0, 255},
	} {
		if got := picture.ParseColor(text); got != want {
			t.Errorf("%q is %v, want %v", text, got, want)
		}
	}
}

// TestNumbers compares the numbers of SVG with those of package strconv.
func TestNumbers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.Float64Range(-1e8, 1e8).Draw(t, "v")
		got, err := strconv.ParseFloat(string(picture.AppendNumber(nil, v)), 64)
		if err != nil || math.Abs(got-v) > .0050001 {
			t.Errorf("%v is written as %s", v, picture.AppendNumber(nil, v))
		}
	})
	for v, want := range map[float64]string{
		0: "0", 1: "1", -1.5: "-1.5", .05: ".05", -.004: "0", 1.999: "2", 12.34: "12.34", 100: "100", math.Inf(-1): "-1000000000",
	} {
		if got := string(picture.AppendNumber(nil, v)); got != want {
			t.Errorf("%v is written as %s, want %s", v, got, want)
		}
	}
	if got := string(picture.AppendNumber(nil, math.NaN())); got != "-1000000000" {
		t.Errorf("NaN is written as %s", got)
	}
}

// TestSincos compares with package math.
func TestSincos(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.Float64Range(-1000, 1000).Draw(t, "degrees")
		s, c := picture.Sincos(d)
		if math.Abs(s-math.Sin(d*math.Pi/180)) > 1e-8 || math.Abs(c-math.Cos(d*math.Pi/180)) > 1e-8 {
			t.Errorf("%v: %v, %v", d, s, c)
		}
	})
}

// TestTexts cuts and wraps arbitrary texts: no line is too wide, there are not too many
// lines, and a clean text stays unchanged.
func TestTexts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := picture.Clean(rapid.String().Draw(t, "text"))
		if !utf8.ValidString(s) || picture.Clean(s) != s {
			t.Fatalf("%q is not clean", s)
		}
		most := rapid.Float64Range(20, 300).Draw(t, "most")
		if got := picture.Shorten(s, 10, false, most); picture.Width(got, 10, false) > most {
			t.Errorf("%q is %v wide, want at most %v", got, picture.Width(got, 10, false), most)
		}
		lines := picture.Wrap(s, 10, most, 4)
		if len(lines) > 4 {
			t.Errorf("%d lines", len(lines))
		}
		for _, l := range lines {
			// A single cluster of characters may be wider than a line.
			if w := picture.Width(l, 10, false); w > most && utf8.RuneCountInString(l) > 3 && !strings.Contains(l, "\u200d") {
				t.Errorf("%q is %v wide, want at most %v", l, w, most)
			}
		}
	})
	for _, tt := range []struct {
		text string
		want []string
	}{
		{"", nil},
		{"  one  ", []string{"one"}},
		{"one two three four five six seven eight", []string{"one two three", "four five six", "seven eight"}},
		{"one two three four five six seven eight nine ten", []string{"… five six", "seven eight", "nine ten"}},
		{"aaaaaaaaaaaaaaaaaaaaaaaa", []string{"aaaaaaaaaaa", "aaaaaaaaaaa", "aa"}},
	} {
		if diff := cmp.Diff(tt.want, picture.Wrap(tt.text, 10, 62, 3)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tt.text, diff)
		}
	}
	if got, want := picture.Clean("a\x1b[31m\nb\u202ec\x7f\xff"), "a␛[31m b\ufffdc␡\ufffd"; got != want {
		t.Errorf("clean: %q, want %q", got, want)
	}
	// Invisible characters can hide text from readers; those that join letters and emoji stay.
	if got, want := picture.Clean("a\u200bb\u2060c\U000e0041d\ufff9e\ufefff\u180e"), "a\ufffdb\ufffdc\ufffdd\ufffde\ufffdf\ufffd"; got != want {
		t.Errorf("clean: %q, want %q", got, want)
	}
	if joined := "👩\u200d🚀 می\u200cخواهم co\u00adop"; picture.Clean(joined) != joined {
		t.Errorf("clean: %q", picture.Clean(joined))
	}
}

// TestDifferences compares frames that differ in one thing each.
func TestDifferences(t *testing.T) {
	for _, tt := range []struct {
		name      string
		change    func(*stage.Frame)
		tolerance float64
		want      []string
	}{
		{"nothing", func(*stage.Frame) {}, 0, nil},
		{"time", func(f *stage.Frame) { f.At++ }, 0, nil},
		{"moved", func(f *stage.Frame) { f.Figures[1].X += 1.5 }, 0, []string{"claude moved: 200,300 → 201.5,300"}},
		{"moved a little", func(f *stage.Frame) { f.Figures[1].X += 1.5 }, 2, nil},
		{"NaN", func(f *stage.Frame) { f.Figures[1].X = math.NaN() }, 2, []string{"claude moved: 200,300 → NaN,300"}},
		{"gone", func(f *stage.Frame) { f.Figures = f.Figures[1:] }, 0, []string{"forge gone"}},
		{"hidden", func(f *stage.Frame) { f.Figures[0].Visible = false }, 0, []string{"forge gone"}},
		{"appeared", func(f *stage.Frame) { f.Figures[4].Visible = true }, 0, []string{"ghost appeared"}},
		{
			"tinted",
			func(f *stage.Frame) { f.Figures[0].Tint, f.Figures[0].Strength, f.Figures[2].Strength = "red", .5, 0 },
			0,
			[]string{"forge tinted: red 0.5", "peon tinted: no more gold 0.4"},
		},
		{
			"all at once",
			func(f *stage.Frame) {
				g := &f.Figures[0]
				g.Rotation, g.Scale, g.Opacity, g.Layer, g.State, g.Label, g.Text = 5, 2, .5, 1, "done", "Smithy", "hm"
				g.Look.Color = "red"
			},
			0,
			[]string{
				"forge turned: 0 → 5", "forge scaled: 1 → 2", "forge faded: 1 → 0.5", "forge layered: 0 → 1", "forge state: waiting → done",
				"forge said: hm", "forge labelled: Forge → Smithy", "forge look: building #a78bfa 120 → building red 120",
			},
		},
		{"beam gone", func(f *stage.Frame) { f.Beams = nil }, 0, []string{"claude → peon gone"}},
		{
			"beams", func(f *stage.Frame) {
				f.Beams[0].ToX = 700
				f.Beams = append(f.Beams, stage.Beam{From: "claude", ToX: 5})
			}, 0,
			[]string{"claude → peon beam: 200,300 to 620,300 gold → 200,300 to 700,300 gold", "claude → 5,0 appeared"},
		},
	} {
		b := forge("")
		tt.change(b)
		var got []string
		for _, d := range picture.Differences(forge(""), b, tt.tolerance) {
			got = append(got, d.String())
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
		drawing, listed := picture.Compare(forge(""), b, picture.CompareOptions{Tolerance: tt.tolerance})
		if len(listed) != len(tt.want) {
			t.Errorf("%s: Compare lists %d, want %d", tt.name, len(listed), len(tt.want))
		}
		if doc := string(drawing.AppendSVG(nil)); strings.Contains(doc, "no differences") != (len(tt.want) == 0) {
			t.Errorf("%s: the comparison does not tell it", tt.name)
		}
	}
}

// TestSheet lays out sheets of several shapes.
func TestSheet(t *testing.T) {
	cells := make([]picture.Cell, 7)
	for i := range cells {
		cells[i] = picture.Cell{Frame: forge(""), Caption: fmt.Sprint("cell ", i)}
	}
	for _, tt := range []struct {
		cells, columns int
		width, height  float64
	}{
		{7, 0, 3*330 + 10, 3*212 + 10},
		{7, 2, 2*330 + 10, 4*212 + 10},
		{7, 100, 7*330 + 10, 212 + 10},
		{1, 0, 340, 222},
		{0, 0, 340, 42},
	} {
		d := picture.Sheet(cells[:tt.cells], tt.columns, picture.Options{})
		if w, h := d.Size(); w != tt.width || h != tt.height {
			t.Errorf("%d cells in %d columns are %v by %v, want %v by %v", tt.cells, tt.columns, w, h, tt.width, tt.height)
		}
		doc := string(d.AppendSVG(nil))
		if got := strings.Count(doc, "\n<svg"); got != tt.cells {
			t.Errorf("%d panels, want %d", got, tt.cells)
		}
		if got := strings.Count(doc, `<g id="robot-4f8cff">`); got != min(tt.cells, 1) {
			t.Errorf("%d cells define the robot %d times", tt.cells, got)
		}
	}
}

// TestDiffImages compares images pixel by pixel.
func TestDiffImages(t *testing.T) {
	a := image.NewRGBA(image.Rect(0, 0, 10, 10))
	b := image.NewNRGBA(image.Rect(5, 5, 15, 15)) // another origin and another kind, but one size
	for i := range 100 {
		a.Set(i%10, i/10, color.Gray{100})
		b.Set(5+i%10, 5+i/10, color.Gray{100})
	}
	b.Set(5, 5, color.Gray{103})
	b.Set(6, 5, color.Gray{180})
	mask := image.NewAlpha(image.Rect(0, 0, 10, 10))
	mask.Set(1, 0, color.Opaque)
	for _, tt := range []struct {
		mask      image.Image
		tolerance int
		want      picture.PixelDifference
	}{
		{nil, 0, picture.PixelDifference{Compared: 100, Differ: 2, Share: .02, Most: 80}},
		{nil, 3, picture.PixelDifference{Compared: 100, Differ: 1, Share: .01, Most: 80}},
		{mask, 0, picture.PixelDifference{Compared: 99, Differ: 1, Share: 1. / 99, Most: 3}},
		{mask, 3, picture.PixelDifference{Compared: 99, Most: 3}},
	} {
		got, err := picture.DiffImages(a, b, tt.mask, tt.tolerance)
		require.NoError(t, err)
		marked := 0
		for i := range 100 {
			if c := got.Image.RGBAAt(i%10, i/10); c.R == 255 && c.G < 100 {
				marked++
			}
		}
		if marked != tt.want.Differ {
			t.Errorf("%d pixels are marked, want %d", marked, tt.want.Differ)
		}
		got.Image = nil
		if *got != tt.want {
			t.Errorf("got %+v, want %+v", *got, tt.want)
		}
	}
	for _, other := range []struct {
		b, mask image.Image
		want    string
	}{
		{image.NewRGBA(image.Rect(0, 0, 10, 9)), nil, "picture: compare images: the first is 10 by 10, the second 10 by 9"},
		{a, image.NewAlpha(image.Rect(0, 0, 1, 1)), "picture: compare images: the first is 10 by 10, the mask 1 by 1"},
	} {
		_, err := picture.DiffImages(a, other.b, other.mask, 0)
		if size, ok := errors.AsType[*picture.SizeError](err); !ok || size.Error() != other.want {
			t.Errorf("err = %v, want %s", err, other.want)
		}
	}
}

// TestEncodePNG writes an image and reads it back, and returns the error of a writer.
func TestEncodePNG(t *testing.T) {
	img := picture.Draw(forge(""), picture.Options{}).Image(100)
	var b strings.Builder
	for range 2 { // the second time with reused buffers
		b.Reset()
		require.NoError(t, picture.EncodePNG(&b, img))
	}
	back, err := png.Decode(strings.NewReader(b.String()))
	require.NoError(t, err)
	if d, err := picture.DiffImages(img, back, nil, 0); err != nil || d.Differ > 0 {
		t.Errorf("differs after reading: %+v, %v", d, err)
	}
	assert.ErrorIs(t, picture.EncodePNG(&failing{after: 10}, img), errFull)
}

// TestEncodePNGKeepsPixels: every image comes back with the pixels that package image/png
// gives it, whatever its size, its place and its transparency, and always as the same
// bytes.
func TestEncodePNGKeepsPixels(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := image.Pt(rapid.IntRange(1, 40).Draw(t, "width"), rapid.IntRange(1, 40).Draw(t, "height"))
		img := image.NewRGBA(image.Rectangle{Max: size.Add(image.Pt(9, 9))})
		opaque := rapid.Bool().Draw(t, "opaque")
		levels := rapid.SampledFrom([]uint32{1, 2, 256}).Draw(t, "levels") // few levels give equal pixels
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		for at := 0; at < len(img.Pix); at += 4 {
			a := uint8(random.Uint32N(levels) * 255 / max(levels-1, 1))
			if opaque {
				a = 255
			}
			for i := range 3 {
				img.Pix[at+i] = uint8(random.Uint32N(levels) % (uint32(a) + 1)) // not above the alpha
			}
			img.Pix[at+3] = a
		}
		part := img.SubImage(image.Rectangle{Max: size}.Add(image.Pt(rapid.IntRange(0, 9).Draw(t, "x"), rapid.IntRange(0, 9).Draw(t, "y"))))
		var ours, again, theirs bytes.Buffer
		require.NoError(t, picture.EncodePNG(&ours, part))
		require.NoError(t, picture.EncodePNG(&again, part))
		require.NoError(t, png.Encode(&theirs, part))
		require.True(t, bytes.Equal(ours.Bytes(), again.Bytes()), "the bytes of two runs differ")
		got, err := png.Decode(&ours)
		require.NoError(t, err)
		want, err := png.Decode(&theirs)
		require.NoError(t, err)
		require.Equal(t, want, got)
	})
}

// TestBlend: a color painted through a mask is that of the formula at each pixel, whatever
// runs of full and empty pixels the mask has.
func TestBlend(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, h := rapid.IntRange(1, 40).Draw(t, "width"), rapid.IntRange(1, 3).Draw(t, "height")
		c := color.NRGBA{rapid.Uint8().Draw(t, "r"), rapid.Uint8().Draw(t, "g"), rapid.Uint8().Draw(t, "b"), rapid.SampledFrom([]uint8{1, 90, 255}).Draw(t, "a")}
		mask := make([]uint8, 0, w*h)
		for len(mask) < w*h {
			run := rapid.IntRange(1, 20).Draw(t, "run")
			cover := rapid.SampledFrom([]uint8{0, 255, 255, 7}).Draw(t, "cover")
			mask = append(mask, bytes.Repeat([]byte{cover}, min(run, w*h-len(mask)))...)
		}
		img := image.NewRGBA(image.Rect(0, 0, w+5, h+2))
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		for i := range img.Pix {
			img.Pix[i] = uint8(random.Uint32())
		}
		want := slices.Clone(img.Pix)
		for y := range h {
			for x := range w {
				at, k := img.PixOffset(x+3, y+1), int(mask[y*w+x])*int(c.A)
				for i, channel := range []uint8{c.R, c.G, c.B, 255} {
					want[at+i] = uint8((int(channel)*k + int(want[at+i])*(255*255-k) + 255*255/2) / (255 * 255))
				}
			}
		}
		picture.Blend(img, image.Rect(3, 1, 3+w, 1+h), mask, c)
		require.Equal(t, want, img.Pix)
	})
}

var errFull = errors.New("disk full")

// failing is a writer that fails after some bytes.
type failing struct{ after int }

func (f *failing) Write(p []byte) (int, error) {
	if f.after -= len(p); f.after < 0 {
		return 0, errFull
	}
	return len(p), nil
}

// The note of a sound is in a picture until the boundary that the stage announces, and not
// from there on.
func TestNoteEnds(t *testing.T) {
	f := forge("forge")
	rung := f.Sounds[1].At
	for _, entity := range []string{"peon", "nobody", ""} {
		f.Sounds = []stage.Sound{{At: rung, Sound: "hammer", Entity: entity}}
		f.At = rung + stage.SoundLasts - 1
		assert.Contains(t, picture.Terminal(f, 120, 40, false), "♪", "before")
		assert.NotEqual(t, picture.Draw(silent(f), picture.Options{}).Hash(), picture.Draw(f, picture.Options{}).Hash())
		f.At++
		assert.NotContains(t, picture.Terminal(f, 120, 40, false), "♪", "at the boundary")
		assert.Equal(t, picture.Draw(silent(f), picture.Options{}).Hash(), picture.Draw(f, picture.Options{}).Hash())
	}
}

func silent(f *stage.Frame) *stage.Frame {
	quiet := *f
	quiet.Sounds = nil
	return &quiet
}
