package director

// Occurs reports whether a keyword is found in a response.
func Occurs(keyword, response string, contains bool) bool {
	return search(response, contains).has(keyword)
}

// Folded returns what a keyword is compared as.
func Folded(s string) string { return fold(s) }
