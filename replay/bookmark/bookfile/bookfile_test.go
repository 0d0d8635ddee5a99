package bookfile_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/bookmark"
	"github.com/sajou-dev/sajou-go/replay/bookmark/bookfile"
)

func Example() {
	dir, _ := os.MkdirTemp("", "store")
	defer func() { _ = os.RemoveAll(dir) }()
	book, err := bookfile.Load(dir) // there is no file yet
	fmt.Println(book.Len(), err)
	err = bookfile.Change(dir, func(book *bookmark.Book) error {
		return book.Put(bookmark.Bookmark{Session: "night", Name: "glow", Anchor: replay.Anchor{}})
	})
	fmt.Println(err)
	book, err = bookfile.Load(dir)
	fmt.Println(book.Len(), err)
	// Output:
	// 0 <nil>
	// <nil>
	// 1 <nil>
}

func TestLoadRefuses(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, bookfile.Name)
	require.NoError(t, os.WriteFile(name, []byte("no bookmark\n"), 0o600))
	_, err := bookfile.Load(dir)
	require.ErrorContains(t, err, "are damaged")
	require.NoError(t, os.Remove(name))
	require.NoError(t, os.Mkdir(name, 0o700))
	_, err = bookfile.Load(dir)
	require.ErrorContains(t, err, "is not a regular file")
}

func TestReadIsBounded(t *testing.T) {
	_, err := bookfile.Read(strings.NewReader(strings.Repeat("\n", bookfile.MaxFile+2)))
	require.ErrorContains(t, err, "more than")
}

func nothing(*bookmark.Book) error { return nil }

func TestChangeIsPrivateAndWhole(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, bookfile.Change(dir, nothing))
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, files, 2)
	for _, f := range files {
		info, err := f.Info()
		require.NoError(t, err)
		assert.Equal(t, os.FileMode(0o600), info.Mode().Perm(), f.Name())
	}
	require.Error(t, bookfile.Change(filepath.Join(dir, "missing"), nothing))
	failed := errors.New("failed")
	require.ErrorIs(t, bookfile.Change(dir, func(book *bookmark.Book) error {
		return errors.Join(book.Put(bookmark.Bookmark{Session: "night", Name: "glow"}), failed)
	}), failed)
	book, err := bookfile.Load(dir)
	require.NoError(t, err)
	assert.Zero(t, book.Len())
}

// TestChangesAtATime: each has its own handle of the lock, as processes have.
func TestChangesAtATime(t *testing.T) {
	dir := t.TempDir()
	const writers, each = 3, 3
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for i := range each {
				assert.NoError(t, bookfile.Change(dir, func(book *bookmark.Book) error {
					return book.Put(bookmark.Bookmark{Session: "night", Name: fmt.Sprint("w", w, "-", i)})
				}))
			}
		})
	}
	all.Wait()
	book, err := bookfile.Load(dir)
	require.NoError(t, err)
	require.Equal(t, writers*each, book.Len())
}
