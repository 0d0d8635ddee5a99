package summary

import (
	"strings"
	"time"
)

// names are totals by name, in the order of first use, [MaxNames] at most.
type names[T any] struct {
	index map[string]int
	list  []T
	fresh func(name string) T
}

func newNames[T any](fresh func(name string) T) names[T] {
	return names[T]{index: map[string]int{}, fresh: fresh}
}

// of returns the totals of a name. The pointer is valid until the next call.
func (n *names[T]) of(name string) *T {
	i, ok := n.index[name]
	if !ok {
		if len(n.list) >= MaxNames {
			name = Others
		}
		if i, ok = n.index[name]; !ok {
			name = clone(name)
			i = len(n.list)
			n.index[name] = i
			n.list = append(n.list, n.fresh(name))
		}
	}
	return &n.list[i]
}

func (n *names[T]) all() []T { return append([]T{}, n.list...) }

// clone copies a text that is a view of an entry, so that the entry can be freed.
func clone(s string) string { return strings.Clone(s) }

// isUnreadable reports whether a type is that of the records that an import could not
// read.
func isUnreadable(typ string) bool { return strings.HasSuffix(typ, ".unreadable") }

// buckets is the number of counts of an [Activity] at most.
const buckets = 64

// Activity is the number of signals in equal spans of session time, from 0 on. There are
// 64 spans at most, and their length is 2^n milliseconds.
type Activity struct {
	BucketMS int64 `json:"bucket_ms"`
	Counts   []int `json:"counts"`
}

// activity counts signals in spans that grow with the session.
type activity struct {
	width  time.Duration
	counts [buckets]int
	used   int
}

func (a *activity) add(at time.Duration) {
	at = max(at, 0)
	for at/a.width >= buckets {
		for i := range buckets / 2 {
			a.counts[i] = a.counts[2*i] + a.counts[2*i+1]
		}
		clear(a.counts[buckets/2:])
		a.used = (a.used + 1) / 2
		a.width *= 2
	}
	i := int(at / a.width)
	a.counts[i]++
	a.used = max(a.used, i+1)
}

func (a *activity) view() Activity {
	return Activity{BucketMS: int64(a.width / time.Millisecond), Counts: append([]int{}, a.counts[:a.used]...)}
}

// Sparkline draws counts as one line of blocks, one for each count; a count of 0 is "·".
func Sparkline(counts []int) string {
	blocks := []rune("▁▂▃▄▅▆▇█")
	most := 0
	for _, n := range counts {
		most = max(most, n)
	}
	var b strings.Builder
	for _, n := range counts {
		if n <= 0 {
			b.WriteRune('·')
			continue
		}
		b.WriteRune(blocks[(n*len(blocks)-1)/most])
	}
	return b.String()
}
