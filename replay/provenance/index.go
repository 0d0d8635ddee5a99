package provenance

import (
	"context"
	"fmt"
	"math/bits"
	"slices"
	"strconv"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/postings"
	"github.com/sajou-dev/sajou-go/session"
)

// traceVersion changes with what is traced, and with its form.
const traceVersion = 1

// tracedEntries is the number of entries of one chunk of traced events. The tests use
// fewer.
var tracedEntries eventlog.Seq = 1024

// stageTable is the table of what happened on the stage, if there is one: the traced
// events in chunks, and for the members of each entity the entries at which, or behind
// which, an event may have set them.
type stageTable struct {
	r     *replay.Replay
	part  replay.IndexPart
	table *postings.Table // nil: there is none
}

func openStageTable(ctx context.Context, r *replay.Replay) (*stageTable, error) {
	s := &stageTable{r: r}
	zero, err := r.Fold(ctx, 0)
	if err != nil || session.PerformancesOf(zero) == nil || session.StageOf(zero) == nil {
		return s, err
	}
	// The digests of the empty states say which actions the program adds to the stage.
	s.part = replay.IndexPart{Name: "stage", Version: fmt.Sprint(traceVersion, zero.Digests()), Fill: s.fill}
	s.table, err = r.Table(ctx, s.part)
	return s, err
}

// discard drops a table that turned out to be wrong.
func (s *stageTable) discard() {
	s.table = nil
	s.r.Discard(s.part)
}

// head returns the last entry that the table is about, 0 without one.
func (s *stageTable) head() eventlog.Seq {
	if s.table == nil {
		return 0
	}
	return s.table.Head().Seq
}

// fill traces the session behind an entry.
func (s *stageTable) fill(ctx context.Context, after eventlog.Seq, b *postings.TableBuilder) error {
	f, t, err := newTracer(ctx, s.r, after)
	if err != nil {
		return err
	}
	v := &filler{tracer: t, b: b, last: after, added: map[touchKey]eventlog.Seq{}}
	t.touch = v.touched
	if err := walk(ctx, s.r, f, replay.Moment{Seq: s.r.Head().Seq}, v); err != nil {
		return err
	}
	return v.chunk(f)
}

// touchKey is one member group of an entity; the entity "" stands for all.
type touchKey struct {
	entity  string
	members group
}

func (k touchKey) text() string { return strconv.Itoa(int(k.members)) + " " + k.entity }

// filler traces a session into a table.
type filler struct {
	*tracer
	b     *postings.TableBuilder
	last  eventlog.Seq              // of the chunk before
	added map[touchKey]eventlog.Seq // the last posting of each key, of this chunk
}

func (v *filler) touched(entity string, members group) {
	for ; members != 0; members &= members - 1 {
		k := touchKey{entity, 1 << bits.TrailingZeros16(uint16(members))}
		if seq, ok := v.added[k]; !ok || seq != v.moment.Seq {
			v.added[k] = v.moment.Seq
			v.b.Add(k.text(), v.moment.Seq)
		}
	}
}

func (v *filler) apply(f *projection.Fold, e *eventlog.Entry) error {
	if err := v.tracer.apply(f, e); err != nil {
		return err
	}
	if e.Seq%tracedEntries != 0 {
		return nil
	}
	return v.chunk(f)
}

// chunk ends a chunk at the entry where the fold stands.
func (v *filler) chunk(f *projection.Fold) error {
	if f.Head().Seq == v.last {
		return nil
	}
	v.b.Chunk(encodeTrace(v.events))
	v.last, v.events = f.Head().Seq, v.events[:0]
	clear(v.added)
	return v.b.Done(f.Head())
}

// before returns the events of a stretch that ends at a moment, with the entry behind
// which it begins: from the table, or else traced, over that many entries at most.
func (s *stageTable) before(ctx context.Context, to replay.Moment, stretch eventlog.Seq) (events []traced, from eventlog.Seq, err error) {
	if to.Seq > stretch {
		from = to.Seq - stretch
	}
	if s.table != nil {
		data, after, end, err := s.table.ChunkBefore(to.Seq)
		if err == nil && data != nil && to == (replay.Moment{Seq: end}) {
			if events, err = decodeTrace(data); err == nil {
				return events, after, nil
			}
		}
		if err != nil {
			s.discard()
		} else if data != nil {
			from = max(from, end) // so that the next stretch is a chunk
		}
	}
	events, err = trace(ctx, s.r, from, to)
	return events, from, err
}

// candidates returns the entries at or behind which an event may have set a member of an
// entity, in order; an empty member stands for all. It returns false without a table.
func (s *stageTable) candidates(entity, member string) ([]eventlog.Seq, bool) {
	if s.table == nil {
		return nil, false
	}
	members := everything
	if member != "" {
		members = groupOf(member)
	}
	var all []eventlog.Seq
	for ; members != 0; members &= members - 1 {
		bit := group(1) << bits.TrailingZeros16(uint16(members))
		for _, of := range [...]string{entity, ""} {
			seqs, err := s.table.Seqs(touchKey{of, bit}.text())
			if err != nil {
				s.discard()
				return nil, false
			}
			all = append(all, seqs...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all), true
}
