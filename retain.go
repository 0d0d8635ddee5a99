package sajou

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/snapshot"
)

// Retention says which sessions [Engine.Retain] keeps.
type Retention struct {
	// MaxAge is the age from which on a session is deleted: that of its last entry, by
	// [Config.Now] and the timestamps in the session. A session whose time is not the
	// wall clock's has no age. Zero means no bound.
	MaxAge time.Duration

	// MaxBytes bounds the bytes that all sessions together take in tables, as
	// [eventlog.Log.DiskSize] estimates them. Those with the oldest last entry are
	// deleted first, and those that have no age last, in the order in which they were
	// begun. Zero means no bound.
	MaxBytes uint64

	// DryRun deletes nothing. The answer is the same, as far as the estimates are: they
	// change a little when the store compacts its tables.
	DryRun bool
}

// RetainedSession is a session that [Engine.Retain] has considered.
type RetainedSession struct {
	Session string
	Head    eventlog.Head
	Last    time.Time // of its last entry; zero if its time is not the wall clock's
	Bytes   uint64    // in tables
}

// RetentionReport is what [Engine.Retain] has done, or would do.
type RetentionReport struct {
	// Deleted are the deleted sessions, in the order of their deletion.
	Deleted []RetainedSession

	// InUse are the sessions that would have been deleted and are in use.
	InUse []RetainedSession

	// Kept counts the other sessions, and Bytes are those that InUse and they take.
	Kept  int
	Bytes uint64
}

// Retain deletes the sessions that are older than the retention allows, and then, until the
// others fit, the oldest ones; see [Engine.Delete]. A session that is in use stays: one with
// agents, a sink, a call of the judge under way or records that are not durable. One that
// cannot be read stays too.
//
// After an error, the report has the sessions that were deleted before it.
func (e *Engine) Retain(ctx context.Context, r Retention) (RetentionReport, error) {
	if r.MaxAge < 0 {
		return RetentionReport{}, fmt.Errorf("%w: negative MaxAge %v", eventlog.ErrInvalid, r.MaxAge)
	}
	if err := e.beginDeleting(ctx); err != nil {
		return RetentionReport{}, err
	}
	defer func() { <-e.deleting }()
	if !e.cfg.ReadOnly {
		if err := e.log.Flush(); err != nil { // entries count once they are in tables
			return RetentionReport{}, err
		}
	} else if !r.DryRun {
		return RetentionReport{}, e.log.Err()
	}
	all, report, err := e.retained(ctx)
	if err != nil {
		return report, err
	}
	now := e.cfg.Now()
	for i := range all {
		s := &all[i]
		old := r.MaxAge > 0 && !s.Last.IsZero() && now.Sub(s.Last) > r.MaxAge
		if !old && (r.MaxBytes == 0 || report.Bytes <= r.MaxBytes) {
			report.Kept++
			continue
		}
		deleted, err := e.retire(ctx, s.Session, r.DryRun)
		switch {
		case deleted:
			report.Deleted = append(report.Deleted, *s)
			report.Bytes -= s.Bytes
		case errors.Is(err, eventlog.ErrInUse) || errors.Is(err, eventlog.ErrClaimed):
			report.InUse = append(report.InUse, *s)
			err = nil
		case errors.Is(err, eventlog.ErrCorrupt):
			report.Kept++
			err = nil
		}
		if err != nil {
			return report, err
		}
	}
	if len(report.Deleted) > 0 && !r.DryRun {
		err = e.withSnapshots((*snapshot.Store).Rewrite)
	}
	return report, err
}

// retained returns the sessions that can be read, in the order in which they would be
// deleted, and a report that counts the others.
func (e *Engine) retained(ctx context.Context) (all []RetainedSession, report RetentionReport, err error) {
	names, err := e.Sessions()
	if err != nil {
		return nil, report, err
	}
	for _, name := range names {
		s := RetainedSession{Session: name}
		if s.Bytes, err = e.log.DiskSize(ctx, name); err != nil {
			return nil, report, err
		}
		report.Bytes += s.Bytes
		log, err := e.Log().Session(name)
		if err == nil {
			s.Head = log.Head()
			s.Last, _, err = session.LastTime(ctx, log)
		}
		switch {
		case errors.Is(err, eventlog.ErrCorrupt):
			report.Kept++
		case err != nil:
			return nil, report, err
		default:
			all = append(all, s)
		}
	}
	slices.SortStableFunc(all, func(a, b RetainedSession) int {
		switch {
		case a.Last.IsZero() && b.Last.IsZero():
			return 0
		case a.Last.IsZero():
			return 1
		case b.Last.IsZero():
			return -1
		}
		return a.Last.Compare(b.Last)
	})
	return all, report, nil
}

// retire deletes a session that is not in use; with dry it only says whether it would.
func (e *Engine) retire(ctx context.Context, name string, dry bool) (deleted bool, err error) {
	if !dry {
		t, err := e.delete(ctx, name, true)
		return t.Number != 0, err
	}
	e.mu.Lock()
	s := e.sessions[name].Value()
	e.mu.Unlock()
	if s != nil {
		err = s.w.CheckIdle(ctx)
	}
	return err == nil, err
}
