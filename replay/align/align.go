// Package align pairs the elements of two sequences in order, as a diff of texts pairs
// lines.
//
// Elements are compared by keys alone. [Match] takes one or several passes, each with
// a key for every element, from the strictest meaning of "the same" to the loosest. A
// pass pairs elements in the gaps that the passes before it left. [Moved] then finds
// equal elements that stand in another order.
//
// A pass of kind [Unique] is the first half of a patience diff: it pairs the keys that
// occur once on each side of a gap, in a longest common subsequence of these. A pass of
// kind [Repeated] pairs the n-th occurrence of a key with the n-th on the other side.
// The result of one pass over keys that are unique is a longest common subsequence. The
// result of others is a common subsequence, which need not be the longest.
//
// # Cost
//
// A pass takes O(n log n) steps and memory in proportion to the elements that are not
// paired yet. Common beginnings and ends of a gap take one step for each element.
//
// docs/glossary.md has the nouns of all packages.
package align

import (
	"cmp"
	"slices"
)

// ElementKey stands for what is compared of one element. Elements with equal keys are the
// same. The zero ElementKey is that of an element which is not compared: it equals no other.
type ElementKey [16]byte

// Pair is an element of the left sequence and one of the right, by their indices.
type Pair struct{ Left, Right int }

// PassKind says which elements of a gap a [Pass] pairs.
type PassKind uint8

// The kinds of passes.
const (
	Unique   PassKind = iota // keys that occur once on either side of the gap
	Repeated                 // all keys, the n-th occurrence with the n-th
)

// Pass is one comparison of two sequences: the key of each element.
type Pass struct {
	Kind        PassKind
	Left, Right []ElementKey
}

// gap is a part of both sequences in which no element is paired yet.
type gap struct{ left, leftEnd, right, rightEnd int }

// Match pairs elements of two sequences. The pairs are in order: both indices grow from
// pair to pair. The keys of all passes must have the same lengths.
func Match(passes ...Pass) []Pair {
	var pairs []Pair
	for _, p := range passes {
		// The gaps are between the pairs of the passes before.
		before := pairs
		pairs = make([]Pair, 0, len(before))
		var g gap
		for _, found := range before {
			g.leftEnd, g.rightEnd = found.Left, found.Right
			pairs = append(p.in(g, pairs), found)
			g.left, g.right = found.Left+1, found.Right+1
		}
		g.leftEnd, g.rightEnd = len(p.Left), len(p.Right)
		pairs = p.in(g, pairs)
	}
	return pairs
}

// in appends the pairs of one gap.
func (p *Pass) in(g gap, pairs []Pair) []Pair {
	for g.left < g.leftEnd && g.right < g.rightEnd && p.same(g.left, g.right) {
		pairs = append(pairs, Pair{g.left, g.right})
		g.left++
		g.right++
	}
	tail := 0
	for g.left < g.leftEnd && g.right < g.rightEnd && p.same(g.leftEnd-1, g.rightEnd-1) {
		tail++
		g.leftEnd--
		g.rightEnd--
	}
	if g.left < g.leftEnd && g.right < g.rightEnd {
		pairs = append(pairs, ascending(p.candidates(g))...)
	}
	for i := range tail {
		pairs = append(pairs, Pair{g.leftEnd + i, g.rightEnd + i})
	}
	return pairs
}

func (p *Pass) same(left, right int) bool {
	return p.Left[left] == p.Right[right] && p.Left[left] != ElementKey{}
}

// candidates returns the pairs of a gap whose keys are the same, each element in one
// pair at most, by their left index.
func (p *Pass) candidates(g gap) []Pair {
	left, right := make([]int, g.leftEnd-g.left), make([]int, g.rightEnd-g.right)
	for i := range left {
		left[i] = g.left + i
	}
	for i := range right {
		right[i] = g.right + i
	}
	pairs := occurrences(p.Left, p.Right, left, right)
	if p.Kind == Repeated {
		return pairs
	}
	counts := make(map[ElementKey][2]int, len(pairs))
	for _, i := range left {
		c := counts[p.Left[i]]
		c[0]++
		counts[p.Left[i]] = c
	}
	for _, i := range right {
		c := counts[p.Right[i]]
		c[1]++
		counts[p.Right[i]] = c
	}
	return slices.DeleteFunc(pairs, func(at Pair) bool { return counts[p.Left[at.Left]] != [2]int{1, 1} })
}

// occurrence is one of several elements with the same key, counted from 0.
type occurrence struct {
	key    ElementKey
	number int
}

// occurrences pairs the n-th occurrence of each key among the left elements with the
// n-th among the right ones. The pairs are in the order of the left elements.
func occurrences(leftKeys, rightKeys []ElementKey, left, right []int) []Pair {
	at := make(map[occurrence]int, len(right))
	seen := make(map[ElementKey]int, len(right))
	for _, i := range right {
		if k := rightKeys[i]; k != (ElementKey{}) {
			at[occurrence{k, seen[k]}] = i
			seen[k]++
		}
	}
	clear(seen)
	var pairs []Pair
	for _, i := range left {
		k := leftKeys[i]
		if j, ok := at[occurrence{k, seen[k]}]; ok {
			pairs = append(pairs, Pair{i, j})
		}
		seen[k]++
	}
	return pairs
}

// ascending returns a longest part of pairs, which are in the order of the left
// indices, whose right indices grow too.
func ascending(pairs []Pair) []Pair {
	// ends[n] is the pair with the smallest right index at which a part of n+1 pairs
	// ends; previous[i] is the pair before i in the longest part that ends at i.
	var ends []int
	previous := make([]int, len(pairs))
	for i, p := range pairs {
		n, _ := slices.BinarySearchFunc(ends, p.Right, func(end, right int) int { return cmp.Compare(pairs[end].Right, right) })
		previous[i] = -1
		if n > 0 {
			previous[i] = ends[n-1]
		}
		if n == len(ends) {
			ends = append(ends, i)
		} else {
			ends[n] = i
		}
	}
	longest := make([]Pair, len(ends))
	if len(ends) == 0 {
		return nil
	}
	for n, i := len(ends)-1, ends[len(ends)-1]; n >= 0; n, i = n-1, previous[i] {
		longest[n] = pairs[i]
	}
	return longest
}

// Moved pairs the elements that pairs leaves over and whose keys are the same, the n-th
// such occurrence of a key with the n-th. They cross the pairs that exist, so their
// order differs. They are in the order of the left elements.
func Moved(left, right []ElementKey, pairs []Pair) []Pair {
	unpairedLeft, unpairedRight := rest(len(left), pairs, func(p Pair) int { return p.Left }), rest(len(right), pairs, func(p Pair) int { return p.Right })
	return occurrences(left, right, unpairedLeft, unpairedRight)
}

// rest returns the indices below n that are in none of pairs.
func rest(n int, pairs []Pair, side func(Pair) int) []int {
	var left []int
	next := 0
	for _, p := range pairs {
		for ; next < side(p); next++ {
			left = append(left, next)
		}
		next = side(p) + 1
	}
	for ; next < n; next++ {
		left = append(left, next)
	}
	return left
}
