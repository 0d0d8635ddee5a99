package episode_test

import (
	"strings"
	"testing"

	"github.com/sajou-dev/sajou-go/authored"
	"github.com/sajou-dev/sajou-go/director/episode"
)

// Every block of JSON in docs/episodes.md is an episode without a diagnostic, except that
// the choice points of an episode are deprecated.
func TestPage(t *testing.T) {
	page := read(t, "../../docs/episodes.md")
	n := 0
	for _, block := range strings.Split(page, "```json\n")[1:] {
		block, _, _ = strings.Cut(block, "```")
		n++
		want := ""
		if strings.Contains(block, `"choice_points"`) {
			want = "choice_points of an episode are deprecated"
		}
		if _, diagnostics := episode.Parse("docs/episodes.md", []byte(block)); !only(diagnostics, want) {
			t.Errorf("%v\n%s", diagnostics, block)
		}
	}
	if n != 4 {
		t.Errorf("%d blocks", n)
	}
	for e, want := range map[string]string{
		"../script/interview.json":        `"salary" is found as a whole word`,
		"../script/interview-before.json": "choice_points of an episode are deprecated",
	} {
		if _, diagnostics := episode.Parse(e, []byte(read(t, e))); !only(diagnostics, want) {
			t.Error(diagnostics)
		}
	}
	for _, name := range episode.Genres() {
		if !strings.Contains(page, name) {
			t.Errorf("the page does not name %s", name)
		}
	}
}

// only reports whether diagnostics are one warning that begins with want, or none if that
// is empty.
func only(diagnostics authored.Diagnostics, want string) bool {
	if want == "" {
		return len(diagnostics) == 0
	}
	return len(diagnostics) == 1 && diagnostics[0].Severity == authored.SeverityWarning && strings.HasPrefix(diagnostics[0].Message, want)
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
