package server_test

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
)

// quiet is a logger of a database that keeps nothing.
type quiet struct{}

func (quiet) Infof(string, ...any)  {}
func (quiet) Errorf(string, ...any) {}
func (quiet) Fatalf(f string, a ...any) {
	panic(f)
}

// damage cuts the newest entries of a session in half, beneath the log of a closed store.
func damage(t testing.TB, disk vfs.FS, dir, session string) {
	t.Helper()
	db, err := pebble.Open(dir, &pebble.Options{FS: disk, FormatMajorVersion: pebble.FormatNewest, Logger: quiet{}})
	require.NoError(t, err)
	value, closer, err := db.Get([]byte("s" + session))
	require.NoError(t, err)
	number := binary.BigEndian.Uint32(value)
	require.NoError(t, closer.Close())
	it, err := db.NewIter(&pebble.IterOptions{
		LowerBound: binary.BigEndian.AppendUint32([]byte("e"), number),
		UpperBound: binary.BigEndian.AppendUint32([]byte("e"), number+1),
	})
	require.NoError(t, err)
	require.True(t, it.Last())
	key, batch := bytes.Clone(it.Key()), bytes.Clone(it.Value())
	require.NoError(t, it.Close())
	require.NoError(t, db.Set(key, batch[:len(batch)/2], pebble.Sync))
	require.NoError(t, db.Close())
}
