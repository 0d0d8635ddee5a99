package workspace

import (
	"slices"
	"strings"

	"github.com/sajou-dev/sajou-go/eventlog"
)

// Certainty says how well a part of a file is known.
type Certainty uint8

// The certainties.
const (
	Unknown Certainty = iota // the recording does not show it, or it was forgotten
	Guessed                  // it was known, and a later act may have changed it
	Known                    // a tool call wrote it, or a result showed it
)

// String returns the name of c: unknown, guessed or known.
func (c Certainty) String() string {
	if int(c) < len(certaintyNames) {
		return certaintyNames[c]
	}
	return "unknown"
}

var certaintyNames = [...]string{"unknown", "guessed", "known"}

// Gap stands in the text of a file for a part of it that is unknown.
const Gap = "\uFFFD"

// The ends of a line that are unknown.
const (
	openStart = 1 << iota // the line may have more text before
	openEnd               // the line may have more text after
)

// uncounted is the number of lines of a gap that may have any.
const uncounted = -1

// span is one line of a file, or a gap between lines.
type span struct {
	text string // the line with its line end; the empty text for a gap
	kind Certainty
	open uint8
	gap  int          // of a gap: its number of lines, or uncounted
	by   eventlog.Seq // the call that wrote the line; 0: none that is recorded
	seen eventlog.Seq // the newest entry that showed the line
}

func gapOf(lines int) span { return span{gap: lines} }

func (s *span) isGap() bool { return s.kind == Unknown }

// lines returns the number of lines that s stands for, or uncounted.
func (s *span) lines() int {
	if s.isGap() {
		return s.gap
	}
	return 1
}

// document is the text of one file, as far as it is known. A line without a line end
// is the last one, or stands before a gap.
type document struct {
	text  string // of all spans, with Gap for each gap
	spans []span // their texts are parts of text

	settled bool         // no span is known
	changed eventlog.Seq // the newest call that changed the file, while an act is applied
}

// unknownDocument returns a text of which nothing is known.
func unknownDocument() document {
	d := document{spans: []span{gapOf(uncounted)}}
	d.pack()
	return d
}

// pack merges neighbouring gaps and puts all texts into one string, so that the
// document holds no other text in memory.
func (d *document) pack() {
	d.spans = slices.DeleteFunc(d.spans, func(s span) bool { return s.isGap() && s.gap == 0 })
	for i := range d.spans {
		// A part of a line that no gap continues is a line that is not known.
		s := &d.spans[i]
		if s.open&openStart != 0 && (i == 0 || !d.spans[i-1].isGap()) || s.open&openEnd != 0 && (i+1 == len(d.spans) || !d.spans[i+1].isGap()) {
			*s = gapOf(1)
		}
	}
	kept := make([]span, 0, len(d.spans))
	size := 0
	for _, s := range d.spans {
		if s.isGap() {
			s.text = ""
			if n := len(kept); n > 0 && kept[n-1].isGap() {
				if s.gap == uncounted || kept[n-1].gap == uncounted {
					kept[n-1].gap = uncounted
				} else {
					kept[n-1].gap += s.gap
				}
				continue
			}
			size += len(Gap) + 1
		}
		size += len(s.text)
		kept = append(kept, s)
	}
	var b strings.Builder
	b.Grow(size)
	for i := range kept {
		if !kept[i].isGap() {
			b.WriteString(kept[i].text)
			continue
		}
		b.WriteString(Gap)
		if i+1 < len(kept) && kept[i+1].open&openStart == 0 {
			b.WriteByte('\n')
		}
	}
	d.text, d.spans, d.settled = b.String(), kept, false
	at := 0
	for i := range d.spans {
		s := &d.spans[i]
		if s.isGap() {
			at += len(Gap)
			if i+1 < len(kept) && kept[i+1].open&openStart == 0 {
				at++
			}
			continue
		}
		s.text = d.text[at : at+len(s.text)]
		at += len(s.text)
	}
}

// complete reports whether the document has no gap.
func (d *document) complete() bool {
	for i := range d.spans {
		if d.spans[i].isGap() || d.spans[i].open != 0 {
			return false
		}
	}
	return true
}

// guess turns what is known into a guess.
func (d *document) guess() {
	if d.settled {
		return
	}
	d.settled = true
	for i := range d.spans {
		if d.spans[i].kind == Known {
			d.spans[i].kind = Guessed
		}
	}
}

// splitLines splits a text after each line end. The empty text has no lines.
func splitLines(text string) []string {
	if text == "" {
		return nil
	}
	lines := strings.SplitAfter(text, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// newLine is a line that a change puts into a document.
type newLine struct {
	text  string
	shown bool // a result showed that it was there before: it has no new writer
	kind  Certainty
	open  uint8
}

// cause is the cause of new lines.
type cause struct {
	by   eventlog.Seq // the call
	seen eventlog.Seq // its result
}

// replace puts lines in the place of spans[from:to]. A line that continues one of
// those keeps the writer of that.
func (d *document) replace(from, to int, lines []newLine, c cause) {
	old := make([]string, to-from)
	for i := range old {
		s := &d.spans[from+i]
		old[i] = s.text
		if s.isGap() || s.open != 0 {
			old[i] = Gap + "\n" + Gap // equals no line
		}
	}
	now := make([]string, len(lines))
	for i, l := range lines {
		now[i] = l.text
		if l.open != 0 {
			now[i] = Gap
		}
	}
	continued := match(old, now)
	spans := make([]span, len(lines))
	for i, l := range lines {
		s := span{text: l.text, kind: l.kind, open: l.open, seen: c.seen}
		if j := continued[i]; j >= 0 {
			s.by = d.spans[from+j].by
			s.kind = max(s.kind, d.spans[from+j].kind)
		} else if !l.shown {
			s.by = c.by
		}
		spans[i] = s
	}
	tail := d.spans[to:]
	d.spans = append(append(append(make([]span, 0, from+len(spans)+len(tail)), d.spans[:from]...), spans...), tail...)
}

func countKnown(spans []span) (n int) {
	for i := range spans {
		if !spans[i].isGap() {
			n++
		}
	}
	return n
}

// cut makes the place before line n, counted from 1, a boundary of spans and returns
// its index. If the place is not known, because lines before it are uncounted or there
// are fewer, it is false; the spans from the uncounted gap on are then returned as
// rest and replaced by a gap up to the place.
func (d *document) cut(n int) (index int, rest []span, known bool) {
	line := 1
	for i := range d.spans {
		s := &d.spans[i]
		if line == n {
			return i, nil, true
		}
		count := s.lines()
		if count == uncounted {
			rest = append(rest, d.spans[i:]...)
			d.spans = append(d.spans[:i:i], gapOf(n-line))
			return i + 1, rest, false
		}
		if line+count > n {
			// Within a gap: a line has one line only.
			tail := append([]span{gapOf(line + count - n)}, d.spans[i+1:]...)
			d.spans = append(append(d.spans[:i:i], gapOf(n-line)), tail...)
			return i + 1, nil, true
		}
		line += count
	}
	if line == n {
		return len(d.spans), nil, true
	}
	d.spans = append(d.spans, gapOf(n-line))
	return len(d.spans), nil, false
}

// count returns the number of lines of spans, or uncounted.
func count(spans []span) int {
	n := 0
	for i := range spans {
		c := spans[i].lines()
		if c == uncounted {
			return uncounted
		}
		n += c
	}
	return n
}
