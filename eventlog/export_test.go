package eventlog

import (
	"bytes"
	"context"
	"errors"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/sajou-dev/sajou-go/eventlog/internal/storefile"
)

// Cached returns the number of sessions that the log knows to be in use.
func (l *Log) Cached() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.sessions)
}

// Put writes into the store beneath an open log and drops the log's cached sessions.
func (l *Log) Put(key, value []byte) error {
	l.mu.Lock()
	clear(l.sessions)
	l.mu.Unlock()
	return l.db.Set(key, value, pebble.NoSync)
}

// Get reads from the store beneath an open log.
func (l *Log) Get(key []byte, value *[]byte) error {
	v, closer, err := l.db.Get(key)
	if err != nil {
		return err
	}
	*value = append([]byte(nil), v...)
	return closer.Close()
}

// Write is [Appender.Write] of a session that no Appender has claimed.
func (s *Session) Write(ctx context.Context, f func(*Round)) error { return s.write(ctx, f) }

// StageIn is [Appender.StageIn] of a session that no Appender has claimed.
func (s *Session) StageIn(ctx context.Context, f func(*Round) (*Ticket, error)) (*Ticket, error) {
	return s.stageIn(ctx, f)
}

// Stage stages one batch in a round; see [Appender.StageIn].
func (s *Session) Stage(ctx context.Context, b Batch) (*Ticket, error) {
	return s.StageIn(ctx, func(r *Round) (*Ticket, error) { return r.Stage(b) })
}

// OnJoin makes the session call f, with the session's lock held, with the number of
// running and waiting writers whenever a writer joins. A nil f ends the calls.
func (s *Session) OnJoin(f func(waiting int)) {
	s.turns.mu.Lock()
	defer s.turns.mu.Unlock()
	s.turns.joined = f
}

// Waiting returns the number of running and waiting writers of a session.
func (s *Session) Waiting() int {
	s.turns.mu.Lock()
	defer s.turns.mu.Unlock()
	return s.turns.running + len(s.turns.waiting)
}

// NewArena returns the two methods of a new arena.
func NewArena() (room func(n int) []byte, take func([]byte)) {
	a := &arena{}
	return a.room, a.take
}

// Remove deletes a key of the store beneath an open log and drops the log's cached
// sessions.
func (l *Log) Remove(key []byte) error {
	l.mu.Lock()
	clear(l.sessions)
	l.mu.Unlock()
	return l.db.Delete(key, pebble.Sync)
}

// WriteSync writes a key and waits until it is durable.
func (l *Log) WriteSync(key, value []byte) error {
	b := l.db.NewBatch()
	if err := b.Set(key, value, nil); err != nil {
		return err
	}
	return l.writeSync(b, true)
}

// Lead runs f on a goroutine that counts as one that leads rounds.
func (l *Log) Lead(f func()) { l.leaders.Go(f) }

// Recount rescans the store beneath an open log for sessions.
func (l *Log) Recount() error {
	l.next, l.shared = 1, nil
	return l.countSessions()
}

// Each calls f with every key and value of the store beneath an open log.
func (l *Log) Each(f func(key, value []byte)) error {
	it, err := l.db.NewIter(nil)
	if err != nil {
		return err
	}
	for it.First(); it.Valid(); it.Next() {
		f(it.Key(), it.Value())
	}
	return errors.Join(it.Error(), it.Close())
}

// NotedHeads reads the file of noted heads.
func NotedHeads(fs vfs.FS, dir string) (heads map[string]Head, damage string, err error) {
	heads = make(map[string]Head)
	damage, err = storefile.ReadHeads(fs, fs.PathJoin(dir, HeadsFile), func(_ int, n storefile.NotedHead) { heads[n.Name] = n.Head })
	return heads, damage, err
}

// WALScan is the result of a scan of a file of the write-ahead log.
type WALScan struct {
	End, Behind, Promised int64
	Closed                bool
	Records, Lost         [][]byte // in front of the break and behind it
}

// ScanWAL scans the bytes of a file of the write-ahead log.
func ScanWAL(b []byte, number uint64) (WALScan, error) {
	var w WALScan
	s, err := storefile.ScanWAL(bytes.NewReader(b), number, func(_ int64, payload []byte, intact bool) bool {
		if intact {
			w.Records = append(w.Records, bytes.Clone(payload))
		} else {
			w.Lost = append(w.Lost, bytes.Clone(payload))
		}
		readWALRecord(payload, func(walBatch) {}, func(uint32, string) {})
		return true
	})
	w.End, w.Behind, w.Promised, w.Closed = s.End, s.Behind, s.Promised, s.Closed
	return w, err
}
