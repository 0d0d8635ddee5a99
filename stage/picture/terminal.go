package picture

import (
	"image/color"
	"math"
	"strconv"
	"strings"

	"github.com/clipperhouse/displaywidth"

	"github.com/sajou-dev/sajou-go/stage"
	"github.com/sajou-dev/sajou-go/stage/scene"
)

// glyphs are the figures in one cell of a terminal each.
var glyphs = map[string]string{
	"person": "◉", "robot": "▣", "bird": "➤", "building": "▥", "house": "⌂", "box": "■", "gear": "✱", "star": "★",
	"document": "▤", "screen": "▭", "database": "≡", "cloud": "≈", "tree": "▲", "flag": "⚑", "dot": "•", "lens": "◎", "pencil": "✎", "flask": "△",
}

// Terminal draws the frame as text of at most the given rows, none of them wider than
// cols cells: each figure as a sign with its label and state under it and its speech above
// it, beams as lines. Color, as 24-bit escape sequences, only repeats information of the
// text. Every row ends with a line feed. No control character of a name reaches the
// terminal.
func Terminal(f *stage.Frame, cols, rows int, color bool) string {
	cols, rows = min(cols, 1000), min(rows, 1000)
	if cols < 1 || rows < 1 {
		return ""
	}
	t := &terminal{cols: cols, rows: rows, cells: make([]cell, cols*rows)}
	t.frame(f)
	return t.text(color)
}

type terminal struct {
	cols, rows int
	cells      []cell
}

// cell is one place of the terminal. A wide character has its text in the first
// of two cells; the second is covered.
type cell struct {
	text    string // "" for an empty cell
	covered bool
	fg      color.NRGBA // the default color if it has no alpha
}

func (t *terminal) frame(f *stage.Frame) {
	sc := f.Scene
	if sc == nil {
		sc = scene.Default()
	}
	sw, sh := sc.Width, sc.Height
	if !finite(sw, sh) || sw <= 0 || sh <= 0 {
		sw, sh = 960, 540
	}
	// The top row is kept free for speech, the bottom row for labels.
	top, bottom := min(1, (t.rows-1)/2), max(t.rows-2, 0)
	place := func(x, y float64) (col, row int) {
		col = int(math.Round(clamp(x/sw, -2, 3) * float64(t.cols-1)))
		row = top + int(math.Round(clamp(y/sh, -2, 3)*float64(max(bottom-top, 0))))
		return col, row
	}
	for i := range f.Beams[:min(len(f.Beams), mostBeams)] {
		b := &f.Beams[i]
		if finite(b.FromX, b.FromY, b.ToX, b.ToY) && b.Opacity > 0 {
			x1, y1 := place(b.FromX, b.FromY)
			x2, y2 := place(b.ToX, b.ToY)
			t.beam(x1, y1, x2, y2, parseColor(b.Color, color.NRGBA{125, 211, 252, 255}))
		}
	}
	type actor struct {
		f        *stage.Figure
		col, row int
		fg       color.NRGBA
	}
	var cast []actor
	at := map[string]int{}
	for i := range f.Figures {
		g := &f.Figures[i]
		if !g.Visible || !(g.Opacity > 0) || !finite(g.X, g.Y) || len(cast) == mostFigures {
			continue
		}
		a := actor{f: g, fg: parseColor(g.Look.Color, neutral)}
		a.col, a.row = place(g.X, g.Y)
		if a.col < 0 || a.row < 0 || a.col >= t.cols || a.row >= t.rows {
			continue
		}
		if g.Strength > 0 {
			a.fg = mix(a.fg, parseColor(g.Tint, a.fg), g.Strength)
		}
		sign, ok := glyphs[artOf(g.Look.Figure).name]
		if !ok {
			sign = "(" + initial(clean(nameOf(g))) + ")"
		}
		if g.Opacity < .3 {
			sign = "◌"
		}
		a.col -= displaywidth.String(sign) / 2
		t.put(a.col, a.row, sign, a.fg)
		if _, taken := at[g.ID]; !taken {
			at[g.ID] = len(cast)
		}
		cast = append(cast, a)
	}
	for _, a := range cast {
		label := displaywidth.TruncateString(strings.TrimSpace(clean(a.f.Label)), 24, "…")
		if a.f.State != "" && a.f.State != "idle" {
			label += " [" + displaywidth.TruncateString(strings.TrimSpace(clean(a.f.State)), 12, "…") + "]"
		}
		t.label(a.col, a.row, strings.TrimSpace(label), stateColor(a.f.State))
	}
	for _, a := range cast {
		if speech := strings.Join(strings.Fields(clean(a.f.Text)), " "); speech != "" && a.f.TextOpacity > 0 {
			t.speech(a.col, a.row, speech)
		}
	}
	corner := t.rows - 1
	for s := range f.ShownSounds() {
		note := "♪ " + displaywidth.TruncateString(strings.TrimSpace(clean(s.Sound)), 20, "…")
		if i, ok := at[s.Entity]; ok && s.Entity != "" {
			t.put(cast[i].col+2, cast[i].row, note, gold)
			continue
		}
		for corner >= 0 && !t.free(0, corner, displaywidth.String(note)) {
			corner--
		}
		t.put(0, corner, note, gold)
	}
	if f.Mark != "" {
		t.put(0, 0, displaywidth.TruncateString(clean(f.Mark), t.cols, "…"), gold)
	}
}

// stateColor returns the color in which a state is written.
func stateColor(state string) color.NRGBA {
	switch state {
	case "done":
		return green
	case "error":
		return red
	case "acting":
		return gold
	}
	return color.NRGBA{}
}

// beam draws a line of signs with its slope and marks its tip.
func (t *terminal) beam(x1, y1, x2, y2 int, fg color.NRGBA) {
	n := max(x2-x1, x1-x2, y2-y1, y1-y2)
	// A row is about two columns high: a smaller rise is drawn flat.
	var sign string
	switch dx, dy := max(x2-x1, x1-x2), 2*max(y2-y1, y1-y2); {
	case dy*3 < dx:
		sign = "─"
	case dx*3 < dy:
		sign = "│"
	case (x2 > x1) == (y2 > y1):
		sign = "╲"
	default:
		sign = "╱"
	}
	along := func(a, b, i int) int { return a + int(math.Floor(float64((b-a)*i*2+n)/float64(2*n))) }
	for i := range n {
		t.put(along(x1, x2, i), along(y1, y2, i), sign, fg)
	}
	t.put(x2, y2, "◆", fg)
}

// label writes a label under a figure or near it. Without room it writes none, since
// overlapping labels would both be unreadable.
func (t *terminal) label(col, row int, label string, fg color.NRGBA) {
	w := displaywidth.String(label)
	under := min(max(col-w/2, 0), max(t.cols-w, 0))
	for _, at := range [...][2]int{{under, row + 1}, {col + 2, row}, {col - w - 1, row}, {under, row + 2}, {under, row - 1}} {
		if at[0] >= 0 && at[1] >= 0 && at[1] < t.rows && (at[0]+w <= t.cols || at[0] == 0) && t.free(at[0], at[1], w) {
			t.put(at[0], at[1], label, fg)
			return
		}
	}
}

// speech writes the speech of a figure in quotes above it, or the end of a long one.
func (t *terminal) speech(col, row int, text string) {
	most := max(min(48, t.cols-4), 1)
	if displaywidth.String(text) > most {
		words := strings.Split(text, " ")
		from, used := len(words), 1 // the ellipsis
		for from > 0 && used+1+displaywidth.String(words[from-1]) <= most {
			from--
			used += 1 + displaywidth.String(words[from])
		}
		if from < len(words) {
			text = "… " + strings.Join(words[from:], " ")
		} else {
			text = displaywidth.TruncateString(words[from-1], most, "…")
		}
	}
	text = "“" + text + "”"
	w := displaywidth.String(text)
	x := min(max(col-w/2, 0), max(t.cols-w, 0))
	// The nearest row with room is above it, or else below. In a full picture the speech
	// is left out: one that overwrites another makes both unreadable.
	for _, step := range [...]int{-1, 1} {
		for y := row + step; y >= 0 && y < t.rows; y += step {
			if t.free(x, y, w) {
				t.put(x, y, text, paper)
				return
			}
		}
	}
}

// free reports whether w cells and one on each side are empty or hold beams.
func (t *terminal) free(x, y, w int) bool {
	if y < 0 || y >= t.rows {
		return false
	}
	for i := max(x-1, 0); i < min(x+w+1, t.cols); i++ {
		switch t.cells[y*t.cols+i].text {
		case "", "─", "│", "╲", "╱":
		default:
			return false
		}
		if t.cells[y*t.cols+i].covered {
			return false
		}
	}
	return true
}

// put writes a clean text that begins at a cell, clipped to the screen.
func (t *terminal) put(x, y int, text string, fg color.NRGBA) {
	if y < 0 || y >= t.rows {
		return
	}
	row := t.cells[y*t.cols:][:t.cols]
	for g := displaywidth.StringGraphemes(text); g.Next(); {
		s, w := g.Value(), g.Width()
		if w == 0 {
			s, w = "\ufffd", 1 // a combining mark would join the character before it, perhaps of another text
		}
		if x >= 0 && x+w <= t.cols {
			for i := range w {
				t.clear(row, x+i)
				row[x+i].covered = i > 0
			}
			row[x].text, row[x].fg = s, fg
		}
		x += w
	}
}

// clear empties a cell, and the whole character if it is a part of a wide one.
func (t *terminal) clear(row []cell, x int) {
	for x > 0 && row[x].covered {
		x--
	}
	row[x] = cell{}
	for i := x + 1; i < len(row) && row[i].covered; i++ {
		row[i] = cell{}
	}
}

// text returns the rows without trailing blanks.
func (t *terminal) text(colored bool) string {
	var b strings.Builder
	for y := range t.rows {
		row := t.cells[y*t.cols:][:t.cols]
		last := len(row)
		for last > 0 && row[last-1].text == "" && !row[last-1].covered {
			last--
		}
		var fg color.NRGBA
		for _, c := range row[:last] {
			if c.covered {
				continue
			}
			if colored && c.fg != fg && c.text != "" {
				fg = c.fg
				b.WriteString(sgr(fg))
			}
			if c.text == "" {
				c.text = " "
			}
			b.WriteString(c.text)
		}
		if fg != (color.NRGBA{}) {
			b.WriteString("\x1b[0m")
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func sgr(c color.NRGBA) string {
	if c.A == 0 {
		return "\x1b[39m"
	}
	return "\x1b[38;2;" + strconv.Itoa(int(c.R)) + ";" + strconv.Itoa(int(c.G)) + ";" + strconv.Itoa(int(c.B)) + "m"
}
