package director

import "slices"

// table is a list of fixed length whose copies share their pages: a change copies one
// page and the list of pages. An episode may have thousands of beats, and a turn
// changes few of them.
type table[T any] struct {
	pages []*[pageSize]T
	n     int
}

const pageSize = 32

// newTable returns a table of n zero elements.
func newTable[T any](n int) table[T] {
	t := table[T]{make([]*[pageSize]T, (n+pageSize-1)/pageSize), n}
	zero := new([pageSize]T) // shared: edit copies a page before writing to it
	for i := range t.pages {
		t.pages[i] = zero
	}
	return t
}

func (t table[T]) len() int { return t.n }

// at returns an element. The caller must not change it.
func (t table[T]) at(i int) *T {
	return &t.pages[i/pageSize][i%pageSize]
}

// edit returns element i for writing. It copies the element's page first, so that
// copies of t do not change; the result is valid until t is copied.
func (t *table[T]) edit(i int) *T {
	page := *t.pages[i/pageSize]
	t.pages = slices.Clone(t.pages)
	t.pages[i/pageSize] = &page
	return &page[i%pageSize]
}

// tableOf returns a table of the elements of a list.
func tableOf[T any](list []T) table[T] {
	t := table[T]{n: len(list)}
	for len(list) > 0 {
		page := new([pageSize]T)
		list = list[copy(page[:], list):]
		t.pages = append(t.pages, page)
	}
	return t
}

// list returns a new list of the elements.
func (t table[T]) list() []T {
	list := make([]T, 0, t.n)
	for _, page := range t.pages {
		list = append(list, page[:min(pageSize, t.n-len(list))]...)
	}
	return list
}
