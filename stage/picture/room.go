package picture

import (
	"math"
	"math/bits"
)

// grid divides a picture into square cells, of which each is free or taken. It finds the
// free area next to a place in little time, however many figures there are.
//
// A cell is taken if an area touches it, and a found area lies in free cells only.
// So a found area overlaps no taken one. An area that is free, and larger than the wanted
// one by two cells in both directions, contains such cells, so then one is found.
type grid struct {
	side float64 // of a cell
	rows []row
}

// columns is the number of cells in a row. A cell is 3.75 wide in a picture of the
// natural width.
const columns = 256

// row has a bit for each of its cells. The lowest bit of the first word is the leftmost.
type row [columns / 64]uint64

func newGrid(width, height float64) *grid {
	side := width / columns
	return &grid{side: side, rows: make([]row, int(math.Ceil(height/side)))}
}

// cells returns the cells that an interval touches: from low to before high, of n.
func (g *grid) cells(from, to float64, n int) (low, high int) {
	most := float64(n)
	return int(clamp(math.Floor(from/g.side), 0, most)), int(clamp(math.Ceil(to/g.side), 0, most))
}

// take makes the cells of an area taken.
func (g *grid) take(a area) {
	left, right := g.cells(a.x, a.x+a.w, columns)
	top, bottom := g.cells(a.y, a.y+a.h, len(g.rows))
	if left >= right {
		return
	}
	var line row
	for i := left; i < right; i++ {
		line[i/64] |= 1 << (i % 64)
	}
	for y := top; y < bottom; y++ {
		for i := range line {
			g.rows[y][i] |= line[i]
		}
	}
}

// free reports whether no cell of an area is taken.
func (g *grid) free(a area) bool {
	left, right := g.cells(a.x, a.x+a.w, columns)
	top, bottom := g.cells(a.y, a.y+a.h, len(g.rows))
	for y := top; y < bottom; y++ {
		if at := g.rows[y].nextSet(left); at < right {
			return false
		}
	}
	return true
}

// find returns the free area of the size of a that costs least: a itself, or one in within.
// The cost of an area grows with its distances from a.
func (g *grid) find(a, within area, cost func(dx, dy float64) float64) (area, bool) {
	if g.free(a) {
		return a, true
	}
	wide, high := int(math.Ceil(a.w/g.side)), int(math.Ceil(a.h/g.side))
	// The areas in question begin in these cells.
	left, right := int(math.Ceil(math.Max(0, within.x)/g.side)), min(int(math.Floor((within.x+within.w)/g.side)), columns)-wide
	top, bottom := int(math.Ceil(math.Max(0, within.y)/g.side)), int(math.Floor((within.y+within.h)/g.side))-high
	bottom = min(bottom, len(g.rows)-high)
	if left > right || top > bottom {
		return a, false
	}
	best, least := a, math.Inf(1)
	try := func(x, y int) {
		c := area{float64(float64(x) * g.side), float64(float64(y) * g.side), a.w, a.h}
		if v := cost(math.Abs(c.x-a.x), math.Abs(c.y-a.y)); v < least {
			best, least = c, v
		}
	}
	column := int(clamp(math.Round(a.x/g.side), float64(left), float64(right)))
	start := int(clamp(math.Round(a.y/g.side), float64(top), float64(bottom)))
	for step := 0; ; step++ { // rows at growing distances, until all others cost more
		over, under := start-step, start+step
		if over < top && under > bottom || cost(0, float64(float64(step-1)*g.side)) > least {
			return best, least < math.Inf(1)
		}
		for i, y := range [2]int{under, over} {
			if y < top || y > bottom || i == 1 && step == 0 {
				continue
			}
			taken := g.starts(y, wide, high, left/64, (right+wide-1)/64)
			if x := taken.nextClear(column); x <= right {
				try(x, y)
			}
			if x := taken.lastClear(column); x >= left {
				try(x, y)
			}
		}
	}
}

// starts returns the cells of row y at which no free area of the given size begins. Only the
// words from first to last are looked at.
func (g *grid) starts(y, wide, high, first, last int) row {
	var taken row
	for j := y; j < y+high; j++ {
		line := &g.rows[j]
		for i := first; i <= last; i++ {
			taken[i] |= line[i]
		}
	}
	for n := 1; n < wide; { // each cell knows about itself and the n-1 cells to its right
		shift := min(n, wide-n)
		words, rest := shift/64, shift%64
		for i := first; i <= last; i++ {
			var from uint64
			if i+words <= last {
				from = taken[i+words] >> rest
			}
			if i+words+1 <= last {
				from |= taken[i+words+1] << (64 - rest) // 0 for a shift of 64
			}
			taken[i] |= from
		}
		n += shift
	}
	return taken
}

// nextSet returns the first taken cell from i on, or columns.
func (r *row) nextSet(i int) int {
	for ; i < columns; i = (i/64 + 1) * 64 {
		if w := r[i/64] >> (i % 64); w != 0 {
			return i + bits.TrailingZeros64(w)
		}
	}
	return columns
}

// nextClear returns the first free cell from i on, or columns.
func (r *row) nextClear(i int) int {
	for ; i < columns; i = (i/64 + 1) * 64 {
		if w := ^r[i/64] >> (i % 64); w != 0 {
			return i + bits.TrailingZeros64(w)
		}
	}
	return columns
}

// lastClear returns the last free cell up to i, or -1.
func (r *row) lastClear(i int) int {
	for ; i >= 0; i = i/64*64 - 1 {
		if w := ^r[i/64] << (63 - i%64); w != 0 {
			return i - bits.LeadingZeros64(w)
		}
	}
	return -1
}
