package debugger

import (
	"fmt"
	"slices"
	"strings"

	"github.com/clipperhouse/displaywidth"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/termtext"
	"github.com/sajou-dev/sajou-go/stage/picture"
)

// The widths and heights below which panes are left out. In a window that becomes
// narrower or lower the board goes first, then the performances, the state, the entries
// and the scrub bar. The stage and the status line stay.
const (
	sideCols  = 100 // the panes are beside the stage
	splitCols = 60  // two panes fit beside each other below the stage
	belowRows = 16  // panes fit below the stage
	barRows   = 5   // a scrub bar fits
)

// scrubCells is the number of parts into which the scrub bar divides the entries to note
// errors. A wider bar repeats them.
const scrubCells = 512

// View returns the text of the window: its rows, separated by line feeds.
func (d *Debugger) View() string {
	if d.cols < 1 || d.rows < 1 {
		return ""
	}
	status := d.status()
	if len(status) > d.rows {
		return strings.Join(status[:d.rows], "\n")
	}
	var bar []string
	if d.rows >= barRows {
		bar = []string{d.bar()}
	}
	lines := d.body(d.rows - len(status) - len(bar))
	return strings.Join(slices.Concat(lines, bar, status), "\n")
}

// body returns exactly so many rows of panes.
func (d *Debugger) body(rows int) []string {
	switch {
	case d.help:
		return d.helpPane(rows)
	case d.cols >= sideCols && rows >= belowRows:
		side := min(d.cols*2/5, 60)
		return beside(d.stage(d.cols-side-1, rows), "│", d.sidePanes(side, rows))
	case rows >= belowRows:
		top := rows / 2
		if d.cols < splitCols {
			return slices.Concat(d.stage(d.cols, top), d.entriesPane(d.cols, rows-top))
		}
		left := d.cols / 2
		return slices.Concat(d.stage(d.cols, top),
			beside(d.entriesPane(left, rows-top), "│", d.valuePane(d.cols-left-1, rows-top)))
	}
	return d.stage(d.cols, rows)
}

// sidePanes returns the panes beside the stage.
func (d *Debugger) sidePanes(cols, rows int) []string {
	var lines []string
	if d.seen.board != nil && rows >= 28 {
		lines = append(lines, pane("board", d.seen.board, cols, min(len(d.seen.board)+1, 6))...)
	}
	if rows >= 22 {
		lines = append(lines, pane("performances", d.seen.running, cols, min(max(len(d.seen.running), 1)+1, 6))...)
	}
	left := rows - len(lines)
	return slices.Concat(d.entriesPane(cols, left/2), d.valuePane(cols, left-left/2), lines)
}

// stage returns the picture, in rows of exactly the given width.
func (d *Debugger) stage(cols, rows int) []string {
	if rows < 1 {
		return nil
	}
	lines := strings.Split(strings.TrimSuffix(picture.Terminal(d.seen.frame, cols, rows, false), "\n"), "\n")
	colored := lines
	if d.cfg.Color {
		colored = strings.Split(strings.TrimSuffix(picture.Terminal(d.seen.frame, cols, rows, true), "\n"), "\n")
	}
	out := make([]string, rows)
	for i := range out {
		if i < len(lines) && i < len(colored) {
			out[i] = colored[i] + strings.Repeat(" ", max(cols-displaywidth.String(lines[i]), 0))
		} else {
			out[i] = strings.Repeat(" ", cols)
		}
	}
	return out
}

// beside joins rows of a width with others on their right.
func beside(left []string, between string, right []string) []string {
	out := make([]string, len(left))
	for i := range out {
		out[i] = left[i] + between
		if i < len(right) {
			out[i] += right[i]
		}
	}
	return out
}

// pane returns a title and lines in exactly the given rows and columns. Lines that are
// too long are wrapped, and those without room left out, which the title tells.
func pane(title string, lines []string, cols, rows int) []string {
	if rows < 1 {
		return nil
	}
	var wrapped []string
	for _, line := range lines {
		wrapped = append(wrapped, wrap(termtext.Printable(line), cols)...)
		if len(wrapped) >= rows {
			break
		}
	}
	if len(wrapped) > rows-1 {
		wrapped = wrapped[:rows-1]
		title += " …"
	}
	out := append([]string{rule(title, cols)}, wrapped...)
	for len(out) < rows {
		out = append(out, "")
	}
	for i := range out {
		out[i] = fit(out[i], cols)
	}
	return out
}

// rule is a line with a title.
func rule(title string, cols int) string {
	text := "─ " + termtext.Printable(title) + " "
	return fit(text+strings.Repeat("─", max(cols-displaywidth.String(text), 0)), cols)
}

// fit cuts or pads a text to a width.
func fit(text string, cols int) string {
	if displaywidth.String(text) > cols {
		text = displaywidth.TruncateString(text, cols, "…")
	}
	return text + strings.Repeat(" ", max(cols-displaywidth.String(text), 0))
}

// wrap divides a printable text into lines of a width; those that follow are indented.
func wrap(text string, cols int) []string {
	if displaywidth.String(text) <= cols || cols < 8 {
		return []string{text}
	}
	var lines []string
	var line strings.Builder
	width := 0
	for g := displaywidth.StringGraphemes(text); g.Next(); {
		if width+g.Width() > cols {
			lines = append(lines, line.String())
			line.Reset()
			line.WriteString("  ")
			width = 2
		}
		line.WriteString(g.Value())
		width += g.Width()
	}
	return append(lines, line.String())
}

// entriesPane shows the entries around the cursor, one a line.
func (d *Debugger) entriesPane(cols, rows int) []string {
	if rows < 1 {
		return nil
	}
	at := slices.IndexFunc(d.seen.entries, func(e entryLine) bool { return e.seq == d.seen.at.Seq })
	room := rows - 1
	first := min(max(at-room/2, 0), max(len(d.seen.entries)-room, 0))
	out := []string{rule("entries", cols)}
	for _, e := range d.seen.entries[first:min(first+room, len(d.seen.entries))] {
		sign := " "
		if e.seq == d.seen.at.Seq {
			sign = "▶"
		}
		if i := slices.IndexFunc(d.seen.marks, func(b NamedMoment) bool { return b.At.Seq == e.seq }); i >= 0 {
			e.text = "@" + d.seen.marks[i].Name + " " + e.text
		}
		out = append(out, fit(fmt.Sprintf("%s%5d %s", sign, e.seq, e.text), cols))
	}
	for len(out) < rows {
		out = append(out, strings.Repeat(" ", cols))
	}
	return out
}

// valuePane shows the inspected part of the state, or its difference to A.
func (d *Debugger) valuePane(cols, rows int) []string {
	title := d.path
	if d.differ && d.pinned != nil {
		title = fmt.Sprintf("A %s → %s: %s", clock(d.pinned.at), clock(d.seen.at), d.path)
	}
	return pane(title, d.seen.value, cols, rows)
}

// helpPane shows the part of the help from helpTop on. The title has its place if there is
// more.
func (d *Debugger) helpPane(rows int) []string {
	lines, room := d.helpText()
	title := "keys"
	top := min(d.helpTop, max(len(lines)-room, 0)) // the window may have grown
	end := min(top+room, len(lines))
	if room > 0 && room < len(lines) {
		title = fmt.Sprintf("keys  %d–%d of %d  ↑ ↓", top+1, end, len(lines))
	}
	return pane(title, lines[top:end], d.cols, rows)
}

// helpText returns the lines of the help, and how many of them fit below its title.
func (d *Debugger) helpText() (lines []string, room int) {
	for _, k := range keyHelp {
		lines = append(lines, wrap(fmt.Sprintf("%-9s %s", k[0], k[1]), max(d.cols, 1))...)
	}
	room = d.rows - len(d.status()) - 1
	if d.rows >= barRows {
		room--
	}
	return lines, max(room, 0)
}

// bar is the scrub bar: the entries from left to right, with errors, bookmarks, A and the
// position.
func (d *Debugger) bar() string {
	cells := slices.Repeat([]string{"─"}, d.cols)
	last := max(d.cfg.To.Seq, 1)
	put := func(seq eventlog.Seq, sign string) {
		cells[int(uint64(min(seq, last))*uint64(d.cols-1)/uint64(last))] = sign
	}
	total := d.travelled()
	for i, failed := range d.errors {
		if failed {
			put(eventlog.Seq(i)*total/eventlog.Seq(len(d.errors))+1, "!")
		}
	}
	for _, b := range d.seen.marks {
		put(b.At.Seq, "◆")
	}
	if d.pinned != nil {
		put(d.pinned.at.Seq, "A")
	}
	put(d.seen.at.Seq, "●")
	return strings.Join(cells, "")
}

// travelled is the number of entries that the index divides.
func (d *Debugger) travelled() eventlog.Seq { return max(d.indexed, 1) }

// status returns the lowest lines: the prompt, a note or the keys, and the position. In
// a narrow window they are wrapped onto two lines.
func (d *Debugger) status() []string {
	sign := "▶"
	switch {
	case d.state.Ended:
		sign = "■"
	case !d.state.Playing:
		sign = "‖"
	}
	where := termtext.Printable(fmt.Sprintf("%s %s  %s  %s  %s", sign, d.travel.Name(), clock(d.seen.at), timeText(d.seen.frame.At), d.rateText()))
	rest := "space play  ←/→ entry  g go to  r/R run  ? help  q quit"
	if displaywidth.String(where)+3+displaywidth.String(rest) > d.cols {
		rest = "? help"
	}
	switch {
	case d.prompt != nil:
		rest = d.prompt.label + ": " + termtext.Printable(d.prompt.text) + "▏"
		if over := displaywidth.String(rest) - d.cols; over > 0 {
			rest = "…" + tail(rest, d.cols-1)
		}
	case d.busy != nil && d.busy.Long:
		rest = termtext.Printable("⧗ " + strings.TrimSpace(d.busy.Label+" "+d.progress) + "  esc ends it")
	case d.note != "":
		rest = termtext.Printable(d.note)
	}
	if displaywidth.String(where)+3+displaywidth.String(rest) <= d.cols {
		return []string{where + "   " + rest}
	}
	if d.rows < 4 {
		if d.prompt != nil || d.note != "" {
			where = rest
		}
		return []string{strings.TrimRight(fit(where, d.cols), " ")}
	}
	return []string{strings.TrimRight(fit(where, d.cols), " "), strings.TrimRight(fit(rest, d.cols), " ")}
}

// tail returns the end of a text that fits a width.
func tail(text string, cols int) string {
	for text != "" && displaywidth.String(text) > cols {
		g := displaywidth.StringGraphemes(text)
		g.Next()
		text = text[len(g.Value()):]
	}
	return text
}
