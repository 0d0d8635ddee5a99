package episode

import (
	"strings"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/words"
	"golang.org/x/text/cases"
	"golang.org/x/text/language"
	"golang.org/x/text/unicode/norm"

	"github.com/sajou-dev/sajou-go/internal/find"
)

// splitKeywords reads a list of keywords. It drops empty items: every response contains
// the empty text, so a comma too many would land the beat.
func splitKeywords(criteria string) []string {
	var keywords []string
	for word := range strings.SplitSeq(criteria, ",") {
		if word = strings.TrimSpace(word); word != "" {
			keywords = append(keywords, word)
		}
	}
	return keywords
}

// SearchedWord is a keyword, as it was written and in the form that is compared.
type SearchedWord struct{ written, compared string }

// String returns the keyword as it was written.
func (k SearchedWord) String() string { return k.written }

// keywords returns texts in the form in which responses are searched for them.
func keywords(texts []string, contains bool) []SearchedWord {
	list := make([]SearchedWord, len(texts))
	for i, text := range texts {
		list[i] = SearchedWord{text, fold(text)}
		if contains {
			list[i].compared = lower(text)
		}
	}
	return list
}

// prepare computes the search form of all keywords of the episode.
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

// FoundIn returns the first keyword of the beat that occurs in a response, as it
// was written.
func (b *Beat) FoundIn(t *SearchText) (word string, ok bool) { return t.Find(b.keywords) }

// FoundIn returns the first keyword of the objective that occurs in a response.
func (o *Objective) FoundIn(t *SearchText) (word string, ok bool) { return t.Find(o.Success.keywords) }

// FoundIn returns the first name of the prop that occurs in a response.
func (p *Prop) FoundIn(t *SearchText) (word string, ok bool) { return t.Find(p.keywords) }

// Search prepares a response for searches by the episode's policy.
func (e *Episode) Search(response string) *SearchText { return search(response, e.Policy.Contains) }

// SearchText is a response prepared for searches.
type SearchText struct {
	contains bool
	text     string
	// ends reports for each offset whether a word begins or ends there; nil if keywords
	// are found inside words too.
	ends []bool
}

// search prepares a text. Unless contains is set it is folded: letters that differ in
// case, in normal form, or in the kind of apostrophe or space are equal.
func search(text string, contains bool) *SearchText {
	if contains {
		return &SearchText{contains: true, text: lower(text)}
	}
	s := &SearchText{text: fold(text)}
	s.ends = make([]bool, len(s.text)+1)
	s.ends[0] = true
	at := 0
	for tokens := words.FromString(s.text); tokens.Next(); {
		at += len(tokens.Value())
		s.ends[at] = true
	}
	return s
}

// Find returns the first of some keywords that occurs, as it was written.
func (s *SearchText) Find(keywords []SearchedWord) (string, bool) {
	for i := range keywords {
		if s.has(keywords[i].compared) {
			return keywords[i].written, true
		}
	}
	return "", false
}

func (s *SearchText) has(keyword string) bool {
	if s.contains {
		return find.Contains(s.text, keyword)
	}
	if keyword == "" {
		return false
	}
	for from := range find.Each(s.text, keyword) {
		if s.ends[from] && s.ends[from+len(keyword)] {
			return true
		}
	}
	return false
}

// lower is the lower case of the beat contract's keyword detection: a Σ at the end of a
// word becomes ς, and an İ keeps its dot.
func lower(s string) string { return cases.Lower(language.Und).String(s) }

// fold returns the same bytes for texts that a reader takes for the same word.
func fold(s string) string {
	s = norm.NFC.String(cases.Fold().String(norm.NFC.String(strings.ToValidUTF8(s, "\uFFFD"))))
	s = strings.ReplaceAll(s, "’", "'")
	return strings.Join(strings.Fields(s), " ")
}

// names returns the names by which a response can mention a prop: its name, its slug
// with spaces, and each longer word of its name.
func (p *Prop) names() []string {
	names := []string{p.Name}
	if slug := strings.TrimSpace(strings.NewReplacer("-", " ", "_", " ").Replace(p.Slug)); slug != "" {
		names = append(names, slug)
	}
	for word := range strings.FieldsSeq(p.Name) {
		if utf8.RuneCountInString(word) >= minPropWord {
			names = append(names, word)
		}
	}
	return names
}

// minPropWord is the least length of a single word that mentions a prop, in code points.
const minPropWord = 4

// Words returns the keywords of a beat or objective, none if it is not found by
// keywords.
func (e *Episode) Words(subject Subject) []SearchedWord {
	if subject.Kind == AboutBeat {
		if i, ok := e.beats[subject.ID]; ok {
			return e.Beats[i].keywords
		}
		return nil
	}
	for i := range e.Objectives {
		if e.Objectives[i].ID == subject.ID {
			return e.Objectives[i].Success.keywords
		}
	}
	return nil
}
