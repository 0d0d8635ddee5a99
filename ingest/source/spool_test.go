package source

import (
	"bytes"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// What is read at any offset is what was appended, and no part of it is in the file.
func TestSpool(t *testing.T) {
	secret := []byte("a secret of a recording")
	rapid.Check(t, func(t *rapid.T) {
		s, err := newSpool(os.TempDir())
		require.NoError(t, err)
		defer s.Close()
		var want []byte
		for range rapid.IntRange(1, 5).Draw(t, "parts") {
			part := append(rapid.SliceOfN(rapid.Byte(), 0, 50).Draw(t, "part"), secret...)
			want = append(want, part...)
			require.NoError(t, s.append(part))
		}
		raw, err := io.ReadAll(io.NewSectionReader(s.file, 0, s.size))
		require.NoError(t, err)
		require.Len(t, raw, len(want))
		require.False(t, bytes.Contains(raw, secret))
		from := rapid.IntRange(0, len(want)).Draw(t, "from")
		got, err := io.ReadAll(io.NewSectionReader(s, int64(from), s.size))
		require.NoError(t, err)
		require.Equal(t, want[from:], got)
	})
}

func TestSessionName(t *testing.T) {
	for path, want := range map[string]string{
		"night.jsonl":                          "night",
		"a/b/session.traj.json":                "a/b/session",
		".aider.chat.history.md":               "aider.chat.history",
		".json":                                "json",
		"a/.md":                                "a/md",
		"x\x1b[31m\u202e.json":                 "x_[31m_",
		"\xff.json":                            "_",
		"v1.2":                                 "v1.2",
		"":                                     "recording",
		string(bytes.Repeat([]byte("ü"), 100)): string(bytes.Repeat([]byte("ü"), 64)),
	} {
		require.Equal(t, want, sessionName(path), path)
	}
}
