package main

import (
	"crypto/sha256"
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestParseTicks: the share of the host is that of the eighth number, among the first
// eight.
func TestParseTicks(t *testing.T) {
	before := parseTicks("cpu  1000 10 200 3000 40 0 50 100 900 9\ncpu0 1 2 3 4 5 6 7 8 9 10\n")
	require.Equal(t, ticks{4400, 100}, before)
	after := parseTicks("cpu  1060 10 220 3100 40 0 50 120 950 9\n")
	require.InDelta(t, 10.0, after.stealSince(before), 1e-9)
	require.Zero(t, before.stealSince(before))
	for _, text := range []string{"", "cpu 1 2 3", "intr 1 2 3 4 5 6 7 8 9", "cpu a b c d e f g h"} {
		require.Zero(t, parseTicks(text), text)
		require.Negative(t, after.stealSince(parseTicks(text)), text)
	}
}

// TestQuiet: a round that the host disturbed is repeated up to three times, and the
// attempt that it disturbed least counts.
func TestQuiet(t *testing.T) {
	for name, c := range map[string]struct {
		steals []float64 // of the attempts that may be made
		made   int
		want   float64
	}{
		"quiet":             {[]float64{5}, 1, 5},
		"unknown":           {[]float64{-1}, 1, -1},
		"quiet at the end":  {[]float64{30, 20, 9, 4}, 4, 4},
		"quiet in between":  {[]float64{30, 2}, 2, 2},
		"noisy all along":   {[]float64{30, 8, 20, 40}, 4, 8},
		"noisy from one on": {[]float64{5.5, 40, 50, 60}, 4, 5.5},
	} {
		t.Run(name, func(t *testing.T) {
			made := 0
			m, err := quiet(func() (measurement, error) {
				made++
				return measurement{rate: float64(made), steal: c.steals[made-1]}, nil
			})
			require.NoError(t, err)
			require.Equal(t, c.made, made)
			require.Equal(t, c.want, m.steal)
			require.Equal(t, c.want, c.steals[int(m.rate)-1], "the whole attempt counts")
		})
	}
	broken := errors.New("broken")
	_, err := quiet(func() (measurement, error) { return measurement{steal: 50}, broken })
	require.ErrorIs(t, err, broken)
}

// TestNoisyRow: a row tells the worst share of all its series, and is marked above
// the bound.
func TestNoisyRow(t *testing.T) {
	b := &bench{}
	calm, loud := series{{rate: 100, work: 1}, {rate: 50, work: 2, steal: 1}}, series{{rate: 200, work: 4, steal: 2}, {rate: 100, work: 2, steal: 7}}
	b.beside("calm", "units", calm, "itself", calm, 1)
	b.beside("slow", "units", calm, "loud", loud, 1)
	b.workBeside("work", calm, "loud", loud, 0.5)
	require.False(t, b.results[0].Noisy)
	require.Equal(t, 1.0, *b.results[0].Steal)
	require.Equal(t, 50.0, b.results[0].spread)
	require.True(t, *b.results[0].Holds)
	require.True(t, b.results[1].Noisy)
	require.Equal(t, 7.0, *b.results[1].Steal)
	require.Equal(t, 0.5, *b.results[1].Ratio)
	require.False(t, *b.results[1].Holds)
	require.Equal(t, 0.5, *b.results[2].Ratio, "the best work of each")
	require.True(t, *b.results[2].Holds)
}

// TestChainedLog: the peer keeps what it is given and links it, or its figures say
// nothing.
func TestChainedLog(t *testing.T) {
	dir := t.TempDir()
	log, err := openChained(dir)
	require.NoError(t, err)
	const n = 640
	require.NoError(t, spread(64, n, func(i int) error {
		return log.put([][]byte{{byte(i), byte(i >> 8)}, {byte(i), byte(i >> 8), 1}})
	}))
	require.NoError(t, log.close())

	raw, err := openRaw(dir)
	require.NoError(t, err)
	defer func() { require.NoError(t, raw.close()) }()
	it, err := raw.db.NewIter(nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, it.Close()) }()
	var prev [sha256.Size]byte
	var seen []int
	seq := uint64(0)
	for it.First(); it.Valid(); it.Next() {
		seq++
		v := it.Value()
		body, hash := v[:len(v)-len(prev)], v[len(v)-len(prev):]
		require.Equal(t, rawKey(nil, seq), it.Key())
		prev = sha256.Sum256(append(prev[:], body...))
		require.Equal(t, prev[:], hash)
		if len(body) == 2 {
			seen = append(seen, int(body[0])|int(body[1])<<8)
		}
	}
	require.NoError(t, it.Error())
	require.EqualValues(t, 2*n, seq)
	slices.Sort(seen)
	require.Len(t, slices.Compact(seen), n)
}
