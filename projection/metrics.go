package projection

import (
	"time"

	"github.com/sajou-dev/sajou-go/eventlog"
)

// FoldMetrics receives measurements of the folds of running sessions. Its methods are
// called by goroutines that append or read, some under the lock of the session's fold.
// They must not wait, must not call the engine, and must not panic. Durations are of the
// wall clock and never negative.
type FoldMetrics interface {
	// FoldLoaded: the fold of a session was made at an entry, from the newest image and
	// the entries behind it. That happens when a session is opened, or first used.
	FoldLoaded(session string, at eventlog.Seq, took time.Duration)

	// Folded: entries that were appended were folded. behind is the number of entries that
	// were appended and that no call has begun to fold.
	Folded(session string, entries, behind int, took time.Duration)

	// FoldFailed: a fold refused an entry of the log, and nothing more is recorded in
	// the session. It is called at most once for an open session.
	FoldFailed(session string, cause error)
}
