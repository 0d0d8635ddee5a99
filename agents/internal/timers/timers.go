// Package timers keeps the next instant at which something about each agent is due.
package timers

import (
	"cmp"
	"container/heap"
	"strings"
	"time"
)

// Timer is the next due instant of one agent. It is in one list at most, and in it
// once. Only the list writes At.
type Timer struct {
	At    time.Duration
	Agent string
	place int // index in its list plus 1; 0 if it is in none
}

// List orders timers by time, and those of one time by agent. The zero List is empty.
// It has no lock.
type List struct{ heap timerHeap }

// Set moves a timer to a time, adding it to the list if necessary, or removes it if
// nothing is due.
func (l *List) Set(t *Timer, at time.Duration, due bool) {
	switch {
	case due && t.place > 0 && t.At == at:
	case due && t.place > 0:
		t.At = at
		heap.Fix(&l.heap, t.place-1)
	case due:
		t.At = at
		heap.Push(&l.heap, t)
	case t.place > 0:
		heap.Remove(&l.heap, t.place-1)
	}
}

// Next returns the first timer, nil if the list is empty.
func (l *List) Next() *Timer {
	if len(l.heap) == 0 {
		return nil
	}
	return l.heap[0]
}

// Until calls visit for the timers that are due at now or before, in no order. It
// looks at no others but their children in the heap, so its cost follows the result.
func (l *List) Until(now time.Duration, visit func(*Timer)) {
	var walk func(i int)
	walk = func(i int) {
		if i < len(l.heap) && l.heap[i].At <= now {
			visit(l.heap[i])
			walk(2*i + 1)
			walk(2*i + 2)
		}
	}
	walk(0)
}

type timerHeap []*Timer

func (h timerHeap) Len() int { return len(h) }
func (h timerHeap) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(h[i].At, h[j].At), strings.Compare(h[i].Agent, h[j].Agent)) < 0
}

func (h timerHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i+1, j+1
}

func (h *timerHeap) Push(x any) {
	t := x.(*Timer)
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
