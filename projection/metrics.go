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
	// SessionOpened: a session was opened at an entry, after this long. Zero means that
	// it has no entries yet.
	SessionOpened(session string, at eventlog.Seq, took time.Duration)

	// Folded: entries were folded. behind is the number of entries that were appended
	// and are not folded yet.
	Folded(session string, entries, behind int, took time.Duration)

	// FoldFailed: a fold refused an entry of the log, and nothing more is recorded in
	// the session. It is called at most once for an open session.
	FoldFailed(session string, cause error)
}
