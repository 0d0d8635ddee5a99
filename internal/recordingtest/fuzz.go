package recordingtest

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/ingest/recording"
)

// Seeds adds the main files of golden stories to a fuzz test, and damaged ones.
func Seeds(f *testing.F, pattern string) {
	names, err := filepath.Glob(pattern)
	require.NoError(f, err)
	require.NotEmpty(f, names)
	for _, name := range names {
		text, err := os.ReadFile(name)
		require.NoError(f, err)
		main := txtar.Parse(text).Files[0].Data
		f.Add(main)
		f.Add(main[:len(main)/2])
	}
	f.Add([]byte("\xef\xbb\xbf\n\n[1]\nnull\n\"x\"\n{\"type\":7}\n{\"type\":\"\xff\",\"type\":1}\n{"))
}

// Fuzzed reads a file of any text, final and not. Errors of reading are allowed only for
// documents that are not JSON.
func Fuzzed(t *testing.T, f recording.Format, name string, text []byte) {
	for _, final := range []bool{false, true} {
		_, _, err := TryRead(t, f, File(name, text), name, recording.Options{Final: final, MaxBad: 1, KeepNative: true})
		var place *recording.PlaceError
		if err != nil && !errors.As(err, &place) {
			require.NoError(t, err)
		}
	}
}
