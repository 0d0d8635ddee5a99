package eventlog

import (
	"context"
	"iter"
	"time"

	"github.com/sajou-dev/sajou-go/eventlog/chain"
)

// Ticket is an append that has its place in the log and is not yet known to be
// durable.
type Ticket struct {
	session *Session
	commit  *commit // nil for a repeat of an earlier round
	sealed  []byte  // the sealed batch; nil for a repeat; immutable
	first   Seq
	head    Head
	at      time.Duration
	holds   bool // it keeps the log open until Wait; set by [Appender.StageIn]
}

// Head returns the position behind the append, durable or not.
func (t *Ticket) Head() Head { return t.head }

// Size returns the number of bytes that the append takes in the log; 0 for a
// repeat.
func (t *Ticket) Size() int { return len(t.sealed) }

// First returns the Seq of the first entry of the append.
func (t *Ticket) First() Seq { return t.first }

// Repeat reports whether the session had recorded the batch's key before. The
// ticket is then that of the first outcome, and nothing was written.
func (t *Ticket) Repeat() bool { return t.sealed == nil }

// Entries iterates over the entries of the append, durable or not. A repeat has
// none.
func (t *Ticket) Entries() iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		if t.sealed == nil {
			return
		}
		b, err := chain.OpenBatch(t.sealed)
		for i := 0; i < b.Count; i++ {
			var e Entry
			var body []byte
			var hash *Hash
			if err == nil {
				_, body, hash, err = b.Next()
			}
			if err == nil {
				e = Entry{Seq: b.First + Seq(i), Hash: *hash}
				err = chain.DecodeBody(&e, body)
			}
			if err != nil {
				panic("eventlog: a batch that was just sealed does not open: " + err.Error())
			}
			if i == 0 {
				e.Batch = b.Count
			}
			if !yield(e) {
				return
			}
		}
	}
}

// Wait returns the Head behind the append once it is durable, the error that made
// the log read-only, or the error of ctx if ctx ends first. In the last case the
// append becomes durable, or fails, without the caller.
func (t *Ticket) Wait(ctx context.Context) (Head, error) {
	holds := t.holds
	if holds {
		defer t.session.log.release()
		t.holds = false
	}
	if t.commit == nil {
		if err := t.session.WaitDurable(ctx, t.head.Seq); err != nil {
			return Head{}, err
		}
		return t.head, nil
	}
	if err := t.commit.wait(ctx, holds); err != nil {
		return Head{}, err
	}
	return t.head, nil
}
