package bisect_test

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/bisect"
)

// stretchesOf returns one stretch for each byte. Equal lower-case letters are equal
// inputs; all other stretches have inputs of their own.
func stretchesOf(looks string) []bisect.Stretch {
	list := make([]bisect.Stretch, len(looks))
	for i := range list {
		list[i].From = replay.Moment{Seq: eventlog.Seq(i)}
		list[i].Last = list[i].From
		binary.BigEndian.PutUint64(list[i].Input[:], uint64(i+1))
		if c := looks[i]; c >= 'a' && c <= 'z' {
			list[i].Input = bisect.InputHash{31: c}
		}
	}
	return list
}

// resultOf reads a truth: '.' is good, '#' bad, '?' skipped.
func resultOf(c byte) bisect.TestResult {
	return map[byte]bisect.TestResult{'.': bisect.Good, '#': bisect.Bad, '?': bisect.Skip}[c]
}

// search judges what a search wants, from a truth with one character a stretch, in
// batches. It returns the search and the log of what was judged.
func search(t require.TestingT, truth, looks string, batch int, opts bisect.Options) (*bisect.Search, string) {
	if looks == "" {
		looks = truth
	}
	s := bisect.New(stretchesOf(looks), opts)
	var log string
	for {
		picks := s.NextN(batch)
		if len(picks) == 0 {
			return s, log
		}
		for _, p := range picks {
			log += fmt.Sprintf("%v:%d ", p.Purpose, p.Index)
			require.NoError(t, s.Judge(p.Index, resultOf(truth[p.Index])))
		}
	}
}

// These are searches in full: the truth, what is judged and for what, and the answer.
func TestSearch(t *testing.T) {
	for _, tt := range []struct {
		name, truth, looks string
		batch              int
		opts               bisect.Options
		judged, answer     string
	}{
		{"two", ".#", "", 1, bisect.Options{}, "end:0 end:1 ", "0|1 conclusive"},
		{"halves", "......####", "", 1, bisect.Options{}, "end:0 end:9 halve:4 halve:6 halve:5 ", "5|6 assumes one transition"},
		{"a skip: quarters", "....?.####", "", 1, bisect.Options{}, "end:0 end:9 halve:4 halve:5 halve:7 halve:6 ", "5|6 assumes one transition"},
		{"only skips are left", ".???#", "", 1, bisect.Options{}, "end:0 end:4 halve:2 halve:1 halve:3 ", "0|4 assumes one transition"},
		{"probes", "....####", "", 1, bisect.Options{Probes: 2}, "end:0 end:7 halve:3 halve:5 halve:4 probe:1 probe:6 ", "3|4 assumes one transition"},
		{"more probes than stretches", "..##", "", 1, bisect.Options{Probes: 8}, "end:0 end:3 halve:1 halve:2 ", "1|2 conclusive"},
		{
			"comes and goes", ".#.#.#", "", 1,
			bisect.Options{Probes: 8},
			"end:0 end:5 halve:2 halve:3 probe:1 probe:4 ", "2|3 islands 1-1 bad 4-4 good conclusive",
		},
		{
			"an island refutes the assumption", "..#....###", "abcdefghij", 1,
			bisect.Options{Probes: 2},
			"end:0 end:9 halve:4 halve:6 halve:7 probe:2 probe:5 ", "6|7 islands 2-2 bad ",
		},
		{
			"shared judgments", ".##..##", "Xaabbcc", 1,
			bisect.Options{Probes: 8},
			"end:0 end:6 halve:2 probe:3 ", "0|1 islands 3-4 good conclusive",
		},
		{"the good end is bad", "#.#", "", 1, bisect.Options{}, "end:0 ", "error"},
		{"the bad end is good", "...", "", 1, bisect.Options{}, "end:0 end:2 ", "error"},
		{"an end is skipped", "?.#", "", 1, bisect.Options{}, "end:0 ", "error"},
		{"the ends look alike", ".#.", "aBa", 1, bisect.Options{}, "", "error"},
		{"first", "..##.#", "", 1, bisect.Options{Goal: bisect.First}, "all:0 all:1 all:2 all:3 all:4 all:5 ", "1|2 islands 4-4 good conclusive"},
		{"last", "..##.#", "", 1, bisect.Options{Goal: bisect.Last}, "all:5 all:4 all:3 all:2 all:1 all:0 ", "4|5 islands 2-3 bad conclusive"},
		{"all, some alike", "##..##", "aabbaa", 1, bisect.Options{Goal: bisect.AllPhases}, "all:0 all:2 ", "3|4 islands 0-1 bad conclusive"},
		{"all, none is bad", "...", "", 1, bisect.Options{Goal: bisect.AllPhases}, "all:0 all:1 all:2 ", "no transition conclusive"},
		{"first, a skip", ".?#", "", 1, bisect.Options{Goal: bisect.First}, "all:0 all:1 all:2 ", "0|2 "},
		{"rechecked", "..#", "", 1, bisect.Options{Recheck: true}, "end:0 end:2 halve:1 recheck:0 recheck:2 ", "1|2 conclusive"},
		{"in batches of three", "......####", "", 3, bisect.Options{}, "end:0 end:9 halve:4 halve:2 halve:6 halve:5 ", "5|6 assumes one transition"},
		{"one stretch", "#", "", 1, bisect.Options{Goal: bisect.AllPhases, Recheck: true}, "all:0 recheck:0 ", "no transition conclusive"},
		{"none", "", "", 1, bisect.Options{Goal: bisect.AllPhases, Recheck: true}, "", "no transition conclusive"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, judged := search(t, tt.truth, tt.looks, tt.batch, tt.opts)
			assert.Equal(t, tt.judged, judged)
			assert.Equal(t, tt.answer, answer(s))
		})
	}
}

// answer writes the conclusion of a search in one line.
func answer(s *bisect.Search) string {
	if s.Err() != nil {
		return "error"
	}
	c := s.Conclusion()
	text := "no transition "
	if c.Found {
		text = fmt.Sprintf("%d|%d ", c.Good, c.Bad)
	}
	for i, r := range c.Islands() {
		if i == 0 {
			text += "islands "
		}
		text += fmt.Sprintf("%d-%d %v ", r.First, r.Last, r.Result)
	}
	if c.Conclusive() {
		return text + "conclusive"
	}
	if a := c.Assumes(); a != "" {
		return text + "assumes " + a
	}
	return text
}

// truths draws a truth over stretches of which some look alike, so that stretches that
// look alike have one truth.
func truths(t *rapid.T) (truth, looks string) {
	n := rapid.IntRange(2, 300).Draw(t, "stretches")
	alike := rapid.SampledFrom([]string{"A", "AAAAabc", "abcdefghijkl"}).Draw(t, "alike")
	results := rapid.SampledFrom([]string{".#", ".#?", "...........#", ".......?"}).Draw(t, "results")
	of := map[byte]byte{}
	last := byte('.')
	for range n {
		look := rapid.SampledFrom([]byte(alike)).Draw(t, "look")
		c := rapid.SampledFrom([]byte(results)).Draw(t, "result")
		if rapid.IntRange(0, 20).Draw(t, "turn") > 0 {
			c = last
		}
		if look >= 'a' {
			if was, ok := of[look]; ok {
				c = was
			}
			of[look] = c
		}
		truth, looks, last = truth+string(c), looks+string(look), c
	}
	return truth, looks
}

// The model knows the truth of every stretch. A search for any transition ends after a
// logarithmic number of judgments with a pair that is one, between which nothing can be
// judged; every island that it reports is one; and if it says that it is conclusive, the
// model has the same runs.
func TestSearchAnyAgainstTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		truth, looks := truths(t)
		opts := bisect.Options{Probes: rapid.IntRange(0, 12).Draw(t, "probes"), Recheck: rapid.Bool().Draw(t, "recheck")}
		batch := rapid.IntRange(1, 5).Draw(t, "batch")
		s, judged := search(t, truth, looks, batch, opts)
		n := len(truth)
		wrong := truth[0] != '.' || truth[n-1] != '#'
		require.Equal(t, wrong, s.Err() != nil, "%s", judged)
		if wrong {
			return
		}
		c := s.Conclusion()
		require.True(t, c.Found)
		require.Equal(t, ".#", string([]byte{truth[c.Good], truth[c.Bad]}))
		for i := c.Good + 1; i < c.Bad; i++ {
			require.Equal(t, byte('?'), truth[i], "%d could be judged", i)
		}
		for _, r := range c.Islands() {
			require.Equal(t, r.Result, resultOf(truth[r.First]))
			require.Equal(t, r.Result, resultOf(truth[r.Last]))
			require.Equal(t, r.Result == bisect.Bad, r.Last < c.Good)
		}
		if c.Conclusive() {
			require.Equal(t, runs(truth), c.Phases)
		}
		assumes := c.Judged < len(truth) && len(c.Islands()) == 0
		require.Equal(t, assumes, c.Assumes() != "")
		require.Empty(t, c.Conflicts)
		skips := 0
		for i := range s.Stretches() {
			if s.Result(i) == bisect.Skip {
				skips++
			}
		}
		limit := 2 + batch*bits.Len(uint(n)) + skips*batch*(bits.Len(uint(n))+1) + opts.Probes + 2
		require.LessOrEqual(t, c.Judgments, limit)
	})
}

// A search that judges every input knows every run, in one judgment for each input.
func TestSearchAllAgainstTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		truth, looks := truths(t)
		goal := rapid.SampledFrom([]bisect.Goal{bisect.First, bisect.Last, bisect.AllPhases}).Draw(t, "goal")
		s, _ := search(t, truth, looks, rapid.IntRange(1, 5).Draw(t, "batch"), bisect.Options{Goal: goal})
		c := s.Conclusion()
		require.Equal(t, s.Inputs(), c.Judgments)
		want := runs(truth)
		require.Equal(t, want, c.Phases)
		var turns [][2]int
		for i := 1; i < len(want); i++ {
			if want[i].Result == bisect.Bad {
				turns = append(turns, [2]int{want[i-1].Last, want[i].First})
			}
		}
		require.Equal(t, len(turns) > 0, c.Found)
		if c.Found {
			turn := turns[0]
			if goal == bisect.Last {
				turn = turns[len(turns)-1]
			}
			require.Equal(t, turn, [2]int{c.Good, c.Bad})
		}
	})
}

// runs returns the runs of a truth.
func runs(truth string) []bisect.Phase {
	var list []bisect.Phase
	for i := range len(truth) {
		r := resultOf(truth[i])
		switch n := len(list); {
		case r == bisect.Skip:
		case n > 0 && list[n-1].Result == r:
			list[n-1].Last = i
		default:
			list = append(list, bisect.Phase{First: i, Last: i, Result: r})
		}
	}
	return list
}

// A search that judges stretches of its own choice, out of order and in part again,
// stands where it stood when the last judgments are undone, and finishes.
func TestUndo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		truth, looks := truths(t)
		opts := bisect.Options{Goal: rapid.SampledFrom([]bisect.Goal{bisect.Any, bisect.Last}).Draw(t, "goal"), Probes: 3, Recheck: true}
		s := bisect.New(stretchesOf(looks), opts)
		type place struct {
			answer string
			next   []bisect.Pick
		}
		here := func() place { return place{fmt.Sprintf("%s %+v", answer(s), s.Conclusion()), s.NextN(3)} }
		var places []place
		var judged []int
		for range rapid.IntRange(0, 20).Draw(t, "steps") {
			places = append(places, here())
			i := rapid.IntRange(0, len(truth)-1).Draw(t, "stretch")
			if p, ok := s.Next(); ok && rapid.Bool().Draw(t, "obey") {
				i = p.Index
			}
			judged = append(judged, i)
			require.NoError(t, s.Judge(i, rapid.SampledFrom([]bisect.TestResult{bisect.Good, bisect.Bad, bisect.Skip}).Draw(t, "result")))
		}
		for k := len(judged) - 1; k >= 0; k-- {
			i, ok := s.Undo()
			require.True(t, ok)
			require.Equal(t, judged[k], i)
			require.Equal(t, places[k], here())
		}
		_, ok := s.Undo()
		require.False(t, ok)
	})
}

// A test that contradicts itself is noticed when an end is judged again. A skip
// contradicts nothing, and a later result takes its place.
func TestConflict(t *testing.T) {
	s := bisect.New(stretchesOf("ABab"), bisect.Options{Recheck: true})
	for _, j := range []struct {
		index  int
		result bisect.TestResult
	}{{0, bisect.Good}, {3, bisect.Bad}, {1, bisect.Skip}, {2, bisect.Skip}, {1, bisect.Good}, {2, bisect.Bad}, {1, bisect.Skip}} {
		require.NoError(t, s.Judge(j.index, j.result))
	}
	assert.Equal(t, "1|2 conclusive", answer(s))
	p, ok := s.Next()
	require.True(t, ok)
	assert.Equal(t, bisect.Pick{Index: 0, Purpose: bisect.ForRecheck}, p)
	require.NoError(t, s.Judge(0, bisect.Bad))
	c := s.Conclusion()
	assert.Equal(t, []bisect.Conflict{{Index: 0, Was: bisect.Good, Now: bisect.Bad}}, c.Conflicts)
	assert.False(t, c.Conclusive())

	assert.ErrorContains(t, s.Judge(4, bisect.Good), "there are 4")
	assert.ErrorContains(t, s.Judge(-1, bisect.Good), "there are 4")
	assert.ErrorContains(t, s.Judge(1, 0), "the test returned")
	assert.ErrorContains(t, s.Judge(1, 99), "the test returned")
}

// Left tells how much there is to judge.
func TestLeft(t *testing.T) {
	s := bisect.New(stretchesOf("ABCDEFGHIJ"), bisect.Options{})
	candidates, judgments := s.Left()
	assert.Equal(t, "10 4", fmt.Sprint(candidates, judgments))
	require.NoError(t, s.Judge(0, bisect.Good))
	require.NoError(t, s.Judge(9, bisect.Bad))
	candidates, judgments = s.Left()
	assert.Equal(t, "8 4", fmt.Sprint(candidates, judgments))
	require.NoError(t, s.Judge(4, bisect.Good))
	candidates, judgments = s.Left()
	assert.Equal(t, "4 3", fmt.Sprint(candidates, judgments))

	s = bisect.New(stretchesOf("aabbC"), bisect.Options{Goal: bisect.AllPhases})
	require.NoError(t, s.Judge(1, bisect.Good))
	candidates, judgments = s.Left()
	assert.Equal(t, "3 2", fmt.Sprint(candidates, judgments))
}
