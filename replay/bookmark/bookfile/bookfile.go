// Package bookfile keeps the bookmarks of a store in a file beside it.
//
// Any number of programs may read and change the file at a time. The log does not know it.
//
// docs/glossary.md has the nouns of all packages.
package bookfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/sajou-dev/sajou-go/internal/privatefile"
	"github.com/sajou-dev/sajou-go/replay/bookmark"
)

// Name is the name of the file in the directory of a store.
const Name = "bookmarks.jsonl"

// lockName is the file that is locked while the bookmarks are changed. It stays empty.
const lockName = "bookmarks.lock"

// MaxFile bounds the bytes of a file of bookmarks.
const MaxFile = 64 << 20

// Load reads the bookmarks of the store in a directory. Without a file there are none.
func Load(dir string) (*bookmark.Book, error) {
	name := filepath.Join(dir, Name)
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &bookmark.Book{}, nil
	case err != nil:
		return nil, fmt.Errorf("cannot read the bookmarks: %w", err)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file; move it away", name)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("cannot read the bookmarks: %w", err)
	}
	defer func() { _ = f.Close() }() // it was only read
	book, err := Read(f)
	if err != nil {
		return nil, fmt.Errorf("the bookmarks in %s are damaged: %w; correct the file, or move it away", name, err)
	}
	return book, nil
}

// Read reads a book of at most [MaxFile] bytes.
func Read(r io.Reader) (*bookmark.Book, error) {
	limited := &io.LimitedReader{R: r, N: MaxFile + 1}
	book, err := bookmark.Read(limited)
	if limited.N == 0 {
		return nil, fmt.Errorf("more than %d bytes", MaxFile)
	}
	return book, err
}

// Change changes the bookmarks of the store in a directory, completely or not at all, and only
// if the error of change is nil. Changes of several processes follow each other, so none is
// lost. Only the owner of the file can read it.
func Change(dir string, change func(*bookmark.Book) error) (err error) {
	// The lock is that of a file of its own, because the bookmarks are replaced by a new file.
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("cannot write the bookmarks: %w", err)
	}
	defer func() { _ = f.Close() }() // this gives the lock back, too
	if err := privatefile.Lock(f); err != nil {
		return fmt.Errorf("cannot lock the bookmarks: %w", err)
	}
	book, err := Load(dir)
	if err == nil {
		err = change(book)
	}
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if _, err := book.WriteTo(&text); err != nil {
		return err
	}
	if err := privatefile.Write(filepath.Join(dir, Name), text.Bytes()); err != nil {
		return fmt.Errorf("cannot write the bookmarks: %w", err)
	}
	return nil
}
