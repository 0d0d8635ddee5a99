// Package spelling finds the name that was meant by one that is misspelt.
package spelling

// longest bounds the names that are compared, in bytes.
const longest = 100

// allowed returns how many letters may be wrong in a word of n letters: at most 1 up to 4
// letters, 2 up to 8 and 3 beyond, and never more than a third of them.
func allowed(n int) int {
	most := 3
	switch {
	case n <= 4:
		most = 1
	case n <= 8:
		most = 2
	}
	return min(most, n/3)
}

// Nearest returns the first of the names that differs least from what was written; false if
// none is so near that it was probably meant. The length that decides is that of the longer
// of the two.
func Nearest(written string, names []string) (string, bool) {
	best, found := -1, ""
	for _, name := range names {
		most := allowed(max(len(written), len(name)))
		if d := distance(written, name, most); d <= most && (best < 0 || d < best) {
			best, found = d, name
		}
	}
	return found, best >= 0
}

// distance is how many letters have to be changed, added, taken away, or exchanged with
// the next one; most+1 if that is more than most.
func distance(a, b string, most int) int {
	if len(a)-len(b) > most || len(b)-len(a) > most || max(len(a), len(b)) > longest {
		return most + 1
	}
	// The rows of the last two letters of a and of the current one.
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j+1]+1, row[j]+1, last[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return min(last[len(b)], most+1)
}
