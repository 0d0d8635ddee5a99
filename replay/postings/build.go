package postings

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"slices"

	"github.com/cespare/xxhash/v2"
	"github.com/klauspost/compress/zstd"

	"github.com/sajou-dev/sajou-go/eventlog"
)

// TableBuilder takes in what a table is to hold, in the order of the entries. Its methods
// keep the first error of writing, which ends the build at the next [TableBuilder.Done].
type TableBuilder struct {
	// Progress, unless nil, is called with each entry that is done.
	Progress func(done eventlog.Seq)

	out     *bufio.Writer
	enc     *zstd.Encoder
	after   eventlog.Seq // the last entry of the segment before
	head    eventlog.Head
	pending []posting
	chunks  []chunk
	size    int // of chunks
}

type posting struct {
	key uint64
	seq eventlog.Seq
}

type chunk struct {
	to   eventlog.Seq
	data []byte // compressed
}

func newBuilder(out io.Writer, after eventlog.Head) (*TableBuilder, error) {
	// The encoder starts no goroutine, because only EncodeAll is used.
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false))
	return &TableBuilder{out: bufio.NewWriter(out), enc: enc, after: after.Seq, head: after}, err
}

// Add notes that a key occurs at an entry, which is behind the last one that was [Done].
//
// [Done]: TableBuilder.Done
func (b *TableBuilder) Add(key string, seq eventlog.Seq) {
	b.pending = append(b.pending, posting{keyOf(key), seq})
}

// Chunk adds bytes about the entries behind those of the chunk before, up to the entry
// that is [Done] next.
//
// [Done]: TableBuilder.Done
func (b *TableBuilder) Chunk(data []byte) {
	c := chunk{data: b.enc.EncodeAll(data, nil)}
	b.chunks = append(b.chunks, c)
	b.size += len(c.data)
}

// Done says that all about the entries up to one was added. The error is that of writing.
func (b *TableBuilder) Done(head eventlog.Head) error {
	b.head = head
	if b.Progress != nil {
		b.Progress(head.Seq)
	}
	for i := len(b.chunks) - 1; i >= 0 && b.chunks[i].to == 0; i-- {
		b.chunks[i].to = head.Seq
	}
	if len(b.pending) < segmentPostings && b.size < segmentBytes && head.Seq-b.after < segmentEntries {
		return nil
	}
	return b.flush()
}

// flush writes a segment.
func (b *TableBuilder) flush() error {
	if b.head.Seq == b.after {
		return nil
	}
	slices.SortFunc(b.pending, func(x, y posting) int { return cmp.Or(cmp.Compare(x.key, y.key), cmp.Compare(x.seq, y.seq)) })
	b.pending = slices.Compact(b.pending)
	directory, body := b.pages()
	pages := len(directory) / directoryItem
	for _, c := range b.chunks {
		directory = appendItem(directory, uint64(c.to), c.data)
		body = append(body, c.data...)
	}
	head := binary.BigEndian.AppendUint64(nil, uint64(b.after))
	head = binary.BigEndian.AppendUint64(head, uint64(b.head.Seq))
	head = append(head, b.head.Hash[:]...)
	head = binary.BigEndian.AppendUint32(head, uint32(pages))
	head = binary.BigEndian.AppendUint32(head, uint32(len(b.chunks)))
	head = binary.BigEndian.AppendUint64(head, sumOf(head, directory))
	for _, part := range [][]byte{head, directory, body} {
		if _, err := b.out.Write(part); err != nil {
			return fmt.Errorf("postings: write: %w", err)
		}
	}
	b.after, b.pending, b.chunks, b.size = b.head.Seq, b.pending[:0], b.chunks[:0], 0
	return nil
}

// pages returns the postings as pages, and their items of the directory.
func (b *TableBuilder) pages() (directory, body []byte) {
	var page bytes.Buffer
	var first uint64
	end := func() {
		if page.Len() > 0 {
			directory = appendItem(directory, first, page.Bytes())
			body = append(body, page.Bytes()...)
			page.Reset()
		}
	}
	var scratch []byte
	for list := b.pending; len(list) > 0; {
		n := 1
		for n < len(list) && n < groupEntries && list[n].key == list[0].key {
			n++
		}
		if page.Len() == 0 {
			first = list[0].key
		}
		scratch = binary.BigEndian.AppendUint64(scratch[:0], list[0].key)
		scratch = binary.AppendUvarint(scratch, uint64(n))
		last := b.after
		for _, p := range list[:n] {
			scratch = binary.AppendUvarint(scratch, uint64(p.seq-last))
			last = p.seq
		}
		page.Write(scratch)
		if list = list[n:]; page.Len() >= pageSize {
			end()
		}
	}
	end()
	return directory, body
}

func appendItem(directory []byte, of uint64, data []byte) []byte {
	directory = binary.BigEndian.AppendUint64(directory, of)
	directory = binary.BigEndian.AppendUint32(directory, uint32(len(data)))
	return binary.BigEndian.AppendUint64(directory, xxhash.Sum64(data))
}

// sumOf returns the checksum of parts that follow each other.
func sumOf(parts ...[]byte) uint64 {
	d := xxhash.New()
	for _, part := range parts {
		_, _ = d.Write(part)
	}
	return d.Sum64()
}

func header(id Identity) []byte {
	h := append([]byte(magic), id.Genesis[:]...)
	h = binary.BigEndian.AppendUint64(h, keyOf(id.What))
	return binary.BigEndian.AppendUint64(h, sumOf(h))
}
