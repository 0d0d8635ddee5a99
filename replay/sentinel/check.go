package sentinel

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
)

// DivergenceCause says why a session does not give the digests that were kept.
type DivergenceCause string

// The causes of a divergence.
const (
	CauseCode    DivergenceCause = "code"    // the same entries give another state
	CauseVersion DivergenceCause = "version" // and the projection says so by another version
	CauseData    DivergenceCause = "data"    // the entries are others
	CauseShorter DivergenceCause = "shorter" // the session ends before the entry
)

// Divergence is the first point at which a session does not give the digests that were
// kept.
type Divergence struct {
	// At is the entry of the point. After is that of the point before it, 0 at the
	// first: the first entry that differs is one of After+1..At.
	After, At eventlog.Seq

	Cause       DivergenceCause
	Projections []string // those that differ, as they are now, such as "stage/3"
	Detail      string   // for people
}

// Exact reports whether At is the first entry that differs.
func (d *Divergence) Exact() bool { return d.At == d.After+1 }

// String returns the divergence as one line.
func (d *Divergence) String() string {
	place := fmt.Sprintf("entry %d", d.At)
	if !d.Exact() {
		place = fmt.Sprintf("one of the entries %d..%d", d.After+1, d.At)
	}
	return place + ": " + d.Detail
}

// DigestComparison is the outcome of a check.
type DigestComparison struct {
	Points  int           // that were compared and are the same
	Folded  eventlog.Seq  // entries that were folded
	Diverge *Divergence   // nil if all points are the same
	Head    eventlog.Head // of the session as it is now
}

// Check folds a session from its first entry, without saved images, and compares the
// digests at each point of kept, until one differs. Entries behind the last point are
// not folded. Digests of projections that the program does not have are not compared,
// nor are those of its projections that kept does not have.
func Check(ctx context.Context, src replay.Source, set projection.Set, kept *KeptDigests) (DigestComparison, error) {
	c := DigestComparison{Head: src.Head()}
	columns, now := make([]int, len(set)), names(set)
	for i, p := range set {
		columns[i] = slices.IndexFunc(kept.Projections, func(name string) bool {
			name, _, _ = strings.Cut(name, "/")
			return name == p.Name
		})
	}
	seqs := make([]eventlog.Seq, 0, len(kept.Points))
	for _, p := range kept.Points {
		seqs = append(seqs, p.Head.Seq)
	}
	var after eventlog.Seq
	i := 0
	err := foldAt(ctx, src, set, seqs, func(f *projection.Fold) bool {
		c.Folded = f.Head().Seq
		c.Diverge = diverge(f, &kept.Points[i], kept.Projections, columns, now)
		if c.Diverge != nil {
			c.Diverge.After = after
			return false
		}
		c.Points++
		after = f.Head().Seq
		i++
		return true
	})
	if err == nil && c.Diverge == nil && i < len(kept.Points) {
		at := kept.Points[i].Head.Seq
		c.Diverge = &Divergence{After: max(after, c.Head.Seq), At: at, Cause: CauseShorter, Detail: fmt.Sprintf("the session ends with entry %d; digests are kept up to %d", c.Head.Seq, kept.Points[len(kept.Points)-1].Head.Seq)}
	}
	return c, err
}

// diverge compares a fold with a point. Columns has the place of each projection in the
// sums of the point, -1 for none.
func diverge(f *projection.Fold, p *DigestPoint, before []string, columns []int, now []string) *Divergence {
	if f.Head() != p.Head {
		return &Divergence{At: p.Head.Seq, Cause: CauseData, Detail: fmt.Sprintf("the data differs: the chain has the hash %v there, and %v when the digests were kept", f.Head().Hash, p.Head.Hash)}
	}
	var d *Divergence
	var details []string
	for i, digest := range f.Digests() {
		column := columns[i]
		if column < 0 || p.Sums[column] == digest.Sum {
			continue
		}
		if d == nil {
			d = &Divergence{At: p.Head.Seq, Cause: CauseVersion}
		}
		d.Projections = append(d.Projections, now[i])
		if before[column] == now[i] {
			d.Cause = CauseCode
			details = append(details, fmt.Sprintf("the code differs: %s has the digest %016x, and had %016x", now[i], digest.Sum, p.Sums[column]))
		} else {
			details = append(details, fmt.Sprintf("the version differs: %s was %s when the digests were kept", now[i], before[column]))
		}
	}
	if d != nil {
		d.Detail = strings.Join(details, "; ")
	}
	return d
}

// Merge returns the points of a and of b, digests of one session, for a check at all of
// them. The projections are those of a. If b has others, a alone is returned.
func Merge(a, b *KeptDigests) *KeptDigests {
	if a.Session != b.Session || !slices.Equal(a.Projections, b.Projections) {
		return a
	}
	all := slices.Concat(a.Points, b.Points)
	slices.SortStableFunc(all, func(p, q DigestPoint) int {
		return int(min(1, max(-1, int64(p.Head.Seq)-int64(q.Head.Seq))))
	})
	all = slices.CompactFunc(all, func(p, q DigestPoint) bool { return p.Head.Seq == q.Head.Seq }) // that of a
	return &KeptDigests{Session: a.Session, Projections: a.Projections, Points: all}
}
