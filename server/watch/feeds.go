package watch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/director/history"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/answer"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/server/route"
	"github.com/sajou-dev/sajou-go/stage"
	stagelive "github.com/sajou-dev/sajou-go/stage/live"
)

// selects reports whether a filter without an expression selects an entry.
func selects(ctx context.Context, pred replay.EntryPredicate, e *eventlog.Entry) (bool, error) {
	return pred.Test(ctx, &replay.ScanStep{Entry: e})
}

// commandID names a command, so that a feed can continue behind it.
//
// Most are named after their instant: a state before the instant gives all of its commands
// again. The first commands of a feed are named after the entry that it began behind: they
// begin what was under way there, or are of that entry's own instant, of which the feed
// may lack the first ones.
//
// Updates have the name of the command before them: they are not sent again.
type commandID struct {
	first bool // one of the first commands of a feed
	entry eventlog.Seq
	at    time.Duration // session time of the instant; zero for the first commands
	n     int           // its number among those commands, from 1
}

// String returns the id as "NANOSECONDS.NUMBER", or as "eSEQ.NUMBER" for one of the first
// commands of a feed.
func (id commandID) String() string {
	if id.first {
		return fmt.Sprintf("e%d.%d", id.entry, id.n)
	}
	return strconv.FormatInt(int64(id.at), 10) + "." + strconv.Itoa(id.n)
}

func parseCommandID(text string) (id commandID, ok bool) {
	of, n, ok := strings.Cut(text, ".")
	if !ok {
		return id, false
	}
	number, err := strconv.Atoi(n)
	if err != nil || number < 0 {
		return id, false
	}
	if of, id.first = strings.CutPrefix(of, "e"); id.first {
		seq, err := strconv.ParseUint(of, 10, 64)
		return commandID{first: true, entry: eventlog.Seq(seq), n: number}, err == nil
	}
	ns, err := strconv.ParseInt(of, 10, 64)
	return commandID{at: time.Duration(ns), n: number}, err == nil && ns >= 0
}

// commandSink sends commands to a watcher. Its calls follow each other.
type commandSink struct {
	out     watcher
	entry   eventlog.Seq  // behind which the feed begins
	begun   time.Duration // session time of entry; commands up to it are the first ones
	last    commandID     // that was counted
	resumed commandID     // commands up to here are left out
	again   bool
	gone    context.CancelFunc // ends the attachment
}

// The methods of [choreography.CommandSink].
func (s *commandSink) OnActionStart(c choreography.ActionStart)       { s.pass(c.Command()) }
func (s *commandSink) OnActionUpdate(c choreography.ActionUpdate)     { s.pass(c.Command()) }
func (s *commandSink) OnActionComplete(c choreography.ActionComplete) { s.pass(c.Command()) }
func (s *commandSink) OnActionExecute(c choreography.ActionExecute)   { s.pass(c.Command()) }
func (s *commandSink) OnInterrupt(c choreography.Interrupt)           { s.pass(c.Command()) }

// pass sends one command.
func (s *commandSink) pass(c choreography.Command) {
	id := commandID{at: c.At}
	if c.At <= s.begun {
		id = commandID{first: true, entry: s.entry}
	}
	if id.n = s.last.n; id != s.last {
		id.n = 0
	}
	if c.Kind != choreography.CommandUpdate {
		id.n++
	}
	s.last = id
	if s.again && s.had(c) {
		return
	}
	data, err := json.Marshal(c)
	if err == nil {
		err = s.out.Event(s.last.String(), data)
	}
	if err == nil {
		err = s.out.Flush()
	}
	if err != nil {
		s.gone()
	}
}

// had reports whether the client got a command, which was the last to be counted, before
// it connected again.
func (s *commandSink) had(c choreography.Command) bool {
	if s.resumed.first {
		return s.last.first && s.last.n <= s.resumed.n
	}
	return c.At < s.resumed.at || c.At == s.resumed.at && s.last.n <= s.resumed.n
}

// commands sends the commands of a session.
func (fs *Feeds) commands(ctx context.Context, w *wish, out watcher) error {
	ses, err := fs.engine.Session(ctx, w.session)
	if err != nil {
		return err
	}
	travel, err := fs.engine.Replay(w.session)
	if err != nil {
		return err
	}
	from, err := w.moment(ctx, travel)
	if err != nil {
		return err
	}
	ctx, gone := context.WithCancel(ctx)
	defer gone()
	sink := &commandSink{out: out, begun: -1, resumed: w.resumed, again: w.again, gone: gone}
	if !w.again || w.resumed.first {
		if from.Seq > 0 {
			e, err := travel.Entry(ctx, from.Seq)
			if err != nil {
				return err
			}
			sink.entry, sink.begun = from.Seq, e.At
		}
	}
	position := commandID{first: true, entry: from.Seq}
	if w.again {
		position = w.resumed
	}
	if out.Position(position.String()) != nil || out.Flush() != nil {
		return nil // the watcher is gone
	}
	return until(ctx, ses.AttachAt(ctx, sink, w.rate, from))
}

// until waits for the end of an attachment, of the request or of the server.
func until(ctx context.Context, a *stagelive.Attachment) error {
	select {
	case <-a.Done():
	case <-ctx.Done():
	case <-route.Stopping(ctx):
	}
	_ = a.Close() // its error is that of Err
	if err := a.Err(); ctx.Err() == nil {
		return err
	}
	return nil // the watcher is gone
}

// frameSink keeps the newest frame for a watcher.
type frameSink struct {
	mu    sync.Mutex
	frame *stage.Frame  // not sent yet; guarded by mu
	ready chan struct{} // has one value while there is a frame
}

// Frame takes a frame in place of the one that was not sent yet.
func (s *frameSink) Frame(f *stage.Frame) {
	s.mu.Lock()
	s.frame = f
	s.mu.Unlock()
	select {
	case s.ready <- struct{}{}:
	default:
	}
}

func (s *frameSink) take() *stage.Frame {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.frame
	s.frame = nil
	return f
}

// frames sends the frames of a session from now on.
func (fs *Feeds) frames(ctx context.Context, w *wish, out watcher) error {
	ses, err := fs.engine.Session(ctx, w.session)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	sink := &frameSink{ready: make(chan struct{}, 1)}
	a := ses.Show(ctx, sink, w.rate)
	defer func() { _ = a.Close() }()
	for {
		select {
		case <-sink.ready:
		case <-a.Done():
			return until(ctx, a)
		case <-ctx.Done():
			return nil
		case <-route.Stopping(ctx):
			return nil
		}
		f := sink.take()
		if f == nil {
			continue
		}
		data, err := answer.Marshal(answer.ViewFrame(f, replay.Moment{Seq: ses.Head().Seq}, f.At))
		if err != nil {
			return err
		}
		if out.Event(strconv.FormatInt(int64(f.At), 10), data) != nil || out.Flush() != nil {
			return nil
		}
	}
}

// board sends the board of a session's director now, and whenever it may have changed.
func (fs *Feeds) board(ctx context.Context, w *wish, out watcher) error {
	t, leave, err := fs.watch(w.session)
	if err != nil {
		return err
	}
	defer leave()
	travel, err := fs.engine.Replay(w.session)
	if err != nil {
		return err
	}
	next, changed := eventlog.Seq(0), true
	for {
		list, behind, grown, ended, err := t.from(max(next, 1))
		for i := range list {
			next = list[i].entry.Seq + 1
			changed = changed || list[i].entry.Kind == eventlog.KindBeat || list[i].entry.Kind == eventlog.KindDefine
		}
		if behind {
			next, changed = travel.Head().Seq+1, true
		}
		if len(list) > 0 || behind {
			continue
		}
		if changed {
			changed = false
			data, err := boardJSON(ctx, travel)
			if err != nil {
				return err
			}
			if out.Event(strconv.FormatUint(uint64(travel.Head().Seq), 10), data) != nil || out.Flush() != nil {
				return nil
			}
		}
		if ended {
			return err
		}
		select {
		case <-grown:
		case <-ctx.Done():
			return nil
		case <-route.Stopping(ctx):
			return nil
		}
	}
}

// boardJSON returns the items of the board as one array, which is empty while no episode is
// played.
func boardJSON(ctx context.Context, travel *replay.Replay) ([]byte, error) {
	items := []any{}
	err := answer.Board(ctx, travel, travel.Head().Seq, false, func(view any) error {
		items = append(items, view)
		return nil
	})
	if err != nil && !errors.Is(err, history.ErrNoEpisode) {
		return nil, err
	}
	return answer.Marshal(items)
}
