// Package variant makes a changed copy of a recorded session in memory, to replay what
// would have been.
//
// A [Variant] is a [replay.Source]: the entries of its parent, another source, with
// [Edits]. It has the parent's name, and every entry keeps its number, so the addresses
// of moments, the ids of performances and the ids of cue signals stay what they were. A
// replay of it takes the saved images of the parent for the entries before the first change.
// Nothing is copied or stored: a variant computes each entry when it is read.
//
// # Edits
//
//   - Set gives an entry other data. Its kind and its time stay. An episode keeps its id.
//   - Drop puts an entry in the place of another one that says so, ["dropped", {}]. It
//     changes no state except the numbers of entries that the session itself counts.
//     Session time still reaches it.
//   - Swap exchanges the kinds and the data of an entry and the one behind it. Their
//     times stay with their numbers.
//   - Insert puts entries in front of an entry. The entries behind them get higher numbers;
//     this is the only change with that effect. [Variant.Parent] and [Variant.Seq] convert.
//   - Define replaces declarations. Each recorded declaration of the same word and name
//     takes the new value, at its own entry. Choreographies without a name are matched by
//     their signal type and their order, and a scene of a name that the session does not have
//     replaces all scenes. A declaration that the session has never had
//     comes into force with the first entry; see [session.WithDeclarations]. The events
//     that begin a replaced episode name the new one, and those about parts that it does
//     not have change nothing.
//   - Policy replaces the policy of all agents, at the entries that register them, and
//     keeps the other settings of each; see [agents.WithPolicy].
//   - Until ends the session earlier.
//
// A variant changes entries and decides nothing. Of a session with signals and
// declarations alone, its states are those that a session recorded with the changes would
// have. Decisions that were recorded, those of a world of agents and of a director, stay
// as they are behind a change, even if the changed state would have led to others.
//
// # Heads
//
// Up to the first change the hashes are those of the parent. From there on the hash of an
// entry is the SHA-256 of the changes so far and of the parent's hash, and not a link of a
// chain: so an entry is found without reading the ones before it, and equal heads still
// mean equal histories. The Body of a changed entry is its own.
//
// # Cost
//
// [New] reads the entries that Set, Swap and Insert name, and with Define or Policy the
// whole parent, without folding it. Reading costs what it costs of the parent, plus one hash for
// each entry behind the first change.
//
// docs/glossary.md has the nouns of all packages.
package variant

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"iter"
	"sort"
	"time"

	"github.com/sajou-dev/sajou-go/choreography/language"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/eventlog/chain"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/signal"
)

// ErrChange is wrapped by the errors about changes that the parent does not admit.
var ErrChange = errors.New("variant: impossible change")

// Edits says how a variant differs from its parent. The zero value changes nothing. All
// numbers are those of the parent's entries. One entry is set, dropped or swapped once.
type Edits struct {
	Set    map[eventlog.Seq][]byte // the new data of each; see [eventlog.Entry]
	Drop   []eventlog.Seq          // not the first entry, which opens the session
	Swap   []eventlog.Seq          // each is exchanged with the entry behind it
	Insert []Inserted
	Define []language.Declaration // if two have one word and name, the later one counts
	Policy signal.Value           // what agents may see, as [agents.CompilePolicy] reads it; nil keeps theirs
	Until  eventlog.Seq           // the last entry; 0 is the parent's
}

// Inserted is new entries in front of an entry.
type Inserted struct {
	Before eventlog.Seq // from 2 to the one behind the last entry
	// Drafts are the entries. A time before that of the entry in front, or after that of the
	// entry behind, is moved to it.
	Drafts []eventlog.Draft
}

// Variant is a recorded session with changes, up to the Head that the parent had when the
// variant was made. It is immutable, and safe for concurrent use if its parent is.
type Variant struct {
	parent replay.Source
	until  eventlog.Seq // of the parent
	points []point      // in the order of their entries
	head   eventlog.Head
}

var (
	_ replay.Source  = (*Variant)(nil)
	_ replay.Derived = (*Variant)(nil)
)

// point is what changes at one entry of the parent.
type point struct {
	seq    eventlog.Seq
	insert []eventlog.Draft // in front of it
	set    *eventlog.Draft  // in its place; nil keeps it
	drop   bool

	shift  eventlog.Seq // how many entries all points up to here have inserted
	digest eventlog.Hash
}

// Name returns the parent's name.
func (v *Variant) Name() string { return v.parent.Name() }

// Genesis returns the parent's hash of Seq 0.
func (v *Variant) Genesis() eventlog.Hash { return v.parent.Genesis() }

// Head returns the Head of the variant, which does not change.
func (v *Variant) Head() eventlog.Head { return v.head }

// Shared returns the last entry in front of the first change. It implements
// [replay.Derived].
func (v *Variant) Shared() eventlog.Seq {
	if len(v.points) == 0 {
		return v.until
	}
	return v.points[0].seq - 1
}

// Parent returns the number that an entry of the variant has in the parent. It returns
// false for one that was inserted, with the number of the parent's entry in front of it.
func (v *Variant) Parent(seq eventlog.Seq) (parent eventlog.Seq, ok bool) {
	q, skip := v.place(seq)
	if i, found := v.at(q); found && skip < len(v.points[i].insert) {
		return q - 1, false
	}
	return q, true
}

// Changed reports whether an entry of the variant was inserted, or is not what the parent
// has in its place.
func (v *Variant) Changed(seq eventlog.Seq) bool {
	q, recorded := v.Parent(seq)
	i, found := v.at(q)
	return !recorded || found && (v.points[i].drop || v.points[i].set != nil)
}

// Dropped returns the entry in the place of a dropped one at a session time.
func Dropped(at time.Duration) eventlog.Draft {
	return eventlog.Draft{Kind: eventlog.KindSession, At: at, Data: droppedData}
}

// IsDropped reports whether an entry is in the place of a dropped one.
func IsDropped(e *eventlog.Entry) bool {
	return e.Kind == eventlog.KindSession && bytes.Equal(e.Data, droppedData)
}

// Seq returns the number that an entry of the parent has in the variant.
func (v *Variant) Seq(parent eventlog.Seq) eventlog.Seq {
	i, found := v.at(parent)
	if found {
		return parent + v.points[i].shift
	}
	return parent + v.shiftBefore(i)
}

// at returns the index of the point at an entry of the parent, or of the first one behind.
func (v *Variant) at(seq eventlog.Seq) (int, bool) {
	i := sort.Search(len(v.points), func(i int) bool { return v.points[i].seq >= seq })
	return i, i < len(v.points) && v.points[i].seq == seq
}

func (v *Variant) shiftBefore(i int) eventlog.Seq {
	if i == 0 {
		return 0
	}
	return v.points[i-1].shift
}

// place returns where an entry of the variant comes from: the parent's entry q, after skip
// of the entries that are inserted in front of it.
func (v *Variant) place(seq eventlog.Seq) (q eventlog.Seq, skip int) {
	first := func(p *point) eventlog.Seq { return p.seq + p.shift - eventlog.Seq(len(p.insert)) }
	i := sort.Search(len(v.points), func(i int) bool { return first(&v.points[i]) > seq })
	if i == 0 {
		return seq, 0
	}
	p := &v.points[i-1]
	if n := seq - first(p); n <= eventlog.Seq(len(p.insert)) {
		return p.seq, int(n)
	}
	return seq - p.shift, 0
}

// Entries implements [replay.Source].
func (v *Variant) Entries(ctx context.Context, from eventlog.Seq) iter.Seq2[eventlog.Entry, error] {
	return func(yield func(eventlog.Entry, error) bool) {
		seq := max(from, 1)
		if seq > v.head.Seq {
			return
		}
		q, skip := v.place(seq)
		k, _ := v.at(q)
		start := q
		if k < len(v.points) && v.points[k].seq == q && skip < len(v.points[k].insert) {
			start-- // for its hash, on which that of an inserted entry depends
		}
		// insert yields what is inserted in front of the parent's entry before.
		var last eventlog.Hash
		insert := func(before eventlog.Seq) bool {
			if k == len(v.points) || v.points[k].seq != before {
				return true
			}
			p := &v.points[k]
			for ; skip < len(p.insert); skip++ {
				e := v.made(&p.insert[skip], "", seq, p.digest, last, skip+1)
				e.Batch = 1
				if seq++; !yield(e, nil) {
					return false
				}
			}
			skip = 0
			return true
		}
		if start <= v.until {
			for e, err := range v.parent.Entries(ctx, start) {
				switch {
				case err != nil:
					yield(eventlog.Entry{}, err)
					return
				case e.Seq >= q:
					if !insert(e.Seq) || !yield(v.changed(&e, seq, k), nil) {
						return
					}
					seq++
				}
				last = e.Hash
				if k < len(v.points) && v.points[k].seq == e.Seq {
					k++
				}
				if e.Seq == v.until {
					break
				}
			}
		}
		if seq > v.Seq(v.until) { // otherwise the parent has ended early
			insert(v.until + 1)
		}
	}
}

// changed returns the entry in the place of e, which gets the number seq. The first point
// that is not in front of e has the index k.
func (v *Variant) changed(e *eventlog.Entry, seq eventlog.Seq, k int) eventlog.Entry {
	if k < len(v.points) && v.points[k].seq == e.Seq {
		p := &v.points[k]
		switch {
		case p.drop:
			d := Dropped(e.At)
			made := v.made(&d, "", seq, p.digest, e.Hash, 0)
			made.Batch = e.Batch
			return made
		case p.set != nil:
			made := v.made(p.set, e.Key, seq, p.digest, e.Hash, 0)
			made.Batch = e.Batch
			return made
		}
		k++
	}
	kept := *e
	if k > 0 {
		kept.Seq, kept.Hash = seq, hashOf(v.points[k-1].digest, e.Hash, 0)
	}
	return kept
}

// made returns an entry of the variant's own.
func (v *Variant) made(d *eventlog.Draft, key string, seq eventlog.Seq, digest, parent eventlog.Hash, inserted int) eventlog.Entry {
	e := eventlog.Entry{Seq: seq, Hash: hashOf(digest, parent, inserted)}
	if err := chain.DecodeBody(&e, chain.AppendBody(nil, d, key)); err != nil {
		panic("variant: " + err.Error()) // New has checked the draft
	}
	return e
}

// hashOf returns the hash of an entry, from that of the changes so far, that of the parent's
// entry, and for an inserted one its number among those at its place.
func hashOf(digest, parent eventlog.Hash, inserted int) eventlog.Hash {
	b := append([]byte("sajou.variant/1\n"), digest[:]...)
	b = append(b, parent[:]...)
	return sha256.Sum256(binary.AppendUvarint(b, uint64(inserted)))
}
