// Package compare tells how two recordings differ: [Recordings] aligns their entries
// and counts what differs.
//
// # Alignment
//
// Recordings are aligned by signal, by number or by time ([By]). By signal, the same
// signal is one with the same id, or where there is none, with the same type, source
// and correlation id, in the same order. A record of the agents or of the director is
// named by its word and its members of ids, a declaration by its word and name. If the
// two recordings have no signal id in common, the ids are those of two runs: then
// signals are aligned by their content without ids, then by type and source.
//
// # What is compared
//
// Two entries are the same if they record the same. The time is not part of it, neither
// that of the session nor the timestamp of a signal: a recording has its own times.
// [RecordingDiff.Retimed] counts the entries that are the same at another session time.
// The first entry counts as the same if time authority and rules are.
//
// # Invariants
//
// The result depends on the entries alone. Keys are SHA-256 sums, so no recording can
// make two different entries look the same.
//
// docs/glossary.md has the nouns of all packages.
package compare

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/align"
)

// By says how two recordings are aligned.
type By string

// The ways to align recordings.
const (
	BySignal By = "signal" // by signal id, correlation and order
	BySeq    By = "seq"    // by the number of the entry
	ByTime   By = "time"   // by session time, and at one time by order
)

// MaxEntries bounds the entries of each recording of a comparison, which holds about
// 80 bytes for each of them.
const MaxEntries = 1_000_000

// TooLongError reports that a recording has more than [MaxEntries] entries.
type TooLongError struct {
	Session string
	Entries uint64
}

func (e *TooLongError) Error() string {
	return fmt.Sprintf("compare: %q has %d entries, and at most %d can be aligned", e.Session, e.Entries, MaxEntries)
}

// EntryDifferenceKind says how an entry differs.
type EntryDifferenceKind string

// The kinds of differences between recordings.
const (
	OnlyLeft  EntryDifferenceKind = "onlyLeft"
	OnlyRight EntryDifferenceKind = "onlyRight"
	Changed   EntryDifferenceKind = "changed"   // it is in both with another content
	Reordered EntryDifferenceKind = "reordered" // it is in both at another place in the order
)

// EntryDifference is one difference between two recordings.
type EntryDifference struct {
	Kind        EntryDifferenceKind
	Left, Right eventlog.Seq // the entry in either recording, 0 where there is none
	Type        string       // the type of the signal, or kind and word of another entry

	// LeftState and RightState are the moments at which the states of the recordings
	// are to be compared: those of the entries, and where a recording does not have the
	// entry, the moment of the same time since the last entry that is in both, or that
	// of its next entry if it comes before.
	LeftState, RightState replay.Moment
}

// TypeCount counts the differences of one type of entry.
type TypeCount struct {
	Type  string
	Count map[EntryDifferenceKind]int
}

// Total returns the number of all differences of the type.
func (c *TypeCount) Total() (n int) {
	for _, k := range c.Count {
		n += k
	}
	return n
}

// RecordingDiff is the difference between two recordings.
type RecordingDiff struct {
	Left, Right eventlog.Head // the heads at which they were read
	By          By

	// ByContent says that no signal id is in both recordings, so that signals were
	// aligned by content and type.
	ByContent bool

	Same    int // entries that are the same in both
	Retimed int // of these, entries at another session time

	// Differences are in the order of the alignment. Of a reordered entry there is one,
	// at its place in the left recording.
	Differences []EntryDifference
}

// Types returns the differences by type, the most frequent first.
func (d *RecordingDiff) Types() []TypeCount {
	at := map[string]int{}
	var out []TypeCount
	for _, diff := range d.Differences {
		i, ok := at[diff.Type]
		if !ok {
			i = len(out)
			at[diff.Type] = i
			out = append(out, TypeCount{diff.Type, map[EntryDifferenceKind]int{}})
		}
		out[i].Count[diff.Kind]++
	}
	slices.SortFunc(out, func(a, b TypeCount) int {
		if d := b.Total() - a.Total(); d != 0 {
			return d
		}
		return strings.Compare(a.Type, b.Type)
	})
	return out
}

// Count returns the number of differences of a kind.
func (d *RecordingDiff) Count(kind EntryDifferenceKind) (n int) {
	for i := range d.Differences {
		if d.Differences[i].Kind == kind {
			n++
		}
	}
	return n
}

// RecordedSession is a session whose entries are compared: a session of the log, its
// replay, or a source that is made of one.
type RecordedSession interface {
	Name() string
	Head() eventlog.Head

	// Entries yields the entries from a Seq on, in order and without gaps.
	Entries(ctx context.Context, from eventlog.Seq) iter.Seq2[eventlog.Entry, error]
}

// Recordings aligns two recordings and returns their differences. Errors:
// [*TooLongError], and those of reading the entries.
func Recordings(ctx context.Context, left, right RecordedSession, by By) (*RecordingDiff, error) {
	var sides [2]*side
	for i, src := range []RecordedSession{left, right} {
		var err error
		if sides[i], err = read(ctx, src); err != nil {
			return nil, err
		}
	}
	l, r := sides[0], sides[1]
	d := &RecordingDiff{Left: l.head, Right: r.head, By: by}
	var pairs []align.Pair
	var moved map[int]int // the right entries of reordered ones, by the left
	switch by {
	case BySignal:
		d.ByContent = !shareID(l, r)
		pairs = align.Match(passes(l, r, d.ByContent)...)
		moved = map[int]int{}
		for _, p := range align.Moved(l.identity, r.identity, pairs) {
			moved[p.Left] = p.Right
		}
	case BySeq:
		for i := range min(len(l.at), len(r.at)) {
			pairs = append(pairs, align.Pair{Left: i, Right: i})
		}
	case ByTime:
		pairs = align.Match(align.Pass{Kind: align.Repeated, Left: timeKeys(l.at), Right: timeKeys(r.at)})
	default:
		return nil, fmt.Errorf("compare: cannot align recordings by %q; use %s, %s or %s", by, BySignal, BySeq, ByTime)
	}
	d.collect(l, r, pairs, moved)
	return d, nil
}

// passes returns the passes of an alignment by signal, from the strictest.
func passes(l, r *side, byContent bool) []align.Pass {
	list := []align.Pass{
		{Kind: align.Unique, Left: l.content, Right: r.content},
		{Kind: align.Unique, Left: l.identity, Right: r.identity},
		{Kind: align.Repeated, Left: l.content, Right: r.content},
		{Kind: align.Repeated, Left: l.identity, Right: r.identity},
	}
	if !byContent {
		return list
	}
	// An id that is in one run alone names nothing, so the identities of signals with
	// ids pair nothing above.
	return append(list,
		align.Pass{Kind: align.Unique, Left: l.form, Right: r.form},
		align.Pass{Kind: align.Repeated, Left: l.form, Right: r.form},
		align.Pass{Kind: align.Repeated, Left: l.loose, Right: r.loose},
	)
}

// collect walks the alignment and notes what differs.
func (d *RecordingDiff) collect(l, r *side, pairs []align.Pair, moved map[int]int) {
	back := make(map[int]bool, len(moved))
	for _, right := range moved {
		back[right] = true
	}
	i, j := 0, 0
	gap := func(toLeft, toRight int) {
		ahead := r.begin(j) - l.begin(i) // of the right recording's clock
		for ; i < toLeft; i++ {
			diff := EntryDifference{Kind: OnlyLeft, Left: eventlog.Seq(i + 1), Type: l.types[i], LeftState: replay.Moment{Seq: eventlog.Seq(i + 1)}, RightState: r.moment(j, l.at[i]+ahead)}
			if right, ok := moved[i]; ok {
				diff.Kind, diff.Right = Reordered, eventlog.Seq(right+1)
			}
			d.Differences = append(d.Differences, diff)
		}
		for ; j < toRight; j++ {
			if !back[j] {
				d.Differences = append(d.Differences, EntryDifference{Kind: OnlyRight, Right: eventlog.Seq(j + 1), Type: r.types[j], LeftState: l.moment(i, r.at[j]-ahead), RightState: replay.Moment{Seq: eventlog.Seq(j + 1)}})
			}
		}
	}
	for _, p := range pairs {
		gap(p.Left, p.Right)
		i, j = p.Left+1, p.Right+1
		left, right := eventlog.Seq(i), eventlog.Seq(j)
		same := l.content[p.Left] == r.content[p.Right]
		if d.ByContent && !same {
			same = l.form[p.Left] == r.form[p.Right] && l.form[p.Left] != align.ElementKey{}
		}
		switch {
		case !same:
			d.Differences = append(d.Differences, EntryDifference{Kind: Changed, Left: left, Right: right, Type: l.types[p.Left], LeftState: replay.Moment{Seq: left}, RightState: replay.Moment{Seq: right}})
		case l.at[p.Left] != r.at[p.Right]:
			d.Retimed++
			fallthrough
		default:
			d.Same++
		}
	}
	gap(len(l.at), len(r.at))
}

// shareID reports whether any signal id is in both recordings.
func shareID(l, r *side) bool {
	ids := make(map[align.ElementKey]bool, len(l.at))
	for i, k := range l.identity {
		if l.named[i] {
			ids[k] = true
		}
	}
	if len(ids) == 0 {
		return true // without ids there is nothing that could differ from run to run
	}
	some := false
	for i, k := range r.identity {
		if r.named[i] {
			if some = true; ids[k] {
				return true
			}
		}
	}
	return !some
}

func timeKeys(at []time.Duration) []align.ElementKey {
	ks := make([]align.ElementKey, len(at))
	for i, t := range at {
		ks[i][0] = 1
		for b := range 8 {
			ks[i][1+b] = byte(t >> (8 * b))
		}
	}
	return ks
}
