package graph

import (
	"cmp"
	"slices"
	"strconv"
	"unicode/utf8"
)

// The measures of a drawing, in pixels. All are whole: nothing is rounded.
const (
	margin    = 16
	rowHeight = 22
	partGap   = 12 // above a part
	charWidth = 8  // of 13 px monospace text
	laneWidth = 9
	mostLanes = 80
	turnWidth = 26
	plotWidth = 1040 // at most, for the turns
	barHeight = 12
)

// box is the area of a text or a bar. Boxes never overlap.
type box struct{ x, y, w, h int }

// net is a line that joins a cause with its dependents: a beat with the beats
// that require it, a flag with the nodes that set and read it.
type net struct {
	from, to []int // rows
	dashed   bool
	lane     int
}

func (n *net) span() (top, bottom int) {
	all := slices.Concat(n.from, n.to)
	return slices.Min(all), slices.Max(all)
}

// layout holds the positions of all parts of a drawing.
type layout struct {
	rows          []row
	y             []int // the top of each row
	labels, bars  []box // of each row; an empty bar is not drawn
	notes         []box
	nets          []net
	omitted       int // nets for which there was no lane
	lanes         int
	gutter, plot  int // x of both
	plotW         int
	width, height int
	turns         int
}

// x returns where a turn begins.
func (l *layout) x(turn int) int { return l.plot + (turn-1)*l.plotW/l.turns }

func (g *Graph) layout() *layout {
	l := &layout{rows: g.rows(), turns: g.Turns}
	labelW, noteW := 0, 0
	for _, r := range l.rows {
		labelW = max(labelW, charWidth*(2*r.indent+width(fit(r.label, mostLabel-2*r.indent))))
		noteW = max(noteW, charWidth*width(fit(r.note, mostNote)))
	}
	l.nets = g.nets(l.rows)
	l.assign()
	l.gutter = margin + labelW + 8
	l.plot = l.gutter + l.lanes*laneWidth + 24
	l.plotW = min(g.Turns*turnWidth, plotWidth)
	notes := l.plot + l.plotW + 16
	y := margin + 2*rowHeight + 8
	for _, r := range l.rows {
		if r.head {
			y += partGap
		}
		text := fit(r.label, mostLabel-2*r.indent)
		l.y = append(l.y, y)
		l.labels = append(l.labels, box{margin + 2*charWidth*r.indent, y, charWidth * width(text), rowHeight})
		l.notes = append(l.notes, box{notes, y, charWidth * width(fit(r.note, mostNote)), rowHeight})
		var bar box
		if r.to > 0 || r.from > 0 {
			x := l.x(max(r.from, 1))
			bar = box{x, y + (rowHeight-barHeight)/2, max(l.x(max(r.to, 1)+1)-x, 3), barHeight}
		}
		l.bars = append(l.bars, bar)
		y += rowHeight
	}
	l.width, l.height = max(notes+noteW, 320)+margin, y+margin
	if l.omitted > 0 {
		l.height += rowHeight
	}
	return l
}

// nets returns one net for each beat that is required and for each flag.
func (g *Graph) nets(rows []row) []net {
	at := make(map[string]int, len(rows))
	for i, r := range rows {
		if _, ok := at[r.node]; !ok {
			at[r.node] = i
		}
	}
	required, order := map[string]*net{}, []string{}
	for _, b := range g.Beats {
		if b.RequiresBeat == "" {
			continue
		}
		n := required[b.RequiresBeat]
		if n == nil {
			n = &net{from: []int{at["beat:"+b.RequiresBeat]}}
			required[b.RequiresBeat] = n
			order = append(order, b.RequiresBeat)
		}
		n.to = append(n.to, at["beat:"+b.ID])
	}
	var nets []net
	for _, id := range order {
		nets = append(nets, *required[id])
	}
	for _, f := range g.Flags {
		n := net{dashed: true}
		for _, node := range f.Set {
			if i, ok := at[node]; ok {
				n.from = append(n.from, i)
			}
		}
		for _, node := range f.ReadBy {
			if i, ok := at[node]; ok {
				n.to = append(n.to, i)
			}
		}
		if len(n.from) > 0 && len(n.to) > 0 {
			nets = append(nets, n)
		}
	}
	return nets
}

// assign gives each net a lane that no other net uses in the same rows. Shorter
// nets get lanes nearer to the turns.
func (l *layout) assign() {
	slices.SortStableFunc(l.nets, func(a, b net) int {
		at, ab := a.span()
		bt, bb := b.span()
		return cmp.Or((ab-at)-(bb-bt), at-bt)
	})
	var taken [][][2]int
	kept := l.nets[:0]
	for _, n := range l.nets {
		top, bottom := n.span()
		n.lane = slices.IndexFunc(taken, func(spans [][2]int) bool {
			return !slices.ContainsFunc(spans, func(s [2]int) bool { return top <= s[1] && s[0] <= bottom })
		})
		if n.lane < 0 {
			if len(taken) == mostLanes {
				l.omitted++
				continue
			}
			n.lane = len(taken)
			taken = append(taken, nil)
		}
		taken[n.lane] = append(taken[n.lane], [2]int{top, bottom})
		kept = append(kept, n)
	}
	l.nets, l.lanes = kept, len(taken)
}

// AppendSVG appends the drawing of the graph, as SVG.
func (g *Graph) AppendSVG(dst []byte) []byte {
	l := g.layout()
	w := svg{dst}
	w.put(`<svg xmlns="http://www.w3.org/2000/svg" width="`).num(l.width).put(`" height="`).num(l.height).
		put(`" viewBox="0 0 `).num(l.width).put(" ").num(l.height).put(`" font-family="monospace" font-size="13">`, "\n")
	w.put(`<rect width="100%" height="100%" fill="#fff"/>`, "\n")
	title := fit(g.Episode, mostNote)
	if g.Title != "" {
		title = fit(g.Title, mostNote)
	}
	w.text(margin, margin, title, "#000", ` font-weight="bold"`)
	l.axis(&w, g.Budget)
	for i := range l.nets {
		l.net(&w, &l.nets[i])
	}
	for i, r := range l.rows {
		color := "#000"
		if r.indent > 0 {
			color = "#444"
		}
		w.text(l.labels[i].x, l.y[i], fit(r.label, mostLabel-2*r.indent), color, "")
		w.text(l.notes[i].x, l.y[i], fit(r.note, mostNote), "#666", "")
		l.bar(&w, i)
		for _, m := range r.marks {
			w.text(l.x(m.turn)+min(l.plotW/l.turns, turnWidth)/2-charWidth/2, l.y[i], string(m.sign), "#a33", ` font-weight="bold"`)
		}
	}
	if l.omitted > 0 {
		w.text(margin, l.height-rowHeight-margin/2, strconv.Itoa(l.omitted)+" connections are not drawn", "#a33", "")
	}
	w.put("</svg>\n")
	return w.b
}

// axis draws the turns and the end of the turn budget.
func (l *layout) axis(w *svg, budget int) {
	y := margin + rowHeight
	room := charWidth * (len(strconv.Itoa(l.turns)) + 1)
	for _, turn := range ticks(l.turns, l.plotW, room) {
		w.text(l.x(turn)+2, y, strconv.Itoa(turn), "#666", "")
		w.line(l.x(turn), y+rowHeight, l.x(turn), l.height-margin, "#eee", false)
	}
	if budget > 0 {
		w.line(l.x(budget+1), y, l.x(budget+1), l.height-margin, "#c99", true)
	}
}

// bar draws the turns of a beat: lightly from the turn before its target, and
// darkly in the turn of its deadline.
func (l *layout) bar(w *svg, i int) {
	b, r := l.bars[i], l.rows[i]
	if b.w == 0 {
		return
	}
	if r.from > 1 {
		x := l.x(r.from - 1)
		w.rect(box{x, b.y, b.x - x, b.h}, "#dfe7f5")
	}
	w.rect(b, "#7aa0d8")
	if deadline := l.x(max(r.to, 1)); deadline >= b.x {
		w.rect(box{deadline, b.y, b.x + b.w - deadline, b.h}, "#2f5597")
	}
}

// inks are the colors of nets. Neighboring nets have different ones.
var inks = []string{"#1b7a3d", "#a3541b", "#6a3d9a", "#0f7a86", "#b02a5b", "#6b6b00"}

func (l *layout) net(w *svg, n *net) {
	ink := inks[n.lane%len(inks)]
	end := l.gutter + l.lanes*laneWidth + 14
	x := end - 14 - n.lane*laneWidth
	top, bottom := n.span()
	// A net leaves its source row a little below the line by which nets enter it.
	y := func(row int, to bool) int {
		if to {
			return l.y[row] + rowHeight/2 - 3
		}
		return l.y[row] + rowHeight/2 + 3
	}
	w.line(x, l.y[top]+rowHeight/2-3, x, l.y[bottom]+rowHeight/2+3, ink, n.dashed)
	for _, row := range n.from {
		w.line(l.labels[row].x+l.labels[row].w+4, y(row, false), x, y(row, false), ink, n.dashed)
		w.put(`<circle cx="`).num(x).put(`" cy="`).num(y(row, false)).put(`" r="2.5" fill="`, ink, `"/>`, "\n")
	}
	for _, row := range n.to {
		w.line(x, y(row, true), end, y(row, true), ink, n.dashed)
		w.put(`<path d="M`).num(end).put(" ").num(y(row, true)-3).put("l6 3l-6 3z").put(`" fill="`, ink, `"/>`, "\n")
	}
}

// svg writes elements.
type svg struct{ b []byte }

func (w *svg) put(parts ...string) *svg {
	for _, s := range parts {
		w.b = append(w.b, s...)
	}
	return w
}

func (w *svg) num(n int) *svg {
	w.b = strconv.AppendInt(w.b, int64(n), 10)
	return w
}

// text writes one line of text into a row. A viewer's font may be wider than a column for each
// character, so the text is fitted to its columns, and clipped to them by viewers that do not
// know textLength.
func (w *svg) text(x, y int, s, color, more string) {
	if s == "" {
		return
	}
	wide := charWidth * width(s)
	w.put(`<svg x="`).num(x).put(`" y="`).num(y).put(`" width="`).num(wide).put(`" height="`).num(rowHeight).put(`"><text y="`).num(rowHeight/2 + 4)
	if wide > 0 {
		w.put(`" textLength="`).num(wide).put(`" lengthAdjust="spacingAndGlyphs`)
	}
	w.put(`" fill="`, color, `"`, more, ` xml:space="preserve">`)
	for _, r := range s {
		switch {
		case r == '&':
			w.put("&amp;")
		case r == '<':
			w.put("&lt;")
		case r == '>':
			w.put("&gt;")
		case r < ' ' || r == 0xfffe || r == 0xffff:
			w.put("\ufffd")
		default:
			w.b = utf8.AppendRune(w.b, r)
		}
	}
	w.put("</text></svg>\n")
}

func (w *svg) line(x1, y1, x2, y2 int, color string, dashed bool) {
	w.put(`<path d="M`).num(x1).put(" ").num(y1).put("L").num(x2).put(" ").num(y2).put(`" stroke="`, color, `"`)
	if dashed {
		w.put(` stroke-dasharray="4 3"`)
	}
	w.put(` fill="none"/>`, "\n")
}

func (w *svg) rect(b box, color string) {
	w.put(`<rect x="`).num(b.x).put(`" y="`).num(b.y).put(`" width="`).num(b.w).put(`" height="`).num(b.h).put(`" fill="`, color, `"/>`, "\n")
}
