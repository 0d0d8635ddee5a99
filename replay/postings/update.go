package postings

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/sajou-dev/sajou-go/eventlog"
)

// SessionHistory is what [Update] needs to know of the session of a table.
type SessionHistory interface {
	// Head returns the last entry.
	Head() eventlog.Head

	// Has reports whether an entry of the session has that number and hash.
	Has(head eventlog.Head) (bool, error)
}

// Update opens the table in the file at path. If there is none that can be used, or the
// session has grown by much since, it builds or continues the table: fill is called to add
// all about the entries after one. The new file takes the place of the old one when it is
// complete, so a reader never sees a part of it, and of two processes that build one the
// last wins.
//
// A table that was not continued is still right up to its Head. The error is that of fill or
// of the file, and no table then exists.
func Update(path string, id Identity, history SessionHistory, fill func(after eventlog.Seq, b *TableBuilder) error) (*Table, error) {
	old, err := Open(path, id)
	if err == nil {
		ok := old.Head().Seq == 0
		if !ok {
			if ok, err = history.Has(old.Head()); err != nil {
				return nil, closeAfter(old, err)
			}
		}
		if !ok { // of another history
			_ = old.Close()
			old = nil
		}
	} else {
		old = nil
	}
	if old != nil && history.Head().Seq-old.Head().Seq <= TailEntries {
		return old, nil
	}
	err = build(path, id, old, fill)
	if old != nil {
		_ = old.Close()
	}
	if err != nil {
		return nil, err
	}
	return Open(path, id)
}

// build writes the file: what stays of an old table, and the new segments.
func build(path string, id Identity, old *Table, fill func(after eventlog.Seq, b *TableBuilder) error) error {
	// CreateTemp gives the mode 0600.
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".new-*")
	if err != nil {
		return fmt.Errorf("postings: %w", err)
	}
	after, err := begin(f, id, old)
	if err == nil {
		var b *TableBuilder
		if b, err = newBuilder(f, after); err == nil {
			if err = fill(after.Seq, b); err == nil {
				err = errors.Join(b.flush(), b.out.Flush())
			}
		}
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// begin writes the header and the full segments of an old table, which may be nil. It
// returns the last entry of these.
func begin(f io.Writer, id Identity, old *Table) (after eventlog.Head, err error) {
	if _, err = f.Write(header(id)); err != nil || old == nil {
		return after, err
	}
	end := int64(headerSize)
	for _, s := range old.segments {
		if !s.full {
			break
		}
		after, end = s.head, s.end
	}
	_, err = io.Copy(f, io.NewSectionReader(old.file, int64(headerSize), end-int64(headerSize)))
	return after, err
}
