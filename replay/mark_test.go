package replay_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/sajou-dev/sajou-go/replay"
)

// scripted is a tape with a script.
type scripted struct {
	*tape
	marks []replay.Mark
	err   error // yielded after the marks
}

func (s *scripted) Marks(context.Context) iter.Seq2[replay.Mark, error] {
	return func(yield func(replay.Mark, error) bool) {
		for _, m := range s.marks {
			if !yield(m, nil) {
				return
			}
		}
		if s.err != nil {
			yield(replay.Mark{}, s.err)
		}
	}
}

// worn is a script that can be read a number of times.
type worn struct {
	*scripted
	left int
}

func (w *worn) Marks(ctx context.Context) iter.Seq2[replay.Mark, error] {
	if w.left--; w.left < 0 {
		return (&scripted{err: errors.New("worn out")}).Marks(ctx)
	}
	return w.scripted.Marks(ctx)
}

// Counting from the end takes two passes, and the error of the second is that of the address.
func TestResolveMarksInTwoPasses(t *testing.T) {
	s := &scripted{tape: &tape{}, marks: []replay.Mark{{Seq: 1, Beats: []string{"warm"}}, {Seq: 2, Landed: "warm"}, {Seq: 3, Landed: "warm"}}}
	for range 3 {
		s.add(ms)
	}
	for passes, want := range []string{"other", "other", "2"} {
		got, message := resolve(replay.Open(&worn{s, passes}, toys, nil), "beat:warm#-2")
		if got != want || want == "other" && !strings.Contains(message, "worn out") {
			t.Errorf("%d passes: %s %s", passes, got, message)
		}
	}
}

func TestResolveMarks(t *testing.T) {
	s := &scripted{tape: &tape{}}
	for range 12 {
		s.add(ms)
	}
	s.marks = []replay.Mark{
		{Seq: 1, Beats: []string{"warm", "tea", "a#1"}},
		{Seq: 2, Turn: 1},
		{Seq: 3, Landed: "warm"},
		{Seq: 4, Landed: "warm"},
		{Seq: 5, Turn: 2},
		{Seq: 6, Turn: 2},
		{Seq: 7, Landed: "a#1"},
		{Seq: 8, Beats: []string{"other"}},
		{Seq: 9, Turn: 1},
		{Seq: 10, Landed: "warm"},
	}
	r := replay.Open(s, toys, nil)
	for _, tt := range []struct{ address, want string }{
		{"beat:warm", "3"},
		{"beat:warm#1", "3"},
		{"beat:warm#2", "4"},
		{"beat:warm#3+1500us", "11+500µs"}, // the offset of an event passes entries
		{"beat:warm#4", "none: it landed 3 times"},
		{"beat:warm#-1", "10"},
		{"beat:warm#-3", "3"},
		{"beat:warm#-4", "none: it landed 3 times"},
		{"beat:warm#-9223372036854775808", "none: it landed 3 times"},
		{"beat:a#1#1", "7"},
		{"beat:a#1", "none: no such beat"},
		{"beat:a#1#2", "none: it landed once"},
		{"beat:tea", "none: the beat has not landed"},
		{"beat:nothing", "none: the episode has no such beat; it has other"},
		{"turn:1", "2"},
		{"turn:2", "5"},
		{"turn:1#2", "9"},
		{"turn:2#-1", "6"},
		{"turn:2#3", "none: turn 2 was opened 2 times"},
		{"turn:3", "none: the last turn is 2"},
	} {
		got, message := resolve(r, tt.address)
		if want, rest, isError := strings.Cut(tt.want, ": "); got != want || isError && !strings.Contains(message, rest) {
			t.Errorf("%q = %s %s, want %s", tt.address, got, message, tt.want)
		}
	}
	s.marks = s.marks[:1]
	if got, message := resolve(r, "turn:1"); got != "none" || !strings.Contains(message, "no turn was opened yet") {
		t.Errorf("no turn: %s %s", got, message)
	}
	s.marks = nil
	if got, message := resolve(r, "beat:warm"); got != "none" || !strings.Contains(message, "tape plays no episode") {
		t.Errorf("no episode: %s %s", got, message)
	}
	s.err = errors.New("damaged")
	if got, message := resolve(r, "beat:warm#-1"); got != "other" || !strings.Contains(message, "damaged") {
		t.Errorf("a script that breaks off: %s %s", got, message)
	}
}

// A beat that no script has is answered with those of the newest script, up to twelve of them.
func TestUnknownBeats(t *testing.T) {
	for n, want := range map[int]string{
		0: "the episode has no beats", 1: "the episode has no such beat; it has b1", 2: "the episode has no such beat; it has b1, b2",
		12: "the episode has no such beat; it has b1, b2, b3, b4, b5, b6, b7, b8, b9, b10, b11, b12",
		13: "the episode has no such beat; it has b1, b2, b3, b4, b5, b6, b7, b8, b9, b10, b11, b12, …",
		30: "the episode has no such beat; it has b1, b2, b3, b4, b5, b6, b7, b8, b9, b10, b11, b12, …",
	} {
		beats := []string{}
		for i := range n {
			beats = append(beats, fmt.Sprint("b", i+1))
		}
		s := &scripted{tape: &tape{}, marks: []replay.Mark{{Seq: 1, Beats: []string{"old"}}, {Seq: 1, Beats: beats}}}
		s.add(ms)
		for _, address := range []string{"beat:x", "beat:x#-1"} {
			got, message := resolve(replay.Open(s, toys, nil), address)
			assert.Equal(t, "none", got)
			assert.Equal(t, fmt.Sprintf("no such address %q: %s", address, want), message)
		}
		assert.Len(t, beats, n, "the list of the source is not changed")
	}
}
