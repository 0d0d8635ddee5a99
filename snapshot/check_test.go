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
	taken, err := s.Build(ctx, log, sums, 1<<20, func(folded, entries eventlog.Seq) { told = append(told, [2]eventlog.Seq{folded, entries}) }, nil)
	require.NoError(t, err)
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
