package recording

import (
	"errors"
	"maps"
	"slices"
	"time"
)

// ErrUnreadable reports that more records were unreadable than [Options.MaxBad] allows.
var ErrUnreadable = errors.New("too many unreadable records")

// Balance counts the native records of a recording. The sum of Mapped, Kept, Skipped,
// Unreadable and Held is Records.
type Balance struct {
	Records    int
	Mapped     int            // gave signals, or a part of one
	Kept       int            // are signals of the type FORMAT.KIND
	Skipped    map[string]int // by the name of the rule
	Unreadable int            // are signals of the type FORMAT.unreadable
	Held       int            // wait for later records, or for the end
	Signals    map[string]int // that were yielded, by type

	// Waiting counts the records among Mapped and Kept whose signals were not yielded,
	// because later records must tell whether a jump of time is right.
	Waiting int

	Clamped    int           // records whose time was before that of an earlier one
	MaxClamped time.Duration // the furthest that one of them was moved
	Ahead      int           // records whose time was a wrong jump ahead
	Sorted     int           // records that took effect before one that stands earlier in the file
	MaxSorted  time.Duration // the furthest that one of them was behind
	Repaired   int           // records whose text broke a rule of JSON that could be mended
	Cut        int           // signals of which texts were shortened to fit an entry

	// Notes say why a recording gave no signal at all, see [Mapping.Note].
	Notes []string
}

func (b *Balance) clone() Balance {
	c := *b
	c.Skipped, c.Signals, c.Notes = maps.Clone(b.Skipped), maps.Clone(b.Signals), slices.Clone(b.Notes)
	return c
}

func (b *Balance) skip(rule string) {
	if b.Skipped == nil {
		b.Skipped = map[string]int{}
	}
	b.Skipped[rule]++
}

// Total returns the number of skipped records.
func (b *Balance) Total() int {
	n := 0
	for _, c := range b.Skipped {
		n += c
	}
	return n
}

// alwaysAllowed is the number of unreadable records that a recording may have
// whatever its length.
const alwaysAllowed = 3

// tooBad reports whether more records were unreadable than a share allows.
func (b *Balance) tooBad(share float64) bool {
	if share < 0 {
		return b.Unreadable > 0
	}
	return b.Unreadable > alwaysAllowed && float64(b.Unreadable) > share*float64(b.Records)
}
