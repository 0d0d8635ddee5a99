package align_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/replay/align"
)

// keys returns a key for each letter of a text; a dot has the zero key.
func keys(text string) []align.ElementKey {
	ks := make([]align.ElementKey, 0, len(text))
	for _, r := range text {
		var k align.ElementKey
		if r != '.' {
			k[0] = byte(r)
		}
		ks = append(ks, k)
	}
	return ks
}

func match(kind align.PassKind, left, right string) []align.Pair {
	return align.Match(align.Pass{Kind: kind, Left: keys(left), Right: keys(right)})
}

// spelled returns the letters of the left sequence that are paired.
func spelled(left string, pairs []align.Pair) string {
	var b strings.Builder
	for _, p := range pairs {
		b.WriteByte(left[p.Left])
	}
	return b.String()
}

func Example() {
	const left, right = "load plan draw done", "load draw plan draw done"
	words := func(text string) (names []string, ks []align.ElementKey) {
		for _, name := range strings.Fields(text) {
			var k align.ElementKey
			copy(k[:], name)
			names, ks = append(names, name), append(ks, k)
		}
		return names, ks
	}
	names, l := words(left)
	_, r := words(right)
	for _, p := range align.Match(align.Pass{Kind: align.Unique, Left: l, Right: r}) {
		fmt.Println(p.Left, p.Right, names[p.Left])
	}
	// Output:
	// 0 0 load
	// 1 2 plan
	// 2 3 draw
	// 3 4 done
}

func TestMatch(t *testing.T) {
	for _, c := range []struct {
		kind              align.PassKind
		left, right, want string
	}{
		{align.Unique, "", "", ""},
		{align.Unique, "abc", "", ""},
		{align.Unique, "abc", "abc", "abc"},
		{align.Unique, "abcd", "acbd", "acd"},      // one of two crossing pairs
		{align.Unique, "xabax", "yabay", "b"},      // a is not unique
		{align.Repeated, "xabax", "yabay", "aba"},  // and its occurrences are paired in order
		{align.Repeated, "aab", "ab", "ab"},        //
		{align.Repeated, "x..x", "y..y", ""},       // the zero key equals no other
		{align.Repeated, "a..b", "a..b", "ab"},     // nor at the edges
		{align.Unique, "aaaa", "aaa", "aaa"},       // a common beginning needs no unique key
		{align.Unique, "1ab2cd3", "ab4cd", "abcd"}, //
	} {
		assert.Equal(t, c.want, spelled(c.left, match(c.kind, c.left, c.right)), "%v %s %s", c.kind, c.left, c.right)
	}
}

// Each pass works between the pairs of the passes before it.
func TestPasses(t *testing.T) {
	strict := align.Pass{Kind: align.Unique, Left: keys("aXbYc"), Right: keys("aZbWc")}
	loose := align.Pass{Kind: align.Repeated, Left: keys("-q-r-"), Right: keys("-r-r-")}
	assert.Equal(t, []align.Pair{{0, 0}, {2, 2}, {3, 3}, {4, 4}}, align.Match(strict, loose),
		"q stays alone, although a pass over the whole would pair the first r with the left one")
}

func TestMoved(t *testing.T) {
	left, right := keys("abcdx"), keys("bcday")
	pairs := align.Match(align.Pass{Kind: align.Unique, Left: left, Right: right})
	assert.Equal(t, []align.Pair{{1, 0}, {2, 1}, {3, 2}}, pairs)
	assert.Equal(t, []align.Pair{{0, 3}}, align.Moved(left, right, pairs))
}

// longest is the length of a longest common subsequence, by the textbook's table.
func longest(a, b string) int {
	table := make([][]int, len(a)+1)
	for i := range table {
		table[i] = make([]int, len(b)+1)
	}
	for i := range a {
		for j := range b {
			if a[i] == b[j] && a[i] != '.' {
				table[i+1][j+1] = table[i][j] + 1
			} else {
				table[i+1][j+1] = max(table[i][j+1], table[i+1][j])
			}
		}
	}
	return table[len(a)][len(b)]
}

// The pairs are a common subsequence, and a longest one if no letter repeats.
func TestMatchAgainstTheTable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		unique := rapid.Bool().Draw(t, "unique")
		letters := rapid.SliceOfN(rapid.SampledFrom([]rune("abcdefgh.")), 0, 12)
		if unique {
			letters = rapid.SliceOfNDistinct(rapid.SampledFrom([]rune("abcdefghijklmnop")), 0, 12, rapid.ID[rune])
		}
		left, right := string(letters.Draw(t, "left")), string(letters.Draw(t, "right"))
		for _, kind := range []align.PassKind{align.Unique, align.Repeated} {
			pairs := match(kind, left, right)
			last := align.Pair{Left: -1, Right: -1}
			for _, p := range pairs {
				assert.True(t, p.Left > last.Left && p.Right > last.Right, "in order: %v", pairs)
				assert.Equal(t, left[p.Left], right[p.Right])
				last = p
			}
			assert.LessOrEqual(t, len(pairs), longest(left, right))
			if unique {
				assert.Len(t, pairs, longest(left, right), "%v of %q and %q", kind, left, right)
			}
			// Moved pairs are the rest of the letters that both sides have, as multisets.
			moved := align.Moved(keys(left), keys(right), pairs)
			common := 0
			for _, r := range "abcdefghijklmnop" {
				common += min(strings.Count(left, string(r)), strings.Count(right, string(r)))
			}
			assert.Equal(t, common, len(pairs)+len(moved))
			for _, p := range moved {
				assert.False(t, slices.ContainsFunc(pairs, func(q align.Pair) bool { return q.Left == p.Left || q.Right == p.Right }))
			}
		}
	})
}

// Two long sequences that share nothing but their middle take no longer than sorting.
func TestMatchLong(t *testing.T) {
	const n = 200_000
	left, right := make([]align.ElementKey, n), make([]align.ElementKey, n)
	for i := range n {
		left[i] = align.ElementKey{1, byte(i), byte(i >> 8), byte(i >> 16)}
		right[n-1-i] = left[i]
	}
	pass := align.Pass{Kind: align.Unique, Left: left, Right: right}
	assert.Len(t, align.Match(pass), 1, "a reversed sequence has one element in common order")
}
