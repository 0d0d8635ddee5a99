package record

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/server/access"
	"github.com/sajou-dev/sajou-go/server/route"
	"github.com/sajou-dev/sajou-go/server/stream"
	"github.com/sajou-dev/sajou-go/session"
)

// lastEventID is the header in which a browser says what it has seen.
const lastEventID = "Last-Event-ID"

// signals streams the signals that are recorded from now on, or behind the event that the
// request names. One session is followed in the log. Without a name and with a Split, all
// parts are followed, see [feed].
func (rv *Receiver) signals(dataOnly bool) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		name, err := route.NamedSession(r)
		if err != nil {
			return err
		}
		if name == "" && rv.feed != nil {
			return rv.allParts(w, r, dataOnly)
		}
		if name == "" {
			name = rv.cfg.Session
		}
		ses, err := rv.open(r.Context(), access.ScopeRead, name)
		if err != nil {
			return err
		}
		from, known := after(r, ses)
		rv.clients.Add(1)
		defer rv.clients.Add(-1)
		ctx, cancel := untilStop(r)
		defer cancel()
		out := rv.events(w, dataOnly)
		defer func() { _ = out.Close() }()
		if !known {
			_ = out.Comment(notRemembered)
		}
		// A reader that gets no event can continue here too.
		_ = errors.Join(out.Position(seqText(from-1)), out.Flush())
		next, err := forward(out, ses.Subscribe(ctx, from), from, func() eventlog.Seq { return ses.Head().Seq })
		if err == nil && r.Context().Err() == nil {
			// The server stops: what is acknowledged is sent.
			next, _ = forward(out, ses.Entries(r.Context(), next), next, nil)
			_ = out.Position(seqText(next - 1)) // behind entries that are not signals
		}
		return nil
	}
}

// notRemembered tells the reader of a stream that it could not go on where it was. The
// answer has the status 200, because a browser would not connect again after an error.
const notRemembered = "the last event is not remembered; read the sessions for what came after it"

// after returns the first entry that a stream sends: the one behind the last event that
// the request names, or else the next one. Known is false if the event is of another stream.
func after(r *http.Request, ses *sajou.Session) (from eventlog.Seq, known bool) {
	head := ses.Head().Seq
	id := r.Header.Get(lastEventID)
	if id == "" {
		return head + 1, true
	}
	seq, err := strconv.ParseUint(id, 10, 64)
	if err != nil || eventlog.Seq(seq) > head { // of a stream of all parts, or of another store
		return head + 1, false
	}
	return eventlog.Seq(seq) + 1, true
}

// forward sends the signals of entries. It flushes at the head of the session; a nil head
// means at the end. It returns the Seq behind the last entry, and the error of the stream.
func forward(out *stream.SSE, entries func(func(eventlog.Entry, error) bool), next eventlog.Seq, head func() eventlog.Seq) (eventlog.Seq, error) {
	var data []byte
	for e, err := range entries {
		if err != nil {
			break
		}
		next = e.Seq + 1
		if e.Kind == eventlog.KindSignal {
			if data, err = signalJSON(data[:0], &e); err != nil {
				continue // an entry that is damaged ends no stream
			}
			if err := out.Event(seqText(e.Seq), data); err != nil {
				return next, err
			}
		}
		if head != nil && e.Seq >= head() {
			if err := out.Flush(); err != nil {
				return next, err
			}
		}
	}
	return next, out.Flush()
}

func seqText(seq eventlog.Seq) string { return strconv.FormatUint(uint64(seq), 10) }

// signalJSON appends the signal of an entry as JSON of one line.
func signalJSON(dst []byte, e *eventlog.Entry) ([]byte, error) {
	sig, err := session.SignalOf(e)
	if err != nil {
		return dst, err
	}
	return sig.AppendJSON(dst), nil
}

// commands streams the commands of a session from now on.
func (rv *Receiver) commands(w http.ResponseWriter, r *http.Request) error {
	name, err := route.NamedSession(r)
	if err != nil {
		return err
	}
	if name == "" {
		name = rv.cfg.Session
	}
	ses, err := rv.open(r.Context(), access.ScopeRead, name)
	if err != nil {
		return err
	}
	ctx, cancel := untilStop(r)
	defer cancel()
	events := &commandEvents{opened: make(chan struct{}), cancel: cancel}
	shown := ses.Attach(ctx, events, 0) // before the reader hears that it is connected: what it causes then is sent
	events.out = rv.events(w, true)
	close(events.opened)
	select {
	case <-ctx.Done():
	case <-shown.Done():
	}
	_ = shown.Close() // the reader of the commands is gone, or the session is
	_ = events.out.Close()
	return nil
}

// commandEvents sends commands as events. Updates are left out: a viewer computes them.
type commandEvents struct {
	out    *stream.SSE   // set before opened is closed
	opened chan struct{} // closed when out can be used
	cancel context.CancelFunc
}

func (c *commandEvents) send(cmd choreography.Command) {
	<-c.opened
	data, err := cmd.MarshalJSON()
	if err == nil {
		err = errors.Join(c.out.Event("", data), c.out.Flush())
	}
	if err != nil {
		c.cancel()
	}
}

func (c *commandEvents) OnActionStart(a choreography.ActionStart)       { c.send(a.Command()) }
func (c *commandEvents) OnActionUpdate(choreography.ActionUpdate)       {}
func (c *commandEvents) OnActionComplete(a choreography.ActionComplete) { c.send(a.Command()) }
func (c *commandEvents) OnActionExecute(a choreography.ActionExecute)   { c.send(a.Command()) }
func (c *commandEvents) OnInterrupt(a choreography.Interrupt)           { c.send(a.Command()) }

// maxPositions is the number of records that a [feed] remembers.
const maxPositions = 1 << 14

// feed is the order in which signals were recorded into the parts of a session. It
// remembers the last records, so that a stream of all parts can be resumed within the life
// of the process. A nil feed takes nothing.
type feed struct {
	session string // of whose parts it is
	epoch   string // tells the feeds of two processes apart

	mu      sync.Mutex
	first   uint64         // the number of the first position, from 1; guarded by mu
	list    []feedPosition // guarded by mu
	changed chan struct{}  // closed by the next add; guarded by mu
}

// feedPosition is one record: entries of a session.
type feedPosition struct {
	session     string
	first, last eventlog.Seq
}

func newFeed(session string, now time.Time) *feed {
	return &feed{session: session, epoch: strconv.FormatInt(now.UnixNano(), 36), first: 1, changed: make(chan struct{})}
}

// add notes what was recorded. What had been recorded before, and what is of another
// session, is not noted.
func (f *feed) add(name string, out sajou.Receipt) {
	if f == nil || out.Repeat || name != f.session && !strings.HasPrefix(name, f.session+".") {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.list) >= 2*maxPositions {
		drop := len(f.list) - maxPositions
		f.list = append(f.list[:0], f.list[drop:]...)
		f.first += uint64(drop)
	}
	f.list = append(f.list, feedPosition{name, out.First, out.Head.Seq})
	close(f.changed)
	f.changed = make(chan struct{})
}

// from returns the positions from a number on, the number of the first of them, and a
// channel that is closed when there are more.
func (f *feed) from(n uint64) (list []feedPosition, first uint64, changed <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n = min(max(n, f.first), f.first+uint64(len(f.list)))
	return append([]feedPosition(nil), f.list[n-f.first:]...), n, f.changed
}

// next returns the number of the next position.
func (f *feed) next() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.first + uint64(len(f.list))
}

// id returns the id of a position.
func (f *feed) id(n uint64) string { return f.epoch + "-" + strconv.FormatUint(n, 36) }

// resume returns the number behind the position of an event's id, if the feed has it.
func (f *feed) resume(id string) (uint64, bool) {
	epoch, number, _ := strings.Cut(id, "-")
	n, err := strconv.ParseUint(number, 36, 64)
	if err != nil || epoch != f.epoch {
		return 0, false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return n + 1, n+1 >= f.first && n < f.first+uint64(len(f.list))
}

// allParts streams the signals that are recorded into all parts of the session, those that
// the caller may read.
func (rv *Receiver) allParts(w http.ResponseWriter, r *http.Request, dataOnly bool) error {
	f := rv.feed
	n := f.next()
	lost := false
	if id := r.Header.Get(lastEventID); id != "" {
		if behind, ok := f.resume(id); ok {
			n = behind
		} else {
			lost = true
		}
	}
	rv.clients.Add(1)
	defer rv.clients.Add(-1)
	ctx, cancel := untilStop(r)
	defer cancel()
	out := rv.events(w, dataOnly)
	defer func() { _ = out.Close() }()
	if lost {
		_ = out.Comment(notRemembered)
	}
	_ = out.Position(f.id(n - 1))
	for {
		list, first, changed := f.from(n)
		for i, p := range list {
			if rv.sendRecord(r.Context(), out, p, f.id(first+uint64(i))) != nil {
				return nil
			}
		}
		n = first + uint64(len(list))
		if out.Flush() != nil {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			if n == f.next() || r.Context().Err() != nil {
				_ = out.Position(f.id(n - 1)) // behind records that the caller may not read
				return nil
			}
		}
	}
}

// sendRecord sends the signals of one record. Only the last of them has the id, so that a
// reader that saw a part of a record gets it again and misses none.
func (rv *Receiver) sendRecord(ctx context.Context, out *stream.SSE, p feedPosition, id string) error {
	ses, err := rv.open(ctx, access.ScopeRead, p.session)
	if err != nil {
		return nil // the caller may not read this part, or it was deleted
	}
	var data []byte
	for e, err := range ses.Entries(ctx, p.first) {
		if err != nil || e.Seq > p.last {
			break
		}
		if e.Kind != eventlog.KindSignal {
			continue
		}
		if data, err = signalJSON(data[:0], &e); err != nil {
			continue
		}
		own := ""
		if e.Seq == p.last {
			own = id
		}
		if err := out.Event(own, data); err != nil {
			return err
		}
	}
	return nil
}
