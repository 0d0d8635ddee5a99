package sajou

import (
	"cmp"
	"errors"
	"slices"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/writer"
	stagelive "github.com/sajou-dev/sajou-go/stage/live"
)

// Health is the state of an engine at one moment, as [Engine.Health] returns it.
type Health struct {
	// Log is why nothing can be recorded any more: the first write that failed, as
	// [eventlog.ErrReadOnly] with its cause, or [eventlog.ErrClosed]. It is nil while
	// the log takes appends, and for an engine that was opened read-only. A log that
	// has failed works again when the store is opened again.
	Log error

	// Folds are the open sessions whose state has failed, or does not keep up with the
	// entries appended to them: more than 1024 wait. By name. A state that no call has
	// asked for does not exist and is not behind.
	Folds []FoldHealth

	// Projections are those of [Config.Projections] that have panicked in an open session
	// and are out of use there until the state is made again, sorted by session. Recording
	// goes on without them.
	Projections []ProjectionHealth

	// Snapshots is why the newest image was not stored, or why the engine works without
	// snapshots although they were asked for. Nothing is lost then: sessions open more
	// slowly.
	Snapshots error

	// Sinks are the attached sinks that have not been shown every durable entry yet, and
	// then the newest of those that were detached by an error, oldest first.
	Sinks []stagelive.SinkHealth

	// SinksDetached counts the sinks that were detached by an error since Open.
	SinksDetached int
}

// FoldHealth is an open session whose state is behind its log or has failed.
type FoldHealth struct {
	Session string
	Behind  int   // entries appended and not folded
	Err     error // why the state refused an entry; nothing more can be recorded in the session
}

// ProjectionHealth is a projection of the program that is out of use in an open session.
type ProjectionHealth struct {
	Session    string
	Projection string
	Err        error // the panic, with the entry that caused it
}

// Err returns why the engine does not record what it should: Log, and the errors of Folds,
// joined; nil if there are none. It is the answer to a readiness probe. Delays (folds and
// sinks that are behind, images not stored) do not count as errors, and neither do
// Projections, because everything is recorded without them.
func (h Health) Err() error {
	errs := []error{h.Log}
	for _, f := range h.Folds {
		errs = append(errs, f.Err)
	}
	return errors.Join(errs...)
}

// Health returns the state of the engine. It does not wait for the disk, for a fold or
// for a sink, and can be called at any time, also after Close.
func (e *Engine) Health() Health {
	var h Health
	if err := e.log.Err(); !e.cfg.ReadOnly || !errors.Is(err, eventlog.ErrReadOnly) {
		h.Log = err
	}
	for _, w := range e.writers.Writers() {
		if f := (FoldHealth{w.Name(), w.Behind(), w.Broken()}); f.Behind > writer.MaxBehind || f.Err != nil {
			h.Folds = append(h.Folds, f)
		}
		for _, f := range w.ProjectionFailures() {
			h.Projections = append(h.Projections, ProjectionHealth{w.Name(), f.Projection, f.Err})
		}
	}
	slices.SortFunc(h.Folds, func(a, b FoldHealth) int { return cmp.Compare(a.Session, b.Session) })
	slices.SortStableFunc(h.Projections, func(a, b ProjectionHealth) int { return cmp.Compare(a.Session, b.Session) })
	if h.Snapshots = e.snapsErr; e.snapshotter != nil {
		h.Snapshots = e.snapshotter.Err()
	}
	h.Sinks, h.SinksDetached = e.attachments.Health()
	return h
}
