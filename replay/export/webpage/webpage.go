// Package webpage writes a recorded session as one HTML file: its pictures at every
// change, a scrubber, and the list of its moments. The file loads nothing, so it can be
// opened where this program is not installed. Without JavaScript it shows the first picture and
// the list. The page of a fork says that it does not show a recording.
//
// # Size
//
// The number of moments is bounded by [Options].Most. Figures and letters are defined
// once. A picture is kept as its difference from the one before, in lines of SVG, and
// equal lines are kept once.
//
// # Recorded text
//
// All text of the session is escaped, and the page's policy (CSP) forbids all scripts
// but its own, by hash, and all that would be loaded.
//
// docs/glossary.md has the nouns of all packages.
package webpage

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go/internal/termtext"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/bookmark"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/stage/film"
	"github.com/sajou-dev/sajou-go/stage/picture"
)

// DefaultMost is the number of moments of a page unless [Options] says another.
const DefaultMost = 1000

// Options of a page.
type Options struct {
	Most  int           // moments; 0 is DefaultMost. Of more, an even choice is shown
	Every time.Duration // also moments at the multiples of a span of session time; 0 for none
	Style film.Style    // of the pictures

	// Bookmarks are named on the page: each is a moment of its own, also beyond Most. They
	// are in the range and in the order of their moments.
	Bookmarks []bookmark.Bookmark
}

// Contents tells what a page holds.
type Contents struct {
	Moments  int // that are shown
	LeftOut  int // that are not, because of [Options].Most
	Pictures int // that differ from the one before
}

// Write writes the page of a range: its entries, and the moments between them at which
// something begins or ends. After the last entry it goes on for [replay.MaxRest] at most.
// Errors are those of the replay, of the reel and of w.
func Write(ctx context.Context, w io.Writer, reel *film.Reel, from, to replay.Moment, o Options) (Contents, error) {
	if o.Most <= 0 {
		o.Most = DefaultMost
	}
	over := replay.MomentRange{From: from, To: to, Rest: to.Offset == 0, Every: o.Every}
	total := 0
	for _, err := range reel.Travel().Moments(ctx, over, replay.NeedsEntry) {
		if err != nil {
			return Contents{}, err
		}
		total++
	}
	fork, err := session.ReadFork(ctx, reel.Travel())
	if err != nil {
		return Contents{}, err
	}
	p := page{reel: reel, fork: fork, style: o.Style, marks: o.Bookmarks, numbers: map[string]int{}}
	stride := max(1, (total+o.Most-1)/o.Most)
	n, shown := 0, 0
	for s, err := range reel.Travel().Moments(ctx, over, replay.NeedsState) {
		if err != nil {
			return Contents{}, err
		}
		if err := p.addMarked(ctx, s.Moment); err != nil {
			return Contents{}, err
		}
		marked := len(p.marks) > 0 && p.marks[0].Moment() == s.Moment
		if n++; (n-1)%stride != 0 && n != total && !marked {
			continue
		}
		shot, err := reel.ShotOf(ctx, s.Fold, s.Moment)
		if err == nil {
			err = p.add(ctx, s.Moment, shot, s.Kind == replay.EntryMoment)
		}
		if err != nil {
			return Contents{}, err
		}
		shown++
	}
	if err := p.addMarked(ctx, replay.Moment{Seq: math.MaxUint64}); err != nil {
		return Contents{}, err
	}
	sum := Contents{Moments: len(p.moments), LeftOut: total - shown, Pictures: len(p.pictures)}
	return sum, p.write(w, sum)
}

// addMarked adds the bookmarked moments before a moment.
func (p *page) addMarked(ctx context.Context, before replay.Moment) error {
	for len(p.marks) > 0 && p.marks[0].Moment().Compare(before) < 0 {
		m := p.marks[0].Moment()
		shot, err := p.reel.Shot(ctx, m)
		if err == nil {
			err = p.add(ctx, m, shot, m.Offset == 0)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// moment is one that the page lists.
type moment struct {
	address string
	caption string
	at      time.Duration
	picture int
	marks   []bookmark.Bookmark
}

// page collects what a page shows.
type page struct {
	reel  *film.Reel
	fork  *session.Fork // nil for a recording
	style film.Style
	marks []bookmark.Bookmark // that are not added yet
	strip picture.Strip

	moments  []moment
	defs     bytes.Buffer
	first    []byte         // shapes of the first picture
	lines    []string       // all that differ
	numbers  map[string]int // of lines
	before   []int          // the lines of the last picture
	size     [2]float64
	pictures [][]int // width, height, lines kept from the head and the tail, and those between
}

// keyframe is the distance of the pictures that are kept whole, so that a jump has few
// differences to apply.
const keyframe = 64

// add adds a moment with its bookmarks. That of an entry has a caption.
func (p *page) add(ctx context.Context, m replay.Moment, shot film.Shot, entry bool) error {
	caption := ""
	if entry {
		var err error
		if caption, err = p.reel.Caption(ctx, m); err != nil {
			return err
		}
		caption = strings.TrimPrefix(caption, m.String()+" ")
	}
	n := 0
	for n < len(p.marks) && p.marks[n].Moment() == m {
		n++
	}
	p.draw(p.reel.Draw(shot, p.style))
	p.moments = append(p.moments, moment{
		address: m.String(), caption: termtext.Clip(termtext.Printable(caption), 160), at: shot.At, picture: len(p.pictures) - 1,
		marks: p.marks[:n],
	})
	p.marks = p.marks[n:]
	return nil
}

// draw adds a picture, unless it is the last one again.
func (p *page) draw(d *picture.Drawing) {
	defs, shapes := p.strip.Append(d)
	p.defs.Write(defs)
	if p.first == nil {
		p.first = bytes.Clone(shapes)
	}
	var now []int
	for line := range strings.Lines(string(shapes)) {
		n, known := p.numbers[line]
		if !known {
			n = len(p.lines)
			p.numbers[line] = n
			p.lines = append(p.lines, line)
		}
		now = append(now, n)
	}
	width, height := d.Size()
	size := [2]float64{width, height}
	head := common(p.before, now)
	if len(p.pictures) > 0 && size == p.size && head == len(now) && head == len(p.before) {
		return
	}
	tail := 0
	for tail < min(len(now), len(p.before))-head && now[len(now)-1-tail] == p.before[len(p.before)-1-tail] {
		tail++
	}
	if len(p.pictures)%keyframe == 0 {
		head, tail = 0, 0
	}
	p.pictures = append(p.pictures, append([]int{int(width), int(height), head, tail}, now[head:len(now)-tail]...))
	p.before, p.size = now, size
}

// common returns how many numbers a and b begin with together.
func common(a, b []int) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

//go:embed page.css
var style string

//go:embed page.js
var script string

// data is what the script reads.
type data struct {
	Lines    []string `json:"lines"`
	Pictures [][]int  `json:"pictures"`
	Moments  [][2]any `json:"moments"` // its picture, and its time in milliseconds
}

func (p *page) write(out io.Writer, sum Contents) error {
	w := bufio.NewWriterSize(out, 64<<10)
	hash := sha256.Sum256([]byte(script))
	title, fork := p.reel.Name(), ""
	if p.fork != nil {
		title += ", " + p.fork.Title()
		fork = "<p>not a recording, but a " + html.EscapeString(termtext.Printable(p.fork.String())) + "</p>\n"
	}
	name := html.EscapeString(termtext.Printable(title))
	fmt.Fprintf(w, `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-%s'; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>%s</title>
<style>
%s</style>
</head>
<body>
<h1>%s</h1>
%s<p>head %s</p>
<p>%s</p>
%s`, base64.StdEncoding.EncodeToString(hash[:]), name, style, name, fork, p.reel.Travel().Head(), sum.text(), p.bookmarks())
	d := data{Lines: p.lines, Pictures: p.pictures}
	if len(p.pictures) > 0 {
		fmt.Fprintf(w, `<svg id="stage" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" aria-label="the stage" font-family="Go,Helvetica,Arial,sans-serif">
<defs>
%s</defs>
<g id="picture">
%s</g>
</svg>
`, p.pictures[0][0], p.pictures[0][1], p.defs.String(), p.first)
	}
	fmt.Fprintf(w, `<div id="controls" hidden>
<button id="play" type="button">play</button>
<input id="scrub" type="range" min="0" max="%d" value="0" aria-label="moment" list="ticks">
<output id="where"></output>
<p>keys: ← → a moment, Page Up and Page Down ten, Home, End, m and M the next and the last bookmark, space plays, + and − change the speed</p>
</div>
<ol id="moments">
`, max(len(p.moments)-1, 0))
	for i, m := range p.moments {
		marks, names := "", ""
		for j := range m.marks {
			names += " <mark>@" + html.EscapeString(m.marks[j].Name) + "</mark>"
			if note := noteOf(&m.marks[j]); note != "" {
				names += " " + note
			}
			marks = ` data-mark=""`
		}
		fmt.Fprintf(w, "<li id=\"m%d\"%s><a href=\"#m%d\"><time>%s</time> <b>%s</b> %s%s</a></li>\n", i, marks, i, clock(m.at), m.address, html.EscapeString(m.caption), names)
		d.Moments = append(d.Moments, [2]any{m.picture, float64(m.at) / float64(time.Millisecond)})
	}
	fmt.Fprint(w, "</ol>\n<script type=\"application/json\" id=\"data\">")
	text, err := json.Marshal(d) // escapes <, >, &, U+2028 and U+2029
	if err != nil {
		return err
	}
	if _, err := w.Write(text); err != nil {
		return err
	}
	fmt.Fprintf(w, "</script>\n<script>%s</script>\n</body>\n</html>\n", script)
	return w.Flush()
}

// bookmarks returns the list of the bookmarks, and the ticks of the scrubber at them, or
// nothing.
func (p *page) bookmarks() string {
	var list, ticks strings.Builder
	for i := range p.moments {
		for j := range p.moments[i].marks {
			b := &p.moments[i].marks[j]
			if list.Len() > 0 {
				list.WriteString(", ")
			}
			fmt.Fprintf(&list, `<a href="#m%d">@%s</a>`, i, html.EscapeString(b.Name))
			if note := noteOf(b); note != "" {
				list.WriteString(" " + note)
			}
			fmt.Fprintf(&ticks, `<option value="%d">`, i)
		}
	}
	if list.Len() == 0 {
		return ""
	}
	return "<p>bookmarks: " + list.String() + "</p>\n<datalist id=\"ticks\">" + ticks.String() + "</datalist>\n"
}

// noteOf returns the note of a bookmark as HTML in one line.
func noteOf(b *bookmark.Bookmark) string {
	return html.EscapeString(termtext.Clip(termtext.Printable(b.Note), 160))
}

// text tells people what the page holds.
func (s Contents) text() string {
	text := strconv.Itoa(s.Moments) + " moments, " + strconv.Itoa(s.Pictures) + " pictures"
	if s.LeftOut > 0 {
		text += "; " + strconv.Itoa(s.LeftOut) + " moments are left out"
	}
	return text
}

// clock writes session time as minutes, seconds and milliseconds.
func clock(at time.Duration) string {
	return fmt.Sprintf("%02d:%02d.%03d", int64(at/time.Minute), int64(at%time.Minute/time.Second), int64(at%time.Second/time.Millisecond))
}
