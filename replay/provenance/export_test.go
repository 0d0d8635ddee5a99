package provenance

import "github.com/sajou-dev/sajou-go/eventlog"

// TraceChunks sets the number of entries of a chunk of traced events, and returns the
// function that sets it back.
func TraceChunks(entries eventlog.Seq) func() {
	before := tracedEntries
	tracedEntries = entries
	return func() { tracedEntries = before }
}

// RecodeTrace decodes traced events and encodes them again.
func RecodeTrace(b []byte) ([]byte, error) {
	events, err := decodeTrace(b)
	if err != nil {
		return nil, err
	}
	return encodeTrace(events), nil
}
