package layers

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write what is generated from the list of layers")

// The rules of the linter about pure and timeless packages are those of the list.
func TestLinterConfigIsCurrent(t *testing.T) {
	const begin, end = "        # From internal/layers, by go test ./internal/layers -update:\n", "        # The end of what is generated.\n"
	name := filepath.Join("..", "..", ".golangci.yml")
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	head, rest, ok := strings.Cut(string(text), begin)
	_, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no lines %q and %q around the generated rules", name, begin, end)
	}
	want := head + begin + linterRules() + end + tail
	if *update {
		require.NoError(t, os.WriteFile(name, []byte(want), 0o644))
		return
	}
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Errorf(".golangci.yml is stale; run go test ./internal/layers -update (-want +got):\n%s", diff)
	}
}

// linterRules returns depguard's rule about what reaches outside.
func linterRules() string {
	var b strings.Builder
	b.WriteString("        deterministic:\n          list-mode: lax\n          files:\n            - \"!$test\"\n")
	for _, dir := range Deterministic() {
		fmt.Fprintf(&b, "            - \"**/%s/*.go\"\n", dir)
	}
	b.WriteString("          deny:\n")
	for _, denied := range []struct {
		packages []string
		why      string
	}{
		{outside, "it reaches outside, and this package is pure or timeless (internal/layers)"},
		{chance, "its results differ from run to run, and this package is pure or timeless (internal/layers)"},
	} {
		for _, name := range denied.packages {
			if !strings.HasSuffix(name, "/") {
				name += "$" // this package alone: depguard compares prefixes
			}
			fmt.Fprintf(&b, "            - pkg: %s\n              desc: %s\n", name, denied.why)
		}
	}
	return b.String()
}
