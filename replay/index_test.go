package replay_test

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/postings"
)

// kept keeps the tables of a session in a folder. With lags set the first one of each name
// is returned ever after, so that it ends before entries that were appended since.
type kept struct {
	replay.Source
	dir       string
	lags      bool
	used      int
	discarded int
	open      []*postings.Table
	first     map[string]*postings.Table
}

func (k *kept) Has(eventlog.Head) (bool, error) { return true, nil }

func (k *kept) Table(ctx context.Context, part replay.IndexPart) (*postings.Table, error) {
	if t := k.first[part.Name]; t != nil && k.lags {
		k.used++
		return t, nil
	}
	t, err := postings.Update(filepath.Join(k.dir, part.Name), postings.Identity{What: part.Version}, k, func(after eventlog.Seq, b *postings.TableBuilder) error {
		return part.Fill(ctx, after, b)
	})
	if err == nil {
		k.open = append(k.open, t)
		k.used++
		if k.first == nil {
			k.first = map[string]*postings.Table{}
		}
		k.first[part.Name] = cmp.Or(k.first[part.Name], t)
	}
	return t, err
}

func (k *kept) Discard(replay.IndexPart) { k.discarded++ }

func (k *kept) close() {
	for _, t := range k.open {
		_ = t.Close()
	}
}

// numbered is a session whose entries have drawn correlation ids.
type numbered struct {
	correlated
	ids []string // by entry
}

func (n numbered) Correlation(e *eventlog.Entry) (string, bool) {
	id := n.ids[e.Seq-1]
	return id, id != ""
}

// TestCorrelationTable: addresses of correlations resolve to the same entries, with the
// same errors, with a table that was built before the last entries were there.
func TestCorrelationTable(t *testing.T) {
	ctx := t.Context()
	whole := correlated{&tape{}}
	for range 12 {
		whole.add(ms)
	}
	dir := t.TempDir()
	runs := 0
	rapid.Check(t, func(t *rapid.T) {
		runs++
		n := numbered{correlated: whole}
		for range whole.Head().Seq {
			n.ids = append(n.ids, rapid.SampledFrom([]string{"", "a", "b", "c"}).Draw(t, "id"))
		}
		ix := &kept{Source: n, dir: filepath.Join(dir, fmt.Sprint(runs))}
		require.NoError(t, os.Mkdir(ix.dir, 0o700))
		defer ix.close()
		had := rapid.IntRange(0, len(n.ids)).Draw(t, "entries that the session had")
		if had > 0 {
			before := numbered{correlated{&tape{entries: whole.entries[:had]}}, n.ids[:had]}
			built := &kept{Source: before, dir: ix.dir}
			defer built.close()
			r := replay.Open(before, toys, nil)
			r.UseIndexes(built)
			a, err := replay.ParseAddress("corr:never")
			require.NoError(t, err)
			_, err = r.Resolve(ctx, a)
			require.Error(t, err)
			require.Equal(t, 1, built.used)
			ix.lags, ix.first = rapid.Bool().Draw(t, "the table lags"), built.first
		}
		with, without := replay.Open(n, toys, nil), replay.Open(n, toys, nil)
		with.UseIndexes(ix)
		for _, id := range []string{"a", "b", "never"} {
			nth := rapid.IntRange(-12, 12).Filter(func(n int) bool { return n != 0 }).Draw(t, "nth")
			a, err := replay.ParseAddress(fmt.Sprintf("corr:%s#%d", id, nth))
			require.NoError(t, err)
			want, wantErr := without.Resolve(ctx, a)
			got, err := with.Resolve(ctx, a)
			require.Equal(t, wantErr, err)
			require.Equal(t, want, got)
		}
		require.Equal(t, 3, ix.used)
		require.Zero(t, ix.discarded)

		// A table of other ids is noticed, if it has all entries.
		if had > 0 {
			return
		}
		a, err := replay.ParseAddress("corr:a")
		require.NoError(t, err)
		_, err = without.Resolve(ctx, a)
		if err == nil {
			for i, id := range n.ids {
				n.ids[i] = map[string]string{"a": "b", "b": "a"}[id]
			}
			want, wantErr := without.Resolve(ctx, a)
			got, err := with.Resolve(ctx, a)
			require.Equal(t, wantErr, err)
			require.Equal(t, want, got)
			require.Equal(t, 1, ix.discarded)
		}
	})
}

// continued is a script whose marks can be computed from any entry on.
type continued struct{ *scripted }

func (c continued) MarksAfter(ctx context.Context, f *projection.Fold) iter.Seq2[replay.Mark, error] {
	return func(yield func(replay.Mark, error) bool) {
		for m, err := range c.Marks(ctx) {
			if (err != nil || m.Seq > f.Head().Seq) && !yield(m, err) {
				return
			}
		}
	}
}

// TestMarkTable: addresses of beats and turns resolve to the same entries, with the same
// errors, with a table, also if marks were added since, up to the last entry.
func TestMarkTable(t *testing.T) {
	ctx := t.Context()
	dir := t.TempDir()
	runs := 0
	rapid.Check(t, func(t *rapid.T) {
		runs++
		s := &scripted{tape: &tape{}}
		for range 12 {
			s.add(ms)
			m := replay.Mark{Seq: s.Head().Seq}
			switch rapid.IntRange(0, 3).Draw(t, "mark") {
			case 0:
				continue
			case 1:
				m.Beats = []string{"warm", "tea"}
			case 2:
				m.Turn = rapid.Uint64Range(1, 2).Draw(t, "turn")
			case 3:
				m.Landed = rapid.SampledFrom([]string{"warm", "tea"}).Draw(t, "landed")
			}
			s.marks = append(s.marks, m)
		}
		all, entries := s.marks, s.entries
		ix := &kept{Source: continued{s}, dir: filepath.Join(dir, fmt.Sprint(runs)), lags: rapid.Bool().Draw(t, "the table lags")}
		require.NoError(t, os.Mkdir(ix.dir, 0o700))
		defer ix.close()
		with, without := replay.Open(continued{s}, toys, nil), replay.Open(s, toys, nil)
		with.UseIndexes(ix)
		first := rapid.IntRange(1, len(entries)).Draw(t, "indexed")
		ask := func() {
			for _, event := range []string{"beat:warm", "beat:tea", "beat:other", "turn:1", "turn:2", "turn:3"} {
				nth := rapid.IntRange(-4, 4).Filter(func(n int) bool { return n != 0 }).Draw(t, "nth")
				a, err := replay.ParseAddress(fmt.Sprintf("%s#%d", event, nth))
				require.NoError(t, err)
				want, wantErr := without.Resolve(ctx, a)
				got, err := with.Resolve(ctx, a)
				require.Equal(t, wantErr, err)
				require.Equal(t, want, got)
			}
		}
		s.entries, s.marks = entries[:first], nil
		for _, m := range all {
			if int(m.Seq) <= first {
				s.marks = append(s.marks, m)
			}
		}
		ask()
		s.entries, s.marks = entries, all
		ask()
		require.Positive(t, ix.used)
		require.Zero(t, ix.discarded)
	})
}

// unread is a session with correlation ids and marks, of which some entries cannot be read.
type unread struct {
	*damaged
	continued
}

func (u unread) Name() string                               { return u.damaged.Name() }
func (u unread) Head() eventlog.Head                        { return u.damaged.Head() }
func (u unread) Genesis() eventlog.Hash                     { return u.damaged.Genesis() }
func (u unread) Correlation(*eventlog.Entry) (string, bool) { return "a", true }
func (u unread) Entries(ctx context.Context, from eventlog.Seq) iter.Seq2[eventlog.Entry, error] {
	return u.damaged.Entries(ctx, from)
}

// An entry that cannot be read while a table is built, continued or used is the error of the
// question; nothing is said to be missing.
func TestTableOfUnreadEntries(t *testing.T) {
	for _, text := range []string{"corr:a#7", "corr:a#-2", "beat:warm#2", "turn:2"} {
		a, err := replay.ParseAddress(text)
		require.NoError(t, err)
		for good := 0; ; good++ {
			s := &damaged{tape: journey(), good: good}
			u := unread{s, continued{&scripted{tape: s.tape, marks: []replay.Mark{
				{Seq: 1, Beats: []string{"warm"}}, {Seq: 2, Turn: 1}, {Seq: 3, Landed: "warm"}, {Seq: 5, Turn: 2}, {Seq: 7, Landed: "warm"},
			}}}}
			ix := &kept{Source: u, dir: t.TempDir()}
			r := replay.Open(u, toys, nil)
			r.UseIndexes(ix)
			m, err := r.Resolve(t.Context(), a)
			ix.close()
			if !s.failed {
				require.NoError(t, err)
				require.Equal(t, map[string]eventlog.Seq{"corr:a#7": 7, "corr:a#-2": 8, "beat:warm#2": 7, "turn:2": 5}[text], m.Seq)
				break
			}
			require.ErrorIs(t, err, errDamaged, "%s after %d entries", text, good)
		}
	}
}

// forgetful is a script whose folds no longer have it, once that is so.
type forgetful struct {
	continued
	gone *bool
}

func (f forgetful) MarksAfter(ctx context.Context, fold *projection.Fold) iter.Seq2[replay.Mark, error] {
	if *f.gone {
		return nil
	}
	return f.continued.MarksAfter(ctx, fold)
}

// A table of marks whose script the folds do not have answers nothing: a pass does.
func TestTableWithoutScript(t *testing.T) {
	a, err := replay.ParseAddress("beat:warm#-1")
	require.NoError(t, err)
	for _, lags := range []bool{false, true} {
		gone := false
		s := &scripted{tape: journey(), marks: []replay.Mark{{Seq: 1, Beats: []string{"warm"}}, {Seq: 3, Landed: "warm"}}}
		all := s.entries
		s.entries = all[:6]
		f := forgetful{continued{s}, &gone}
		ix := &kept{Source: f, dir: t.TempDir(), lags: lags}
		r := replay.Open(f, toys, nil)
		r.UseIndexes(ix)
		m, err := r.Resolve(t.Context(), a)
		require.NoError(t, err)
		require.Equal(t, replay.Moment{Seq: 3}, m)
		if gone = true; lags {
			s.entries = all
			s.marks = append(s.marks, replay.Mark{Seq: 8, Landed: "warm"})
		}
		m, err = r.Resolve(t.Context(), a)
		require.NoError(t, err)
		require.Equal(t, map[bool]eventlog.Seq{false: 3, true: 8}[lags], m.Seq)
		require.Equal(t, 2, ix.used)
		ix.close()
	}
}

// A table that can no longer be read is dropped, and a pass answers.
func TestTableThatCannotBeRead(t *testing.T) {
	s := &scripted{tape: journey(), marks: []replay.Mark{{Seq: 1, Beats: []string{"warm"}}, {Seq: 3, Landed: "warm"}}}
	u := unread{&damaged{tape: s.tape, good: 1 << 20}, continued{s}}
	for text, want := range map[string]eventlog.Seq{"corr:a#7": 7, "corr:a#-1": 9, "beat:warm": 3} {
		a, err := replay.ParseAddress(text)
		require.NoError(t, err)
		ix := &kept{Source: u, dir: t.TempDir(), lags: true}
		r := replay.Open(u, toys, nil)
		r.UseIndexes(ix)
		for discarded := range 2 {
			m, err := r.Resolve(t.Context(), a)
			require.NoError(t, err)
			require.Equal(t, want, m.Seq)
			require.Equal(t, discarded, ix.discarded, text)
			ix.close() // and the same table is returned again
		}
	}
}

// noted is tables of which there are none. It keeps the parts that were asked for.
type noted struct{ parts []string }

func (n *noted) Table(_ context.Context, part replay.IndexPart) (*postings.Table, error) {
	n.parts = append(n.parts, part.Name+" "+part.Version)
	return nil, nil
}

func (n *noted) Discard(replay.IndexPart) { n.parts = append(n.parts, "discarded") }

// A table depends on what its version says: that of the marks on the projections. A
// replay with projections apart does not write a table.
func TestVersionsOfTables(t *testing.T) {
	applied := 0
	s := unread{&damaged{tape: journey(), good: 1 << 20}, continued{&scripted{tape: journey(), marks: []replay.Mark{{Seq: 1, Beats: []string{"warm"}}, {Seq: 3, Landed: "warm"}}}}}
	newer := projection.Set{duo[0], duo[1]}
	newer[1].Version = 12
	for _, tt := range []struct {
		set  projection.Set
		want []string
	}{
		{toys, []string{"marks band/1 ", "correlations 1", "marks band/1 "}},
		{duo, []string{"marks band/1 echo/1 ", "correlations 1", "marks band/1 echo/1 "}},
		{newer, []string{"marks band/1 echo/12 ", "correlations 1", "marks band/1 echo/12 "}},
		{withTally(1, &applied), nil},
	} {
		n := &noted{}
		r := replay.Open(s, tt.set, nil)
		r.Discard(replay.IndexPart{}) // without tables there is none to drop
		r.UseIndexes(n)
		for text, want := range map[string]string{"beat:warm": "3", "corr:a#2": "2"} {
			got, message := resolve(r, text)
			require.Equal(t, want, got, message)
		}
		got, message := resolve(r, "turn:1")
		require.Equal(t, "none", got, message)
		slices.Sort(n.parts)
		slices.Sort(tt.want)
		require.Equal(t, tt.want, n.parts)
		r.Discard(replay.IndexPart{})
		require.Equal(t, append(tt.want, "discarded"), n.parts)
	}
}

// A table that says another entry for a beat is dropped, and a pass answers.
func TestTableOfOtherMarks(t *testing.T) {
	s := &scripted{tape: journey(), marks: []replay.Mark{{Seq: 1, Beats: []string{"warm"}}, {Seq: 3, Landed: "warm"}, {Seq: 4, Turn: 1}}}
	for _, text := range []string{"beat:warm", "turn:1"} {
		for _, other := range []replay.Mark{{Seq: 5, Landed: "warm"}, {Seq: 5, Turn: 1}} {
			a, err := replay.ParseAddress(text)
			require.NoError(t, err)
			ix := &kept{Source: continued{s}, dir: t.TempDir(), lags: true}
			wrong := continued{&scripted{tape: s.tape, marks: []replay.Mark{s.marks[0], other}}}
			r := replay.Open(wrong, toys, nil)
			r.UseIndexes(ix)
			_, _ = r.Resolve(t.Context(), a) // the table is made of other marks, or says that there are none
			require.Zero(t, ix.discarded)
			r = replay.Open(continued{s}, toys, nil)
			r.UseIndexes(ix)
			m, err := r.Resolve(t.Context(), a)
			require.NoError(t, err)
			require.Equal(t, map[string]eventlog.Seq{"beat:warm": 3, "turn:1": 4}[text], m.Seq)
			require.Equal(t, map[bool]int{true: 1}[(other.Turn > 0) == (text == "turn:1")], ix.discarded, "%s with a table of %+v", text, other)
			ix.close()
		}
	}
}

// Marks behind the last entry of the session, which come while a table is made or used, are not
// in it and answer nothing.
func TestMarksBehindTheEnd(t *testing.T) {
	whole := journey()
	s := &scripted{tape: &tape{entries: whole.entries[:6]}, marks: []replay.Mark{{Seq: 1, Beats: []string{"warm"}}, {Seq: 3, Landed: "warm"}, {Seq: 6, Turn: 1}, {Seq: 7, Landed: "warm"}, {Seq: 8, Turn: 1}}}
	for _, lags := range []bool{false, true} {
		ix := &kept{Source: continued{s}, dir: t.TempDir(), lags: lags}
		r := replay.Open(continued{s}, toys, nil)
		r.UseIndexes(ix)
		for _, tt := range []struct {
			entries int
			text    string
			want    eventlog.Seq
		}{{6, "beat:warm#-1", 3}, {6, "turn:1#-1", 6}, {7, "beat:warm#-1", 7}, {7, "turn:1#-1", 6}, {9, "turn:1#-1", 8}} {
			s.entries = whole.entries[:tt.entries]
			a, err := replay.ParseAddress(tt.text)
			require.NoError(t, err)
			m, err := r.Resolve(t.Context(), a)
			require.NoError(t, err)
			require.Equal(t, tt.want, m.Seq, "%s of %d entries", tt.text, tt.entries)
		}
		require.Zero(t, ix.discarded)
		require.Equal(t, 5, ix.used)
		ix.close()
	}
}
