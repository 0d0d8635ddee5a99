package eventlog_test

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tinylib/msgp/msgp"

	"github.com/sajou-dev/sajou-go/eventlog"
)

// randomDrafts makes n entries of about size bytes that do not compress.
func randomDrafts(rng *rand.Rand, n, size int) []eventlog.Draft {
	ds := drafts(1, n)
	for i := range ds {
		b := make([]byte, size)
		for j := range b {
			b[j] = byte(rng.Uint32())
		}
		ds[i].Data, ds[i].At = msgp.AppendBytes(nil, b), 0
	}
	return ds
}

// A store takes little more space than its entries: Pebble would reserve 17 MiB for
// each file of the write-ahead log, and keep 17 of them to write them again.
func TestDiskUsage(t *testing.T) {
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "store")
	usage := func(l *eventlog.Log) eventlog.DiskUsage {
		u, err := l.DiskUsage()
		require.NoError(t, err)
		return u
	}
	l, err := eventlog.Open(dir, eventlog.Config{})
	require.NoError(t, err)
	s := session(t, l, "a")
	rng := rand.New(rand.NewPCG(1, 1))
	for range 3 {
		_, err := s.Append(ctx, eventlog.Batch{Drafts: randomDrafts(rng, 1, 250)})
		require.NoError(t, err)
	}
	u := usage(l)
	require.Less(t, u.Total(), uint64(100<<10), "three entries in an open store: %+v", u)
	require.Greater(t, u.Logs, uint64(500), "the entries are in the write-ahead log: %+v", u)

	const written = 48 << 20
	for range written / (256 << 10) {
		_, err := s.Append(ctx, eventlog.Batch{Drafts: randomDrafts(rng, 16, 16<<10)})
		require.NoError(t, err)
	}
	// Four sets of entries wait for their flush at most, of 16 MiB at most, and one
	// file more is written to.
	u = usage(l)
	require.Less(t, u.Total(), uint64(written+5*(17<<20)), "an open store: %+v", u)
	logs, err := filepath.Glob(filepath.Join(dir, "*.log"))
	require.NoError(t, err)
	require.LessOrEqual(t, len(logs), 6)
	require.NoError(t, l.Close())

	l, err = eventlog.Open(dir, eventlog.Config{ReadOnly: true})
	require.NoError(t, err)
	u = usage(l)
	require.NoError(t, l.Close())
	require.Greater(t, u.Tables, uint64(written), "%+v", u)
	require.Less(t, u.Logs+u.Other, uint64(100<<10), "beside the tables, after Close: %+v", u)
	_, err = l.DiskUsage()
	require.ErrorIs(t, err, eventlog.ErrClosed)

	// The next opening for writing finds everything without a write-ahead log.
	l, err = eventlog.Open(dir, eventlog.Config{})
	require.NoError(t, err)
	require.Equal(t, s.Head(), session(t, l, "a").Head())
	require.NoError(t, l.Close())
}
