// Package watch lets clients watch a session while it runs: its entries, the commands of
// its choreographies, the frames of its stage and the board of its director.
//
// A watcher gets a feed as server-sent events or over a WebSocket. It never delays the
// writer: the log is the buffer of every feed. A watcher that takes nothing for
// [Config].Stall loses its connection and continues later behind the last event that it
// got. Meanwhile the feeds differ:
//
//   - entries: every entry, in order, none left out;
//   - commands: every start, end, execution and interruption; updates are left out
//     while the watcher is slow;
//   - frames and board: the newest is sent, older ones are left out.
//
// The watchers of one session share a [tape], which reads and encodes each new entry
// once, however many watch.
//
// docs/server.md describes the feeds to clients, docs/glossary.md has the nouns of all
// packages.
package watch

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/answer"
	"github.com/sajou-dev/sajou-go/internal/errtext"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/server/access"
	"github.com/sajou-dev/sajou-go/server/problem"
	"github.com/sajou-dev/sajou-go/server/route"
	"github.com/sajou-dev/sajou-go/server/stream"
	stagelive "github.com/sajou-dev/sajou-go/stage/live"
)

// Config holds the options of a [Feeds].
type Config struct {
	// Heartbeat is the time between two signs of life while nothing happens, and Stall
	// how long a watcher may take nothing. Zero means those of package stream.
	Heartbeat, Stall time.Duration

	// Gather is how long new entries wait for more, so that watchers are woken less
	// often. Zero means 50 ms.
	Gather time.Duration

	// AfterFunc calls f once, d from now, on a goroutine of its own, unless stop is
	// called first. Nil means [time.AfterFunc].
	AfterFunc func(d time.Duration, f func()) (stop func() bool)
}

// Feeds answers the requests of watchers.
type Feeds struct {
	engine *sajou.Engine
	cfg    Config // immutable after New

	mu    sync.Mutex
	tapes map[string]*tape // of the sessions that are watched; guarded by mu
}

// New returns the feeds of the sessions of an engine.
func New(engine *sajou.Engine, cfg Config) *Feeds {
	cfg.Gather = cmp.Or(cfg.Gather, 50*time.Millisecond)
	cfg.Stall = cmp.Or(cfg.Stall, 30*time.Second)
	cfg.Heartbeat = cmp.Or(cfg.Heartbeat, 15*time.Second)
	if cfg.AfterFunc == nil {
		cfg.AfterFunc = stagelive.AfterFunc
	}
	return &Feeds{engine: engine, cfg: cfg, tapes: map[string]*tape{}}
}

// The feeds.
const (
	feedEntries  = "entries"
	feedCommands = "commands"
	feedFrames   = "frames"
	feedBoard    = "board"
)

// Routes returns the endpoints of watchers.
func (fs *Feeds) Routes() []route.Endpoint {
	params := []route.Parameter{
		{Name: "feed", Enum: []string{feedEntries, feedCommands, feedFrames, feedBoard}, Text: "what is sent; the default is entries"},
		{Name: "from", Text: "where entries and commands begin: the number of an entry, 0 for the beginning; without it, behind the newest entry"},
		{Name: "kind", Repeated: true, Enum: kinds(), Text: "send entries of this kind"},
		{Name: "type", Repeated: true, Text: "send signals of this type"},
		{Name: "corr", Repeated: true, Text: "send signals with this correlation id"},
		{Name: "rate", Type: "integer", Text: "frames and updates a second while something moves, 1 to 60; the default is 20"},
	}
	errors := []problem.ErrorCode{problem.BadRequest, problem.RangeInvalid}
	return []route.Endpoint{
		{
			Pattern: "GET /api/v1/sessions/{session}/live", Scope: access.ScopeRead, Stream: true, Handler: fs.events,
			Doc: &route.Doc{
				Summary: "Watch a session as server-sent events",
				Text:    "Each event has one line of JSON. A client that connects again with Last-Event-ID continues behind that event. Entries and commands begin with an id alone, which is where they begin.",
				Params:  append(slices.Clone(params), route.Parameter{Name: "Last-Event-ID", In: "header", Text: "the id of the last event that the client got"}),
				Success: []route.Success{{Status: http.StatusOK, Content: []route.Content{{Type: "text/event-stream", Schema: "live-event"}}}},
				Errors:  errors,
			},
		},
		{
			Pattern: "GET /api/v1/sessions/{session}/live/ws", Scope: access.ScopeRead, Stream: true, Handler: fs.socket,
			Doc: &route.Doc{
				Summary: "Watch a session over a WebSocket",
				Text:    "Each message is a JSON object with the members id and data. The parameter after has the id of the last message that the client got. The first message of entries and commands has an id alone, which is where they begin.",
				Params:  append(slices.Clone(params), route.Parameter{Name: "after", Text: "the id of the last message that the client got"}),
				Success: []route.Success{{Status: http.StatusSwitchingProtocols}},
				Socket:  &route.SocketMessages{Server: "live-message"},
				Errors:  errors,
			},
		},
	}
}

// kinds returns the names of the kinds of entries.
func kinds() []string {
	return []string{"signal", "effect", "beat", "define", "session"}
}

// watcher is the connection of one watcher. Its methods are called by one goroutine.
type watcher interface {
	// Event adds an event; Flush sends what was added. They block while the peer takes
	// nothing, at most for Config.Stall, and then return an error.
	Event(id string, data []byte) error
	Flush() error

	// Position adds an id without an event: where the feed begins or ends, so that a watcher that
	// gets no event can continue too.
	Position(id string) error
}

// wish is what a request asks for.
type wish struct {
	session string
	feed    string
	from    eventlog.Seq // the first entry of the feed, or the entry behind which commands begin
	resumed commandID    // the last command that the client got
	again   bool         // resumed was given
	filter  answer.EntryFilter
	rate    int
}

// defaultRate is how many frames a second are sent while something moves, and maxRate the
// most.
const (
	defaultRate = 20
	maxRate     = 60
)

func badRequest(format string, args ...any) error {
	return problem.New(problem.BadRequest, fmt.Sprintf(format, args...))
}

// wish reads a request. Last is the id of the last event that the client got, or "".
func (fs *Feeds) wish(r *http.Request, last string) (w wish, err error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return w, badRequest("the query cannot be read: %v", err)
	}
	for name := range query {
		if !slices.Contains([]string{"feed", "from", "kind", "type", "corr", "rate", "after"}, name) {
			return w, badRequest("there is no parameter %.80q; use feed, from, kind, type, corr or rate", name)
		}
	}
	w = wish{session: route.Session(r), feed: cmp.Or(query.Get("feed"), feedEntries), rate: defaultRate}
	if !slices.Contains([]string{feedEntries, feedCommands, feedFrames, feedBoard}, w.feed) {
		return w, badRequest("feed=%.80s: must be entries, commands, frames or board", w.feed)
	}
	if w.filter, err = filter(query); err != nil {
		return w, err
	}
	if w.feed != feedEntries && !w.filter.IsZero() {
		return w, badRequest("kind, type and corr select entries; omit them for the feed %s", w.feed)
	}
	if text := query.Get("rate"); text != "" {
		if w.rate, err = strconv.Atoi(text); err != nil || w.rate < 1 || w.rate > maxRate {
			return w, badRequest("rate=%.80s: must be a whole number from 1 to %d", text, maxRate)
		}
	}
	reader, err := fs.engine.Log().Session(w.session)
	if err != nil {
		return w, err
	}
	return w, w.begin(query.Get("from"), last, reader.Head().Seq)
}

// begin sets where the feed begins.
func (w *wish) begin(from, last string, head eventlog.Seq) error {
	w.from = head + 1
	if w.feed == feedCommands {
		w.from = head
	}
	if from != "" {
		seq, err := strconv.ParseUint(from, 10, 64)
		if err != nil {
			return badRequest("from=%.80s: must be the number of an entry", from)
		}
		if eventlog.Seq(seq) > w.from {
			return problem.New(problem.RangeInvalid, fmt.Sprintf("from=%s: the session has %d entries", from, head))
		}
		w.from = eventlog.Seq(seq)
	}
	switch {
	case last == "":
		return nil
	case w.feed == feedCommands:
		id, ok := parseCommandID(last)
		if !ok {
			return badRequest("%.80q is not an id of the feed commands", last)
		}
		w.resumed, w.again = id, true
		if id.first { // an entry beyond the head is of another store
			w.from = min(id.entry, head)
			w.again = w.from == id.entry
		}
	case w.feed == feedEntries:
		seq, err := strconv.ParseUint(last, 10, 64)
		if err != nil {
			return badRequest("%.80q is not an id of the feed entries", last)
		}
		// An id beyond the head is of another store.
		w.from = min(eventlog.Seq(seq), head) + 1
	}
	return nil // the newest frame and the newest board are sent again
}

// filter reads the parameters that select entries.
func filter(query url.Values) (f answer.EntryFilter, err error) {
	for _, name := range query["kind"] {
		i := slices.Index(kinds(), name)
		if i < 0 {
			return f, badRequest("kind=%.80s: must be one of %s", name, strings.Join(kinds(), ", "))
		}
		kind, err := eventlog.ParseKind(name)
		if err != nil {
			return f, badRequest("kind=%.80s: %v", name, err)
		}
		f.Kinds = append(f.Kinds, kind)
	}
	f.Types, f.Corrs = query["type"], query["corr"]
	return f, nil
}

// feed sends a feed to a watcher until ctx ends, the server stops, or the watcher is
// gone. An error is of the session.
func (fs *Feeds) feed(ctx context.Context, w *wish, out watcher) error {
	switch w.feed {
	case feedCommands:
		return fs.commands(ctx, w, out)
	case feedFrames:
		return fs.frames(ctx, w, out)
	case feedBoard:
		return fs.board(ctx, w, out)
	}
	return fs.entries(ctx, w, out)
}

// events answers with a feed as server-sent events.
func (fs *Feeds) events(rw http.ResponseWriter, r *http.Request) error {
	w, err := fs.wish(r, r.Header.Get("Last-Event-ID"))
	if err != nil {
		return err
	}
	out := stream.NewSSE(rw, stream.SSEConfig{Heartbeat: fs.cfg.Heartbeat, Stall: fs.cfg.Stall, AfterFunc: fs.cfg.AfterFunc})
	defer func() { _ = out.Close() }() // the watcher may be gone
	if err := fs.feed(r.Context(), &w, out); err != nil {
		_ = out.Comment("ended: " + errtext.OneLine(problem.Of(err).Detail)) // the header is sent
	}
	return nil
}

// moment is where the commands of a wish begin.
func (w *wish) moment(ctx context.Context, travel *replay.Replay) (replay.Moment, error) {
	if !w.again || w.resumed.first {
		return replay.Moment{Seq: w.from}, nil
	}
	// The commands of an instant follow each other, so the state before the instant of
	// the last one that the client got gives them again, and the first are left out.
	if w.resumed.at <= 0 {
		return replay.Moment{}, nil
	}
	return travel.MomentAt(ctx, w.resumed.at-1)
}
