package storefile

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/eventlog/chain"
)

const exampleID = "00112233445566778899aabbccddeeff"

// lineOf returns a line of FILES with its checksum, written from the comment of the format
// alone.
func lineOf(words string) string {
	if words != "" {
		words = " " + words
	}
	return fmt.Sprintf("%08x%s\n", binary.BigEndian.Uint32(crcOf(binary.BigEndian, []byte(words))), words)
}

const exampleLine = "marker 3 MANIFEST-000016 manifest MANIFEST-000016 161 00000007 log 000017.log 2386 00000009 log 000018.log - - table 000019.sst"

// FILES has the bytes that its comment describes.
func TestFilesLayout(t *testing.T) {
	want := "sajou files 1 " + exampleID + "\n" + lineOf(exampleLine)
	assert.Equal(t, want, string(filesExample()))
	empty := NewFileList(exampleID)
	assert.Equal(t, lineOf(""), string(empty.Line()))
	n, err := parseFileList([]byte(want))
	require.NoError(t, err)
	assert.Equal(t, FileList{
		ID: exampleID, Iteration: 3, Current: "MANIFEST-000016",
		Manifests: map[string]Extent{"MANIFEST-000016": {161, 7}},
		Logs:      map[string]ListedLog{"000017.log": {Extent: Extent{2386, 9}, Must: true}, "000018.log": {}},
		Tables:    map[string]bool{"000019.sst": false},
	}, n)
}

// A first line that is not that of this version, and a line with words that no list has,
// are refused, each with its class.
func TestFilesRefused(t *testing.T) {
	good := lineOf(exampleLine)
	for _, tt := range []struct {
		header string
		want   error
	}{
		{"sajou files 1 " + exampleID, nil},
		{"sajou files 2 " + exampleID, chain.ErrVersion},
		{"sajou files 2", chain.ErrVersion},
		{"sajou files 4294967295 x", chain.ErrVersion},
		{"sajou files 4294967296 x", chain.ErrCorrupt},
		{"sajou files 0 " + exampleID, chain.ErrCorrupt},
		{"sajou files x " + exampleID, chain.ErrCorrupt},
		{"sajou files  " + exampleID, chain.ErrCorrupt},
		{"sajou files 1 ", chain.ErrCorrupt},
		{"sajou files 1 " + exampleID[1:], chain.ErrCorrupt},
		{"sajou files 1 " + exampleID + "00", chain.ErrCorrupt},
		{"sajou files 1 " + strings.ToUpper(exampleID), chain.ErrCorrupt},
		{"sajou store", chain.ErrCorrupt},
		{"", chain.ErrCorrupt},
	} {
		_, err := parseFileList([]byte(tt.header + "\n" + good))
		require.ErrorIs(t, err, tt.want, "%q", tt.header)
		if errors.Is(err, chain.ErrVersion) {
			assert.NotErrorIs(t, err, chain.ErrCorrupt)
		}
	}
	long := strings.Repeat("0", 60) + ".sst" // 64 bytes
	for words, ok := range map[string]bool{
		"":                                      true,
		"table " + long:                         true,
		"table 0" + long:                        false,
		"table":                                 false,
		"table 000017.log":                      false,
		"marker 3 MANIFEST-000016":              true,
		"marker 3":                              false,
		"marker x MANIFEST-000016":              false,
		"marker 3 000017.log":                   false,
		"manifest MANIFEST-000016 161 00000007": true,
		"manifest MANIFEST-000016 161":          false,
		"manifest MANIFEST-000016 - -":          false,
		"manifest 000017.log 161 00000007":      false,
		"log 000017.log 0 00000000":             true,
		"log 000017.log 1 ffffffff":             true,
		"log 000017.log 1 100000000":            false,
		"log 000017.log -1 00000007":            false,
		"log 000017.log x 00000007":             false,
		"log 000017.log 1 x":                    false,
		"log 000017.log - 7":                    false,
		"log 000017.log 7 -":                    false,
		"log 000017.log 1":                      false,
		"log MANIFEST-000016 1 00000007":        false,
		"log MANIFEST-000016 - -":               false,
		"log " + strings.Repeat("0", 60) + ".log 1 00000007":     true,
		"log " + strings.Repeat("0", 61) + ".log 1 00000007":     false,
		"options OPTIONS-000001":                                 false,
		strings.TrimSpace(strings.Repeat("table 1.sst ", 32768)): true,
		strings.TrimSpace(strings.Repeat("table 1.sst ", 32769)): false, // bounds reading
	} {
		_, err := parseFileList([]byte("sajou files 1 " + exampleID + "\n" + lineOf(words)))
		if ok {
			require.NoError(t, err, "%.60q", words)
		} else {
			require.ErrorIs(t, err, chain.ErrCorrupt, "%.60q", words)
		}
	}
}

// listing keeps a ledger in memory, and what FILES says.
type listing struct {
	*Ledger
	t    *testing.T
	disk vfs.FS
}

func newListing(t *testing.T) listing {
	t.Helper()
	mem := vfs.NewMem()
	require.NoError(t, mem.MkdirAll("store", 0o755))
	l, err := OpenLedger(mem, "store", NewFileList(exampleID))
	require.NoError(t, err)
	return listing{l, t, mem}
}

// says checks the last line of FILES.
func (l listing) says(words string) {
	l.t.Helper()
	b, err := readSmall(l.disk, "store/FILES", 1<<20)
	require.NoError(l.t, err)
	lines := strings.SplitAfter(string(b), "\n")
	assert.Equal(l.t, lineOf(words), lines[len(lines)-2])
}

// size returns the length of FILES.
func (l listing) size() int64 {
	l.t.Helper()
	info, err := l.disk.Stat("store/FILES")
	require.NoError(l.t, err)
	return info.Size()
}

func (l listing) syncDirectory(between func()) {
	d := l.beforeDirectorySync()
	between()
	l.afterDirectorySync(d)
}

// A write-ahead log may be missing until its first sync with entries, must then have what
// was synced, with a note whenever that has doubled, and may be missing again before it is
// deleted or reused.
func TestLedgerOfLogs(t *testing.T) {
	l := newListing(t)
	require.NoError(t, l.announce("000001.log"))
	l.says("log 000001.log - -")
	assert.True(t, l.HasLog("000001.log"))
	assert.False(t, l.HasLog("000002.log"))
	quiet := func(f func() error) {
		t.Helper()
		size := l.size()
		require.NoError(t, f())
		assert.Equal(t, size, l.size(), "nothing to write")
	}
	quiet(func() error { return l.synced("000001.log", Extent{0, 0}) })
	require.NoError(t, l.synced("000001.log", Extent{100, 1}))
	l.says("log 000001.log 100 00000001")
	quiet(func() error { return l.synced("000001.log", Extent{199, 2}) })
	require.NoError(t, l.synced("000001.log", Extent{200, 3}))
	l.says("log 000001.log 200 00000003")
	quiet(func() error { return l.announce("OPTIONS-000003") })
	quiet(func() error { return l.synced("OPTIONS-000003", Extent{5, 5}) })

	require.NoError(t, l.dispensable("000001.log", ""))
	l.says("log 000001.log - -")
	quiet(func() error { return l.dispensable("000001.log", "") })
	require.NoError(t, l.dispensable("000001.log", "000002.log"))
	l.says("log 000001.log - - log 000002.log - -")
	require.NoError(t, l.dispensable("000009.log", ""))
	l.says("log 000001.log - - log 000002.log - - log 000009.log - -")

	// A removal counts from the sync of the directory behind it, and not that of a file
	// which came again meanwhile.
	l.syncDirectory(func() { l.removed("000001.log") })
	require.NoError(t, l.announce("000003.log"))
	l.says("log 000001.log - - log 000002.log - - log 000003.log - - log 000009.log - -")
	l.removed("000002.log")
	l.removed("000077.log") // one that was never announced
	l.syncDirectory(func() { require.NoError(t, l.announce("000002.log")) })
	require.NoError(t, l.synced("000003.log", Extent{1, 1}))
	l.says("log 000002.log - - log 000003.log 1 00000001 log 000009.log - -")
	require.NoError(t, l.Close())
	require.NoError(t, l.announce("000010.log"))
	l.says("log 000002.log - - log 000003.log 1 00000001 log 000009.log - -")
}

// The MANIFEST that counts is that of the newest marker, from the sync of the directory
// behind the marker; those before it are forgotten then.
func TestLedgerOfManifests(t *testing.T) {
	l := newListing(t)
	require.NoError(t, l.synced("MANIFEST-000001", Extent{10, 1}))
	l.says("manifest MANIFEST-000001 10 00000001")
	l.moved("marker.manifest.000001.MANIFEST-000001")
	l.syncDirectory(func() {})
	require.NoError(t, l.synced("MANIFEST-000002", Extent{20, 2}))
	l.says("marker 1 MANIFEST-000001 manifest MANIFEST-000001 10 00000001 manifest MANIFEST-000002 20 00000002")
	require.NoError(t, l.synced("MANIFEST-000002", Extent{21, 3}))
	l.says("marker 1 MANIFEST-000001 manifest MANIFEST-000001 10 00000001 manifest MANIFEST-000002 21 00000003")
	l.syncDirectory(func() { l.moved("marker.manifest.000002.MANIFEST-000002") })
	require.NoError(t, l.announce("000003.sst"))
	l.says("marker 1 MANIFEST-000001 manifest MANIFEST-000001 10 00000001 manifest MANIFEST-000002 21 00000003 table 000003.sst")
	l.moved("marker.format-version.000009.013")
	l.moved("000005.log")
	l.syncDirectory(func() {})
	require.NoError(t, l.announce("000004.sst"))
	l.says("marker 2 MANIFEST-000002 manifest MANIFEST-000002 21 00000003 table 000003.sst table 000004.sst")
	l.moved("marker.manifest.000001.MANIFEST-000001")
	l.syncDirectory(func() {})
	require.NoError(t, l.synced("000003.sst", Extent{1, 1}))
	require.NoError(t, l.announce("000005.log"))
	l.says("marker 2 MANIFEST-000002 manifest MANIFEST-000002 21 00000003 log 000005.log - - table 000004.sst")
}

// FILES is written again, with its last line alone, before it grows beyond 256 KiB.
func TestLedgerIsWrittenAgain(t *testing.T) {
	l := newListing(t)
	for i := range 300 {
		require.NoError(t, l.announce(fmt.Sprintf("%06d.sst", i)))
	}
	again := 0
	for i := range 200 {
		before := l.size()
		require.NoError(t, l.synced("MANIFEST-000001", Extent{int64(i), 1}))
		if l.size() < before {
			again++
			line := int64(len(l.state.Line()))
			assert.Equal(t, int64(len("sajou files 1 \n")+len(exampleID))+line, l.size())
			assert.Greater(t, before+line, int64(256<<10))
		}
		assert.LessOrEqual(t, l.size(), int64(256<<10))
		assert.Equal(t, l.Ledger.size, l.size())
	}
	assert.Greater(t, again, 1)
	n, err := ReadFileList(l.disk, "store")
	require.NoError(t, err)
	assert.Equal(t, Extent{199, 1}, n.Manifests["MANIFEST-000001"])
	assert.Len(t, n.Tables, 300)
}

// Whichever operation of the disk fails, the ledger says so, and FILES is the one before
// or the one after.
func TestLedgerFails(t *testing.T) {
	broken := errors.New("the disk says no")
	for _, long := range []bool{false, true} { // with long, the change writes FILES again
		failures := 0
		for at := 1; ; at++ {
			mem := vfs.NewMem()
			require.NoError(t, mem.MkdirAll("store", 0o755))
			n := -1
			disk := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
				if op.Kind.ReadOrWrite() != errorfs.OpIsWrite || op.Kind == errorfs.OpFileClose || n < 0 {
					return nil
				}
				if n++; n == at {
					return broken
				}
				return nil
			}))
			l, err := OpenLedger(disk, "store", NewFileList(exampleID))
			require.NoError(t, err)
			if long {
				l.size = maxFilesSize
			}
			n = 0
			err = l.announce("000001.log")
			reached := n >= at
			n = -1
			if !reached {
				require.NoError(t, err)
				assert.GreaterOrEqual(t, failures, 2)
				require.NoError(t, l.Close())
				break
			}
			failures++
			require.ErrorIs(t, err, broken, "operation %d, long %v", at, long)
			list, err := ReadFileList(mem, "store")
			require.NoError(t, err)
			assert.LessOrEqual(t, len(list.Logs), 1)
			require.NoError(t, l.Close())
		}
	}
	failing := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(errorfs.Op) error { return broken }))
	_, err := OpenLedger(failing, "store", NewFileList(exampleID))
	require.ErrorIs(t, err, broken)
	require.ErrorContains(t, err, "eventlog: write FILES in store: ")
}

// An extent is the length and the CRC-32C of the beginning of a file. A file that begins
// otherwise, or is shorter, is named with what is wrong.
func TestExtents(t *testing.T) {
	mem := vfs.NewMem()
	require.NoError(t, mem.MkdirAll("store", 0o755))
	put(t, mem, "store/file", "0123456789")
	sum := func(s string) uint32 { return crc32.Checksum([]byte(s), crc32.MakeTable(crc32.Castagnoli)) }
	for length, want := range map[int64]Extent{
		-1: {10, sum("0123456789")}, 0: {0, 0}, 4: {4, sum("0123")}, 10: {10, sum("0123456789")}, 11: {10, sum("0123456789")},
	} {
		got, err := ExtentOf(mem, "store/file", length)
		require.NoError(t, err)
		assert.Equal(t, want, got, "%d", length)
	}
	_, err := ExtentOf(mem, "store/none", 4)
	assert.True(t, IsMissing(err))
	for says, e := range map[string]Extent{
		"":                                       {4, sum("0123")},
		"file has 10 bytes, and 11 were written": {11, sum("0123456789")},
		"the first 4 bytes of file are not those that were written": {4, 7},
	} {
		err := CheckExtent(mem, "store", "file", e)
		if says == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorIs(t, err, chain.ErrCorrupt)
		require.ErrorContains(t, err, says)
	}
	err = CheckExtent(mem, "store", "none", Extent{4, 7})
	assert.True(t, IsMissing(err))
	require.ErrorContains(t, err, "eventlog: read none in store: ")

	// The checksum of what is written counts the bytes that reached the file, also of a
	// write that failed; bytes at another offset make it unknown.
	s := newSummed()
	broken := errors.New("the disk says no")
	require.NoError(t, s.write([]byte("012"), func(p []byte) (int, error) { return len(p), nil }))
	require.ErrorIs(t, s.write([]byte("345678"), func([]byte) (int, error) { return 1, broken }), broken)
	require.ErrorIs(t, s.write([]byte("x"), func([]byte) (int, error) { return -1, broken }), broken)
	got, known := s.extent()
	assert.Equal(t, Extent{4, sum("0123")}, got)
	assert.True(t, known)
	s.lose()
	_, known = s.extent()
	assert.False(t, known)
}

// A small file is read whole up to its bound. A folder, a missing file and a longer one
// are refused.
func TestReadSmall(t *testing.T) {
	mem := vfs.NewMem()
	require.NoError(t, mem.MkdirAll("folder", 0o755))
	put(t, mem, "ten", "0123456789")
	b, err := readSmall(mem, "ten", 10)
	require.NoError(t, err)
	assert.Equal(t, "0123456789", string(b))
	_, err = readSmall(mem, "ten", 9)
	require.ErrorIs(t, err, chain.ErrCorrupt)
	require.ErrorContains(t, err, "ten has more than 9 bytes")
	_, err = readSmall(mem, "folder", 9)
	require.ErrorIs(t, err, chain.ErrCorrupt)
	require.ErrorContains(t, err, "folder is not a regular file")
	_, err = readSmall(mem, "none", 9)
	assert.True(t, IsMissing(err))
}

// SAJOU is read only if every line of it is as this version writes it; lines that it does
// not know are passed.
func TestFormatFileRefused(t *testing.T) {
	summed := func(lines string) []byte { return fmt.Appendf([]byte(lines), "sum %x\n", sha256.Sum256([]byte(lines))) }
	front := "sajou store\nversion 1\n"
	for name, tt := range map[string]struct {
		file []byte
		want FormatRecord
		err  error
	}{
		"as written":             {FormatContents(exampleID, false), FormatRecord{ID: exampleID}, nil},
		"without FILES":          {FormatContents(exampleID, true), FormatRecord{ID: exampleID, NoFiles: true}, nil},
		"a line of another":      {summed(front + "id " + exampleID + "\nother value\n"), FormatRecord{ID: exampleID}, nil},
		"an id and another id":   {summed(front + "id " + exampleID + "\nid x\n"), FormatRecord{ID: exampleID}, nil},
		"a malformed id":         {summed(front + "id x\n"), FormatRecord{}, chain.ErrCorrupt},
		"an id in capitals":      {summed(front + "id " + strings.ToUpper(exampleID) + "\n"), FormatRecord{}, chain.ErrCorrupt},
		"no id":                  {summed(front + "other value\n"), FormatRecord{}, chain.ErrCorrupt},
		"nothing but the front":  {summed(front), FormatRecord{}, chain.ErrCorrupt},
		"version 0":              {summed("sajou store\nversion 0\nid " + exampleID + "\n"), FormatRecord{}, chain.ErrCorrupt},
		"version x":              {summed("sajou store\nversion x\nid " + exampleID + "\n"), FormatRecord{}, chain.ErrCorrupt},
		"no version":             {summed("sajou store\nid " + exampleID + "\nother value\n"), FormatRecord{}, chain.ErrCorrupt},
		"version 2":              {[]byte("sajou store\nversion 2\n"), FormatRecord{}, chain.ErrVersion},
		"version 2, cut":         {[]byte("sajou store\nversion 2"), FormatRecord{}, chain.ErrCorrupt},
		"another beginning":      {summed("sajou shop\nversion 1\nid " + exampleID + "\n"), FormatRecord{}, chain.ErrCorrupt},
		"a byte behind":          {append(FormatContents(exampleID, false), 'x'), FormatRecord{}, chain.ErrCorrupt},
		"a line behind":          {append(FormatContents(exampleID, false), "other\n"...), FormatRecord{}, chain.ErrCorrupt},
		"a sum of another store": {bytes.Replace(FormatContents(exampleID, false), []byte("id 00"), []byte("id 01"), 1), FormatRecord{}, chain.ErrCorrupt},
	} {
		got, err := parseFormatFile(tt.file)
		require.ErrorIs(t, err, tt.err, name)
		assert.Equal(t, tt.want, got, name)
	}
}

// A crash while a file is copied can leave a prefix of the file, in which blocks can be zero.
func TestBeginning(t *testing.T) {
	for have, want := range map[string]bool{
		"": true, "a": true, "abc": true, "\x00bc": true, "a\x00": true, "\x00\x00\x00": true,
		"abcd": false, "abc\x00": false, "b": false, "abd": false, "xbc": false,
	} {
		assert.Equal(t, want, beginning([]byte("abc"), []byte(have)), "%q", have)
	}
}
