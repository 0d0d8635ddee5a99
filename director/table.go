package director

import "slices"

// table is a list of fixed length of which copies share what they have in
// common: a change copies one page and the list of pages. A turn changes few
// beats of perhaps thousands.
type table[T any] struct {
	pages []*[pageSize]T
	n     int
}

const pageSize = 32

// newTable returns a table of n zero elements.
func newTable[T any](n int) table[T] {
	t := table[T]{make([]*[pageSize]T, (n+pageSize-1)/pageSize), n}
	zero := new([pageSize]T) // nobody writes to a page that he did not copy
	for i := range t.pages {
		t.pages[i] = zero
	}
	return t
}

func (t table[T]) len() int { return t.n }

// at returns an element, which must not be changed.
func (t table[T]) at(i int) *T {
	return &t.pages[i/pageSize][i%pageSize]
}

// edit makes t a table that differs from its copies in element i, and returns
// that element to be written to, until t is copied.
func (t *table[T]) edit(i int) *T {
	page := *t.pages[i/pageSize]
	t.pages = slices.Clone(t.pages)
	t.pages[i/pageSize] = &page
	return &page[i%pageSize]
}

// tableOf makes a table of a list.
func tableOf[T any](list []T) table[T] {
	t := table[T]{n: len(list)}
	for len(list) > 0 {
		page := new([pageSize]T)
		list = list[copy(page[:], list):]
		t.pages = append(t.pages, page)
	}
	return t
}

// list returns the elements as a list of its own.
func (t table[T]) list() []T {
	list := make([]T, 0, t.n)
	for _, page := range t.pages {
		list = append(list, page[:min(pageSize, t.n-len(list))]...)
	}
	return list
}
