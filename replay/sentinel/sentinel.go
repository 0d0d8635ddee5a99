// Package sentinel finds the first entry at which the code, and not the data, gives
// another state than before.
//
// A state is a function of the log and of the program that folds it. [Take] notes the
// digests of all projections at some entries of a session, each with the entry's chain
// hash. [Check] folds the session again, with another version of the program or on
// another machine, and compares. Where the chain hash is the same and a digest is not,
// the entries are what they were, so the code differs.
//
// A [DigestDocument] holds the digests of several sessions as JSON, one entry a line. It
// depends on nothing but the sessions and the program, and can be deleted at any time.
//
// # Format
//
//	{"sajou": "digests", "version": 1, "sessions": [
//	{"session": "night", "projections": ["session/1", "stage/3"], "points": [
//	[27, "HASH", "SUM", "SUM"],
//	[54, "HASH", "SUM", "SUM"]
//	]}
//	]}
//
// A point has the number of an entry, its chain hash as 64 hexadecimal digits, and a
// digest as 16 for each projection. The numbers grow. The last point of [Take] is the
// last entry. The digests are those of the state right after the entry, its instant
// complete, as [projection.Fold.Digests] gives them there.
//
// docs/glossary.md has the nouns of all packages.
package sentinel

import (
	"context"
	"fmt"
	"strconv"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
)

// KeptDigests are the digests of one session at some of its entries.
type KeptDigests struct {
	Session     string
	Projections []string      // name and version, such as "stage/3", in the order of the sums
	Points      []DigestPoint // their Seqs grow
}

// DigestPoint is the digests at one entry.
type DigestPoint struct {
	Head eventlog.Head
	Sums []uint64 // one for each projection
}

// MaxPoints bounds the points of one session.
const MaxPoints = 100_000

// Take folds a session from its first entry and notes the digests at the given number of
// entries, evenly over the session, at each entry if there are no more. The number must
// be from 1 to [MaxPoints].
func Take(ctx context.Context, src replay.Source, set projection.Set, points int) (*KeptDigests, error) {
	t, err := NewTaker(src.Name(), src.Head().Seq, set, points)
	if err != nil {
		return nil, err
	}
	err = foldAt(ctx, src, set, t.seqs, func(f *projection.Fold) bool {
		t.Saw(f)
		return true
	})
	return &t.kept, err
}

// Taker notes digests while something folds a session anyway, as [Take] does.
type Taker struct {
	kept KeptDigests
	seqs []eventlog.Seq // the entries that are still to come
}

// NewTaker returns a Taker for a session up to an entry. The number of points must be
// from 1 to [MaxPoints].
func NewTaker(session string, last eventlog.Seq, set projection.Set, points int) (*Taker, error) {
	if points < 1 || points > MaxPoints {
		return nil, fmt.Errorf("sentinel: %d points; use 1 to %d", points, MaxPoints)
	}
	t := &Taker{kept: KeptDigests{Session: session, Projections: names(set)}}
	n := min(eventlog.Seq(points), last)
	for i := range n {
		// Rounded up, and without a product that could exceed 64 bits.
		t.seqs = append(t.seqs, last/n*(i+1)+(last%n*(i+1)+n-1)/n)
	}
	return t, nil
}

// Saw takes in the fold of the session right after each entry, in their order. At the
// entries of its points it completes the entry's instant, so an image of the open instant
// must be taken before.
func (t *Taker) Saw(f *projection.Fold) {
	if len(t.seqs) == 0 || f.Head().Seq != t.seqs[0] {
		return
	}
	t.seqs = t.seqs[1:]
	f.Advance(f.At())
	p := DigestPoint{Head: f.Head()}
	for _, d := range f.Digests() {
		p.Sums = append(p.Sums, d.Sum)
	}
	t.kept.Points = append(t.kept.Points, p)
}

// Digests returns what was noted so far.
func (t *Taker) Digests() *KeptDigests { return &t.kept }

// names returns the name and version of each projection.
func names(set projection.Set) []string {
	list := make([]string, len(set))
	for i, p := range set {
		list[i] = p.Name + "/" + strconv.FormatUint(uint64(p.Version), 10)
	}
	return list
}

// foldAt folds a session from its first entry and calls visit at each of seqs, which
// grow, until it returns false or the entries end.
func foldAt(ctx context.Context, src replay.Source, set projection.Set, seqs []eventlog.Seq, visit func(*projection.Fold) bool) error {
	if len(seqs) == 0 {
		return nil
	}
	f := projection.NewFold(set, src.Genesis())
	for e, err := range src.Entries(ctx, 1) {
		if err == nil {
			err = f.Apply(&e)
		}
		if err != nil {
			return fmt.Errorf("sentinel: fold %q after entry %d: %w", src.Name(), f.Head().Seq, err)
		}
		if e.Seq < seqs[0] {
			continue
		}
		f.Advance(e.At)
		if seqs = seqs[1:]; !visit(f) || len(seqs) == 0 {
			return nil
		}
	}
	return ctx.Err()
}
