package graph

import (
	"strconv"
	"strings"
	"unicode"

	"github.com/clipperhouse/displaywidth"
)

// row is one line of a drawing.
type row struct {
	node   string // as Edge has it; "" for none
	label  string
	indent int
	// from and to are the turns of a bar, that of a beat: its target and its
	// deadline. 0 is none.
	from, to int
	marks    []mark
	note     string
	head     bool // the heading of a part
}

// mark is a sign at one turn.
type mark struct {
	turn int
	sign rune // '?' a choice opens, '+' an objective is won, '-' it is lost
}

// rows returns the rows of a drawing: each beat with its choice point below it,
// then the flags, objectives and choice points that belong to no beat.
func (g *Graph) rows() []row {
	points := make(map[string]*ChoiceNode, len(g.Choices))
	for i := range g.Choices {
		points[g.Choices[i].ID] = &g.Choices[i]
	}
	var rows []row
	for i := range g.Beats {
		b := &g.Beats[i]
		note := []string{b.Detection}
		if b.RequiresBeat != "" {
			note = append(note, "after "+b.RequiresBeat)
		}
		if b.RequiresFlag != "" {
			note = append(note, "if "+b.RequiresFlag)
		}
		if b.OnMiss != "" {
			note = append(note, b.OnMiss+" when overdue for "+strconv.Itoa(b.MaxOverdue))
		}
		rows = append(rows, row{node: "beat:" + b.ID, label: b.ID, from: b.Target, to: b.Deadline, note: strings.Join(note, ", "), head: i == 0})
		if p := points[b.ChoicePoint]; p != nil && b.ChoicePoint != "" {
			rows = append(rows, p.rows(1)...)
		}
	}
	first := true
	for i := range g.Choices {
		p := &g.Choices[i]
		if p.Beat != "" {
			continue
		}
		list := p.rows(0)
		list[0].head = first
		if p.Turn > 0 {
			list[0].marks = []mark{{p.Turn, '?'}}
		}
		rows = append(rows, list...)
		first = false
	}
	for i := range g.Objectives {
		o := &g.Objectives[i]
		r := row{node: "objective:" + o.ID, label: "objective " + o.ID, head: i == 0}
		var note []string
		if o.Success != "" {
			note = append(note, "won by "+o.Success)
		}
		if o.Failure != "" {
			note = append(note, "lost by "+o.Failure)
		}
		r.note = strings.Join(note, ", ")
		if o.Won > 0 {
			r.marks = append(r.marks, mark{o.Won, '+'})
		}
		if o.Lost > 0 && o.Lost <= g.Turns && o.Lost != o.Won {
			r.marks = append(r.marks, mark{o.Lost, '-'})
		}
		rows = append(rows, r)
	}
	for i := range g.Flags {
		f := &g.Flags[i]
		var note []string
		if f.Given {
			note = append(note, "from before")
		}
		for _, part := range []struct {
			word  string
			nodes []string
		}{{"set by ", f.Set}, {"cleared by ", f.Clear}, {"read by ", f.ReadBy}} {
			if len(part.nodes) > 0 {
				note = append(note, part.word+named(part.nodes))
			}
		}
		rows = append(rows, row{node: "flag:" + f.Name, label: "flag " + f.Name, note: strings.Join(note, "; "), head: i == 0})
	}
	return rows
}

// named lists the names of nodes in one line, with a count of those left out.
func named(nodes []string) string {
	const most = 5
	var names []string
	for _, n := range nodes[:min(len(nodes), most)] {
		kind, name, _ := strings.Cut(n, ":")
		switch kind {
		case "context":
			name = "a rule"
		case "objective", "signal", "effect":
			name = kind + " " + name
		}
		names = append(names, name)
	}
	if len(nodes) > most {
		names = append(names, strconv.Itoa(len(nodes)-most)+" more")
	}
	return strings.Join(names, ", ")
}

func (p *ChoiceNode) rows(indent int) []row {
	note := p.Prompt
	if p.After != "" {
		note = strings.TrimSuffix("after objective "+p.After+": "+note, ": ")
	}
	rows := []row{{node: "point:" + p.ID, label: "? " + p.ID, indent: indent, note: note}}
	for _, o := range p.Options {
		note := strconv.Quote(o.Label)
		if o.SetsFlag != "" {
			note += ", sets " + o.SetsFlag
		}
		if o.ClearsFlag != "" {
			note += ", clears " + o.ClearsFlag
		}
		rows = append(rows, row{node: "choice:" + p.ID + "/" + o.ID, label: "> " + o.ID, indent: indent + 1, note: note})
	}
	return rows
}

// fit returns a text as one line of at most the given number of columns, without
// characters that are not graphic.
func fit(s string, columns int) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsGraphic(r) || unicode.Is(unicode.Bidi_Control, r):
			return '\uFFFD'
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
	return displaywidth.TruncateString(s, columns, "…")
}

func width(s string) int { return displaywidth.String(s) }
