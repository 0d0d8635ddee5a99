package history

import "github.com/sajou-dev/sajou-go/eventlog"

// Jumps sets the distance between two entries from which a pass jumps, and returns the
// function that sets it back.
func Jumps(entries eventlog.Seq) func() {
	before := jumpEntries
	jumpEntries = entries
	return func() { jumpEntries = before }
}

// Early sets the number of entries in which agents are looked for without the table, and
// returns the function that sets it back.
func Early(entries eventlog.Seq) func() {
	before := earlyEntries
	earlyEntries = entries
	return func() { earlyEntries = before }
}
