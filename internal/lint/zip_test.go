package lint_test

import (
	"archive/zip"
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/choreography/definition"
	"github.com/sajou-dev/sajou-go/choreography/language"
	"github.com/sajou-dev/sajou-go/internal/lint"
)

// archive packs files, given as pairs of name and text.
func archive(t testing.TB, files ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for i := 0; i < len(files); i += 2 {
		f, err := w.Create(files[i])
		require.NoError(t, err)
		if _, err := f.Write([]byte(files[i+1])); err != nil {
			t.Fatal(err)
		}
	}
	require.NoError(t, w.Close())
	return b.Bytes()
}

// TestZip shows that an archive is read like the files in it, and that no
// archive, cut off anywhere, does harm.
func TestZip(t *testing.T) {
	const scene = `{ "sajou": "scene", "version": 1, "name": "yard", "entities": [ { "id": "lamp", "at": { "x": 1, "y": 1 } } ] }`
	whole := archive(t, "assets/lamp.png", "pixels", "scene.json", scene)
	declared, _, diagnostics := lint.Read(new(language.Catalog), "yard.zip", whole)
	if len(declared) != 1 || declared[0].Word() != "scene" || declared[0].Name() != "yard" {
		t.Errorf("the archive declares %v; %v", declared, diagnostics)
	}
	for n := range whole {
		if declared, _, diagnostics := lint.Read(new(language.Catalog), "yard.zip", whole[:n]); declared != nil || !diagnostics.Refused() {
			t.Errorf("%d of %d bytes: %v, %v", n, len(whole), declared, diagnostics)
		}
	}

	var many []string
	for i := range 1001 {
		many = append(many, fmt.Sprint(i), "")
	}
	for _, tc := range []struct {
		data []byte
		want string
	}{
		{nil, "not a ZIP archive: the file is empty"},
		{[]byte(`{"sajou": "scene"}`), "not a ZIP archive in spite of its name"},
		{[]byte("PK\x03\x04 and then nothing"), "the ZIP archive is incomplete"},
		{archive(t), "there is no JSON file in the archive"},
		{archive(t, "readme.txt", "nothing"), "there is no JSON file in the archive"},
		{archive(t, many...), "the archive has 1001 files, more than 1000"},
		{archive(t, "a.json", strings.Repeat(" ", 16<<20), "b.json", "{}"), "b.json in the archive: there are more than 16 MiB of JSON"},
	} {
		_, _, diagnostics := lint.Read(new(language.Catalog), "f.zip", tc.data)
		if got := fmt.Sprint(diagnostics.Err(definition.ErrInvalid)); !strings.Contains(got, tc.want) {
			t.Errorf("got %v, want %q", got, tc.want)
		}
	}
}
