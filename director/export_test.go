package director

// Occurs reports whether a keyword is found in a response.
func Occurs(keyword, response string, contains bool) bool {
	_, ok := search(response, contains).find(keywords([]string{keyword}, contains))
	return ok
}

// Folded returns what a keyword is compared as.
func Folded(s string) string { return fold(s) }

// Table is a table of numbers.
type Table = table[int]

// TableOf makes a table of a list, TableList a list of a table, TableSet one
// that differs in an element.
func TableOf(list []int) Table   { return tableOf(list) }
func TableList(t Table) []int    { return t.list() }
func TableAt(t Table, i int) int { return *t.at(i) }
func TableSet(t Table, i, v int) Table {
	*t.edit(i) = v
	return t
}
