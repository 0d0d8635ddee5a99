package replay

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/sajou-dev/sajou-go/eventlog"
)

var (
	// ErrSyntax is wrapped by the errors of misuse: [AddressError] for text that is not an
	// address, and [RangeError].
	ErrSyntax = errors.New("not an address")

	// ErrNoAddress is wrapped by the error for an address that the session does not
	// have.
	ErrNoAddress = errors.New("no such address")
)

// AddressError describes a wrong address. Err is [ErrSyntax] or [ErrNoAddress].
type AddressError struct {
	Address string // as it was written
	Reason  string
	Err     error
}

func (e *AddressError) Error() string {
	return fmt.Sprintf("%v %q: %s", e.Err, e.Address, e.Reason)
}

// Unwrap returns the error's class.
func (e *AddressError) Unwrap() error { return e.Err }

// RangeError describes a range whose ends are in the wrong order. It wraps [ErrSyntax].
type RangeError struct {
	Range  string
	Reason string
}

func (e *RangeError) Error() string { return fmt.Sprintf("invalid range %q: %s", e.Range, e.Reason) }

// Unwrap returns [ErrSyntax].
func (e *RangeError) Unwrap() error { return ErrSyntax }

// backwards returns the error for a range that ends before it begins.
func backwards(text string, from, to Moment) error {
	return &RangeError{text, fmt.Sprintf("%v comes after %v; swap the ends", from, to)}
}

func syntax(address, format string, args ...any) error {
	return &AddressError{address, fmt.Sprintf(format, args...), ErrSyntax}
}

func noAddress(address, format string, args ...any) error {
	return &AddressError{address, fmt.Sprintf(format, args...), ErrNoAddress}
}

// Address is a moment in text form. [Replay.Resolve] determines its moment in a
// session.
//
//	812             after entry 812; 0 is before the first
//	end, end-10     the last entry, the tenth before it
//	#9f3ab2c1       the entry whose hash has this prefix (4 digits or more)
//	t:1.5s          session time since the beginning
//	t:14:02:05.5    time of day, UTC: the first such time since the session began
//	t:2026-11-21T14:02:05Z
//	perf:p-812-1    where that performance began
//	corr:c-7        the first signal with that correlation id; corr:c-7#2 is the second
//	beat:salary     where that beat landed
//	beat:salary#2   where it landed the second time; #-1 is the last
//	turn:3          where turn 3 was opened; turn:3#2 is the second time
//	@name           a bookmark
//	@               the last address that was resolved; see [Anchors]
//	+5, @+5         5 entries after it
//	-5, @-5         5 entries before it; from between two entries, 1 is the earlier one
//	+50ms, -50ms    that much session time after or before it
//
// and any of them followed by +350ms, a duration in Go's notation.
//
// A number, end-N and a hash name an entry, and the moments between it and the next:
// their offset extends to the next entry at most. All other addresses name an event or
// a time. Their offset is session time, whatever entries come in it. After the last
// entry offsets are unbounded, but a t: address that is later than every change is
// refused.
type Address struct {
	kind   addressKind
	number uint64        // the Seq, the distance from the end, the turn, or the entries to step
	name   string        // hash prefix in lower case; performance; bookmark; beat; correlation id
	nth    int64         // the occurrence, from 1, or from -1 backwards
	back   bool          // a step goes backwards
	at     time.Duration // since the beginning, or since midnight; or the time to step
	wall   time.Time
	offset time.Duration
	text   string
}

type addressKind uint8

const (
	bySeq addressKind = iota
	byEnd
	byHash
	byTime
	byTimeOfDay
	byWall
	byPerformance
	byBookmark
	byBeat
	byTurn
	byCorrelation
	byStep     // entries from the last address
	byTimeStep // session time from the last address
)

// isRelative reports whether a depends on the address before it.
func (a Address) isRelative() bool { return a.kind == byStep || a.kind == byTimeStep }

// namesEntry reports whether the offset of a ends at the next entry.
func (a Address) namesEntry() bool { return a.kind == bySeq || a.kind == byEnd || a.kind == byHash }

// isTime reports whether a is a time, which the session can end before.
func (a Address) isTime() bool { return a.kind == byTime || a.kind == byTimeOfDay || a.kind == byWall }

// Bookmark returns the name of the bookmark that a names, if it names one.
func (a Address) Bookmark() (name string, ok bool) { return a.name, a.kind == byBookmark }

// String returns the address as it was written.
func (a Address) String() string { return a.text }

const (
	maxAddress    = 256 // bytes
	minHashPrefix = 4   // hexadecimal digits
)

// ParseAddress parses an address. The error is an [ErrSyntax].
func ParseAddress(s string) (Address, error) {
	if len(s) > maxAddress {
		return Address{}, syntax(s[:maxAddress]+"…", "more than %d bytes", maxAddress)
	}
	a := Address{text: s}
	base := s
	if i := strings.LastIndexByte(s, '+'); i > 0 && (i > 1 || s[0] != '@') {
		d, ok := parseDuration(s[i+1:])
		switch {
		case ok:
			base, a.offset = s[:i], d
		case strings.HasPrefix(s, "t:") && strings.ContainsRune(s, 'T'):
			// A zone, as in 14:02:05+02:00, is not a duration.
		default:
			return Address{}, syntax(s, "want a duration like 350ms after the plus")
		}
	}
	if err := a.parseBase(base); err != nil {
		return Address{}, err
	}
	return a, nil
}

const wanted = "want a number, end, end-N, #HASH, t:TIME, perf:ID, corr:ID, beat:ID, turn:N, @NAME, +N or -N"

func (a *Address) parseBase(s string) error {
	switch {
	case s == "":
		return syntax(a.text, "%s", wanted)
	case isDigit(s[0]):
		a.kind = bySeq
		return a.parseNumber(s)
	case s == "end":
		a.kind = byEnd
		return nil
	case strings.HasPrefix(s, "end-"):
		a.kind = byEnd
		return a.parseNumber(s[len("end-"):])
	case s[0] == '#':
		return a.parseHash(s[1:])
	case strings.HasPrefix(s, "t:"):
		return a.parseTime(s[len("t:"):])
	case strings.HasPrefix(s, "perf:"):
		return a.parsePerformance(s[len("perf:"):])
	case s[0] == '@' || s[0] == '+' || s[0] == '-':
		return a.parseAnchored(strings.TrimPrefix(s, "@"))
	case strings.HasPrefix(s, "corr:"):
		return a.parseCorrelation(s[len("corr:"):])
	case strings.HasPrefix(s, "beat:"):
		return a.parseBeat(s[len("beat:"):])
	case strings.HasPrefix(s, "turn:"):
		return a.parseTurn(s[len("turn:"):])
	}
	return syntax(a.text, "%s", wanted)
}

func (a *Address) parseNumber(s string) error {
	n, err := parseUint(s)
	if err != nil {
		return syntax(a.text, "%q is not a sequence number", s)
	}
	a.number = n
	return nil
}

func (a *Address) parseHash(s string) error {
	padded := s
	if len(s)%2 == 1 {
		padded += "0"
	}
	if _, err := hex.DecodeString(padded); err != nil || len(s) < minHashPrefix || len(s) > 2*eventlog.HashSize {
		return syntax(a.text, "want %d to %d hexadecimal digits after the #", minHashPrefix, 2*eventlog.HashSize)
	}
	a.kind, a.name = byHash, strings.ToLower(s)
	return nil
}

func (a *Address) parseTime(s string) error {
	if d, ok := parseDuration(s); ok {
		a.kind, a.at = byTime, d
		return nil
	}
	for _, layout := range []string{"15:04:05", "15:04"} {
		// Both layouts accept a fraction of a second after the seconds.
		if t, err := time.Parse(layout, s); err == nil {
			a.kind = byTimeOfDay
			a.at = t.Sub(time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC))
			return nil
		}
	}
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		a.kind, a.wall = byWall, t
		return nil
	}
	return syntax(a.text, "want t:1.5s since the beginning, t:14:02:05.5 in UTC, or t:2026-11-21T14:02:05Z")
}

// parsePerformance parses p-SEQ-I, the derived id of a performance.
func (a *Address) parsePerformance(s string) error {
	rest, ok := strings.CutPrefix(s, "p-")
	seq, index, cut := strings.Cut(rest, "-")
	n, err := parseUint(seq)
	i, err2 := parseUint(index)
	if !ok || !cut || err != nil || err2 != nil || n == 0 || i == 0 {
		return syntax(a.text, "want perf:p-SEQ-N, the id of a performance")
	}
	a.kind, a.name, a.number = byPerformance, s, n
	return nil
}

// parseAnchored parses what follows the at sign: the name of a bookmark, a step from
// the last address, or nothing.
func (a *Address) parseAnchored(s string) error {
	a.kind = byStep
	if s == "" {
		return nil
	}
	if s[0] != '+' && s[0] != '-' {
		if strings.IndexFunc(s, func(r rune) bool { return !bookmarkRune(r) }) >= 0 {
			return syntax(a.text, "the name of a bookmark has letters, digits, - and _")
		}
		a.kind, a.name = byBookmark, s
		return nil
	}
	a.back = s[0] == '-'
	n, err := parseUint(s[1:])
	if err == nil {
		a.number = n
		return nil
	}
	d, ok := parseDuration(s[1:])
	if !ok {
		return syntax(a.text, "want a number of entries, or a duration like 350ms, after the sign")
	}
	a.kind, a.at = byTimeStep, d
	return nil
}

func bookmarkRune(r rune) bool {
	return r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r)
}

// parseCorrelation parses ID or ID#N. N is required if the id itself ends in a number
// sign and digits.
func (a *Address) parseCorrelation(s string) error {
	id, err := a.parseNth(s)
	if err != nil || id == "" {
		return syntax(a.text, "want corr:ID or corr:ID#N, N from 1, or from -1 backwards")
	}
	a.kind, a.name = byCorrelation, id
	return nil
}

// parseBeat parses ID or ID#N. N is required if the id itself ends in a number sign
// and digits.
func (a *Address) parseBeat(s string) error {
	id, err := a.parseNth(s)
	if err != nil || id == "" {
		return syntax(a.text, "want beat:ID or beat:ID#N, N from 1, or from -1 backwards")
	}
	a.kind, a.name = byBeat, id
	return nil
}

func (a *Address) parseTurn(s string) error {
	number, err := a.parseNth(s)
	n, err2 := parseUint(number)
	if err != nil || err2 != nil || n == 0 {
		return syntax(a.text, "want turn:N, the number of a turn")
	}
	a.kind, a.number = byTurn, n
	return nil
}

// parseNth removes #N from the end of s. Without #N it is the first occurrence.
func (a *Address) parseNth(s string) (rest string, err error) {
	a.nth = 1
	i := strings.LastIndexByte(s, '#')
	if i < 0 {
		return s, nil
	}
	number := s[i+1:]
	if digits := strings.TrimPrefix(number, "-"); digits == "" || !isDigit(digits[0]) {
		return s, nil // the number sign belongs to the id
	}
	if a.nth, err = strconv.ParseInt(number, 10, 64); err == nil && a.nth == 0 {
		err = strconv.ErrRange
	}
	return s[:i], err
}

// parseUint parses decimal digits only.
func parseUint(s string) (uint64, error) { return strconv.ParseUint(s, 10, 64) }

// parseDuration parses a duration with its unit and without a sign.
func parseDuration(s string) (time.Duration, bool) {
	if s == "" || !isDigit(s[0]) && s[0] != '.' {
		return 0, false
	}
	d, err := time.ParseDuration(s)
	return d, err == nil && d >= 0
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// Range is two addresses, both ends included.
type Range struct {
	From, To *Address // nil: the beginning, the end
	text     string
}

// String returns the range as it was written.
func (r Range) String() string { return r.text }

// ParseRange parses "a..b", "a..", "..b", ".." or a single address, which is the
// range from it to itself. In "36..+5" the end is relative to the beginning; in
// "-5..+5" both are relative to the last address. The error is an [ErrSyntax].
func ParseRange(s string) (Range, error) {
	r := Range{text: s}
	if len(s) > 2*maxAddress {
		return Range{}, syntax(s[:maxAddress]+"…", "more than %d bytes", 2*maxAddress)
	}
	from, to, ok := strings.Cut(s, "..")
	if !ok {
		a, err := ParseAddress(s)
		if err != nil {
			return Range{}, err
		}
		r.From, r.To = &a, &a
		return r, nil
	}
	if from != "" {
		a, err := ParseAddress(from)
		if err != nil {
			return Range{}, err
		}
		r.From = &a
	}
	if to != "" {
		a, err := ParseAddress(to)
		if err != nil {
			return Range{}, err
		}
		r.To = &a
	}
	return r, nil
}
