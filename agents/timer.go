package agents

import (
	"cmp"
	"container/heap"
	"strings"
	"time"
)

// timer says when something about an agent is due. It stands in one list at
// most, and in it once.
type timer struct {
	at    time.Duration
	agent string
	place int // in its list, from 1 on; 0 if it stands in none
}

// timers has the earliest first; what is due at one time goes by agents.
type timers struct{ list timerHeap }

// set puts a timer in the list at its time, wherever it stands now, or takes it
// out.
func (s *timers) set(t *timer, at time.Duration, due bool) {
	switch {
	case due && t.place > 0 && t.at == at:
	case due && t.place > 0:
		t.at = at
		heap.Fix(&s.list, t.place-1)
	case due:
		t.at = at
		heap.Push(&s.list, t)
	case t.place > 0:
		heap.Remove(&s.list, t.place-1)
	}
}

// next returns the first timer, nil if there is none.
func (s *timers) next() *timer {
	if len(s.list) == 0 {
		return nil
	}
	return s.list[0]
}

// until goes over the timers of up to now, in no order. It costs what it finds.
func (s *timers) until(now time.Duration, visit func(*timer)) {
	var walk func(i int)
	walk = func(i int) {
		if i < len(s.list) && s.list[i].at <= now {
			visit(s.list[i])
			walk(2*i + 1)
			walk(2*i + 2)
		}
	}
	walk(0)
}

type timerHeap []*timer

func (h timerHeap) Len() int { return len(h) }
func (h timerHeap) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(h[i].at, h[j].at), strings.Compare(h[i].agent, h[j].agent)) < 0
}

func (h timerHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i+1, j+1
}

func (h *timerHeap) Push(x any) {
	t := x.(*timer)
	*h = append(*h, t)
	t.place = len(*h)
}

func (h *timerHeap) Pop() any {
	last := len(*h) - 1
	t := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	t.place = 0
	return t
}
