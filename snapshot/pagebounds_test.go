package snapshot_test

import (
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/snapshot"
)

const (
	pageSize = 1024
	room     = pageSize - 16 // of a page behind its header

	branchPage, leafPage, freePage = 1, 2, 16
)

// element is an element of a page. Its key and value lie behind all elements, one
// after the other, unless pos is set.
type element struct {
	flags      uint32
	key, value string
	child      uint64 // of a branch
	pos        uint32 // from the start of the element
}

// body returns a page's elements with their keys and values, in the layout of pages.go.
func body(flags uint16, elements ...element) string {
	var heads, rest []byte
	for i, e := range elements {
		pos := uint32(16*(len(elements)-i) + len(rest))
		if e.pos != 0 {
			pos = e.pos
		}
		if flags == branchPage {
			heads = order.AppendUint32(heads, pos)
			heads = order.AppendUint32(heads, uint32(len(e.key)))
			heads = order.AppendUint64(heads, e.child)
		} else {
			heads = order.AppendUint32(heads, e.flags)
			heads = order.AppendUint32(heads, pos)
			heads = order.AppendUint32(heads, uint32(len(e.key)))
			heads = order.AppendUint32(heads, uint32(len(e.value)))
		}
		rest = append(append(rest, e.key...), e.value...)
	}
	return string(heads) + string(rest)
}

func header(id uint64, flags, count uint16, overflow uint32) string {
	b := order.AppendUint64(nil, id)
	b = order.AppendUint16(order.AppendUint16(b, flags), count)
	return string(order.AppendUint32(b, overflow))
}

// leaf returns the contents of page id, and branch those of page 3.
func leaf(id uint64, elements ...element) string {
	return header(id, leafPage, uint16(len(elements)), 0) + body(leafPage, elements...)
}

func branch(elements ...element) string {
	return header(3, branchPage, uint16(len(elements)), 0) + body(branchPage, elements...)
}

// inline returns the value of a bucket that holds its only leaf.
func inline(elements ...element) string {
	return string(make([]byte, 16)) + header(0, leafPage, uint16(len(elements)), 0) + body(leafPage, elements...)
}

// at returns the value of a bucket whose root is a page.
func at(root uint64) string { return string(order.AppendUint64(nil, root)) + string(make([]byte, 8)) }

func free(id uint64, ids ...uint64) string {
	s := header(id, freePage, uint16(len(ids)), 0)
	for _, id := range ids {
		s += string(order.AppendUint64(nil, id))
	}
	return s
}

func metaOf(root, freelist, pages, txid uint64) string {
	b := order.AppendUint32(order.AppendUint32(nil, 0xED0CDAED), 2)
	b = order.AppendUint32(order.AppendUint32(b, pageSize), 0)
	for _, n := range []uint64{root, 0, freelist, pages, txid} {
		b = order.AppendUint64(b, n)
	}
	h := fnv.New64a()
	_, _ = h.Write(b)
	return string(make([]byte, 16)) + string(order.AppendUint64(b, h.Sum64()))
}

// fileOf returns a file of both meta pages, a free list as page 2, the root as page
// 3 and the further pages. The second meta page is the older one.
func fileOf(freelist, root string, more ...string) string {
	pages := file(append([]string{freelist, root}, more...)...)
	n := uint64(2 + len(pages)/pageSize)
	return file(metaOf(3, 2, n, 2), metaOf(99, 99, n, 1), pages)
}

// file returns pages, each filled up with zeros.
func file(pages ...string) string {
	var b strings.Builder
	for _, p := range pages {
		b.WriteString(p)
		b.WriteString(strings.Repeat("\x00", max(pageSize-len(p), (pageSize-len(p)%pageSize)%pageSize)))
	}
	return b.String()
}

func wide(n int) string { return strings.Repeat("k", n) }

// nested returns a bucket with n buckets in each other below it, all inline.
func nested(n int) string {
	if n == 0 {
		return inline()
	}
	return inline(element{flags: 1, key: "a", value: nested(n - 1)})
}

// Each check of the structure holds to the byte: the last valid file is accepted, and
// the first invalid one is refused for that reason.
func TestPageBounds(t *testing.T) {
	none := free(2)
	dup := func(n int) []element {
		all := make([]element, n)
		for i := range all {
			all[i].child = 4
		}
		return all
	}
	deep := nested(64)
	long := func(overflow uint32, elements ...element) string {
		return header(3, leafPage, uint16(len(elements)), overflow) + body(leafPage, elements...)
	}
	chain := func(n int) (pages []string) { // n leaves, each in a bucket of the one before
		for i := range uint64(n) {
			var in []element
			if i < uint64(n)-1 {
				in = append(in, element{flags: 1, key: "b", value: at(4 + i)})
			}
			pages = append(pages, leaf(3+i, in...))
		}
		return pages
	}
	long63, long64 := chain(65), chain(66)
	ids := func(n int) string {
		var all []uint64
		for i := range uint64(n) {
			all = append(all, 4+i)
		}
		return free(2, all...)
	}
	blank := make([]string, 130)
	counted := func(n uint64, ids ...uint64) string {
		s := header(2, freePage, 0xFFFF, 0) + string(order.AppendUint64(nil, n))
		for _, id := range ids {
			s += string(order.AppendUint64(nil, id))
		}
		return s
	}
	manyIDs := make([]uint64, 126)
	for i := range manyIDs {
		manyIDs[i] = uint64(4 + i)
	}
	for _, tt := range []struct {
		name, file, want string // want is part of the error, empty for none
	}{
		{"an empty leaf", fileOf(none, leaf(3)), ""},
		{"three pages", file(metaOf(2, 2, 3, 2), metaOf(2, 2, 3, 1), none), "3 pages"},
		{"a page too many", file(metaOf(3, 2, 5, 2), metaOf(3, 2, 5, 1), none, leaf(3)), "5 pages"},
		{"a shorter tree than file", file(metaOf(3, 2, 4, 2), metaOf(3, 2, 4, 1), none, leaf(3), "beyond"), ""},
		{"the second meta page is newer", file(metaOf(99, 2, 4, 1), metaOf(3, 2, 4, 2), none, leaf(3)), ""},
		{"meta pages as old as each other", file(metaOf(3, 2, 4, 2), metaOf(99, 2, 4, 2), none, leaf(3)), ""},
		{"no second meta page", file(metaOf(3, 2, 4, 2), "", none, leaf(3)), "second meta page is damaged"},
		{"half of a meta page", file(metaOf(3, 2, 4, 2))[:79], "first meta page is damaged"},

		{"a root that is a meta page", file(metaOf(1, 2, 4, 2), metaOf(3, 2, 4, 1), none, leaf(3)), "page 1 of 4"},
		{"a root beyond", file(metaOf(4, 2, 4, 2), metaOf(3, 2, 4, 1), none, leaf(3)), "page 4 of 4"},
		{"another page's number", fileOf(none, leaf(4)), "page 3 is damaged"},
		{"overflow to the end", fileOf(none, long(1), "rest"), ""},
		{"overflow beyond the end", fileOf(none, long(2), "rest"), "page 3 is damaged"},
		{"overflow over a free page", fileOf(free(2, 4), long(1), "rest"), "page 4 cannot be free"},
		{"a free list as tree", file(metaOf(2, 3, 4, 2), metaOf(2, 3, 4, 1), none, free(3)), "page 2 is not a page of a tree"},
		{"an empty branch", fileOf(none, branch()), "page 3 is not a page of a tree"},

		{"elements up to the end", fileOf(none, branch(dup(63)...), leaf(4)), "out of order"},
		{"an element too many", fileOf(none, header(3, branchPage, 64, 0)), "cannot hold 64"},
		{"a key up to the end", fileOf(none, leaf(3, element{key: wide(room - 16)})), ""},
		{"a key beyond the end", fileOf(none, header(3, leafPage, 1, 0)+body(leafPage, element{key: wide(room - 15)})[:room]), "lies outside"},
		{"a value up to the end", fileOf(none, leaf(3, element{key: "k", value: wide(room - 17)})), ""},
		{"a value beyond the end", fileOf(none, header(3, leafPage, 1, 0)+body(leafPage, element{key: "k", value: wide(room - 16)})[:room]), "lies outside"},
		{"a branch's key up to the end", fileOf(none, branch(element{key: wide(room - 16), child: 4}), leaf(4)), ""},
		{"a key in the elements", fileOf(none, leaf(3, element{key: "k", pos: 15})), "lies outside"},
		{"a second key in the elements", fileOf(none, leaf(3, element{key: "a"}, element{key: "b", pos: 15})), "lies outside"},
		{"no key", fileOf(none, leaf(3, element{value: "v"})), "out of order"},
		{"no key in a branch", fileOf(none, branch(element{child: 4}, element{key: "b", child: 5}), leaf(4), leaf(5)), ""},
		{"keys in order", fileOf(none, leaf(3, element{key: "a"}, element{key: "b"}, element{key: "c"})), ""},
		{"equal keys", fileOf(none, leaf(3, element{key: "a"}, element{key: "a"})), "out of order"},
		{"a third key before the second", fileOf(none, leaf(3, element{key: "a"}, element{key: "c"}, element{key: "b"})), "out of order"},
		{"a third key before the second in a branch", fileOf(none, branch(element{key: "a", child: 4}, element{key: "c", child: 5}, element{key: "b", child: 6}), leaf(4), leaf(5), leaf(6)), "keys of page 3 are out of order"},
		{"a child twice", fileOf(none, branch(element{key: "a", child: 4}, element{key: "b", child: 4}), leaf(4)), "page 4 is in two places"},
		{"an unknown element", fileOf(none, leaf(3, element{flags: 2, key: "a"})), "unknown element"},
		{"a child beyond", fileOf(none, branch(element{key: "a", child: 5}), leaf(4)), "page 5 of 5"},

		{"a bucket of a page", fileOf(none, leaf(3, element{flags: 1, key: "a", value: at(4)}), leaf(4)), ""},
		{"a second bucket of a page", fileOf(none, leaf(3, element{key: "a", value: "xyz"}, element{flags: 1, key: "bb", value: at(4)}), leaf(4)), ""},
		{"a cut bucket", fileOf(none, leaf(3, element{flags: 1, key: "a", value: at(4)[:15]}), leaf(4)), "is cut"},
		{"an inline bucket", fileOf(none, leaf(3, element{flags: 1, key: "a", value: inline()})), ""},
		{"a cut inline bucket", fileOf(none, leaf(3, element{flags: 1, key: "a", value: inline()[:31]})), "is cut"},
		{"keys in an inline bucket", fileOf(none, leaf(3, element{flags: 1, key: "a", value: inline(element{key: "k", value: "v"}, element{key: "l"})})), ""},
		{"equal keys in an inline bucket", fileOf(none, leaf(3, element{flags: 1, key: "a", value: inline(element{key: "k"}, element{key: "k"})})), "out of order"},
		{"a key beyond an inline bucket", fileOf(none, leaf(3, element{flags: 1, key: "a", value: inline(element{key: "k"})[:48]})), "lies outside"},
		{"no room in an inline bucket", fileOf(none, leaf(3, element{flags: 1, key: "a", value: inline(element{key: "k"})[:47]})), "is damaged"},
		{"an inline branch", fileOf(none, leaf(3, element{flags: 1, key: "a", value: string(make([]byte, 16)) + header(0, branchPage, 0, 0)})), "is damaged"},
		{"inline buckets of 64 levels", fileOf(none, long(4, element{flags: 1, key: "a", value: deep}), wide(pageSize)), ""},
		{"inline buckets of 65 levels", fileOf(none, long(4, element{flags: 1, key: "a", value: nested(65)}), wide(pageSize)), "is damaged"},
		{"buckets of 64 levels", fileOf(none, long63[0], long63[1:]...), ""},
		{"buckets of 65 levels", fileOf(none, long64[0], long64[1:]...), "more than 64 levels"},

		{"a free page", fileOf(free(2, 4), leaf(3), ""), ""},
		{"two free pages", fileOf(free(2, 5, 4), leaf(3), "", ""), ""},
		{"a free page twice", fileOf(free(2, 4, 4), leaf(3), ""), "page 4 cannot be free"},
		{"a free page beyond", fileOf(free(2, 4), leaf(3)), "page 4 cannot be free"},
		{"a free meta page", fileOf(free(2, 1), leaf(3)), "page 1 cannot be free"},
		{"a free root", fileOf(free(2, 3), leaf(3)), "page 3 cannot be free"},
		{"a free list that is a leaf", fileOf(leaf(2), leaf(3)), "not a free list"},
		{"a free list beyond", file(metaOf(3, 4, 4, 2), metaOf(3, 4, 4, 1), none, leaf(3)), "free list: page 4 of 4"},
		{"a full free list", fileOf(ids(126), leaf(3), blank...), ""},
		{"a free list too long", fileOf(header(2, freePage, 127, 0), leaf(3), blank...), "a free list of 127 pages"},
		{"a counted free list", fileOf(counted(2, 4, 5), leaf(3), "", ""), ""},
		{"a counted free list with a used page", fileOf(counted(2, 4, 3), leaf(3), ""), "page 3 cannot be free"},
		{"a full counted free list", fileOf(counted(125, manyIDs[:125]...), leaf(3), blank...), ""},
		{"a counted free list too long", fileOf(counted(126, manyIDs[:125]...), leaf(3), blank...), "a free list of 126 pages"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "s.db")
			require.NoError(t, os.WriteFile(path, []byte(tt.file), 0o600))
			err := snapshot.CheckFile(path)
			if tt.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, snapshot.ErrUnusable)
			require.ErrorContains(t, err, tt.want)
		})
	}
}

// A meta page is valid only with its magic number, its version and its checksum.
func TestMetaFields(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	for page, name := range []string{"first", "second"} {
		for n := range 64 {
			damaged := []byte(fileOf(free(2), leaf(3)))
			damaged[page*pageSize+16+n] ^= 1
			require.NoError(t, os.WriteFile(path, damaged, 0o600))
			require.ErrorContains(t, snapshot.CheckFile(path), fmt.Sprintf("the %s meta page is damaged", name), "byte %d", n)
		}
		for n, field := range []string{"magic", "version"} {
			other := []byte(fileOf(free(2), leaf(3)))
			meta := other[page*pageSize+16:][:64]
			meta[4*n]++
			h := fnv.New64a()
			_, _ = h.Write(meta[:56])
			order.PutUint64(meta[56:], h.Sum64())
			require.NoError(t, os.WriteFile(path, other, 0o600))
			require.ErrorContains(t, snapshot.CheckFile(path), fmt.Sprintf("the %s meta page is damaged", name), field)
		}
	}
}

// A page has a power of two bytes, from 1 KiB to 64 KiB.
func TestPageSizeBounds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	for size, valid := range map[uint32]bool{
		0: false, 1: false, 512: false, 1023: false, 1024: true, 1025: false, 1026: false, 1536: false, 2048: true, 3000: false,
		1 << 15: true, 1<<16 - 2: false, 1 << 16: true, 1<<16 + 1: false, 1 << 17: false, 1 << 31: false,
	} {
		data := []byte(fileOf(free(2), leaf(3)))
		meta := data[16:][:64]
		order.PutUint32(meta[8:], size)
		h := fnv.New64a()
		_, _ = h.Write(meta[:56])
		order.PutUint64(meta[56:], h.Sum64())
		require.NoError(t, os.WriteFile(path, data, 0o600))
		err := snapshot.CheckFile(path)
		switch {
		case size == pageSize:
			require.NoError(t, err)
		case valid: // the size is, but the pages of the file have another
			require.ErrorContainsf(t, err, "the second meta page is damaged", "%d bytes", size)
		default:
			require.ErrorContainsf(t, err, fmt.Sprintf("invalid page size %d", size), "%d bytes", size)
		}
	}
}
