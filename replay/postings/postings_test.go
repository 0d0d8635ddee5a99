package postings_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/replay/postings"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// entries is a session: the keys of each entry, from Seq 1.
type entries [][]string

func headOf(seq eventlog.Seq) eventlog.Head {
	h := eventlog.Head{Seq: seq}
	if seq > 0 {
		binary.BigEndian.PutUint64(h.Hash[:], uint64(seq)*1_000_003)
	}
	return h
}

func (e entries) Head() eventlog.Head                  { return headOf(eventlog.Seq(len(e))) }
func (e entries) Has(head eventlog.Head) (bool, error) { return head == headOf(head.Seq), nil }
func (e entries) at(seq eventlog.Seq) []string         { return e[seq-1] }
func (e entries) of(key string, to eventlog.Seq) (s []eventlog.Seq) {
	for i := range e[:to] {
		if slices.Contains(e[i], key) {
			s = append(s, eventlog.Seq(i+1))
		}
	}
	return s
}

// fill adds the keys of all entries behind one, and a chunk at every third.
func (e entries) fill(after eventlog.Seq, b *postings.TableBuilder) error {
	for seq := after + 1; int(seq) <= len(e); seq++ {
		for _, key := range e.at(seq) {
			b.Add(key, seq)
		}
		if seq%3 == 0 {
			b.Chunk(chunkOf(seq))
		}
		if err := b.Done(headOf(seq)); err != nil {
			return err
		}
	}
	return nil
}

func chunkOf(seq eventlog.Seq) []byte { return fmt.Appendf(nil, "chunk up to %d", seq) }

var identity = postings.Identity{Genesis: eventlog.Genesis("s"), What: "test 1"}

func drawEntries(t *rapid.T, most int) entries {
	keys := []string{"", "a", "b", "c", "a long key with spaces"}
	e := make(entries, rapid.IntRange(0, most).Draw(t, "entries"))
	for i := range e {
		e[i] = rapid.SliceOfN(rapid.SampledFrom(keys), 0, 4).Draw(t, "keys")
		if rapid.Bool().Draw(t, "unique") {
			e[i] = append(e[i], fmt.Sprint("unique ", i))
		}
	}
	return e
}

// TestTable: a table gives exactly the entries of each key, whatever its segments, and its
// chunks in their order from the end.
func TestTable(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		defer postings.SmallSegments(rapid.IntRange(1, 40).Draw(t, "segment"), eventlog.Seq(rapid.IntRange(1, 60).Draw(t, "entries of a segment")))()
		path := filepath.Join(dir, "table")
		require.NoError(t, os.RemoveAll(path))
		e := drawEntries(t, 200)
		table, err := postings.Update(path, identity, e, e.fill)
		require.NoError(t, err)
		defer table.Close()
		require.Equal(t, e.Head(), table.Head())
		for _, key := range []string{"", "a", "b", "c", "a long key with spaces", "unique 5", "unique 190", "never"} {
			seqs, err := table.Seqs(key)
			require.NoError(t, err)
			require.Equal(t, e.of(key, eventlog.Seq(len(e))), seqs, key)
			upTo, most := eventlog.Seq(rapid.IntRange(0, len(e)+3).Draw(t, "up to")), rapid.IntRange(0, 30).Draw(t, "most")
			want := e.of(key, min(upTo, eventlog.Seq(len(e))))
			last, err := table.Last(key, upTo, most)
			require.NoError(t, err)
			require.ElementsMatch(t, want[max(0, len(want)-most):], last, "%s up to %d", key, upTo)
			require.True(t, slices.IsSorted(last))
		}
		for want := eventlog.Seq(len(e)) / 3 * 3; want > 0; want -= 3 {
			data, after, to, err := table.ChunkBefore(want + eventlog.Seq(rapid.IntRange(0, 2).Draw(t, "behind")))
			require.NoError(t, err)
			require.Equal(t, string(chunkOf(want)), string(data))
			require.Equal(t, want, to)
			require.GreaterOrEqual(t, after, want-3)
		}
		data, _, _, err := table.ChunkBefore(2)
		require.NoError(t, err)
		require.Nil(t, data)
	})
}

// TestContinued: a table of a session that has grown by little is used as it is; else it
// is continued behind its last full segment, and is then that of the whole session.
func TestContinued(t *testing.T) {
	defer postings.SmallSegments(100, 1000)()
	path := filepath.Join(t.TempDir(), "table")
	e := make(entries, 2500)
	for i := range e {
		e[i] = []string{fmt.Sprint("key ", i%7)}
	}
	grown := func(n int) entries {
		for len(e) < n {
			e = append(e, []string{"new"})
		}
		return e
	}
	filled := []eventlog.Seq{}
	update := func(e entries) *postings.Table {
		table, err := postings.Update(path, identity, e, func(after eventlog.Seq, b *postings.TableBuilder) error {
			filled = append(filled, after)
			return e.fill(after, b)
		})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, table.Close()) })
		return table
	}
	require.Equal(t, eventlog.Seq(2500), update(e).Head().Seq)
	require.Equal(t, eventlog.Seq(2500), update(grown(2500+postings.TailEntries)).Head().Seq, "it is near enough")
	table := update(grown(2501 + postings.TailEntries))
	require.Equal(t, e.Head(), table.Head())
	require.Equal(t, []eventlog.Seq{0, 2500}, filled)
	for _, key := range []string{"key 3", "new"} {
		seqs, err := table.Seqs(key)
		require.NoError(t, err)
		require.Equal(t, e.of(key, eventlog.Seq(len(e))), seqs)
	}
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}

// otherHistory is a session whose entries have other hashes.
type otherHistory struct{ entries }

func (otherHistory) Has(eventlog.Head) (bool, error) { return false, nil }

// TestForeign: a table of another session, another part or another history is not used,
// and an error leaves no file behind.
func TestForeign(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "table")
	e := entries{{"a"}, {"b"}, {"a"}}
	table, err := postings.Update(path, identity, e, e.fill)
	require.NoError(t, err)
	require.NoError(t, table.Close())

	for _, id := range []postings.Identity{{Genesis: eventlog.Genesis("t"), What: identity.What}, {Genesis: identity.Genesis, What: "test 2"}} {
		_, err := postings.Open(path, id)
		require.ErrorIs(t, err, postings.ErrDamaged)
	}
	filled := false
	table, err = postings.Update(path, identity, otherHistory{e}, func(after eventlog.Seq, b *postings.TableBuilder) error {
		filled = true
		require.Zero(t, after)
		return e.fill(after, b)
	})
	require.NoError(t, err)
	require.NoError(t, table.Close())
	require.True(t, filled)

	failed := errors.New("failed")
	_, err = postings.Update(filepath.Join(dir, "none"), identity, e, func(eventlog.Seq, *postings.TableBuilder) error { return failed })
	require.ErrorIs(t, err, failed)
	list, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, list, 1)
	_, err = postings.Update(filepath.Join(dir, "no such folder", "table"), identity, e, e.fill)
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = postings.Open(dir, identity)
	require.ErrorIs(t, err, postings.ErrDamaged)
}

// TestDamaged: no change of a byte and no shorter file gives a wrong answer.
func TestDamaged(t *testing.T) {
	dir := t.TempDir()
	e := make(entries, 40)
	for i := range e {
		e[i] = []string{fmt.Sprint("key ", i%3)}
	}
	path := filepath.Join(dir, "table")
	table, err := postings.Update(path, identity, e, e.fill)
	require.NoError(t, err)
	require.NoError(t, table.Close())
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	ask := func(b []byte) {
		require.NoError(t, os.WriteFile(path, b, 0o600))
		table, err := postings.Open(path, identity)
		if err != nil {
			assert.ErrorIs(t, err, postings.ErrDamaged)
			return
		}
		defer table.Close()
		seqs, err := table.Seqs("key 1")
		if err == nil && table.Head() == e.Head() {
			assert.Equal(t, e.of("key 1", 40), seqs)
		}
		for to := eventlog.Seq(40); to >= 3; to -= 3 {
			if data, _, at, err := table.ChunkBefore(to); err == nil && data != nil {
				assert.Equal(t, string(chunkOf(at)), string(data))
			}
		}
	}
	for i := range whole {
		b := slices.Clone(whole)
		b[i] ^= 0x41
		ask(b)
		if i%5 == 0 {
			ask(whole[:i])
		}
	}
}

// FuzzTable: arbitrary bytes behind a right header are refused, or answer.
func FuzzTable(f *testing.F) {
	dir := f.TempDir()
	path := filepath.Join(dir, "table")
	e := entries{{"a"}, {"b", "a"}, {"c"}}
	table, err := postings.Update(path, identity, e, e.fill)
	require.NoError(f, err)
	require.NoError(f, table.Close())
	whole, err := os.ReadFile(path)
	require.NoError(f, err)
	header := len("sajou-postings/1\n") + eventlog.HashSize + 16
	f.Add(whole[header:])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		path := filepath.Join(t.TempDir(), "table")
		require.NoError(t, os.WriteFile(path, slices.Concat(whole[:header], b), 0o600))
		table, err := postings.Open(path, identity)
		if err != nil {
			return
		}
		defer table.Close()
		_, _ = table.Seqs("a")
		_, _, _, _ = table.ChunkBefore(3)
	})
}

func ExampleUpdate() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	session := entries{{"task-1"}, {"task-2"}, {"task-1"}}
	table, err := postings.Update(filepath.Join(dir, "table"), identity, session, func(after eventlog.Seq, b *postings.TableBuilder) error {
		for seq := after + 1; seq <= session.Head().Seq; seq++ {
			for _, key := range session.at(seq) {
				b.Add(key, seq)
			}
			if err := b.Done(headOf(seq)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		panic(err)
	}
	defer table.Close()
	seqs, err := table.Seqs("task-1")
	fmt.Println(seqs, err)
	// Output: [1 3] <nil>
}
