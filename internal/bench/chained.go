package main

import (
	"crypto/sha256"
	"errors"
	"sync"

	"github.com/cockroachdb/pebble/v2"

	"github.com/sajou-dev/sajou-go/eventlog"
)

// chainedLog is the second peer: the smallest log over Pebble with a chain of hashes
// and shared syncs. It has one key an entry, and the value is the body with the hash
// that links it to the entry before. It checks nothing, knows one session, no drafts,
// no idempotency keys and no readers, and cannot recover: the distance to raw Pebble is
// the price of the chain, that of the engine to it the price of everything else.
type chainedLog struct {
	raw *rawStore

	mu   sync.Mutex
	seq  uint64                  // guarded by mu
	hash [eventlog.HashSize]byte // of entry seq; guarded by mu
	sum  []byte                  // scratch: what is hashed; guarded by mu
}

func openChained(dir string) (*chainedLog, error) {
	raw, err := openRaw(dir)
	if err != nil {
		return nil, err
	}
	return &chainedLog{raw: raw}, nil
}

// put appends bodies as one batch and returns when they are durable. It waits for the
// disk outside the lock, so that concurrent calls share syncs.
func (c *chainedLog) put(bodies [][]byte) error {
	batch := c.raw.db.NewBatch()
	if err := c.stage(batch, bodies); err != nil {
		return err
	}
	return errors.Join(batch.SyncWait(), batch.Close())
}

// stage links the bodies and hands them to the store.
func (c *chainedLog) stage(batch *pebble.Batch, bodies [][]byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, body := range bodies {
		c.seq++
		c.sum = append(append(c.sum[:0], c.hash[:]...), body...)
		c.hash = sha256.Sum256(c.sum)
		var key [9]byte
		op := batch.SetDeferred(len(key), len(body)+len(c.hash))
		copy(op.Key, rawKey(key[:], c.seq))
		copy(op.Value[copy(op.Value, body):], c.hash[:])
		if err := op.Finish(); err != nil {
			return err
		}
	}
	return c.raw.db.ApplyNoSyncWait(batch, pebble.Sync)
}

func (c *chainedLog) close() error { return c.raw.close() }
