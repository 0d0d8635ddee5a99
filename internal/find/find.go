// Package find searches for a text in another one in time linear in both, for any
// texts, and matches names with wildcards.
//
// strings.Contains is fast on ordinary texts, but it compares the whole of a long text
// at each place with the same hash, and 32-bit hash collisions can be crafted: a search
// for half a megabyte in a megabyte then takes minutes. Here both texts may be
// untrusted.
package find

import (
	"iter"
	"strings"
)

// short is the length up to which a comparison at every place is cheap.
const short = 64

// piece is the number of bytes read between two calls of pause.
const piece = 1 << 16

// Contains reports whether text contains part, as strings.Contains does.
func Contains(text, part string) bool {
	found, _ := Search(text, part, func(int) bool { return true })
	return found
}

// Each yields the offsets of the occurrences of part in text, in order, including
// overlapping ones.
func Each(text, part string) iter.Seq[int] {
	return func(yield func(int) bool) {
		if len(part) > short {
			knuthMorrisPratt(text, part, func(int) bool { return true }, yield)
			return
		}
		for from := 0; from+len(part) <= len(text); from++ {
			i := strings.Index(text[from:], part)
			if i < 0 || !yield(from+i) {
				return
			}
			from += i
		}
	}
}

// Memory returns how many bytes a search for a part of that length allocates.
func Memory(part int) int {
	if part <= short {
		return 0
	}
	return 4 * part
}

// Search is Contains with a pause: before each piece it calls pause with the number of
// bytes to read next, at most 65600, and stops if pause returns false; done is then
// false.
func Search(text, part string, pause func(n int) bool) (found, done bool) {
	if len(part) > len(text) {
		return false, true
	}
	if len(part) > short {
		done = knuthMorrisPratt(text, part, pause, func(int) bool { found = true; return false })
		return found, done
	}
	for {
		// The pieces overlap, so that a match across a border is found.
		next := min(len(text), piece+len(part))
		if !pause(next) {
			return false, false
		}
		if strings.Contains(text[:next], part) {
			return true, true
		}
		if next == len(text) {
			return false, true
		}
		text = text[piece:]
	}
}

// knuthMorrisPratt searches without going back in text. It returns false if pause
// stopped the search.
func knuthMorrisPratt(text, part string, pause, yield func(int) bool) bool {
	// border[i] is the length of the longest text that both begins and ends
	// part[:i+1] and is shorter.
	border := make([]int32, len(part))
	for i, k := 1, int32(0); i < len(part); i++ {
		if i%piece == 1 && !pause(min(piece, len(part)-i)) {
			return false
		}
		for k > 0 && part[i] != part[k] {
			k = border[k-1]
		}
		if part[i] == part[k] {
			k++
		}
		border[i] = k
	}
	k := int32(0)
	for i := range len(text) {
		if i%piece == 0 && !pause(min(piece, len(text)-i)) {
			return false
		}
		for k > 0 && text[i] != part[k] {
			k = border[k-1]
		}
		if text[i] == part[k] {
			k++
		}
		if int(k) == len(part) {
			if !yield(i + 1 - len(part)) {
				return true
			}
			k = border[k-1]
		}
	}
	return true
}
