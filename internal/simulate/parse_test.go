package simulate_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/internal/simulate"
)

// Each scenario in testdata/mistakes.txtar has mistakes, and beside it stands what
// is said of them.
func TestMistakes(t *testing.T) {
	golden := filepath.Join("testdata", "mistakes.txtar")
	archive, err := txtar.ParseFile(golden)
	require.NoError(t, err)
	said := map[string]string{}
	var out txtar.Archive
	out.Comment = archive.Comment
	for _, file := range archive.Files {
		if strings.HasSuffix(file.Name, ".said") {
			said[file.Name] = string(file.Data)
			continue
		}
		s, diagnostics := simulate.Parse(file.Name, file.Data)
		if s != nil || !diagnostics.Refused() {
			t.Errorf("%s has no mistake", file.Name)
		}
		text := diagnostics.String() + "\n"
		out.Files = append(out.Files, file, txtar.File{Name: strings.TrimSuffix(file.Name, ".json") + ".said", Data: []byte(text)})
	}
	if *update {
		require.NoError(t, os.WriteFile(golden, txtar.Format(&out), 0o644))
		return
	}
	for _, file := range out.Files {
		if strings.HasSuffix(file.Name, ".said") {
			if diff := cmp.Diff(said[file.Name], string(file.Data)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", file.Name, diff)
			}
		}
	}
}

func TestTooLong(t *testing.T) {
	text := strings.Repeat(" ", simulate.MaxText) + "{}"
	if s, diagnostics := simulate.Parse("long", []byte(text)); s != nil || len(diagnostics) != 1 {
		t.Errorf("%v", diagnostics)
	}
}
