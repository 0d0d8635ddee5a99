package history

import "github.com/sajou-dev/sajou-go/eventlog"

// Jumps sets the distance between two entries from which a pass jumps, and returns the
// function that sets it back.
func Jumps(entries eventlog.Seq) func() {
	before := jumpEntries
	jumpEntries = entries
	return func() { jumpEntries = before }
}
