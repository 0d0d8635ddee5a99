package eventlog

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
)

// commit is one write on its way to the disk, shared by the tickets of a round.
type commit struct {
	session *Session
	batch   *pebble.Batch
	durable durable       // the session's position behind it
	handed  chan struct{} // closed when the store has it, or will not get it
	claimed atomic.Bool   // a caller waits for the sync, or the commit was abandoned
	done    chan struct{}
	err     error     // set before done is closed
	measure *measured // nil without metrics; set before handed is closed
}

// abandon ends a commit that did not reach the store.
func (c *commit) abandon(err error) error {
	c.claimed.Store(true)
	c.end(err)
	return err
}

// end reports the outcome and wakes the callers that wait for it.
func (c *commit) end(err error) {
	c.err = err
	c.measure.report(&c.session.log.cfg, err)
	close(c.done)
}

// wait returns once the write is durable, or with the error that made the log
// read-only, or with the error of ctx if that ends first. The first caller waits
// for the store, the others for the first. A ticket of an open round first waits
// for the round to close: the store has no sync to wait for yet.
//
// holds says that the caller keeps the log open. If it does not, another caller
// does until the write is durable, and waits for the store.
func (c *commit) wait(ctx context.Context, holds bool) error {
	end := ctx.Done()
	if end == nil {
		<-c.handed
		c.sync()
		<-c.done
		return c.err
	}
	select {
	case <-c.done:
		return c.err
	default:
	}
	if holds && !c.claimed.Load() {
		// The store's wait takes no context, so it has a goroutine, which
		// publishes the entries even if all callers have given up.
		c.session.log.keepOpen(func() {
			<-c.handed
			c.sync()
		})
	}
	select {
	case <-c.done:
		return c.err
	case <-end:
		return ctx.Err()
	}
}

// sync waits for the store, if no other caller does, and publishes the entries that
// are durable then.
func (c *commit) sync() {
	if !c.claimed.CompareAndSwap(false, true) {
		return
	}
	l := c.session.log
	err := errors.Join(c.batch.SyncWait(), c.batch.Close())
	if err != nil {
		l.fail(err)
	}
	if err != nil || l.disk.Lost.Load() {
		err = l.writable()
	} else if err = l.notes.note(c.session.name, &c.durable); err == nil {
		// A sync covers all earlier writes, so every entry that the session had
		// when this commit was applied is durable.
		c.session.publish(&c.durable)
	}
	c.end(err)
}
