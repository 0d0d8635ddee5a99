package replay

import (
	"cmp"
	"strconv"
	"time"

	"github.com/sajou-dev/sajou-go/eventlog"
)

// Moment is a position in a session: an offset in session time after an entry. The
// zero Moment is the beginning.
type Moment struct {
	Seq    eventlog.Seq
	Offset time.Duration // since the entry's At; not negative
}

// String returns m as an address: "812", "812+350ms".
func (m Moment) String() string {
	s := strconv.FormatUint(uint64(m.Seq), 10)
	if m.Offset != 0 {
		s += "+" + m.Offset.String()
	}
	return s
}

// IsZero reports whether m is the beginning of the session.
func (m Moment) IsZero() bool { return m == Moment{} }

// Compare returns -1, 0 or 1 as m is before, at or after n.
func (m Moment) Compare(n Moment) int {
	return cmp.Or(cmp.Compare(m.Seq, n.Seq), cmp.Compare(m.Offset, n.Offset))
}
