package graph

// Overlaps returns two boxes of texts and bars that overlap, false if none do.
func (g *Graph) Overlaps() (a, b [4]int, found bool) {
	l := g.layout()
	var boxes []box
	for _, list := range [][]box{l.labels, l.bars, l.notes} {
		for _, b := range list {
			if b.w > 0 {
				boxes = append(boxes, b)
			}
		}
	}
	for i, p := range boxes {
		for _, q := range append(boxes[i+1:len(boxes):len(boxes)], box{l.gutter, 0, l.plot - l.gutter, l.height}) {
			if p.x < q.x+q.w && q.x < p.x+p.w && p.y < q.y+q.h && q.y < p.y+p.h {
				return [4]int{p.x, p.y, p.w, p.h}, [4]int{q.x, q.y, q.w, q.h}, true
			}
		}
		if p.x < 0 || p.y < 0 || p.x+p.w > l.width || p.y+p.h > l.height {
			return [4]int{p.x, p.y, p.w, p.h}, [4]int{0, 0, l.width, l.height}, true
		}
	}
	return a, b, false
}

// Crossed reports whether two nets share a part of a lane.
func (g *Graph) Crossed() bool {
	l := g.layout()
	for i := range l.nets {
		for j := range l.nets[:i] {
			a, b := &l.nets[i], &l.nets[j]
			at, ab := a.span()
			bt, bb := b.span()
			if a.lane == b.lane && at <= bb && bt <= ab {
				return true
			}
		}
	}
	return false
}
