package episode_test

import (
	"strings"
	"testing"

	"github.com/sajou-dev/sajou-go/director/episode"
)

// Every block of JSON in docs/episodes.md is an episode without a diagnostic.
func TestPage(t *testing.T) {
	page := read(t, "../../docs/episodes.md")
	n := 0
	for _, block := range strings.Split(page, "```json\n")[1:] {
		block, _, _ = strings.Cut(block, "```")
		n++
		if _, diagnostics := episode.Parse("docs/episodes.md", []byte(block)); len(diagnostics) > 0 {
			t.Errorf("%v\n%s", diagnostics, block)
		}
	}
	if n != 4 {
		t.Errorf("%d blocks", n)
	}
	for _, e := range []string{"../script/interview.json", "../script/interview-before.json"} {
		if _, diagnostics := episode.Parse(e, []byte(read(t, e))); len(diagnostics) > 0 {
			t.Error(diagnostics)
		}
	}
	for _, name := range episode.Genres() {
		if !strings.Contains(page, name) {
			t.Errorf("the page does not name %s", name)
		}
	}
}

// docs/episodes.md and the schema name every transition that a rule can be on.
func TestPageNamesTransitions(t *testing.T) {
	page, schema := read(t, "../../docs/episodes.md"), string(episode.Schema())
	for _, word := range episode.CueWords() {
		if !strings.Contains(page, "`"+word+"`") || !strings.Contains(schema, `"`+word+`"`) {
			t.Errorf("the page or the schema does not name %s", word)
		}
	}
}
