package director_test

import (
	"strings"
	"testing"

	"github.com/sajou-dev/sajou-go/director"
)

// Every block of JSON on the page about episodes is one, and nothing is to be
// said about it.
func TestPage(t *testing.T) {
	page := read(t, "../docs/episodes.md")
	n := 0
	for _, block := range strings.Split(page, "```json\n")[1:] {
		block, _, _ = strings.Cut(block, "```")
		n++
		if _, diagnostics := director.Parse("docs/episodes.md", []byte(block)); len(diagnostics) > 0 {
			t.Errorf("%v\n%s", diagnostics, block)
		}
	}
	if n != 4 {
		t.Errorf("%d blocks", n)
	}
	for _, e := range []string{"episodes/interview.json", "episodes/interview-before.json"} {
		if _, diagnostics := director.Parse(e, []byte(read(t, e))); len(diagnostics) > 0 {
			t.Error(diagnostics)
		}
	}
	for _, name := range director.Genres() {
		if !strings.Contains(page, name) {
			t.Errorf("the page does not name %s", name)
		}
	}
}

// The page names every transition that rules can be on, and so does the schema.
func TestPageNamesTransitions(t *testing.T) {
	page, schema := read(t, "../docs/episodes.md"), string(director.Schema())
	for _, word := range director.CueWords() {
		if !strings.Contains(page, "`"+word+"`") || !strings.Contains(schema, `"`+word+`"`) {
			t.Errorf("the page or the schema does not name %s", word)
		}
	}
}
