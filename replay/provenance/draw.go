package provenance

import (
	"encoding/xml"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxIndent bounds the indentation of [Slice.Text], because a chain of decisions can be as
// long as the session.
const maxIndent = 30

// Text returns the graph as an indented tree, one dependency a line. A node with several
// dependants is continued at its first place only; the others end with "(above)". A "~"
// marks a dependency that is not exact.
func (s *Slice) Text() string {
	var b strings.Builder
	shown := make([]bool, len(s.Nodes))
	var below func(n, depth int)
	below = func(n, depth int) {
		shown[n] = true
		first, _ := slices.BinarySearchFunc(s.Edges, n, func(e Dependency, from int) int { return e.From - from })
		for _, e := range s.Edges[first:] {
			if e.From != n {
				break // the edges are ordered
			}
			mark := " "
			if !e.Exact {
				mark = "~"
			}
			again := ""
			if shown[e.To] {
				again = " (above)"
			}
			fmt.Fprintf(&b, "%s%s %s %s%s\n", strings.Repeat("  ", min(depth, maxIndent)), mark, e.Reason, s.nodeText(e.To), again)
			if again == "" {
				below(e.To, depth+1)
			}
		}
	}
	below(0, 0)
	return b.String()
}

// nodeText is the text of a node, with the moment of an act.
func (s *Slice) nodeText(i int) string {
	n := &s.Nodes[i]
	if n.Kind == "act" {
		return n.Text + " at " + n.Moment.String()
	}
	return n.Text
}

// DOT returns the graph in the language of Graphviz. Dependencies that are not exact are
// dashed.
func (s *Slice) DOT() string {
	var b strings.Builder
	b.WriteString("digraph why {\n  rankdir=LR;\n  node [shape=box];\n")
	for i := range s.Nodes {
		fmt.Fprintf(&b, "  n%d [label=%s];\n", i, dotText(s.nodeText(i)))
	}
	for _, e := range s.Edges {
		style := ""
		if !e.Exact {
			style = ", style=dashed"
		}
		fmt.Fprintf(&b, "  n%d -> n%d [label=%s%s];\n", e.From, e.To, dotText(e.Reason), style)
	}
	b.WriteString("}\n")
	return b.String()
}

func dotText(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", " ").Replace(s) + `"`
}

// The measures of the drawing, in pixels.
const (
	boxHeight  = 28
	rowHeight  = 44
	letter     = 7 // width of one
	gap        = 170
	margin     = 16
	maxLetters = 60
)

// SVG returns the graph as a drawing in columns, the value at the left. Each node stands
// to the right of all that depend on it.
func (s *Slice) SVG() string {
	column := s.columns()
	width := make([]int, slices.Max(column)+1)
	rows := make([]int, len(width))
	row := make([]int, len(s.Nodes))
	texts := make([]string, len(s.Nodes))
	for i := range s.Nodes {
		texts[i] = s.nodeText(i)
		if utf8.RuneCountInString(texts[i]) > maxLetters {
			texts[i] = string([]rune(texts[i])[:maxLetters-1]) + "…"
		}
		c := column[i]
		width[c] = max(width[c], utf8.RuneCountInString(texts[i])*letter+2*margin)
		row[i] = rows[c]
		rows[c]++
	}
	x := make([]int, len(width)+1)
	x[0] = margin
	for c, w := range width {
		x[c+1] = x[c] + w + gap
	}
	height := slices.Max(rows)*rowHeight + 2*margin
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="monospace" font-size="11">`+"\n", x[len(width)]-gap+margin, height)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" fill="#ffffff"/>`+"\n")
	for _, e := range s.Edges {
		x1, y1 := x[column[e.From]]+width[column[e.From]], margin+row[e.From]*rowHeight+boxHeight/2
		x2, y2 := x[column[e.To]], margin+row[e.To]*rowHeight+boxHeight/2
		dash := ""
		if !e.Exact {
			dash = ` stroke-dasharray="4 3"`
		}
		fmt.Fprintf(&b, `<path d="M%d %dC%d %d %d %d %d %d" fill="none" stroke="#64748b"%s><title>%s</title></path>`+"\n",
			x1, y1, x1+gap/2, y1, x2-gap/2, y2, x2, y2, dash, xmlText(e.Reason))
	}
	for i := range s.Nodes {
		left, top := x[column[i]], margin+row[i]*rowHeight
		fmt.Fprintf(&b, `<rect x="%d" y="%d" width="%d" height="%d" rx="4" fill="%s" stroke="#334155"/>`+"\n",
			left, top, width[column[i]], boxHeight, map[string]string{"value": "#fef3c7", "act": "#dbeafe", "performance": "#ede9fe", "entry": "#dcfce7", "intent": "#fce7f3", "view": "#e0f2fe"}[s.Nodes[i].Kind])
		fmt.Fprintf(&b, `<text x="%d" y="%d">%s</text>`+"\n", left+margin/2, top+boxHeight/2+4, xmlText(texts[i]))
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// columns returns for each node the length of the longest way from the value. Mutual
// dependencies end after as many steps as there are nodes.
func (s *Slice) columns() []int {
	column := make([]int, len(s.Nodes))
	for range s.Nodes {
		changed := false
		for _, e := range s.Edges {
			if to := column[e.From] + 1; column[e.To] < to && to < len(s.Nodes) {
				column[e.To], changed = to, true
			}
		}
		if !changed {
			break
		}
	}
	return column
}

func xmlText(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a strings.Builder does not fail
	return b.String()
}
