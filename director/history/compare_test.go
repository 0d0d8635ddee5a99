package history_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/director/history"
	"github.com/sajou-dev/sajou-go/internal/enginetest"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

// happened is an event of a turn: its word and value.
type happened [2]string

func turnOf(t *testing.T, play, number int, events ...happened) *history.PlayedTurn {
	turn := &history.PlayedTurn{Play: play, Number: number}
	for _, e := range events {
		turn.Events = append(turn.Events, session.DirectorEvent{Record: signal.Record{Word: e[0], Value: enginetest.Value(t, e[1])}})
	}
	return turn
}

// Each event of a turn has one fact, which differs from a turn without the event.
func TestFactsOfEvents(t *testing.T) {
	for _, c := range []struct {
		event            happened
		what, about, now string
	}{
		{happened{episode.GuidanceIssued, `{"directive": {"beat": "b", "urgency": "required"}}`}, "directed", "b", "required"},
		{happened{episode.BeatLanded, `{"beat": "b", "method": "keyword", "assurance": "verified", "heard_at_turn": 4}`}, "landed", "b", "verified by keyword, heard in turn 4"},
		{happened{episode.BeatHeld, `{"beat": "b", "method": "semantic", "assurance": "assumed", "heard_at_turn": 5}`}, "held", "b", "assumed by semantic, heard in turn 5"},
		{happened{episode.BeatForced, `{"beat": "b", "line": "So."}`}, "forced", "b", "So."},
		{happened{episode.BeatMissed, `{"beat": "b", "cause": "deadline"}`}, "missed", "b", "deadline"},
		{happened{episode.ChoiceOffered, `{"choice_point": "p"}`}, "choice", "p", "offered"},
		{happened{episode.ChoiceSelected, `{"choice_point": "p", "choice": "o"}`}, "choice", "p", "selected o"},
		{happened{episode.ChoiceDeclined, `{"choice_point": "p"}`}, "choice", "p", "declined"},
		{happened{episode.FlagSet, `{"flag": "f", "cause": "beat:b"}`}, "flag", "f", "set by beat:b"},
		{happened{episode.FlagCleared, `{"flag": "f", "cause": "choice:p/o"}`}, "flag", "f", "cleared by choice:p/o"},
		{happened{episode.FlagSet, `{"flag": "f", "cause": "signal:17", "outside": true}`}, "flag", "f", "set by a signal"},
		{happened{episode.FlagCleared, `{"flag": "f", "cause": "effect:18", "outside": true}`}, "flag", "f", "cleared by an effect"},
		{happened{episode.FlagSet, `{"flag": "f", "cause": "elsewhere", "outside": true}`}, "flag", "f", "set by elsewhere"},
		{happened{episode.ObjectiveCompleted, `{"objective": "g", "cause": "semantic"}`}, "objective", "g", "completed by semantic"},
		{happened{episode.ObjectiveFailed, `{"objective": "g", "cause": "turn_budget"}`}, "objective", "g", "failed by turn_budget"},
		{happened{episode.EpisodeFailed, `{"cause": "beat:b"}`}, "episode", "", "failed by beat:b"},
		{happened{episode.PropRevealed, `{"prop": "k", "cause": "turn:2"}`}, "prop", "k", "revealed by turn:2"},
	} {
		with, without := turnOf(t, 2, 3, c.event), turnOf(t, 2, 3)
		require.Equal(t, []history.Difference{{Play: 2, Turn: 3, What: c.what, About: c.about, Now: c.now}}, history.CompareTurns(without, with), "%v", c.event)
		require.Equal(t, []history.Difference{{Play: 2, Turn: 3, What: c.what, About: c.about, Was: c.now}}, history.CompareTurns(with, without), "%v", c.event)
		require.Empty(t, history.CompareTurns(with, with), "%v", c.event)
		// Of a turn that one playing does not have, the other gives the number.
		require.Equal(t, []history.Difference{{Play: 2, Turn: 3, What: c.what, About: c.about, Was: c.now}}, history.CompareTurns(with, &history.PlayedTurn{}), "%v", c.event)
		require.Equal(t, []history.Difference{{Play: 2, Turn: 3, What: c.what, About: c.about, Now: c.now}}, history.CompareTurns(&history.PlayedTurn{}, with), "%v", c.event)
	}
	for _, e := range []happened{
		{episode.GuidanceIssued, `{"turn": 1}`},
		{episode.TurnOpened, `{"turn": 1}`},
		{episode.ResponseRecorded, `{"turn": 1}`},
		{episode.AttemptDropped, `{"turn": 1}`},
		{episode.TurnEvaluated, `{"turn": 1}`},
		{episode.DeadlineMissed, `{"beat": "b"}`},
		{episode.JudgementAsked, `{"beat": "b"}`},
		{episode.VerdictRecorded, `{"beat": "b", "verdict": "yes", "method": "semantic", "again": true}`},
		{episode.VerdictRecorded, `{"beat": "b", "verdict": "yes", "method": "semantic", "inactive": true}`},
	} {
		require.Empty(t, history.CompareTurns(turnOf(t, 1, 1), turnOf(t, 1, 1, e)), "%v", e)
	}
}

// The fact of a verdict has its attempt, its method, and the raw answer or the failure.
func TestFactsOfVerdicts(t *testing.T) {
	verdict := func(text string) *history.PlayedTurn { return turnOf(t, 1, 2, happened{episode.VerdictRecorded, text}) }
	was := verdict(`{"attempt": 3, "beat": "b", "method": "semantic", "verdict": "no", "raw": "No."}`)
	for _, c := range []struct {
		now  string
		want []history.Difference
	}{
		{`{"attempt": 3, "beat": "b", "method": "semantic", "verdict": "no", "raw": "Surely not."}`, nil},
		{`{"attempt": 3, "beat": "b", "method": "semantic", "verdict": "yes", "raw": "Yes."}`, []history.Difference{
			{Play: 1, Turn: 2, Attempt: 3, What: "verdict", About: "beat:b", Was: "no (semantic)", Now: "yes (semantic)", Says: "No.", SaysNow: "Yes."},
		}},
		{`{"attempt": 3, "beat": "b", "method": "semantic", "verdict": "unclear", "raw": "N", "failure": "no network"}`, []history.Difference{
			{Play: 1, Turn: 2, Attempt: 3, What: "verdict", About: "beat:b", Was: "no (semantic)", Now: "unclear (semantic)", Says: "No.", SaysNow: "failed: no network"},
		}},
		{`{"attempt": 3, "beat": "b", "method": "keyword", "verdict": "no"}`, []history.Difference{
			{Play: 1, Turn: 2, Attempt: 3, What: "verdict", About: "beat:b", Was: "no (semantic)", Now: "no (keyword)", Says: "No."},
		}},
		{`{"attempt": 4, "beat": "b", "method": "semantic", "verdict": "no", "raw": "No."}`, []history.Difference{
			{Play: 1, Turn: 2, Attempt: 3, What: "verdict", About: "beat:b", Was: "no (semantic)", Says: "No."},
			{Play: 1, Turn: 2, Attempt: 4, What: "verdict", About: "beat:b", Now: "no (semantic)", SaysNow: "No."},
		}},
		{`{"attempt": 3, "objective": "b", "method": "semantic", "verdict": "no", "raw": "No."}`, []history.Difference{
			{Play: 1, Turn: 2, Attempt: 3, What: "verdict", About: "beat:b", Was: "no (semantic)", Says: "No."},
			{Play: 1, Turn: 2, Attempt: 3, What: "verdict", About: "objective:b", Now: "no (semantic)", SaysNow: "No."},
		}},
	} {
		require.Equal(t, c.want, history.CompareTurns(was, verdict(c.now)), c.now)
	}
}

// A response that is dropped takes its outcome along, and not the verdicts about it. A
// guidance replaces the one before.
func TestFactsOfDroppedResponse(t *testing.T) {
	guided := happened{episode.GuidanceIssued, `{"directive": {"beat": "a", "urgency": "suggested"}}`}
	early := happened{episode.FlagSet, `{"flag": "early", "cause": "start"}`}
	response := happened{episode.ResponseRecorded, `{"attempt": 1}`}
	verdict := happened{episode.VerdictRecorded, `{"attempt": 1, "beat": "a", "method": "semantic", "verdict": "yes", "raw": "YES"}`}
	landed := happened{episode.BeatLanded, `{"beat": "a", "method": "semantic", "assurance": "verified", "heard_at_turn": 1}`}
	dropped := happened{episode.AttemptDropped, `{"attempt": 1}`}
	again := happened{episode.GuidanceIssued, `{"directive": {"beat": "b", "urgency": "overdue"}}`}
	none := happened{episode.GuidanceIssued, `{}`}
	difference := func(attempt int, what, about, now, says string) history.Difference {
		return history.Difference{Play: 1, Turn: 1, Attempt: attempt, What: what, About: about, Now: now, SaysNow: says}
	}
	directed, early1 := difference(0, "directed", "a", "suggested", ""), difference(0, "flag", "early", "set by start", "")
	judged, land := difference(1, "verdict", "beat:a", "yes (semantic)", "YES"), difference(0, "landed", "a", "verified by semantic, heard in turn 1", "")
	for _, c := range []struct {
		events []happened
		want   []history.Difference
	}{
		{[]happened{guided, early, response, verdict, landed}, []history.Difference{directed, early1, judged, land}},
		{[]happened{early, guided, response, landed, verdict}, []history.Difference{early1, directed, land, judged}},
		{[]happened{guided, early, response, verdict, landed, dropped}, []history.Difference{directed, early1, judged}},
		{[]happened{guided, response, landed, dropped, early, dropped}, []history.Difference{directed, early1}},
		{[]happened{guided, dropped}, []history.Difference{directed}},
		{[]happened{guided, again}, []history.Difference{difference(0, "directed", "b", "overdue", "")}},
		{[]happened{guided, early, none}, []history.Difference{early1}},
	} {
		require.Equal(t, c.want, history.CompareTurns(turnOf(t, 1, 1), turnOf(t, 1, 1, c.events...)), "%v", c.events)
	}
}

// Differences are in the order of the events, those of the earlier playing first.
func TestOrderOfDifferences(t *testing.T) {
	set := func(flag string) happened {
		return happened{episode.FlagSet, `{"flag": "` + flag + `", "cause": "start"}`}
	}
	order := func(ds []history.Difference) (all []string) {
		for _, d := range ds {
			all = append(all, d.What+" "+d.About)
		}
		return all
	}
	require.Equal(t, []string{"flag c", "flag a", "flag b"}, order(history.CompareTurns(turnOf(t, 1, 1), turnOf(t, 1, 1, set("c"), set("a"), set("b")))))
	require.Equal(t, []string{"flag a", "flag x", "flag b", "flag y"}, order(history.CompareTurns(turnOf(t, 1, 1, set("a"), set("b")), turnOf(t, 1, 1, set("x"), set("y")))), "a place that both have")
	require.Equal(t, []string{"flag a", "landed a"}, order(history.CompareTurns(turnOf(t, 1, 1, happened{episode.BeatLanded, `{"beat": "a"}`}), turnOf(t, 1, 1, set("a")))), "by the kind of fact then")
	cleared := happened{episode.FlagCleared, `{"flag": "b", "cause": "start"}`}
	require.Equal(t, []string{"flag a", "flag b"}, order(history.CompareTurns(turnOf(t, 1, 1, set("a"), set("b")), turnOf(t, 1, 1, cleared))), "the place in the earlier playing counts")
}
