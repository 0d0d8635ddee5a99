package agents

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"

	"github.com/sajou-dev/sajou-go/signal"
)

// AppendCanonical appends v as canonical JSON: members in the order of their
// names' code points, no blanks, text as it is but for what JSON must escape,
// integers as integers, floats always with a point or an exponent: 2.0, not 2.
// The absent value is null.
//
// The form of a float is its shortest digits, written plainly from 1e-5 up to
// 1e16 and else with an exponent without a plus: 1e16, 1.5e-7. This is what the
// document's encoder writes, so that checksums agree with it.
func AppendCanonical(dst []byte, v signal.Value) []byte {
	switch v.Kind() {
	case signal.KindFloat:
		f, _ := v.Float64()
		return appendFloat(dst, f)
	case signal.KindArray:
		dst = append(dst, '[')
		first := true
		for e := range v.Elements() {
			if !first {
				dst = append(dst, ',')
			}
			first = false
			dst = AppendCanonical(dst, e)
		}
		return append(dst, ']')
	case signal.KindObject:
		dst = append(dst, '{')
		for i, m := range sortedMembers(v) {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendText(dst, m.name)
			dst = append(dst, ':')
			dst = AppendCanonical(dst, m.value)
		}
		return append(dst, '}')
	default:
		return v.AppendJSON(dst)
	}
}

// appendText appends a JSON string.
func appendText(dst []byte, s string) []byte {
	for i := 0; i < len(s); i++ {
		if s[i] < ' ' || s[i] == '"' || s[i] == '\\' {
			return textValue(s).AppendJSON(dst)
		}
	}
	dst = append(dst, '"')
	dst = append(dst, s...)
	return append(dst, '"')
}

func appendFloat(dst []byte, f float64) []byte {
	if abs := math.Abs(f); abs != 0 && (abs < 1e-5 || abs >= 1e16) {
		start := len(dst)
		dst = strconv.AppendFloat(dst, f, 'e', -1, 64)
		// strconv writes at least two digits and always a sign: 1e+16, 1e-07.
		for i := start; i < len(dst); i++ {
			if dst[i] != 'e' {
				continue
			}
			digits := i + 2
			for digits < len(dst)-1 && dst[digits] == '0' {
				digits++
			}
			tail := string(dst[digits:])
			if dst[i+1] == '-' {
				return append(append(dst[:i], "e-"...), tail...)
			}
			return append(append(dst[:i], 'e'), tail...)
		}
		return dst
	}
	start := len(dst)
	dst = strconv.AppendFloat(dst, f, 'f', -1, 64)
	for _, c := range dst[start:] {
		if c == '.' {
			return dst
		}
	}
	return append(dst, ".0"...)
}

// Checksum returns the link of the document's hash chain: the hexadecimal
// SHA-256 of prev, the text of the checksum before ("" for the first), and the
// canonical JSON of effect.
func Checksum(prev string, effect signal.Value) string {
	sum := sha256.Sum256(AppendCanonical([]byte(prev), effect))
	return hex.EncodeToString(sum[:])
}

// ChainEntry is one effect of a log with the checksum that was kept with it.
type ChainEntry struct {
	Effect   signal.Value
	Checksum string
}

// Report is what [Verify] found. Its JSON is the document's.
type Report struct {
	Valid            bool          `json:"valid"`
	CorruptedEntries []int         `json:"corrupted_entries"` // indexes from 0
	MissingSequences []uint64      `json:"missing_sequences"` // at most MaxMissing
	TotalEntries     int           `json:"total_entries"`
	Details          ReportDetails `json:"details"`
}

// ReportDetails tells about the sequence numbers of a log; all are 0 for an empty one.
type ReportDetails struct {
	FirstSeq  uint64 `json:"first_seq"`
	LastSeq   uint64 `json:"last_seq"`   // of the last entry
	LatestSeq uint64 `json:"latest_seq"` // the greatest
	Missing   uint64 `json:"missing"`    // how many are missing, named or not
	WorldID   string `json:"world_id"`
}

// MaxMissing bounds how many missing sequence numbers a [Report] names.
const MaxMissing = 1000

// Verify checks the hash chain and the sequence numbers of a log that begins at
// sequence number 1. Each entry is checked against the checksum that stands
// with the one before, so an altered effect is one corrupted entry, not all from
// there on. An entry whose number does not follow is corrupted too, and the
// numbers that were left out are missing.
//
// The chain is not signed: who alters an effect and makes all later checksums
// anew goes unnoticed, as does a cut at the end.
func Verify(worldID string, entries []ChainEntry) Report {
	r := Report{
		CorruptedEntries: []int{}, MissingSequences: []uint64{},
		TotalEntries: len(entries), Details: ReportDetails{WorldID: worldID},
	}
	prev, next := "", uint64(1)
	for i, e := range entries {
		seq, numbered := sequence(e.Effect)
		if !numbered || seq < next || e.Checksum != Checksum(prev, e.Effect) {
			r.CorruptedEntries = append(r.CorruptedEntries, i)
		}
		if numbered && seq >= next {
			r.Details.Missing += seq - next
			for n := next; n < seq && len(r.MissingSequences) < MaxMissing; n++ {
				r.MissingSequences = append(r.MissingSequences, n)
			}
			next = seq + 1
		}
		if i == 0 {
			r.Details.FirstSeq = seq
		}
		r.Details.LastSeq = seq
		r.Details.LatestSeq = max(r.Details.LatestSeq, seq)
		prev = e.Checksum
	}
	r.Valid = len(r.CorruptedEntries) == 0 && r.Details.Missing == 0
	return r
}

// FirstBadIndex returns the index of the first corrupted entry, -1 if none is.
func (r Report) FirstBadIndex() int {
	if len(r.CorruptedEntries) == 0 {
		return -1
	}
	return r.CorruptedEntries[0]
}

func (r Report) String() string {
	return fmt.Sprintf("%d entries, %d corrupted, %d missing", r.TotalEntries, len(r.CorruptedEntries), r.Details.Missing)
}

func sequence(effect signal.Value) (uint64, bool) {
	v, _ := effect.Get("global_seq")
	i, ok := v.Int64()
	return uint64(max(i, 0)), ok && i > 0 && uint64(i) < math.MaxInt64
}
