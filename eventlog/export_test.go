package eventlog

import "github.com/cockroachdb/pebble/v2"

// What the tests reach in for.

// BatchKey returns the store's key of the batch that begins at seq.
func BatchKey(number uint32, seq Seq) []byte { return batchKey(nil, number, seq) }

// SessionKey returns the store's key of a session's record.
func SessionKey(name string) []byte { return sessionKey(name) }

// KeyFormat is the store's key of the format version.
var KeyFormat = keyFormat

// Put writes into the store beneath an open log, and forgets its sessions.
func (l *Log) Put(key, value []byte) error {
	l.mu.Lock()
	clear(l.sessions)
	l.mu.Unlock()
	return l.db.Set(key, value, pebble.NoSync)
}

// SealHeader is the header of a sealed batch.
func SealHeader(first Seq, count int) []byte { return sealHeader(nil, first, count) }

// WalkBatch reads a sealed batch to its end, as everything that reads one
// does, and calls f for each link.
func WalkBatch(sealed []byte, f func(e Entry, stored []byte)) (rest []byte, err error) {
	b, err := openBatch(sealed)
	if err != nil {
		return nil, err
	}
	for i := range b.count {
		stored, body, hash, err := b.link()
		if err != nil {
			return nil, err
		}
		e := Entry{Seq: b.first + Seq(i), Hash: *hash}
		if err := decodeBody(&e, body); err != nil {
			return nil, err
		}
		f(e, stored)
	}
	return b.rest, nil
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

// Waiting counts the writers of a session that run or wait for their turn.
func (s *Session) Waiting() int {
	s.turns.mu.Lock()
	defer s.turns.mu.Unlock()
	return len(s.turns.waiting)
}

// NewArena returns the two calls of a new arena.
func NewArena() (room func(n int) []byte, take func([]byte)) {
	a := &arena{}
	return a.room, a.take
}
