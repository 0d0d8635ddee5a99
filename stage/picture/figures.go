package picture

import (
	"fmt"
	"image/color"
	"slices"
	"strings"
)

// The figures are drawn in units of a hundredth of their height, the foot at 0,0 and the
// head at 0,-100. None exceeds this box.
const (
	tall                   = 100.0
	boxX, boxY, boxW, boxH = -60, -112, 120, 124
)

// art draws one figure. Its path literals are parsed once.
type art struct {
	name  string
	broad float64 // the width of its shadow
	right float64 // its extent to the right of its axis at the height of the head
	draw  func(b *brush)
}

// gallery are the figures, in the order of [Figures].
var gallery = []art{
	{"person", 44, 24, drawPerson},
	{"robot", 58, 30, drawRobot},
	{"bird", 46, 44, drawBird},
	{"building", 78, 40, drawBuilding},
	{"house", 84, 40, drawHouse},
	{"box", 80, 44, drawBox},
	{"gear", 64, 44, drawGear},
	{"star", 60, 38, drawStar},
	{"document", 60, 36, drawDocument},
	{"screen", 70, 50, drawScreen},
	{"database", 66, 36, drawDatabase},
	{"cloud", 80, 46, drawCloud},
	{"tree", 50, 32, drawTree},
	{"flag", 36, 44, drawFlag},
	{"dot", 44, 40, drawDot},
	{"lens", 60, 44, drawLens},
	{"pencil", 44, 40, drawPencil},
	{"flask", 56, 40, drawFlask},
	{"token", 66, 42, drawToken},
}

// synonyms are other names of figures in the gallery.
var synonyms = map[string]string{
	"human": "person", "user": "person", "worker": "person", "peon": "person", "people": "person",
	"agent": "robot", "bot": "robot", "assistant": "robot",
	"pigeon": "bird", "messenger": "bird", "plane": "bird",
	"tower": "building", "castle": "building", "office": "building", "factory": "building",
	"home": "house", "forge": "house", "hut": "house",
	"crate": "box", "chest": "box", "package": "box", "cube": "box",
	"tool": "gear", "cog": "gear", "wrench": "gear", "engine": "gear",
	"file": "document", "page": "document", "scroll": "document", "letter": "document",
	"computer": "screen", "terminal": "screen", "monitor": "screen",
	"server": "database", "disk": "database", "storage": "database", "barrel": "database",
	"network": "cloud", "web": "cloud",
	"magnifier": "lens", "pen": "pencil", "bottle": "flask",
	"circle": "dot", "orb": "dot", "point": "dot", "ball": "dot",
}

// Figures returns the names of the figures that pictures can draw, without their
// synonyms. Any other name is drawn as a token with the first letter of the label.
func Figures() []string {
	names := make([]string, len(gallery))
	for i, a := range gallery {
		names[i] = a.name
	}
	return names
}

// artOf returns the art of a figure by its name or synonym; the token for others.
func artOf(name string) *art {
	name = strings.ToLower(strings.TrimSpace(name))
	if s, ok := synonyms[name]; ok {
		name = s
	}
	if i := slices.IndexFunc(gallery, func(a art) bool { return a.name == name }); i >= 0 {
		return &gallery[i]
	}
	return &gallery[len(gallery)-1]
}

// mood is the expression of a face.
type mood uint8

const (
	awake mood = iota
	calm       // waiting, done
	hurt       // error
)

// brush draws one symbol in the shades of one color.
type brush struct {
	base, light, dark, line color.NRGBA
	tint                    color.NRGBA
	strength                float64
	mood                    mood
	shapes                  []shape
}

// tintLevels is the number of distinct strengths of a tint: few enough that the frames of
// a flash share symbols, and enough to look smooth.
const tintLevels = 32

// mostTint is the share of a tint of full strength in the colors of a figure. The rest
// remains of the figure's own colors, so that it is recognised while it flashes.
const mostTint = .6

// figureSymbol makes the symbol of a figure. The tint is mixed into every color, which
// looks like an overlay in the shape of the figure.
func figureSymbol(a *art, base, tint color.NRGBA, strength int, m mood) *symbol {
	b := &brush{
		base: base, light: mix(base, white, .38), dark: mix(base, black, .28), line: mix(base, black, .52),
		tint: tint, strength: float64(mostTint*float64(strength)) / tintLevels, mood: m,
	}
	a.draw(b)
	name := fmt.Sprintf("%s-%02x%02x%02x", a.name, base.R, base.G, base.B)
	if strength > 0 {
		name += fmt.Sprintf("-%02x%02x%02x%d", tint.R, tint.G, tint.B, strength)
	}
	if m != awake {
		name += [...]string{"", "-calm", "-hurt"}[m]
	}
	return &symbol{name: name, pivot: -tall / 2, x: boxX, y: boxY, w: boxW, h: boxH, cover: coverOf(b.shapes), shapes: b.shapes}
}

// in returns a color with the tint mixed in.
func (b *brush) in(c color.NRGBA) color.NRGBA { return mix(c, b.tint, b.strength) }

func (b *brush) rect(x, y, w, h, r float64, fill color.NRGBA) {
	b.shapes = append(b.shapes, shape{kind: rect, x: x, y: y, w: w, h: h, r: r, fill: b.in(fill)})
}

func (b *brush) edged(x, y, w, h, r float64, fill color.NRGBA) {
	b.shapes = append(b.shapes, shape{kind: rect, x: x, y: y, w: w, h: h, r: r, fill: b.in(fill), stroke: b.in(b.line), pen: 2.5})
}

func (b *brush) oval(x, y, rx, ry float64, fill color.NRGBA) {
	b.shapes = append(b.shapes, shape{kind: ellipse, x: x, y: y, w: rx, h: ry, fill: b.in(fill)})
}

func (b *brush) edgedOval(x, y, rx, ry float64, fill color.NRGBA) {
	b.shapes = append(b.shapes, shape{kind: ellipse, x: x, y: y, w: rx, h: ry, fill: b.in(fill), stroke: b.in(b.line), pen: 2.5})
}

func (b *brush) shape(p []segment, fill color.NRGBA) {
	b.shapes = append(b.shapes, shape{kind: outline, path: p, fill: b.in(fill)})
}

func (b *brush) edgedShape(p []segment, fill color.NRGBA) {
	b.shapes = append(b.shapes, shape{kind: outline, path: p, fill: b.in(fill), stroke: b.in(b.line), pen: 2.5})
}

func (b *brush) pen(p []segment, width float64, c color.NRGBA) {
	b.shapes = append(b.shapes, shape{kind: outline, path: p, stroke: b.in(c), pen: width})
}

func (b *brush) stroke(x1, y1, x2, y2, width float64, c color.NRGBA) {
	b.shapes = append(b.shapes, shape{kind: line, x: x1, y: y1, w: x2, h: y2, pen: width, stroke: b.in(c)})
}

// eyes draws a pair of eyes in the brush's mood.
func (b *brush) eyes(x1, x2, y, r float64, c color.NRGBA) {
	for _, x := range [2]float64{x1, x2} {
		switch b.mood {
		case awake:
			b.oval(x, y, r, r, c)
		case calm:
			b.stroke(x-r, y, x+r, y, r*.8, c)
		case hurt:
			b.stroke(x-r, y-r, x+r, y+r, r*.8, c)
			b.stroke(x-r, y+r, x+r, y-r, r*.8, c)
		}
	}
}

var (
	personBody  = path("M -21 -28 Q -24 -62 0 -62 Q 24 -62 21 -28 Q 20 -20 0 -20 Q -20 -20 -21 -28 Z")
	personShade = path("M 5 -61 Q 24 -59 21 -28 Q 20 -21 5 -20 Q 15 -38 5 -61 Z")
	personHair  = path("M -17.5 -80 C -18 -104 18 -104 17.5 -80 C 10 -90 -8 -88 -17.5 -80 Z")
	personSmile = path("M -5 -71.5 Q 0 -67.5 5 -71.5")
)

func drawPerson(b *brush) {
	skin := mix(b.base, color.NRGBA{255, 221, 190, 255}, .86)
	b.rect(-14, -26, 12, 26, 5, b.line)
	b.rect(2, -26, 12, 26, 5, b.line)
	b.edged(-30, -57, 11, 31, 5.5, b.dark)
	b.edged(19, -57, 11, 31, 5.5, b.dark)
	b.edgedShape(personBody, b.base)
	b.shape(personShade, b.dark)
	b.edgedOval(0, -79, 17.5, 18.5, skin)
	b.shape(personHair, b.line)
	b.eyes(-6, 6.5, -77, 2.3, ink)
	b.pen(personSmile, 2, ink)
}

func drawRobot(b *brush) {
	glow := mix(b.light, color.NRGBA{165, 243, 252, 255}, .8)
	b.stroke(0, -98, 0, -88, 3, b.line)
	b.oval(0, -100, 4.5, 4.5, gold)
	b.rect(-20, -16, 15, 16, 4, b.line)
	b.rect(5, -16, 15, 16, 4, b.line)
	b.edged(-36, -50, 11, 28, 5, b.dark)
	b.edged(25, -50, 11, 28, 5, b.dark)
	b.edged(-26, -52, 52, 40, 10, b.base)
	b.rect(8, -50.5, 16.5, 37, 8, b.dark)
	b.rect(-15, -42, 30, 17, 4, b.line)
	b.oval(-7, -33.5, 3, 3, gold)
	b.rect(-1, -35.5, 11, 4, 2, glow)
	b.edged(-25, -91, 50, 36, 12, b.light)
	b.rect(-20, -85, 40, 23, 8, ink)
	b.eyes(-9, 9, -75, 4, glow)
	b.rect(-7, -67.5, 14, 2.5, 1.2, glow)
}

var (
	birdTail  = path("M -22 -34 L -50 -26 L -46 -38 L -52 -44 L -24 -48 Z")
	birdBody  = path("M -28 -40 C -26 -64 8 -66 20 -78 C 34 -66 34 -22 2 -18 C -16 -16 -28 -26 -28 -40 Z")
	birdBelly = path("M 28 -54 C 30 -34 18 -18 2 -18 C -8 -18 -14 -20 -19 -25 C 4 -24 20 -34 28 -54 Z")
	birdWing  = path("M -14 -50 C 2 -62 14 -50 8 -38 C 0 -26 -22 -28 -34 -34 C -26 -38 -20 -42 -14 -50 Z")
	birdBeak  = path("M 34 -86 L 52 -79 L 34 -74 Z")
)

func drawBird(b *brush) {
	b.stroke(-2, -20, -4, -2, 3, amber)
	b.stroke(9, -20, 9, -2, 3, amber)
	b.stroke(-4, -2, 3, -2, 3, amber)
	b.stroke(9, -2, 16, -2, 3, amber)
	b.edgedShape(birdTail, b.dark)
	b.edgedShape(birdBody, b.base)
	b.shape(birdBelly, b.light)
	b.shape(birdBeak, amber)
	b.edgedOval(22, -80, 15.5, 15.5, b.base)
	b.edgedShape(birdWing, b.dark)
	b.oval(26, -83, 5, 5, white)
	b.eyes(27, 27, -83, 2.6, ink)
}

func drawBuilding(b *brush) {
	b.edged(-33, -86, 66, 86, 3, b.base)
	b.rect(17, -84.5, 14.7, 83, 1, b.dark)
	b.edged(-37, -94, 74, 11, 3, b.dark)
	b.rect(-20, -100, 14, 7, 1.5, b.line)
	glass := mix(color.NRGBA{254, 240, 190, 255}, b.light, .15)
	for row := range 3 {
		for column := range 3 {
			pane := glass
			if (row*3+column)%4 == 2 {
				pane = mix(b.line, b.base, .25)
			}
			b.rect(-26+float64(float64(column)*18.5), -75+float64(float64(row)*18), 11.5, 11, 1.5, pane)
		}
	}
	b.rect(-8, -19, 16, 19, 2, b.line)
	b.oval(4, -9, 1.5, 1.5, gold)
}

var (
	houseRoof  = path("M -46 -52 L 0 -96 L 46 -52 Z")
	houseShade = path("M 0 -94 L 43.5 -53.2 L 12 -53.2 Z")
)

func drawHouse(b *brush) {
	b.edged(18, -92, 12, 30, 2, b.line)
	b.edged(-36, -54, 72, 54, 3, b.light)
	b.rect(14, -52.5, 20.7, 51, 1, b.base)
	b.edgedShape(houseRoof, b.base)
	b.shape(houseShade, b.dark)
	b.rect(-10, -30, 20, 30, 3, b.line)
	b.oval(5, -14, 1.8, 1.8, gold)
	b.edged(-30, -42, 14, 14, 2, color.NRGBA{254, 240, 190, 255})
	b.edged(17, -42, 14, 14, 2, color.NRGBA{254, 240, 190, 255})
}

var (
	boxTop   = path("M 0 -84 L 44 -64 L 0 -44 L -44 -64 Z")
	boxLeft  = path("M -44 -64 L 0 -44 L 0 2 L -44 -18 Z")
	boxRight = path("M 44 -64 L 0 -44 L 0 2 L 44 -18 Z")
	boxTape  = path("M -26 -72.2 L 18 -52.2 L 18 -38 L 27 -42 L 27 -56.3 L -17 -76.2 Z")
)

func drawBox(b *brush) {
	b.edgedShape(boxLeft, b.base)
	b.edgedShape(boxRight, b.dark)
	b.edgedShape(boxTop, b.light)
	b.shape(boxTape, mix(b.light, gold, .55))
}

var (
	gearTeeth = gearPath()
	gearHole  = 13.0
)

// gearPath returns a wheel of eight teeth about 0,-50. The cosines of the
// twelfths of a quarter turn are written out, so that they are the same
// everywhere.
func gearPath() []segment {
	cos := [...]float64{1, .99144, .96593, .92388, .86603, .79335, .70711, .60876, .5, .38268, .25882, .13053, 0}
	at := func(step int, radius float64) point {
		quarter, within := step/12%4, step%12
		c, s := cos[within], cos[12-within]
		for range quarter {
			c, s = -s, c
		}
		return point{float64(c * radius), float64(s*radius) - 50}
	}
	// Each tooth takes six steps: four at its root, two of them gap, and two at its tip.
	var out []segment
	for tooth := range 8 {
		for i, p := range [...]struct {
			step   int
			radius float64
		}{{0, 37}, {1, 47}, {3, 47}, {4, 37}} {
			verb := byte('L')
			if tooth == 0 && i == 0 {
				verb = 'M'
			}
			out = append(out, segment{verb: verb, p: [3]point{at(tooth*6+p.step, p.radius)}})
		}
	}
	return append(out, segment{verb: 'Z'})
}

func drawGear(b *brush) {
	b.edgedShape(gearTeeth, b.base)
	b.oval(0, -50, 29, 29, b.dark)
	b.oval(-1.5, -51.5, 26, 26, b.base)
	b.oval(-8, -59, 9, 9, b.light)
	b.edgedOval(0, -50, gearHole, gearHole, b.line)
}

// The star has its points on a circle of 48 and its corners on one of 21 about
// 0,-50; the halves of the arms are shaded apart.
var (
	starPath = path("M 0 -98 L 12.3 -67 L 45.7 -64.8 L 20 -43.5 L 28.2 -11.2 L 0 -29 L -28.2 -11.2 L -20 -43.5 L -45.7 -64.8 L -12.3 -67 Z")
	starDark = path("M 0 -50 L 0 -96 L 12.3 -67 Z M 0 -50 L 44 -64.4 L 20 -43.5 Z M 0 -50 L 27 -12.6 L 0 -29 Z M 0 -50 L -27 -12.6 L -20 -43.5 Z M 0 -50 L -44 -64.4 L -12.3 -67 Z")
)

func drawStar(b *brush) {
	b.edgedShape(starPath, b.light)
	b.shape(starDark, b.base)
}

var (
	documentPage = path("M -32 -96 L 14 -96 L 34 -76 L 34 -2 L -32 -2 Z")
	documentFold = path("M 14 -96 L 34 -76 L 14 -76 Z")
)

func drawDocument(b *brush) {
	b.edgedShape(documentPage, mix(b.light, white, .62))
	b.edgedShape(documentFold, b.base)
	b.rect(-24, -82, 28, 7, 2, b.base)
	for i := range 4 {
		w := 48.0
		if i == 3 {
			w = 30
		}
		b.rect(-24, -64+float64(float64(i)*14), w, 4.5, 2, b.dark)
	}
}

var screenPrompt = path("M -30 -74 L -20 -65 L -30 -56")

func drawScreen(b *brush) {
	b.edged(-26, -10, 52, 9, 4, b.dark)
	b.edged(-7, -28, 14, 20, 1, b.line)
	b.edged(-48, -92, 96, 66, 7, b.base)
	b.rect(-41, -85, 82, 50, 3, ink)
	b.pen(screenPrompt, 4, mix(b.light, green, .5))
	b.rect(-14, -58, 24, 4.5, 2, b.light)
}

var (
	databaseBody  = path("M -34 -82 L -34 -12 C -34 3 34 3 34 -12 L 34 -82 Z")
	databaseShade = path("M 12 -73 L 32.7 -80 L 32.7 -12 C 32.7 -6 24 -3.2 12 -2.2 Z")
	databaseRings = path("M -34 -59 C -34 -44.5 34 -44.5 34 -59 M -34 -35.5 C -34 -21 34 -21 34 -35.5")
)

func drawDatabase(b *brush) {
	b.edgedShape(databaseBody, b.base)
	b.shape(databaseShade, b.dark)
	b.pen(databaseRings, 2.5, b.line)
	b.edgedOval(0, -82, 34, 11.5, b.light)
	b.oval(-23, -58, 2.8, 2.8, gold)
	b.oval(-23, -34.5, 2.8, 2.8, gold)
	b.oval(-23, -12, 2.8, 2.8, gold)
}

var (
	cloudPath  = path("M -32 -22 C -56 -22 -58 -54 -34 -56 C -34 -84 2 -92 12 -70 C 28 -80 46 -66 40 -52 C 58 -48 56 -22 34 -22 Z")
	cloudShade = path("M -32 -23.3 C -47 -23.3 -53 -36 -49 -45 C -42 -32 20 -30 52 -42 C 51 -30 44 -23.3 34 -23.3 Z")
)

func drawCloud(b *brush) {
	b.edgedShape(cloudPath, b.light)
	b.shape(cloudShade, b.base)
}

func drawTree(b *brush) {
	b.edged(-7, -34, 14, 34, 3, color.NRGBA{133, 94, 66, 255})
	b.edgedOval(0, -64, 33, 34, b.base)
	b.oval(9, -56, 22, 23, b.dark)
	b.oval(-4, -68, 25, 25, b.base)
	b.oval(-11, -78, 10, 9, b.light)
}

var (
	flagCloth = path("M -18 -96 C 2 -106 18 -84 40 -92 L 40 -54 C 18 -46 2 -68 -18 -58 Z")
	flagShade = path("M 14 -91.5 C 22 -90 30 -89.5 38.7 -90.3 L 38.7 -54.8 C 30 -53 22 -55 14 -57.5 Z")
)

func drawFlag(b *brush) {
	b.edged(-23, -100, 6, 100, 3, neutral)
	b.edgedShape(flagCloth, b.base)
	b.shape(flagShade, b.dark)
}

func drawLens(b *brush) {
	b.stroke(14, -38, 34, -10, 15, b.line)
	b.stroke(14, -38, 34, -10, 10, b.dark)
	b.edgedOval(-8, -64, 34, 34, b.base)
	b.edgedOval(-8, -64, 25, 25, mix(b.light, color.NRGBA{190, 235, 255, 255}, .7))
	b.oval(-17, -73, 7, 5.5, white)
}

var (
	pencilBody  = path("M 18 -98 L 38 -82 L -8 -20 L -28 -36 Z")
	pencilShade = path("M 29 -89 L 36.5 -82 L -8.5 -21.5 L -17 -28.5 Z")
	pencilWood  = path("M -28 -36 L -8 -20 L -34 -2 Z")
	pencilLead  = path("M -31 -14 L -25.5 -9.5 L -34 -2 Z")
	pencilEnd   = path("M 18 -98 L 38 -82 L 31.5 -73.5 L 11.5 -89.5 Z")
)

func drawPencil(b *brush) {
	b.edgedShape(pencilWood, color.NRGBA{240, 211, 168, 255})
	b.shape(pencilLead, b.line)
	b.edgedShape(pencilBody, b.base)
	b.shape(pencilShade, b.dark)
	b.edgedShape(pencilEnd, b.light)
}

var (
	flaskGlass = path("M -11 -92 L -11 -62 L -36 -14 Q -42 -2 -30 -2 L 30 -2 Q 42 -2 36 -14 L 11 -62 L 11 -92 Z")
	flaskFluid = path("M -20.5 -41 L -34 -14 Q -38 -4.5 -29 -4.5 L 29 -4.5 Q 38 -4.5 34 -14 L 20.5 -41 Z")
)

func drawFlask(b *brush) {
	b.edgedShape(flaskGlass, mix(b.light, white, .6))
	b.shape(flaskFluid, b.base)
	b.edged(-16, -99, 32, 9, 4, b.dark)
	b.oval(-8, -20, 5, 5, b.light)
	b.oval(9, -29, 3.5, 3.5, b.light)
	b.oval(15, -14, 3, 3, b.light)
}

func drawDot(b *brush) {
	b.edgedOval(0, -50, 42, 42, b.dark)
	b.oval(-3, -53, 36, 36, b.base)
	b.oval(-14, -65, 14, 11, b.light)
}

func drawToken(b *brush) {
	b.edgedOval(0, -48, 46, 46, b.dark)
	b.oval(0, -50, 42, 42, b.base)
	b.oval(0, -50, 34, 34, b.dark)
	b.oval(0, -49, 33, 33, mix(b.base, black, .12))
}

// The badges show the state beside a figure's head. Their box is 100 wide, centered at
// 0,0.
var (
	badgeCheck = path("M -22 2 L -6 18 L 24 -16")
	badgeGlass = path("M -20 -30 L 20 -30 Q 20 -10 4 0 Q 20 10 20 30 L -20 30 Q -20 10 -4 0 Q -20 -10 -20 -30 Z")
	badgeSand  = path("M -14 28 Q -12 14 0 9 Q 12 14 14 28 Z M -11 -17 L 11 -17 Q 8 -8 0 -3 Q -8 -8 -11 -17 Z")
	badgeSpark = path("M 0 -46 L 10 -12 L 44 0 L 10 12 L 0 46 L -10 12 L -44 0 L -10 -12 Z")
)

// badge makes the symbol of a state, or nil for a state without one. The phase cycles
// through 0, 1 and 2 with time.
func badge(state string, phase int) *symbol {
	b := &brush{line: ink}
	name := "badge-" + state
	switch state {
	case "thinking":
		name += fmt.Sprintf("-%d", phase)
		b.line = mix(neutral, ink, .3)
		b.edged(-50, -26, 100, 52, 26, paper)
		b.edgedOval(-34, 35, 8, 8, paper)
		b.edgedOval(-46, 47, 4.5, 4.5, paper)
		for i := range 3 {
			c := mix(neutral, white, .3)
			if i == phase {
				c = mix(ink, blue, .55)
			}
			b.oval(-27+float64(float64(i)*27), 0, 9.5, 9.5, c)
		}
	case "acting":
		b.oval(0, 0, 50, 50, mix(ink, white, .08))
		wheel := make([]segment, len(gearTeeth))
		for i, s := range gearTeeth {
			s.p[0].y += 50
			s.p[0] = point{s.p[0].x * .78, s.p[0].y * .78}
			wheel[i] = s
		}
		b.shape(wheel, gold)
		b.oval(0, 0, 12, 12, mix(ink, white, .08))
	case "waiting":
		b.oval(0, 0, 50, 50, mix(ink, white, .08))
		b.shape(badgeGlass, mix(paper, blue, .2))
		b.shape(badgeSand, amber)
		b.stroke(-23, -31, 23, -31, 7, paper)
		b.stroke(-23, 31, 23, 31, 7, paper)
	case "done":
		b.oval(0, 0, 50, 50, mix(ink, white, .08))
		b.oval(0, 0, 43, 43, green)
		b.pen(badgeCheck, 11, white)
	case "error":
		b.oval(0, 0, 50, 50, mix(ink, white, .08))
		b.oval(0, 0, 43, 43, red)
		b.stroke(-16, -16, 16, 16, 11, white)
		b.stroke(-16, 16, 16, -16, 11, white)
	case "spark": // beside the wheel of acting
		b.shape(badgeSpark, gold)
	default:
		return nil
	}
	return &symbol{name: name, x: -54, y: -54, w: 108, h: 110, shapes: b.shapes}
}

// shadow is drawn below every figure: ellipses that grow fainter outwards.
var shadow = &symbol{name: "shadow", x: -50, y: -16, w: 100, h: 32, shapes: []shape{
	{kind: ellipse, w: 50, h: 16, fill: fade(black, .12)},
	{kind: ellipse, w: 42, h: 13, fill: fade(black, .14)},
	{kind: ellipse, w: 33, h: 9.5, fill: fade(black, .18)},
}}

// sounding is the note that shows a sound.
var sounding = func() *symbol {
	b := &brush{}
	b.oval(-13, 30, 17, 13, gold)
	b.stroke(2, 30, 2, -36, 6, gold)
	b.pen(path("M 2 -36 Q 8 -18 26 -12"), 8, gold)
	return &symbol{name: "note", x: -50, y: -50, w: 100, h: 100, shapes: b.shapes}
}()
