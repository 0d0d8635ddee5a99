package director

import (
	"strings"

	"github.com/clipperhouse/uax29/v2/words"
	"golang.org/x/text/cases"
	"golang.org/x/text/language"
	"golang.org/x/text/unicode/norm"
)

// splitKeywords reads a list of keywords. Empty items are dropped: a comma too
// many must not land a beat.
func splitKeywords(criteria string) []string {
	var keywords []string
	for word := range strings.SplitSeq(criteria, ",") {
		if word = strings.TrimSpace(word); word != "" {
			keywords = append(keywords, word)
		}
	}
	return keywords
}

// keyword is a text that is looked for, as it was written and as it is compared.
type keyword struct{ written, compared string }

// keywords makes texts ready for being looked for.
func keywords(texts []string, contains bool) []keyword {
	list := make([]keyword, len(texts))
	for i, text := range texts {
		list[i] = keyword{text, fold(text)}
		if contains {
			list[i].compared = lower(text)
		}
	}
	return list
}

// prepare makes ready what responses to the episode are searched for.
func (e *Episode) prepare() {
	for i := range e.Beats {
		e.Beats[i].keywords = keywords(e.Beats[i].Keywords, e.Policy.Contains)
	}
	for i := range e.Objectives {
		e.Objectives[i].Success.keywords = keywords(e.Objectives[i].Success.Keywords, e.Policy.Contains)
	}
	for i := range e.Props {
		e.Props[i].keywords = keywords(e.Props[i].names(), e.Policy.Contains)
	}
}

// searched is a response made ready for being searched.
type searched struct {
	contains bool
	text     string
	// ends tells for each offset whether a word begins or ends there; nil if
	// keywords are looked for inside words too.
	ends []bool
}

// search makes a text ready. In word mode it is folded: letters that differ in
// case, in normal form, or in the kind of apostrophe or blank are the same.
func search(text string, contains bool) *searched {
	if contains {
		return &searched{contains: true, text: lower(text)}
	}
	s := &searched{text: fold(text)}
	s.ends = make([]bool, len(s.text)+1)
	s.ends[0] = true
	at := 0
	for tokens := words.FromString(s.text); tokens.Next(); {
		at += len(tokens.Value())
		s.ends[at] = true
	}
	return s
}

// find returns the first of some keywords that occurs, as it was written.
func (s *searched) find(keywords []keyword) (string, bool) {
	for i := range keywords {
		if s.has(keywords[i].compared) {
			return keywords[i].written, true
		}
	}
	return "", false
}

func (s *searched) has(keyword string) bool {
	if s.contains {
		return strings.Contains(s.text, keyword)
	}
	if keyword == "" {
		return false
	}
	for from := 0; ; {
		i := strings.Index(s.text[from:], keyword)
		if i < 0 {
			return false
		}
		from += i
		if s.ends[from] && s.ends[from+len(keyword)] {
			return true
		}
		from++
	}
}

// lower is what the seed's sketch calls lower: a Σ that ends a word becomes ς,
// and an İ keeps its dot.
func lower(s string) string { return cases.Lower(language.Und).String(s) }

// fold brings what a reader takes for the same word to the same bytes.
func fold(s string) string {
	s = norm.NFC.String(cases.Fold().String(norm.NFC.String(strings.ToValidUTF8(s, "\uFFFD"))))
	s = strings.ReplaceAll(s, "’", "'")
	return strings.Join(strings.Fields(s), " ")
}
