package overview

import (
	"fmt"
	"image/color"
	"math"

	"github.com/sajou-dev/sajou-go/stage/picture"
	"github.com/sajou-dev/sajou-go/stage/toolplace"
)

// The colors of the lines of a chart.
var (
	tokenColor = color.NRGBA{56, 152, 255, 255}
	costColor  = color.NRGBA{226, 130, 60, 255}
)

// chart draws the sums of tokens and cost as lines, each from 0 to its last value.
func (t *timeline) chart() {
	c, o := t.c, t.o
	top := t.y + 8
	bottom := top + chartHigh
	last := o.usage[len(o.usage)-1]
	c.Write(picture.CanvasText{Text: number(last.tokens) + " tokens", X: margin, Y: top + 12, Size: small, Most: gutter - 14, Bold: true, Color: tokenColor})
	t.line(top, bottom, 2, tokenColor, func(p usagePoint) float64 { return float64(p.tokens) / math.Max(1, float64(last.tokens)) })
	if last.cost > 0 {
		c.Write(picture.CanvasText{Text: "cost " + money(last.cost), X: margin, Y: top + 28, Size: small, Most: gutter - 14, Bold: true, Color: costColor})
		t.line(top, bottom, 1.5, costColor, func(p usagePoint) float64 { return p.cost / last.cost })
	}
	t.y = bottom + 6
	c.Stroke(margin+gutter, bottom, c.Width()-margin, bottom, .7, picture.Fade(c.Colors.Dim, .35))
}

// line draws one sum. Of the points in one unit of the width, only the last is drawn.
func (t *timeline) line(top, bottom, pen float64, ink color.NRGBA, share func(usagePoint) float64) {
	high := bottom - top
	points := [][2]float64{{t.axis.at(t.o.first), bottom}}
	y := bottom
	for i, p := range t.o.usage {
		x := t.axis.at(p.at)
		if i+1 < len(t.o.usage) && math.Floor(t.axis.at(t.o.usage[i+1].at)) == math.Floor(x) {
			continue
		}
		points = append(points, [2]float64{x, y})
		y = bottom - float64(high*share(p))
		points = append(points, [2]float64{x, y})
	}
	points = append(points, [2]float64{t.axis.at(t.o.last), y})
	t.c.Path(points, false, pen, ink)
}

// ruler draws the time axis below everything, with lines up to the top and the lengths of the
// times that are cut out.
func (t *timeline) ruler(top float64) {
	c := t.c
	faint := picture.Fade(c.Colors.Dim, .22)
	end := math.Inf(-1)
	for _, tick := range t.axis.ticks(90) {
		c.Stroke(tick.x, top, tick.x, t.y, .7, faint)
		w := picture.TextWidth(tick.text, small, false)
		x := math.Min(math.Max(tick.x, margin+half(w)), c.Width()-margin-half(w))
		if x-half(w) < end+8 {
			continue
		}
		end = x + half(w)
		c.Write(picture.CanvasText{Text: tick.text, X: x, Y: t.y + 14, Size: small, Most: w + 1, Align: picture.AlignMiddle, Color: c.Colors.Dim})
	}
	t.y += 18
	end = math.Inf(-1)
	for i := 1; i < len(t.axis.pieces); i++ {
		before, after := t.axis.pieces[i-1], t.axis.pieces[i]
		x := before.x + before.w + half(cutWidth)
		c.Rect(x-half(cutWidth)+4, top, cutWidth-8, t.y-18-top, 0, picture.Fade(c.Colors.Dim, .12))
		text := span(after.from - before.to)
		w := picture.TextWidth(text, tiny, false)
		if x-half(w) < end+6 {
			continue
		}
		end = x + half(w)
		c.Write(picture.CanvasText{Text: text, X: x, Y: t.y + 10, Size: tiny, Most: w + 1, Align: picture.AlignMiddle, Color: c.Colors.Note})
	}
	if len(t.axis.pieces) > 1 {
		t.y += 14
	}
	t.y += 8
}

// legend explains the colors of the calls, with the numbers of calls and failures.
func (t *timeline) legend() {
	c := t.c
	calls, failed := map[toolplace.Workplace]int{}, map[toolplace.Workplace]int{}
	for _, call := range t.o.calls {
		p := toolplace.Of(call.tool)
		calls[p]++
		if call.failed {
			failed[p]++
		}
	}
	x := margin
	entry := func(text string, draw func(x, y float64)) {
		w := picture.TextWidth(text, small, false)
		if x > margin && x+18+w > c.Width()-margin {
			x, t.y = margin, t.y+18
		}
		draw(x, t.y)
		c.Write(picture.CanvasText{Text: text, X: x + 17, Y: t.y + 10, Size: small, Most: math.Min(w+1, c.Width()-2*margin-17), Color: c.Colors.Dim})
		x += w + 36
	}
	for _, p := range toolplace.Places() {
		if calls[p] == 0 {
			continue
		}
		text := fmt.Sprintf("%s %s", p, number(int64(calls[p])))
		if failed[p] > 0 {
			text += fmt.Sprintf(" (%s failed)", number(int64(failed[p])))
		}
		entry(text, func(x, y float64) { c.Rect(x, y+1, 12, 10, 2.5, placeColors[p]) })
	}
	if len(t.o.tasks) > 0 {
		entry("task", func(x, y float64) {
			c.Rect(x, y+3, 12, taskHigh-2, 2, picture.Mix(c.Colors.Ground, c.Colors.Note, .55))
		})
		entry("gave a task", func(x, y float64) {
			c.Path([][2]float64{{x + 2, y + 3}, {x + 9, y + 3}, {x + 5.5, y + 9}}, true, 0, c.Colors.Note)
		})
	}
	for _, a := range t.o.agents {
		if len(a.errors) > 0 {
			entry("error", func(x, y float64) { c.Dot(x+6, y+6, 3.5, c.Colors.Bad) })
			break
		}
	}
	t.y += 18
}

// notes tells what is merged, cut out or left out.
func (t *timeline) notes() {
	var notes []string
	if t.merged > 0 {
		notes = append(notes, fmt.Sprintf("%s have no room of their own: they are in %s (×n)", count(t.inside, "call", "calls"), count(t.merged, "bar", "bars")))
	}
	if t.marks > 0 {
		notes = append(notes, fmt.Sprintf("%s at the place of another", count(t.marks, "mark is", "marks are")))
	}
	if n := len(t.axis.pieces) - 1; n > 0 {
		notes = append(notes, fmt.Sprintf("%s without signals cut out of the axis", count(n, "time is", "times are")))
	}
	if t.o.left > 0 {
		notes = append(notes, fmt.Sprintf("%s left out beyond the limits", count(t.o.left, "element is", "elements are")))
	}
	for _, note := range notes {
		t.c.Write(picture.CanvasText{Text: note, X: margin, Y: t.y + 10, Size: small, Most: t.c.Width() - 2*margin, Color: t.c.Colors.Dim})
		t.y += 16
	}
}
