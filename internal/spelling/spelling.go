// Package spelling finds the name that was meant by one that is misspelt.
package spelling

// most is how many letters may be wrong, and one more.
const most = 3

// Nearest returns the first of the names that differs least from what was
// written, by a letter or two and by fewer than it has; false if none is so near.
func Nearest(written string, names []string) (string, bool) {
	best, found := most, ""
	for _, name := range names {
		if d := distance(written, name); d < best && d < len(written) {
			best, found = d, name
		}
	}
	return found, best < most
}

// distance is how many letters have to be changed, added or taken away; most
// for that many and more.
func distance(a, b string) int {
	if len(a)-len(b) >= most || len(b)-len(a) >= most || len(a) > 100 {
		return most
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		corner := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			corner, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, corner+cost)
		}
	}
	return min(row[len(b)], most)
}
