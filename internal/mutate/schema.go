package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// helpers is the file that each changed package gets. A program runs with at
// most one change, whose number is in the file "mutant" of the temporary folder or of one
// above it: the programs that a test starts get another environment, but their folders are
// below. If that file names another one, the program appends to it the number of each
// change that it passes.
const helpers = `package %s

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
)

var (
	mutantOn, mutantTrace = mutantFind(os.TempDir())
	mutantSeen            [%d]atomic.Bool
)

func mutantFind(dir string) (on int, trace *os.File) {
	data, err := os.ReadFile(filepath.Join(dir, "mutant"))
	if above := filepath.Dir(dir); err != nil && above != dir {
		return mutantFind(above)
	}
	number, name, _ := strings.Cut(string(data), " ")
	on, _ = strconv.Atoi(number)
	trace, _ = os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0)
	return on, trace
}

func mutant(n int) bool {
	if mutantTrace != nil && !mutantSeen[n].Swap(true) {
		_, _ = mutantTrace.WriteString(strconv.Itoa(n) + "\n")
	}
	return mutantOn == n
}

type mutantInts interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr
}

type mutantNumbers interface {
	mutantInts | ~float32 | ~float64
}

func mutantNumber[T mutantNumbers](on bool, v T) T {
	if on {
		return v + 1
	}
	return v
}

func mutantSub[T mutantNumbers](on bool, x, y T) T {
	if on {
		return y - x
	}
	return x - y
}

func mutantDiv[T mutantNumbers](on bool, x, y T) T {
	if on {
		return y / x
	}
	return x / y
}

func mutantMod[T mutantInts](on bool, x, y T) T {
	if on {
		return y %% x
	}
	return x %% y
}

func mutantShl[T, U mutantInts](on bool, x T, y U) T {
	if on {
		return T(y) << x
	}
	return x << y
}

func mutantShr[T, U mutantInts](on bool, x T, y U) T {
	if on {
		return T(y) >> x
	}
	return x >> y
}
`

// apply returns the file name, src with all its changes in it, each under its
// number. The lines of the result are those of src, as the compiler reports them.
func apply(name string, src []byte, changes []*change) string {
	sorted := slices.Clone(changes)
	// Outer changes stand before inner ones. Of two at the same place the one
	// that needs its operands is the inner one.
	slices.SortFunc(sorted, func(a, b *change) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(b.to, a.to), cmp.Compare(a.x.to, b.x.to))
	})
	var text func(s span, inside []*change) string
	text = func(s span, inside []*change) string {
		var b strings.Builder
		at := s.from
		for i := 0; i < len(inside); {
			c := inside[i]
			end := i + 1
			for end < len(inside) && c.contains(inside[end].span) {
				end++
			}
			inner := inside[i+1 : end]
			i = end
			b.Write(src[at:c.from])
			at = c.to
			on := fmt.Sprintf("mutant(%d)", c.number)
			if c.x == (span{}) {
				b.WriteString(c.render(on, text(c.span, inner), "", ""))
				continue
			}
			of := func(s span) string {
				return text(s, slices.DeleteFunc(slices.Clone(inner), func(c *change) bool { return !s.contains(c.span) }))
			}
			b.WriteString(c.render(on, "", of(c.x), of(c.y)))
			if strings.Contains(c.old, "\n") {
				fmt.Fprintf(&b, "/*line %s:%d*/", name, 1+strings.Count(string(src[:c.to]), "\n"))
			}
		}
		b.Write(src[at:s.to])
		return b.String()
	}
	return text(span{0, len(src)}, sorted)
}
