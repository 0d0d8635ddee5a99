package explore_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/director/explore"
	"github.com/sajou-dev/sajou-go/signal"
)

func TestDefaultBounds(t *testing.T) {
	e := parse(t, `{"id": "e"}`)
	for given, want := range map[explore.Config]explore.Config{
		{}: {MaxTurns: 500, MaxStates: 50_000, MaxMoves: 1_000_000},
		{Delay: -1, MaxTurns: -1, MaxStates: -1, MaxMoves: -1}: {Delay: -1, MaxTurns: 500, MaxStates: 50_000, MaxMoves: 1_000_000},
		{Delay: 3, MaxTurns: 1, MaxStates: 1, MaxMoves: 1}:     {Delay: 3, MaxTurns: 1, MaxStates: 1, MaxMoves: 1},
	} {
		require.Equal(t, want, explore.New(e, given).Bounds())
	}
}

// Up to six things have all their subsets. Of more, the first subsets are none, all, and each
// thing with the pairs that it begins; only the first 64 things are in pairs.
func TestSubsets(t *testing.T) {
	for n := range 7 {
		sets, bound, untried := explore.Subsets(n)
		require.Len(t, sets, 1<<n)
		require.Empty(t, bound)
		require.Zero(t, untried)
		for bits, set := range sets {
			got := 0
			for _, i := range set {
				got |= 1 << i
			}
			require.Equal(t, bits, got)
			require.True(t, slices.IsSorted(set))
		}
	}
	for _, n := range []int{7, 8, 63, 64, 65, 66, 80} {
		sets, bound, untried := explore.Subsets(n)
		require.Equal(t, "together", bound)
		all := make([]int, n)
		for i := range all {
			all[i] = i
		}
		want := [][]int{nil, all}
		for i := range n {
			want = append(want, []int{i})
			for j := i + 1; j < min(n, 64); j++ {
				want = append(want, []int{i, j})
			}
		}
		require.Equal(t, want, sets)
		left := uint64(math.MaxUint64) - uint64(len(want))
		if n < 64 {
			left = 1<<n - uint64(len(want))
		}
		require.Equal(t, left, untried, n)
	}
	// A caller that has enough gets no more.
	for _, n := range []int{3, 8} {
		all, _, _ := explore.Subsets(n)
		for first := 1; first <= len(all); first++ {
			require.Equal(t, all[:first], explore.FirstSubsets(n, first))
		}
	}
}

func TestSumOfPlays(t *testing.T) {
	const most = math.MaxUint64
	for _, c := range [][3]uint64{
		{0, 0, 0},
		{1, 2, 3},
		{most, 0, most},
		{0, most, most},
		{most - 1, 1, most},
		{1, most - 1, most},
		{most, 1, most},
		{1, most, most},
		{most, most, most},
		{most - 1, 2, most},
		{most / 2, most / 2, most - 1},
	} {
		require.Equal(t, c[2], explore.Sum(c[0], c[1]), c)
	}
}

// The last turn is that of any part of the episode that names turns.
func TestLastTurn(t *testing.T) {
	beat := func(target, deadline int) string {
		return fmt.Sprintf(`"beats": [{"id": "b", "character_instruction": "x", "target_turn": %d, "deadline_turn": %d, "detection_type": "automatic"}]`, target, deadline)
	}
	for text, want := range map[string]int{
		`{"turn_budget": 0}`:                     0,
		`{"turn_budget": 7}`:                     7,
		`{"turn_budget": 2, ` + beat(3, 3) + `}`: 3,
		`{"turn_budget": 2, ` + beat(3, 5) + `}`: 5,
		`{"turn_budget": 9, ` + beat(3, 5) + `}`: 9,
		`{"turn_budget": 1, "choice_points": [{"id": "p", "trigger": "turn:6", "choices": [{"id": "o", "label": "O."}]}]}`:        6,
		`{"turn_budget": 1, "user_objective": "o", "success_condition": "turn:4"}`:                                                4,
		`{"turn_budget": 1, "user_objective": "o", "success_condition": "flag:f", "failure_condition": "turn:5", "flags": ["f"]}`: 5,
		`{"turn_budget": 8, "user_objective": "o", "success_condition": "turn:4", "failure_condition": "turn:5"}`:                 8,
	} {
		require.Equal(t, want, explore.LastTurn(parse(t, text)), text)
	}
}

// Plays depend on the flags that are read or cleared, and not on those that are only set.
func TestTracks(t *testing.T) {
	e := parse(t, `{"id": "e", "flags": ["given"], "beats": [{"id": "b", "character_instruction": "x", "target_turn": 1, "detection_type": "automatic", "requires_flag": "read",
		"choice_point": {"id": "p", "choices": [{"id": "o", "label": "O.", "sets_flag": "set", "clears_flag": "given"}, {"id": "q", "label": "Q.", "sets_flag": "read"}]}}],
		"flag_rules": [{"on_signal": "s", "set": "by_rule"}, {"on_effect": "x", "clear": "by_rule_cleared"}]}`)
	require.Equal(t, map[string]bool{"read": true, "given": true, "by_rule_cleared": true}, explore.Tracks(e))
}

func TestMoveKindString(t *testing.T) {
	var names []string
	for k := explore.MoveStart; k <= explore.MoveHear; k++ {
		names = append(names, k.String())
	}
	require.Equal(t, []string{"start", "choose", "open", "decline", "respond", "hear"}, names)
	require.Equal(t, "turn 6 begins", explore.Move{Kind: explore.MoveOpen, Turn: 6}.String())
}

// A response has one keyword of each thing that it accomplishes: the first in which nothing
// else is found, or the first of all.
func TestLineOfResponse(t *testing.T) {
	beat := func(id, criteria string) string {
		return fmt.Sprintf(`{"id": %q, "description": "d", "character_instruction": "x", "target_turn": 1, "detection_type": "keyword", "detection_criteria": %q}`, id, criteria)
	}
	e := parse(t, `{"policy": {"spontaneous": true}, "user_objective": "o", "success_condition": "keyword:sugar, honey", "beats": [`+
		strings.Join([]string{beat("a", "salt, pepper"), beat("b", "salt"), beat("c", "salt, sugar, honey")}, ", ")+`,
		{"id": "s", "description": "d", "character_instruction": "x", "target_turn": 1, "detection_type": "semantic", "detection_criteria": "w"}]}`)
	of := func(ids ...string) (all []episode.Subject) {
		for _, id := range ids {
			kind := episode.AboutBeat
			if id == "primary" {
				kind = episode.AboutObjective
			}
			all = append(all, episode.Subject{Kind: kind, ID: id})
		}
		return all
	}
	var s director.State
	require.Equal(t, "", explore.Line(&s, of("a")...), "nothing plays")
	for _, m := range []explore.Move{explore.Start(e), {Kind: explore.MoveOpen, Turn: 1}} {
		_, err := explore.Play(&s, m)
		require.NoError(t, err)
	}
	for _, c := range []struct {
		yes  []episode.Subject
		want string
	}{
		{nil, ""},
		{of("s"), ""},
		{of("a"), "pepper"},
		{of("b"), "salt"},
		{of("c"), "salt"},
		{of("b", "a"), "salt. pepper"},
		{of("a", "b", "c"), "salt. salt. salt"},
		{of("a", "b", "c", "primary"), "salt. salt. salt. sugar"},
		{of("primary"), "sugar"},
		{of("primary", "s", "c"), "sugar. sugar"},
	} {
		require.Equal(t, c.want, explore.Line(&s, c.yes...), "%v", c.yes)
	}
}

// A move that cannot be made says why, and changes nothing.
func TestRefusedMoves(t *testing.T) {
	e := parse(t, `{"id": "e", "beats": [{"id": "b", "character_instruction": "x", "target_turn": 1, "detection_type": "semantic", "detection_criteria": "c", "description": "d"}]}`)
	var s director.State
	_, err := explore.Play(&s, explore.Move{Kind: explore.MoveStart})
	require.EqualError(t, err, "director: explore: a start without an episode")
	_, err = explore.Play(&s, explore.Move{Kind: explore.MoveOpen, Turn: 1})
	require.ErrorIs(t, err, director.ErrTurn)
	_, err = explore.Play(&s, explore.Start(e))
	require.NoError(t, err)
	before := s.AppendState(nil)
	for _, m := range []explore.Move{
		{Kind: explore.MoveOpen, Turn: 0}, {Kind: explore.MoveDecline, Turn: -1}, {Kind: explore.MoveRespond, Turn: 1}, {Kind: explore.MoveChoose, ChoicePoint: "p", Option: "o"},
	} {
		records, err := explore.Play(&s, m)
		require.Error(t, err, "%v", m)
		require.Nil(t, records)
		require.Equal(t, before, s.AppendState(nil))
	}
}

// A meter counts what came before an event that cannot follow, and the combinations of
// answers up to a bound.
func TestMeterBounds(t *testing.T) {
	require.Zero(t, explore.Rate{}.Share())
	require.InDelta(t, 0.25, explore.Rate{N: 1, Of: 4}.Share(), 1e-12)
	var beats []string
	for i := range 20 {
		beats = append(beats, fmt.Sprintf(`{"id": "b%d", "character_instruction": "x", "target_turn": %d, "detection_type": "automatic", "choice_point": {"id": "p%d", "choices": [
			{"id": "x", "label": "X%d."}, {"id": "y", "label": "Y%d."}]}}`, i, i+1, i, i, i))
	}
	e := parse(t, `{"id": "e", "beats": [`+strings.Join(beats, ", ")+`]}`)
	var s director.State
	records, err := s.Start(e, director.Opening{})
	require.NoError(t, err)
	var m explore.Meter
	require.Empty(t, m.Reports())
	broken := append(slices.Clone(records), signal.Record{Word: episode.TurnEvaluated, Value: signal.Text("x")}, signal.Record{Word: episode.TurnEvaluated})
	require.ErrorIs(t, m.Session(slices.Values(broken)), director.ErrRecord)
	require.ErrorIs(t, m.Session(slices.Values(broken[len(records):])), director.ErrRecord, "an event before an episode")
	require.NoError(t, m.Session(slices.Values(records[:1])), "the episode is declared and does not start")
	r := m.Reports()[0]
	require.Equal(t, math.MaxInt32, r.Possible, "3 to the power of 20 is more")
	require.Equal(t, 1, r.Seen)
	require.Equal(t, 1, r.Sessions)
	require.Equal(t, explore.Rate{N: 0, Of: 1}, r.Beats[0].Landed)
}

// The median and the 95th percentile of the lateness are the nearest rank, for any number of
// sessions: the least value that at least half, or 95 of 100, do not exceed.
func TestLatenessOfManySessions(t *testing.T) {
	e := parse(t, `{"id": "e", "turn_budget": 0, "beats": [{"id": "b", "description": "d", "character_instruction": "x", "target_turn": 3, "detection_type": "keyword", "detection_criteria": "now"}]}`)
	var m explore.Meter
	for n := 1; n <= 42; n++ {
		// The n-th session lands the beat in turn n.
		var s director.State
		var all []signal.Record
		take := func(records []signal.Record, err error) {
			t.Helper()
			require.NoError(t, err)
			for _, r := range records {
				require.NoError(t, s.Apply(r.Word, r.Value))
			}
			all = append(all, records...)
		}
		take(s.Start(e, director.Opening{}))
		for turn := 1; turn <= n; turn++ {
			_, records, err := s.Guide(director.TurnInput{Turn: turn})
			take(records, err)
			text := "Not yet."
			if turn == n {
				text = "Now."
			}
			_, records, err = s.Respond(director.Response{Turn: turn, Text: text})
			take(records, err)
		}
		require.NoError(t, m.Session(slices.Values(all)))
		b := m.Reports()[0].Beats[0]
		landed := b.Landed.N
		if landed == 0 {
			continue // the beat is not directed so long before its target
		}
		first := n - landed + 1 // the turn of the least lateness
		rank := func(hundredths int) int {
			i := 0
			for i*100 < landed*hundredths {
				i++
			}
			return first + i - 1 - 3
		}
		require.Equal(t, []int{rank(50), rank(95)}, []int{b.Median, b.P95}, "%d landings", landed)
	}
	require.Equal(t, 41, m.Reports()[0].Beats[0].Landed.N)
}
