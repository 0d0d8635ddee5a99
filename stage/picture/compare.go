package picture

import (
	"fmt"
	"image/color"
	"math"
	"strconv"
	"strings"

	"github.com/sajou-dev/sajou-go/stage"
)

// CompareOptions are the options of a comparison. Their Width is that of one picture;
// zero means 640.
type CompareOptions struct {
	Options

	// Before and After are the headings of the two pictures.
	Before, After string

	// Tolerance is the distance, in units of the scene, up to which a figure counts as
	// not moved. Zero means a hundredth of a unit.
	Tolerance float64
}

// ChangeKind is the kind of a difference between two frames.
type ChangeKind string

// The kinds of change. A figure can have several at once, except with Appeared and Gone.
const (
	Appeared ChangeKind = "appeared"
	Gone     ChangeKind = "gone"
	Moved    ChangeKind = "moved"
	Turned   ChangeKind = "turned"
	Scaled   ChangeKind = "scaled"
	Faded    ChangeKind = "faded" // its opacity
	Tinted   ChangeKind = "tinted"
	Layered  ChangeKind = "layered"
	Restated ChangeKind = "state" // its animation state
	Said     ChangeKind = "said"  // its speech
	Relabel  ChangeKind = "labelled"
	Restyled ChangeKind = "look"
	Beamed   ChangeKind = "beam" // a beam that is in both, but elsewhere or in another color
)

// FrameDifference is one change between two frames.
type FrameDifference struct {
	Entity        string // the figure's id, or "a → b" for a beam between them
	Change        ChangeKind
	Before, After string // the changed value, for readers; empty for Appeared and Gone
}

// String returns the difference as one line without control characters.
func (d FrameDifference) String() string {
	s := d.Entity + " " + string(d.Change)
	switch {
	case d.Before == "" && d.After == "":
	case d.Before == "":
		s += ": " + d.After
	case d.After == "":
		s += ": no more " + d.Before
	default:
		s += ": " + d.Before + " → " + d.After
	}
	return clean(s)
}

// Differences returns the visible differences between two frames. Hidden and fully
// transparent figures count as absent, and numbers whose difference is invisible count as
// equal. Figures come in the order of the second frame, then those that are gone, then
// beams. Sounds are not compared.
func Differences(a, b *stage.Frame, tolerance float64) []FrameDifference {
	if !(tolerance > 0) {
		tolerance = .01
	}
	var out []FrameDifference
	before, after := visible(a), visible(b)
	for i := range b.Figures {
		g := &b.Figures[i]
		if after[g.ID] != g {
			continue
		}
		f, ok := before[g.ID]
		if !ok {
			out = append(out, FrameDifference{Entity: g.ID, Change: Appeared})
			continue
		}
		out = append(out, figureDifferences(f, g, tolerance)...)
	}
	for i := range a.Figures {
		f := &a.Figures[i]
		if _, ok := after[f.ID]; !ok && before[f.ID] == f {
			out = append(out, FrameDifference{Entity: f.ID, Change: Gone})
		}
	}
	return append(out, beamDifferences(a, b, tolerance)...)
}

// visible returns the visible figures by id, the first of each id.
func visible(f *stage.Frame) map[string]*stage.Figure {
	seen := make(map[string]*stage.Figure, len(f.Figures))
	for i := range f.Figures {
		g := &f.Figures[i]
		if _, ok := seen[g.ID]; !ok && g.Visible && g.Opacity > 0 {
			seen[g.ID] = g
		}
	}
	return seen
}

func figureDifferences(f, g *stage.Figure, tolerance float64) []FrameDifference {
	var out []FrameDifference
	differ := func(c ChangeKind, before, after string) {
		out = append(out, FrameDifference{f.ID, c, before, after})
	}
	number := func(c ChangeKind, before, after, least float64) {
		if !(math.Abs(after-before) <= least) && before != after {
			differ(c, short(before), short(after))
		}
	}
	words := func(c ChangeKind, before, after string) {
		if before != after {
			differ(c, before, after)
		}
	}
	if d := distance(f.X, f.Y, g.X, g.Y); !(d <= tolerance) {
		differ(Moved, short(f.X)+","+short(f.Y), short(g.X)+","+short(g.Y))
	}
	number(Turned, f.Rotation, g.Rotation, .1)
	number(Scaled, f.Scale, g.Scale, .005)
	number(Faded, f.Opacity, g.Opacity, 1./255)
	tint := func(f *stage.Figure) string {
		if level(f.Strength) == 0 {
			return ""
		}
		return f.Tint + " " + short(f.Strength)
	}
	words(Tinted, tint(f), tint(g))
	number(Layered, float64(f.Layer), float64(g.Layer), 0)
	words(Restated, f.State, g.State)
	words(Said, f.Text, g.Text)
	words(Relabel, f.Label, g.Label)
	if f.Look != g.Look {
		look := func(f *stage.Figure) string {
			return f.Look.Figure + " " + f.Look.Color + " " + short(f.Look.Size)
		}
		differ(Restyled, look(f), look(g))
	}
	return out
}

// beamDifferences compares beams by the entities they join, in their order.
func beamDifferences(a, b *stage.Frame, tolerance float64) []FrameDifference {
	type key struct {
		from, to string
		n        int
	}
	keys := func(beams []stage.Beam) []key {
		count := map[key]int{}
		out := make([]key, len(beams))
		for i, m := range beams {
			k := key{from: m.From, to: m.To}
			out[i] = key{m.From, m.To, count[k]}
			count[k]++
		}
		return out
	}
	name := func(m *stage.Beam) string {
		from, to := m.From, m.To
		if from == "" {
			from = short(m.FromX) + "," + short(m.FromY)
		}
		if to == "" {
			to = short(m.ToX) + "," + short(m.ToY)
		}
		return from + " → " + to
	}
	before := map[key]*stage.Beam{}
	for i, k := range keys(a.Beams) {
		before[k] = &a.Beams[i]
	}
	var out []FrameDifference
	for i, k := range keys(b.Beams) {
		m := &b.Beams[i]
		was, ok := before[k]
		delete(before, k)
		if !ok {
			out = append(out, FrameDifference{Entity: name(m), Change: Appeared})
			continue
		}
		place := func(m *stage.Beam) string {
			return fmt.Sprintf("%s,%s to %s,%s %s", short(m.FromX), short(m.FromY), short(m.ToX), short(m.ToY), m.Color)
		}
		same := distance(m.FromX, m.FromY, was.FromX, was.FromY) <= tolerance && distance(m.ToX, m.ToY, was.ToX, was.ToY) <= tolerance
		if !same || m.Color != was.Color {
			out = append(out, FrameDifference{name(m), Beamed, place(was), place(m)})
		}
	}
	for i, k := range keys(a.Beams) {
		if _, left := before[k]; left {
			out = append(out, FrameDifference{Entity: name(&a.Beams[i]), Change: Gone})
		}
	}
	return out
}

// short formats a number for readers, rounded to hundredths.
func short(v float64) string {
	if !finite(v) {
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	return strconv.FormatFloat(math.Round(v*100)/100+0, 'f', -1, 64)
}

// color returns the color that marks a change.
func (c ChangeKind) color() color.NRGBA {
	switch c {
	case Appeared:
		return green
	case Gone:
		return red
	case Moved, Turned, Scaled, Beamed:
		return amber
	default:
		return blue
	}
}

// Compare draws two frames side by side, with the figures that differ outlined and the
// differences listed below. It returns the drawing and the differences.
func Compare(a, b *stage.Frame, opt CompareOptions) (*Drawing, []FrameDifference) {
	const listed = 14
	differences := Differences(a, b, opt.Tolerance)
	if opt.Width == 0 {
		opt.Width = 640
	}
	inner := Options{Width: opt.Width, Places: opt.Places, Theme: opt.Theme}
	cw := clamp(float64(opt.Width), leastWidth, mostWidth)
	u := clamp(cw/640, .7, 6)
	gap, size := math.Round(float64(14*u)), float64(13*u)
	line := math.Round(float64(21 * u))

	p := &page{inks: opt.Theme.page(), d: &Drawing{width: float64(2*cw) + float64(3*gap)}}
	y := gap
	if opt.Title != "" || opt.Address != "" {
		head := float64(16 * u)
		p.write(gap, y+float64(15*u), head, start, true, p.text, shorten(strings.TrimSpace(clean(opt.Title)), head, true, float64(p.d.width*.55)))
		p.write(p.d.width-gap, y+float64(15*u), size, end, false, p.dim, shorten(strings.TrimSpace(clean(opt.Address)), size, false, float64(p.d.width*.4)))
		y += line + gap
	}
	marks := map[string]ChangeKind{}
	for _, d := range differences {
		if _, ok := marks[d.Entity]; !ok {
			marks[d.Entity] = d.Change
		}
	}
	high := 0.0
	for i, f := range [2]*stage.Frame{a, b} {
		x := gap + float64(float64(i)*(cw+gap))
		heading := shorten(strings.TrimSpace(clean([2]string{opt.Before, opt.After}[i])), size, true, float64(cw*.7))
		p.write(x, y+float64(14*u), size, start, true, p.text, heading)
		p.write(x+cw, y+float64(14*u), size, end, false, p.dim, clock(f.At))
		s := newStylist(f, inner)
		s.draw(inner)
		s.mark(marks)
		p.panel(x, y+line, s.d)
		high = math.Max(high, s.d.height)
	}
	y += line + high + gap
	if len(differences) == 0 {
		p.write(gap, y+float64(14*u), size, start, false, p.dim, "no differences")
		y += line
	}
	for i, d := range differences {
		text := shorten(d.String(), size, false, p.d.width-float64(2*gap)-float64(20*u))
		c := d.Change.color()
		if i == listed {
			text, c = fmt.Sprintf("… and %d more", len(differences)-listed), p.dim
		}
		r := float64(4 * u)
		p.d.shapes = append(p.d.shapes, shape{kind: ellipse, x: gap + r, y: y + float64(9.5*u), w: r, h: r, fill: c})
		p.write(gap+float64(16*u), y+float64(14*u), size, start, false, p.text, text)
		y += line
		if i == listed {
			break
		}
	}
	return p.finish(y + gap), differences
}

// mark outlines the figures that changed.
func (s *stylist) mark(changes map[string]ChangeKind) {
	for i := range s.cast {
		a := &s.cast[i]
		change, ok := changes[a.figure.ID]
		if !ok || s.byID[a.figure.ID] != i {
			continue
		}
		e := float64(5 * s.u)
		w := float64(a.h*math.Max(a.art.broad, 2*a.art.right))/100 + float64(2*e)
		s.add(shape{
			kind: rect, x: a.x - float64(w/2), y: a.y - a.h - float64(2*e), w: w, h: a.h + float64(3*e), r: float64(8 * s.u),
			fill: fade(change.color(), .08), stroke: change.color(), pen: float64(2.2 * s.u),
		})
	}
}
