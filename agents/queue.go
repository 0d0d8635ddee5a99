package agents

import (
	"container/heap"
	"fmt"
	"time"
)

// Backpressure is what happens to an item for which a queue has no room.
type Backpressure string

// The policies.
const (
	PressureDefer Backpressure = "defer"       // it is refused and may come again; the default
	PressureShed  Backpressure = "shed_oldest" // it is taken, and what has waited longest goes
	PressureDrop  Backpressure = "drop_newest" // it is refused for good
)

func (p Backpressure) recovery() Recovery {
	switch p {
	case PressureShed:
		return ShedOldest
	case PressureDrop:
		return DropNewest
	default:
		return DeferIntent
	}
}

// Queue gives out items at their time: the earliest first, and of one time
// those first that came first. It has no clock; whoever waits asks Next when to
// come back, and is told by Put whether that has become earlier.
//
// The zero Queue is empty and unbounded.
type Queue[T any] struct {
	// Depth is how many items may wait; 0 means any number.
	Depth int
	// Pressure is what happens beyond that; "" means [PressureDefer].
	Pressure Backpressure

	items queued[T]
	count uint64 // insertions
}

// PutVerdict says what became of an item in [Queue.Put].
type PutVerdict uint8

// The verdicts.
const (
	Queued   PutVerdict = iota
	Deferred            // not taken; it may come again
	Shed                // taken, and the returned item was dropped for it
	Dropped             // not taken, for good
)

func (v PutVerdict) String() string {
	if int(v) < len(putVerdicts) {
		return putVerdicts[v]
	}
	return fmt.Sprintf("verdict %d", v)
}

var putVerdicts = [...]string{"queued", "deferred", "shed", "dropped"}

// Put adds an item that comes out at the given time. The item returned is what
// was shed, if the verdict says so. sooner says that Next has become earlier.
func (q *Queue[T]) Put(at time.Duration, item T) (verdict PutVerdict, shed T, sooner bool) {
	if q.Depth > 0 && len(q.items) >= q.Depth {
		switch q.Pressure {
		case PressureShed:
			verdict = Shed
			shed = heap.Remove(&q.items, q.oldest()).(timed[T]).item
		case PressureDrop:
			return Dropped, shed, false
		case PressureDefer:
			return Deferred, shed, false
		default:
			return Deferred, shed, false
		}
	}
	next, waiting := q.Next()
	q.count++
	heap.Push(&q.items, timed[T]{at, q.count, item})
	return verdict, shed, !waiting || at < next
}

// oldest returns where the item is that came first of all that wait.
func (q *Queue[T]) oldest() int {
	oldest := 0
	for i := range q.items {
		if q.items[i].number < q.items[oldest].number {
			oldest = i
		}
	}
	return oldest
}

// Next returns when the next item comes out.
func (q *Queue[T]) Next() (time.Duration, bool) {
	if len(q.items) == 0 {
		return 0, false
	}
	return q.items[0].at, true
}

// Get takes out the next item, if its time has come.
func (q *Queue[T]) Get(now time.Duration) (item T, ok bool) {
	if len(q.items) == 0 || q.items[0].at > now {
		return item, false
	}
	return heap.Pop(&q.items).(timed[T]).item, true
}

// Len returns how many items wait.
func (q *Queue[T]) Len() int { return len(q.items) }

// Clear drops everything.
func (q *Queue[T]) Clear() { q.items = nil }

type timed[T any] struct {
	at     time.Duration
	number uint64
	item   T
}

// queued is a heap of timed items.
type queued[T any] []timed[T]

func (q queued[T]) Len() int { return len(q) }
func (q queued[T]) Less(i, j int) bool {
	if q[i].at != q[j].at {
		return q[i].at < q[j].at
	}
	return q[i].number < q[j].number
}
func (q queued[T]) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *queued[T]) Push(x any)   { *q = append(*q, x.(timed[T])) }
func (q *queued[T]) Pop() any {
	last := len(*q) - 1
	x := (*q)[last]
	(*q)[last] = timed[T]{}
	*q = (*q)[:last]
	return x
}
