// Package mirror copies the sessions of a server to another machine, with the proof that
// they are complete.
//
// The server sends the log of a session as the raw export has it ([Logs], see
// [session.ExportRaw]): the bytes that the hashes cover. A client ([Remote]) recomputes the
// chain while it reads, and records the entries into a store of its own. So the copy has
// the same heads, and every command gives the same answers from it.
//
//	GET /api/v1/logs                              the sessions with their heads, one a line
//	GET /api/v1/sessions/{session}/log            the log from entry 1
//	GET /api/v1/sessions/{session}/log?from=55    the log from entry 55 on
//	    …&follow=true                             and the entries that follow, without end
//
// The first line of a log names the session and its genesis hash. A log that is followed
// ends with the connection; a client that connects again with the entry behind its newest
// one loses and repeats nothing. Its empty lines stand behind whole batches: what came
// before one can be recorded.
//
// # Limits
//
// The chain proves that the entries belong together, and a hash that the client has kept
// proves that they are the same as before. Nothing proves that a server has sent its newest
// entries. Tombstones, bookmarks and snapshots are not copied.
//
// docs/glossary.md has the nouns of all packages.
package mirror

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/server/access"
	"github.com/sajou-dev/sajou-go/server/problem"
	"github.com/sajou-dev/sajou-go/server/route"
	"github.com/sajou-dev/sajou-go/session"
)

const (
	logsPath = "/api/v1/logs"

	// flushBytes is how much is collected before it is sent.
	flushBytes = 64 << 10

	// pieceBytes is how much of a log that is followed is sent before an empty line.
	pieceBytes = 1 << 20

	// stall is how long a client may take for that much before its connection ends.
	stall = 30 * time.Second
)

// Logs sends the logs of an engine.
type Logs struct {
	engine    *sajou.Engine
	afterFunc func(time.Duration, func()) (stop func() bool)
}

// New returns the room of an engine. The function calls another one later, and returns how
// to stop that; nil means [time.AfterFunc].
func New(engine *sajou.Engine, afterFunc func(time.Duration, func()) (stop func() bool)) *Logs {
	if afterFunc == nil {
		afterFunc = func(d time.Duration, f func()) func() bool { return time.AfterFunc(d, f).Stop }
	}
	return &Logs{engine, afterFunc}
}

// Routes returns the routes of the room.
func (m *Logs) Routes() []route.Endpoint {
	ndjson := func(schema string) []route.Success {
		return []route.Success{{Status: http.StatusOK, Content: []route.Content{{Type: route.MediaNDJSON, Schema: schema}}}}
	}
	return []route.Endpoint{
		{
			Pattern: "GET " + logsPath, Scope: access.ScopeRead, Handler: m.logs,
			Doc: &route.Doc{
				Summary: "The sessions with their heads, in the order in which they were begun",
				Text:    "A line has session, seq and hash. Sessions that the caller may not read are left out.",
				Success: ndjson("log-head"),
			},
		},
		{
			Pattern: "GET /api/v1/sessions/{session}/log", Scope: access.ScopeRead, Stream: true, Handler: m.log,
			Doc: &route.Doc{
				Summary: "The log of a session, as the bytes that its hashes cover",
				Text:    "The lines are those of the raw export: the first has session and genesis, every other one session, seq, hash, entry and perhaps batch. A log that is followed has empty lines behind whole batches.",
				Params: []route.Parameter{
					{Name: "from", Type: "integer", Text: "the first entry; 1 if absent"},
					{Name: "follow", Type: "boolean", Text: "send the entries that follow, until the connection ends"},
				},
				Success: ndjson("raw-line"),
				Errors:  []problem.ErrorCode{problem.BadRequest, problem.RangeInvalid},
			},
		},
	}
}

// sessionLine is a line of the list of sessions.
type sessionLine struct {
	Session string       `json:"session"`
	Seq     eventlog.Seq `json:"seq"`
	Hash    string       `json:"hash"`
}

func (m *Logs) logs(w http.ResponseWriter, r *http.Request) error {
	names, err := m.engine.Sessions()
	if err != nil {
		return err
	}
	var lines []byte
	for _, name := range names {
		if access.Check(r.Context(), access.ScopeRead, name) != nil {
			continue
		}
		log, err := m.engine.Log().Session(name)
		if errors.Is(err, eventlog.ErrDeleted) {
			continue // since the list was made
		}
		if err != nil {
			return err
		}
		line, err := json.Marshal(sessionLine{name, log.Head().Seq, log.Head().Hash.String()})
		if err != nil {
			return err
		}
		lines = append(append(lines, line...), '\n')
	}
	begin(w)
	_, _ = w.Write(lines) // the caller may be gone
	return nil
}

func begin(w http.ResponseWriter) {
	w.Header().Set("Content-Type", route.MediaNDJSON)
	w.Header().Set("Cache-Control", "no-store")
}

func (m *Logs) log(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	from := uint64(1)
	if text := query.Get("from"); text != "" {
		var err error
		if from, err = strconv.ParseUint(text, 10, 64); err != nil || from == 0 {
			return problem.New(problem.BadRequest, "from: must be the number of an entry, 1 or more")
		}
	}
	follow := false
	if text := query.Get("follow"); text != "" {
		var err error
		if follow, err = strconv.ParseBool(text); err != nil {
			return problem.New(problem.BadRequest, "follow: must be true or false")
		}
	}
	log, err := m.engine.Log().Session(route.Session(r))
	if err != nil {
		return err
	}
	if !log.Exists() {
		return problem.New(problem.NoSession, "there is no such session")
	}
	if eventlog.Seq(from) > log.Head().Seq+1 {
		return problem.New(problem.RangeInvalid, "the session ends with entry "+strconv.FormatUint(uint64(log.Head().Seq), 10))
	}
	begin(w)
	s := &sending{room: m, log: log, out: bufio.NewWriterSize(w, flushBytes), control: http.NewResponseController(w)}
	// Errors from here on end the connection, and the client sees which entry was the last.
	if err := s.send(r.Context(), eventlog.Seq(from), follow); err != nil {
		panic(http.ErrAbortHandler) // a log that ends early must not look complete
	}
	return nil
}

// sending is one answer with a log.
type sending struct {
	room    *Logs
	log     *eventlog.SessionReader
	out     *bufio.Writer
	control *http.ResponseController
	line    []byte // scratch
	piece   int    // bytes since the last empty line
	left    int    // entries that the batch still lacks
}

// send writes the log from an entry on. It ends without an error when everything up to the
// head was sent and nothing is to follow.
func (s *sending) send(ctx context.Context, from eventlog.Seq, follow bool) error {
	if err := s.write(session.AppendRawHeader(nil, s.log.Name())); err != nil {
		return err
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	stopping := route.Stopping(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-stopping:
			end()
		case <-ctx.Done():
		}
	}()
	defer func() { end(); <-ended }()
	for next, to := from, s.log.Head().Seq; ; to = s.log.Head().Seq {
		// Durable entries are sent, also when the server stops.
		for e, err := range s.log.Entries(context.WithoutCancel(ctx), next) {
			if err != nil {
				return err
			}
			if e.Seq > to {
				break
			}
			if err := s.write(session.AppendRaw(s.line[:0], s.log.Name(), &e)); err != nil {
				return err
			}
			next = e.Seq + 1
			if s.left = max(s.left, e.Batch) - 1; follow && s.left <= 0 && s.piece > pieceBytes {
				if err := s.write(nil); err != nil {
					return err
				}
			}
		}
		if follow {
			if err := s.write(nil); err != nil {
				return err
			}
		}
		if err := s.flush(); err != nil || !follow {
			return err
		}
		if err := s.log.WaitDurable(ctx, next); err != nil {
			return nil // the server stops, the caller has gone or nothing more will come: all was sent
		}
	}
}

// write adds a line, and sends what was collected if that is enough.
func (s *sending) write(line []byte) error {
	s.line = append(line, '\n')
	if s.piece += len(s.line); len(line) == 0 {
		s.piece = 0
	}
	if s.out.Buffered() > 0 && s.out.Available() < len(s.line) {
		if err := s.flush(); err != nil {
			return err
		}
	}
	defer s.watch()()
	_, err := s.out.Write(s.line)
	return err
}

func (s *sending) flush() error {
	defer s.watch()()
	return errors.Join(s.out.Flush(), s.control.Flush())
}

// watch ends the connection if a write takes too long; the function that it returns says
// that the write is over.
func (s *sending) watch() func() {
	stop := s.room.afterFunc(stall, func() { _ = s.control.SetWriteDeadline(time.Unix(1, 0)) })
	return func() { stop() }
}
