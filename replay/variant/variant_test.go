package variant_test

import (
	"context"
	"errors"
	"iter"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/variant"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
	"github.com/sajou-dev/sajou-go/snapshot"
)

var bg = context.Background()

// changed are the drafts of a variant, made from those of the parent by the rules alone.
type changed struct {
	eventlog.Draft
	parent eventlog.Seq // 0: inserted
}

// model applies changes to the list of all drafts.
func model(parent *tape, c variant.Edits) []changed {
	var list []changed
	for _, e := range parent.List {
		list = append(list, changed{eventlog.Draft{Kind: e.Kind, At: e.At, Data: e.Data}, e.Seq})
	}
	for seq, data := range c.Set {
		list[seq-1].Data = data
	}
	for _, seq := range c.Swap {
		a, b := &list[seq-1], &list[seq]
		a.Kind, b.Kind = b.Kind, a.Kind
		a.Data, b.Data = b.Data, a.Data
	}
	for _, seq := range c.Drop {
		list[seq-1].Kind, list[seq-1].Data = eventlog.KindSession, []byte("\x92\xa7dropped\x80")
	}
	if c.Until > 0 {
		list = list[:c.Until]
	}
	for _, in := range slices.Backward(c.Insert) { // they stand in ascending order
		var add []changed
		at := list[in.Before-2].At
		for _, d := range in.Drafts {
			at = max(at, d.At)
			if int(in.Before) <= len(list) {
				at = min(at, list[in.Before-1].At)
			}
			add = append(add, changed{eventlog.Draft{Kind: d.Kind, At: at, Data: d.Data}, 0})
		}
		list = slices.Insert(list, int(in.Before)-1, add...)
	}
	return list
}

// genChanges draws changes of a tape without replaced declarations.
func genChanges(t *rapid.T, parent *tape) (c variant.Edits) {
	last := parent.Head().Seq
	if rapid.Bool().Draw(t, "end") {
		c.Until = eventlog.Seq(rapid.IntRange(6, int(last)).Draw(t, "until"))
		last = c.Until
	}
	c.Set = map[eventlog.Seq][]byte{}
	for seq := eventlog.Seq(2); seq <= last; seq++ {
		switch rapid.IntRange(0, 9).Draw(t, "change") {
		case 0:
			c.Drop = append(c.Drop, seq)
		case 1:
			if parent.List[seq-1].Kind == eventlog.KindSignal {
				c.Set[seq] = data("go", 99)
			}
		case 2:
			if seq < last {
				c.Swap = append(c.Swap, seq)
				seq++
			}
		case 3:
			var drafts []eventlog.Draft
			for range rapid.IntRange(1, 3).Draw(t, "count") {
				at := time.Duration(rapid.IntRange(0, 2000).Draw(t, "at")) * ms
				drafts = append(drafts, eventlog.Draft{Kind: eventlog.KindSignal, At: at, Data: data("stop", len(drafts))})
			}
			c.Insert = append(c.Insert, variant.Inserted{Before: seq, Drafts: drafts})
		}
	}
	if rapid.Bool().Draw(t, "behind") {
		c.Insert = append(c.Insert, variant.Inserted{Before: last + 1, Drafts: []eventlog.Draft{{Kind: eventlog.KindSignal, Data: data("go", 7)}}})
	}
	return c
}

func genSong(t *rapid.T) *tape {
	return song(t, rapid.SliceOfN(rapid.SampledFrom([]string{"go", "stop", "other"}), 3, 12).Draw(t, "signals")...)
}

// A variant has the entries that the model makes, from whatever entry they are read, with
// the hashes of the parent in front of the first change; and the states of a session that was
// recorded so.
func TestProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parent := genSong(t)
		c := genChanges(t, parent)
		v, err := variant.New(bg, parent, c)
		require.NoError(t, err)
		want := model(parent, c)
		got := all(t, v, 1)
		require.Len(t, got, len(want))
		again := &tape{}
		hashes := map[eventlog.Hash]bool{}
		for i, e := range got {
			w := want[i]
			require.Equal(t, eventlog.Seq(i+1), e.Seq)
			require.Equal(t, w.Draft, eventlog.Draft{Kind: e.Kind, At: e.At, Data: e.Data}, "entry %d", e.Seq)
			require.Equal(t, e.Seq <= v.Shared(), parent.List[min(i, len(parent.List)-1)].Head() == e.Head(), "entry %d", e.Seq)
			require.False(t, hashes[e.Hash], "entry %d", e.Seq)
			hashes[e.Hash] = true
			at, recorded := v.Parent(e.Seq)
			require.Equal(t, w.parent > 0, recorded, "entry %d", e.Seq)
			if recorded {
				require.Equal(t, w.parent, at)
				require.Equal(t, e.Seq, v.Seq(at))
			}
			again.Add(w.Draft)
			require.Equal(t, again.List[i].Body, e.Body, "entry %d", e.Seq)
		}
		require.Equal(t, got[len(got)-1].Head(), v.Head())
		for i := range got {
			require.Equal(t, got[i:], all(t, v, eventlog.Seq(i+1)), "from %d", i+1)
		}
		require.Empty(t, all(t, v, v.Head().Seq+1))
		require.Equal(t, digestsAt(t, again), digestsAt(t, v))
	})
}

// Dropped entries change no state but the session's own count of entries: the states are
// those of a fold that never sees them.
func TestDropProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parent := genSong(t)
		drop := rapid.SliceOfDistinct(rapid.Custom(func(t *rapid.T) eventlog.Seq {
			return eventlog.Seq(rapid.IntRange(2, len(parent.List)).Draw(t, "seq"))
		}), rapid.ID[eventlog.Seq]).Draw(t, "drop")
		v, err := variant.New(bg, parent, variant.Edits{Drop: drop})
		require.NoError(t, err)

		f := projection.NewFold(session.Projections(session.ProjectionConfig{}), parent.Genesis())
		for _, e := range parent.List {
			for _, st := range f.States() {
				if !slices.Contains(drop, e.Seq) {
					st.Advance(e.At)
					st.Apply(&e)
				}
			}
		}
		f.Advance(parent.List[len(parent.List)-1].At + 130*ms)
		got := digestsAt(t, v)
		for _, d := range f.Digests() {
			if d.Name != session.ProjectionSession {
				require.Equal(t, d.Sum, got[d.Name], d.Name)
			}
		}
	})
}

func TestNothingChanged(t *testing.T) {
	parent := song(t, "go", "stop")
	for _, c := range []variant.Edits{{}, {Define: parse(t, declared)}, {Until: parent.Head().Seq}} {
		v, err := variant.New(bg, parent, c)
		require.NoError(t, err)
		require.Equal(t, all(t, parent, 1), all(t, v, 1))
		require.Equal(t, parent.Head(), v.Head())
		require.Equal(t, parent.Head().Seq, v.Shared())
	}
	v, err := variant.New(bg, parent, variant.Edits{Until: 6})
	require.NoError(t, err)
	require.Equal(t, parent.List[5].Head(), v.Head())
	require.Equal(t, parent.List[:6], all(t, v, 1))
}

// Equal heads are equal histories: other changes give other hashes from the first one on.
func TestHeadsDiffer(t *testing.T) {
	parent := song(t, "go", "stop", "go", "stop")
	heads := map[eventlog.Head]variant.Edits{parent.Head(): {}}
	draft := []eventlog.Draft{{Kind: eventlog.KindSignal, At: 150 * ms, Data: data("go", 3)}}
	later := []eventlog.Draft{{Kind: eventlog.KindSignal, At: 160 * ms, Data: data("go", 3)}}
	for _, c := range []variant.Edits{
		{Drop: []eventlog.Seq{6}},
		{Drop: []eventlog.Seq{7}},
		{Drop: []eventlog.Seq{6, 7}},
		{Swap: []eventlog.Seq{6}},
		{Swap: []eventlog.Seq{7}},
		{Set: map[eventlog.Seq][]byte{6: data("go", 3)}},
		{Set: map[eventlog.Seq][]byte{6: data("go", 4)}},
		{Insert: []variant.Inserted{{Before: 7, Drafts: draft}}},
		{Insert: []variant.Inserted{{Before: 8, Drafts: draft}}},
		{Insert: []variant.Inserted{{Before: 7, Drafts: later}}},
	} {
		v, err := variant.New(bg, parent, c)
		require.NoError(t, err)
		head := v.Head()
		assert.NotContains(t, heads, head, "%+v", c)
		heads[head] = c
	}
}

// A read in the middle begins where it is, and the entries of a parent that grows later
// are not those of the variant.
func TestCostAndEnd(t *testing.T) {
	parent := song(t, slices.Repeat([]string{"go"}, 500)...)
	parent.Reads = 0
	v, err := variant.New(bg, parent, variant.Edits{Drop: []eventlog.Seq{20}, Insert: []variant.Inserted{{Before: 300, Drafts: []eventlog.Draft{{Kind: eventlog.KindSignal, Data: data("go", 1)}}}}})
	require.NoError(t, err)
	require.Equal(t, 2, parent.Reads)
	parent.Add(eventlog.Draft{Kind: eventlog.KindSignal, At: time.Hour, Data: data("go", 1)})
	parent.Reads = 0
	require.Len(t, all(t, v, 503), 4)
	require.Equal(t, 4, parent.Reads)
}

func TestImpossible(t *testing.T) {
	parent := song(t, "go", "stop", "go")
	word := session.AppendWord(nil, "tick", signal.NewObject(0).Value())
	draft := func(kind eventlog.Kind, data []byte) []variant.Inserted {
		return []variant.Inserted{{Before: 3, Drafts: []eventlog.Draft{{Kind: kind, Data: data}}}}
	}
	for name, c := range map[string]variant.Edits{
		"entry 9":              {Drop: []eventlog.Seq{9}},
		"entry 0":              {Set: map[eventlog.Seq][]byte{0: data("go", 1)}},
		"changed twice":        {Drop: []eventlog.Seq{4, 4}},
		"entry 7 is changed":   {Drop: []eventlog.Seq{7}, Swap: []eventlog.Seq{6}},
		"opens the session":    {Drop: []eventlog.Seq{1}},
		"entry 1 cannot be sw": {Swap: []eventlog.Seq{1}},
		"entry 8 cannot be sw": {Swap: []eventlog.Seq{8}},
		"cannot end":           {Until: 9},
		"entry 6":              {Until: 5, Drop: []eventlog.Seq{6}},
		"before entry 1":       {Insert: []variant.Inserted{{Before: 1}}},
		"before entry 10":      {Insert: []variant.Inserted{{Before: 10}}},
		"entry 6 cannot be":    {Set: map[eventlog.Seq][]byte{6: word}},
		"entry 2 cannot be":    {Set: map[eventlog.Seq][]byte{2: data("go", 1)}},
		"other rules":          {Set: map[eventlog.Seq][]byte{1: word}},
		"draft 1 before entry": {Insert: draft(eventlog.KindSignal, word)},
		"no kind":              {Insert: draft(9, word)},
		"no object named":      {Insert: draft(eventlog.KindEffect, nil)},
	} {
		_, err := variant.New(bg, parent, c)
		require.ErrorIs(t, err, variant.ErrChange, name)
		if name != "no object named" {
			assert.ErrorContains(t, err, name)
		}
	}
	stopped, stop := context.WithCancel(bg)
	stop()
	_, err := variant.New(stopped, parent, variant.Edits{Swap: []eventlog.Seq{6}})
	require.ErrorIs(t, err, context.Canceled)
}

var errDamaged = errors.New("damaged")

// damaged is a tape that cannot be read at one entry.
type damaged struct {
	*tape
	at eventlog.Seq
}

func (s damaged) Entries(ctx context.Context, from eventlog.Seq) iter.Seq2[eventlog.Entry, error] {
	return func(yield func(eventlog.Entry, error) bool) {
		for e, err := range s.tape.Entries(ctx, from) {
			if e.Seq == s.at {
				yield(eventlog.Entry{}, errDamaged)
				return
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// A break of the parent is an error behind the entries before it.
func TestDamagedParent(t *testing.T) {
	v, err := variant.New(bg, damaged{song(t, "go", "stop", "go", "go"), 8}, variant.Edits{Drop: []eventlog.Seq{6}})
	require.NoError(t, err)
	var seqs []eventlog.Seq
	for e, err := range v.Entries(bg, 4) {
		if err != nil {
			require.ErrorIs(t, err, errDamaged)
			seqs = append(seqs, 0)
			continue
		}
		seqs = append(seqs, e.Seq)
	}
	require.Equal(t, []eventlog.Seq{4, 5, 6, 7, 0}, seqs)
	_, err = variant.New(bg, damaged{song(t, "go", "stop", "go"), 6}, variant.Edits{Set: map[eventlog.Seq][]byte{6: data("go", 1)}})
	require.ErrorIs(t, err, errDamaged)
}

var _ replay.Source = damaged{}

// A variant starts from the saved images of the entries that it shares with its parent,
// also if there are many of later ones, and saves none.
func TestSnapshots(t *testing.T) {
	parent := song(t, slices.Repeat([]string{"go", "stop"}, 300)...)
	store, err := snapshot.Open(filepath.Join(t.TempDir(), "snapshots.db"), snapshot.Config{Interval: 5})
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	set := append(session.Projections(session.ProjectionConfig{}), projection.Projection{
		Name: "apart", Version: 1, Apart: true,
		New:     func() projection.State { return &session.State{} },
		Restore: func([]byte) (projection.State, error) { return nil, errDamaged },
	})
	f := projection.NewFold(set.Core(), parent.Genesis())
	for _, e := range parent.List {
		require.NoError(t, f.Apply(&e))
		if e.Seq%10 == 0 {
			require.NoError(t, store.Put("tape", f.Image()))
		}
	}
	v, err := variant.New(bg, parent, variant.Edits{Drop: []eventlog.Seq{325}})
	require.NoError(t, err)
	parent.Reads = 0
	_, err = session.NewReplay(v, set.Core(), store).At(bg, replay.Moment{Seq: 600})
	require.NoError(t, err)
	require.Equal(t, 600-320+1, parent.Reads)
	_, err = session.NewReplay(v, set, store).At(bg, replay.Moment{Seq: 600})
	require.NoError(t, err)
	kept, err := store.List(snapshot.ApartName("tape", "apart", 1))
	require.NoError(t, err)
	require.Empty(t, kept)
}
