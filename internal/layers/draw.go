package layers

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// SVG draws the list as a picture in which every import points down: a package
// stands above all that it may import. An import that others imply is not drawn;
// packages without any import of this module either way stand below the line. The
// same list gives the same bytes.
func SVG() []byte {
	g := newGraph()
	g.order()
	g.place()
	return g.svg()
}

// vertex is a package in its row, or a point at which an edge passes a row.
type vertex struct {
	layer    *layer // nil of a passing edge
	row      int    // 0 is at the bottom
	up, down []*vertex
	x, w     int // middle and width
}

// graph is the drawing under way.
type graph struct {
	rows  [][]*vertex // from the bottom up, each from left to right
	apart []*vertex   // packages without edges
	width int
}

// Sizes of the drawing, in pixels.
const (
	boxHeight = 26
	rowHeight = 74
	charWidth = 7
	gap       = 14
	margin    = 16
)

func newGraph() *graph {
	edges := reduced()
	row := rowsOf(edges)
	g := &graph{rows: make([][]*vertex, slices.Max(row)+1)}
	vertices := make([]*vertex, len(layers))
	imported := make([]bool, len(layers))
	for _, below := range edges {
		for _, j := range below {
			imported[j] = true
		}
	}
	for i := range layers {
		v := &vertex{layer: &layers[i], row: row[i], w: charWidth*len(title(layers[i].dir)) + 18}
		vertices[i] = v
		if len(edges[i]) == 0 && !imported[i] {
			g.apart = append(g.apart, v)
			continue
		}
		g.rows[v.row] = append(g.rows[v.row], v)
	}
	for i, below := range edges {
		for _, j := range below {
			from := vertices[i]
			for r := row[i] - 1; r > row[j]; r-- {
				via := &vertex{row: r, w: 8}
				g.rows[r] = append(g.rows[r], via)
				join(from, via)
				from = via
			}
			join(from, vertices[j])
		}
	}
	return g
}

func join(upper, lower *vertex) {
	upper.down, lower.up = append(upper.down, lower), append(lower.up, upper)
}

// reduced returns for each package those that it may import, without those that
// one of the others reaches anyway.
func reduced() [][]int {
	index := map[string]int{}
	reach := make([][]bool, len(layers))
	edges := make([][]int, len(layers))
	for i, l := range layers { // which only names packages further up
		index[l.dir] = i
		reach[i] = make([]bool, len(layers))
		for _, dir := range l.may {
			j := index[dir]
			reach[i][j] = true
			for k, reached := range reach[j] {
				reach[i][k] = reach[i][k] || reached
			}
		}
		for _, dir := range l.may {
			j := index[dir]
			if !slices.ContainsFunc(l.may, func(other string) bool { return reach[index[other]][j] }) {
				edges[i] = append(edges[i], j)
			}
		}
	}
	return edges
}

// rowsOf puts each package above all that it imports, and one that imports nothing
// right below the lowest that imports it.
func rowsOf(edges [][]int) []int {
	row := make([]int, len(edges))
	for i, below := range edges {
		for _, j := range below {
			row[i] = max(row[i], row[j]+1)
		}
	}
	lowest := make([]int, len(edges))
	for i, below := range edges {
		for _, j := range below {
			if lowest[j] == 0 || row[i] < lowest[j] {
				lowest[j] = row[i]
			}
		}
	}
	for i, below := range edges {
		if len(below) == 0 && lowest[i] > 0 {
			row[i] = lowest[i] - 1
		}
	}
	return row
}

// order arranges the rows so that few edges cross: each vertex goes to the mean
// place of its neighbours, row after row, up and down, and then neighbours change
// places as long as that helps. The best arrangement met is kept.
func (g *graph) order() {
	best, fewest := g.copied(), g.crossings()
	for sweep := range 60 {
		for i := range g.rows {
			r, toward := i, func(v *vertex) []*vertex { return v.down }
			if sweep%2 == 1 {
				r, toward = len(g.rows)-1-i, func(v *vertex) []*vertex { return v.up }
			}
			g.arrange(r, toward)
		}
		g.swap()
		if n := g.crossings(); n < fewest {
			best, fewest = g.copied(), n
		}
	}
	g.rows = best
}

func (g *graph) copied() [][]*vertex {
	rows := make([][]*vertex, len(g.rows))
	for i, row := range g.rows {
		rows[i] = slices.Clone(row)
	}
	return rows
}

// arrange sorts a row by the mean places of neighbours; a vertex without any
// stays where it is.
func (g *graph) arrange(r int, toward func(*vertex) []*vertex) {
	places := g.places()
	type key struct{ sum, n int }
	keys := map[*vertex]key{}
	for i, v := range g.rows[r] {
		k := key{i, 1}
		if near := toward(v); len(near) > 0 {
			k = key{0, len(near)}
			for _, o := range near {
				k.sum += places[o]
			}
		}
		keys[v] = k
	}
	slices.SortStableFunc(g.rows[r], func(a, b *vertex) int { return cmp.Compare(keys[a].sum*keys[b].n, keys[b].sum*keys[a].n) })
}

func (g *graph) places() map[*vertex]int {
	places := map[*vertex]int{}
	for _, row := range g.rows {
		for i, v := range row {
			places[v] = 1000 * (2*i + 1) / (2 * len(row)) // rows of different lengths are compared
		}
	}
	return places
}

// swap exchanges neighbours in a row where fewer edges cross then.
func (g *graph) swap() {
	places := g.places()
	for range 8 {
		changed := false
		for _, row := range g.rows {
			for i := 1; i < len(row); i++ {
				a, b := row[i-1], row[i]
				if crossed(a, b, places) > crossed(b, a, places) {
					row[i-1], row[i] = b, a
					places[a], places[b] = places[b], places[a]
					changed = true
				}
			}
		}
		if !changed {
			return
		}
	}
}

// crossed counts the crossings between the edges of two vertices of one row of
// which a is to the left.
func crossed(a, b *vertex, places map[*vertex]int) int {
	n := 0
	for _, pair := range [...][2][]*vertex{{a.down, b.down}, {a.up, b.up}} {
		for _, p := range pair[0] {
			for _, q := range pair[1] {
				if places[p] > places[q] {
					n++
				}
			}
		}
	}
	return n
}

func (g *graph) crossings() int {
	places := g.places()
	n := 0
	for _, row := range g.rows {
		for i, a := range row {
			for _, b := range row[i+1:] {
				for _, p := range a.down {
					for _, q := range b.down {
						if places[p] > places[q] {
							n++
						}
					}
				}
			}
		}
	}
	return n
}

// place gives every vertex its x: as near to the middle of its neighbours as the
// order and the widths of its row allow.
func (g *graph) place() {
	for _, row := range g.rows {
		x := 0
		for _, v := range row {
			v.x = x + v.w/2
			x += v.w + gap
		}
		for _, v := range row {
			v.x -= x / 2
		}
	}
	for pass := range 4 {
		for i := range g.rows {
			r := i
			if pass%2 == 1 {
				r = len(g.rows) - 1 - i
			}
			g.shift(g.rows[r])
		}
	}
	byX := func(a, b *vertex) int { return cmp.Compare(a.x, b.x) }
	left, right := 0, 0
	for _, row := range g.rows {
		for _, v := range row {
			slices.SortStableFunc(v.up, byX)
			slices.SortStableFunc(v.down, byX)
			left, right = min(left, v.x-v.w/2), max(right, v.x+v.w/2)
		}
	}
	for _, row := range g.rows {
		for _, v := range row {
			v.x += margin - left
		}
	}
	g.width = right - left + 2*margin
	x := margin
	for _, v := range g.apart {
		v.x = x + v.w/2
		x += v.w + gap
	}
	g.width = max(g.width, x-gap+margin)
}

// shift moves a row's vertices to the middle of their neighbours. What they push
// together is set apart again, half to either side.
func (g *graph) shift(row []*vertex) {
	wish := make([]int, len(row))
	for i, v := range row {
		near := slices.Concat(v.up, v.down)
		wish[i] = v.x
		if len(near) > 0 {
			sum := 0
			for _, o := range near {
				sum += o.x
			}
			wish[i] = sum / len(near)
		}
	}
	least := func(a, b *vertex) int { return (a.w+b.w)/2 + gap }
	left, right := slices.Clone(wish), slices.Clone(wish)
	for i := 1; i < len(row); i++ {
		left[i] = max(left[i], left[i-1]+least(row[i-1], row[i]))
	}
	for i := len(row) - 2; i >= 0; i-- {
		right[i] = min(right[i], right[i+1]-least(row[i], row[i+1]))
	}
	for i, v := range row {
		v.x = (left[i] + right[i]) / 2
	}
}

func title(dir string) string {
	if dir == "." {
		return "sajou (the door)"
	}
	return dir
}

var fills = [...]string{pure: "#d9efe0", timeless: "#dbe7f8", effects: "#f7e3cc"}

func (g *graph) svg() []byte {
	height := 2*margin + len(g.rows)*rowHeight + 90
	y := func(v *vertex) int { return margin + (len(g.rows)-1-v.row)*rowHeight }
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="monospace" font-size="12">`+"\n", g.width, height, g.width, height)
	fmt.Fprintf(&b, "<title>The packages of %s and their imports</title>\n", module)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", g.width, height)
	b.WriteString(`<g fill="none" stroke="#7c8896" stroke-width="1.2">` + "\n")
	for _, row := range slices.Backward(g.rows) {
		for _, v := range row {
			if v.layer == nil {
				continue
			}
			for i, first := range v.down {
				from := port(v, i, len(v.down))
				fmt.Fprintf(&b, `<path d="M%d %d`, from, y(v)+boxHeight)
				at, lower := y(v)+boxHeight, first
				for x, above := from, v; ; above, lower = lower, lower.down[0] {
					to, bottom := lower.x, y(lower)
					if lower.layer != nil {
						to = port(lower, slices.Index(lower.up, above), len(lower.up))
					}
					middle := (at + bottom) / 2
					fmt.Fprintf(&b, " C%d %d %d %d %d %d", x, middle, to, middle, to, bottom)
					if lower.layer != nil {
						break
					}
					fmt.Fprintf(&b, " V%d", bottom+boxHeight)
					x, at = to, bottom+boxHeight
				}
				fmt.Fprintf(&b, `"><title>%s imports %s</title></path>`+"\n", title(v.layer.dir), title(lower.layer.dir))
			}
		}
	}
	b.WriteString("</g>\n")
	for _, row := range slices.Backward(g.rows) {
		for _, v := range row {
			if v.layer != nil {
				v.box(&b, y(v))
			}
		}
	}
	foot := margin + len(g.rows)*rowHeight
	fmt.Fprintf(&b, `<path d="M%d %dH%d" stroke="#c3cad2"/>`+"\n", margin, foot-14, g.width-margin)
	for _, v := range g.apart {
		v.box(&b, foot)
	}
	x := margin
	for grade, says := range [...]string{
		pure: "pure: no input, output, clock, chance or goroutine", timeless: "timeless: no clock and no chance", effects: "files, goroutines, waiting",
	} {
		fmt.Fprintf(&b, `<rect x="%d" y="%d" width="14" height="14" rx="3" fill="%s" stroke="#5b6673"/><text x="%d" y="%d">%s</text>`+"\n", x, foot+48, fills[grade], x+20, foot+60, says)
		x += 20 + 30 + charWidth*len(says)
	}
	b.WriteString("</svg>\n")
	return []byte(b.String())
}

// port returns where the i-th of n edges meets a box, ordered as they come.
func port(v *vertex, i, n int) int {
	room := max(0, v.w-20)
	return v.x - room/2 + room*(2*i+1)/(2*n)
}

func (v *vertex) box(b *strings.Builder, y int) {
	fmt.Fprintf(b, `<rect x="%d" y="%d" width="%d" height="%d" rx="5" fill="%s" stroke="#5b6673"/>`+"\n", v.x-v.w/2, y, v.w, boxHeight, fills[v.layer.grade])
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="middle">%s</text>`+"\n", v.x, y+17, title(v.layer.dir))
}
