package overview

import (
	"fmt"
	"image/color"
	"math"
	"slices"

	"github.com/sajou-dev/sajou-go/stage/picture"
)

// The measures of a sequence diagram.
const (
	clockWide  = 84.0 // the column of the times
	column     = 104.0
	headHigh   = 26.0
	rowHigh    = 34.0
	defaultPer = 40
	mostPer    = 400
	mostAcross = 16 // agents of a page
)

// page is a part of the messages with its agents, in the order of the overview.
type page struct {
	from, to int // messages
	agents   []int
}

// pages divides the messages into pages of at most per rows and mostAcross agents.
func (o *Overview) pages(per int) []page {
	if per <= 0 {
		per = defaultPer
	}
	per = min(per, mostPer)
	var all []page
	var now page
	seen := map[int]bool{}
	flush := func(i int) {
		slices.Sort(now.agents)
		all = append(all, now)
		now = page{from: i, to: i}
		clear(seen)
	}
	for i, m := range o.messages {
		fresh := 0
		for _, a := range [2]int{m.from, m.to} {
			if a >= 0 && !seen[a] {
				fresh++
			}
		}
		if m.from == m.to && fresh == 2 {
			fresh = 1
		}
		if now.to-now.from == per || len(now.agents)+fresh > mostAcross {
			flush(i)
		}
		for _, a := range [2]int{m.from, m.to} {
			if a >= 0 && !seen[a] {
				seen[a] = true
				now.agents = append(now.agents, a)
			}
		}
		now.to = i + 1
	}
	if now.to > now.from || len(all) == 0 {
		flush(len(o.messages))
	}
	return all
}

// Pages returns the number of pages of the sequence diagram, at least 1.
func (o *Overview) Pages(opt Options) int { return len(o.pages(opt.PerPage)) }

// Sequence draws a page of the sequence diagram, from 1 on: the agents as columns, and below
// them a row for each message, in order. A task is an arrow to the agent that is asked, its
// completion a dashed arrow back. Calls of tools between two messages of an agent are one row, and
// so is an error. A page has at most Options.PerPage rows and 16 agents. A number beyond the last page
// gives a page without rows.
func (o *Overview) Sequence(number int, opt Options) *picture.Drawing {
	pages := o.pages(opt.PerPage)
	var p page
	if number >= 1 && number <= len(pages) {
		p = pages[number-1]
	}
	wide := math.Max(opt.width(), 2*margin+clockWide+float64(column*float64(len(p.agents))))
	s := &sequence{o: o, c: picture.NewCanvas(wide, opt.Theme), page: p}
	c := s.c
	most := (c.Width() - 3*margin) / 2
	c.Write(picture.CanvasText{Text: opt.Title, X: margin, Y: margin + 14, Size: 15, Most: most, Bold: true, Color: c.Colors.Text})
	where := fmt.Sprintf("page %d of %d", number, len(pages))
	if len(o.messages) > 0 {
		where += fmt.Sprintf(" · messages %d to %d of %d", p.from+1, p.to, len(o.messages))
	}
	if o.left > 0 {
		where += fmt.Sprintf(" · %d left out", o.left)
	}
	c.Write(picture.CanvasText{Text: where, X: c.Width() - margin, Y: margin + 14, Size: small, Most: most, Align: picture.AlignEnd, Color: c.Colors.Dim})
	s.columns(margin + 32)
	y := margin + 32 + headHigh + 14
	bottom := y + float64(rowHigh*float64(p.to-p.from)) + 6
	for _, a := range p.agents {
		c.Stroke(s.x[a], y-14, s.x[a], bottom, 1, picture.Fade(c.Colors.Dim, .45))
	}
	for i := p.from; i < p.to; i++ {
		s.row(&o.messages[i], y)
		y += rowHigh
	}
	if p.from == p.to {
		c.Write(picture.CanvasText{Text: "no messages", X: margin, Y: y + small, Size: small, Most: 200, Color: c.Colors.Dim})
		bottom += 20
	}
	c.Omit(o.left)
	return c.Finish(bottom + margin)
}

// sequence draws one page.
type sequence struct {
	o *Overview
	c *picture.Canvas
	page
	x map[int]float64 // the columns of the agents
}

// columns writes the names of the agents over their columns.
func (s *sequence) columns(y float64) {
	c := s.c
	s.x = map[int]float64{}
	left := margin + clockWide
	step := math.Min(220, (c.Width()-margin-left)/math.Max(1, float64(len(s.agents))))
	for i, a := range s.agents {
		x := left + float64(step*(float64(i)+.5))
		s.x[a] = x
		w := math.Min(step-10, 170)
		c.Bar(x-half(w), y, w, headHigh, 5, picture.Mix(c.Colors.Ground, c.Colors.Dim, .3))
		c.Write(picture.CanvasText{Text: s.o.agents[a].name, X: x, Y: y + 17, Size: 12, Most: w - 10, Align: picture.AlignMiddle, Bold: true, Color: c.Colors.Text})
	}
}

// row draws a message with its time.
func (s *sequence) row(m *message, y float64) {
	c := s.c
	c.Write(picture.CanvasText{Text: clock(m.at - s.o.first), X: margin + clockWide - 26, Y: y + 17, Size: tiny, Most: clockWide - 26, Align: picture.AlignEnd, Color: c.Colors.Dim})
	from, ok := s.x[m.from]
	to, known := s.x[m.to]
	switch {
	case !ok && !known:
		return
	case !ok: // from outside
		from = margin + clockWide - 16
	case !known: // an answer to nobody of whom the recording knows
		to = from
	}
	switch {
	case m.kind == works:
		s.note(m, from, y, picture.Mix(c.Colors.Ground, c.Colors.Dim, .2))
	case m.kind == fails:
		if !ok {
			from = to
		}
		s.note(m, from, y, picture.Mix(c.Colors.Ground, c.Colors.Bad, .4))
	case from == to:
		s.note(m, from, y, picture.Mix(c.Colors.Ground, c.Colors.Good, .3))
	default:
		s.arrow(m, from, to, y)
	}
}

// note draws a row of one agent: a box on its line.
func (s *sequence) note(m *message, x, y float64, fill color.NRGBA) {
	c := s.c
	text := m.words()
	const pad = 8.0
	left, right := margin+clockWide-10, c.Width()-margin
	w := math.Min(picture.TextWidth(text, small, false)+2*pad, right-left)
	at := math.Min(math.Max(left, x-half(w)), right-w)
	c.Bar(at, y+3, w, rowHigh-10, 5, fill)
	if m.failures > 0 {
		c.Rect(at, y+rowHigh-10, w, 3, 0, c.Colors.Bad)
	}
	c.Write(picture.CanvasText{Text: text, X: at + pad, Y: y + 18, Size: small, Most: w - 2*pad + 1, Color: c.Colors.Text})
}

// arrow draws a row from one agent to another, with its text above the arrow. A text that is
// longer than the arrow reaches over further columns.
func (s *sequence) arrow(m *message, from, to, y float64) {
	c := s.c
	ink := c.Colors.Text
	switch {
	case m.failed:
		ink = c.Colors.Bad
	case m.kind == answers:
		ink = picture.Mix(c.Colors.Dim, c.Colors.Good, .6)
	}
	left, right := margin+clockWide-10, c.Width()-margin
	w := math.Min(picture.TextWidth(m.text, small, false), right-left)
	middle := half(from + to)
	x := math.Min(math.Max(left, middle-half(w)), right-w)
	c.Rect(x-3, y+1, w+6, 15, 3, c.Colors.Ground)
	c.Write(picture.CanvasText{Text: m.text, X: x, Y: y + 12, Size: small, Most: w + 1, Color: ink})
	y += rowHigh - 10
	ahead := 1.0
	if to < from {
		ahead = -1
	}
	tip := to - float64(ahead*2)
	if m.kind == answers {
		for at := from; float64((tip-at)*ahead) > 8; at += float64(ahead * 9) {
			c.Stroke(at, y, at+float64(ahead*4), y, 1.4, ink)
		}
	} else {
		c.Stroke(from, y, tip-float64(ahead*6), y, 1.4, ink)
	}
	c.Path([][2]float64{{tip, y}, {tip - float64(ahead*8), y - 4}, {tip - float64(ahead*8), y + 4}}, true, 0, ink)
}
