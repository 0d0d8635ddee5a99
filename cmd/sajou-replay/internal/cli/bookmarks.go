package cli

import (
	"context"
	"errors"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sajou-dev/sajou-go/internal/termtext"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/bookmark"
	"github.com/sajou-dev/sajou-go/replay/bookmark/bookfile"
)

// Bookmarks reads the bookmarks beside the store. Without a file there are none.
func (a *App) Bookmarks() (*bookmark.Book, error) {
	if a.Server != "" {
		return &bookmark.Book{}, nil // those of the server stay beside its store
	}
	book, err := bookfile.Load(a.Store)
	if err != nil {
		return nil, Fail(ExitNo, "%w", err)
	}
	return book, nil
}

// ReadBookmarks reads bookmarks from a file, or from stdin if name is -.
func (a *App) ReadBookmarks(name string) (*bookmark.Book, error) {
	if name == "-" {
		return bookfile.Read(a.Stdin)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, Unreadable(name, err)
	}
	defer f.Close()
	return bookfile.Read(f)
}

// ChangeBookmarks changes the bookmarks beside the store, completely or not at all, and only
// if the error of change is nil.
func (a *App) ChangeBookmarks(change func(*bookmark.Book) error) error {
	if err := a.refuseBeside("bookmarks"); err != nil {
		return err
	}
	var refused error
	err := bookfile.Change(a.Store, func(book *bookmark.Book) error {
		refused = change(book)
		return refused
	})
	switch {
	case refused != nil:
		return refused
	case errors.Is(err, bookmark.ErrMalformed):
		return Fail(ExitNo, "%w", err)
	case err != nil:
		return Fail(ExitLocked, "in the store %s: %w", a.Store, err)
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
	return b, a.ChangeBookmarks(func(book *bookmark.Book) error {
		if old, ok := book.Find(b.Session, b.Name); ok && !replace {
			return Fail(ExitNo, "%s has a bookmark @%s already, at %v; replace it with --force", t.Name, b.Name, old.Moment())
		}
		if err := book.Put(b); err != nil {
			return Misuse("%w", err)
		}
		return nil
	})
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

// sharedAnchors gives the addresses of a session its bookmarks. Unlike those of a command
// they are for several goroutines and remember no address.
type sharedAnchors struct {
	app     *App
	session string
}

var _ replay.Anchors = sharedAnchors{}

// SharedAnchors returns the anchors of a session for a program with several readers.
func (a *App) SharedAnchors(session string) replay.Anchors { return sharedAnchors{a, session} }

// Bookmark implements [replay.Anchors].
func (s sharedAnchors) Bookmark(name string) (replay.Anchor, bool, error) {
	book, err := s.app.Bookmarks()
	if err != nil {
		return replay.Anchor{}, false, err
	}
	b, ok := book.Find(s.session, name)
	return b.Anchor, ok, nil
}

// Last implements [replay.Anchors].
func (sharedAnchors) Last() (replay.Moment, bool) { return replay.Moment{}, false }

// Used implements [replay.Anchors].
func (sharedAnchors) Used(replay.Moment) {}
