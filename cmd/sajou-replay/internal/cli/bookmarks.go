package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sajou-dev/sajou-go/internal/termtext"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/bookmark"
)

// bookmarkFile is the name of the file in the directory of a store that holds the
// bookmarks of its sessions. The log does not know it.
const bookmarkFile = "bookmarks.jsonl"

// maxBookmarkFile bounds the bytes of a file of bookmarks.
const maxBookmarkFile = 64 << 20

// Bookmarks reads the bookmarks beside the store. Without a file there are none.
func (a *App) Bookmarks() (*bookmark.Book, error) {
	name := filepath.Join(a.Store, bookmarkFile)
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &bookmark.Book{}, nil
	case err != nil:
		return nil, Fail(ExitNo, "cannot read the bookmarks: %w", err)
	case !info.Mode().IsRegular():
		return nil, Fail(ExitNo, "%s is not a regular file; move it away", name)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, Fail(ExitNo, "cannot read the bookmarks: %w", err)
	}
	defer f.Close()
	book, err := readBook(f)
	if err != nil {
		return nil, Fail(ExitNo, "the bookmarks in %s are damaged: %w; correct the file, or move it away", name, err)
	}
	return book, nil
}

func readBook(r io.Reader) (*bookmark.Book, error) {
	limited := &io.LimitedReader{R: r, N: maxBookmarkFile + 1}
	book, err := bookmark.Read(limited)
	if limited.N == 0 {
		return nil, fmt.Errorf("more than %d bytes", maxBookmarkFile)
	}
	return book, err
}

// ReadBookmarks reads bookmarks from a file, or from stdin if name is -.
func (a *App) ReadBookmarks(name string) (*bookmark.Book, error) {
	if name == "-" {
		return readBook(a.Stdin)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, Unreadable(name, err)
	}
	defer f.Close()
	return readBook(f)
}

// WriteBookmarks writes the bookmarks beside the store, completely or not at all. The
// caller has the store open, so no other process changes them meanwhile.
func (a *App) WriteBookmarks(book *bookmark.Book) error {
	var text bytes.Buffer
	_, err := book.WriteTo(&text)
	if err == nil {
		err = writePrivate(filepath.Join(a.Store, bookmarkFile), text.Bytes())
	}
	if err != nil {
		return Fail(ExitLocked, "cannot write the bookmarks of the store in %s: %w", a.Store, err)
	}
	return nil
}

// writePrivate writes a file that only its owner can read, completely or not at all.
func writePrivate(name string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*") // its mode is 0600
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// anchors gives the addresses of a session their bookmarks, which are read when one is
// named, and the last moment that was used, by this command or one before.
type anchors struct {
	app     *App
	session string
	genesis string

	last  replay.Moment
	known bool // last is set
}

var _ replay.Anchors = (*anchors)(nil)

// Bookmark implements [replay.Anchors].
func (s *anchors) Bookmark(name string) (replay.Anchor, bool, error) {
	book, err := s.app.Bookmarks()
	if err != nil {
		return replay.Anchor{}, false, err
	}
	b, ok := book.Find(s.session, name)
	return b.Anchor, ok, nil
}

// Last implements [replay.Anchors].
func (s *anchors) Last() (replay.Moment, bool) {
	if !s.known {
		s.last, s.known = s.app.recentMoment(s.session, s.genesis)
	}
	return s.last, s.known
}

// Used implements [replay.Anchors].
func (s *anchors) Used(m replay.Moment) {
	s.last, s.known = m, true
	s.app.used = &recentAddress{Session: s.session, Genesis: s.genesis, Seq: uint64(m.Seq), Offset: int64(m.Offset)}
}

// Anchor makes a replay of the session resolve bookmarks and relative addresses.
func (t *OpenedSession) Anchor(travel *replay.Replay) { travel.Anchor(t.anchors) }

// AddBookmark names a moment of the session, whose store is open. It replaces an existing
// bookmark only if it may.
func (t *OpenedSession) AddBookmark(ctx context.Context, name, note string, m replay.Moment, replace bool) (bookmark.Bookmark, error) {
	b := bookmark.Bookmark{Session: t.Name, Name: strings.TrimPrefix(name, "@"), Note: note}
	b.Head.Hash, b.Offset = t.Log.Genesis(), m.Offset
	if m.Seq > 0 {
		e, err := t.Log.Entry(ctx, m.Seq)
		if err != nil {
			return b, err
		}
		b.Head = e.Head()
	}
	a := t.anchors.app
	book, err := a.Bookmarks()
	if err != nil {
		return b, err
	}
	if old, ok := book.Find(b.Session, b.Name); ok && !replace {
		return b, Fail(ExitNo, "%s has a bookmark @%s already, at %v; replace it with --force", t.Name, b.Name, old.Moment())
	}
	if err := book.Put(b); err != nil {
		return b, Misuse("%w", err)
	}
	return b, a.WriteBookmarks(book)
}

// completeBookmark completes the names of bookmarks: of the session that the arguments
// before name, of that of --session, or of the latest.
func (a *App) completeBookmark(args []string) ([]string, cobra.ShellCompDirective) {
	a.Wait = 0
	engine, err := a.OpenReading()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer engine.Close()
	a.Lost = nil
	session, _, err := a.SplitArgs(args)
	if err == nil {
		session, err = a.SessionName(engine, session)
	}
	book, err2 := a.Bookmarks()
	if err != nil || err2 != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for b := range book.All(session) {
		names = append(names, "@"+b.Name+"\t"+termtext.Printable(b.Moment().String()+" "+b.Note))
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
