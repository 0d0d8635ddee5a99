package picture

import (
	"fmt"
	"image/color"
	"math"
	"slices"
	"strings"
)

// named is a text on the ground: the name of a place of the scene.
type named struct {
	x, y float64 // the middle of its baseline
	ink  color.NRGBA
	text string
}

// placedTexts are the shapes of the texts of a picture, from back to front.
type placedTexts struct{ threads, bubbles, labels []shape }

// texts gives each text its place, in the order of their importance: the labels of figures,
// the names of places, speeches, and the notes of sounds. A text without room is left out
// and counted. The count has its place before all others, so that it covers none of them; it
// is known after a first attempt only.
func (s *stylist) texts() placedTexts {
	before := s.d.omitted
	t := s.placeTexts(0)
	if s.hidden+s.d.omitted > 0 {
		s.d.omitted = before
		t = s.placeTexts(before + 2*len(s.cast) + len(s.names) + len(s.f.Sounds))
	}
	s.d.omitted += s.hidden
	return t
}

// placeTexts places all texts, with room for the count of omitted elements up to most.
func (s *stylist) placeTexts(most int) placedTexts {
	s.hidden, s.boxes = 0, nil
	s.written = newGrid(s.width, s.height)
	for i := range s.cast {
		a := &s.cast[i]
		s.written.take(a.area)
		if around, ok := s.badgeArea(a); ok {
			s.written.take(around)
		}
	}
	var t placedTexts
	var count, mark area
	if s.f.Mark != "" {
		mark = s.markArea()
	}
	if most > 0 {
		count = s.countArea(most)
	}
	t.labels = s.placeNames(s.labels())
	t.bubbles, t.threads = s.speeches()
	t.labels = append(t.labels, s.sounds()...)
	if most > 0 {
		t.labels = append(t.labels, s.count(count)...)
	}
	if s.f.Mark != "" {
		t.labels = append(t.labels, s.writeMark(mark)...)
	}
	return t
}

// markText returns the frame's mark as far as there is room for it.
func (s *stylist) markText() string {
	return shorten(clean(s.f.Mark), float64(countSize*s.u), true, s.width-float64(32*s.u))
}

// markArea returns the area of the frame's mark: the upper left corner, or the nearest
// area without a figure.
func (s *stylist) markArea() area {
	w := min(width(s.markText(), float64(countSize*s.u), true)+float64(16*s.u), s.width)
	corner := area{float64(8 * s.u), float64(8 * s.u), w, float64(20 * s.u)}
	at, _ := s.written.find(corner, area{w: s.width, h: s.height}, nearness)
	s.written.take(at)
	return at
}

// writeMark writes the frame's mark.
func (s *stylist) writeMark(at area) []shape {
	size, text := float64(countSize*s.u), s.markText()
	s.box(BoxMark, "", at, text)
	return []shape{
		{kind: rect, x: at.x, y: at.y, w: at.w, h: at.h, r: at.h / 2, fill: amber},
		textShape(at.x+float64(at.w/2), at.y+float64(at.h/2)+float64(size*.35), size, middle, true, ink, text),
	}
}

const countSize = 12.5

func countText(n int) string { return fmt.Sprintf("+%d not shown", n) }

// countArea returns the area of the count: the upper right corner, or the nearest area
// without a figure.
func (s *stylist) countArea(most int) area {
	w := width(countText(most), float64(countSize*s.u), true) + float64(16*s.u)
	corner := area{s.width - w - float64(8*s.u), float64(8 * s.u), w, float64(20 * s.u)}
	at, _ := s.written.find(corner, area{w: s.width, h: s.height}, nearness)
	s.written.take(at)
	return at
}

// count writes the number of omitted elements.
func (s *stylist) count(at area) []shape {
	n := s.hidden + s.d.omitted
	if n == 0 {
		return nil
	}
	size, text := float64(countSize*s.u), countText(n)
	s.box(BoxCount, "", at, text)
	return []shape{
		{kind: rect, x: at.x, y: at.y, w: at.w, h: at.h, r: at.h / 2, fill: amber},
		textShape(at.x+float64(at.w/2), at.y+float64(at.h/2)+float64(size*.35), size, middle, true, ink, text),
	}
}

// box notes the area of a text, with the id of the figure that it belongs to.
func (s *stylist) box(kind BoxKind, entity string, a area, text string) {
	s.boxes = append(s.boxes, Box{kind, entity, text, a.x, a.y, a.w, a.h})
}

// boxesOfFigures notes the areas of the figures and their badges, before those of the texts.
func (s *stylist) boxesOfFigures() {
	var figures, badges []Box
	for i := range s.cast {
		a := &s.cast[i]
		figures = append(figures, Box{Kind: BoxFigure, Entity: a.figure.ID, X: a.area.x, Y: a.area.y, W: a.area.w, H: a.area.h})
		if b, ok := s.badgeArea(a); ok {
			badges = append(badges, Box{Kind: BoxBadge, Entity: a.figure.ID, X: b.x, Y: b.y, W: b.w, H: b.h})
		}
	}
	s.d.boxes = slices.Concat(figures, badges, s.boxes)
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

// nearby returns the free area that is nearest to at, and not further from an owner than a
// few lines of text. It takes the area, or counts the text as hidden if there is none.
func (s *stylist) nearby(owner, at area) (area, bool) {
	reach := float64(40 * s.u)
	within := area{owner.x - reach - at.w, owner.y - reach - at.h, owner.w + float64(2*(reach+at.w)), owner.h + float64(2*(reach+at.h))}
	place, found := s.written.find(at, within, nearness)
	if !found {
		s.hidden++
		return at, false
	}
	s.written.take(place)
	return place, true
}

func nearness(dx, dy float64) float64 { return dx + dy }

// labels writes the labels under the figures, or beside them where something else is.
func (s *stylist) labels() []shape {
	size := float64(12.5 * s.u)
	high := float64(size * 1.45)
	back := fade(s.ground, .72)
	room := s.labelRoom()
	var shapes []shape
	for i := range s.cast {
		a := &s.cast[i]
		label := strings.TrimSpace(clean(a.figure.Label))
		if label == "" {
			continue
		}
		if state := a.figure.State; state != "" && state != "idle" && a.badge == nil {
			label += " · " + strings.TrimSpace(clean(state))
		}
		label = shorten(label, size, false, room[i])
		w := width(label, size, false) + float64(10*s.u)
		at := area{clamp(a.x-float64(w/2), 0, s.width-w), clamp(a.y+float64(a.h*.05)+float64(5*s.u), 0, s.height-high), w, high}
		at, ok := s.nearby(a.area, at)
		if !ok {
			continue
		}
		s.box(BoxLabel, a.figure.ID, at, label)
		opacity := clamp(a.figure.Opacity, 0, 1)
		shapes = append(shapes, shape{kind: rect, x: at.x, y: at.y, w: at.w, h: at.h, r: high / 2, fill: fade(back, opacity)})
		if c := fade(s.text, opacity); c.A > 0 {
			shapes = append(shapes, textShape(at.x+float64(w/2), at.y+float64(high*.5)+float64(size*.35), size, middle, false, c, label))
		}
	}
	return shapes
}

// labelRoom returns the greatest width of the label of each figure. Figures that stand in a
// row have labels that fit side by side.
func (s *stylist) labelRoom() []float64 {
	const most, least, many = 150, 64, 1000
	room := make([]float64, len(s.cast))
	for i := range s.cast {
		room[i] = float64(most * s.u)
		if len(s.cast) > many {
			room[i] = float64(least * s.u)
			continue
		}
		a := &s.cast[i]
		for j := range s.cast {
			b := &s.cast[j]
			if dx := math.Abs(a.x - b.x); dx > 0 && math.Abs(a.y-b.y) < float64(18*s.u) && b.figure.Label != "" {
				room[i] = math.Min(room[i], math.Max(float64(least*s.u), dx-float64(18*s.u)))
			}
		}
	}
	return room
}

// placeNames writes the names of places after the labels.
func (s *stylist) placeNames(shapes []shape) []shape {
	size := float64(10.5 * s.u)
	high := float64(size * 1.3)
	for _, n := range s.names {
		text := shorten(strings.TrimSpace(clean(n.text)), size, false, float64(110*s.u))
		if text == "" {
			continue
		}
		w := width(text, size, false)
		at := area{clamp(n.x-float64(w/2), 0, s.width-w), clamp(n.y-float64(size*.95), 0, s.height-high), w, high}
		if at, ok := s.nearby(at, at); ok {
			s.box(BoxPlace, "", at, text)
			shapes = append(shapes, textShape(at.x, at.y+float64(size*.95), size, start, false, n.ink, text))
		}
	}
	return shapes
}
