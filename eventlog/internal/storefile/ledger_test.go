package storefile

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
)

// A table is in FILES from before it is created until it is complete or its removal is
// durable: a file that a sync of the directory has removed for good must not be missed.
func TestLedgerOfTables(t *testing.T) {
	mem := vfs.NewMem()
	require.NoError(t, mem.MkdirAll("store", 0o755))
	ledger, err := OpenLedger(mem, "store", NewFileList("00112233445566778899aabbccddeeff"))
	require.NoError(t, err)
	disk := NewFreezeFS(mem, func(err error) { t.Error(err) })
	disk.Note = ledger
	listed := func() []string {
		t.Helper()
		list, err := ReadFileList(mem, "store")
		require.NoError(t, err)
		return slices.Sorted(maps.Keys(list.Tables))
	}
	create := func(name string) vfs.File {
		t.Helper()
		f, err := disk.Create("store/"+name, vfs.WriteCategoryUnspecified)
		require.NoError(t, err)
		_, err = f.Write([]byte("contents"))
		require.NoError(t, err)
		return f
	}
	complete, abandoned := create("000004.sst"), create("000005.sst")
	require.Equal(t, []string{"000004.sst", "000005.sst"}, listed())
	require.NoError(t, errors.Join(complete.Sync(), complete.Close(), abandoned.Close()))
	create("000006.sst")
	require.Equal(t, []string{"000005.sst", "000006.sst"}, listed(), "one is complete")
	require.NoError(t, disk.Remove("store/000005.sst"))
	create("000007.sst")
	require.Equal(t, []string{"000005.sst", "000006.sst", "000007.sst"}, listed(), "the removal is not durable yet")
	dir, err := disk.OpenDir("store")
	require.NoError(t, err)
	require.NoError(t, errors.Join(dir.Sync(), dir.Close()))
	create("000008.sst")
	require.Equal(t, []string{"000006.sst", "000007.sst", "000008.sst"}, listed(), "and now it is")

	// A removal that fails changes nothing.
	require.Error(t, disk.Remove("store/000099.sst"))
	require.NoError(t, ledger.Close())
	require.NoError(t, ledger.Close())
	create("000009.sst")
	require.NotContains(t, listed(), "000009.sst", "after Close nothing is written")
}
