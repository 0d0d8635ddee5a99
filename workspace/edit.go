package workspace

import (
	"strings"

	"github.com/sajou-dev/sajou-go/eventlog"
)

// write replaces the whole text.
func (d *document) write(text string, kind Certainty, c cause) {
	d.whole(text, false, kind, c)
}

// show takes over the whole text as a result shows it.
func (d *document) show(text string, kind Certainty, c cause) {
	d.whole(text, true, kind, c)
}

func (d *document) whole(text string, shown bool, kind Certainty, c cause) {
	texts := splitLines(text)
	lines := make([]newLine, len(texts))
	for i, t := range texts {
		lines[i] = newLine{text: t, shown: shown, kind: kind}
	}
	old := d.spans
	d.replace(0, len(old), lines, c)
	if shown {
		carry(d.spans, old, true, d.changed, c)
	}
	d.pack()
}

// put replaces the old lines, from line start on, by others. If rest is not uncounted,
// it is the number of lines behind them. A line that contradicts what was known turns
// the other lines into guesses.
func (d *document) put(start int, old []string, lines []newLine, rest int, c cause) {
	from, dropped, known := d.cut(start)
	to := from
	if known {
		if to, dropped, known = d.cut(start + len(old)); !known {
			to = len(d.spans)
		}
	}
	short := !known && dropped == nil // the file was thought to have fewer lines
	agrees := !short && d.agrees(from, to, old)
	tail := append([]span(nil), d.spans[to:]...)
	d.spans = d.spans[:to:to]
	d.replace(from, to, lines, c)
	switch {
	case short && rest == uncounted:
		tail = []span{gapOf(uncounted)}
	case short:
		tail = nil
	case !known:
		carry(d.spans[from:], dropped, false, d.changed, c)
		tail = append(dropped, gapOf(uncounted))
		if countKnown(dropped) > 0 && (start > 1 || sharesLine(lines, dropped)) {
			// Whether those lines stand before or behind the new ones is not known.
			tail = []span{gapOf(uncounted)}
		}
	}
	if rest != uncounted {
		switch n := count(tail); {
		case n == uncounted && countKnown(tail) == 0:
			tail = []span{gapOf(rest)}
		case n != uncounted && n != rest:
			agrees = false
			tail = []span{gapOf(rest)}
		}
	}
	end := len(d.spans)
	d.spans = append(d.spans, tail...)
	if !agrees {
		for i := range d.spans {
			if (i < from || i >= end) && d.spans[i].kind == Known {
				d.spans[i].kind = Guessed
			}
		}
	}
	d.pack()
}

// agrees reports whether no known line of spans[from:to] differs from the line that
// stands in its place.
func (d *document) agrees(from, to int, lines []string) bool {
	at := 0
	for i := from; i < to; i++ {
		s := &d.spans[i]
		if !s.isGap() && at < len(lines) && s.open == 0 && lines[at] != Gap+"\n" && strings.TrimRight(s.text, "\r\n") != strings.TrimRight(lines[at], "\r\n") {
			return false
		}
		n := s.lines()
		if n == uncounted {
			return true
		}
		at += n
	}
	return true
}

// carry gives lines the writers of a run of lines among old, which were known without
// their place, if the run is at exactly one place among them. If the lines are not the
// whole file, the run must be of the call whose result they are, or be long enough not
// to stand elsewhere by chance. The newest call that changed the file is changed.
func carry(lines, old []span, whole bool, changed eventlog.Seq, c cause) {
	if countKnown(old) == len(old) && !openLine(old) {
		return // the places were known
	}
	for i := 0; i < len(old); {
		if old[i].isGap() {
			i++
			continue
		}
		begin := i
		for i < len(old) && !old[i].isGap() {
			i++
		}
		run := old[begin:i]
		if !whole && run[0].by != c.by && !telling(run) {
			continue
		}
		found, times := 0, 0
		for at := 0; at+len(run) <= len(lines) && times < 2; at++ {
			if isRun(lines[at:at+len(run)], run) {
				found = at
				times++
			}
		}
		for k := range run {
			// A later call may have changed the unknown part of a line.
			if times == 1 && (run[k].open == 0 || run[k].by == changed || run[k].by == c.by) {
				lines[found+k].by = run[k].by
			}
		}
	}
}

// telling reports whether a run of lines has enough text to be recognised by.
func telling(run []span) bool {
	const enough = 20
	n := 0
	for i := range run {
		n += len(strings.Join(strings.Fields(run[i].text), ""))
	}
	return n >= enough
}

func isRun(lines, run []span) bool {
	for i := range run {
		text, part := strings.TrimRight(lines[i].text, "\r\n"), strings.TrimRight(run[i].text, "\r\n")
		switch run[i].open {
		case openStart | openEnd:
			if !strings.Contains(text, part) {
				return false
			}
		case openStart:
			if !strings.HasSuffix(text, part) {
				return false
			}
		case openEnd:
			if !strings.HasPrefix(text, part) {
				return false
			}
		default:
			if text != part {
				return false
			}
		}
	}
	return true
}

// sharesLine reports whether a line of spans may be one of the lines.
func sharesLine(lines []newLine, spans []span) bool {
	texts := map[string]bool{}
	for _, l := range lines {
		texts[l.text] = true
	}
	for i := range spans {
		if !spans[i].isGap() && (spans[i].open != 0 || texts[spans[i].text]) {
			return true
		}
	}
	return false
}

// insert puts text after line n. Every line of it ends with a line end.
func (d *document) insert(n int, text string, c cause) {
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	texts := splitLines(text)
	lines := make([]newLine, len(texts))
	for i, t := range texts {
		lines[i] = newLine{text: t, kind: Known}
	}
	if n > 0 {
		if i, _, ok := d.clone().cut(n + 1); ok && i == len(d.spans) && i > 0 && !d.spans[i-1].isGap() && !strings.HasSuffix(d.spans[i-1].text, "\n") {
			d.spans[i-1].text += "\n" // the file had no line end there
		}
	}
	d.put(n+1, nil, lines, uncounted, c)
}

func (d *document) clone() *document {
	return &document{text: d.text, spans: append([]span(nil), d.spans...)}
}

// appendText adds text at the end.
func (d *document) appendText(text string, kind Certainty, c cause) {
	from := len(d.spans)
	first := 0
	texts := splitLines(text)
	if n := len(d.spans); n > 0 && len(texts) > 0 {
		switch last := &d.spans[n-1]; {
		case last.isGap():
			// Whether the file ended with a line end is not known.
			first, last.gap = openStart, uncounted
		case !strings.HasSuffix(last.text, "\n"):
			last.text += texts[0]
			last.by, last.seen = c.by, c.seen
			last.kind = min(last.kind, kind)
			texts = texts[1:]
		}
	}
	lines := make([]newLine, len(texts))
	for i, t := range texts {
		lines[i] = newLine{text: t, kind: kind}
	}
	if first != 0 && len(lines) > 0 {
		lines[0].open = openStart
	}
	d.replace(from, from, lines, c)
	d.pack()
}

// occurrences says which occurrences of a text an edit replaces.
type occurrences uint8

const (
	only  occurrences = iota // the only one; the tool refuses several
	first                    // the first one
	every
)

// edit replaces a text by another. An edit of which the place is not known leaves the
// new text between gaps.
func (d *document) edit(old, text string, which occurrences, c cause) {
	if old == "" {
		if d.complete() && len(d.spans) == 0 {
			d.write(text, Known, c)
			return
		}
		d.lose(text, c)
		return
	}
	places := d.find(old)
	if len(places) == 0 && strings.Contains(d.text, "\r\n") && !strings.Contains(old, "\r") {
		// Tools show the line ends of DOS as \n and restore them.
		old, text = strings.ReplaceAll(old, "\n", "\r\n"), strings.ReplaceAll(text, "\n", "\r\n")
		places = d.find(old)
	}
	switch {
	case len(places) == 0 && !d.complete():
		d.editGap(old, fragment(text), c)
		return
	case len(places) == 0, which == only && len(places) > 1:
		// The file is not what it was thought to be.
		d.lose(text, c)
		return
	}
	if which == only && d.reachesIntoGap(places[0], old) {
		d.editGap(old, fragment(text), c)
		return
	}
	kind := Known
	if which != every {
		places = places[:1]
		if which == first && strings.Contains(d.text[:places[0]], Gap) {
			kind = Guessed // the first one may be in a gap
		}
	}
	if len(places) > maxPlaces {
		d.editAll(old, text, len(places), c)
		return
	}
	for i := len(places) - 1; i >= 0; i-- {
		d.substitute(places[i], len(old), text, kind, c)
		d.pack()
	}
}

// reachesIntoGap reports whether the occurrence of a text may overlap another one that
// begins in the gap before it. Tools do not count such a one as a second occurrence,
// and replace the first.
func (d *document) reachesIntoGap(offset int, text string) bool {
	gap := strings.LastIndex(d.text[:offset], Gap)
	return gap >= 0 && offset-gap <= len(text)+len(Gap) && overlap(text[1:], text) > 0
}

// maxPlaces bounds the places of one edit that are replaced one by one, each in the
// time that the whole document takes.
const maxPlaces = 16

// editAll is edit for many places. A line beside a replaced text counts as known.
func (d *document) editAll(old, text string, places int, c cause) {
	if size := len(d.text) + places*(len(text)-len(old)); size > Limit {
		d.spans = []span{gapOf(uncounted)} // more than may be held
		d.pack()
		return
	}
	for from := 0; from < len(d.spans); from++ {
		if d.spans[from].isGap() {
			continue
		}
		to := from
		var run strings.Builder
		for ; to < len(d.spans) && !d.spans[to].isGap(); to++ {
			run.WriteString(d.spans[to].text)
		}
		texts := splitLines(strings.ReplaceAll(run.String(), old, text))
		lines := make([]newLine, len(texts))
		for i, t := range texts {
			lines[i] = newLine{text: t, kind: Known}
		}
		if n := len(lines); n > 0 {
			lines[0].open |= d.spans[from].open & openStart
			lines[n-1].open |= d.spans[to-1].open & openEnd
			if to < len(d.spans) && !strings.HasSuffix(texts[n-1], "\n") {
				lines[n-1].open |= openEnd
				d.spans[to].gap = uncounted
			}
		}
		d.replace(from, to, lines, c)
		from += len(lines)
	}
	d.pack()
}

// find returns the offsets of a text in the document, one after the other, none of
// them across a gap.
func (d *document) find(text string) (places []int) {
	at := 0
	for i := 0; i < len(d.spans); {
		if d.spans[i].isGap() {
			at += d.gapSize(i)
			i++
			continue
		}
		end := at
		for ; i < len(d.spans) && !d.spans[i].isGap(); i++ {
			end += len(d.spans[i].text)
		}
		for at < end {
			n := strings.Index(d.text[at:end], text)
			if n < 0 {
				break
			}
			places = append(places, at+n)
			at += n + len(text)
		}
		at = end
	}
	return places
}

func (d *document) gapSize(i int) int {
	if i+1 < len(d.spans) && d.spans[i+1].open&openStart == 0 {
		return len(Gap) + 1
	}
	return len(Gap)
}

// substitute replaces size bytes of the text at an offset.
func (d *document) substitute(offset, size int, text string, kind Certainty, c cause) {
	at, from := 0, 0
	for ; from < len(d.spans); from++ {
		n := len(d.spans[from].text)
		if d.spans[from].isGap() {
			n = d.gapSize(from)
		}
		if at+n > offset {
			break
		}
		at += n
	}
	to, end := from, at
	for ; to < len(d.spans) && end < offset+size; to++ {
		end += len(d.spans[to].text)
	}
	before, after := d.text[at:offset], d.text[offset+size:end]
	if after == "" && to < len(d.spans) && text+before != "" && !strings.HasSuffix(before+text, "\n") && !d.spans[to].isGap() {
		// The line end was replaced, so the next line is continued.
		after = d.spans[to].text
		to++
	}
	texts := splitLines(before + text + after)
	lines := make([]newLine, len(texts))
	for i, t := range texts {
		lines[i] = newLine{text: t, kind: kind}
	}
	if len(lines) > 0 {
		// What stands beside the replaced text is as certain as it was.
		if head := d.spans[from]; before != "" {
			lines[0].kind, lines[0].open = min(kind, head.kind), head.open&openStart
		} else {
			lines[0].open = head.open & openStart
		}
		last := &lines[len(lines)-1]
		tail := d.spans[to-1]
		if after != "" {
			last.kind = min(last.kind, tail.kind)
		}
		last.open |= tail.open & openEnd
		if to < len(d.spans) && d.spans[to].isGap() && !strings.HasSuffix(last.text, "\n") {
			last.open |= openEnd // it is continued within the gap
			d.spans[to].gap = uncounted
		}
	}
	d.replace(from, to, lines, c)
}

// fragment returns the lines of a text of which neither end is known to be that of a
// line.
func fragment(text string) []newLine {
	texts := splitLines(text)
	lines := make([]newLine, len(texts))
	for i, t := range texts {
		lines[i] = newLine{text: t, kind: Known}
	}
	if n := len(lines); n > 0 {
		lines[0].open = openStart
		if !strings.HasSuffix(texts[n-1], "\n") {
			lines[n-1].open |= openEnd
		}
	}
	return lines
}

// lose forgets the text, except for a text that is known to be in it.
func (d *document) lose(text string, c cause) {
	d.spans = []span{gapOf(uncounted), gapOf(uncounted)}
	d.replace(1, 1, fragment(text), c)
	d.pack()
}

// editGap puts lines into a gap, in the place of a text that is not in the known
// parts, or not completely. Of several gaps it is not known which one, so that
// everything from the first to the last of them is forgotten.
func (d *document) editGap(old string, lines []newLine, c cause) {
	d.absorb(old)
	first, last := -1, -1
	for i := range d.spans {
		if d.spans[i].isGap() {
			last = i
			if first < 0 {
				first = i
			}
		}
	}
	if first < 0 {
		d.spans = append(d.spans, gapOf(uncounted)) // after an open line
		first, last = len(d.spans)-1, len(d.spans)-1
	}
	tail := append([]span{gapOf(uncounted)}, d.spans[last+1:]...)
	d.spans = append(append(d.spans[:first:first], gapOf(uncounted)), tail...)
	d.replace(first+1, first+1, lines, c)
	d.pack()
}

// absorb turns the lines beside the gaps that may be a part of old into gaps: old
// reaches from them into a gap.
func (d *document) absorb(old string) {
	var spans []span
	for i := 0; i < len(d.spans); {
		if d.spans[i].isGap() {
			spans = append(spans, d.spans[i])
			i++
			continue
		}
		begin := i
		var run strings.Builder
		for ; i < len(d.spans) && !d.spans[i].isGap(); i++ {
			run.WriteString(d.spans[i].text)
		}
		part, text := d.spans[begin:i], run.String()
		from, to := 0, len(part)
		if begin > 0 || part[0].open&openStart != 0 {
			// The end of old may be the beginning of the run.
			for n := overlap(old, text); n > 0 && from < to; from++ {
				n -= len(part[from].text)
			}
		}
		if i < len(d.spans) || part[len(part)-1].open&openEnd != 0 {
			for n := overlap(text, old); n > 0 && to > from; {
				to--
				n -= len(part[to].text)
			}
		}
		if begin > 0 && i < len(d.spans) && strings.Contains(old, text) {
			from = to
		}
		if from > 0 {
			spans = append(spans, gapOf(uncounted))
		}
		spans = append(spans, part[from:to]...)
		if to < len(part) {
			spans = append(spans, gapOf(uncounted))
		}
	}
	d.spans = spans
	d.pack()
}

// overlap returns the length of the longest end of a that is a beginning of b.
func overlap(a, b string) int {
	if len(a) > len(b) {
		a = a[len(a)-len(b):]
	}
	// The prefix function of b, run over a.
	fail := make([]int, len(b)+1)
	for i, k := 1, 0; i < len(b); i++ {
		for k > 0 && b[i] != b[k] {
			k = fail[k]
		}
		if b[i] == b[k] {
			k++
		}
		fail[i+1] = k
	}
	k := 0
	for i := range len(a) {
		for k > 0 && (k == len(b) || a[i] != b[k]) {
			k = fail[k]
		}
		if k < len(b) && a[i] == b[k] {
			k++
		}
	}
	return k
}
