package read

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/bookmark"
	"github.com/sajou-dev/sajou-go/replay/bookmark/bookfile"
	"github.com/sajou-dev/sajou-go/server/access"
	"github.com/sajou-dev/sajou-go/server/problem"
	"github.com/sajou-dev/sajou-go/server/route"
)

// anchors gives the addresses of a session their bookmarks. A request has no last
// address, so addresses that are relative to it are refused.
type anchors struct {
	room    *Library
	session string
}

var _ replay.Anchors = anchors{}

// Bookmark implements [replay.Anchors].
func (a anchors) Bookmark(name string) (replay.Anchor, bool, error) {
	book, err := a.room.bookmarks()
	if err != nil {
		return replay.Anchor{}, false, err
	}
	b, ok := book.Find(a.session, name)
	return b.Anchor, ok, nil
}

// Last implements [replay.Anchors].
func (anchors) Last() (replay.Moment, bool) { return replay.Moment{}, false }

// Used implements [replay.Anchors].
func (anchors) Used(replay.Moment) {}

// bookmarks returns the bookmarks of the store, which the caller must not change.
func (room *Library) bookmarks() (*bookmark.Book, error) {
	room.marks.Lock()
	defer room.marks.Unlock()
	return room.load()
}

// load reads the bookmarks. The caller holds marks.
func (room *Library) load() (*bookmark.Book, error) {
	if room.cfg.Dir == "" {
		return room.book, nil
	}
	return bookfile.Load(room.cfg.Dir)
}

func (room *Library) markRoutes() []route.Endpoint {
	missing := []problem.ErrorCode{problem.NoSession}
	name := route.Parameter{Name: "name", In: "path", Text: "the name of the bookmark, without @"}
	put := room.computed("PUT /api/v1/sessions/{session}/marks/{name}", access.ScopeRead, route.Doc{
		Summary: "Name a moment",
		Text:    "A bookmark of that name is replaced. Bookmarks are beside the log and no part of it, so the scope read suffices.",
		Params:  []route.Parameter{name},
		Body:    []route.Content{{Type: route.MediaJSON, Schema: "mark-request"}},
		Success: []route.Success{{Status: 200, Content: route.JSON("mark")}},
		Errors:  append([]problem.ErrorCode{problem.NoMoment, problem.Invalid, problem.TooLarge}, missing...),
	}, (*request).putMark)
	put.MaxBody = 16 << 10
	return []route.Endpoint{
		room.computed("GET /api/v1/sessions/{session}/marks", access.ScopeRead, route.Doc{
			Summary: "The bookmarks of a session, in the order of their moments",
			Params:  []route.Parameter{formatParam()},
			Success: []route.Success{{Status: 200, Content: listed("marks", "mark")}},
			Errors:  append([]problem.ErrorCode{problem.NotAcceptable}, missing...),
		}, (*request).listMarks),
		put,
		room.computed("DELETE /api/v1/sessions/{session}/marks/{name}", access.ScopeRead, route.Doc{
			Summary: "Remove a bookmark",
			Params:  []route.Parameter{name},
			Success: []route.Success{{Status: 204}},
			Errors:  append([]problem.ErrorCode{problem.NotFound}, missing...),
		}, (*request).removeMark),
	}
}

// listMarks lists the bookmarks.
func (q *request) listMarks() error {
	l, err := q.newList()
	if err != nil {
		return err
	}
	s, err := q.session()
	if err != nil {
		return err
	}
	book, err := q.room.bookmarks()
	if err != nil {
		return err
	}
	for b := range book.All(s.travel.Name()) {
		if err := l.add(b); err != nil {
			return err
		}
	}
	if q.known(bodyVersion(l.data)) {
		return nil
	}
	return l.send()
}

// change changes the bookmarks of the store.
func (room *Library) change(f func(*bookmark.Book) error) error {
	room.marks.Lock()
	defer room.marks.Unlock()
	if room.cfg.Dir != "" {
		return bookfile.Change(room.cfg.Dir, f)
	}
	book := &bookmark.Book{} // others may read the present one
	for b := range room.book.All("") {
		if err := book.Put(b); err != nil {
			return err
		}
	}
	if err := f(book); err != nil {
		return err
	}
	room.book = book
	return nil
}

// putMark names a moment.
func (q *request) putMark() error {
	var body struct {
		At   string `json:"at"`
		Note string `json:"note"`
	}
	text, err := io.ReadAll(q.r.Body)
	if err != nil {
		return err
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&body); err != nil {
		return badRequest("the body is not an object with the members at and note: %v", err)
	}
	s, err := q.session()
	if err != nil {
		return err
	}
	m, _, err := q.moment(s, cmp.Or(body.At, "end"))
	if err != nil {
		return err
	}
	head, err := q.headAt(s, m.Seq)
	if err != nil {
		return err
	}
	b := bookmark.Bookmark{Session: s.travel.Name(), Name: q.r.PathValue("name"), Note: body.Note, Anchor: replay.Anchor{Head: head, Offset: m.Offset}}
	if err := q.room.change(func(book *bookmark.Book) error { return book.Put(b) }); err != nil {
		return err
	}
	q.w.Header().Set("Cache-Control", "no-store")
	return q.one(b)
}

// removeMark removes a bookmark.
func (q *request) removeMark() error {
	s, err := q.session()
	if err != nil {
		return err
	}
	name := q.r.PathValue("name")
	err = q.room.change(func(book *bookmark.Book) error {
		if _, ok := book.Find(s.travel.Name(), name); !ok {
			return problem.New(problem.NotFound, fmt.Sprintf("%s has no bookmark %.80q", s.travel.Name(), name))
		}
		book.Remove(s.travel.Name(), name)
		return nil
	})
	if err != nil {
		return err
	}
	q.w.WriteHeader(http.StatusNoContent)
	return nil
}
