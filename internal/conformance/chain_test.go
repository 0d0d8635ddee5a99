package conformance

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"

	"github.com/sajou-dev/sajou-go/agents/jsondoc"
	"github.com/sajou-dev/sajou-go/signal"
)

// checksum returns the link of the hash chain of the multi-agent design: the hexadecimal
// SHA-256 of prev, the text of the checksum before ("" for the first), and the
// canonical JSON of effect.
func checksum(prev string, effect signal.Value) string {
	sum := sha256.Sum256(jsondoc.AppendCanonical([]byte(prev), effect))
	return hex.EncodeToString(sum[:])
}

// chainEntry is one effect of a log with the checksum that was kept with it.
type chainEntry struct {
	Effect   signal.Value
	Checksum string
}

// chainReport is what verifyChain found. Its JSON is that of the multi-agent design.
type chainReport struct {
	Valid            bool         `json:"valid"`
	CorruptedEntries []int        `json:"corrupted_entries"` // indexes from 0
	MissingSequences []uint64     `json:"missing_sequences"` // at most maxMissing
	TotalEntries     int          `json:"total_entries"`
	Details          chainDetails `json:"details"`
}

// chainDetails tells about the sequence numbers of a log; all are 0 for an empty one.
type chainDetails struct {
	FirstSeq  uint64 `json:"first_seq"`
	LastSeq   uint64 `json:"last_seq"`   // of the last entry
	LatestSeq uint64 `json:"latest_seq"` // the greatest
	Missing   uint64 `json:"missing"`    // how many are missing, named or not
	WorldID   string `json:"world_id"`
}

// maxMissing bounds how many missing sequence numbers a chainReport names.
const maxMissing = 1000

// verifyChain checks the hash chain and the sequence numbers of a log that begins at
// sequence number 1. Each entry is checked against the checksum that stands
// with the one before, so an altered effect is one corrupted entry, not all from
// there on. An entry whose number does not follow is corrupted too, and the
// numbers that were left out are missing.
//
// The chain is not signed. An effect that was altered together with all later
// checksums goes unnoticed, and so does a cut at the end.
func verifyChain(worldID string, entries []chainEntry) chainReport {
	r := chainReport{
		CorruptedEntries: []int{}, MissingSequences: []uint64{},
		TotalEntries: len(entries), Details: chainDetails{WorldID: worldID},
	}
	prev, next := "", uint64(1)
	for i, e := range entries {
		seq, numbered := sequence(e.Effect)
		if !numbered || seq < next || e.Checksum != checksum(prev, e.Effect) {
			r.CorruptedEntries = append(r.CorruptedEntries, i)
		}
		if numbered && seq >= next {
			r.Details.Missing += seq - next
			for n := next; n < seq && len(r.MissingSequences) < maxMissing; n++ {
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

// firstBadIndex returns the index of the first corrupted entry, -1 if none is.
func (r chainReport) firstBadIndex() int {
	if len(r.CorruptedEntries) == 0 {
		return -1
	}
	return r.CorruptedEntries[0]
}

func (r chainReport) String() string {
	return fmt.Sprintf("%d entries, %d corrupted, %d missing", r.TotalEntries, len(r.CorruptedEntries), r.Details.Missing)
}

func sequence(effect signal.Value) (uint64, bool) {
	v, _ := effect.Get("global_seq")
	i, ok := v.Int64()
	return uint64(max(i, 0)), ok && i > 0 && uint64(i) < math.MaxInt64
}
