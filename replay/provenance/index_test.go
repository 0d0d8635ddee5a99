package provenance_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/postings"
	"github.com/sajou-dev/sajou-go/replay/provenance"
	"github.com/sajou-dev/sajou-go/session"
)

// tables keeps the tables of a session in a folder.
type tables struct {
	m         *memory
	dir       string
	open      []*postings.Table
	used      int
	discarded int
}

// newTables returns tables in a new folder, which done removes.
func newTables(t tester, m *memory) (ix *tables, done func()) {
	t.Helper()
	dir, err := os.MkdirTemp("", "tables")
	require.NoError(t, err)
	ix = &tables{m: m, dir: dir}
	return ix, func() {
		for _, table := range ix.open {
			require.NoError(t, table.Close())
		}
		require.NoError(t, os.RemoveAll(dir))
	}
}

func (x *tables) Head() eventlog.Head { return x.m.Head() }

func (x *tables) Has(head eventlog.Head) (bool, error) {
	return int(head.Seq) <= len(x.m.entries) && x.m.entries[head.Seq-1].Head() == head, nil
}

func (x *tables) Table(ctx context.Context, part replay.IndexPart) (*postings.Table, error) {
	t, err := postings.Update(filepath.Join(x.dir, part.Name), postings.Identity{What: part.Name + part.Version}, x, func(after eventlog.Seq, b *postings.TableBuilder) error {
		return part.Fill(ctx, after, b)
	})
	if err == nil {
		x.open = append(x.open, t)
		x.used++
	}
	return t, err
}

func (x *tables) Discard(replay.IndexPart) { x.discarded++ }

// TestTables: the answers with a table are those without. The table is filled in chunks of
// a few entries, and before the last entries are recorded.
func TestTables(t *testing.T) {
	defer provenance.TraceChunks(3)()
	ctx := context.Background()
	answered := 0
	rapid.Check(t, func(t *rapid.T) {
		m := drawSession(t)
		all := m.entries
		ix, done := newTables(t, m)
		defer done()
		m.entries = all[:rapid.IntRange(1, len(all)).Draw(t, "indexed")]
		with := replay.Open(m, session.Projections(session.ProjectionConfig{}), nil)
		with.UseIndexes(ix)
		path, err := provenance.ParsePath("stage.entities.ann.x")
		require.NoError(t, err)
		_, err = provenance.Blame(ctx, with, path, replay.Moment{Seq: m.Head().Seq})
		if !errors.Is(err, provenance.ErrNever) {
			require.NoError(t, err)
		}
		require.Positive(t, ix.used)
		m.entries = all
		without := m.replay()

		at := drawMoment(t, m)
		path, err = provenance.ParsePath(drawPath(t))
		require.NoError(t, err)
		want, wantErr := provenance.Blame(ctx, without, path, at)
		got, err := provenance.Blame(ctx, with, path, at)
		require.Equal(t, wantErr, err)
		require.Equal(t, want, got)
		require.Zero(t, ix.discarded, "the table is complete")
		if wantErr == nil {
			answered++
		}

		slice, wantErr := provenance.Why(ctx, without, path, at)
		same, err := provenance.Why(ctx, with, path, at)
		require.Equal(t, wantErr, err)
		if err != nil {
			require.ErrorIs(t, err, provenance.ErrNever)
			return
		}
		require.Equal(t, slice.Text(), same.Text())
		require.Equal(t, slice.Signals, same.Signals)
		require.Equal(t, slice.Precision, same.Precision)
	})
	require.Positive(t, answered)
}

// TestBrokenTable: a table that is damaged after it was opened is left, and the answer is
// that of a pass.
func TestBrokenTable(t *testing.T) {
	ctx := context.Background()
	m := begin(t, `{"on":"x","steps":[{"action":"spawn","entity":"cup","at":{"x":1,"y":2}}]}`)
	for range 10 {
		m.signal(t, 0, "x", "", object{})
	}
	r := m.replay()
	ix, done := newTables(t, m)
	defer done()
	r.UseIndexes(ix)
	path, err := provenance.ParsePath("stage.entities.cup.x")
	require.NoError(t, err)
	end := replay.Moment{Seq: m.Head().Seq}
	want, err := provenance.Blame(ctx, r, path, end)
	require.NoError(t, err)
	require.Zero(t, ix.discarded)

	file := filepath.Join(ix.dir, "stage")
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	for i := len(b) / 2; i < len(b); i++ {
		b[i] ^= 0x55 // the pages and the chunk, and not the directory
	}
	require.NoError(t, os.WriteFile(file, b, 0o600))
	got, err := provenance.Blame(ctx, r, path, end)
	require.NoError(t, err)
	require.Equal(t, want, got)
	_, err = provenance.Why(ctx, r, path, end)
	require.NoError(t, err)
	require.Equal(t, 2, ix.discarded)
}

// FuzzTrace: arbitrary bytes are refused or are traced events.
func FuzzTrace(f *testing.F) {
	f.Add([]byte{0})
	f.Add([]byte{1, 0, 5, 0, 5, 0, 2, 0, 0, 1, 'd', 0, 1, '1', 0, 1, 'a', 1, 0, 1, 'e', 3, 7, 1, 1, 3})
	f.Fuzz(func(t *testing.T, b []byte) {
		once, err := provenance.RecodeTrace(b)
		if err != nil {
			return
		}
		twice, err := provenance.RecodeTrace(once)
		require.NoError(t, err)
		require.Equal(t, once, twice)
	})
}
