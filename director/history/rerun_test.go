package history_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/director/history"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/enginetest"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/session"
)

// story lists the director's entries of a session with their values.
func story(t *testing.T, ses *sajou.Session) (lines []string) {
	t.Helper()
	for e, err := range ses.Entries(t.Context(), 1) {
		require.NoError(t, err)
		if r, err := session.BeatOf(&e); err == nil {
			lines = append(lines, fmt.Sprintf("%v %s %s", e.At, r.Word, r.Value.AppendJSON(nil)))
		}
	}
	return lines
}

func differences(t *testing.T, eng *sajou.Engine, was, now string) (lines []string) {
	t.Helper()
	for d, err := range history.Differences(t.Context(), enginetest.Replay(t, eng, was), enginetest.Replay(t, eng, now)) {
		require.NoError(t, err)
		lines = append(lines, fmt.Sprintf("%d: %s %s: %q → %q", d.Turn, d.What, d.About, d.Was, d.Now))
	}
	return lines
}

// A rerun of an unchanged episode gives the same entries and asks no judge.
func TestRerunStrict(t *testing.T) {
	eng := enginetest.Memory(t, sajou.Config{})
	was := enginetest.PlayDinner(t, eng, enginetest.InTurn(enginetest.DinnerAnswers))
	for _, mode := range []history.RerunMode{history.RerunStrict, history.RerunLoose} {
		now := enginetest.BeginManual(t, eng, "again "+mode.String())
		reran, err := now.Director().Rerun(t.Context(), enginetest.Replay(t, eng, "dinner"), history.RerunConfig{Mode: mode, Episode: enginetest.Authored(t, enginetest.Dinner)})
		if err != nil || reran.Stopped != nil || reran.Turns != 6 {
			t.Fatalf("%v: %+v, %v", mode, reran, err)
		}
		want, got := strings.Join(story(t, was), "\n"), strings.Join(story(t, now), "\n")
		if got != want {
			t.Errorf("%v:\n%s\nwant:\n%s", mode, got, want)
		}
		if d := differences(t, eng, "dinner", now.Name()); d != nil {
			t.Errorf("%v: %q", mode, d)
		}
	}
	board, err := history.ProgressAt(t.Context(), enginetest.Replay(t, eng, "dinner"), was.Head().Seq)
	require.NoError(t, err)
	var rows []string
	for _, b := range board.Beats {
		late, _ := b.Late()
		rows = append(rows, fmt.Sprintf("%s %s [%v] %d %s %s %d", b.Beat.ID, b.Status, b.Directed, b.Landed, b.Method, b.Assurance, late))
	}
	want := []string{
		"greet completed [1] 1 automatic assumed 0", "toast completed [2] 2 semantic verified 0",
		"letter completed [3] 3 forced forced 0", "leave pending [4-5] 0   -5",
	}
	if !slices.Equal(rows, want) {
		t.Errorf("board %q", rows)
	}
	if c := board.Choices; c[0].Status != "selected" || c[0].Option != "yes" || c[1].Status != "declined" || c[1].Turn != 3 {
		t.Errorf("choices %+v", c)
	}
}

// Another text of a beat is another question: strict names it and stops, loose
// continues, and with live the judge may answer differently.
func TestRerunChanged(t *testing.T) {
	eng := enginetest.Memory(t, sajou.Config{})
	enginetest.PlayDinner(t, eng, enginetest.InTurn(enginetest.DinnerAnswers))
	from := enginetest.Replay(t, eng, "dinner")
	changed := enginetest.Authored(t, strings.Replace(enginetest.Dinner, "she proposes a toast", "she raises her glass", 1))

	_, err := enginetest.BeginManual(t, eng, "strict").Director().Rerun(t.Context(), from, history.RerunConfig{Episode: changed})
	var prompt *history.PromptError
	if !errors.As(err, &prompt) || prompt.Turn != 1 || prompt.Subject.ID != "toast" || !prompt.Rebuilt ||
		prompt.Recorded == prompt.Asked || !strings.Contains(err.Error(), prompt.Recorded.String()) || !strings.Contains(err.Error(), prompt.Asked.String()) {
		t.Errorf("strict: %v", err)
	}

	_, err = enginetest.BeginManual(t, eng, "loose").Director().Rerun(t.Context(), from, history.RerunConfig{Mode: history.RerunLoose, Episode: changed})
	if d := differences(t, eng, "dinner", "loose"); err != nil || d != nil {
		t.Errorf("loose: %v, %q", err, d)
	}

	live := enginetest.InTurn(map[string][]string{"1.2 toast": {"YES"}, "4.1 primary": {"YES"}})
	reran, err := enginetest.BeginManual(t, eng, "live").Director().Rerun(t.Context(), from, history.RerunConfig{Mode: history.RerunLive, Episode: changed, Judge: live})
	require.NoError(t, err)
	// The toast lands in turn 1, and the recorded input of the user declines its choice.
	got := strings.Join(differences(t, eng, "dinner", "live"), "\n")
	for _, want := range []string{
		`1: verdict beat:toast: "no (semantic)" → "yes (semantic)"`,
		`1: landed toast: "" → "verified by semantic, heard in turn 1"`,
		`1: choice drink: "" → "declined"`,
		`2: landed toast: "verified by semantic, heard in turn 2" → ""`,
		`2: flag drank: "set by choice:drink/yes" → ""`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("live, %+v, without %s:\n%s", reran, want, got)
		}
	}

	if _, err := enginetest.BeginManual(t, eng, "live").Director().Rerun(t.Context(), from, history.RerunConfig{}); err == nil {
		t.Error("a session that plays an episode was played into")
	}
	if _, err := enginetest.BeginManual(t, eng, "other").Director().Rerun(t.Context(), from, history.RerunConfig{Episode: enginetest.Authored(t, enginetest.Tea)}); !errors.Is(err, history.ErrEpisodeID) {
		t.Errorf("another episode: %v", err)
	}
	if _, err := enginetest.BeginManual(t, eng, "nobody").Director().Rerun(t.Context(), from, history.RerunConfig{Mode: history.RerunLive}); err == nil {
		t.Error("nobody was asked, and that was well")
	}
	if _, err := eng.Replay("nobody"); !errors.Is(err, eventlog.ErrNoSession) {
		t.Errorf("a session that does not exist: %v", err)
	}
}

// A rerun stops at a choice to which the recording has no answer, and names the place.
func TestRerunStops(t *testing.T) {
	eng := enginetest.Memory(t, sajou.Config{})
	enginetest.PlayDinner(t, eng, enginetest.InTurn(enginetest.DinnerAnswers))
	strict := enginetest.Authored(t, strings.Replace(enginetest.Dinner, `, "pending_choice": "free"`, "", 1))
	reran, err := enginetest.BeginManual(t, eng, "stops").Director().Rerun(t.Context(), enginetest.Replay(t, eng, "dinner"), history.RerunConfig{Mode: history.RerunLoose, Episode: strict})
	var stopped *history.StoppedError
	if err != nil || !errors.As(reran.Stopped, &stopped) || stopped.Turn != 4 || !errors.Is(stopped, director.ErrChoicePending) {
		t.Errorf("%+v, %v", reran, err)
	}
	gone := enginetest.Authored(t, strings.Replace(enginetest.Dinner, `{"id": "yes", "label": "To us.", "sets_flag": "drank"}, `, "", 1))
	reran, err = enginetest.BeginManual(t, eng, "gone").Director().Rerun(t.Context(), enginetest.Replay(t, eng, "dinner"), history.RerunConfig{Mode: history.RerunLoose, Episode: gone})
	d := differences(t, eng, "dinner", "gone")
	if err != nil || reran.Stopped != nil || !slices.Contains(d, `2: choice drink: "selected yes" → "declined"`) {
		t.Errorf("%+v, %v, %q", reran, err, d)
	}
}

// A log without texts can be read and not run again. A verdict that was given up is
// given up again, and a late one is late again.
func TestRerunOmitsAndExpires(t *testing.T) {
	eng := enginetest.Memory(t, sajou.Config{OmitText: true})
	enginetest.PlayDinner(t, eng, enginetest.InTurn(enginetest.DinnerAnswers))
	if _, err := enginetest.BeginManual(t, eng, "again").Director().Rerun(t.Context(), enginetest.Replay(t, eng, "dinner"), history.RerunConfig{}); !errors.Is(err, history.ErrNoText) {
		t.Errorf("without words: %v", err)
	}
	synctest.Test(t, func(t *testing.T) {
		th := &enginetest.StoppedClock{Now: enginetest.StoryBegin}
		release := make(chan struct{})
		eng := enginetest.Memory(t, sajou.Config{Now: th.Read, AfterFunc: th.AfterFunc, JudgeTimeout: time.Second})
		was := enginetest.BeginManual(t, eng, "was")
		d := was.Director().With(enginetest.JudgeFunc(func(context.Context, director.Question) (string, error) {
			<-release
			return "YES", nil
		}))
		require.NoError(t, d.Start(t.Context(), enginetest.Authored(t, enginetest.Tea), director.Opening{}))
		if _, err := d.Guide(t.Context(), director.TurnInput{Turn: 1, Text: "Hello."}); err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = d.Respond(t.Context(), director.Response{Turn: 1, Text: "Come in."}) }()
		synctest.Wait()
		th.Pass(time.Second)
		synctest.Wait()
		close(release)
		synctest.Wait()
		now := enginetest.BeginManual(t, eng, "now")
		if _, err := now.Director().Rerun(t.Context(), enginetest.Replay(t, eng, "was"), history.RerunConfig{}); err != nil {
			t.Fatal(err)
		}
		want, got := strings.Join(story(t, was), "\n"), strings.Join(story(t, now), "\n")
		if got != want || !strings.Contains(got, "no verdict within 1s") || !strings.Contains(got, "inactive") {
			t.Errorf("%s\nwant:\n%s", got, want)
		}
	})
}

// The recorded verdicts serve as a judge of any director.
func TestRecordedJudge(t *testing.T) {
	eng := enginetest.Memory(t, sajou.Config{})
	enginetest.PlayDinner(t, eng, enginetest.InTurn(enginetest.DinnerAnswers))
	verdicts, err := history.Verdicts(t.Context(), enginetest.Replay(t, eng, "dinner"))
	if err != nil || verdicts.Len() < 10 {
		t.Fatal(verdicts, err)
	}
	play := func(judge director.Judge) []string {
		other := enginetest.Memory(t, sajou.Config{})
		ses := enginetest.PlayDinner(t, other, judge)
		return enginetest.Events(t, ses, episode.BeatLanded, episode.ObjectiveCompleted, episode.FlagSet)
	}
	want := play(enginetest.InTurn(enginetest.DinnerAnswers))
	for _, mode := range []history.RerunMode{history.RerunStrict, history.RerunLoose} {
		if got := play(verdicts.Judge(mode, nil, nil)); !slices.Equal(got, want) {
			t.Errorf("%v: %q, want %q", mode, got, want)
		}
	}
	var differ []string
	judge := verdicts.Judge(history.RerunLive, enginetest.InTurn(map[string][]string{"2.2 toast": {"YES"}, "4.1 primary": {"Who knows", "YES"}}), func(d history.VerdictDifference) {
		differ = append(differ, fmt.Sprintf("%d.%d %s: %s → %s", d.Question.Turn, d.Question.Attempt, d.Question.Subject.ID, d.Recorded.Finding, d.Now.Raw))
	})
	play(judge)
	slices.Sort(differ)
	if !slices.Contains(differ, "4.1 primary: yes → Who knows") || !slices.Contains(differ, "2.1 toast: unclear → NO") {
		t.Errorf("differ %q", differ)
	}
	q := director.Question{Turn: 2, Attempt: 2, Subject: episode.Subject{ID: "toast"}, Digest: episode.DigestOf("x")}
	var prompt *history.PromptError
	if _, _, err := verdicts.Judge(history.RerunStrict, nil, nil).Judge(t.Context(), q); !errors.As(err, &prompt) || prompt.Recorded == (episode.ContentDigest{}) {
		t.Errorf("another prompt: %v", err)
	}
	q.Subject.ID = "nothing"
	if _, _, err := verdicts.Judge(history.RerunLoose, nil, nil).Judge(t.Context(), q); !errors.Is(err, history.ErrUnanswered) {
		t.Errorf("a beat that nobody asked about: %v", err)
	}
}

// A rerun repeats the external events, and a revision takes effect where it did in the
// recording.
func TestRerunHearsAndRevises(t *testing.T) {
	eng := enginetest.Memory(t, sajou.Config{})
	was := enginetest.BeginManual(t, eng, "was")
	ctx := t.Context()
	d := was.Director()
	do := func(err error) {
		t.Helper()
		require.NoError(t, err)
	}
	signal := func(n int64) {
		t.Helper()
		_, err := was.Record(ctx, sajou.Addition{Signals: enginetest.Step{Typ: "error"}.Record(t, int(n), n).Signals})
		do(err)
	}
	signal(1) // before a rule listens
	do(d.Start(ctx, enginetest.Authored(t, enginetest.Joined), director.Opening{}))
	_, err := d.Guide(ctx, director.TurnInput{Turn: 1, Text: "Who is there?"})
	do(err)
	_, err = d.Respond(ctx, director.Response{Turn: 1, Text: "There is a knock."})
	do(err)
	signal(2)
	_, err = d.Guide(ctx, director.TurnInput{Turn: 2, Text: "And now?"})
	do(err)
	do(d.Revise(ctx, enginetest.Authored(t, strings.Replace(enginetest.Joined, `"runs"`, `"flees"`, 1))))
	_, err = d.Respond(ctx, director.Response{Turn: 2, Text: "She flees."})
	do(err)

	now := enginetest.BeginManual(t, eng, "now")
	if reran, err := now.Director().Rerun(ctx, enginetest.Replay(t, eng, "was"), history.RerunConfig{}); err != nil || reran.Stopped != nil {
		t.Fatalf("%+v, %v", reran, err)
	}
	want, got := strings.Join(story(t, was), "\n"), strings.Join(story(t, now), "\n")
	if got != want || !strings.Contains(got, "episodeRevised") || !strings.Contains(got, `"flag":"alarmed","cause":"signal:`) {
		t.Errorf("%s\nwant:\n%s", got, want)
	}
	// Without the rule no external event is recorded.
	deaf := enginetest.Authored(t, strings.Replace(enginetest.Joined, `{"on_signal": "error", "set": "alarmed"}`, `{"on_signal": "fire", "set": "alarmed"}`, 1))
	if _, err := enginetest.BeginManual(t, eng, "deaf").Director().Rerun(ctx, enginetest.Replay(t, eng, "was"), history.RerunConfig{Episode: deaf}); err != nil {
		t.Fatal(err)
	}
	diff := strings.Join(differences(t, eng, "was", "deaf"), "\n")
	if !strings.Contains(diff, `1: flag alarmed: "set by a signal" → ""`) || !strings.Contains(diff, `2: landed alarm: "verified by keyword, heard in turn 2" → ""`) {
		t.Errorf("a rule less:\n%s", diff)
	}
}

// Readers of any log return, and give the same result when they read it again.
func FuzzScript(f *testing.F) {
	var pool []eventlog.Draft
	eng, err := sajou.Open("store", sajou.Config{FS: vfs.NewMem(), Judge: enginetest.InTurn(enginetest.DinnerAnswers)})
	require.NoError(f, err)
	ses, err := eng.Begin(context.Background(), "pool", session.TimeManual)
	require.NoError(f, err)
	p := ses.Director()
	must := func(err error) {
		if err != nil {
			f.Fatal(err)
		}
	}
	must(p.Start(context.Background(), enginetest.Authored(f, enginetest.Dinner), director.Opening{}))
	for n, text := range []string{"Sit.", "A toast.", "The letter."} {
		_, err := p.Guide(context.Background(), director.TurnInput{Turn: n + 1, Text: "Hm."})
		must(err)
		_, err = p.Respond(context.Background(), director.Response{Turn: n + 1, Text: text})
		must(err)
	}
	for e, err := range ses.Entries(context.Background(), 1) {
		must(err)
		pool = append(pool, eventlog.Draft{Kind: e.Kind, Data: e.Data})
	}
	must(eng.Close())
	all := make([]byte, len(pool))
	for i := range all {
		all[i] = byte(i)
	}
	f.Add(all, []byte(nil))
	f.Add(append(slices.Clone(all), all...), []byte("\x92\xaaturnOpened\x81\xa4turn\x05"))
	f.Add(all[:8], []byte("\x92\xafverdictRecorded\x83\xa4turn\x01\xa7attempt\x01\xa4beat\xa5toast"))
	f.Fuzz(func(t *testing.T, order, data []byte) {
		if len(order) > 256 || len(data) > 1<<12 {
			return
		}
		eng := enginetest.Memory(t, sajou.Config{})
		drafts := make([]eventlog.Draft, 0, len(order)+1)
		for _, o := range order {
			d := pool[int(o)%len(pool)]
			if o >= 128 && len(data) > 0 {
				d = eventlog.Draft{Kind: eventlog.KindBeat, Data: data}
			}
			drafts = append(drafts, d)
		}
		if len(drafts) == 0 {
			return
		}
		head, err := eng.Restore(t.Context(), "was", eventlog.Batch{Drafts: drafts})
		if err != nil {
			return
		}
		was := enginetest.Replay(t, eng, "was")
		end := head.Seq
		board, err := history.ProgressAt(t.Context(), was, end)
		if err != nil && !errors.Is(err, history.ErrNoEpisode) {
			t.Fatal(err)
		}
		if board != nil && len(board.Beats) != len(board.Episode.Beats) {
			t.Errorf("%d beats of %d", len(board.Beats), len(board.Episode.Beats))
		}
		if _, err := history.Verdicts(t.Context(), was); err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{"beat:toast#-1", "turn:2#2"} {
			a, err := replay.ParseAddress(text)
			if err != nil {
				t.Fatal(err)
			}
			if m, err := was.Resolve(t.Context(), a); err != nil && !errors.Is(err, replay.ErrNoAddress) || m.Seq > end {
				t.Errorf("%s is %v, %v", text, m, err)
			}
		}
		for _, d := range differences(t, eng, "was", "was") {
			t.Errorf("differs from itself: %s", d)
		}
		for _, mode := range []history.RerunMode{history.RerunStrict, history.RerunLoose} {
			now := enginetest.BeginManual(t, eng, mode.String())
			_, err := now.Director().Rerun(t.Context(), was, history.RerunConfig{Mode: mode})
			var prompt *history.PromptError
			if err != nil && !errors.Is(err, history.ErrNoEpisode) && !errors.Is(err, history.ErrNoText) && !errors.As(err, &prompt) {
				t.Errorf("%v: %v", mode, err)
			}
			if now.Head().Seq > 0 {
				differences(t, eng, "was", now.Name())
			}
		}
	})
}

// Messages that a judge saw and the log does not hold cannot be shown again: strict
// reports it, and loose does not need them.
func TestRerunUnknownMessages(t *testing.T) {
	eng := enginetest.Memory(t, sajou.Config{})
	was := enginetest.BeginManual(t, eng, "was")
	d := was.Director().With(enginetest.Says("YES"))
	require.NoError(t, d.Start(t.Context(), enginetest.Authored(t, enginetest.Tea), director.Opening{}))
	if _, err := d.Guide(t.Context(), director.TurnInput{Turn: 1, Text: "Hello."}); err != nil {
		t.Fatal(err)
	}
	before := []director.TranscriptLine{{Role: "user", Text: "of another evening"}}
	if _, err := d.Respond(t.Context(), director.Response{Turn: 1, Text: "Come in.", Before: before}); err != nil {
		t.Fatal(err)
	}
	var prompt *history.PromptError
	_, err := enginetest.BeginManual(t, eng, "strict").Director().Rerun(t.Context(), enginetest.Replay(t, eng, "was"), history.RerunConfig{})
	if !errors.As(err, &prompt) || prompt.Rebuilt {
		t.Errorf("strict: %v", err)
	}
	_, err = enginetest.BeginManual(t, eng, "loose").Director().Rerun(t.Context(), enginetest.Replay(t, eng, "was"), history.RerunConfig{Mode: history.RerunLoose})
	if d := differences(t, eng, "was", "loose"); err != nil || d != nil {
		t.Errorf("loose: %v, %q", err, d)
	}
}

// A loop over differences or turns that ends early leaves nothing behind, and a context that
// has ended ends the comparison.
func TestDifferencesEndEarly(t *testing.T) {
	eng := enginetest.Memory(t, sajou.Config{})
	enginetest.PlayDinner(t, eng, enginetest.InTurn(enginetest.DinnerAnswers))
	require.NoError(t, enginetest.BeginManual(t, eng, "empty").Director().Start(t.Context(), enginetest.Authored(t, enginetest.Dinner), director.Opening{}))
	was := enginetest.Replay(t, eng, "dinner")
	seen := 0
	for _, err := range history.Differences(t.Context(), was, enginetest.Replay(t, eng, "empty")) {
		require.NoError(t, err)
		seen++
		break
	}
	require.Equal(t, 1, seen)
	var turns []string
	for turn, err := range history.Turns(t.Context(), was, 1, was.Head().Seq) {
		require.NoError(t, err)
		turns = append(turns, fmt.Sprintf("%d.%d", turn.Play, turn.Number))
	}
	require.Equal(t, []string{"1.1", "1.2", "1.3", "1.4", "1.5"}, turns)
	for _, err := range history.Turns(t.Context(), was, 1, was.Head().Seq) {
		require.NoError(t, err)
		break
	}
	ended, end := context.WithCancel(t.Context())
	end()
	for _, err := range history.Differences(ended, was, was) {
		require.ErrorIs(t, err, context.Canceled)
	}
}
