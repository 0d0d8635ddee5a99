package replay_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/snapshot"
)

// quietTape is a session of some entries without actions.
func quietTape(n int) *tape {
	s := &tape{}
	for range n {
		s.add(ms)
	}
	return s
}

// A cursor keeps the last eight images that it has taken, and a jump folds from the nearest
// of them, or from where the cursor stands.
func TestCursorKeepsEightImages(t *testing.T) {
	s := quietTape(13_500)
	c := replay.Open(s, toys, nil).Cursor()
	var kept []eventlog.Seq // as the cursor has them
	pos := eventlog.Seq(0)
	for _, seq := range []eventlog.Seq{12_700, 12_699, 12_000, 11_999, 5000, 5001, 4999, 5001, 5999, 6000, 13_400, 6001, 4000, 3999, 12_999, 1, 0, 1000, 999, 13_000, 2999} {
		start := eventlog.Seq(0)
		if pos <= seq {
			start = pos
		}
		for _, k := range kept {
			if k <= seq {
				start = max(start, k)
			}
		}
		s.reads.Store(0)
		require.NoError(t, c.Seek(t.Context(), replay.Moment{Seq: seq}))
		want := int64(seq - start)
		if seq > 0 {
			want++ // the entry itself, for its time
		}
		require.Equal(t, want, s.reads.Load(), "from %d to %d with images of %v", pos, seq, kept)
		require.Equal(t, seq, c.Fold().Head().Seq)
		for at := start + 1; at <= seq; at++ {
			if at%replay.Reach != 0 {
				continue
			}
			has := false
			for _, k := range kept {
				has = has || k == at
			}
			if !has {
				kept = append(kept, at)
			}
		}
		kept = kept[max(0, len(kept)-8):]
		pos = seq
	}
}

// weighty is a state with images of drawn sizes.
type weighty struct {
	size func(seq eventlog.Seq) int
	seq  eventlog.Seq
}

func (s *weighty) Apply(e *eventlog.Entry)  { s.seq = e.Seq }
func (s *weighty) Advance(time.Duration)    {}
func (s *weighty) View() any                { return int64(s.seq) }
func (s *weighty) Append(dst []byte) []byte { return append(dst, make([]byte, s.size(s.seq))...) }

func weights(size func(seq eventlog.Seq) int) projection.Projection {
	return projection.Projection{
		Name: "weighty", Version: 1, New: func() projection.State { return &weighty{size: size} },
		Restore: func(data []byte) (projection.State, error) { return &weighty{size: size}, nil },
	}
}

// The images that a cursor keeps have 64 MiB at most, and the last one is kept in any case.
func TestCursorKeepsSmallImages(t *testing.T) {
	const most = 64 << 20
	for _, tt := range []struct {
		sizes [3]int // of the images at 1000, 2000 and 3000
		kept  eventlog.Seq
	}{
		{[3]int{most - 2, 1, 1}, 1000},
		{[3]int{most - 2, 2, 1}, 2000},
		{[3]int{1, most - 2, 1}, 1000},
		{[3]int{1, 1, most}, 3000},
		{[3]int{1, 1, most + 1}, 3000},
	} {
		s := quietTape(3100)
		c := replay.Open(s, projection.Set{weights(func(seq eventlog.Seq) int { return tt.sizes[max(seq/1000, 1)-1] })}, nil).Cursor()
		require.NoError(t, c.Seek(t.Context(), replay.Moment{Seq: 3100}))
		s.reads.Store(0)
		require.NoError(t, c.Seek(t.Context(), replay.Moment{Seq: tt.kept}))
		require.EqualValues(t, 1, s.reads.Load(), "the image at %d is kept of %v", tt.kept, tt.sizes)
		require.NoError(t, c.Seek(t.Context(), replay.Moment{Seq: 3100}))
		s.reads.Store(0)
		require.NoError(t, c.Seek(t.Context(), replay.Moment{Seq: tt.kept - 1}))
		if tt.kept > 1000 {
			require.EqualValues(t, tt.kept, s.reads.Load(), "none before %d is kept of %v", tt.kept, tt.sizes)
		}
	}
}

// A cursor whose images cannot be restored folds from the beginning.
func TestCursorWithoutImages(t *testing.T) {
	s := quietTape(2100)
	c := replay.Open(s, clocks, nil).Cursor()
	for _, seq := range []eventlog.Seq{2100, 2050, 1000, 7} {
		require.NoError(t, c.Seek(t.Context(), replay.Moment{Seq: seq}))
		require.Equal(t, seq, c.Fold().Head().Seq)
		require.Equal(t, time.Duration(seq)*ms, c.Fold().At())
	}
	s.reads.Store(0)
	require.NoError(t, c.Seek(t.Context(), replay.Moment{Seq: 1500}))
	require.EqualValues(t, 1+1493, s.reads.Load(), "from where it stands")
	s.reads.Store(0)
	require.NoError(t, c.Seek(t.Context(), replay.Moment{Seq: 1400}))
	require.EqualValues(t, 1+1400, s.reads.Load())
}

// readOnly returns a store that keeps nothing more than images of the toys at some entries.
func readOnly(t *testing.T, s *tape, want func(eventlog.Seq) bool) *snapshot.Store {
	t.Helper()
	path := filepath.Join(t.TempDir(), "images")
	store, err := snapshot.Open(path, snapshot.Config{})
	require.NoError(t, err)
	for _, img := range takeImages(s, want) {
		require.NoError(t, store.Put("tape", img))
	}
	require.NoError(t, store.Close())
	store, err = snapshot.Open(path, snapshot.Config{ReadOnly: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	return store
}

// Sixteen images of a projection apart stay in memory, as far from each other as the way to
// the first moment needs.
func TestImagesInMemoryAreSpread(t *testing.T) {
	s := quietTape(32_100)
	distances := map[eventlog.Seq]eventlog.Seq{4500: 1000, 15_999: 1000, 16_000: 1000, 16_015: 1000, 16_016: 2000, 32_000: 2000, 32_015: 2000, 32_016: 3000}
	store := readOnly(t, s, func(seq eventlog.Seq) bool { return seq%500 == 0 || distances[seq] > 0 })
	for to, apart := range distances {
		for _, k := range []eventlog.Seq{1, 3} {
			applied := 0
			set := withTally(1, &applied)
			r := replay.Open(s, set, replay.Stored(store, s, set))
			_, err := r.At(t.Context(), replay.Moment{Seq: to})
			require.NoError(t, err)
			require.EqualValues(t, to, applied)
			for _, back := range []eventlog.Seq{0, 1} { // right before the image there is none, or the one before
				applied = 0
				f, err := r.At(t.Context(), replay.Moment{Seq: k*apart - back})
				require.NoError(t, err)
				require.EqualValues(t, k*apart-back, f.View()["tally"])
				require.EqualValues(t, (apart-1)*back, applied, "to %d, and back to %d", to, k*apart-back)
			}
		}
	}
}

// The images of a projection apart in memory have 64 MiB at most.
func TestImagesInMemoryAreSmall(t *testing.T) {
	const most = 64 << 20
	s := quietTape(3100)
	store := readOnly(t, s, func(seq eventlog.Seq) bool { return seq%500 == 0 })
	for _, tt := range []struct {
		sizes [3]int
		reads int // from the nearest image before 2500
	}{
		{[3]int{1, most - 5, 1}, 500},  // each image has a byte more, which says that the state is sound
		{[3]int{1, most - 4, 1}, 1500}, // that at 2000 goes, whose neighbours stand closest
		{[3]int{most, 1, 1}, 500},
		{[3]int{1, most, 1}, 2500}, // each is kept alone
	} {
		applied := 0
		set := projection.Set{toys[0], projection.Contain(projection.Projection{
			Name: "weighty", Version: 1,
			New: func() projection.State {
				return &counting{weighty{size: func(seq eventlog.Seq) int { return tt.sizes[max(seq/1000, 1)-1] }}, &applied}
			},
			Restore: func([]byte) (projection.State, error) {
				return &counting{weighty{size: func(eventlog.Seq) int { return 1 }}, &applied}, nil
			},
		})}
		r := replay.Open(s, set, replay.Stored(store, s, set))
		_, err := r.At(t.Context(), replay.Moment{Seq: 3100})
		require.NoError(t, err)
		applied = 0
		_, err = r.At(t.Context(), replay.Moment{Seq: 2500})
		require.NoError(t, err)
		require.Equal(t, tt.reads, applied, "images of %v", tt.sizes)
	}
}

// counting is a weighty state that counts the entries that it is given.
type counting struct {
	weighty
	applied *int
}

func (s *counting) Apply(e *eventlog.Entry) {
	*s.applied++
	s.weighty.Apply(e)
}

// branch is a session that has the entries of another one up to an entry.
type branch struct {
	*tape
	shared eventlog.Seq
}

func (b branch) Shared() eventlog.Seq { return b.shared }

// Of a session that is derived from another one, the images up to what they share are used.
func TestImagesOfADerivedSession(t *testing.T) {
	store, err := snapshot.Open(filepath.Join(t.TempDir(), "images"), snapshot.Config{})
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	s := &tape{}
	for i := range 30 {
		s.add(ms, byte(i%3))
	}
	for _, img := range takeImages(s, func(seq eventlog.Seq) bool { return seq%10 == 0 }) {
		require.NoError(t, store.Put("tape", img))
	}
	for shared := eventlog.Seq(0); shared <= 30; shared++ {
		other := &tape{}
		for i := range 30 {
			data := byte(i % 3)
			if i >= int(shared) {
				data += 50
			}
			other.add(ms, data)
		}
		other.reads.Store(0)
		b := branch{other, shared}
		require.Equal(t, "tape", replay.Open(b, toys, nil).Name())
		for seq := eventlog.Seq(0); seq <= 30; seq++ {
			other.reads.Store(0)
			f, err := replay.Open(b, toys, replay.Stored(store, b, toys)).At(t.Context(), replay.Moment{Seq: seq})
			require.NoError(t, err)
			require.Equal(t, slow(t, other, replay.Moment{Seq: seq}).Image(), f.Image())
			image := min(seq, shared) / 10 * 10
			want := seq - image
			if image > 0 {
				want++ // the entry of the image
			}
			require.EqualValues(t, want, other.reads.Load(), "at %d, with %d entries shared", seq, shared)
		}
	}
}
