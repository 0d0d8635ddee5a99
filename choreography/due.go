package choreography

// dueHeap is a binary heap of performances, ordered by instant, then by round, then by
// creation.
type dueHeap []*performance

func (h dueHeap) less(i, j int) bool {
	a, b := h[i], h[j]
	switch {
	case a.due != b.due:
		return a.due < b.due
	case a.round != b.round:
		return a.round < b.round
	default:
		return a.order < b.order
	}
}

func (h dueHeap) swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].heapPos, h[j].heapPos = i, j
}

func (h *dueHeap) push(p *performance) {
	p.heapPos = len(*h)
	*h = append(*h, p)
	h.up(p.heapPos)
}

func (h *dueHeap) remove(p *performance) {
	i, n := p.heapPos, len(*h)-1
	if i != n {
		h.swap(i, n)
	}
	(*h)[n] = nil
	*h = (*h)[:n]
	if i != n {
		h.down(i)
		h.up(i)
	}
}

// fix restores the order after p.due changed.
func (h dueHeap) fix(p *performance) {
	h.down(p.heapPos)
	h.up(p.heapPos)
}

func (h dueHeap) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !h.less(i, parent) {
			return
		}
		h.swap(i, parent)
		i = parent
	}
}

func (h dueHeap) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(h) {
			return
		}
		if right := child + 1; right < len(h) && h.less(right, child) {
			child = right
		}
		if !h.less(child, i) {
			return
		}
		h.swap(i, child)
		i = child
	}
}
