package golden

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Story says what the steps of one story do: it takes a step, the lines below it,
// and returns the output.
type Story func(step, input string) string

// Steps runs each file that matches a pattern as a test of its own. A file is a story
// whose output stands below each step:
//
//	What the story shows.
//
//	# A comment narrates the next step.
//	step with its arguments
//	lines of input
//	----
//	lines of output
//
// An empty line ends the output. Every step needs a comment directly above it. begin
// returns the start of a story. The flag -update writes the outputs into the files.
func Steps(t *testing.T, pattern string, begin func(t *testing.T) Story) {
	t.Helper()
	names, err := filepath.Glob(pattern)
	if err != nil || len(names) == 0 {
		t.Fatalf("no golden files %s: %v", pattern, err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), filepath.Ext(name)), func(t *testing.T) {
			want, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			got := steps(t, string(want), begin(t))
			if *update && !t.Failed() {
				if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("(-want +got; run with -update to accept)\n%s", diff)
			}
		})
	}
}

// steps returns the text of a story with the outputs that tell returns.
func steps(t *testing.T, text string, tell Story) string {
	t.Helper()
	var out strings.Builder
	head, body, _ := strings.Cut(text, "\n\n")
	fmt.Fprintf(&out, "%s\n", strings.TrimSpace(head))
	for paragraph := range strings.SplitSeq(body, "\n\n") {
		step, _, _ := strings.Cut(strings.Trim(paragraph, "\n")+"\n", "----\n")
		comment := ""
		for strings.HasPrefix(step, "#") {
			line, rest, _ := strings.Cut(step, "\n")
			comment, step = comment+line+"\n", rest
		}
		if step == "" {
			if comment != "" {
				fmt.Fprintf(&out, "\n%s", comment)
			}
			continue
		}
		line, input, _ := strings.Cut(step, "\n")
		if comment == "" {
			t.Errorf("no comment narrates the step %q", line)
		}
		fmt.Fprintf(&out, "\n%s%s----\n%s", comment, step, tell(line, input))
	}
	return out.String()
}
