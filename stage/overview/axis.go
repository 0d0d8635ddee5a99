package overview

import (
	"fmt"
	"math"
	"time"
)

// axis maps session time to a width. Long times without a signal are cut out.
type axis struct {
	pieces []piece
}

// piece is a time without a cut, with its place.
type piece struct {
	from, to time.Duration
	x, w     float64
}

// A gap is cut if it is at least shortestCut long and longer than a cutShare of the time that
// is left when all such gaps are cut. The cuts take a quarter of the axis at most.
const (
	shortestCut = 5 * time.Second
	cutShare    = 10
	cutWidth    = 26
	mostCuts    = 12
)

// newAxis returns the axis of instants in order, from x on over a width. busy says whether
// something is under way in the whole of a gap, which is then kept.
func newAxis(instants []time.Duration, x, width float64, busy func(from, to time.Duration) bool) axis {
	if len(instants) == 0 {
		instants = []time.Duration{0}
	}
	first, last := instants[0], instants[len(instants)-1]
	cut := map[int]bool{} // the gap before an instant
	left := last - first
	for range min(mostCuts, int(width/(4*cutWidth))) {
		worst, length := -1, max(shortestCut, left/cutShare)
		for i := 1; i < len(instants); i++ {
			if gap := instants[i] - instants[i-1]; gap > length && !cut[i] && !busy(instants[i-1], instants[i]) {
				worst, length = i, gap
			}
		}
		if worst < 0 {
			break
		}
		cut[worst] = true
		left -= length
	}
	a := axis{}
	begin := first
	for i, at := range instants {
		if cut[i] {
			a.pieces = append(a.pieces, piece{from: begin, to: instants[i-1]})
			begin = at
		}
	}
	a.pieces = append(a.pieces, piece{from: begin, to: last})
	// Each piece has a width of its own beside its share, so that a single instant is seen.
	const least = 6.0
	room := width - float64(cutWidth*float64(len(a.pieces)-1)) - float64(least*float64(len(a.pieces)))
	for i := range a.pieces {
		p := &a.pieces[i]
		p.x, p.w = x, least
		if left > 0 {
			p.w += float64(room * (float64(p.to-p.from) / float64(left)))
		} else {
			p.w += room / float64(len(a.pieces))
		}
		x += p.w + cutWidth
	}
	return a
}

// at returns the place of an instant.
func (a *axis) at(t time.Duration) float64 {
	for i := range a.pieces {
		p := &a.pieces[i]
		if t > p.to && i+1 < len(a.pieces) && t >= a.pieces[i+1].from {
			continue
		}
		if t >= p.to && t > p.from {
			return p.x + p.w
		}
		if t <= p.from {
			return p.x
		}
		return p.x + float64(p.w*(float64(t-p.from)/float64(p.to-p.from)))
	}
	return 0
}

// half returns the half of a width. The conversion keeps a compiler from fusing it with a sum,
// whose result would differ between machines.
func half(v float64) float64 { return float64(v / 2) }

// tick is a labelled instant of an axis.
type tick struct {
	x    float64
	text string
}

// ticks returns instants of a round distance, about space apart.
func (a *axis) ticks(space float64) []tick {
	var out []tick
	left := time.Duration(0)
	width := 0.0
	for _, p := range a.pieces {
		left, width = left+p.to-p.from, width+p.w
	}
	origin := a.pieces[0].from
	step := roundTime(time.Duration(float64(left) * math.Min(1, space/math.Max(width, 1))))
	for _, p := range a.pieces {
		for t := origin + (p.from-origin+step-1)/step*step; t <= p.to && len(out) < 1000; t += step {
			out = append(out, tick{a.at(t), clock(t - origin)})
		}
	}
	return out
}

// roundTime returns a round time that is at least d.
func roundTime(d time.Duration) time.Duration {
	for _, unit := range [...]struct {
		of    time.Duration
		times []time.Duration
	}{
		{time.Millisecond, []time.Duration{1, 2, 5, 10, 20, 50, 100, 200, 500}},
		{time.Second, []time.Duration{1, 2, 5, 10, 15, 30}},
		{time.Minute, []time.Duration{1, 2, 5, 10, 15, 30}},
		{time.Hour, []time.Duration{1, 2, 3, 6, 12}},
	} {
		for _, n := range unit.times {
			if n*unit.of >= d {
				return n * unit.of
			}
		}
	}
	const day = 24 * time.Hour
	n := day
	for n < d && n < 1<<61 {
		n *= 2
	}
	return n
}

// clock writes a time since the beginning: 1:02.5, 3:20:00 or 2d 3:00:00.
func clock(t time.Duration) string {
	ms := t.Milliseconds()
	s := ms / 1000
	text := fmt.Sprintf("%d:%02d", s/60, s%60)
	if s >= 3600 {
		text = fmt.Sprintf("%d:%02d:%02d", s/3600%24, s/60%60, s%60)
	}
	if d := s / 86400; d > 0 {
		text = fmt.Sprintf("%dd %s", d, text)
	}
	if f := ms % 1000; f != 0 {
		digits := fmt.Sprintf("%03d", f)
		for digits[len(digits)-1] == '0' {
			digits = digits[:len(digits)-1]
		}
		text += "." + digits
	}
	return text
}

// span writes a length of time in its two largest units.
func span(t time.Duration) string {
	switch {
	case t >= 24*time.Hour:
		return fmt.Sprintf("%dd %dh", t/(24*time.Hour), t/time.Hour%24)
	case t >= time.Hour:
		return fmt.Sprintf("%dh %dm", t/time.Hour, t/time.Minute%60)
	case t >= time.Minute:
		return fmt.Sprintf("%dm %ds", t/time.Minute, t/time.Second%60)
	default:
		return fmt.Sprintf("%ds", t/time.Second)
	}
}
