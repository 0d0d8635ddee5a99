package watch

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/server/route"
	"github.com/sajou-dev/sajou-go/session"
)

// The bounds of what a tape keeps of the newest entries. A watcher that is further behind
// reads the log itself.
const (
	tapeEntries = 1024
	tapeBytes   = 1 << 20
)

// shown is an entry as it is sent. It is immutable.
type shown struct {
	entry eventlog.Entry
	id    string
	json  []byte
}

func show(ctx context.Context, late *session.Lateness, e eventlog.Entry) (shown, error) {
	text, err := late.AppendEntryJSON(ctx, nil, &e)
	return shown{e, seqText(e.Seq), text}, err
}

func seqText(seq eventlog.Seq) string { return strconv.FormatUint(uint64(seq), 10) }

// tape keeps the newest entries of one session for its watchers. It follows the log from
// the time when the first of them comes until the last of them leaves.
type tape struct {
	cancel context.CancelFunc
	after  func(d time.Duration, f func()) (stop func() bool)
	gather time.Duration

	watchers int // guarded by Feeds.mu

	mu    sync.Mutex
	next  eventlog.Seq  // behind the newest entry; guarded by mu
	kept  []shown       // the newest entries, without gap; guarded by mu, but watchers share the array, which is only appended to
	bytes int           // of kept; guarded by mu
	due   bool          // a wake-up is due; guarded by mu
	grown chan struct{} // closed at the next wake-up; guarded by mu
	ended bool          // nothing will come; guarded by mu
	err   error         // why; guarded by mu
}

// watch returns the tape of a session. The caller calls leave.
func (fs *Feeds) watch(name string) (*tape, func(), error) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	t := fs.tapes[name]
	if t == nil {
		log, err := fs.engine.Log().Session(name)
		if err != nil {
			return nil, nil, err
		}
		ctx, cancel := context.WithCancel(context.Background())
		t = &tape{cancel: cancel, after: fs.cfg.AfterFunc, gather: fs.cfg.Gather, grown: make(chan struct{}), next: log.Head().Seq + 1}
		fs.tapes[name] = t
		go t.follow(ctx, log)
	}
	t.watchers++
	return t, func() {
		fs.mu.Lock()
		defer fs.mu.Unlock()
		if t.watchers--; t.watchers == 0 {
			t.cancel()
			if fs.tapes[name] == t {
				delete(fs.tapes, name)
			}
		}
	}, nil
}

// follow reads the log until ctx or the log ends.
func (t *tape) follow(ctx context.Context, log *eventlog.SessionReader) {
	var err error
	late := session.NewLateness(log.Entries)
	for e, failed := range log.Follow(ctx, t.next) {
		if err = failed; err != nil {
			break
		}
		var s shown
		if s, err = show(ctx, late, e); err != nil {
			break
		}
		t.add(s)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended, t.err = true, err
	t.wake()
}

// add appends an entry and wakes the watchers soon.
func (t *tape) add(s shown) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, s)
	t.bytes += len(s.json)
	t.next = s.entry.Seq + 1
	drop := 0
	for drop < len(t.kept)-1 && (len(t.kept)-drop > tapeEntries || t.bytes > tapeBytes) {
		t.bytes -= len(t.kept[drop].json)
		drop++
	}
	t.kept = t.kept[drop:]
	if !t.due {
		t.due = true
		t.after(t.gather, func() {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.due = false
			t.wake()
		})
	}
}

// wake wakes the watchers. It needs mu.
func (t *tape) wake() {
	close(t.grown)
	t.grown = make(chan struct{})
}

// from returns the entries from a Seq on, which the caller must not change. If the tape does not have them any more, behind
// is true. If there are none yet, grown is closed once there may be.
func (t *tape) from(next eventlog.Seq) (list []shown, behind bool, grown <-chan struct{}, ended bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	first := t.next - eventlog.Seq(len(t.kept))
	switch {
	case next < first:
		return nil, true, nil, false, nil
	case next < t.next:
		return t.kept[next-first : len(t.kept) : len(t.kept)], false, nil, false, nil
	}
	return nil, false, t.grown, t.ended, t.err
}

// entries sends the entries of a session.
func (fs *Feeds) entries(ctx context.Context, w *wish, out watcher) error {
	pred, _, err := w.filter.Compile()
	if err != nil {
		return err
	}
	t, leave, err := fs.watch(w.session)
	if err != nil {
		return err
	}
	defer leave()
	next := max(w.from, 1)
	send := func(s *shown) error {
		next = s.entry.Seq + 1
		if selected, err := selects(ctx, pred, &s.entry); !selected || err != nil {
			return err
		}
		return out.Event(s.id, s.json)
	}
	stopping := route.Stopping(ctx)
	if out.Position(seqText(next-1)) != nil {
		return nil // the watcher is gone
	}
	for {
		list, behind, grown, ended, err := t.from(next)
		switch {
		case behind:
			if err := fs.past(ctx, w.session, next, send); err != nil {
				return err
			}
		case len(list) > 0:
			for i := range list {
				if err := send(&list[i]); err != nil {
					return nil // the watcher is gone
				}
			}
		case ended:
			return err
		}
		if err := out.Flush(); err != nil || ctx.Err() != nil {
			return nil
		}
		if grown == nil {
			continue
		}
		select {
		case <-grown:
		case <-ctx.Done():
			return nil
		case <-stopping:
			if err := fs.past(ctx, w.session, next, send); err != nil {
				return err
			}
			// It is behind entries that the watcher has not selected, and may be gone.
			_ = errors.Join(out.Position(seqText(next-1)), out.Flush())
			return nil
		}
	}
}

// pastEntries bounds the entries that are read from the log before a watcher looks at the
// tape again.
const pastEntries = 4096

// past sends entries that the tape does not have, read from the log.
func (fs *Feeds) past(ctx context.Context, name string, from eventlog.Seq, send func(*shown) error) error {
	log, err := fs.engine.Log().Session(name)
	if err != nil {
		return err
	}
	n, late := 0, session.NewLateness(log.Entries)
	for e, err := range log.Entries(ctx, from) {
		if err != nil {
			return err
		}
		s, err := show(ctx, late, e)
		if err != nil {
			return err
		}
		if err := send(&s); err != nil {
			return err
		}
		if n++; n == pastEntries {
			break
		}
	}
	return nil
}
