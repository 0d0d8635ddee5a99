package picture

import (
	"cmp"
	"encoding/binary"
	"hash"
	"hash/adler32"
	"math/bits"
	"slices"
)

// deflater compresses bytes that are mostly zeros, as the rows of a picture without the rows
// above are, to the zlib format (RFC 1950 and 1951). It looks for runs of zeros and for no
// other repetition. That takes a third of the time of a compressor that does.
type deflater struct {
	out    []byte
	acc    uint64 // bits that are not in out yet
	held   uint   // their number
	tokens []uint16
	sum    hash.Hash32
}

// A token is a byte, or 256 and the length of a repetition of the byte before it.
const (
	leastRun   = 3
	mostRun    = 258
	repeat     = 256
	mostTokens = 1 << 16 // in a block, which has its own codes
	endOfBlock = 256     // a symbol
	symbols    = 286
	longest    = 15 // bits of a code
)

// runSymbol returns the symbol of a length, and the bits that follow its code.
func runSymbol(length int) (symbol int, extra uint64, width uint) {
	if length == mostRun {
		return symbols - 1, 0, 0
	}
	n := uint(length - leastRun)
	if n < 8 {
		return 257 + int(n), 0, 0
	}
	width = uint(bits.Len(n)) - 3
	return 257 + int(width<<2+n>>width), uint64(n & (1<<width - 1)), width
}

// begin starts a stream after the bytes of out.
func (d *deflater) begin(out []byte) {
	*d = deflater{out: append(out, 0x78, 0x01), tokens: d.tokens[:0], sum: adler32.New()}
}

// write compresses some bytes.
func (d *deflater) write(p []byte) {
	_, _ = d.sum.Write(p) // never fails
	tokens := slices.Grow(d.tokens, len(p))
	for i := 0; i < len(p); {
		if p[i] != 0 {
			tokens = append(tokens, uint16(p[i]))
			i++
			continue
		}
		from := i
		for i++; i+8 <= len(p) && binary.LittleEndian.Uint64(p[i:]) == 0; {
			i += 8
		}
		for i < len(p) && p[i] == 0 {
			i++
		}
		tokens = append(tokens, 0)
		left := i - from - 1
		for ; left >= leastRun; left -= min(left, mostRun) {
			tokens = append(tokens, uint16(repeat+min(left, mostRun)))
		}
		for range left {
			tokens = append(tokens, 0)
		}
	}
	d.tokens = tokens
	if len(d.tokens) >= mostTokens {
		d.block(0)
	}
}

// end finishes the stream and returns it.
func (d *deflater) end() []byte {
	d.block(1)
	for d.held > 0 {
		d.out = append(d.out, byte(d.acc))
		d.acc >>= 8
		d.held -= min(d.held, 8)
	}
	return d.sum.Sum(d.out)
}

// put appends bits, at most 32.
func (d *deflater) put(v uint64, width uint) {
	d.acc |= v << d.held
	if d.held += width; d.held >= 32 {
		d.out = binary.LittleEndian.AppendUint32(d.out, uint32(d.acc))
		d.acc >>= 32
		d.held -= 32
	}
}

// block writes the tokens with codes of their own.
func (d *deflater) block(final uint64) {
	var counts [symbols]int
	var tokens [repeat + mostRun + 1]int
	for _, t := range d.tokens {
		tokens[t]++
	}
	for t, n := range tokens {
		if t < repeat {
			counts[t] += n
		} else if n > 0 {
			symbol, _, _ := runSymbol(t - repeat)
			counts[symbol] += n
		}
	}
	counts[endOfBlock] = 1
	widths := codeWidths(counts[:])
	codes := canonical(widths)

	d.put(final, 1)
	d.put(2, 2)           // the block has its own codes
	d.put(symbols-257, 5) // lengths of codes of symbols
	d.put(0, 5)           // and of one distance, which is 1
	d.put(19-4, 4)
	// The lengths 0 to 15 have a code of 4 bits each; repetitions of lengths have none.
	for _, l := range [19]int{16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15} {
		if l < 16 {
			d.put(4, 3)
		} else {
			d.put(0, 3)
		}
	}
	for _, w := range append(widths, 1) {
		d.put(uint64(bits.Reverse8(uint8(w))>>4), 4)
	}
	var table [len(tokens)]struct {
		bits  uint64
		width uint
	}
	for t, n := range tokens {
		if n == 0 {
			continue
		}
		if t < repeat {
			table[t].bits, table[t].width = codes[t], uint(widths[t])
			continue
		}
		symbol, extra, width := runSymbol(t - repeat)
		table[t].bits = codes[symbol] | extra<<widths[symbol]
		table[t].width = uint(widths[symbol]) + width + 1 // the code of the distance is 0
	}
	acc, held, out := d.acc, d.held, d.out
	for _, t := range d.tokens { // as put does
		code := &table[t]
		acc |= code.bits << held
		if held += code.width; held >= 32 {
			out = binary.LittleEndian.AppendUint32(out, uint32(acc))
			acc >>= 32
			held -= 32
		}
	}
	d.acc, d.held, d.out = acc, held, out
	d.put(codes[endOfBlock], uint(widths[endOfBlock]))
	d.tokens = d.tokens[:0]
}

// codeWidths returns the lengths of Huffman codes for symbols of the given counts, at most
// 15 bits, and 0 for symbols that do not occur.
func codeWidths(counts []int) []int {
	type node struct{ count, left, right int } // of a symbol, left is it and right is -1
	for {
		var nodes []node
		for s, n := range counts {
			if n > 0 {
				nodes = append(nodes, node{n, s, -1})
			}
		}
		widths := make([]int, len(counts))
		leaves := len(nodes)
		if leaves == 1 {
			widths[nodes[0].left] = 1
			return widths
		}
		slices.SortFunc(nodes, func(a, b node) int { return cmp.Or(cmp.Compare(a.count, b.count), cmp.Compare(a.left, b.left)) })
		// Inner nodes come in the order of their counts, so the two rarest nodes are the
		// first of one list or the other.
		leaf, inner := 0, leaves
		rarest := func() int {
			if inner == len(nodes) || leaf < leaves && nodes[leaf].count <= nodes[inner].count {
				leaf++
				return leaf - 1
			}
			inner++
			return inner - 1
		}
		for range leaves - 1 {
			a, b := rarest(), rarest()
			nodes = append(nodes, node{nodes[a].count + nodes[b].count, a, b})
		}
		depths := make([]int, len(nodes))
		most := 0
		for i := len(nodes) - 1; i >= 0; i-- {
			if n := nodes[i]; n.right >= 0 {
				depths[n.left], depths[n.right] = depths[i]+1, depths[i]+1
			} else {
				widths[n.left] = depths[i]
				most = max(most, depths[i])
			}
		}
		if most <= longest {
			return widths
		}
		for s, n := range counts { // flatter counts have shorter codes
			if n > 0 {
				counts[s] = n/2 + 1
			}
		}
	}
}

// canonical returns the codes of the given lengths, with the first bit lowest.
func canonical(widths []int) []uint64 {
	var next [longest + 2]uint16
	for _, w := range widths {
		if w > 0 {
			next[w+1]++
		}
	}
	for w := 1; w < len(next); w++ {
		next[w] = (next[w] + next[w-1]) << 1
	}
	codes := make([]uint64, len(widths))
	for s, w := range widths {
		if w > 0 {
			codes[s] = uint64(bits.Reverse16(next[w]) >> (16 - w))
			next[w]++
		}
	}
	return codes
}
