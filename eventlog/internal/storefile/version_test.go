package storefile

import (
	"errors"
	"io"
	"io/fs"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/eventlog/chain"
)

// The version of a FILES decides whether it is of a later program or damaged.
func TestFilesVersion(t *testing.T) {
	rest := string(filesExample()[len("sajou files 1"):])
	for version, want := range map[string]error{
		"1": nil, "2": chain.ErrVersion, "10": chain.ErrVersion, "19": chain.ErrVersion, "4294967295": chain.ErrVersion,
		"0": chain.ErrCorrupt, "01": chain.ErrCorrupt, "-2": chain.ErrCorrupt, "1a": chain.ErrCorrupt, "2a": chain.ErrCorrupt,
		"4294967296": chain.ErrCorrupt, "": chain.ErrCorrupt, " ": chain.ErrCorrupt, "0x2": chain.ErrCorrupt,
	} {
		_, err := parseFileList([]byte("sajou files " + version + rest))
		require.ErrorIs(t, err, want, "version %q", version)
		if errors.Is(want, chain.ErrVersion) {
			require.ErrorContains(t, err, "has version "+version)
		}
	}
}

// Of the files under a CutFS one is shorter, some are hidden, and the others are as they
// are.
func TestCutFS(t *testing.T) {
	mem := vfs.NewMem()
	require.NoError(t, mem.MkdirAll("dir", 0o700))
	for _, name := range []string{"cut", "hidden", "whole"} {
		f, err := mem.Create(mem.PathJoin("dir", name), "test")
		require.NoError(t, err)
		_, err = f.Write([]byte("0123456789"))
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
	read := func(c *CutFS, name string) (string, error) {
		f, err := c.Open(c.PathJoin("dir", name))
		if err != nil {
			return "", err
		}
		defer func() { require.NoError(t, f.Close()) }()
		b, err := io.ReadAll(f)
		require.NoError(t, err)
		return string(b), nil
	}
	for size, want := range map[int64]string{0: "", 1: "0", 9: "012345678", 10: "0123456789", 11: "0123456789"} {
		c := &CutFS{FS: mem, Hidden: map[string]bool{"hidden": true}, Name: "cut", Size: size}
		got, err := read(c, "cut")
		require.NoError(t, err)
		require.Equal(t, want, got, size)
		got, err = read(c, "whole")
		require.NoError(t, err)
		require.Equal(t, "0123456789", got)
		for _, name := range []string{"hidden", "nothing"} {
			_, err = read(c, name)
			require.ErrorIs(t, err, fs.ErrNotExist, name)
		}
		names, err := c.List("dir")
		require.NoError(t, err)
		require.ElementsMatch(t, []string{"cut", "whole"}, names)
		require.Equal(t, vfs.FS(mem), c.Unwrap())
	}
}
