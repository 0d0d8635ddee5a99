package postings

import "github.com/sajou-dev/sajou-go/eventlog"

// SmallSegments sets the size of segments, and returns the function that sets it back.
func SmallSegments(count int, entries eventlog.Seq) func() {
	p, b, e := segmentPostings, segmentBytes, segmentEntries
	segmentPostings, segmentBytes, segmentEntries = count, 16*count, entries
	return func() { segmentPostings, segmentBytes, segmentEntries = p, b, e }
}
