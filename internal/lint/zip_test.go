package lint_test

import (
	"archive/zip"
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/internal/lint"
)

// archive packs files, given as pairs of name and text.
func archive(t *testing.T, files ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for i := 0; i < len(files); i += 2 {
		f, err := w.Create(files[i])
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte(files[i+1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestZip shows that an archive is read like the files in it, and that no
// archive, cut off anywhere, does harm.
func TestZip(t *testing.T) {
	const scene = `{ "sajou": "scene", "version": 1, "name": "yard", "entities": [ { "id": "lamp", "at": { "x": 1, "y": 1 } } ] }`
	whole := archive(t, "assets/lamp.png", "pixels", "scene.json", scene)
	declared, _, diagnostics := lint.Read(new(choreography.Catalog), "yard.zip", whole)
	if len(declared) != 1 || declared[0].Word() != "scene" || declared[0].Name() != "yard" {
		t.Errorf("the archive declares %v; %v", declared, diagnostics)
	}
	for n := range whole {
		if declared, _, diagnostics := lint.Read(new(choreography.Catalog), "yard.zip", whole[:n]); declared != nil || diagnostics.Err() == nil {
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
		{nil, "this is no ZIP archive: it is empty"},
		{[]byte(`{"sajou": "scene"}`), "this is no ZIP archive, whatever its name says"},
		{[]byte("PK\x03\x04 and then nothing"), "this is no whole ZIP archive"},
		{archive(t), "there is no JSON file in the archive"},
		{archive(t, "readme.txt", "nothing"), "there is no JSON file in the archive"},
		{archive(t, many...), "the archive has 1001 files, more than 1000"},
		{archive(t, "a.json", strings.Repeat(" ", 64<<20), "b.json", "{}"), "b.json in the archive: there are more than 64 MiB of JSON"},
	} {
		_, _, diagnostics := lint.Read(new(choreography.Catalog), "f.zip", tc.data)
		if got := fmt.Sprint(diagnostics.Err()); !strings.Contains(got, tc.want) {
			t.Errorf("got %v, want %q", got, tc.want)
		}
	}
}
