package eventlog_test

import (
	"context"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/eventlog/internal/keyspace"
)

// Behind each kind of damage a reader finds the first entry that can be read: one whose
// iteration begins with it.
func TestReadable(t *testing.T) {
	starts := []eventlog.Seq{1, 2, 10, 20, 21, 30}
	const end = eventlog.Seq(40)
	key := func(seq eventlog.Seq) []byte { return keyspace.BatchKey(nil, 1, seq) }
	for name, c := range map[string]struct {
		change func(db *pebble.DB)
		bad    []eventlog.Seq // that cannot be read
	}{
		"nothing":    {func(*pebble.DB) {}, nil},
		"removed":    {func(db *pebble.DB) { remove(t, db, key(10)) }, span(10, 19)},
		"two gaps":   {func(db *pebble.DB) { remove(t, db, key(2)); remove(t, db, key(20)) }, append(span(2, 9), 20)},
		"neighbours": {func(db *pebble.DB) { remove(t, db, key(10)); set(t, db, key(20), []byte{1}) }, span(10, 20)},
		"cut":        {func(db *pebble.DB) { v := get(t, db, key(10)); set(t, db, key(10), v[:len(v)-1]) }, span(19, 19)},
		"no body": {func(db *pebble.DB) {
			header, links := cut(t, get(t, db, key(10)))
			link := slices.Clone(links[3])
			link[len(link)-1] ^= 0xff // within the body, whose length stays
			links[3] = link
			set(t, db, key(10), slices.Concat(append([][]byte{header}, links...)...))
		}, nil}, // found out below
	} {
		t.Run(name, func(t *testing.T) {
			fs := vfs.NewMem()
			record(t, fs, "", starts, end, "a")
			raw(t, fs, c.change)
			l, err := eventlog.Open("store", eventlog.Config{FS: fs, ReadOnly: true})
			require.NoError(t, err)
			defer l.Close()
			s := session(t, l, "a")
			whole := func(seq eventlog.Seq) bool { _, err := s.Entry(t.Context(), seq); return err == nil }
			for _, seq := range c.bad {
				assert.False(t, whole(seq), "%d", seq)
			}
			for from := eventlog.Seq(0); from <= end+1; from++ {
				want := max(from, 1)
				for want <= end && !whole(want) {
					want++
				}
				got, ok, err := s.Readable(t.Context(), from)
				require.NoError(t, err)
				require.Equal(t, want <= end, ok, "from %d", from)
				if ok {
					require.Equal(t, want, got, "from %d", from)
				}
			}
		})
	}
	l, err := eventlog.Open("store", eventlog.Config{FS: vfs.NewMem()})
	require.NoError(t, err)
	defer l.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err = session(t, l, "a").Readable(ctx, 1)
	require.ErrorIs(t, err, context.Canceled)
}

func span(from, to eventlog.Seq) (all []eventlog.Seq) {
	for ; from <= to; from++ {
		all = append(all, from)
	}
	return all
}
