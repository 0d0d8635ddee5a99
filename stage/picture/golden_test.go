package picture_test

import (
	"bytes"
	"fmt"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/internal/golden"
	"github.com/sajou-dev/sajou-go/stage/picture"
)

// goldens are the documents of testdata, by name. A change of one needs a look at the
// picture.
func goldens() map[string]*picture.Drawing {
	after := forge("#101826")
	after.At += time.Second
	after.Figures[1].X = 280
	after.Figures[1].Text = ""
	after.Figures[2].State = "error"
	after.Figures[4].Visible = true
	after.Figures = after.Figures[1:]
	comparison, _ := picture.Compare(forge("#101826"), after, picture.CompareOptions{
		Options: picture.Options{Title: "A day at the forge", Address: "812 and 840"}, Before: "before", After: "after",
	})
	var cells []picture.Cell
	for i := range 5 {
		f := forge("#101826")
		f.At = time.Duration(i) * 150 * time.Millisecond
		f.Figures[1].X += float64(i) * 40
		f.Beams[0].FromX += float64(i) * 40
		cells = append(cells, picture.Cell{Frame: f, Caption: fmt.Sprintf("step %d", i+1)})
	}
	return map[string]*picture.Drawing{
		"figures":  picture.Draw(everyone(), picture.Options{}),
		"forge":    picture.Draw(forge("#101826"), picture.Options{Title: "A day at the forge", Address: "812+350ms", Clock: true}),
		"places":   picture.Draw(forge("ivory"), picture.Options{Width: 640, Places: true}),
		"nameless": picture.Draw(nameless(), picture.Options{Width: 320}),
		"compare":  comparison,
		"sheet":    picture.Sheet(cells, 0, picture.Options{Title: "A day at the forge", Clock: true}),
	}
}

// TestSVGGolden compares the documents with the stored ones byte for byte. Run on several
// architectures, it proves that they are the same on each.
func TestSVGGolden(t *testing.T) {
	for name, d := range goldens() {
		t.Run(name, func(t *testing.T) {
			got := d.AppendSVG(nil)
			file := filepath.Join("testdata", name+".svg")
			if golden.Updating() {
				require.NoError(t, os.WriteFile(file, got, 0o666))
			}
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(string(got), "\n")); diff != "" {
				t.Errorf("%s differs (-want +got):\n%s", file, diff)
			}
		})
	}
}

// TestImageGolden compares one image with a stored one. Versions of the rasterizing
// library may differ slightly at edges.
func TestImageGolden(t *testing.T) {
	got := picture.Draw(forge("#101826"), picture.Options{Width: 400, Clock: true}).Image(0)
	file := filepath.Join("testdata", "forge.png")
	if golden.Updating() {
		var b bytes.Buffer
		require.NoError(t, picture.EncodePNG(&b, got))
		require.NoError(t, os.WriteFile(file, b.Bytes(), 0o666))
	}
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	want, err := png.Decode(bytes.NewReader(data))
	require.NoError(t, err)
	d, err := picture.DiffImages(want, got, nil, 8)
	require.NoError(t, err)
	if d.Share > .001 {
		t.Errorf("%d of %d pixels differ, by up to %d", d.Differ, d.Compared, d.Most)
	}
}

// TestTerminalGolden compares frames as text with the stored ones.
func TestTerminalGolden(t *testing.T) {
	var b strings.Builder
	fmt.Fprintf(&b, "-- forge, 72 by 16 --\n%s", picture.Terminal(forge(""), 72, 16, false))
	fmt.Fprintf(&b, "-- everyone, 100 by 22 --\n%s", picture.Terminal(everyone(), 100, 22, false))
	fmt.Fprintf(&b, "-- nameless, 48 by 8 --\n%s", picture.Terminal(nameless(), 48, 8, false))
	fmt.Fprintf(&b, "-- forge, 24 by 6 --\n%s", picture.Terminal(forge(""), 24, 6, false))
	colored := strings.ReplaceAll(picture.Terminal(forge(""), 60, 8, true), "\x1b", "ESC")
	fmt.Fprintf(&b, "-- forge, 60 by 8, in color --\n%s", colored)
	got := b.String()
	file := filepath.Join("testdata", "terminal.txt")
	if golden.Updating() {
		require.NoError(t, os.WriteFile(file, []byte(got), 0o666))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("%s differs (-want +got):\n%s", file, diff)
	}
}
