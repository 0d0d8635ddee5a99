package episode

// Occurs reports whether a keyword is found in a response.
func Occurs(keyword, response string, contains bool) bool {
	_, ok := search(response, contains).Find(keywords([]string{keyword}, contains))
	return ok
}

// Folded returns the form in which a keyword is compared.
func Folded(s string) string { return fold(s) }

// CueWords returns the transitions that rules about signals can be on.
func CueWords() []string {
	words := make([]string, len(cueWords))
	for i := range cueWords {
		words[i] = cueWords[i].word
	}
	return words
}
