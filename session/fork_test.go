package session_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

func opening(t require.TestingT, text string) *eventlog.Entry {
	value, err := signal.ParseValue([]byte(text))
	require.NoError(t, err)
	return &eventlog.Entry{Seq: 1, Kind: eventlog.KindSession, Data: session.AppendWord(nil, "opened", value)}
}

// A label is read as it was written, with those of its parents, and the session is folded
// by the rules of the first parent.
func TestForkProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rules := rapid.IntRange(0, 2).Draw(t, "rules")
		text := `{"time":"manual"}`
		if rules > 0 {
			text = fmt.Sprintf(`{"time":"manual","rules":%d}`, rules)
		}
		first := opening(t, text)
		var want *session.Fork
		for i := range rapid.IntRange(1, 64).Draw(t, "depth") {
			next := session.Fork{
				Parent: fmt.Sprint("parent-", i), Head: eventlog.Head{Seq: eventlog.Seq(i + 9), Hash: eventlog.Genesis(fmt.Sprint(i))},
				At: eventlog.Seq(rapid.IntRange(1, 9).Draw(t, "at")), Entries: eventlog.Seq(i + 9),
			}
			data, err := session.WithFork(first, next)
			require.NoError(t, err)
			first = &eventlog.Entry{Seq: 1, Kind: eventlog.KindSession, Data: data}
			next.Of, want = want, &next
		}
		got := session.ForkOf(first)
		require.Equal(t, want.String(), got.String())
		require.Equal(t, rules, session.RulesOf(first))
		for of := got; of != nil; of, want = of.Of, want.Of {
			require.Equal(t, want.Entries, of.Entries)
		}
		f := projection.NewFold(session.Projections(session.ProjectionConfig{}), eventlog.Genesis("a"))
		require.NoError(t, f.Apply(first))
		again, err := projection.RestoreFold(f.Set(), f.Image())
		require.NoError(t, err)
		require.Equal(t, got.String(), session.StateOf(again).Fork().String())
		require.Equal(t, rules, session.StateOf(again).Rules())
	})
}

func TestNoFork(t *testing.T) {
	head := eventlog.Head{Seq: 3, Hash: eventlog.Genesis("a")}.String()
	for _, value := range []string{
		`{"time":"manual","rules":2}`,
		`{"time":"manual","rules":2,"fork":{"parent":"a","head":"` + head + `"}}`, // not under the number of forks
		`{"time":"manual","rules":3,"fork":{"parent":"a"}}`,
		`{"time":"manual","rules":3,"fork":{"parent":"","head":"` + head + `"}}`,
		`{"time":"manual","rules":3,"fork":{"parent":"a","head":"` + head + `","rules":-1}}`,
		`{"time":"manual","rules":3,"fork":{"parent":"a","head":"` + head + `","fork":{}}}`,
		`{"time":"manual","rules":3,"fork":7}`,
	} {
		assert.Nil(t, session.ForkOf(opening(t, value)), value)
	}
	fine := opening(t, `{"time":"manual","rules":3,"fork":{"parent":"a","head":"`+head+`"}}`)
	require.NotNil(t, session.ForkOf(fine))
	fine.Seq = 2
	require.Nil(t, session.ForkOf(fine))

	_, err := session.WithFork(&eventlog.Entry{Seq: 1, Kind: eventlog.KindSignal, Data: []byte{0xc0}}, session.Fork{})
	require.ErrorIs(t, err, eventlog.ErrInvalid)
	first := opening(t, `{"time":"manual","rules":2}`)
	for range 64 {
		data, err := session.WithFork(first, session.Fork{Parent: "a", Head: eventlog.Head{Seq: 3, Hash: eventlog.Genesis("a")}})
		require.NoError(t, err)
		first.Data = data
	}
	_, err = session.WithFork(first, session.Fork{Parent: "a", Head: eventlog.Head{Seq: 3, Hash: eventlog.Genesis("a")}})
	require.ErrorIs(t, err, eventlog.ErrInvalid)
}

// A session under the number of forks without a label is one of a newer program.
func TestRulesOfForksAlone(t *testing.T) {
	require.Equal(t, 3, session.RulesOf(opening(t, `{"time":"manual","rules":3}`)))
}
