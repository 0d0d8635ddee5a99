package picture

import (
	"image/color"
	"math"
	"strings"

	"github.com/sajou-dev/sajou-go/stage"
)

// beams draws the beams. Their ends are at the middles of their figures, not at the feet.
func (s *stylist) beams() {
	for i := range s.f.Beams {
		b := &s.f.Beams[i]
		if i >= mostBeams {
			s.d.omitted++
			continue
		}
		opacity := clamp(b.Opacity, 0, 1)
		if !finite(b.FromX, b.FromY, b.ToX, b.ToY) || opacity == 0 {
			continue
		}
		x1, y1 := s.at(b.FromX, b.FromY)
		x2, y2 := s.at(b.ToX, b.ToY)
		lift := 0.0
		if j, ok := s.byID[b.From]; ok {
			lift = float64(s.cast[j].h / 2)
			y1 -= lift
		}
		// The tip rises to the height of its target as it grows.
		target := lift
		grown := 1.0
		if j, ok := s.byID[b.To]; ok {
			to := &s.cast[j]
			target = to.h / 2
			if whole := distance(b.FromX, b.FromY, to.figure.X, to.figure.Y); whole > 0 {
				grown = clamp(distance(b.FromX, b.FromY, b.ToX, b.ToY)/whole, 0, 1)
			}
		} else if b.To != "" {
			target = 0 // a place is on the ground
		}
		y2 -= lift + float64((target-lift)*grown)
		s.beam(x1, y1, x2, y2, parseColor(b.Color, color.NRGBA{125, 211, 252, 255}), b.Width, opacity)
	}
}

func distance(x1, y1, x2, y2 float64) float64 {
	return math.Sqrt(float64((x2-x1)*(x2-x1)) + float64((y2-y1)*(y2-y1)))
}

func (s *stylist) beam(x1, y1, x2, y2 float64, c color.NRGBA, width, opacity float64) {
	if !finite(width) || width <= 0 {
		width = 3
	}
	w := clamp(float64(width*s.k), float64(1.4*s.u), float64(40*s.u))
	hot := white // the color of the middle
	if bright(s.ground) {
		c, hot = mix(c, ink, .25), mix(c, ink, .6)
	}
	for _, ring := range [...]struct{ wide, strong, white float64 }{
		{5, .1, 0}, {3, .16, 0}, {1.7, .4, 0}, {1, 1, .15}, {.45, .9, .75},
	} {
		s.add(shape{
			kind: line, x: x1, y: y1, w: x2, h: y2, pen: float64(w * ring.wide),
			stroke: fade(mix(c, hot, ring.white), float64(opacity*ring.strong)),
		})
	}
	s.add(shape{kind: ellipse, x: x2, y: y2, w: float64(w * 3), h: float64(w * 3), fill: fade(c, float64(opacity*.25))})
	s.add(shape{kind: ellipse, x: x2, y: y2, w: float64(w * 1.4), h: float64(w * 1.4), fill: fade(mix(c, hot, .7), opacity)})
}

// sounds returns a note with the name of each recent sound, beside its figure or in the
// corner.
func (s *stylist) sounds() (shapes []shape) {
	size, corner := float64(12*s.u), 0
	beside := map[int]int{}
	for sound := range s.f.ShownSounds() {
		p := float64(s.f.At-sound.At) / float64(stage.SoundLasts)
		name := shorten(strings.TrimSpace(clean(sound.Sound)), size, false, float64(130*s.u))
		w := float64(26*s.u) + width(name, size, false)
		high := float64(20 * s.u)
		at := area{w: w, h: high}
		if i, ok := s.byID[sound.Entity]; ok && sound.Entity != "" {
			a := &s.cast[i]
			at.x = a.x - float64(a.h*a.art.broad)/200 - w
			at.y = a.y - float64(a.h*.8) - float64(p*16*s.u) - float64(float64(beside[i])*high) - float64(high/2)
			beside[i]++
			at.x, at.y = clamp(at.x, float64(4*s.u), s.width-w), clamp(at.y, float64(4*s.u), s.height-high)
			if at, ok = s.nearby(a.area, at); !ok {
				continue
			}
		} else {
			at.x, at.y = float64(12*s.u), s.height-float64(28*s.u)-float64(float64(corner)*22*s.u)
			corner++
			free := false
			if at, free = s.written.find(at, area{w: s.width, h: s.height}, nearness); !free {
				s.hidden++
				continue
			}
			s.written.take(at)
		}
		s.box(BoxNote, "", at, name)
		x, y := at.x, at.y+float64(high/2)
		opacity := 1 - float64(p*p)
		shapes = append(
			shapes,
			shape{kind: rect, x: x, y: at.y, w: w, h: high, r: high / 2, fill: fade(s.ground, float64(opacity*.75))},
			shape{kind: use, symbol: sounding, x: x + float64(11*s.u), y: y, size: float64(15*s.u) / 100, opacity: opacity},
		)
		if c := fade(mix(gold, s.text, .35), opacity); name != "" && c.A > 0 {
			shapes = append(shapes, textShape(x+float64(20*s.u), y+float64(size*.35), size, start, false, c, name))
		}
	}
	return shapes
}
