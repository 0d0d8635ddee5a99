package flow

import (
	"fmt"
	"time"
)

// Backpressure is what a full queue does with another item.
type Backpressure string

// The policies.
const (
	PressureDefer Backpressure = "defer"       // refuses it; it may be submitted again; the default
	PressureShed  Backpressure = "shed_oldest" // takes it, and drops the item that has waited longest
	PressureDrop  Backpressure = "drop_newest" // refuses it for good
)

// Queue releases items at their time: the earliest first, and items of one time in
// the order of their insertion. It has no clock: a waiter sleeps until Next, and
// Put reports when Next has become earlier.
//
// The zero Queue is empty and unbounded.
type Queue[T any] struct {
	// Depth is how many items may wait; 0 means any number.
	Depth int
	// Pressure is applied beyond that; "" means [PressureDefer].
	Pressure Backpressure

	items queued[T]
	count uint64 // insertions
}

// PutVerdict is the result of [Queue.Put].
type PutVerdict uint8

// The verdicts.
const (
	Queued   PutVerdict = iota
	Deferred            // refused; it may be put again
	Shed                // queued, and the returned item was dropped for it
	Dropped             // refused for good
)

func (v PutVerdict) String() string {
	if int(v) < len(putVerdicts) {
		return putVerdicts[v]
	}
	return fmt.Sprintf("verdict %d", v)
}

var putVerdicts = [...]string{"queued", "deferred", "shed", "dropped"}

// Put adds an item for the given time. If the verdict is [Shed], shed is the item that
// was dropped for it. sooner reports whether Next has become earlier.
func (q *Queue[T]) Put(at time.Duration, item T) (verdict PutVerdict, shed T, sooner bool) {
	if q.Depth > 0 && len(q.items) >= q.Depth {
		switch q.Pressure {
		case PressureShed:
			verdict = Shed
			shed = q.items.remove(q.oldest())
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
	q.items.push(timed[T]{at, q.count, item})
	return verdict, shed, !waiting || at < next
}

// oldest returns the index of the item that was inserted first.
func (q *Queue[T]) oldest() int {
	oldest := 0
	for i := range q.items {
		if q.items[i].number < q.items[oldest].number {
			oldest = i
		}
	}
	return oldest
}

// Next returns the time of the next item.
func (q *Queue[T]) Next() (time.Duration, bool) {
	if len(q.items) == 0 {
		return 0, false
	}
	return q.items[0].at, true
}

// Get removes and returns the next item, if its time has come.
func (q *Queue[T]) Get(now time.Duration) (item T, ok bool) {
	if len(q.items) == 0 || q.items[0].at > now {
		return item, false
	}
	return q.items.remove(0), true
}

// Len returns how many items wait.
func (q *Queue[T]) Len() int { return len(q.items) }

// Clear drops all items.
func (q *Queue[T]) Clear() { q.items = nil }

type timed[T any] struct {
	at     time.Duration
	number uint64
	item   T
}

// queued is a binary heap of timed items. container/heap would box each item in an
// interface, which was most of what a queue allocated.
type queued[T any] []timed[T]

func (q queued[T]) less(i, j int) bool {
	if q[i].at != q[j].at {
		return q[i].at < q[j].at
	}
	return q[i].number < q[j].number
}

func (q *queued[T]) push(x timed[T]) {
	*q = append(*q, x)
	q.up(len(*q) - 1)
}

// remove removes the item at i and returns it.
func (q *queued[T]) remove(i int) T {
	last := len(*q) - 1
	item := (*q)[i].item
	(*q)[i] = (*q)[last]
	(*q)[last] = timed[T]{}
	*q = (*q)[:last]
	if i < last {
		q.down(i)
		q.up(i)
	}
	return item
}

func (q queued[T]) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !q.less(i, parent) {
			return
		}
		q[i], q[parent] = q[parent], q[i]
		i = parent
	}
}

func (q queued[T]) down(i int) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(q); child++ {
			if q.less(child, least) {
				least = child
			}
		}
		if least == i {
			return
		}
		q[i], q[least] = q[least], q[i]
		i = least
	}
}
