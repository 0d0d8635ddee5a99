package snapshot

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"io"
	"os"
)

// The parts of a bbolt file, version 2, that the checker walks. bbolt writes
// structures of memory, so integers have the machine's byte order.
//
//	page:           | id 8 | flags 2 | count 2 | overflow 4 | … |
//	meta:           | magic 4 | version 4 | page size 4 | flags 4 | root 8 | sequence 8 | free list 8 | pages 8 | txid 8 | fnv64a 8 |
//	branch element: | pos 4 | key size 4 | page 8 |
//	leaf element:   | flags 4 | pos 4 | key size 4 | value size 4 |
//	bucket value:   | root 8 | sequence 8 | inline page if root is 0 |
//
// A position counts from the start of its element. A page with overflow n is
// n+1 pages long. A free list with count 0xFFFF has its count in the first item.
const (
	boltMagic   = 0xED0CDAED
	boltVersion = 2

	pageHeader  = 16
	elementSize = 16
	bucketSize  = 16
	metaSize    = 64

	flagBranch = 0x01
	flagLeaf   = 0x02
	flagFree   = 0x10

	flagBucket = 0x01 // of a leaf element

	// maxDepth bounds branches below branches and buckets in buckets. A tree
	// of real size stays below ten.
	maxDepth = 64
)

// checkFile reads the structure of the bbolt file at path, which bbolt itself trusts,
// and reports an inconsistency as [ErrUnusable]. It reads no values.
func checkFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // open for reading only
	info, err := f.Stat()
	if err != nil {
		return err
	}
	c := &checker{file: f, size: uint64(info.Size())}
	if err := c.check(); err != nil {
		return fmt.Errorf("%w: %v", ErrUnusable, err)
	}
	return nil
}

type checker struct {
	file     io.ReaderAt
	size     uint64 // of the file
	pageSize uint64
	pages    uint64 // all page numbers are below this
	seen     []byte // one bit for each page: it is in use
}

var order = binary.NativeEndian

func (c *checker) read(at, n uint64) ([]byte, error) {
	if at > c.size || n > c.size-at {
		return nil, fmt.Errorf("%d bytes at %d are beyond the end of the file", n, at)
	}
	b := make([]byte, n)
	_, err := c.file.ReadAt(b, int64(at))
	return b, err
}

type meta struct {
	pageSize, root, freelist, pages, txid uint64
}

// readMeta returns the meta page that starts at byte at; ok is false if it is not
// valid.
func (c *checker) readMeta(at uint64) (m meta, ok bool) {
	b, err := c.read(at, pageHeader+metaSize)
	if err != nil {
		return meta{}, false
	}
	b = b[pageHeader:]
	h := fnv.New64a()
	_, _ = h.Write(b[:metaSize-8])
	if order.Uint32(b) != boltMagic || order.Uint32(b[4:]) != boltVersion || order.Uint64(b[56:]) != h.Sum64() {
		return meta{}, false
	}
	return meta{
		pageSize: uint64(order.Uint32(b[8:])), root: order.Uint64(b[16:]),
		freelist: order.Uint64(b[32:]), pages: order.Uint64(b[40:]), txid: order.Uint64(b[48:]),
	}, true
}

func (c *checker) check() error {
	// bbolt would continue with the second meta page if the first is damaged. That
	// requires guessing the page size, so the checker refuses the store: its data
	// can be folded again.
	m, ok := c.readMeta(0)
	if !ok {
		return fmt.Errorf("the first meta page is damaged")
	}
	c.pageSize = m.pageSize
	if c.pageSize < 1024 || c.pageSize > 1<<16 || c.pageSize&(c.pageSize-1) != 0 {
		return fmt.Errorf("invalid page size %d", c.pageSize)
	}
	second, ok := c.readMeta(c.pageSize)
	switch {
	case !ok:
		return fmt.Errorf("the second meta page is damaged")
	case second.pageSize != c.pageSize:
		return fmt.Errorf("the meta pages differ")
	case second.txid > m.txid:
		m = second
	}
	if m.pages < 4 || m.pages > c.size/c.pageSize {
		return fmt.Errorf("%d pages in a file of %d bytes", m.pages, c.size)
	}
	c.pages = m.pages
	c.seen = make([]byte, m.pages/8+1)
	for id := range uint64(2) {
		c.mark(id)
	}
	if err := c.tree(m.root, 0); err != nil {
		return err
	}
	return c.freelist(m.freelist)
}

// mark marks a page as in use and reports whether it was unused before.
func (c *checker) mark(id uint64) bool {
	bit := byte(1) << (id % 8)
	old := c.seen[id/8]
	c.seen[id/8] |= bit
	return old&bit == 0
}

type page struct {
	at     uint64 // where it starts in the file
	flags  uint16
	count  uint64
	length uint64 // with overflow
}

// page reads a page's header and marks all of it as in use.
func (c *checker) page(id uint64) (page, error) {
	if id < 2 || id >= c.pages {
		return page{}, fmt.Errorf("page %d of %d", id, c.pages)
	}
	b, err := c.read(id*c.pageSize, pageHeader)
	if err != nil {
		return page{}, err
	}
	overflow := uint64(order.Uint32(b[12:]))
	if order.Uint64(b) != id || overflow >= c.pages-id {
		return page{}, fmt.Errorf("page %d is damaged", id)
	}
	for i := range overflow + 1 {
		if !c.mark(id + i) {
			return page{}, fmt.Errorf("page %d is in two places", id+i)
		}
	}
	return page{id * c.pageSize, order.Uint16(b[8:]), uint64(order.Uint16(b[10:])), (overflow + 1) * c.pageSize}, nil
}

// tree checks all pages from a root down. It terminates because it visits each page
// at most once.
func (c *checker) tree(id uint64, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("page %d is more than %d levels deep", id, maxDepth)
	}
	p, err := c.page(id)
	if err != nil {
		return err
	}
	if p.count*elementSize > p.length-pageHeader {
		return fmt.Errorf("page %d cannot hold %d elements", id, p.count)
	}
	elements, err := c.read(p.at+pageHeader, p.count*elementSize)
	if err != nil {
		return err
	}
	switch {
	case p.flags == flagLeaf:
		return c.leaf(p, elements, depth)
	case p.flags == flagBranch && p.count > 0:
		return c.branch(p, elements, depth)
	}
	return fmt.Errorf("page %d is not a page of a tree", id)
}

func (c *checker) branch(p page, elements []byte, depth int) error {
	var last []byte
	for i := range p.count {
		e := elements[i*elementSize:]
		key, err := c.element(p, i, e[0:], e[4:], nil)
		if err != nil {
			return err
		}
		if i > 0 && bytes.Compare(last, key) >= 0 {
			return fmt.Errorf("keys of page %d are out of order", p.at/c.pageSize)
		}
		last = key
		if err := c.tree(order.Uint64(e[8:]), depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) leaf(p page, elements []byte, depth int) error {
	var last []byte
	for i := range p.count {
		e := elements[i*elementSize:]
		key, err := c.element(p, i, e[4:], e[8:], e[12:])
		if err != nil {
			return err
		}
		if len(key) == 0 || i > 0 && bytes.Compare(last, key) >= 0 {
			return fmt.Errorf("keys of the leaf at %d are out of order", p.at)
		}
		last = key
		switch order.Uint32(e) {
		case 0:
		case flagBucket:
			at := p.at + pageHeader + i*elementSize + uint64(order.Uint32(e[4:])) + uint64(len(key))
			if err := c.bucket(at, uint64(order.Uint32(e[12:])), depth); err != nil {
				return err
			}
		default:
			return fmt.Errorf("the leaf at %d has an unknown element", p.at)
		}
	}
	return nil
}

// element checks that the key and value of p's element i lie behind all
// elements and inside p, and returns the key.
func (c *checker) element(p page, i uint64, pos, keySize, valueSize []byte) ([]byte, error) {
	start := i*elementSize + uint64(order.Uint32(pos))
	n := uint64(order.Uint32(keySize))
	end := start + n
	if valueSize != nil {
		end += uint64(order.Uint32(valueSize))
	}
	if start < p.count*elementSize || end > p.length-pageHeader {
		return nil, fmt.Errorf("an element of the page at %d lies outside it", p.at)
	}
	return c.read(p.at+pageHeader+start, n)
}

func (c *checker) bucket(at, n uint64, depth int) error {
	if n < bucketSize {
		return fmt.Errorf("the bucket at %d is cut", at)
	}
	b, err := c.read(at, min(n, bucketSize+pageHeader))
	if err != nil {
		return err
	}
	if root := order.Uint64(b); root != 0 {
		return c.tree(root, depth+1)
	}
	if n < bucketSize+pageHeader {
		return fmt.Errorf("the bucket at %d is cut", at)
	}
	// The bucket is inline: the value holds its only leaf.
	b = b[bucketSize:]
	p := page{at + bucketSize, order.Uint16(b[8:]), uint64(order.Uint16(b[10:])), n - bucketSize}
	if p.flags != flagLeaf || p.count*elementSize > p.length-pageHeader || depth > maxDepth {
		return fmt.Errorf("the bucket at %d is damaged", at)
	}
	elements, err := c.read(p.at+pageHeader, p.count*elementSize)
	if err != nil {
		return err
	}
	return c.leaf(p, elements, depth+1)
}

// freelist checks that every free page exists, is listed once and is in no tree.
// bbolt would overwrite a page that is listed as free by mistake.
func (c *checker) freelist(id uint64) error {
	p, err := c.page(id)
	if err != nil {
		return fmt.Errorf("free list: %v", err)
	}
	at, count, room := p.at+pageHeader, p.count, (p.length-pageHeader)/8
	if p.flags != flagFree {
		return fmt.Errorf("page %d is not a free list", id)
	}
	if count == 0xFFFF {
		b, err := c.read(at, 8)
		if err != nil {
			return err
		}
		at, count, room = at+8, order.Uint64(b), room-1
	}
	if count > room {
		return fmt.Errorf("a free list of %d pages in %d bytes", count, p.length)
	}
	ids, err := c.read(at, count*8)
	if err != nil {
		return err
	}
	for ; len(ids) > 0; ids = ids[8:] {
		if id := order.Uint64(ids); id < 2 || id >= c.pages || !c.mark(id) {
			return fmt.Errorf("page %d cannot be free", id)
		}
	}
	return nil
}
