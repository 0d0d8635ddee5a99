package replay_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/golden"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/snapshot"
)

// tally adds up its version for each entry, and counts what it is given in this process.
type tally struct {
	version, sum uint64
	applied      *int
}

func (s *tally) Apply(*eventlog.Entry)    { s.sum += s.version; *s.applied++ }
func (s *tally) Advance(time.Duration)    {}
func (s *tally) Append(dst []byte) []byte { return binary.BigEndian.AppendUint64(dst, s.sum) }
func (s *tally) View() any                { return int64(s.sum) }

// withTally returns the set of the toys and a tally, whose images are kept apart.
func withTally(version uint32, applied *int) projection.Set {
	return projection.Set{toys[0], projection.Contain(projection.Projection{
		Name: "tally", Version: version,
		New: func() projection.State { return &tally{version: uint64(version), applied: applied} },
		Restore: func(data []byte) (projection.State, error) {
			if len(data) != 8 {
				return nil, errors.New("want 8 bytes")
			}
			return &tally{uint64(version), binary.BigEndian.Uint64(data), applied}, nil
		},
	})}
}

// A projection apart is folded from its nearest image that fits the log, leaves images on
// the way and at the end, and takes the place of its older version when it has come as
// far.
func TestImagesApart(t *testing.T) {
	ctx := t.Context()
	s := &tape{}
	for i := range 23 {
		s.add(ms, byte(i%3))
	}
	store, err := snapshot.Open(filepath.Join(t.TempDir(), "images"), snapshot.Config{Interval: 5})
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	for _, img := range takeImages(s, func(eventlog.Seq) bool { return true }) {
		require.NoError(t, store.Put("tape", img))
	}
	kept := func(version uint32) (seqs []eventlog.Seq) {
		t.Helper()
		images, err := store.List(snapshot.ApartName("tape", "tally", version))
		require.NoError(t, err)
		for _, i := range images {
			seqs = append(seqs, i.Seq)
		}
		return seqs
	}
	applied := 0
	// at folds to an entry and returns how many entries the tally was given for that.
	at := func(version uint32, seq eventlog.Seq) int {
		t.Helper()
		applied = 0
		set := withTally(version, &applied)
		f, err := replay.Open(s, set, replay.Stored(store, s, set)).At(ctx, replay.Moment{Seq: seq})
		require.NoError(t, err)
		require.Equal(t, seq, f.Head().Seq)
		view := f.View()
		require.Equal(t, int64(version)*int64(seq), view["tally"])
		require.Equal(t, slow(t, s, replay.Moment{Seq: seq}).View()["band"], view["band"])
		return applied
	}
	require.Equal(t, 0, at(1, 0))
	require.Empty(t, kept(1))
	require.Equal(t, 12, at(1, 12))
	require.Equal(t, []eventlog.Seq{5, 10, 12}, kept(1))
	require.Equal(t, 0, at(1, 12), "an image of the same entry")
	require.Equal(t, 2, at(1, 7))
	require.Equal(t, 8, at(1, 20), "from 12 on")
	require.Equal(t, []eventlog.Seq{5, 7, 10, 12, 15, 20}, kept(1))
	require.Equal(t, 3, at(1, 3))

	// Images that do not fit the log, or that the projection refuses, are passed over.
	put := func(seq eventlog.Seq, change func(*projection.Image)) {
		t.Helper()
		set := withTally(1, &applied)[1:]
		f := projection.NewFold(set, genesis)
		for i := range s.entries[:seq] {
			require.NoError(t, f.Apply(&s.entries[i]))
		}
		img := f.Image()
		// The sum is wrong, so that a test fails if the image is used.
		data := img.Parts[0].Data
		img.Parts[0].Data = binary.BigEndian.AppendUint64(data[:len(data)-8:len(data)-8], 1e6)
		change(&img)
		require.NoError(t, store.Put(snapshot.ApartName("tape", "tally", 1), img))
	}
	put(14, func(i *projection.Image) { i.Head.Hash[7]++ })
	put(13, func(i *projection.Image) { i.At++ })
	put(11, func(i *projection.Image) { i.Parts[0].Data = i.Parts[0].Data[:8] })
	require.Equal(t, 2, at(1, 14), "from 12 on: the images at 14 and 13 are of another log")
	require.Equal(t, 0, at(1, 14), "the image at 14 was replaced")
	require.Equal(t, 1, at(1, 11), "from 10 on: the image at 11 has seven bytes")
	put(8, func(i *projection.Image) { i.At-- })
	require.Equal(t, 2, at(1, 9), "from 7 on: the image at 8 is of another instant")

	// Another version is built beside the images of the old one.
	require.Equal(t, 10, at(2, 10))
	require.Equal(t, []eventlog.Seq{5, 10}, kept(2))
	require.Contains(t, kept(1), eventlog.Seq(20))
	require.Equal(t, 9, at(2, 19))
	require.NotEmpty(t, kept(1), "version 1 has come further")
	require.Equal(t, 1, at(2, 20))
	require.Empty(t, kept(1))
	require.Equal(t, []eventlog.Seq{5, 10, 15, 19, 20}, kept(2))

	// Images that are not in a store have no place for those apart.
	applied = 0
	set := withTally(3, &applied)
	f, err := replay.Open(s, set, takeImages(s, func(n eventlog.Seq) bool { return n%7 == 0 })).At(ctx, replay.Moment{Seq: 16})
	require.NoError(t, err)
	require.Equal(t, 16, applied)
	require.Equal(t, int64(48), f.View()["tally"])
}

// Where no store keeps the images of a projection apart, some stay in memory: a search that
// jumps about folds a part of the session again and not all of it, wherever it jumps.
func TestJumpsWithoutAStore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "images")
	const entries = 40_000
	s := &tape{}
	for range entries {
		s.add(ms)
	}
	store, err := snapshot.Open(path, snapshot.Config{})
	require.NoError(t, err)
	for _, img := range takeImages(s, func(seq eventlog.Seq) bool { return seq%500 == 0 }) {
		require.NoError(t, store.Put("tape", img))
	}
	require.NoError(t, store.Close())
	store, err = snapshot.Open(path, snapshot.Config{ReadOnly: true})
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	applied := 0
	set := withTally(1, &applied)
	r := replay.Open(s, set, replay.Stored(store, s, set))
	at := func(seq eventlog.Seq) {
		t.Helper()
		f, err := r.At(t.Context(), replay.Moment{Seq: seq})
		require.NoError(t, err)
		require.Equal(t, int64(seq), f.View()["tally"])
	}
	at(entries)
	require.Equal(t, entries, applied)
	golden.Trace(t, "testdata/jumps.txt", func(step func(name, text string)) {
		jump := func(seq eventlog.Seq) {
			applied = 0
			at(seq)
			require.LessOrEqual(t, applied, 6000, "at %d", seq)
			step(fmt.Sprint(seq), fmt.Sprint(applied))
		}
		for seq := eventlog.Seq(entries - 500); seq < entries; seq -= 1500 {
			jump(seq)
		}
		for _, seq := range []eventlog.Seq{1, 39_999, 500, 20_001, 12_345, 33_333, 40_000, 2000, 2500, 2500, 16_000, 31_000} {
			jump(seq)
		}
	})
}
