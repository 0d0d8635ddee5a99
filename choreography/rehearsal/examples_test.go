package rehearsal_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/choreography/language"
	"github.com/sajou-dev/sajou-go/choreography/rehearsal"
)

// The examples of the documentation give what they say, an author who writes
// them is told of nothing wrong, and the page that explains the language links
// to each.
func TestExamplesOfTheDocumentation(t *testing.T) {
	page, err := os.ReadFile("../../docs/choreography.md")
	require.NoError(t, err)
	files, err := filepath.Glob("../../docs/examples/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	ran := 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		var raw struct{ Definitions, Script json.RawMessage }
		if err := json.Unmarshal(data, &raw); err != nil || raw.Script == nil {
			continue // an example of something else
		}
		ran++
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			if link := "](examples/" + filepath.Base(file) + ")"; !bytes.Contains(page, []byte(link)) {
				t.Errorf("docs/choreography.md has no link %s", link)
			}
			if _, diagnostics := language.Parse(file, raw.Definitions); len(diagnostics) > 0 {
				t.Error(diagnostics.String())
			}
			scenarios, diagnostics := rehearsal.Parse(file, data)
			if len(diagnostics) > 0 {
				t.Fatal(diagnostics)
			}
			for _, s := range scenarios {
				if v := rehearsal.Compare(rehearsal.Run(s), s.Expected); !s.Judged || len(s.Expected) == 0 || !v.Same {
					t.Errorf("%s: %s", s.ID, v.Difference)
				}
			}
		})
	}
	if links := strings.Count(string(page), "](examples/"); links != ran {
		t.Errorf("docs/choreography.md links to %d examples, there are %d", links, ran)
	}
}

// Every block of JSON in the reference page is a file without a fault.
func TestReferencePageParses(t *testing.T) {
	page, err := os.ReadFile("../../docs/choreography.md")
	require.NoError(t, err)
	blocks := 0
	for part := range strings.SplitSeq(string(page), "```json\n") {
		block, _, ok := strings.Cut(part, "```")
		if !ok || blocks == 0 && strings.HasPrefix(part, "# ") {
			continue
		}
		blocks++
		if _, diagnostics := language.Parse("choreography.md", []byte(block)); len(diagnostics) > 0 {
			t.Errorf("%v in\n%s", diagnostics.String(), block)
		}
	}
	if blocks < 10 {
		t.Errorf("only %d blocks: the test looks for the wrong thing", blocks)
	}
}
