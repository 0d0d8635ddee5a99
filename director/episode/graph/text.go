package graph

import (
	"fmt"
	"strconv"
	"strings"
)

// The widths of text, in columns.
const (
	mostLabel = 32
	mostNote  = 76
	mostTurns = 60 // columns of turns; more of them share columns
)

// Text draws the graph in lines of text. A column is a turn, if there are no
// more than 60: "." is one before a target, "=" one in which a beat is wanted,
// "!" its deadline; "?" opens a choice, "+" wins an objective and "-" loses it.
func (g *Graph) Text() string {
	rows := g.rows()
	label := 0
	for _, r := range rows {
		label = max(label, 2*r.indent+width(fit(r.label, mostLabel-2*r.indent)))
	}
	columns := min(g.Turns, mostTurns)
	column := func(turn int) int { return (turn - 1) * columns / g.Turns }
	var b strings.Builder
	line := func(parts ...string) {
		b.WriteString(strings.TrimRight(strings.Join(parts, ""), " ") + "\n")
	}
	title := fit(g.Episode, mostNote)
	if g.Title != "" {
		title = strings.TrimPrefix(title+": "+fit(g.Title, mostNote), ": ")
	}
	if title == "" {
		title = "episode"
	}
	budget := "open"
	if g.Budget > 0 {
		budget = fmt.Sprintf("%d turns", g.Budget)
	}
	line(title, " (", budget, ")")
	axis := []rune(strings.Repeat(" ", columns+8))
	for _, turn := range ticks(g.Turns, columns, len(strconv.Itoa(g.Turns))+1) {
		copy(axis[column(turn):], []rune(strconv.Itoa(turn)))
	}
	line(strings.Repeat(" ", label+2), string(axis))
	for _, r := range rows {
		if r.head {
			line()
		}
		turns := []rune(strings.Repeat(" ", columns))
		if r.from > 0 || r.to > 0 {
			if r.from > 1 {
				turns[column(r.from-1)] = '.'
			}
			for i := column(max(r.from, 1)); i <= column(max(r.to, 1)); i++ {
				turns[i] = '='
			}
			turns[column(max(r.to, 1))] = '!'
		}
		for _, m := range r.marks {
			turns[column(m.turn)] = m.sign
		}
		name := strings.Repeat("  ", r.indent) + fit(r.label, mostLabel-2*r.indent)
		line(name, strings.Repeat(" ", label-width(name)+2), string(turns), "  ", fit(r.note, mostNote))
	}
	return b.String()
}

// ticks returns the turns that are named on an axis of some length, so that
// there is room for each.
func ticks(turns, length, room int) []int {
	step := 1
	for step*length/turns < room {
		step *= map[bool]int{true: 5, false: 2}[step == 1]
	}
	list := []int{1}
	if step == 1 {
		list = nil
	}
	for turn := step; turn <= turns; turn += step {
		if turn > 1 && (turn-1)*length/turns < room && len(list) > 0 {
			continue
		}
		list = append(list, turn)
	}
	return list
}
