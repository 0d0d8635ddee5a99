package snapshot_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/snapshot"
)

// sum is a state whose bytes hash all entries so far.
type sum struct{ n uint64 }

func (s *sum) Apply(e *eventlog.Entry)  { s.n = s.n*31 + uint64(e.Seq) + uint64(len(e.Data)) }
func (s *sum) Advance(time.Duration)    {}
func (s *sum) Append(dst []byte) []byte { return binary.BigEndian.AppendUint64(dst, s.n) }
func (s *sum) View() any                { return map[string]any{"sum": int64(s.n)} }

var sums = projection.Set{{
	Name: "sum", Version: 1, New: func() projection.State { return new(sum) },
	Restore: func(b []byte) (projection.State, error) { return &sum{binary.BigEndian.Uint64(b)}, nil },
}}

// recorded returns a session of n entries, a second apart.
func recorded(t *testing.T, n int) (reader *eventlog.SessionReader, closeLog func()) {
	t.Helper()
	log, err := eventlog.Open("log", eventlog.Config{FS: vfs.NewMem()})
	require.NoError(t, err)
	closeLog = func() { assert.NoError(t, log.Close()) }
	t.Cleanup(closeLog)
	ses, err := log.Session("a")
	require.NoError(t, err)
	for i := range n {
		_, err := ses.Append(context.Background(), eventlog.Batch{Drafts: []eventlog.Draft{
			{At: time.Duration(i+1) * time.Second, Kind: eventlog.KindSignal, Data: []byte{byte(i)}},
		}})
		require.NoError(t, err)
	}
	reader, err = log.Reader().Session("a")
	require.NoError(t, err)
	return reader, closeLog
}

// foldedTo returns the image of a session at seq.
func foldedTo(t *testing.T, log *eventlog.SessionReader, seq eventlog.Seq) projection.Image {
	t.Helper()
	fold := projection.NewFold(sums, log.Genesis())
	for e, err := range log.Entries(context.Background(), 1) {
		require.NoError(t, err)
		if e.Seq > seq {
			break
		}
		require.NoError(t, fold.Apply(&e))
	}
	return fold.Image()
}

func seqs(list []snapshot.ImageInfo) (all []eventlog.Seq) {
	for _, info := range list {
		all = append(all, info.Seq)
	}
	return all
}

// Build takes an image of each interval and none twice, thins them, and tells how far
// it is; Verify finds them right.
func TestBuild(t *testing.T) {
	ctx := context.Background()
	log, closeLog := recorded(t, 25)
	s := open(t, filepath.Join(t.TempDir(), "s.db"), snapshot.Config{Interval: 10})
	var told [][2]eventlog.Seq
	var passed []eventlog.Head
	taken, err := s.Build(ctx, log, sums, 1<<20, func(folded, entries eventlog.Seq) { told = append(told, [2]eventlog.Seq{folded, entries}) }, func(f *projection.Fold) {
		passed = append(passed, f.Head())
	})
	require.NoError(t, err)
	require.Len(t, passed, 25)
	for i, head := range passed {
		require.Equal(t, foldedTo(t, log, eventlog.Seq(i+1)).Head, head)
	}
	assert.Equal(t, 2, taken)
	assert.Equal(t, [][2]eventlog.Seq{{10, 25}, {20, 25}}, told)
	list, err := s.List("a")
	require.NoError(t, err)
	assert.Equal(t, []eventlog.Seq{10, 20}, seqs(list))
	for _, info := range list {
		img, err := s.Get("a", info.Seq)
		require.NoError(t, err)
		if diff := cmp.Diff(foldedTo(t, log, info.Seq), img); diff != "" {
			t.Errorf("the image at %d:\n%s", info.Seq, diff)
		}
	}
	bad, checked, err := s.Verify(ctx, log, sums)
	require.NoError(t, err)
	assert.Empty(t, bad)
	assert.Equal(t, 2, checked)

	// Without room only the newest stays, though two were taken.
	taken, err = s.Build(ctx, log, sums, 1, nil, nil)
	require.NoError(t, err)
	assert.Equal(t, 2, taken)
	list, err = s.List("a")
	require.NoError(t, err)
	assert.Equal(t, []eventlog.Seq{20}, seqs(list))

	closeLog()
	taken, err = s.Build(ctx, log, sums, 1, nil, nil)
	require.ErrorIs(t, err, eventlog.ErrClosed)
	assert.Zero(t, taken)
	bad, checked, err = s.Verify(ctx, log, sums)
	require.ErrorIs(t, err, eventlog.ErrClosed)
	assert.Empty(t, bad)
	assert.Zero(t, checked)
}

// With an interval of one entry each has an image, the first too.
func TestBuildOfEachEntry(t *testing.T) {
	log, _ := recorded(t, 3)
	s := open(t, filepath.Join(t.TempDir(), "s.db"), snapshot.Config{Interval: 1})
	taken, err := s.Build(t.Context(), log, sums, 1<<20, nil, nil)
	require.NoError(t, err)
	assert.Equal(t, 3, taken)
	list, err := s.List("a")
	require.NoError(t, err)
	assert.Equal(t, []eventlog.Seq{1, 2, 3}, seqs(list))
}

// Build ends at the first image that cannot be stored.
func TestBuildFails(t *testing.T) {
	log, _ := recorded(t, 25)
	s := open(t, filepath.Join(t.TempDir(), "s.db"), snapshot.Config{Interval: 10, MaxImage: 1})
	taken, err := s.Build(t.Context(), log, sums, 1<<20, nil, nil)
	require.ErrorIs(t, err, snapshot.ErrTooLarge)
	assert.Zero(t, taken)
}

// A store that is closed takes no images and verifies none.
func TestCheckClosed(t *testing.T) {
	log, _ := recorded(t, 12)
	s := open(t, filepath.Join(t.TempDir(), "s.db"), snapshot.Config{Interval: 10})
	require.NoError(t, s.Close())
	taken, err := s.Build(context.Background(), log, sums, 1, nil, nil)
	require.ErrorIs(t, err, snapshot.ErrClosed)
	assert.Zero(t, taken)
	_, _, err = s.Verify(context.Background(), log, sums)
	require.ErrorIs(t, err, snapshot.ErrClosed)
}

// Verify names each image that differs from the log, with its Seq and how.
func TestVerify(t *testing.T) {
	ctx := context.Background()
	log, _ := recorded(t, 12)
	path := filepath.Join(t.TempDir(), "s.db")
	s := open(t, path, snapshot.Config{Interval: 10})
	whole := func(seq eventlog.Seq) projection.Image { return foldedTo(t, log, seq) }
	start := whole(0)
	other := whole(1)
	other.Head.Hash[0]++
	early := whole(2)
	early.At--
	wrong := whole(3)
	wrong.Parts[0].Data = []byte{7}
	foreign := whole(4)
	foreign.Parts[0].Version++
	foreign.Parts[0].Data = []byte{7}
	beyond := whole(12)
	beyond.Head.Seq = 13
	put(t, s, "a", start, other, early, wrong, foreign, whole(5), whole(12), beyond)
	require.NoError(t, s.Close())
	forge(t, path, "a", 6, []byte{1})
	s = open(t, path, snapshot.Config{Interval: 10})
	bad, checked, err := s.Verify(ctx, log, sums)
	require.NoError(t, err)
	assert.Equal(t, 9, checked)
	want := []snapshot.ImageFault{
		{Seq: 1, Detail: fmt.Sprintf("it is of %v, and the log has %v there", other.Head, whole(1).Head)},
		{Seq: 2, Detail: "it is of the session time 1.999999999s, and the entry of 2s"},
		{Seq: 3, Detail: `its projection "sum" is not what the log gives`},
		{Seq: 6, Detail: "it cannot be read: snapshot: get a at seq 6: damaged image"},
		{Seq: 13, Detail: "the log ends before it, with entry 12"},
	}
	if diff := cmp.Diff(want, bad); diff != "" {
		t.Error(diff)
	}
	start.Parts[0].Data = []byte{7}
	put(t, s, "a", start)
	bad, _, err = s.Verify(ctx, log, sums)
	require.NoError(t, err)
	require.Len(t, bad, 6)
	assert.Equal(t, eventlog.Seq(0), bad[0].Seq)
}

// An image of the state before the first entry is compared like the others, also when it is
// the only one, and when it is the last of a session without entries.
func TestVerifyTheStart(t *testing.T) {
	for _, entries := range []int{0, 3} {
		log, _ := recorded(t, entries)
		s := open(t, filepath.Join(t.TempDir(), "s.db"), snapshot.Config{})
		start := foldedTo(t, log, 0)
		put(t, s, "a", start)
		bad, checked, err := s.Verify(t.Context(), log, sums)
		require.NoError(t, err)
		assert.Empty(t, bad)
		assert.Equal(t, 1, checked)
		start.Parts[0].Data = []byte{7}
		put(t, s, "a", start)
		bad, checked, err = s.Verify(t.Context(), log, sums)
		require.NoError(t, err)
		assert.Equal(t, []snapshot.ImageFault{{Seq: 0, Detail: `its projection "sum" is not what the log gives`}}, bad)
		assert.Equal(t, 1, checked)
	}
}

// Of several projections that differ Verify names the first, once an image.
func TestVerifyNamesOneProjection(t *testing.T) {
	log, _ := recorded(t, 2)
	two := append(projection.Set{}, sums[0], sums[0])
	two[1].Name = "other"
	fold := projection.NewFold(two, log.Genesis())
	for e, err := range log.Entries(t.Context(), 1) {
		require.NoError(t, err)
		require.NoError(t, fold.Apply(&e))
	}
	s := open(t, filepath.Join(t.TempDir(), "s.db"), snapshot.Config{})
	for changed, want := range []string{"sum", "other"} {
		img := fold.Image()
		for i := changed; i < len(img.Parts); i++ {
			img.Parts[i].Data = []byte{7}
		}
		put(t, s, "a", img)
		bad, _, err := s.Verify(t.Context(), log, two)
		require.NoError(t, err)
		assert.Equal(t, []snapshot.ImageFault{{Seq: 2, Detail: fmt.Sprintf("its projection %q is not what the log gives", want)}}, bad)
	}
}

// Verify compares the images of projections apart too, and counts them.
func TestVerifyApart(t *testing.T) {
	log, closeLog := recorded(t, 25)
	set := projection.Set{sums[0], projection.Contain(sums[0]), projection.Contain(sums[0])}
	set[1].Name, set[2].Name = "apart", "more"
	s := open(t, filepath.Join(t.TempDir(), "s.db"), snapshot.Config{Interval: 10})
	taken, err := s.Build(t.Context(), log, set, 1<<20, nil, nil)
	require.NoError(t, err)
	require.Equal(t, 2, taken)
	bad, checked, err := s.Verify(t.Context(), log, set)
	require.NoError(t, err)
	assert.Empty(t, bad)
	assert.Equal(t, 6, checked)
	for i, name := range []string{"apart", "more"} {
		apart := snapshot.ApartName("a", name, 1)
		img, err := s.Get(apart, 20)
		require.NoError(t, err)
		img.Parts[0].Data = []byte{7}
		put(t, s, apart, img)
		bad, checked, err = s.Verify(t.Context(), log, set)
		require.NoError(t, err)
		require.Len(t, bad, i+1)
		assert.Equal(t, snapshot.ImageFault{Seq: 20, Detail: fmt.Sprintf("its projection %q is not what the log gives", name)}, bad[i])
		assert.Equal(t, 6, checked)
	}
	require.NoError(t, s.Close())
	bad, checked, err = s.Verify(t.Context(), log, set)
	require.ErrorIs(t, err, snapshot.ErrClosed)
	assert.Empty(t, bad)
	assert.Zero(t, checked)

	// A fault in an image of the session fails Verify, whatever the other sessions have.
	s = open(t, filepath.Join(t.TempDir(), "s.db"), snapshot.Config{})
	put(t, s, "a", foldedTo(t, log, 20))
	closeLog()
	_, _, err = s.Verify(t.Context(), log, set)
	require.ErrorIs(t, err, eventlog.ErrClosed)
}

// MaxImage bounds an image to the byte, when it is put and when it is read.
func TestMaxImageToTheByte(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	img := image(10, 100)
	plain, err := projection.AppendImage(nil, img)
	require.NoError(t, err)
	s := open(t, path, snapshot.Config{MaxImage: len(plain)})
	require.NoError(t, s.Put("a", img))
	_, err = s.Get("a", 10)
	require.NoError(t, err)
	require.NoError(t, s.Close())
	s = open(t, path, snapshot.Config{MaxImage: len(plain) - 1})
	require.ErrorIs(t, s.Put("a", img), snapshot.ErrTooLarge)
	_, err = s.Get("a", 10)
	require.ErrorIs(t, err, snapshot.ErrDamaged)
}

// List tells the stored size and the declared length of each value; a value that is no
// image has none.
func TestListLengths(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	s := open(t, path, snapshot.Config{})
	put(t, s, "a", image(1, 100))
	require.NoError(t, s.Close())
	v := value(2, 77, nil)
	old := value(3, 77, nil)
	old[0] = 2
	forge(t, path, "a", 2, v)
	forge(t, path, "a", 3, old)
	forge(t, path, "a", 4, v[:12])
	s = open(t, path, snapshot.Config{})
	list, err := s.List("a")
	require.NoError(t, err)
	plain, err := projection.AppendImage(nil, image(1, 100))
	require.NoError(t, err)
	require.Len(t, list, 4)
	assert.Equal(t, int64(len(plain)), list[0].Length)
	assert.Equal(t, []snapshot.ImageInfo{{Seq: 2, Bytes: 21, Length: 77}, {Seq: 3, Bytes: 21}, {Seq: 4, Bytes: 20}}, list[1:])
}

// Close has let go of the file when it returns. After a panic it returns too.
func TestClose(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	for range 50 {
		s, err := snapshot.Open(path, snapshot.Config{Timeout: 1})
		require.NoError(t, err)
		require.NoError(t, s.Close())
		require.NoError(t, s.Close())
	}
}

// Supersede drops the images of lower versions once this version stands where they stand,
// and never its own or those of higher ones.
func TestSupersede(t *testing.T) {
	for _, tt := range []struct {
		at   [3]eventlog.Seq // the newest image of versions 1, 2 and 3
		upTo eventlog.Seq
		kept [3]bool
	}{
		{[3]eventlog.Seq{10, 10, 10}, 10, [3]bool{false, true, true}},
		{[3]eventlog.Seq{10, 20, 5}, 20, [3]bool{false, true, true}},
		{[3]eventlog.Seq{21, 20, 30}, 20, [3]bool{true, true, true}},
		{[3]eventlog.Seq{20, 20, 20}, 20, [3]bool{false, true, true}},
		{[3]eventlog.Seq{10, 0, 0}, 10, [3]bool{false, false, false}}, // nothing stands behind the dropped ones
		{[3]eventlog.Seq{11, 0, 0}, 10, [3]bool{true, false, false}},
	} {
		s := open(t, filepath.Join(t.TempDir(), "s.db"), snapshot.Config{})
		images := func(version uint32) string { return snapshot.ApartName("a", "sum", version) }
		put(t, s, "a", image(10, 1))
		put(t, s, snapshot.ApartName("0", "sum", 1), image(1, 1))
		put(t, s, snapshot.ApartName("a", "other", 1), image(1, 1))
		if tt.at[1] > 0 {
			put(t, s, snapshot.ApartName("b", "sum", 1), image(1, 1))
		}
		for i, seq := range tt.at {
			if seq == 0 {
				continue
			}
			put(t, s, images(uint32(i+1)), image(seq-3, 1))
			put(t, s, images(uint32(i+1)), image(seq, 1))
		}
		require.NoError(t, s.Supersede("a", "sum", 2, tt.upTo))
		for i, kept := range tt.kept {
			list, err := s.List(images(uint32(i + 1)))
			require.NoError(t, err)
			assert.Equal(t, kept, len(list) == 2, "%v: version %d: %v", tt, i+1, list)
		}
		for _, name := range []string{"a", snapshot.ApartName("0", "sum", 1), snapshot.ApartName("a", "other", 1)} {
			list, err := s.List(name)
			require.NoError(t, err)
			assert.Len(t, list, 1, name)
		}
		n, err := s.DropAll("a")
		require.NoError(t, err)
		want := 2 // that of the session, and that of the other projection
		for _, kept := range tt.kept {
			if kept {
				want += 2
			}
		}
		assert.Equal(t, want, n)
		for _, other := range []string{"0", "b"} {
			list, err := s.List(snapshot.ApartName(other, "sum", 1))
			require.NoError(t, err)
			assert.Equal(t, other == "0" || tt.at[1] > 0, len(list) == 1, "the images of another session stay")
		}
	}
}
