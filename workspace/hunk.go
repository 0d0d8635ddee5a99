package workspace

import "strings"

// hunk is one place of a patch.
type hunk struct {
	after string // a line that stands before the place; "" for none
	start int    // the number of the first line before the patch, or 0
	lines []hunkLine
	atEnd bool // the last line is the last one of the file
}

// hunkLine is one line of a hunk, without its line end.
type hunkLine struct {
	op   byte // ' ' for a line that stays, '-' for one that goes, '+' for a new one
	text string
}

// sides returns the lines before and after the hunk.
func (h *hunk) sides() (old []string, lines []newLine) {
	for _, l := range h.lines {
		if l.op != '+' {
			old = append(old, l.text+"\n")
		}
		if l.op != '-' {
			lines = append(lines, newLine{text: l.text + "\n", shown: l.op == ' ', kind: Known})
		}
	}
	return old, lines
}

// patch applies hunks at the places where their lines stand, one after the other.
func (d *document) patch(hunks []hunk, c cause) {
	cursor := 0 // the index of a span
	budget := maxCompared
	for i := range hunks {
		h := &hunks[i]
		old, lines := h.sides()
		if h.after != "" {
			if at := d.seek([]string{h.after}, cursor, false, &budget); at >= 0 {
				cursor = at + 1
			}
		}
		if len(old) == 0 {
			var added strings.Builder
			for _, l := range lines {
				added.WriteString(l.text)
			}
			d.appendText(added.String(), Known, c)
			continue
		}
		at := d.seek(old, cursor, h.atEnd, &budget)
		if at < 0 {
			whole := strings.Join(old, "")
			if d.complete() {
				d.spans = []span{gapOf(uncounted)}
			}
			d.editGap(whole, lines, c)
			cursor = 0
			continue
		}
		// Lines that stay have the text of the file, which a tool that compares without
		// the space at the ends may have taken for those of the patch.
		k, inFile := 0, at
		gapBefore := count(d.spans[:at]) == uncounted
		for _, l := range h.lines {
			if l.op == ' ' {
				lines[k].text = d.spans[inFile].text
			}
			if l.op != '-' {
				if gapBefore {
					lines[k].kind = Guessed // the lines may stand in the gap too
				}
				k++
			}
			if l.op != '+' {
				inFile++
			}
		}
		d.replace(at, at+len(old), lines, c)
		cursor = at + len(lines)
	}
	d.pack()
}

// seek returns the index of the first span from which on lines stand one after the
// other, or -1: lines that are equal, else equal but for space at the end, else but for
// space at both ends.
func (d *document) seek(lines []string, from int, atEnd bool, budget *int) int {
	for _, same := range []func(a, b string) bool{
		func(a, b string) bool { return strings.TrimRight(a, "\r\n") == strings.TrimRight(b, "\r\n") },
		func(a, b string) bool { return strings.TrimRight(a, " \t\r\n") == strings.TrimRight(b, " \t\r\n") },
		func(a, b string) bool { return strings.TrimSpace(a) == strings.TrimSpace(b) },
	} {
		if atEnd && len(d.spans)-len(lines) >= from && d.stands(lines, len(d.spans)-len(lines), same, budget) {
			return len(d.spans) - len(lines)
		}
		for at := from; at+len(lines) <= len(d.spans) && *budget > 0; at++ {
			if d.stands(lines, at, same, budget) {
				return at
			}
		}
	}
	return -1
}

// maxCompared bounds the comparisons of lines for one patch. Beyond it the places of
// hunks are not found.
const maxCompared = 1 << 23

func (d *document) stands(lines []string, at int, same func(a, b string) bool, budget *int) bool {
	for i, l := range lines {
		if *budget--; *budget <= 0 {
			return false
		}
		if s := &d.spans[at+i]; s.isGap() || s.open != 0 || !same(s.text, l) {
			return false
		}
	}
	return true
}

// patchAt applies hunks at the lines that they name.
func (d *document) patchAt(hunks []hunk, c cause) {
	moved := 0
	for i := range hunks {
		old, lines := hunks[i].sides()
		d.put(max(1, hunks[i].start+moved), old, lines, uncounted, c)
		moved += len(lines) - len(old)
	}
}
