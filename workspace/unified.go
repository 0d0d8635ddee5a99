package workspace

import (
	"fmt"
	"strings"
)

// around is the number of equal lines that a difference shows before and after a
// change.
const around = 3

// Unified returns the difference between two texts in the unified format, with the
// names of the texts in its head, or "" if they are equal. A text that does not end
// with a line end is marked as diff does.
func Unified(fromName, from, toName, to string) string {
	if from == to {
		return ""
	}
	a, b := splitLines(from), splitLines(to)
	continued := match(a, b)
	var out strings.Builder
	fmt.Fprintf(&out, "--- %s\n+++ %s\n", fromName, toName)
	line := func(op byte, text string) {
		out.WriteByte(op)
		out.WriteString(text)
		if !strings.HasSuffix(text, "\n") {
			out.WriteString("\n\\ No newline at end of file\n")
		}
	}
	for _, h := range changedRanges(a, b, continued) {
		fmt.Fprintf(&out, "@@ -%s +%s @@\n", rangeText(h.fromA, h.toA), rangeText(h.fromB, h.toB))
		i := h.fromA
		for j := h.fromB; j < h.toB; j++ {
			if continued[j] < 0 {
				continue
			}
			for ; i < continued[j]; i++ {
				line('-', a[i])
			}
			for k := lastEqual(continued, h.fromB, j) + 1; k < j; k++ {
				line('+', b[k])
			}
			line(' ', b[j])
			i++
		}
		for ; i < h.toA; i++ {
			line('-', a[i])
		}
		for k := lastEqual(continued, h.fromB, h.toB) + 1; k < h.toB; k++ {
			line('+', b[k])
		}
	}
	return out.String()
}

// lastEqual returns the last line before j, and not before from, that continues one,
// or from-1.
func lastEqual(continued []int, from, j int) int {
	j--
	for j >= from && continued[j] < 0 {
		j--
	}
	return j
}

// ranges are lines of both texts, ends excluded.
type ranges struct{ fromA, toA, fromB, toB int }

// changedRanges returns the stretches that hold changes, with the equal lines around
// them.
func changedRanges(a, b []string, continued []int) (out []ranges) {
	i := 0
	change := func(fromA, toA, fromB, toB int) {
		before, after := min(around, fromA, fromB), min(around, len(a)-toA, len(b)-toB)
		r := ranges{fromA - before, toA + after, fromB - before, toB + after}
		if n := len(out) - 1; n >= 0 && r.fromB <= out[n].toB {
			out[n].toA, out[n].toB = r.toA, r.toB
			return
		}
		out = append(out, r)
	}
	begin := 0
	for j := 0; j <= len(b); j++ {
		if j < len(b) && continued[j] < 0 {
			continue
		}
		to := len(a)
		if j < len(b) {
			to = continued[j]
		}
		if to > i || j > begin {
			change(i, to, begin, j)
		}
		i, begin = to+1, j+1
	}
	return out
}

func rangeText(from, to int) string {
	switch to - from {
	case 0:
		return fmt.Sprintf("%d,0", from)
	case 1:
		return fmt.Sprintf("%d", from+1)
	}
	return fmt.Sprintf("%d,%d", from+1, to-from)
}
