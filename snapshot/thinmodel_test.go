package snapshot_test

import (
	"math/big"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/snapshot"
)

// thinned is the rule of the package comment, word by word: it returns the Seqs that stay.
func thinned(list []snapshot.ImageInfo, interval uint64, percent int, logBytes uint64) []eventlog.Seq {
	budget := new(big.Int).Mul(new(big.Int).SetUint64(logBytes), big.NewInt(int64(percent)))
	budget.Div(budget, big.NewInt(100))
	fits := func(list []snapshot.ImageInfo) bool {
		sum := new(big.Int)
		for _, info := range list {
			sum.Add(sum, big.NewInt(info.Bytes))
		}
		return sum.Cmp(budget) <= 0
	}
	if fits(list) {
		return seqs(list)
	}
	newest := list[len(list)-1]
	number := func(info snapshot.ImageInfo) *big.Int { return new(big.Int).SetUint64(uint64(info.Seq) / interval) }
	for w := new(big.Int).Lsh(big.NewInt(1), 70); w.Sign() > 0; w.Rsh(w, 1) {
		var kept []snapshot.ImageInfo
		for i, info := range list {
			age := new(big.Int).Sub(number(newest), number(info))
			width := big.NewInt(1) // intervals of which the first image is kept
			for up := new(big.Int).Set(w); age.Cmp(up) >= 0; up.Lsh(up, 1) {
				width.Lsh(width, 1)
			}
			group := func(info snapshot.ImageInfo) *big.Int { return new(big.Int).Div(number(info), width) }
			if i == 0 || i == len(list)-1 || group(kept[len(kept)-1]).Cmp(group(info)) != 0 {
				kept = append(kept, info)
			}
		}
		if fits(kept) {
			return seqs(kept)
		}
	}
	return []eventlog.Seq{newest.Seq}
}

// Thin keeps exactly the images that the rule of the package comment keeps, for Seqs near
// each other and for those as far apart as the type allows, and for budgets around the
// size of each number of images.
func TestThinIsTheRule(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	rapid.Check(t, func(t *rapid.T) {
		interval := rapid.SampledFrom([]int{1, 2, 7, 10}).Draw(t, "interval")
		percent := rapid.SampledFrom([]int{1, 25, 33, 100}).Draw(t, "percent")
		s, err := snapshot.Open(path, snapshot.Config{Interval: interval, Percent: percent})
		require.NoError(t, err)
		defer func() { require.NoError(t, s.Close()) }()
		_, err = s.DropAll("a")
		require.NoError(t, err)
		near := rapid.Uint64Range(0, 200)
		far := rapid.Custom(func(t *rapid.T) uint64 {
			base := rapid.SampledFrom([]uint64{0, 1 << 40, 1<<62 - 3, 1<<63 - 3, 1<<64 - 9}).Draw(t, "base")
			return base + rapid.Uint64Range(0, 8).Draw(t, "behind")
		})
		at := rapid.SliceOfNDistinct(rapid.OneOf(near, near, far), 1, 24, rapid.ID).Draw(t, "seqs")
		for _, seq := range at {
			img := image(eventlog.Seq(seq), rapid.IntRange(1, 60).Draw(t, "size"))
			img.At = 0
			require.NoError(t, s.Put("a", img))
		}
		before, err := s.List("a")
		require.NoError(t, err)
		var room uint64
		for _, info := range before[:rapid.IntRange(0, len(before)).Draw(t, "images that fit")] {
			room += uint64(info.Bytes)
		}
		logBytes := room*100/uint64(percent) + rapid.Uint64Range(0, 3).Draw(t, "more")
		want := thinned(before, uint64(interval), percent, logBytes)
		dropped, err := s.Thin("a", logBytes)
		require.NoError(t, err)
		after, err := s.List("a")
		require.NoError(t, err)
		require.Equal(t, want, seqs(after), "%v, a log of %d bytes", before, logBytes)
		require.Equal(t, len(before)-len(after), dropped)
	})
}

// A window keeps its images when they fit to the byte, and the next smaller window decides with
// one byte less.
func TestThinToTheByte(t *testing.T) {
	for _, images := range []eventlog.Seq{2, 3, 9, 24} {
		s := open(t, filepath.Join(t.TempDir(), "s.db"), snapshot.Config{Interval: 2, Percent: 100})
		refill := func() []snapshot.ImageInfo {
			for seq := range images {
				put(t, s, "a", image(3*seq+1, 50+int(seq)%7))
			}
			list, err := s.List("a")
			require.NoError(t, err)
			require.Len(t, list, int(images))
			return list
		}
		var size uint64
		for _, info := range refill() {
			size += uint64(info.Bytes)
		}
		for fits := size; fits > 0; {
			for _, budget := range []uint64{fits, fits - 1} {
				list := refill()
				dropped, err := s.Thin("a", budget)
				require.NoError(t, err)
				after, err := s.List("a")
				require.NoError(t, err)
				require.Equal(t, thinned(list, 2, 100, budget), seqs(after), "%d images, room for %d of %d bytes", images, budget, size)
				require.Equal(t, len(list)-len(after), dropped)
				fits = 0
				for _, info := range after {
					fits += uint64(info.Bytes)
				}
				if fits > budget { // the newest alone
					fits = 0
				}
			}
		}
	}
}

// The rule holds for images as far apart as the type allows, around each power of two that
// bounds a window.
func TestThinFarImages(t *testing.T) {
	for _, top := range []eventlog.Seq{1<<62 - 1, 1 << 62, 1<<63 - 1, 1 << 63, 1<<64 - 1} {
		s := open(t, filepath.Join(t.TempDir(), "s.db"), snapshot.Config{Interval: 1, Percent: 100})
		for _, seq := range []eventlog.Seq{0, 1, top/2 + 5, top/2 + 6, top - 1, top} {
			img := image(seq, 100)
			img.At = 0
			put(t, s, "a", img)
		}
		list, err := s.List("a")
		require.NoError(t, err)
		for n := len(list) - 1; n >= 0; n-- {
			room := uint64(n) * uint64(list[0].Bytes+8)
			want := thinned(list, 1, 100, room)
			_, err := s.Thin("a", room)
			require.NoError(t, err)
			after, err := s.List("a")
			require.NoError(t, err)
			require.Equal(t, want, seqs(after), "up to %d, room for %d", top, n)
			list = after
		}
	}
}
