package director_test

import (
	"strings"
	"testing"

	"github.com/sajou-dev/sajou-go/director"
)

// The first word of an answer decides, without the punctuation around it.
func TestParseVerdict(t *testing.T) {
	for raw, want := range map[string]director.Finding{
		"YES": director.Yes, "yes.": director.Yes, " **Yes** ": director.Yes, "- YES": director.Yes, "YES\nbecause": director.Yes,
		"Yes—she asks": director.Yes, "no,not yet": director.No, "– YES": director.Yes,
		"No": director.No, "\"no\", it did not": director.No,
		"": director.Unclear, "...": director.Unclear, "Yesterday": director.Unclear, "The answer is YES": director.Unclear,
		"YES/NO": director.Unclear, "N/A": director.Unclear, "oui": director.Unclear,
	} {
		if got := director.ParseVerdict(raw); got != want {
			t.Errorf("%q: %v, want %v", raw, got, want)
		}
	}
}

// The anchor is the first sentence, at most 100 characters of it.
func TestAnchor(t *testing.T) {
	for situation, want := range map[string]string{
		"":                           "",
		"A room. Another.":           "A room",
		"Version 1.5 of a room! Yes": "Version 1.5 of a room",
		"夜の部屋。雨が降る。":                 "夜の部屋",
		strings.Repeat("é", 150):     strings.Repeat("é", 100),
	} {
		var s director.State
		e := parse(t, `{"situation": "`+situation+`"}`)
		play(t, &s, must(s.Start(e, director.Opening{})))
		if g, err := s.Guidance(1); err != nil || g.Anchor != want {
			t.Errorf("%q: %q, %v", situation, g.Anchor, err)
		}
	}
}
