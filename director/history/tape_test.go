package history_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/director/history"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/enginetest"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

// scribe records a play on a tape, and as the lines of [otherHistory] what the director
// decided.
type scribe struct {
	otherHistory
	tape enginetest.Tape
}

func newScribe(t *testing.T) *scribe { return &scribe{otherHistory: otherHistory{t: t}} }

func (s *scribe) seq() eventlog.Seq { return eventlog.Seq(len(s.tape.List)) }

func (s *scribe) add(kind eventlog.Kind, word string, v signal.Value) {
	s.tape.Add(eventlog.Draft{Kind: kind, At: s.now, Data: session.AppendWord(nil, word, v)})
}

// decided records what the director decided.
func (s *scribe) decided(records []signal.Record, err error) {
	s.t.Helper()
	require.NoError(s.t, err)
	for _, r := range records {
		kind := eventlog.KindBeat
		if r.Word == episode.Word {
			kind = eventlog.KindDefine
		}
		s.add(kind, r.Word, r.Value)
	}
	s.record(records)
}

func (s *scribe) start(text string) {
	s.t.Helper()
	s.decided(s.state.Start(enginetest.Authored(s.t, text), director.Opening{}))
}

func (s *scribe) guide(turn int, text string) {
	s.t.Helper()
	_, records, err := s.state.Guide(director.TurnInput{Turn: turn, Text: text})
	s.decided(session.Utterance{Turn: turn, Role: "user", Text: text}.Before(records), err)
}

func (s *scribe) respond(turn int, text string) director.ResponseResult {
	s.t.Helper()
	out, records, err := s.state.Respond(director.Response{Turn: turn, Text: text})
	s.decided(session.Utterance{Turn: turn, Attempt: out.Attempt, Role: "character", Text: text}.Before(records), err)
	return out
}

func (s *scribe) judge(v director.Verdict) {
	s.t.Helper()
	_, records, err := s.state.Judge(v)
	s.decided(records, err)
}

// happens records an event outside the play, and what the director decides about it.
func (s *scribe) happens(kind episode.EventKind, name, payload string) {
	s.t.Helper()
	v := enginetest.Value(s.t, payload)
	if kind == episode.OfEffect {
		s.add(eventlog.KindEffect, agents.WordEffect, signal.NewObject(2).Text("kind", name).Add("payload", v).Value())
	} else {
		s.signal(&signal.Signal{ID: fmt.Sprint("s", s.seq()), Type: name, Source: "test", Timestamp: signal.Int(0), Payload: v})
	}
	s.decided(s.state.ExternalEvent(kind, name, v, fmt.Sprintf("%v:%d", kind, s.seq())))
}

func (s *scribe) signal(sig *signal.Signal) {
	s.tape.Add(eventlog.Draft{Kind: eventlog.KindSignal, At: s.now, Data: sig.Append(nil)})
}

func (s *scribe) replay() *replay.Replay {
	return session.NewReplay(&s.tape, session.Projections(session.ProjectionConfig{}), nil)
}

// again is the session in which a rerun plays.
type again struct {
	otherHistory
	asked []director.Response
}

func (a *again) Name() string { return "again" }

func (a *again) Respond(_ context.Context, _ director.Judge, r director.Response) error {
	a.asked = append(a.asked, r)
	return a.Decide(context.Background(), func(s *director.State) ([]signal.Record, error) {
		_, records, err := s.Respond(r)
		return records, err
	})
}

const listening = `{"id": "door", "opening_line": "Listen.", "beats": [
	{"id": "open", "character_instruction": "Open.", "target_turn": 1, "detection_type": "keyword", "detection_criteria": "opens", "requires_flag": "unlocked"},
	{"id": "calm", "description": "calm", "character_instruction": "Stay.", "target_turn": 2}],
	"flags": ["unlocked", "alarmed"],
	"flag_rules": [
		{"on_effect": "Interact", "when": {"signal.target_id": {"equals": "lock"}}, "set": "unlocked"},
		{"on_effect": "Lock", "clear": "unlocked"},
		{"on_signal": "error", "set": "alarmed"},
		{"on_signal": "Lock", "clear": "alarmed"}]}`

// A rerun hears the recorded signals and effects that rules are about, at their times, and
// neither the signals of the director itself nor those that were refused.
func TestRerunOfExternalEvents(t *testing.T) {
	was := newScribe(t)
	second := func() { was.now += time.Second }
	was.happens(episode.OfEffect, "Interact", `{"target_id": "lock"}`) // nothing plays
	was.start(listening)
	second()
	was.guide(1, "Who is there?")
	was.happens(episode.OfEffect, "Interact", `{"target_id": "window"}`)
	second()
	was.happens(episode.OfEffect, "Interact", `{"target_id": "lock"}`)
	was.happens(episode.OfSignal, "error", `{}`)
	was.happens(episode.OfSignal, "Interact", `{"target_id": "lock"}`)
	second()
	was.happens(episode.OfEffect, "Lock", `{}`)
	was.happens(episode.OfEffect, "error", `{}`)
	was.happens(episode.OfSignal, "Lock", `{}`)
	was.add(eventlog.KindEffect, agents.WordOutcome, enginetest.Value(t, `{"kind": "Interact", "payload": {"target_id": "lock"}}`))
	payload := enginetest.Value(t, `{}`)
	was.signal(&signal.Signal{ID: "refused", Type: "error", Source: "test", Timestamp: signal.Int(0), Payload: payload, Problem: "it is refused"})
	was.signal(&signal.Signal{ID: session.CueID(was.seq() + 1), Type: "error", Source: session.CueSource, Timestamp: signal.Int(0), Payload: payload})
	was.happens(episode.OfSignal, "error", `{}`)
	second()
	was.happens(episode.OfEffect, "Interact", `{"target_id": "lock"}`)
	was.respond(1, "She opens.")
	require.Contains(t, strings.Join(was.lines, "\n"), `"cause":"effect:`)

	now := &again{otherHistory: otherHistory{t: t}}
	result, err := history.Rerun(t.Context(), was.replay(), now, history.RerunConfig{})
	require.NoError(t, err)
	require.Equal(t, history.RerunResult{Turns: 1}, result)
	require.Equal(t, was.lines, now.lines)

	// A signal that only bears the name of the director, or only its number, is heard.
	for _, sig := range []signal.Signal{
		{ID: session.CueID(was.seq() + 2), Source: session.CueSource}, {ID: session.CueID(was.seq() + 1), Source: "test"},
	} {
		was := newScribe(t)
		was.start(listening)
		sig.Type, sig.Timestamp, sig.Payload = "error", signal.Int(0), payload
		if sig.Source == "test" {
			sig.ID = session.CueID(was.seq() + 1)
		}
		was.signal(&sig)
		was.decided(was.state.ExternalEvent(episode.OfSignal, "error", payload, fmt.Sprintf("signal:%d", was.seq())))
		now := &again{otherHistory: otherHistory{t: t}}
		_, err := history.Rerun(t.Context(), was.replay(), now, history.RerunConfig{})
		require.NoError(t, err)
		require.Equal(t, was.lines, now.lines)
		require.Contains(t, now.lines[len(now.lines)-1], "alarmed")
	}
}

// An episode that is given in the place of the recorded one may listen to other events.
func TestRerunListensAnew(t *testing.T) {
	was := newScribe(t)
	deaf := `{"id": "door", "flags": ["f"], "beats": [{"id": "a", "character_instruction": "A.", "target_turn": 1, "detection_type": "automatic"}]}`
	was.start(deaf)
	was.guide(1, "Well?")
	was.happens(episode.OfEffect, "Ring", `{}`)
	was.happens(episode.OfSignal, "Knock", `{}`)
	was.happens(episode.OfSignal, "Ring", `{}`)
	was.respond(1, "Hm.")
	hears := strings.Replace(deaf, `"flags": ["f"]`, `"flags": ["f", "g"], "flag_rules": [{"on_effect": "Ring", "set": "f"}, {"on_signal": "Knock", "set": "g"}]`, 1)
	now := &again{otherHistory: otherHistory{t: t}}
	_, err := history.Rerun(t.Context(), was.replay(), now, history.RerunConfig{Mode: history.RerunLoose, Episode: enginetest.Authored(t, hears)})
	require.NoError(t, err)
	var set []string
	for _, line := range now.lines {
		if strings.Contains(line, episode.FlagSet) {
			set = append(set, line)
		}
	}
	require.Len(t, set, 2)
	require.Contains(t, set[0], `"flag":"f","cause":"effect:`)
	require.Contains(t, set[1], `"flag":"g","cause":"signal:`)
}

// A rerun of a session without an episode, into a session that plays one, or without the judge
// that it needs, is refused.
func TestRerunRefuses(t *testing.T) {
	was := newScribe(t)
	was.happens(episode.OfSignal, "error", `{}`)
	_, err := history.Rerun(t.Context(), was.replay(), &again{otherHistory: otherHistory{t: t}}, history.RerunConfig{})
	require.EqualError(t, err, `sajou: no episode is played in session "tape"`)
	require.ErrorIs(t, err, history.ErrNoEpisode)

	was.start(listening)
	was.guide(1, "Well?")
	playing := &again{otherHistory: otherHistory{t: t}}
	result, err := history.Rerun(t.Context(), was.replay(), playing, history.RerunConfig{})
	require.NoError(t, err)
	require.Equal(t, history.RerunResult{Turns: 1}, result)
	_, err = history.Rerun(t.Context(), was.replay(), playing, history.RerunConfig{})
	require.EqualError(t, err, `sajou: session "again" plays an episode already`)
	_, err = history.Rerun(t.Context(), was.replay(), &again{otherHistory: otherHistory{t: t}}, history.RerunConfig{Mode: history.RerunLive})
	require.EqualError(t, err, "sajou: no judge to ask again")
	_, err = history.Rerun(t.Context(), was.replay(), &again{otherHistory: otherHistory{t: t}}, history.RerunConfig{Episode: enginetest.Authored(t, `{"id": "other"}`)})
	require.EqualError(t, err, `sajou: the session plays no episode of that id: it is "other", and the session plays "door"`)
	require.ErrorIs(t, err, history.ErrEpisodeID)

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = history.Rerun(ended, was.replay(), &again{otherHistory: otherHistory{t: t}}, history.RerunConfig{})
	require.ErrorIs(t, err, context.Canceled)
	_, err = history.Verdicts(ended, was.replay())
	require.ErrorIs(t, err, context.Canceled)
	_, err = history.ProgressAt(ended, was.replay(), was.seq())
	require.ErrorIs(t, err, context.Canceled)
	_, err = history.ProgressAt(t.Context(), was.replay(), 1)
	require.EqualError(t, err, `sajou: no episode is played in session "tape" at entry 1`)
	for _, err := range history.Turns(ended, was.replay(), 1, was.seq()) {
		require.ErrorIs(t, err, context.Canceled)
	}
	for _, err := range history.Differences(ended, was.replay(), was.replay()) {
		require.ErrorIs(t, err, context.Canceled)
	}
}

// A rerun in mode live gives the responses to the target, with the messages before them, and
// takes no recorded verdict.
func TestRerunLiveResponses(t *testing.T) {
	was := newScribe(t)
	was.start(listening)
	was.guide(1, "One?")
	for turn, text := range []string{"First.", "Second."} {
		if turn > 0 {
			was.guide(turn+1, "Two?")
		}
		out := was.respond(turn+1, text)
		require.Len(t, out.Questions, 1)
		q := out.Questions[0]
		was.judge(director.Verdict{Turn: q.Turn, Attempt: q.Attempt, Subject: q.Subject, Raw: []string{"NO", "YES"}[turn]})
	}
	now := &again{otherHistory: otherHistory{t: t}}
	result, err := history.Rerun(t.Context(), was.replay(), now, history.RerunConfig{Mode: history.RerunLive, Judge: enginetest.Says("NO")})
	require.NoError(t, err)
	require.Equal(t, history.RerunResult{Turns: 2}, result)
	for i := range now.asked {
		now.asked[i].Before = nil
	}
	require.Equal(t, []director.Response{{Turn: 1, Attempt: 1, Text: "First."}, {Turn: 2, Attempt: 1, Text: "Second."}}, now.asked)
	require.NotContains(t, strings.Join(now.lines, "\n"), `"raw"`)
}

// The names of the modes are read back.
func TestRerunModes(t *testing.T) {
	for _, mode := range []history.RerunMode{history.RerunStrict, history.RerunLoose, history.RerunLive} {
		got, ok := history.ParseRerunMode(mode.String())
		require.True(t, ok)
		require.Equal(t, mode, got)
	}
	require.Equal(t, []string{"strict", "loose", "live"}, []string{history.RerunStrict.String(), history.RerunLoose.String(), history.RerunLive.String()})
	for _, name := range []string{"", "Strict", "other"} {
		got, ok := history.ParseRerunMode(name)
		require.False(t, ok, name)
		require.Zero(t, got)
	}
}

// An error about a prompt says which of the two are known.
func TestPromptErrors(t *testing.T) {
	about := episode.Subject{Kind: episode.AboutObjective, ID: "g"}
	recorded, asked := episode.DigestOf("recorded"), episode.DigestOf("asked")
	for _, c := range []struct {
		err  history.PromptError
		want string
	}{
		{history.PromptError{Asked: asked}, fmt.Sprintf(`was not asked in the recording: its prompt is %v`, asked)},
		{history.PromptError{Asked: asked, Rebuilt: true}, fmt.Sprintf(`was not asked in the recording: its prompt is %v`, asked)},
		{history.PromptError{Asked: asked, Recorded: recorded}, fmt.Sprintf(`cannot be asked as it was: the prompt is %v, and %v was recorded with messages that the log does not have`, asked, recorded)},
		{history.PromptError{Asked: asked, Recorded: recorded, Rebuilt: true}, fmt.Sprintf(`is another: its prompt is %v, and %v was recorded`, asked, recorded)},
	} {
		c.err.Turn, c.err.Subject = 7, about
		require.EqualError(t, &c.err, `sajou: turn 7: the question about objective "g" `+c.want)
	}
	stopped := &history.StoppedError{Turn: 3, Seq: 9, Err: director.ErrTurn}
	require.EqualError(t, stopped, fmt.Sprintf("sajou: turn 3 cannot be played on from entry 9: %v", director.ErrTurn))
	require.ErrorIs(t, stopped, director.ErrTurn)
}

// Without a judge to ask, the recorded verdicts in mode live are refused, and a recorded failure
// is one again.
func TestJudgeOfVerdicts(t *testing.T) {
	was := newScribe(t)
	was.start(`{"id": "e", "policy": {"judge_retries": 1}, "beats": [{"id": "b", "description": "b", "character_instruction": "B.", "target_turn": 1}]}`)
	was.guide(1, "One?")
	q := was.respond(1, "First.").Questions[0]
	was.judge(director.Verdict{Turn: 1, Attempt: 1, Subject: q.Subject, Model: "m", Raw: "what", Failure: "no network"})
	was.judge(director.Verdict{Turn: 1, Attempt: 1, Subject: q.Subject, Try: 2, Model: "n", Raw: "YES", Latency: 5})
	all, err := history.Verdicts(t.Context(), was.replay())
	require.NoError(t, err)
	require.Equal(t, 2, all.Len())
	_, _, err = all.Judge(history.RerunLive, nil, nil).Judge(t.Context(), q)
	require.EqualError(t, err, "sajou: no judge to ask again")
	for _, mode := range []history.RerunMode{history.RerunStrict, history.RerunLoose} {
		judge := all.Judge(mode, nil, nil)
		model, raw, err := judge.Judge(t.Context(), q)
		require.EqualError(t, err, "no network")
		require.Equal(t, []string{"m", "what"}, []string{model, raw})
		for range 2 { // the last answer stays
			model, raw, err = judge.Judge(t.Context(), q)
			require.NoError(t, err)
			require.Equal(t, []string{"n", "YES"}, []string{model, raw})
		}
	}
	// A live rerun reports an answer that leads to another verdict, and a failure.
	var told []history.VerdictDifference
	differs := func(d history.VerdictDifference) { told = append(told, d) }
	live := all.Judge(history.RerunLive, enginetest.Says("NO"), differs)
	for range 3 {
		_, raw, err := live.Judge(t.Context(), q)
		require.NoError(t, err)
		require.Equal(t, "NO", raw)
	}
	require.Len(t, told, 3)
	require.Equal(t, []string{"unclear", "yes", "yes"}, []string{told[0].Recorded.Finding, told[1].Recorded.Finding, told[2].Recorded.Finding})
	require.Equal(t, []bool{true, false, false}, []bool{told[0].Recorded.Again, told[1].Recorded.Again, told[2].Recorded.Again})
	require.Equal(t, int64(5), told[1].Recorded.Latency)
	failing := all.Judge(history.RerunLive, enginetest.JudgeFunc(func(context.Context, director.Question) (string, error) { return "YES", errNoModel }), differs)
	told = nil
	for range 2 {
		_, _, err := failing.Judge(t.Context(), q)
		require.ErrorIs(t, err, errNoModel)
	}
	require.Len(t, told, 1, "unclear was recorded first")
	require.Equal(t, errNoModel.Error(), told[0].Now.Failure)
	require.Equal(t, "YES", told[0].Now.Raw)
}
