package history_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/director/history"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

// A turn keeps its first events, up to a number of them and of their bytes, and counts the
// others, however small.
func TestTurnIsBounded(t *testing.T) {
	small := session.DirectorEvent{Record: signal.Record{Word: "small", Value: signal.Text("")}}
	turn := &history.PlayedTurn{}
	for range history.MaxTurnEvents {
		turn.Add(small)
	}
	require.Len(t, turn.Events, history.MaxTurnEvents)
	require.Zero(t, turn.Left)
	turn.Add(small)
	turn.Add(small)
	require.Len(t, turn.Events, history.MaxTurnEvents)
	require.Equal(t, 2, turn.Left)

	half := session.DirectorEvent{Record: signal.Record{Word: "half", Value: make(signal.Value, history.MaxTurnBytes/2)}}
	turn = &history.PlayedTurn{}
	turn.Add(half)
	turn.Add(half)
	require.Len(t, turn.Events, 2, "just as many bytes as there may be")
	turn.Add(small)
	require.Len(t, turn.Events, 2)
	require.Equal(t, 1, turn.Left)

	turn = &history.PlayedTurn{}
	turn.Add(half)
	turn.Add(small)
	turn.Add(half)
	turn.Add(small)
	require.Equal(t, []session.DirectorEvent{half, small}, turn.Events, "an event after one that was left out is left out too")
	require.Equal(t, 2, turn.Left)
}

// A list of turns joins consecutive turns, and takes a turn that is guided again once.
func TestTurnList(t *testing.T) {
	for _, c := range []struct {
		turns []int
		count int
		spans [][2]int
		text  string
	}{
		{nil, 0, nil, ""},
		{[]int{1}, 1, [][2]int{{1, 1}}, "1"},
		{[]int{1, 1, 1}, 1, [][2]int{{1, 1}}, "1"},
		{[]int{1, 2}, 2, [][2]int{{1, 2}}, "1-2"},
		{[]int{1, 2, 2, 3}, 3, [][2]int{{1, 3}}, "1-3"},
		{[]int{1, 3}, 2, [][2]int{{1, 1}, {3, 3}}, "1, 3"},
		{[]int{2, 3, 4, 7, 9, 10}, 6, [][2]int{{2, 4}, {7, 7}, {9, 10}}, "2-4, 7, 9-10"},
	} {
		var list history.TurnList
		for _, n := range c.turns {
			list.Add(n)
		}
		require.Equal(t, history.TurnList{Count: c.count, Spans: c.spans}, list, c.turns)
		require.Equal(t, c.text, list.String())
	}
	require.Equal(t, "1-2 and 1 more", history.TurnList{Count: 3, Spans: [][2]int{{1, 2}}}.String())
}

func lines(text string) []director.TranscriptLine {
	all := []director.TranscriptLine{}
	for line := range strings.Lines(text) {
		role, said, _ := strings.Cut(strings.TrimSpace(line), " ")
		all = append(all, director.TranscriptLine{Role: map[string]string{"u": "user", "c": "character"}[role], Text: said})
	}
	return all
}

// The messages before a response end at the first response of its turn. The opening line
// and forced lines are among them or not, as the program of the play may have chosen.
func TestDialogueBeforeResponse(t *testing.T) {
	d := history.DialogueOf("Welcome.")
	d.Say(1, "user", "one")
	d.Say(1, "character", "first")
	d.Say(2, "user", "two")
	d.Say(2, "character", "")
	d.Force(2, "forced")
	d.Say(3, "user", "")
	for _, c := range []struct {
		turn           int
		opened, forced bool
		want           string
	}{
		{1, true, true, "c Welcome.\nu one\n"},
		{1, false, false, "u one\n"},
		{2, true, false, "c Welcome.\nu one\nc first\nu two\n"},
		{3, true, true, "c Welcome.\nu one\nc first\nu two\nc forced\n"},
		{3, false, true, "u one\nc first\nu two\nc forced\n"},
		{3, true, false, "c Welcome.\nu one\nc first\nu two\n"},
		{3, false, false, "u one\nc first\nu two\n"},
	} {
		require.Equal(t, lines(c.want), d.Before(c.turn, c.opened, c.forced), "%+v", c)
	}
	require.Equal(t, lines("u one\n"), func() []director.TranscriptLine {
		d := history.DialogueOf("")
		d.Say(1, "user", "one")
		return d.Before(1, true, true)
	}(), "an episode without an opening line")

	seen, same := d.SeenUnasked(3)
	require.Equal(t, lines("u one\nc first\nu two\nc forced\n"), seen, "four messages at most, the last ones")
	require.True(t, same, "no question contradicts them")
	seen, _ = d.SeenUnasked(1)
	require.Equal(t, lines("c Welcome.\nu one\n"), seen)
}

// A message that is said again replaces the first one of its turn and role, and all that
// follows.
func TestDialogueSaidAgain(t *testing.T) {
	begin := func() *history.Dialogue {
		d := history.DialogueOf("")
		d.Say(1, "user", "one")
		d.Say(1, "character", "first")
		d.Say(2, "user", "two")
		d.Say(2, "character", "second")
		d.Force(2, "forced")
		return d
	}
	for _, c := range []struct {
		turn             int
		role, text, want string
	}{
		{2, "character", "again", "u one\nc first\nu two\nc again\n"},
		{2, "user", "again", "u one\nc first\nu again\n"},
		{1, "character", "again", "u one\nc again\n"},
		{1, "user", "again", "u again\n"},
		{2, "character", "", "u one\nc first\nu two\n"},
		{3, "user", "three", "u one\nc first\nu two\nc second\nc forced\nu three\n"},
		{3, "character", "three", "u one\nc first\nu two\nc second\nc forced\nc three\n"},
	} {
		d := begin()
		d.Say(c.turn, c.role, c.text)
		require.Equal(t, lines(c.want), d.Before(9, true, true), "%+v", c)
	}
}
