package workspace

import "sort"

// match returns, for each line of b, the index of the line of a that it continues, or
// -1. The indexes increase. Lines at the beginning and the end that are equal continue
// each other; between them, lines that are unique on both sides do, and the equal
// lines around those. It takes n log n time for n lines, and may find fewer lines than
// the longest common subsequence has.
func match(a, b []string) []int {
	out := make([]int, len(b))
	for i := range out {
		out[i] = -1
	}
	low := 0
	for low < len(a) && low < len(b) && a[low] == b[low] {
		out[low] = low
		low++
	}
	highA, highB := len(a), len(b)
	for highA > low && highB > low && a[highA-1] == b[highB-1] {
		highA--
		highB--
		out[highB] = highA
	}
	doneA, doneB := low, low
	for _, anchor := range append(anchors(a[low:highA], b[low:highB]), [2]int{highA - low, highB - low}) {
		i, j := anchor[0]+low, anchor[1]+low
		if i < doneA || j < doneB {
			continue
		}
		// Equal lines before the anchor, then from the anchor on.
		for i > doneA && j > doneB && a[i-1] == b[j-1] {
			i--
			j--
		}
		for i < highA && j < highB && a[i] == b[j] {
			out[j] = i
			i++
			j++
		}
		doneA, doneB = i, j
	}
	return out
}

// anchors returns the pairs of lines that are unique in a and in b, in a longest
// sequence in which both indexes increase.
func anchors(a, b []string) [][2]int {
	if len(a) == 0 || len(b) == 0 {
		return nil
	}
	type place struct{ inA, inB, countA, countB int }
	places := make(map[string]*place, len(a))
	for i, line := range a {
		p := places[line]
		if p == nil {
			p = &place{}
			places[line] = p
		}
		p.inA = i
		p.countA++
	}
	var pairs [][2]int // in the order of b
	for j, line := range b {
		if p := places[line]; p != nil {
			p.inB = j
			p.countB++
		}
	}
	for j, line := range b {
		if p := places[line]; p != nil && p.countA == 1 && p.countB == 1 {
			pairs = append(pairs, [2]int{p.inA, j})
		}
	}
	// The longest increasing subsequence of the indexes in a.
	var tails []int // indexes into pairs
	before := make([]int, len(pairs))
	for k, pair := range pairs {
		n := sort.Search(len(tails), func(n int) bool { return pairs[tails[n]][0] >= pair[0] })
		before[k] = -1
		if n > 0 {
			before[k] = tails[n-1]
		}
		if n == len(tails) {
			tails = append(tails, k)
		} else {
			tails[n] = k
		}
	}
	longest := make([][2]int, len(tails))
	for n, k := len(tails)-1, lastOf(tails); n >= 0; n, k = n-1, before[k] {
		longest[n] = pairs[k]
	}
	return longest
}

// lastOf returns the last of some indexes, or 0.
func lastOf(indexes []int) int {
	if len(indexes) == 0 {
		return 0
	}
	return indexes[len(indexes)-1]
}
