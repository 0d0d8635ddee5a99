package picture_test

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/stage"
	"github.com/sajou-dev/sajou-go/stage/picture"
	"github.com/sajou-dev/sajou-go/stage/scene"
)

// box is a rectangle: left, top, width and height.
type box = [4]float64

func meet(a, b box) bool {
	return a[0] < b[0]+b[2] && b[0] < a[0]+a[2] && a[1] < b[1]+b[3] && b[1] < a[1]+a[3]
}

func hit(a box, others []box) bool {
	for _, b := range others {
		if meet(a, b) {
			return true
		}
	}
	return false
}

func wider(a box, x, y float64) box { return box{a[0] - x, a[1] - y, a[2] + 2*x, a[3] + 2*y} }

// company draws figures of all kinds that have labels, states, speeches and sounds, at the
// given places.
func company(t *rapid.T, at []scene.Point) *stage.Frame {
	f := &stage.Frame{At: 5e9, Scene: &scene.Scene{Width: 960, Height: 540}}
	for i, p := range at {
		g := stage.Figure{
			ID: fmt.Sprint(i), Label: rapid.SampledFrom([]string{"", "me", "an agent", "a name that is rather long"}).Draw(t, "label"),
			Look: scene.Look{
				Figure: rapid.SampledFrom(picture.Figures()).Draw(t, "figure"), Size: rapid.Float64Range(30, 110).Draw(t, "size"),
			},
			X: p.X, Y: p.Y, Visible: true, Opacity: 1, Scale: 1, State: rapid.SampledFrom(testStates).Draw(t, "state"),
			Rotation: rapid.SampledFrom([]float64{0, 0, 25, 90}).Draw(t, "turn"),
		}
		if rapid.Bool().Draw(t, "speaks") {
			g.Text, g.TextOpacity = strings.Repeat("words and ", rapid.IntRange(1, 12).Draw(t, "words")), 1
		}
		if rapid.IntRange(0, 3).Draw(t, "sounds") == 0 {
			f.Sounds = append(f.Sounds, stage.Sound{At: f.At - 1e8, Sound: "sound", Entity: rapid.SampledFrom([]string{g.ID, ""}).Draw(t, "where")})
		}
		f.Figures = append(f.Figures, g)
	}
	return f
}

// layout has the areas of a drawing: those of figures and badges, and those of texts.
type layout struct {
	solid, figures, texts []box
	count                 string // of hidden elements
	kinds                 map[picture.BoxKind]int
}

func layoutOf(d *picture.Drawing) layout {
	l := layout{kinds: map[picture.BoxKind]int{}}
	for _, b := range d.Boxes() {
		at := box{b.X, b.Y, b.W, b.H}
		l.kinds[b.Kind]++
		switch b.Kind {
		case picture.BoxFigure:
			l.figures, l.solid = append(l.figures, at), append(l.solid, at)
		case picture.BoxBadge:
			l.solid = append(l.solid, at)
		case picture.BoxCount:
			l.count = b.Text
			l.texts = append(l.texts, at)
		default:
			l.texts = append(l.texts, at)
		}
	}
	return l
}

// texts returns the number of texts that a frame has.
func textsIn(f *stage.Frame) (n int) {
	for _, g := range f.Figures {
		if g.Label != "" {
			n++
		}
		if strings.TrimSpace(g.Text) != "" {
			n++
		}
	}
	return n + len(f.Sounds)
}

// TestTextsCoverNothing: labels, bubbles and notes of figures that stand apart are all there,
// in the picture.
func TestTextsCoverNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var at []scene.Point
		for i := range rapid.IntRange(1, 6).Draw(t, "figures") {
			at = append(at, scene.Point{
				X: float64(i%3)*320 + rapid.Float64Range(100, 220).Draw(t, "x"), Y: float64(i/3)*250 + rapid.Float64Range(120, 240).Draw(t, "y"),
			})
		}
		f := company(t, at)
		l := layoutOf(picture.Draw(f, picture.Options{}))
		require.Len(t, l.texts, textsIn(f))
		for i, b := range l.texts {
			require.False(t, hit(b, l.solid), "text %d at %v covers one of the figures %v", i, b, l.solid)
			require.False(t, hit(b, l.texts[:i]), "text %d at %v covers another text", i, b)
			require.True(t, b[0] >= 0 && b[1] >= 0 && b[0]+b[2] <= 960 && b[1]+b[3] <= 540, "text %d at %v is not in the picture", i, b)
		}
	})
}

// TestCrowdsHideTexts: in any crowd a text covers neither a figure nor another text, and each
// one without room is counted. The count itself may cover figures, if they leave no room for
// it.
func TestCrowdsHideTexts(t *testing.T) {
	hidden, shown := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		at := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) scene.Point {
			return scene.Point{X: rapid.Float64Range(0, 960).Draw(t, "x"), Y: rapid.Float64Range(30, 540).Draw(t, "y")}
		}), 1, 60).Draw(t, "at")
		f := company(t, at)
		d := picture.Draw(f, picture.Options{Width: rapid.SampledFrom([]int{320, 960}).Draw(t, "width")})
		l := layoutOf(d)
		for i, b := range l.texts {
			require.False(t, hit(b, l.texts[:i]), "text %d at %v covers another text", i, b)
			if i+1 < len(l.texts) || l.count == "" {
				require.False(t, hit(b, l.solid), "text %d at %v covers a figure", i, b)
			}
		}
		texts := len(l.texts)
		if l.count != "" {
			texts--
			require.Equal(t, fmt.Sprintf("+%d not shown", d.Omitted()), l.count)
		}
		hidden, shown = hidden+d.Omitted(), shown+texts
		require.Equal(t, textsIn(f), texts+d.Omitted(), "texts that are shown or counted")
	})
	assert.Positive(t, hidden)
	assert.Positive(t, shown)
}

// TestLabelsOfARow: figures that stand side by side have their labels below them, each
// shortened to its share.
func TestLabelsOfARow(t *testing.T) {
	f := &stage.Frame{Scene: &scene.Scene{Width: 960, Height: 540}}
	for i := range 8 {
		f.Figures = append(f.Figures, stage.Figure{
			ID: fmt.Sprint(i), Label: fmt.Sprintf("agent-%017d", i), Look: scene.Look{Figure: "robot", Size: 40},
			X: 60 + 112*float64(i), Y: 300, Visible: true, Opacity: 1, Scale: 1,
		})
	}
	labels := 0
	for _, b := range picture.Draw(f, picture.Options{}).Boxes() {
		if b.Kind == picture.BoxLabel {
			assert.InDelta(t, 307, b.Y, 1)
			assert.InDelta(t, f.Figures[labels].X, b.X+b.W/2, .01)
			labels++
		}
	}
	assert.Equal(t, 8, labels)
}

// TestBubblesShrink: where a long speech has room as two lines only, it has two lines.
func TestBubblesShrink(t *testing.T) {
	f := &stage.Frame{Scene: &scene.Scene{Width: 960, Height: 540}}
	for i := range 17 { // a wall of figures above the speaker
		f.Figures = append(f.Figures, stage.Figure{ID: fmt.Sprint(i), Look: scene.Look{Figure: "box", Size: 60}, X: 30 + 56*float64(i), Y: 180, Visible: true, Opacity: 1, Scale: 1})
	}
	f.Figures = append(f.Figures, stage.Figure{
		ID: "speaker", Look: scene.Look{Figure: "person", Size: 60}, X: 480, Y: 310, Visible: true, Opacity: 1, Scale: 1,
		Text: strings.Repeat("a long speech ", 12), TextOpacity: 1,
	})
	for _, b := range picture.Draw(f, picture.Options{}).Boxes() {
		if b.Kind == picture.BoxBubble {
			assert.Less(t, b.H, 55.)
			assert.Greater(t, b.Y, 180.)
			assert.Less(t, b.Y+b.H, 250.)
		}
	}
}

// TestAreasOfFigures paints each figure alone: every pixel is in the area that texts keep
// free.
func TestAreasOfFigures(t *testing.T) {
	for _, name := range picture.Figures() {
		for _, turn := range []float64{0, 30, 90, 200} {
			area, ink := picture.Inked(name, turn)
			assert.True(t, area[0] <= ink[0] && area[1] <= ink[1] && ink[0]+ink[2] <= area[0]+area[2] && ink[1]+ink[3] <= area[1]+area[3],
				"%s turned by %v covers %v, not only %v", name, turn, ink, area)
			if turn == 0 { // a turned box is larger than the turned figure
				assert.Less(t, area[2]*area[3], 1.5*ink[2]*ink[3], "%s: the area is too large", name)
			}
		}
	}
}

// TestGrid compares the areas that a grid finds with those that a search of all its cells
// finds.
func TestGrid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		height := rapid.Float64Range(20, 200).Draw(t, "height")
		draw := func(name string, most float64) box {
			number := func(of string, low, high float64) float64 {
				return rapid.OneOf(rapid.Float64Range(low, high), rapid.Map(rapid.IntRange(int(low), int(high)), func(n int) float64 { return float64(n) })).Draw(t, name+of)
			}
			return box{number(" x", -20, 256), number(" y", -20, 200), number(" w", 1, most), number(" h", 1, most)}
		}
		var taken []box
		for range rapid.IntRange(0, 12).Draw(t, "taken") {
			taken = append(taken, draw("taken", 150))
		}
		a, within := draw("wanted", 120), draw("within", 256)
		got, found := picture.Find(256, height, taken, a, within) // cells of side 1
		free := func(b box) bool {
			cells := box{math.Floor(b[0]), math.Floor(b[1]), math.Ceil(b[0]+b[2]) - math.Floor(b[0]), math.Ceil(b[1]+b[3]) - math.Floor(b[1])}
			for _, o := range taken {
				if meet(cells, box{math.Floor(o[0]), math.Floor(o[1]), math.Ceil(o[0]+o[2]) - math.Floor(o[0]), math.Ceil(o[1]+o[3]) - math.Floor(o[1])}) {
					return false
				}
			}
			return true
		}
		cost := func(b box) float64 { return math.Abs(b[0]-a[0]) + math.Abs(b[1]-a[1]) }
		if inside := a[0] >= 0 && a[1] >= 0 && a[0]+a[2] <= 256 && a[1]+a[3] <= height; inside && free(a) {
			require.True(t, found)
			require.Equal(t, a, got)
			return
		} else if found && got == a {
			return // free as far as it is in the picture
		}
		least := math.Inf(1)
		for y := range int(height) {
			for x := range 256 {
				b := box{float64(x), float64(y), a[2], a[3]}
				in := b[0] >= within[0] && b[1] >= within[1] && b[0]+math.Ceil(b[2]) <= within[0]+within[2] && b[1]+math.Ceil(b[3]) <= within[1]+within[3]
				if in && b[0]+b[2] <= 256 && b[1]+math.Ceil(b[3]) <= math.Ceil(height) && free(b) {
					least = min(least, cost(b))
				}
			}
		}
		require.Equal(t, least < math.Inf(1), found, "found %v, cost of the best %v", got, least)
		if found {
			require.True(t, free(got))
			require.InDelta(t, least, cost(got), 1e-9, "%v", got)
		}
	})
}

// TestSVGTextsHold reads documents as any viewer does, which may have no fonts and may not
// know textLength: the outlines of each text are in the box before it, and a text that is
// left to the viewer's fonts is clipped to it.
func TestSVGTextsHold(t *testing.T) {
	word := rapid.OneOf(rapid.SampledFrom([]string{"Wi", "i", "WWWWWWWW", "agent", "…", "Ж", "日本", "🙂", "👩\u200d🚀", "שלום", "<&\">", "\u0301"}), rapid.String())
	words := rapid.Map(rapid.SliceOfN(word, 1, 8), func(w []string) string { return strings.Join(w, " ") })
	kinds := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		f := company(t, []scene.Point{{X: 200, Y: 300}, {X: 700, Y: 300}})
		for i := range f.Figures {
			g := &f.Figures[i]
			g.Look.Figure, g.Label, g.Text, g.TextOpacity = "person", words.Draw(t, "label"), words.Draw(t, "text"), 1
		}
		f.Sounds = []stage.Sound{{At: f.At, Sound: words.Draw(t, "sound")}}
		width := rapid.SampledFrom([]int{320, 960, 2000}).Draw(t, "width")
		svg := picture.Draw(f, picture.Options{Width: width, Title: words.Draw(t, "title"), Clock: true}).AppendSVG(nil)
		texts, err := textsOf(string(svg))
		require.NoError(t, err)
		for _, text := range texts {
			kinds[text.kind]++
			w := wider(text.within, .5, .5)
			require.True(t, w[0] <= text.box[0] && w[1] <= text.box[1] && text.box[0]+text.box[2] <= w[0]+w[2] && text.box[1]+text.box[3] <= w[1]+w[3],
				"%s %q is at %v, not in %v", text.kind, text.text, text.box, text.within)
		}
	})
	assert.Positive(t, kinds["outlines"])
	assert.Positive(t, kinds["clipped"])
}

type foundText struct {
	kind, text  string
	box, within box
}

var number = regexp.MustCompile(`-?[0-9]*\.?[0-9]+`)

// textsOf returns the texts of a document, each with the rectangle before it.
func textsOf(svg string) ([]foundText, error) {
	outlines := map[string]box{} // of the letters
	var texts []foundText
	var last, clip box
	var clips []bool // of the open svg elements, whether they clip a text
	var scale, x, y float64
	open := 0 // elements in a group of letters
	d := xml.NewDecoder(strings.NewReader(svg))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return texts, nil
		} else if err != nil {
			return nil, err
		}
		switch e := token.(type) {
		case xml.StartElement:
			at := map[string]string{}
			for _, a := range e.Attr {
				at[a.Name.Local] = a.Value
			}
			num := func(name string) float64 {
				v, _ := strconv.ParseFloat(at[name], 64)
				return v
			}
			if open > 0 {
				open++
			}
			switch e.Name.Local {
			case "rect":
				last = box{num("x"), num("y"), num("width"), num("height")}
			case "path":
				if at["id"] != "" {
					outlines[at["id"]] = bounds(number.FindAllString(at["d"], -1))
				}
			case "g":
				if label, ok := at["aria-label"]; ok {
					n := number.FindAllString(at["transform"], -1)
					x, _ = strconv.ParseFloat(n[0], 64)
					y, _ = strconv.ParseFloat(n[1], 64)
					scale, _ = strconv.ParseFloat(n[2], 64)
					texts = append(texts, foundText{kind: "outlines", text: label, box: box{x, y, 0, 0}, within: last})
					open = 1
				}
			case "use":
				if open > 0 {
					o, known := outlines[at["href"][1:]]
					if !known {
						return nil, fmt.Errorf("no outline of %s", at["href"])
					}
					t := &texts[len(texts)-1]
					t.box = union(t.box, box{x + (o[0]+num("x"))*scale, y + o[1]*scale, o[2] * scale, o[3] * scale})
				}
			case "svg":
				clip = box{num("x"), num("y"), num("width"), num("height")}
				clips = append(clips, true)
			case "text":
				empty := clip[2] < num("font-size")/2 // of combining marks alone, which have no width
				if len(clips) < 2 || (at["textLength"] == "") != empty || num("x")+num("textLength") > clip[2] {
					return nil, errors.New("a text is neither outlined nor clipped")
				}
				texts = append(texts, foundText{kind: "clipped", box: clip, within: last})
			}
		case xml.EndElement:
			open = max(0, open-1)
			if e.Name.Local == "svg" {
				clips = clips[:len(clips)-1]
			}
		}
	}
}

func bounds(numbers []string) box {
	if len(numbers) == 0 {
		return box{} // the outline of a space
	}
	low, high := [2]float64{math.Inf(1), math.Inf(1)}, [2]float64{math.Inf(-1), math.Inf(-1)}
	for i, n := range numbers {
		v, _ := strconv.ParseFloat(n, 64)
		low[i%2], high[i%2] = min(low[i%2], v), max(high[i%2], v)
	}
	return box{low[0], low[1], high[0] - low[0], high[1] - low[1]}
}

func union(a, b box) box {
	x, y := min(a[0], b[0]), min(a[1], b[1])
	return box{x, y, max(a[0]+a[2], b[0]+b[2]) - x, max(a[1]+a[3], b[1]+b[3]) - y}
}
