package picture

import (
	"fmt"
	"image/color"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/clipperhouse/displaywidth"

	"github.com/sajou-dev/sajou-go/stage"
	"github.com/sajou-dev/sajou-go/stage/scene"
)

// Options are the options of a picture. The zero value gives a good one.
type Options struct {
	// Width is the drawing's natural width, 16 to 8192. Zero means 960. It determines the
	// size of texts relative to the figures: a drawing made 320 wide is legible at 320
	// pixels, a drawing made 960 wide and scaled down is not.
	Width int

	// Title, Address and Clock add a line below the picture: the title at the left, the
	// address (such as 812+350ms) and the session time at the right. Without any of them
	// there is no line.
	Title   string
	Address string
	Clock   bool

	// Places shows the scene's slots with their names, its waypoints and its routes.
	Places bool

	// Theme replaces a background that is not of its kind. The zero Theme replaces none.
	Theme Theme
}

// The limits of a picture. Further elements of the frame are left out and counted.
const (
	mostFigures  = 10000
	mostBeams    = 500
	mostSpeeches = 300
	mostPlaces   = 500

	// mostPaint bounds the area that the figures cover together, in pictures: painting
	// ten thousand figures of the picture's size would take an hour.
	mostPaint = 24
)

const (
	leastWidth, mostWidth = 16, 8192
	naturalWidth          = 960
)

// stylist makes one drawing of one frame.
//
// Its results are written as bytes that must be the same on every machine, so every
// product is converted before it is added, which forbids the compiler to fuse the two
// operations. Halves and doubles are converted too, although they are exact, so that the
// absence of fused instructions proves the rule (internal/fpcheck).
type stylist struct {
	d     *Drawing
	f     *stage.Frame
	scene *scene.Scene

	width, height float64 // of the picture without its footer
	k, dx, dy     float64 // from the scene's units to the picture's
	u             float64 // the size of texts and lines, 1 at the natural width

	ground, text, dim color.NRGBA

	symbols map[symbolKey]*symbol
	badges  map[string]*symbol
	cast    []actor // the figures that are drawn
	byID    map[string]int

	names   []named // the texts of places
	written *grid   // the areas of figures, badges and the texts that have their places
	hidden  int     // texts without room
	boxes   []Box   // of the texts
}

type symbolKey struct {
	art        *art
	base, tint color.NRGBA
	strength   int
	mood       mood
}

// actor is a figure with its position in the picture.
type actor struct {
	figure *stage.Figure
	art    *art
	x, y   float64 // the foot
	h      float64
	area   area // what the figure covers, without its shadow and its badge
	badge  *symbol
}

// Draw makes the drawing of a frame. It depends only on its arguments and does not change
// them.
func Draw(f *stage.Frame, opt Options) *Drawing {
	s := newStylist(f, opt)
	s.draw(opt)
	return s.d
}

func (s *stylist) draw(opt Options) {
	s.background()
	if opt.Places {
		s.places()
	}
	floor := len(s.d.shapes)
	s.figures()
	s.beams()
	t := s.texts()
	// The threads of speeches pass behind the figures.
	s.d.shapes = slices.Insert(s.d.shapes, floor, t.threads...)
	// The tail of a bubble may pass a label, which stays legible above it.
	s.d.shapes = append(append(s.d.shapes, t.bubbles...), t.labels...)
	s.boxesOfFigures()
	s.footer(opt)
}

func newStylist(f *stage.Frame, opt Options) *stylist {
	sc := f.Scene
	if sc == nil {
		sc = scene.Default()
	}
	w := naturalWidth
	if opt.Width != 0 {
		w = min(max(opt.Width, leastWidth), mostWidth)
	}
	s := &stylist{
		f: f, scene: sc, width: float64(w),
		symbols: map[symbolKey]*symbol{}, badges: map[string]*symbol{}, byID: map[string]int{},
	}
	sw, sh := sc.Width, sc.Height
	if !finite(sw, sh) || sw <= 0 || sh <= 0 {
		sw, sh = 960, 540
	}
	// The picture of a very long or very high scene has a moderate shape.
	s.height = math.Max(1, math.Round(clamp(float64(s.width*(sh/sw)), s.width/4, s.width*2)))
	s.k = math.Min(s.width/sw, s.height/sh)
	s.dx = (s.width - float64(sw*s.k)) / 2
	s.dy = (s.height - float64(sh*s.k)) / 2
	s.u = clamp(s.width/naturalWidth, .68, 6)
	s.ground = parseColor(sc.Background, night)
	s.ground.A = 255
	s.ground = opt.Theme.ground(s.ground)
	s.text, s.dim = paper, mix(paper, s.ground, .4)
	if bright(s.ground) {
		s.text, s.dim = ink, mix(ink, s.ground, .4)
	}
	s.d = &Drawing{width: s.width, height: s.height}
	s.d.shapes = make([]shape, 0, 64+5*min(len(f.Figures), mostFigures))
	return s
}

func (s *stylist) add(sh shape) { s.d.shapes = append(s.d.shapes, sh) }

// at maps a point of the scene to the picture.
func (s *stylist) at(x, y float64) (float64, float64) {
	return s.dx + float64(x*s.k), s.dy + float64(y*s.k)
}

// write adds a text, which must be clean.
func (s *stylist) write(x, y, size float64, a anchor, bold bool, c color.NRGBA, t string) {
	if t != "" && c.A > 0 {
		s.add(textShape(x, y, size, a, bold, c, t))
	}
}

// background draws the ground with a grid, whose lines are a round number of the scene's
// units apart.
func (s *stylist) background() {
	s.add(shape{kind: rect, w: s.width, h: s.height, fill: s.ground})
	// The middle of the stage is lighter.
	for _, r := range [...]float64{.68, .52, .38} {
		s.add(shape{
			kind: ellipse, x: s.width / 2, y: float64(s.height * .56), w: float64(s.width * r), h: float64(s.height * r),
			fill: fade(mix(s.text, s.ground, .35), .014),
		})
	}
	sw, sh := (s.width-float64(2*s.dx))/s.k, (s.height-float64(2*s.dy))/s.k
	step := roundStep(math.Max(sw, sh) / 20)
	c := fade(s.text, .055)
	for i := 0; i <= 64; i++ {
		v := float64(float64(i) * step)
		if v <= sw {
			x, y := s.at(v, 0)
			s.add(shape{kind: rect, x: x - float64(s.u/2), y: y, w: s.u, h: s.height - float64(2*y), fill: c})
		}
		if v <= sh {
			x, y := s.at(0, v)
			s.add(shape{kind: rect, x: x, y: y - float64(s.u/2), w: s.width - float64(2*x), h: s.u, fill: c})
		}
	}
	s.d.ground = len(s.d.shapes)
}

// roundStep returns the smallest of 1, 2 and 5 times a power of ten that is at least v.
func roundStep(v float64) float64 {
	p := 1.0
	for p > v {
		p /= 10
	}
	for float64(p*10) < v {
		p *= 10
	}
	for _, n := range [...]float64{1, 2, 5} {
		if float64(p*n) >= v {
			return float64(p * n)
		}
	}
	return float64(p * 10)
}

// places draws the slots, the routes and the waypoints, and notes their names.
func (s *stylist) places() {
	mark := fade(s.text, .1)
	name := func(x, y float64, c color.NRGBA, text string) {
		s.names = append(s.names, named{x, y, c, text})
	}
	for _, slot := range s.scene.Slots[:min(len(s.scene.Slots), mostPlaces)] {
		if x, y := s.at(slot.At.X, slot.At.Y); s.inside(x, y) {
			s.add(shape{kind: ellipse, x: x, y: y, w: float64(22 * s.u), h: float64(7 * s.u), stroke: mark, pen: float64(1.5 * s.u)})
			name(x, y+float64(20*s.u), s.dim, slot.Name)
		}
	}
	for i, route := range slices.Sorted(maps.Keys(s.scene.Routes)) {
		r := s.scene.Routes[route]
		if i >= mostPlaces || len(r.Points) < 2 || len(r.Points) > mostPlaces {
			continue
		}
		var p []segment
		for j, at := range r.Points {
			x, y := s.at(at.X, at.Y)
			if !finite(x, y) {
				p = nil
				break
			}
			verb := byte('L')
			if j == 0 {
				verb = 'M'
			}
			p = append(p, segment{verb: verb, p: [3]point{{x, y}}})
		}
		if p == nil {
			continue
		}
		if r.Closed {
			p = append(p, segment{verb: 'Z'})
		}
		s.add(shape{kind: outline, path: p, stroke: fade(blue, .45), pen: float64(2 * s.u)})
		a, b := p[0].p[0], p[1].p[0]
		name((a.x+b.x)/2, float64((a.y+b.y)/2)-float64(5*s.u), mix(blue, s.text, .3), route)
	}
	for i, waypoint := range slices.Sorted(maps.Keys(s.scene.Waypoints)) {
		at := s.scene.Waypoints[waypoint]
		x, y := s.at(at.X, at.Y)
		if i >= mostPlaces || !s.inside(x, y) {
			continue
		}
		r := float64(5 * s.u)
		s.add(shape{kind: outline, fill: fade(amber, .8), path: []segment{
			{verb: 'M', p: [3]point{{x, y - r}}},
			{verb: 'L', p: [3]point{{x + r, y}}},
			{verb: 'L', p: [3]point{{x, y + r}}},
			{verb: 'L', p: [3]point{{x - r, y}}},
			{verb: 'Z'},
		}})
		name(x, y+float64(18*s.u), mix(amber, s.text, .3), waypoint)
	}
}

func (s *stylist) inside(x, y float64) bool {
	return x >= 0 && y >= 0 && x <= s.width && y <= s.height // false for NaN
}

// figures draws the figures with their shadows and badges.
func (s *stylist) figures() {
	paint := float64(mostPaint * s.width * s.height)
	for i := range s.f.Figures {
		f := &s.f.Figures[i]
		a, covered, ok := s.place(f)
		if !ok {
			continue
		}
		if paint -= covered; paint < 0 || len(s.cast) == mostFigures {
			s.d.omitted++
			continue
		}
		if _, taken := s.byID[f.ID]; !taken {
			s.byID[f.ID] = len(s.cast)
		}
		s.figure(&a)
		s.cast = append(s.cast, a)
	}
	for i := range s.cast {
		if a := &s.cast[i]; a.badge != nil {
			s.badge(a)
		}
	}
}

// place computes the position of a figure and the area that it covers. It returns false
// for a figure that is not visible.
func (s *stylist) place(f *stage.Figure) (actor, float64, bool) {
	if !f.Visible || !(f.Opacity > 0) || !finite(f.X, f.Y, f.Scale, f.Look.Size) || f.Scale <= 0 {
		return actor{}, 0, false
	}
	size := f.Look.Size
	if size <= 0 {
		size = 64
	}
	a := actor{figure: f, art: artOf(f.Look.Figure), h: clamp(float64(size*f.Scale)*s.k, 1, 4*s.height)}
	a.x, a.y = s.at(f.X, f.Y)
	// The figure is within this square at every rotation about its middle.
	reach := float64(a.h * .9)
	cy := a.y - float64(a.h/2)
	w := math.Min(s.width, a.x+reach) - math.Max(0, a.x-reach)
	h := math.Min(s.height, cy+reach) - math.Max(0, cy-reach)
	if !(w > 0 && h > 0) {
		return actor{}, 0, false
	}
	return a, float64(w * h), true
}

func (s *stylist) figure(a *actor) {
	f := a.figure
	opacity := clamp(f.Opacity, 0, 1)
	depth := opacity
	if bright(s.ground) {
		depth /= 2
	}
	ground := a.y
	if finite(f.Height) {
		ground = clamp(a.y+float64(f.Height*s.k), -s.height, 2*s.height)
	}
	s.add(shape{kind: use, symbol: shadow, x: a.x, y: ground, size: float64(a.h*a.art.broad) / 7200, opacity: depth})
	key := symbolKey{art: a.art, base: parseColor(f.Look.Color, neutral)}
	key.base.A = 255
	if tint := parseColor(f.Tint, color.NRGBA{}); f.Strength > 0 && tint.A > 0 {
		key.tint, key.strength = tint, int(math.Round(clamp(f.Strength, 0, 1)*tintLevels))
		key.tint.A = 255
		if key.strength == 0 {
			key.tint = color.NRGBA{}
		}
	}
	switch f.State {
	case "waiting", "done":
		key.mood = calm
	case "error":
		key.mood = hurt
	}
	sym := s.symbols[key]
	if sym == nil {
		sym = figureSymbol(key.art, key.base, key.tint, key.strength, key.mood)
		s.symbols[key] = sym
	}
	turn := 0.0
	if finite(f.Rotation) {
		turn = math.Mod(f.Rotation, 360)
	}
	s.add(shape{kind: use, symbol: sym, x: a.x, y: a.y, size: a.h / tall, turn: turn, opacity: opacity})
	a.area = s.covered(a, sym.cover, turn)
	if a.art.name == "token" {
		size := float64(a.h * .42)
		c := paper
		if bright(key.base) {
			c = ink
		}
		s.write(a.x, a.y-float64(a.h*.5)+float64(size*.36), size, middle, true, fade(c, opacity), initial(clean(nameOf(f))))
	}
	a.badge = s.badgeOf(f.State)
}

// covered returns the area of the picture that an actor covers: that of its symbol, turned.
func (s *stylist) covered(a *actor, cover area, turn float64) area {
	k := a.h / tall
	if turn == 0 {
		return area{a.x + float64(cover.x*k), a.y + float64(cover.y*k), float64(cover.w * k), float64(cover.h * k)}
	}
	sin, cos := sincos(turn)
	low, high := point{math.Inf(1), math.Inf(1)}, point{math.Inf(-1), math.Inf(-1)}
	for _, p := range [4]point{{cover.x, cover.y}, {cover.x + cover.w, cover.y}, {cover.x, cover.y + cover.h}, {cover.x + cover.w, cover.y + cover.h}} {
		up := p.y + tall/2 // from the middle of the figure
		x, y := float64(cos*p.x)-float64(sin*up), float64(sin*p.x)+float64(cos*up)-tall/2
		low, high = point{math.Min(low.x, x), math.Min(low.y, y)}, point{math.Max(high.x, x), math.Max(high.y, y)}
	}
	return area{a.x + float64(low.x*k), a.y + float64(low.y*k), float64((high.x - low.x) * k), float64((high.y - low.y) * k)}
}

// nameOf returns the name that gives a token its letter, also for a figure without a
// label.
func nameOf(f *stage.Figure) string {
	if f.Label != "" {
		return f.Label
	}
	return f.ID
}

// initial returns the first character of a clean name.
func initial(name string) string {
	for g := displaywidth.StringGraphemes(strings.TrimSpace(name)); g.Next(); {
		return strings.ToUpper(g.Value())
	}
	return "?"
}

// badgeOf returns the badge of a state, or nil if it has none.
func (s *stylist) badgeOf(state string) *symbol {
	if sym, ok := s.badges[state]; ok {
		return sym
	}
	if len(s.badges) > 64 { // a bound for arbitrary states
		return nil
	}
	phase := int(s.f.At/(300*time.Millisecond)) % 3
	if state == "spark" {
		return nil
	}
	sym := badge(state, max(phase, -phase))
	s.badges[state] = sym
	return sym
}

// badgeAt returns the center and the size of an actor's badge.
func (s *stylist) badgeAt(a *actor) (x, y, size float64) {
	size = clamp(float64(a.h*.36), float64(15*s.u), float64(34*s.u))
	x = a.x + float64(float64(a.h*a.art.right)/100) + float64(size*.25)
	y = a.y - float64(a.h*.98)
	return clamp(x, size/2, s.width-float64(size/2)), clamp(y, size/2, s.height-float64(size/2)), size
}

func (s *stylist) badge(a *actor) {
	x, y, size := s.badgeAt(a)
	opacity := clamp(a.figure.Opacity, 0, 1)
	if a.figure.State != "acting" {
		s.add(shape{kind: use, symbol: a.badge, x: x, y: y, size: size / 100, opacity: opacity})
		return
	}
	// The wheel turns once in two seconds, and a spark comes and goes beside it.
	ms := s.f.At.Milliseconds()
	s.add(shape{kind: use, symbol: a.badge, x: x, y: y, size: size / 100, turn: float64((ms%2000)*360/2000) + 0, opacity: opacity})
	glint := math.Abs(float64((ms+250)%500)/250 - 1)
	spark, ok := s.badges["spark"]
	if !ok {
		spark = badge("spark", 0)
		s.badges["spark"] = spark
	}
	s.add(shape{
		kind: use, symbol: spark, x: x + float64(size*.52), y: y - float64(size*.5),
		size: float64(size*(.25+float64(.25*glint))) / 100, opacity: opacity,
	})
}

// footer writes the line below the picture.
func (s *stylist) footer(opt Options) {
	u := s.u
	size := float64(12.5 * u)
	if opt.Title == "" && opt.Address == "" && !opt.Clock {
		return
	}
	high := math.Round(float64(28 * u))
	s.d.height += high
	bar := mix(s.ground, black, .35)
	title, address := s.text, s.dim
	if bright(s.ground) {
		bar = mix(s.ground, black, .06)
	}
	s.add(shape{kind: rect, y: s.height, w: s.width, h: high, fill: bar})
	y := s.height + float64(high/2) + float64(size*.35)
	pad := float64(12 * u)
	right := s.width - pad
	if opt.Clock {
		t := clock(s.f.At)
		s.write(right, y, size, end, true, title, t)
		right -= width(t, size, true) + pad
	}
	if a := shorten(strings.TrimSpace(clean(opt.Address)), size, false, math.Max(0, right-pad)); a != "" {
		s.write(right, y, size, end, false, address, a)
		right -= width(a, size, false) + pad
	}
	s.write(pad, y, size, start, true, title, shorten(strings.TrimSpace(clean(opt.Title)), size, true, math.Max(0, right-pad)))
}

// clock formats session time for readers: 1:02.350.
func clock(at time.Duration) string {
	sign := ""
	ms := at.Milliseconds()
	if ms < 0 {
		sign, ms = "-", -ms
	}
	m, rest := ms/60000, ms%60000
	if h := m / 60; h > 0 {
		return fmt.Sprintf("%s%d:%02d:%02d.%03d", sign, h, m%60, rest/1000, rest%1000)
	}
	return fmt.Sprintf("%s%d:%02d.%03d", sign, m, rest/1000, rest%1000)
}
