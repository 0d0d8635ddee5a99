package picture

import (
	"cmp"
	"image"
	"image/color"
	"maps"
	"slices"
)

// histogram counts the colors of images: single colors up to mostExact of them, and all
// colors by the upper five bits of their channels, with sums.
type histogram struct {
	exact map[uint32]int64 // by red, green, blue
	bins  [1 << 15]bin
}

// mostExact bounds the colors that are counted individually. A picture has a few plain
// areas and thousands of shades at their edges.
const mostExact = 1 << 15

type bin struct {
	n       int64
	r, g, b int64
}

func (h *histogram) add(img *image.RGBA) {
	if h.exact == nil {
		h.exact = map[uint32]int64{}
	}
	for i := 0; i < len(img.Pix); {
		r, g, b := img.Pix[i], img.Pix[i+1], img.Pix[i+2]
		n := int64(0)
		for ; i < len(img.Pix) && img.Pix[i] == r && img.Pix[i+1] == g && img.Pix[i+2] == b; i += 4 {
			n++
		}
		key := uint32(r)<<16 | uint32(g)<<8 | uint32(b)
		if _, known := h.exact[key]; known || len(h.exact) < mostExact {
			h.exact[key] += n
		}
		c := &h.bins[int(r>>3)<<10|int(g>>3)<<5|int(b>>3)]
		c.n += n
		c.r += n * int64(r)
		c.g += n * int64(g)
		c.b += n * int64(b)
	}
}

// palette returns at most n colors: an even cube of 64 for colors of later frames, the 80
// most frequent ones unchanged, and the rest by median cut of the counted colors.
func (h *histogram) palette(n int) []color.RGBA {
	const planes = 80
	out := make([]color.RGBA, 0, n)
	for i := range 64 {
		out = append(out, color.RGBA{uint8(i >> 4 * 85), uint8(i >> 2 & 3 * 85), uint8(i & 3 * 85), 255})
	}
	// Ties are broken by value, so that the order of the map has no effect.
	frequent := slices.SortedFunc(maps.Keys(h.exact), func(x, y uint32) int {
		return cmp.Or(cmp.Compare(h.exact[y], h.exact[x]), cmp.Compare(x, y))
	})
	for _, c := range frequent[:min(len(frequent), planes)] {
		out = append(out, color.RGBA{uint8(c >> 16), uint8(c >> 8), uint8(c), 255})
	}
	var all []bin
	for _, b := range h.bins {
		if b.n > 0 {
			all = append(all, b)
		}
	}
	boxes := [][]bin{all}
	for room := n - len(out); len(boxes) < room; {
		// The box with the widest spread is cut. The number of its pixels has little
		// weight, so that shades of the ground do not displace a rare color.
		worst, most := -1, int64(0)
		for i, b := range boxes {
			_, spread := widest(b)
			var pixels int64
			for _, c := range b {
				pixels += c.n
			}
			if score := spread * root(root(pixels)); len(b) > 1 && score > most {
				worst, most = i, score
			}
		}
		if worst < 0 {
			break
		}
		b := boxes[worst]
		channel, _ := widest(b)
		slices.SortStableFunc(b, func(x, y bin) int { return cmp.Compare(x.mean(channel), y.mean(channel)) })
		var total, sum int64
		for _, c := range b {
			total += root(c.n)
		}
		cut := 1
		for i, c := range b[:len(b)-1] {
			if sum += root(c.n); 2*sum >= total {
				cut = i + 1
				break
			}
			cut = i + 1
		}
		boxes[worst] = b[:cut:cut]
		boxes = append(boxes, b[cut:])
	}
	for _, b := range boxes {
		var sum bin
		for _, c := range b {
			sum.n, sum.r, sum.g, sum.b = sum.n+c.n, sum.r+c.r, sum.g+c.g, sum.b+c.b
		}
		if sum.n > 0 {
			out = append(out, color.RGBA{uint8(sum.mean(0)), uint8(sum.mean(1)), uint8(sum.mean(2)), 255})
		}
	}
	return out
}

// mean returns one channel of the mean color of a bin.
func (b bin) mean(channel int) int64 { return ([...]int64{b.r, b.g, b.b}[channel] + b.n/2) / b.n }

// widest returns the channel in which the colors of a box differ most.
func widest(box []bin) (channel int, spread int64) {
	for c := range 3 {
		low, high := int64(255), int64(0)
		for _, b := range box {
			low, high = min(low, b.mean(c)), max(high, b.mean(c))
		}
		if high-low > spread {
			channel, spread = c, high-low
		}
	}
	return channel, spread
}

// root returns the whole part of the square root.
func root(n int64) int64 {
	if n < 2 {
		return n
	}
	x := n
	for y := (x + 1) / 2; y < x; y = (x + n/x) / 2 {
		x = y
	}
	return x
}
