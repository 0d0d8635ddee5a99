package privatefile_test

import (
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/internal/privatefile"
)

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(name, []byte("old"), 0o644))
	require.NoError(t, privatefile.Write(name, []byte("new")))
	data, err := os.ReadFile(name)
	require.NoError(t, err)
	assert.Equal(t, "new", string(data))
	info, err := os.Stat(name)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}

// A directory cannot be replaced by a file.
func TestWriteLeavesNothingBehind(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "taken"), 0o700))
	require.Error(t, privatefile.Write(filepath.Join(dir, "taken"), nil))
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, files, 1)
}

// An opened file keeps its content, and other processes of the user find it.
func TestOpen(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	for _, text := range []string{"one ", "two"} {
		f, err := privatefile.Open(name)
		require.NoError(t, err)
		_, err = f.Seek(0, io.SeekEnd)
		require.NoError(t, err)
		_, err = f.WriteString(text)
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
	data, err := os.ReadFile(name)
	require.NoError(t, err)
	assert.Equal(t, "one two", string(data))
	info, err := os.Stat(name)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	_, err = privatefile.Open(filepath.Join(name, "below"))
	require.Error(t, err)
	_, err = privatefile.Open(filepath.Join(filepath.Dir(name), "none", "file"))
	assert.ErrorIs(t, err, os.ErrNotExist)
}

// A secret is read from a regular file that its owner alone can use, and from nothing else.
func TestRead(t *testing.T) {
	name := filepath.Join(t.TempDir(), "secret")
	_, _, err := privatefile.Read(name, 9)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NoError(t, os.WriteFile(name, []byte("123456789"), 0o600))
	for _, mode := range []os.FileMode{0o600, 0o400} {
		require.NoError(t, os.Chmod(name, mode))
		data, info, err := privatefile.Read(name, 9)
		require.NoError(t, err)
		assert.Equal(t, "123456789", string(data))
		assert.Equal(t, mode, info.Mode().Perm())
	}
	_, _, err = privatefile.Read(name, 8)
	require.ErrorContains(t, err, "has more than 8 bytes")
	if runtime.GOOS != "windows" {
		for _, mode := range []os.FileMode{0o644, 0o640, 0o660, 0o602, 0o610} {
			require.NoError(t, os.Chmod(name, mode))
			_, _, err := privatefile.Read(name, 9)
			require.EqualError(t, err, "others may read or write "+name+"; restrict it with: chmod 600 "+name)
		}
	}
	_, _, err = privatefile.Read(filepath.Dir(name), 9)
	require.ErrorContains(t, err, "is not a regular file")
}

// The file that is named counts most, then the token, then the file of the environment.
func TestToken(t *testing.T) {
	file := func(name string) string {
		path := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.WriteFile(path, []byte("  "+name+"\r\n"), 0o600))
		return path
	}
	t.Setenv("SAJOU_TOKEN", "")
	t.Setenv("SAJOU_TOKEN_FILE", "")
	for _, want := range []string{"", "of-env-file", "of-env", "of-flag"} {
		flag := ""
		switch want {
		case "of-env-file":
			t.Setenv("SAJOU_TOKEN_FILE", file(want))
		case "of-env":
			t.Setenv("SAJOU_TOKEN", want)
		case "of-flag":
			flag = file(want)
		}
		token, err := privatefile.Token(flag)
		require.NoError(t, err)
		assert.Equal(t, want, token)
	}
	t.Setenv("SAJOU_TOKEN", "")
	t.Setenv("SAJOU_TOKEN_FILE", filepath.Join(t.TempDir(), "none"))
	_, err := privatefile.Token("")
	require.ErrorContains(t, err, "SAJOU_TOKEN_FILE: ")
}
