package spans

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/sajou-dev/sajou-go/ingest/recording"
)

// link finds the parents, and drops spans that the file has twice.
func (c *Collection) link() {
	type key struct {
		trace int32
		id    string
	}
	byID := make(map[key]int32, len(c.nodes))
	for i := range c.nodes {
		n := &c.nodes[i]
		if n.id == "" {
			continue
		}
		k := key{n.trace, n.id}
		first, had := byID[k]
		if !had {
			byID[k] = int32(i)
			continue
		}
		// A span may be exported again when it ends: the one that ends last counts. Two spans
		// that start apart are two sides of one call, and both count.
		f := &c.nodes[first]
		switch {
		case f.start != n.start:
		case n.flags&open == 0 && (f.flags&open != 0 || n.end >= f.end):
			f.flags |= repeated
			byID[k] = int32(i)
		default:
			n.flags |= repeated
		}
	}
	native := make(map[string]bool, len(c.nodes))
	twins := map[string]int{} // spans of one id, which are numbered
	for i := range c.nodes {
		n := &c.nodes[i]
		if n.flags&repeated != 0 {
			continue
		}
		n.native = n.id
		if n.native == "" || native[n.native] {
			n.native = c.names[n.trace] + "/" + n.id
		}
		for native[n.native] {
			twins[n.id]++
			n.native = c.names[n.trace] + "/" + n.id + "#" + strconv.Itoa(twins[n.id]+1)
		}
		native[n.native] = true
		if n.above == "" {
			continue
		}
		if p, ok := byID[key{n.trace, n.above}]; ok && p != int32(i) {
			n.parent = p
		}
	}
	c.cutCycles()
}

// cutCycles makes the earliest span of each cycle of parents a root.
func (c *Collection) cutCycles() {
	const fresh, onPath, done = 0, 1, 2
	state := make([]uint8, len(c.nodes))
	var path []int32
	cycles := 0
	for i := range c.nodes {
		path = path[:0]
		at := int32(i)
		for at != none && state[at] == fresh {
			state[at] = onPath
			path = append(path, at)
			at = c.nodes[at].parent
		}
		if at != none && state[at] == onPath {
			from := slices.Index(path, at)
			first := slices.MinFunc(path[from:], func(a, b int32) int {
				x, y := &c.nodes[a], &c.nodes[b]
				return cmp.Or(cmp.Compare(x.start, y.start), cmp.Compare(x.id, y.id), cmp.Compare(a, b))
			})
			c.nodes[first].parent = none
			cycles++
		}
		for _, p := range path {
			state[p] = done
		}
	}
	if cycles > 0 && c.parts {
		c.remarks = append(c.remarks, remark{"parents", fmt.Sprintf("cycles of parents: %d; each was cut at its earliest span", cycles)})
	}
}

// lookAhead is the number of records within which the file must come back from a wrong clock.
const lookAhead = 64

// clocks finds times that a wrong clock has given.
func (c *Collection) clocks() {
	limit := recording.Instant(c.m.MaxSkew())
	var starts, times []recording.Instant
	for i := range c.nodes {
		if n := &c.nodes[i]; n.flags&(untimed|repeated) == 0 {
			if n.flags&open == 0 && n.end < n.start {
				n.moved, n.end = max(n.moved, n.start-n.end), n.start
			}
			starts = append(starts, n.start)
			times = append(times, n.start, n.end)
		}
	}
	slices.Sort(starts)
	slices.Sort(times)
	// alone reports that no other of the times is near one.
	alone := func(t recording.Instant, others []recording.Instant) bool {
		i, _ := slices.BinarySearch(others, t)
		j, _ := slices.BinarySearch(others, t+1)
		return i > 0 && t-others[i-1] > limit && j-i <= 1 && (j == len(others) || others[j]-t > limit)
	}
	// before returns the last time of a span that is not near one.
	before := func(t recording.Instant) recording.Instant {
		i, _ := slices.BinarySearch(times, t)
		return times[max(i-1, 0)]
	}
	var last recording.Instant
	seen := false
	for i := range c.nodes {
		n := &c.nodes[i]
		if n.flags&(untimed|repeated) != 0 {
			continue
		}
		length := n.end - n.start
		if alone(n.start, starts) && c.comesBack(i, n.start-limit) {
			n.flags |= ahead
			if !seen {
				last = before(n.start)
			}
			n.start = last
			if n.end = n.start; length <= limit {
				n.end += length
			}
			continue
		}
		if length > limit {
			if alone(n.end, times) {
				n.flags |= ahead
				n.end = max(before(n.end), n.start)
			}
		}
		last, seen = n.start, true
	}
}

// comesBack reports whether one of the next records is before a time.
func (c *Collection) comesBack(i int, t recording.Instant) bool {
	for j := i + 1; j < len(c.nodes) && j <= i+lookAhead; j++ {
		if n := &c.nodes[j]; n.flags&untimed == 0 && n.start < t {
			return true
		}
	}
	return false
}

// nest finds the depths, and puts spans between the start and end of the nearest span
// above them that is part of the session. Transport binds nothing: a server often
// answers before the work that it began is done. A span without a time has that of its parent.
func (c *Collection) nest() {
	c.down = c.byDepth()
	order := c.down
	var first recording.Instant
	known := false
	for _, i := range order {
		if n := &c.nodes[i]; n.flags&untimed == 0 && (!known || n.start < first) {
			first, known = n.start, true
		}
	}
	bound := make([]int32, len(c.nodes))
	for _, i := range order {
		n := &c.nodes[i]
		bound[i] = none
		if n.flags&untimed != 0 {
			n.start, n.end = first, first
		}
		if n.parent == none {
			continue
		}
		above := &c.nodes[n.parent]
		if bound[i] = bound[n.parent]; above.speaks() {
			bound[i] = n.parent
		}
		if n.flags&untimed != 0 {
			n.start, n.end = above.start, above.start
		}
		if bound[i] == none {
			continue
		}
		p := &c.nodes[bound[i]]
		start, end := max(n.start, p.start), n.end
		if p.flags&open == 0 {
			start = min(start, p.end)
		}
		if n.flags&open != 0 {
			end = start
		} else {
			if p.flags&open == 0 {
				end = min(end, p.end)
			}
			end = max(end, start)
			n.moved = max(n.moved, distance(end, n.end))
		}
		if n.flags&untimed == 0 {
			n.moved = max(n.moved, distance(start, n.start))
		}
		n.start, n.end = start, end
	}
}

func distance(a, b recording.Instant) recording.Instant { return max(a-b, b-a) }

// byDepth sets the depths and returns the spans with parents before children.
func (c *Collection) byDepth() []int32 {
	for i := range c.nodes {
		c.nodes[i].depth = none
	}
	var path []int32
	for i := range c.nodes {
		at := int32(i)
		for at != none && c.nodes[at].depth == none {
			path = append(path, at)
			at = c.nodes[at].parent
		}
		depth := int32(none)
		if at != none {
			depth = c.nodes[at].depth
		}
		for j := len(path) - 1; j >= 0; j-- {
			depth++
			c.nodes[path[j]].depth = depth
		}
		path = path[:0]
	}
	order := c.all()
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(c.nodes[a].depth, c.nodes[b].depth) })
	return order
}

// all returns the places of the spans that count, in the order of the file.
func (c *Collection) all() []int32 {
	order := make([]int32, 0, len(c.nodes))
	for i := range c.nodes {
		if c.nodes[i].flags&repeated == 0 {
			order = append(order, int32(i))
		}
	}
	return order
}

// sorted returns the spans by (start, depth, id). It reports how many of them the file has behind
// a later one.
func (c *Collection) sorted() []int32 {
	order := c.all()
	var latest, furthest recording.Instant
	behind := 0
	for _, i := range order {
		n := &c.nodes[i]
		if n.start < latest {
			behind++
			furthest = max(furthest, latest-n.start)
		}
		latest = max(latest, n.start)
	}
	if behind > 0 {
		c.behind, c.furthest = behind, furthest
	}
	slices.SortFunc(order, func(a, b int32) int {
		x, y := &c.nodes[a], &c.nodes[b]
		return cmp.Or(cmp.Compare(x.start, y.start), cmp.Compare(x.depth, y.depth), cmp.Compare(x.id, y.id), cmp.Compare(a, b))
	})
	return order
}
