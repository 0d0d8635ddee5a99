package picture

import (
	"math"
	"strings"
)

// obstacles notes where the figures and their badges are, which texts must not cover.
func (s *stylist) obstacles() {
	s.texts, s.written = newGrid(s.width, s.height), newGrid(s.width, s.height)
	for i := range s.cast {
		a := &s.cast[i]
		s.written.take(a.area)
		if around, ok := s.badgeArea(a); ok {
			s.written.take(around)
		}
	}
}

// badgeArea returns the area of an actor's badge.
func (s *stylist) badgeArea(a *actor) (area, bool) {
	if a.badge == nil {
		return area{}, false
	}
	x, y, size := s.badgeAt(a)
	half := float64(size / 2)
	if a.figure.State == "acting" { // with its spark
		return area{x - half, y - float64(size*.75), float64(size * 1.25), float64(size * 1.25)}, true
	}
	return area{x - half, y - half, size, size}, true
}

// nearby returns the place of a text of a figure: at, or the nearest area beside the figure
// that is free of figures, badges and texts. If there is none, the text covers figures, but
// no text if possible.
func (s *stylist) nearby(a *actor, at area) area {
	// The text stays as near as a few lines of it.
	reach := float64(40 * s.u)
	within := area{a.area.x - reach - at.w, a.area.y - reach - at.h, a.area.w + float64(2*(reach+at.w)), a.area.h + float64(2*(reach+at.h))}
	place, found := s.written.find(at, within, nearness)
	if !found {
		place, _ = s.texts.find(at, within, nearness)
	}
	s.occupy(place)
	return place
}

func nearness(dx, dy float64) float64 { return dx + dy }

// occupy notes where a text is.
func (s *stylist) occupy(a area) {
	s.written.take(a)
	s.texts.take(a)
}

// captions writes the labels under the figures, or beside them where something else is.
func (s *stylist) captions() {
	size := float64(12.5 * s.u)
	high := float64(size * 1.45)
	most := float64(150 * s.u)
	back := fade(s.ground, .72)
	for i := range s.cast {
		a := &s.cast[i]
		label := strings.TrimSpace(clean(a.figure.Label))
		if label == "" {
			continue
		}
		if state := a.figure.State; state != "" && state != "idle" && a.badge == nil {
			label += " · " + strings.TrimSpace(clean(state))
		}
		label = shorten(label, size, false, most)
		w := width(label, size, false) + float64(10*s.u)
		at := area{clamp(a.x-float64(w/2), 0, s.width-w), clamp(a.y+float64(a.h*.05)+float64(5*s.u), 0, s.height-high), w, high}
		at = s.nearby(a, at)
		opacity := clamp(a.figure.Opacity, 0, 1)
		s.add(shape{kind: rect, x: at.x, y: at.y, w: at.w, h: at.h, r: high / 2, fill: fade(back, opacity)})
		s.write(at.x+float64(w/2), at.y+float64(high*.5)+float64(size*.35), size, middle, false, fade(s.text, opacity), label)
	}
}

// speeches draws the speech of the figures. The threads to distant speakers are below all
// bubbles.
func (s *stylist) speeches() {
	drawn := 0
	var threads, bubbles []shape
	for i := range s.cast {
		a := &s.cast[i]
		opacity := clamp(a.figure.TextOpacity, 0, 1)
		if a.figure.Text == "" || opacity == 0 {
			continue
		}
		if drawn == mostSpeeches {
			s.d.omitted++
			continue
		}
		drawn++
		bubble, thread := s.speech(a, opacity)
		bubbles = append(bubbles, bubble...)
		threads = append(threads, thread...)
	}
	s.d.shapes = append(append(s.d.shapes, threads...), bubbles...)
}

// speech returns the bubble of a figure, with a tail to its head, or with a thread if the
// head is not near.
func (s *stylist) speech(a *actor, opacity float64) (bubble, thread []shape) {
	u := s.u
	size, pad := float64(13.5*u), float64(10*u)
	lines := wrap(clean(a.figure.Text), size, math.Min(float64(220*u), s.width-float64(4*pad)), 4)
	if len(lines) == 0 {
		return nil, nil
	}
	w := float64(24 * u)
	for _, l := range lines {
		w = math.Max(w, width(l, size, false))
	}
	leading := float64(size * 1.32)
	b := area{w: w + float64(2*pad), h: float64(leading*float64(len(lines))) + float64(1.5*pad)}
	b = s.room(a, b)
	s.bubbles = append(s.bubbles, b)
	s.occupy(b)

	tipX, tipY := a.x, a.y-float64(a.h*1.02)
	if b.y > a.y {
		tipY = a.y
	}
	body := shape{kind: rect, x: b.x, y: b.y, w: b.w, h: b.h, r: float64(11 * u)}
	under := body
	under.y += float64(2.5 * u)
	under.fill = fade(black, .25)
	// All edges come before the planes, so that no edge shows between bubble and tail.
	edge := func(sh shape) shape {
		sh.stroke, sh.pen = mix(neutral, ink, .3), float64(2.4*u)
		return sh
	}
	plane := func(sh shape) shape {
		sh.fill = paper
		return sh
	}
	g := shape{kind: group, opacity: opacity, children: make([]shape, 0, 5+len(lines))}
	g.children = append(g.children, under)
	var tail shape
	left, top, right, bottom := b.x, b.y, b.x+b.w, b.y+b.h+float64(2.5*u)
	// The tail goes from the bubble's middle to the head; the bubble covers its root.
	if tipX < b.x || tipX > b.x+b.w || tipY < b.y || tipY > b.y+b.h {
		rx, ry := clamp(tipX, b.x+math.Min(b.w/2, 2*pad), b.x+b.w-math.Min(b.w/2, 2*pad)), b.y+float64(b.h/2)
		if length := distance(rx, ry, tipX, tipY); length > 0 {
			root := float64(10 * u)
			far := distance(tipX, tipY, clamp(tipX, b.x, b.x+b.w), clamp(tipY, b.y, b.y+b.h)) > float64(60*u)
			if far {
				root = float64(3 * u)
			}
			nx, ny := float64((tipY-ry)/length*root), float64((rx-tipX)/length*root)
			tail = shape{kind: outline, path: []segment{
				{verb: 'M', p: [3]point{{rx + nx, ry + ny}}},
				{verb: 'L', p: [3]point{{tipX, tipY}}},
				{verb: 'L', p: [3]point{{rx - nx, ry - ny}}},
				{verb: 'Z'},
			}}
			if far {
				e := float64(2 * u)
				t := area{math.Min(rx, tipX) - root - e, math.Min(ry, tipY) - root - e, math.Abs(rx-tipX) + float64(2*(root+e)), math.Abs(ry-tipY) + float64(2*(root+e))}
				thread = append(thread, shape{kind: group, opacity: opacity, x: t.x, y: t.y, w: t.w, h: t.h, children: []shape{edge(tail), plane(tail)}})
				tail = shape{}
			} else {
				left, right = math.Min(left, tipX), math.Max(right, tipX)
				top, bottom = math.Min(top, tipY), math.Max(bottom, tipY)
			}
		}
	}
	if tail.path != nil {
		g.children = append(g.children, edge(tail), edge(body), plane(tail), plane(body))
	} else {
		g.children = append(g.children, edge(body), plane(body))
	}
	for i, l := range lines {
		y := b.y + float64(.75*pad) + float64(leading*float64(i)) + float64(size*1.02)
		g.children = append(g.children, textShape(b.x+pad, y, size, start, false, ink, l))
	}
	e := float64(2 * u) // the edge
	g.x, g.y, g.w, g.h = left-e, top-e, right-left+float64(2*e), bottom-top+float64(2*e)
	return []shape{g}, thread
}

// room returns the area of the bubble b: the nearest free area to the place above the
// head. Without a free area in the picture, it is the place above or beside the head that
// covers least of the other bubbles and the figures.
func (s *stylist) room(a *actor, b area) area {
	gap := float64(12 * s.u)
	head := a.y - float64(a.h*1.02)
	lift := gap
	if a.badge != nil {
		_, y, size := s.badgeAt(a)
		lift = math.Max(gap, head-(y-float64(size/2))+float64(4*s.u))
	}
	margin := float64(5 * s.u)
	above := head - lift - b.h
	inside := func(at point) area {
		return area{clamp(at.x, margin, math.Max(margin, s.width-margin-b.w)), clamp(at.y, margin, math.Max(margin, s.height-margin-b.h)), b.w, b.h}
	}
	picture := area{margin, margin, s.width - float64(2*margin), s.height - float64(2*margin)}
	// A bubble still belongs to a head under its corner. Further away it is hard to tell.
	place, found := s.written.find(inside(point{a.x - float64(b.w/2), above}), picture, func(dx, dy float64) float64 {
		return float64(dx*.25) + math.Max(0, dx-float64(b.w/2)) + dy
	})
	if found {
		return place
	}
	side := float64(float64(a.h*a.art.broad)/200) + float64(34*s.u)
	best, least := area{}, math.Inf(1)
	for _, c := range [...]point{
		{a.x - float64(b.w/2), above},
		{a.x - float64(b.w*.15), above},
		{a.x - float64(b.w*.85), above},
		{a.x - float64(b.w/2), above - float64(b.h*.6)},
		{a.x - float64(b.w/2), above - float64(b.h*1.15)},
		{a.x + side, head - float64(b.h/4)},
		{a.x - side - b.w, head - float64(b.h/4)},
		{a.x - float64(b.w/2), above - float64(b.h*2.2)},
	} {
		b := inside(c)
		// A near bubble is better: a distant one covers less, but its speaker is hard to
		// find.
		off := distance(a.x, head, clamp(a.x, b.x, b.x+b.w), clamp(head, b.y, b.y+b.h))
		covered := float64(math.Max(0, off-lift) * 15 * s.u)
		for _, other := range s.bubbles {
			covered += float64(8 * b.shared(other))
		}
		for i := range s.cast {
			covered += b.shared(s.cast[i].area)
		}
		if covered < least {
			best, least = b, covered
		}
		if covered == 0 {
			break
		}
	}
	return best
}

// area is a rectangle in the picture.
type area struct{ x, y, w, h float64 }

// shared returns the area of the intersection of two areas.
func (a area) shared(b area) float64 {
	w := math.Min(a.x+a.w, b.x+b.w) - math.Max(a.x, b.x)
	h := math.Min(a.y+a.h, b.y+b.h) - math.Max(a.y, b.y)
	if w <= 0 || h <= 0 {
		return 0
	}
	return float64(w * h)
}
