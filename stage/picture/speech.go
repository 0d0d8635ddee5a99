package picture

import (
	"math"
	"strings"
)

// bubbleSizes are the sizes of bubbles in order of preference: the width of a line and the
// number of lines.
var bubbleSizes = [...]struct {
	wide  float64
	lines int
}{{220, 4}, {220, 2}, {150, 2}, {110, 1}}

// speeches returns the bubbles of the figures, and the threads to distant speakers. A
// crowd has small bubbles from the start, so that many find room.
func (s *stylist) speeches() (bubbles, threads []shape) {
	speakers := 0
	for i := range s.cast {
		if f := s.cast[i].figure; f.Text != "" && clamp(f.TextOpacity, 0, 1) > 0 {
			speakers++
		}
	}
	first := 0
	switch {
	case speakers > 12:
		first = 2
	case speakers > 6:
		first = 1
	}
	drawn := 0
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
		b, lines, ok := s.room(a, first)
		if !ok {
			continue
		}
		bubble, thread := s.speech(a, b, lines, opacity)
		bubbles = append(bubbles, bubble)
		threads = append(threads, thread...)
	}
	return bubbles, threads
}

// bubbleText is the size of the letters in bubbles, bubblePad the room around them.
const bubbleText, bubblePad = 13.5, 10

// bubble returns the lines of a text in a bubble of one of the sizes, and its area.
func (s *stylist) bubble(text string, size int) (lines []string, b area) {
	letters, pad := float64(bubbleText*s.u), float64(bubblePad*s.u)
	form := bubbleSizes[size]
	lines = wrap(text, letters, math.Min(float64(form.wide*s.u), s.width-float64(4*pad)), form.lines)
	w := float64(24 * s.u)
	for _, l := range lines {
		w = math.Max(w, width(l, letters, false))
	}
	return lines, area{w: w + float64(2*pad), h: float64(float64(letters*1.32)*float64(len(lines))) + float64(1.5*pad)}
}

// room finds the place of the speech of a figure: the nearest free area to the place above
// the head, of the first size that needs hardly a displacement, or else of the size with the
// least one. It takes the area, or counts the speech as hidden if no size has room.
func (s *stylist) room(a *actor, first int) (place area, lines []string, ok bool) {
	text := strings.TrimSpace(clean(a.figure.Text))
	if text == "" {
		return area{}, nil, false
	}
	head := a.y - float64(a.h*1.02)
	lift := float64(12 * s.u)
	if a.badge != nil {
		_, y, size := s.badgeAt(a)
		lift = math.Max(lift, head-(y-float64(size/2))+float64(4*s.u))
	}
	margin, reach := float64(5*s.u), float64(180*s.u)
	// A bubble still belongs to a head under its corner. Further away it is hard to tell.
	find := func(b area) (found area, moved float64, free bool) {
		away := func(dx, dy float64) float64 {
			return float64(dx*.25) + math.Max(0, dx-float64(b.w/2)) + dy
		}
		at := area{
			clamp(a.x-float64(b.w/2), margin, math.Max(margin, s.width-margin-b.w)),
			clamp(head-lift-b.h, margin, math.Max(margin, s.height-margin-b.h)), b.w, b.h,
		}
		left, top := math.Max(margin, a.x-reach-b.w), math.Max(margin, head-reach-b.h)
		within := area{left, top, math.Min(s.width-margin, a.x+reach+b.w) - left, math.Min(s.height-margin, a.y+reach+b.h) - top}
		found, free = s.written.find(at, within, away)
		return found, away(math.Abs(found.x-at.x), math.Abs(found.y-at.y)), free
	}
	least := math.Inf(1)
	// The smallest size is tried first: a crowd has no room for most speeches in any size.
	try := func(size int) (moved float64) {
		written, b := s.bubble(text, size)
		found, moved, free := find(b)
		if !free {
			return math.Inf(1)
		}
		// Each smaller size shows less, which is worth some distance.
		if cost := moved + float64(15*s.u*float64(size-first)); cost < least {
			least, place, lines, ok = cost, found, written, true
		}
		return moved
	}
	if try(len(bubbleSizes) - 1); ok {
		for size := first; size < len(bubbleSizes)-1; size++ {
			if try(size) <= float64(15*s.u) {
				break
			}
		}
	}
	if !ok {
		s.hidden++
		return place, nil, false
	}
	s.written.take(place)
	s.box(BoxBubble, a.figure.ID, place, strings.Join(lines, " "))
	return place, lines, true
}

// speech returns the bubble of a figure at b, with a tail to its head, or with a thread if
// the head is not near.
func (s *stylist) speech(a *actor, b area, lines []string, opacity float64) (bubble shape, thread []shape) {
	u := s.u
	size, pad := float64(bubbleText*u), float64(bubblePad*u)
	leading := float64(size * 1.32)

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
			far := distance(tipX, tipY, clamp(tipX, b.x, b.x+b.w), clamp(tipY, b.y, b.y+b.h)) > float64(40*u)
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
	return g, thread
}

// area is a rectangle in the picture.
type area struct{ x, y, w, h float64 }
