package eventlog_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/eventlog/internal/keyspace"
	"github.com/sajou-dev/sajou-go/eventlog/verify"
	"github.com/sajou-dev/sajou-go/internal/golden"
)

// life is a store on which drawn calls are made, with the texts of all results.
type life struct {
	*golden.Dice
	t    *testing.T
	fs   *vfs.MemFS
	cfg  eventlog.Config
	log  *eventlog.Log
	out  strings.Builder
	held *eventlog.Appender
	seen []eventlog.Head

	damages, damaged bool
}

var drawnNames = regexp.MustCompile(`checkpoints/[0-9a-f]{16}|\d{6}\.(log|sst)`)

// tell writes one line, without what differs from run to run.
func (l *life) tell(values ...any) {
	for i, v := range values {
		if loss, ok := v.(*eventlog.LossError); ok && loss == nil {
			values[i] = "no loss"
		} else if err, ok := v.(error); ok && err != nil {
			text := err.Error()
			for _, class := range []error{
				eventlog.ErrClosed, eventlog.ErrReadOnly, eventlog.ErrCorrupt, eventlog.ErrVersion, eventlog.ErrConflict, eventlog.ErrNoStore, eventlog.ErrForeign,
				eventlog.ErrNoSession, eventlog.ErrDeleted, eventlog.ErrInUse, eventlog.ErrTooLarge, eventlog.ErrInvalid, eventlog.ErrClaimed, eventlog.ErrLost,
			} {
				if errors.Is(err, class) {
					text += "*"
				}
			}
			values[i] = text
		}
	}
	l.out.WriteString(drawnNames.ReplaceAllString(fmt.Sprintln(values...), "N"))
}

func (l *life) name() string {
	if l.Once(25) {
		return golden.Pick(l.Dice, "none", "", "x\n", strings.Repeat("n", 256))
	}
	return golden.Pick(l.Dice, "a", "a", "a", "b", "b", "c")
}

// session is [eventlog.Log.Session], with its error in the text.
func (l *life) session() *eventlog.Session {
	name := l.name()
	s, err := l.log.Session(name)
	if l.tell("session", len(name), name[:min(len(name), 5)], err); err != nil {
		return nil
	}
	l.tell(s.Name() == name, s.Genesis() == eventlog.Genesis(name), s.Exists(), s.Head(), s.At())
	l.seen = append(l.seen, s.Head())
	return s
}

func (l *life) batch(s *eventlog.Session) eventlog.Batch {
	b := eventlog.Batch{Key: golden.Pick(l.Dice, "", "", "", "k", "l", strings.Repeat("k", 255)), Fresh: l.Once(20)}
	at := s.At()
	for range golden.Pick(l.Dice, 1, 1, 1, 2, 3) {
		at += time.Duration(l.N(5)) * time.Millisecond
		b.Drafts = append(b.Drafts, eventlog.Draft{Kind: golden.Pick[eventlog.Kind](l.Dice, 1, 2, 3, 4, 5), At: at, Data: golden.Pick(l.Dice, []byte{0xc0}, []byte{7}, text("data"), text(strings.Repeat("x", l.N(160))))})
	}
	if l.Once(5) { // something that is refused
		d := &b.Drafts[l.N(len(b.Drafts))]
		switch l.N(7) {
		case 0:
			d.Kind = golden.Pick[eventlog.Kind](l.Dice, 0, 6)
		case 1:
			d.At -= time.Second
		case 2:
			d.Data = golden.Pick(l.Dice, nil, []byte{1, 2}, []byte{0x92, 1})
		case 3, 4:
			d.Data = text(strings.Repeat("x", 255+l.N(40)))
		case 5:
			b.Key = strings.Repeat("k", 256)
		case 6:
			b.Drafts = nil
		}
	}
	switch l.N(5) {
	case 0:
		b.Expect = s.Head()
	case 1:
		if len(l.seen) > 0 {
			b.Expect = golden.Pick(l.Dice, l.seen...)
		}
	}
	return b
}

func (l *life) ctx() context.Context {
	ctx, cancel := context.WithCancel(l.t.Context())
	if l.Once(12) {
		cancel()
	}
	l.t.Cleanup(cancel)
	return ctx
}

func (l *life) entries(s *eventlog.Session) {
	n := 0
	for e, err := range s.Entries(l.t.Context(), eventlog.Seq(l.N(12))) {
		l.tell(e.Seq, e.Hash, e.Kind, e.At, e.Key, e.Batch, fmt.Sprintf("%x", e.Data), len(e.Body), err)
		if n++; n > 3 && l.Once(4) {
			break
		}
	}
}

func (l *life) ticket(ticket *eventlog.Ticket, err error) {
	if ticket == nil {
		l.tell("no ticket", err)
		return
	}
	l.tell("ticket", ticket.First(), ticket.Head(), ticket.Size(), ticket.Repeat(), err)
	for e := range ticket.Entries() {
		l.tell(e.Seq, e.Hash, e.Kind, e.At, e.Key, e.Batch)
	}
}

// damage changes one key of the store.
func (l *life) damage() {
	l.damaged = true
	kept := map[string]string{}
	if err := l.log.Each(func(key, value []byte) {
		if key[0] == 'e' || key[0] == 'k' || key[0] == 's' {
			kept[string(key)] = string(value)
		}
	}); err != nil || len(kept) == 0 {
		l.tell("each", err)
		return
	}
	keys := slices.Sorted(maps.Keys(kept))
	key := []byte(golden.Pick(l.Dice, keys...))
	value := []byte(kept[string(key)])
	var err error
	put := func(key, value []byte) {
		// A checkpoint need not have what was not synced.
		err = errors.Join(l.log.Put(key, value), l.log.WriteSync(key, value))
	}
	switch l.N(6) {
	case 0:
		err = l.log.Remove(key)
	case 1:
		put(key, []byte(kept[golden.Pick(l.Dice, keys...)]))
	case 2:
		if len(value) > 0 {
			value[l.N(len(value))] ^= 1 << l.N(8)
		}
		put(key, value)
	case 3:
		put(key, value[:len(value)/2])
	case 4:
		put(key, append(value, "more"...))
	case 5:
		put(golden.Pick(l.Dice, keyspace.SessionKey("c"), keyspace.OutcomeKey(1, "l"), keyspace.BatchKey(nil, 1, 9), keyspace.BatchKey(nil, 30, 1), []byte("e\x00\x00\x00\x01x")), value)
	}
	l.tell("damage", fmt.Sprintf("%x", key), err)
}

// open opens the store again, perhaps for reading only.
func (l *life) open() {
	if l.log != nil {
		l.tell("close", l.log.Close(), l.log.Close(), l.log.Err())
		if s, err := l.log.Session("a"); err == nil {
			l.tell("closed", s.Head())
		} else {
			l.tell("closed", err)
		}
	}
	l.held = nil
	// After damage a repair depends on which tables Pebble has deleted.
	if l.log != nil && !l.damaged && l.Once(2) {
		dir := fmt.Sprint("saved ", l.out.Len())
		r, err := eventlog.Repair(l.t.Context(), "store", dir, l.cfg)
		slices.Sort(r.Doubts) // the notes have no order
		l.tell("repair", r.Whole(), r.Found, r.Doubts, r.Tombstones, len(r.Rebuilt), err)
		for _, s := range r.Sessions {
			l.report(s, nil)
		}
		if err == nil && len(r.Sessions) > 0 {
			copied, err := eventlog.Open(dir, l.cfg)
			l.tell(err)
			if err == nil {
				l.all(copied)
				l.tell(copied.Close())
			}
		}
	}
	cfg := l.cfg
	cfg.ReadOnly = l.log != nil && l.Once(4)
	log, err := eventlog.Open("store", cfg)
	if err != nil && !cfg.ReadOnly {
		cfg.AcceptLoss = true
		l.tell("open", err)
		log, err = eventlog.Open("store", cfg)
	}
	if err != nil { // the store is damaged for good: the next one
		l.tell("open", cfg.ReadOnly, err)
		l.fs, l.damaged = vfs.NewMem(), false
		cfg = l.cfg
		cfg.FS, l.cfg.FS = l.fs, l.fs
		log, err = eventlog.Open("store", cfg)
		require.NoError(l.t, err)
	}
	l.log = log
	l.tell("open", cfg.ReadOnly, log.Unused(), log.Loss(), log.Doubts(), log.Err())
}

// all tells all keys of a store.
func (l *life) all(log *eventlog.Log) {
	err := log.Each(func(key, value []byte) { l.tell(fmt.Sprintf("%x %x", key, value)) })
	l.tell("all", err)
}

func (l *life) report(r verify.SessionReport, err error) {
	l.tell("report", r.Session, r.Head, r.Fault, r.KeyFaults, r.Whole(), err)
	for _, f := range r.Keys {
		l.tell(f.String())
	}
}

// step makes one call.
func (l *life) step() {
	switch l.N(22) {
	case 0, 1, 2, 3, 4, 5:
		if s := l.session(); s != nil {
			head, err := s.Append(l.t.Context(), l.batch(s))
			l.tell("append", head, err)
		}
	case 6, 7:
		if s := l.session(); s != nil {
			err := s.Write(l.t.Context(), func(r *eventlog.Round) {
				for range 1 + l.N(3) {
					b := l.batch(s)
					l.ticket(r.Repeat(b.Key))
					b.Fresh = b.Fresh || l.Once(9)
					l.ticket(r.Stage(b))
				}
			})
			l.tell("write", err)
		}
	case 8:
		if s := l.session(); s != nil {
			b := l.batch(s)
			b.Fresh = false
			ticket, err := s.Stage(l.t.Context(), b)
			if l.ticket(ticket, err); err == nil {
				head, err := ticket.Wait(l.t.Context())
				l.tell("wait", head, err)
			}
		}
	case 9:
		if l.held != nil {
			l.held.Release()
			l.held = nil
			l.tell("released")
		} else if s := l.session(); s != nil {
			a, err := s.Claim()
			l.tell("claim", err)
			_, again := s.Claim()
			l.tell("again", again)
			if err == nil {
				l.held = a
				b := l.batch(s)
				ticket, err := a.AppendIn(l.t.Context(), func(r *eventlog.Round) (*eventlog.Ticket, error) { return r.Stage(b) })
				l.ticket(ticket, err)
			}
		}
	case 10:
		if l.Once(3) {
			name := l.name()
			tomb, err := l.log.Delete(l.ctx(), name, noon.Add(time.Duration(l.N(99))))
			l.tell("delete", tomb, err)
		}
	case 11, 12:
		name := l.name()
		var opts verify.Options
		if len(l.seen) > 0 && l.Once(2) {
			opts.Expect = golden.Pick(l.Dice, l.seen...)
		}
		l.report(l.log.Verify(l.ctx(), name, opts))
		faults, err := l.log.Survey(l.ctx())
		l.tell("survey", faults, err)
	case 13:
		l.report(l.log.RebuildKeys(l.t.Context(), l.name(), verify.Options{}))
	case 14, 15:
		if s := l.session(); s != nil {
			l.entries(s)
			e, err := s.Entry(l.t.Context(), eventlog.Seq(l.N(12)))
			l.tell("entry", e.Seq, e.Hash, err)
			seq, ok, err := s.Readable(l.ctx(), eventlog.Seq(l.N(12)))
			l.tell("readable", seq, ok, err)
			ended, end := context.WithCancel(l.t.Context())
			end()
			l.tell("durable", s.WaitDurable(ended, s.Head().Seq+eventlog.Seq(l.N(2))))
		}
	case 16:
		infos, err := l.log.Sessions()
		tombs, err2 := l.log.Tombstones()
		l.tell("sessions", infos, err, tombs, err2)
		size, err := l.log.DiskSize(l.t.Context(), l.name())
		usage, err2 := l.log.DiskUsage()
		l.tell("size", size > 0, err, usage.Total() > 0, err2, l.log.Flush(), l.log.Err(), l.log.Unused())
	case 17, 18:
		if l.damages {
			l.damage()
		}
	case 19:
		l.open()
	case 20:
		dir := golden.Pick(l.Dice, fmt.Sprint("copy ", l.out.Len()), "store/copy", "store")
		reports, err := l.log.Backup(l.ctx(), dir)
		l.tell("backup", reports, err)
		if err == nil {
			copied, err := eventlog.Open(dir, l.cfg)
			require.NoError(l.t, err)
			l.all(copied)
			l.tell(copied.Loss(), copied.Doubts(), copied.Close())
		}
	case 21:
		dir, err := l.log.Checkpoint(l.ctx())
		l.tell("checkpoint", dir, err)
		if err == nil {
			cfg := l.cfg
			cfg.ReadOnly = true
			copied, err := eventlog.Open(dir, cfg)
			require.NoError(l.t, err)
			l.all(copied)
			l.tell(copied.Close(), l.fs.RemoveAll(dir))
		}
	}
}

// Drawn calls on stores that are opened again, damaged and repaired have the results that
// were recorded.
func TestRecordedLives(t *testing.T) {
	golden.Trace(t, "testdata/lives.txt", func(step func(name, text string)) {
		for seed := range 30 {
			l := &life{Dice: golden.NewDice(uint64(seed)), t: t, fs: vfs.NewMem()}
			l.damages = seed%3 > 0
			l.cfg = eventlog.Config{FS: l.fs, MaxEntry: 300, MaxBatch: 500, NoteEntries: 1 + l.N(9), AfterFunc: (&timers{}).after}
			l.open()
			for i := range 60 {
				l.step()
				if i%10 == 9 {
					l.all(l.log)
					step(fmt.Sprint(seed, " ", i), l.out.String())
					l.out.Reset()
				}
			}
			require.NoError(t, l.log.Close())
		}
	})
}
