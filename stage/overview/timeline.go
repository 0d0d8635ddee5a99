package overview

import (
	"fmt"
	"image/color"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go/stage/picture"
	"github.com/sajou-dev/sajou-go/stage/toolplace"
)

// Options are the options of a drawing. The zero value gives a good one.
type Options struct {
	Title string
	Width int // of the drawing, 320 to 8192; 0 means 1280
	Theme picture.Theme

	// PerPage is the greatest number of rows of a page of a sequence diagram; 0 means 40.
	PerPage int
}

func (opt Options) width() float64 {
	if opt.Width == 0 {
		return 1280
	}
	return float64(min(max(opt.Width, 320), 8192))
}

// The measures of a timeline.
const (
	margin    = 16.0
	gutter    = 150.0 // for the names of agents
	small     = 11.0  // the size of texts
	tiny      = 9.5
	taskHigh  = 7.0
	callHigh  = 14.0
	mostRows  = 3  // of calls that overlap in one lane
	mostLanes = 40 // the other agents share one lane
	narrow    = 5  // a call of less width is merged with its neighbours
	chartHigh = 84.0
)

// placeColors are the colors of the workplaces, in the order of [toolplace.Places].
var placeColors = map[toolplace.Workplace]color.NRGBA{
	toolplace.Files:    {120, 144, 176, 255},
	toolplace.Search:   {146, 128, 232, 255},
	toolplace.Edits:    {236, 122, 88, 255},
	toolplace.Terminal: {76, 175, 118, 255},
	toolplace.Tests:    {219, 110, 155, 255},
	toolplace.Web:      {66, 165, 214, 255},
	toolplace.Other:    {140, 150, 165, 255},
}

// ink is the color of texts on bars.
var ink = color.NRGBA{15, 23, 42, 255}

// timeline draws one timeline.
type timeline struct {
	o      *Overview
	c      *picture.Canvas
	axis   axis
	y      float64
	merged int // bars that stand for several calls
	inside int // the calls in these bars
	marks  int // marks that were merged with another
}

// Timeline draws the session along its time: a lane for each agent with a bar for each of its
// tasks and calls and a mark for each error, and below them the tokens and the cost so far, as
// lines. Times without signals and calls are cut out and marked. At most 40 agents have a
// lane of their own.
func (o *Overview) Timeline(opt Options) *picture.Drawing {
	t := &timeline{o: o, c: picture.NewCanvas(opt.width(), opt.Theme)}
	t.head(opt.Title)
	if o.signals == 0 {
		t.c.Write(picture.CanvasText{Text: "no signals", X: margin, Y: t.y + small, Size: small, Most: 200, Color: t.c.Colors.Dim})
		return t.c.Finish(t.y + 40)
	}
	left := margin + gutter
	t.axis = newAxis(o.instants, left, t.c.Width()-margin-left, o.busy)
	top := t.y
	lanes, others := o.lanes()
	for _, i := range lanes {
		t.lane(o.agents[i].name, func(a int) bool { return a == i })
	}
	if len(others) > 0 {
		t.lane(fmt.Sprintf("%d more agents", len(others)), func(a int) bool { return others[a] })
	}
	if len(o.usage) > 0 {
		t.chart()
	}
	t.ruler(top)
	t.legend()
	t.notes()
	t.c.Omit(o.left)
	return t.c.Finish(t.y + margin)
}

// busy reports whether a call that was answered is under way in the whole of a time.
func (o *Overview) busy(from, to time.Duration) bool {
	return slices.ContainsFunc(o.calls, func(c call) bool { return c.answered && c.from <= from && c.to >= to })
}

// head writes the title and the totals.
func (t *timeline) head(title string) {
	c := t.c
	most := (c.Width() - 3*margin) / 2
	c.Write(picture.CanvasText{Text: title, X: margin, Y: margin + 14, Size: 15, Most: most, Bold: true, Color: c.Colors.Text})
	c.Write(picture.CanvasText{Text: t.o.totals(), X: c.Width() - margin, Y: margin + 14, Size: small, Most: most, Align: picture.AlignEnd, Color: c.Colors.Dim})
	t.y = margin + 32
}

// totals counts what an overview has, in words.
func (o *Overview) totals() string {
	failed, errors := 0, 0
	for _, c := range o.calls {
		if c.failed {
			failed++
		}
	}
	for _, a := range o.agents {
		errors += len(a.errors)
	}
	parts := []string{count(len(o.agents), "agent", "agents"), count(len(o.calls), "call", "calls")}
	if failed > 0 {
		parts = append(parts, number(int64(failed))+" failed")
	}
	if errors > 0 {
		parts = append(parts, count(errors, "error", "errors"))
	}
	if n := len(o.usage); n > 0 {
		parts = append(parts, number(o.usage[n-1].tokens)+" tokens")
		if cost := o.usage[n-1].cost; cost > 0 {
			parts = append(parts, "cost "+money(cost))
		}
	}
	return strings.Join(append(parts, span(o.last-o.first)), " · ")
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return number(int64(n)) + " " + many
}

// number writes a number with its thousands apart.
func number(n int64) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// money writes a cost, small ones with more digits.
func money(cost float64) string {
	if cost < .1 {
		return fmt.Sprintf("%.4f", cost)
	}
	return fmt.Sprintf("%.2f", cost)
}

// lanes returns the agents that have a lane, in the order of their appearance, and the
// agents that share one. The agents with most calls and tasks have their own.
func (o *Overview) lanes() (own []int, others map[int]bool) {
	weight := make([]int, len(o.agents))
	for i, a := range o.agents {
		weight[i] = len(a.errors) + len(a.prompts)
	}
	for _, c := range o.calls {
		weight[c.agent]++
	}
	for _, t := range o.tasks {
		weight[t.to]++
	}
	for i := range o.agents {
		own = append(own, i)
	}
	if len(own) <= mostLanes {
		return own, nil
	}
	slices.SortStableFunc(own, func(a, b int) int { return weight[b] - weight[a] })
	others = map[int]bool{}
	for _, i := range own[mostLanes-1:] {
		others[i] = true
	}
	own = own[:mostLanes-1]
	slices.Sort(own)
	return own, others
}

// bar is one bar of a lane in a row.
type bar struct {
	x, w     float64
	calls    int
	failures int
	open     bool
	place    toolplace.Workplace // "" for calls in several
	tool     string
}

// lane draws the tasks and calls of the agents that it is for.
func (t *timeline) lane(name string, of func(agent int) bool) {
	c := t.c
	top := t.y
	t.y += 9
	t.tasks(of)
	rows := t.rows(of)
	for _, row := range rows {
		for _, b := range row {
			t.bar(b)
		}
		t.y += callHigh + 2
	}
	if len(rows) == 0 {
		t.y += 12
	}
	t.points(of, top)
	t.y += 5
	c.Write(picture.CanvasText{Text: name, X: margin, Y: half(top+t.y) + 4, Size: small, Most: gutter - 14, Color: c.Colors.Text})
	c.Stroke(margin, t.y, c.Width()-margin, t.y, .7, picture.Fade(c.Colors.Dim, .35))
}

// tasks draws the tasks of a lane as thin bars. Tasks that overlap are one bar.
func (t *timeline) tasks(of func(agent int) bool) {
	type stretch struct {
		x, end float64
		failed bool
	}
	var all []stretch
	for _, task := range t.o.tasks {
		if !of(task.to) {
			continue
		}
		end := task.end
		if !task.over {
			end = t.o.last
		}
		x := math.Min(t.axis.at(task.begin), t.c.Width()-margin-2)
		to := math.Max(x+2, t.axis.at(end))
		if n := len(all); n > 0 && x < all[n-1].end+1 {
			all[n-1].end = math.Max(all[n-1].end, to)
			all[n-1].failed = all[n-1].failed || task.failed
			continue
		}
		all = append(all, stretch{x, to, task.failed})
	}
	for _, s := range all {
		fill := picture.Mix(t.c.Colors.Ground, t.c.Colors.Note, .55)
		if s.failed {
			fill = picture.Mix(t.c.Colors.Ground, t.c.Colors.Bad, .75)
		}
		t.c.Bar(s.x, t.y, s.end-s.x, taskHigh-2, 2, fill)
	}
	if len(all) > 0 {
		t.y += taskHigh
	}
}

// rows lays the calls of a lane out in rows, so that none covers another. Narrow neighbours,
// and calls for which no row has room, are merged.
func (t *timeline) rows(of func(agent int) bool) [][]bar {
	var rows [][]bar
	for _, call := range t.o.calls {
		if !of(call.agent) {
			continue
		}
		end := call.to
		if !call.answered {
			end = t.o.last
		}
		b := bar{x: math.Min(t.axis.at(call.from), t.c.Width()-margin-2), calls: 1, open: !call.answered, place: toolplace.Of(call.tool), tool: call.tool}
		b.w = math.Max(2, t.axis.at(end)-b.x)
		if call.failed {
			b.failures = 1
		}
		rows = place(rows, b)
	}
	return rows
}

// place puts a bar into the first row with room for it, or merges it.
func place(rows [][]bar, b bar) [][]bar {
	for i, row := range rows {
		last := &row[len(row)-1]
		if b.x >= last.x+last.w+1 {
			rows[i] = append(row, b)
			return rows
		}
		if last.w < narrow*float64(min(last.calls, 8)) && b.w < narrow {
			last.merge(b)
			return rows
		}
	}
	if len(rows) < mostRows {
		return append(rows, []bar{b})
	}
	// The row whose last bar ends first has the least to cover.
	best := 0
	for i, row := range rows {
		if end := row[len(row)-1]; end.x+end.w < rows[best][len(rows[best])-1].x+rows[best][len(rows[best])-1].w {
			best = i
		}
	}
	row := rows[best]
	row[len(row)-1].merge(b)
	return rows
}

func (b *bar) merge(other bar) {
	b.w = math.Max(b.x+b.w, other.x+other.w) - b.x
	b.calls += other.calls
	b.failures += other.failures
	b.open = b.open || other.open
	if b.place != other.place {
		b.place = ""
	}
	if b.tool != other.tool {
		b.tool = ""
	}
}

// bar draws a bar with the name of its tool, or the number of its calls, if that has room.
func (t *timeline) bar(b bar) {
	c := t.c
	fill, ok := placeColors[b.place]
	if !ok {
		fill = placeColors[toolplace.Other]
	}
	letters := ink
	if b.open { // fainter, since its end is not known
		fill, letters = picture.Mix(fill, c.Colors.Ground, .55), c.Colors.Text
	}
	c.Bar(b.x, t.y, b.w, callHigh, 2.5, fill)
	if b.failures > 0 { // a red edge, of the share that failed
		share := float64(b.failures) / float64(b.calls)
		c.Rect(b.x, t.y+callHigh-3, math.Max(2, float64(b.w*share)), 3, 0, c.Colors.Bad)
	}
	text := b.tool
	if b.calls > 1 {
		t.merged++
		t.inside += b.calls
		text = fmt.Sprintf("×%d", b.calls)
		if b.tool != "" && picture.TextWidth(b.tool+" "+text, tiny, false)+6 <= b.w {
			text = b.tool + " " + text
		}
	}
	if picture.TextWidth(text, tiny, false)+6 <= b.w {
		c.Write(picture.CanvasText{Text: text, X: b.x + 3, Y: t.y + callHigh - 4, Size: tiny, Most: b.w - 5, Color: letters})
	}
}

// points draws the errors of a lane as red discs in its upper edge, and the tasks that its
// agents gave as small triangles in its lower one. Those that would overlap are one.
func (t *timeline) points(of func(agent int) bool, top float64) {
	const r = 3.5
	for i, a := range t.o.agents {
		if !of(i) {
			continue
		}
		t.each(a.errors, 2*r+1, func(x float64) { t.c.Dot(x, top+r, r, t.c.Colors.Bad) })
		y := t.y + 4
		t.each(a.prompts, 2*r+1, func(x float64) {
			t.c.Path([][2]float64{{x - r, y - 6}, {x + r, y - 6}, {x, y}}, true, 0, t.c.Colors.Note)
		})
	}
}

// each calls draw for the places of instants that are at least space apart.
func (t *timeline) each(instants []time.Duration, space float64, draw func(x float64)) {
	last := math.Inf(-1)
	for _, at := range instants {
		x := t.axis.at(at)
		if x < last+space {
			t.marks++
			continue
		}
		last = x
		draw(x)
	}
}
