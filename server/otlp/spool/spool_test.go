package spool_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/server/otlp/spool"
)

// contents are the records of the groups of a spool.
type contents map[uint64][]string

// open opens a spool and returns what it holds.
func open(t require.TestingT, dir string, cfg spool.Config) (*spool.Spool, contents, []spool.Damage) {
	found := contents{}
	var refs []spool.RecordRef
	var texts []string
	s, damages, err := spool.Open(dir, cfg, func(group uint64, ref spool.RecordRef, data []byte) error {
		if data == nil {
			delete(found, group)
			return nil
		}
		found[group] = append(found[group], string(data))
		refs, texts = append(refs, ref), append(texts, string(data))
		return nil
	})
	require.NoError(t, err)
	if len(found) > 0 && len(damages) == 0 {
		data, err := s.Read(refs[len(refs)-1])
		require.NoError(t, err)
		require.Equal(t, texts[len(texts)-1], string(data))
	}
	return s, found, damages
}

// sizes returns the sizes of the files of a directory.
func sizes(t require.TestingT, dir string) map[string]int64 {
	files, err := os.ReadDir(dir)
	if os.IsNotExist(err) {
		return nil
	}
	require.NoError(t, err)
	all := map[string]int64{}
	for _, f := range files {
		info, err := f.Info()
		require.NoError(t, err)
		all[f.Name()] = info.Size()
	}
	return all
}

// crash copies a directory as a loss of power leaves it: of the newest file, any part that
// was not synced is lost or has other bytes.
func crash(t *rapid.T, outer *testing.T, dir string, synced map[string]int64) string {
	to := outer.TempDir()
	all := sizes(t, dir)
	names := slices.Sorted(maps.Keys(all))
	for i, name := range names {
		text, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		if i == len(names)-1 {
			keep := min(max(synced[name], 8), int64(len(text))) // a segment begins with 8 durable bytes
			text = text[:keep+rapid.Int64Range(0, int64(len(text))-keep).Draw(t, "kept")]
			if int64(len(text)) > keep && rapid.Bool().Draw(t, "other bytes") {
				text[keep+rapid.Int64Range(0, int64(len(text))-keep-1).Draw(t, "at")] ^= 0x55
			}
		}
		require.NoError(t, os.WriteFile(filepath.Join(to, name), text, 0o600))
	}
	return to
}

// model is what the spool must hold.
type model struct {
	records contents       // of groups that are not dropped
	synced  map[uint64]int // the first records of a group, which are durable
	dropped contents
	gone    map[uint64]int // the durable records of dropped groups
}

func (m *model) sync() {
	for g, list := range m.records {
		m.synced[g] = len(list)
	}
}

// Whatever happens, everything that was synced is there, in its order, and nothing that was not
// written. A dropped group is gone, or there as a whole.
func TestCrashes(outer *testing.T) {
	rapid.Check(outer, func(t *rapid.T) {
		dir := filepath.Join(outer.TempDir(), "spool")
		cfg := spool.Config{SegmentBytes: int64(rapid.SampledFrom([]int{40, 120, 1 << 20}).Draw(t, "segment"))}
		s, found, _ := open(t, dir, cfg)
		require.Empty(t, found)
		m := model{contents{}, map[uint64]int{}, contents{}, map[uint64]int{}}
		durable := map[string]int64{} // sizes of files at the last sync
		next := uint64(1)
		for i := range rapid.IntRange(1, 25).Draw(t, "steps") {
			groups := slices.Sorted(maps.Keys(m.records))
			switch step := rapid.SampledFrom([]string{"write", "write", "write", "sync", "drop", "restart"}).Draw(t, "step"); {
			case step == "write" || len(groups) == 0:
				group := next
				if len(groups) > 0 && rapid.Bool().Draw(t, "known") {
					group = rapid.SampledFrom(groups).Draw(t, "group")
				} else {
					next++
				}
				text := fmt.Sprintf("%d.%d", group, i)
				refs, err := s.Write(spool.GroupRecord{Group: group, Data: []byte(text)}, spool.GroupRecord{Group: group, Data: nil})
				require.NoError(t, err)
				data, err := s.Read(refs[0])
				require.NoError(t, err)
				require.Equal(t, text, string(data))
				m.records[group] = append(m.records[group], text, "")
			case step == "sync":
				require.NoError(t, s.Sync())
				m.sync()
				durable = sizes(t, dir)
			case step == "drop":
				g := rapid.SampledFrom(groups).Draw(t, "group")
				before := sizes(t, dir)
				require.NoError(t, s.Drop(g))
				m.dropped[g], m.gone[g] = m.records[g], m.synced[g]
				delete(m.records, g)
				delete(m.synced, g)
				after := sizes(t, dir)
				for name := range before {
					if _, there := after[name]; !there { // what remains was synced before
						m.sync()
						durable = after
					}
				}
			default:
				require.NoError(t, s.Close())
				s, found, _ = open(t, dir, cfg)
				for g := range m.dropped {
					delete(found, g) // one that shared no file with another may come back
				}
				require.Equal(t, m.records, found)
			}
		}
		copied := crash(t, outer, dir, durable)
		require.NoError(t, s.Close())
		s, found, damages := open(t, copied, cfg)
		require.Empty(t, damages)
		for g, list := range found {
			all, at := m.records[g], m.synced[g]
			if all == nil {
				all, at = m.dropped[g], m.gone[g]
			}
			require.GreaterOrEqual(t, len(list), at, "group %d", g)
			require.LessOrEqual(t, len(list), len(all), "group %d", g)
			require.Equal(t, all[:len(list)], list)
		}
		for g, n := range m.synced {
			require.True(t, n == 0 || found[g] != nil, "group %d is lost", g)
		}
		// It goes on behind what is there.
		_, err := s.Write(spool.GroupRecord{Group: next + 9, Data: []byte("more")})
		require.NoError(t, err)
		require.NoError(t, s.Sync())
		require.NoError(t, s.Close())
		found[next+9] = append(found[next+9], "more")
		s, again, _ := open(t, copied, cfg)
		require.Equal(t, found, again)
		require.NoError(t, s.Close())
	})
}

func TestBounds(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "spool")
	s, _, _ := open(t, dir, spool.Config{MaxBytes: 4 * spool.RecordOverhead, SegmentBytes: 1})
	require.Empty(t, sizes(t, filepath.Dir(dir)), "nothing is made before the first record")
	for g := range uint64(3) {
		_, err := s.Write(spool.GroupRecord{Group: g, Data: []byte("x")})
		require.NoError(t, err)
	}
	_, err := s.Write(spool.GroupRecord{Group: 9, Data: []byte("x")})
	require.ErrorIs(t, err, spool.ErrFull)
	_, err = s.WriteBeyond(spool.GroupRecord{Group: 1, Data: []byte("x")})
	require.NoError(t, err)
	_, err = s.Write(spool.GroupRecord{Group: 9, Data: make([]byte, 4*spool.RecordOverhead)})
	require.ErrorIs(t, err, spool.ErrTooLarge)
	assert.True(t, s.Crowded())
	assert.Equal(t, []uint64{0}, s.Oldest())
	require.NoError(t, s.Drop(0))
	assert.Equal(t, []uint64{1}, s.Oldest())
	require.NoError(t, s.Drop(1))
	require.NoError(t, s.Drop(2))
	assert.Zero(t, s.Used())
	assert.False(t, s.Crowded())
	assert.Empty(t, s.Oldest())
	assert.Empty(t, sizes(t, dir), "no file is left")
	info, err := os.Stat(dir)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	_, err = s.Write(spool.GroupRecord{Group: 10, Data: []byte("x")})
	require.NoError(t, err)
	for name := range sizes(t, dir) {
		info, err := os.Stat(filepath.Join(dir, name))
		require.NoError(t, err)
		assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	}
	require.NoError(t, s.Close())
	_, err = s.Write(spool.GroupRecord{Group: 11, Data: []byte("x")})
	require.Error(t, err)
}

// After a failed sync the contents of the disk are unknown, so nothing more is written.
func TestFailedSync(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "spool")
	s, _, _ := open(t, dir, spool.Config{})
	_, err := s.Write(spool.GroupRecord{Group: 1, Data: []byte("durable")})
	require.NoError(t, err)
	require.NoError(t, s.Sync())
	require.NoError(t, s.Err())
	_, err = s.Write(spool.GroupRecord{Group: 1, Data: []byte("perhaps")})
	require.NoError(t, err)
	require.NoError(t, spool.CloseFile(s))
	failure := s.Sync()
	require.Error(t, failure)
	assert.Equal(t, failure, s.Err())
	_, err = s.Write(spool.GroupRecord{Group: 1, Data: []byte("refused")})
	assert.Equal(t, failure, err)
	assert.Equal(t, failure, s.Sync())
	assert.Equal(t, failure, s.Drop(1))
	_ = s.Close()
	_, found, _ := open(t, dir, spool.Config{})
	assert.Equal(t, "durable", found[1][0])
}

// Writers at the same time share syncs, and each finds its record afterwards.
func TestConcurrentWriters(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "spool")
	s, _, _ := open(t, dir, spool.Config{SegmentBytes: 512})
	var all sync.WaitGroup
	for g := range uint64(8) {
		all.Go(func() {
			for i := range 20 {
				refs, err := s.Write(spool.GroupRecord{Group: g, Data: fmt.Append(nil, i)})
				assert.NoError(t, err)
				assert.NoError(t, s.Sync())
				data, err := s.Read(refs[0])
				assert.NoError(t, err)
				assert.Equal(t, fmt.Sprint(i), string(data))
			}
			if g%2 == 0 {
				assert.NoError(t, s.Drop(g))
			}
		})
	}
	all.Wait()
	require.NoError(t, s.Close())
	s, found, _ := open(t, dir, spool.Config{})
	require.NoError(t, s.Close())
	assert.Len(t, found, 4)
	for _, list := range found {
		assert.Len(t, list, 20)
	}
}

// Unreadable bytes in front of the newest file are reported, and the records before them count.
// The file is kept.
func TestDamage(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "spool")
	s, _, _ := open(t, dir, spool.Config{SegmentBytes: 40})
	for i := range 6 {
		_, err := s.Write(spool.GroupRecord{Group: 1, Data: fmt.Append(nil, "record ", i)})
		require.NoError(t, err)
	}
	require.NoError(t, s.Close())
	name := filepath.Join(dir, slices.Min(slices.Collect(maps.Keys(sizes(t, dir)))))
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	text[len(text)-1] ^= 1
	require.NoError(t, os.WriteFile(name, text, 0o600))
	s, found, damages := open(t, dir, spool.Config{})
	require.Len(t, damages, 1)
	assert.Equal(t, filepath.Base(name), damages[0].File)
	assert.Equal(t, []string{"record 2", "record 3", "record 4", "record 5"}, found[1][len(found[1])-4:])
	require.NoError(t, s.Drop(1))
	require.NoError(t, s.Close())
	assert.Equal(t, []string{filepath.Base(name) + ".damaged"}, slices.Collect(maps.Keys(sizes(t, dir))))

	require.NoError(t, os.WriteFile(name, []byte("sajouSP9 and more"), 0o600))
	_, _, err = spool.Open(dir, spool.Config{}, func(uint64, spool.RecordRef, []byte) error { return nil })
	require.ErrorContains(t, err, "another version")
}

func FuzzOpen(f *testing.F) {
	dir := f.TempDir()
	s, _, _ := open(f, dir, spool.Config{})
	_, err := s.Write(spool.GroupRecord{Group: 1, Data: []byte("one")}, spool.GroupRecord{Group: 300, Data: []byte("two")})
	require.NoError(f, err)
	require.NoError(f, s.Drop(1))
	require.NoError(f, s.Close())
	text, err := os.ReadFile(filepath.Join(dir, "000000000001.spool"))
	require.NoError(f, err)
	f.Add(text)
	f.Add(text[:20])
	f.Fuzz(func(t *testing.T, text []byte) {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "000000000001.spool"), text, 0o600))
		visit := func(uint64, spool.RecordRef, []byte) error { return nil }
		s, _, err := spool.Open(dir, spool.Config{}, visit)
		if err != nil {
			return
		}
		_, err = s.Write(spool.GroupRecord{Group: 7, Data: []byte("more")})
		require.NoError(t, err)
		require.NoError(t, s.Close())
		s, damages, err := spool.Open(dir, spool.Config{}, visit)
		require.NoError(t, err)
		require.Empty(t, damages)
		require.NoError(t, s.Close())
	})
}
