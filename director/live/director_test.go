package live_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/director/live"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/enginetest"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

// stageTea plays the first turn of an episode before a judge.
func stageTea(t *testing.T, th *enginetest.StoppedClock, judge director.Judge) (*sajou.Session, *live.Director) {
	t.Helper()
	eng, err := sajou.Open("store", sajou.Config{FS: vfs.NewMem(), Now: th.Read, AfterFunc: th.AfterFunc, Judge: judge, JudgeTimeout: time.Second})
	require.NoError(t, err)
	t.Cleanup(func() { _ = eng.Close() })
	ses, err := eng.Session(t.Context(), "play")
	require.NoError(t, err)
	d := ses.Director()
	require.NoError(t, d.Start(t.Context(), enginetest.Authored(t, enginetest.Tea), director.Opening{}))
	if _, err := d.Guide(t.Context(), director.TurnInput{Turn: 1, Text: "Hello."}); err != nil {
		t.Fatal(err)
	}
	return ses, d
}

func landed(out director.ResponseResult) (ids []string) {
	for _, l := range out.Landed {
		ids = append(ids, l.Beat)
	}
	return ids
}

// The choice is the user's message: it is recorded once, whether the caller of the next
// turn names it or not, and however often the turn is guided.
func TestChoiceIsTheMessage(t *testing.T) {
	for _, text := range []string{"", "Yes, please."} {
		ses, d := stageTea(t, &enginetest.StoppedClock{Now: enginetest.StoryBegin}, enginetest.Says("YES"))
		ctx := t.Context()
		_, err := d.Respond(ctx, director.Response{Turn: 1, Text: "Come in, sit down."})
		require.NoError(t, err)
		_, err = d.Guide(ctx, director.TurnInput{Turn: 2, Text: "Thank you."})
		require.NoError(t, err)
		_, err = d.Respond(ctx, director.Response{Turn: 2, Text: "Would you like tea?"})
		require.NoError(t, err)
		c, err := d.Choose(ctx, "drink", "yes")
		require.NoError(t, err)
		if text != "" {
			text = c.Message.Content
		}
		for range 2 {
			_, err = d.Guide(ctx, director.TurnInput{Turn: 3, Text: text})
			require.NoError(t, err)
		}
		got := enginetest.Events(t, ses, "message", episode.ChoiceSelected, episode.TurnOpened)
		enginetest.WantLines(t, "the end of the story", got[len(got)-3:],
			`choiceSelected turn=2 beat="offer" choice="yes"`,
			fmt.Sprintf(`message turn=3 attempt=0 role="user" text=%q`, c.Message.Content),
			`turnOpened turn=3 choice="yes"`)
	}
}

// A played episode: the results are in the log, can be replayed without a judge, and a
// repeated call returns the first result.
func TestDirectorPlays(t *testing.T) {
	th := &enginetest.StoppedClock{Now: enginetest.StoryBegin}
	asked := 0
	ses, d := stageTea(t, th, enginetest.JudgeFunc(func(_ context.Context, q director.Question) (string, error) {
		if asked++; asked == 1 {
			return "Perhaps.", nil
		}
		return "YES.", nil
	}))
	ctx := t.Context()
	for range 2 { // the caller may have lost the first answer
		out, err := d.Respond(ctx, director.Response{Turn: 1, Text: "Come in, sit down."})
		if err != nil || !out.Evaluated {
			t.Fatalf("%+v, %v", out, err)
		}
	}
	if asked != 2 {
		t.Errorf("the judge was asked %d times, want once more after an unclear answer", asked)
	}
	g, err := d.Guide(ctx, director.TurnInput{Turn: 2, Text: "Thank you."})
	if err != nil || g.Directive == nil || g.Directive.Beat != "offer" {
		t.Fatalf("%+v, %v", g, err)
	}
	out, err := d.Respond(ctx, director.Response{Turn: 2, Text: "Would you like tea?"})
	if err != nil || !slices.Equal(landed(out), []string{"offer"}) || out.Choice == nil {
		t.Fatalf("%+v, %v", out, err)
	}
	if _, err := d.Guide(ctx, director.TurnInput{Turn: 3, Text: "I type instead."}); !errors.Is(err, director.ErrChoicePending) {
		t.Errorf("a choice is pending: %v", err)
	}
	for _, again := range []bool{false, true} {
		c, err := d.Choose(ctx, "drink", "yes")
		if err != nil || c.Again != again || c.Flag != "warmed" {
			t.Errorf("%+v, %v", c, err)
		}
	}
	if _, err := d.Choose(ctx, "drink", "no"); !errors.Is(err, director.ErrConflict) {
		t.Errorf("another option: %v", err)
	}
	got := strings.Join(enginetest.Events(t, ses, "message", episode.VerdictRecorded, episode.BeatLanded, episode.ChoiceSelected, episode.FlagSet), "\n")
	const want = `message turn=1 attempt=0 role="user" text="Hello."
message turn=1 attempt=1 role="character" text="Come in, sit down."
verdictRecorded turn=1 attempt=1 beat="warm" verdict="unclear" raw="Perhaps." again=true
verdictRecorded turn=1 attempt=1 beat="warm" verdict="yes" raw="YES."
beatLanded turn=1 beat="warm"
message turn=2 attempt=0 role="user" text="Thank you."
message turn=2 attempt=1 role="character" text="Would you like tea?"
verdictRecorded turn=2 attempt=1 beat="offer" verdict="yes"
beatLanded turn=2 beat="offer"
choiceSelected turn=2 beat="offer" choice="yes"
flagSet turn=2 flag="warmed"`
	if got != want {
		t.Errorf("events:\n%s\nwant:\n%s", got, want)
	}

	f, err := ses.State(ctx)
	require.NoError(t, err)
	r := replay.Open(logSource{ses}, session.Projections(session.ProjectionConfig{}), nil)
	replayed, err := r.At(ctx, replay.Moment{Seq: f.Head().Seq})
	if err != nil || enginetest.Digests(replayed) != enginetest.Digests(f) {
		t.Errorf("replayed %v, live %v, %v", enginetest.Digests(replayed), enginetest.Digests(f), err)
	}
	var first, last signal.Record
	for b, err := range d.Events(ctx, 1) {
		require.NoError(t, err)
		if first.Word == "" {
			first = b.Record
		}
		if last = b.Record; b.Word == episode.FlagSet {
			break
		}
	}
	if first.Word != episode.EpisodeStarted || last.Word != episode.FlagSet {
		t.Errorf("the iterator told from %s to %s", first.Word, last.Word)
	}
}

// logSource reads a session through its own door.
type logSource struct{ *sajou.Session }

func (s logSource) Genesis() eventlog.Hash { return eventlog.Genesis(s.Name()) }

// A judge that misbehaves lands no beat, loses no turn and blocks no caller.
func TestJudgeMisbehaves(t *testing.T) {
	for name, test := range map[string]struct {
		judge enginetest.JudgeFunc
		want  string // of the verdict
		pass  time.Duration
	}{
		"says neither":     {enginetest.Says("The answer is certainly YES"), `verdict="unclear" raw="The answer is certainly YES"`, 0},
		"says no":          {enginetest.Says("No. YES would be wrong"), `verdict="no"`, 0},
		"says nothing":     {enginetest.Says(""), `verdict="unclear"`, 0},
		"fails":            {func(context.Context, director.Question) (string, error) { return "YES", errors.New("HTTP 500") }, `failure="HTTP 500"`, 0},
		"panics":           {func(context.Context, director.Question) (string, error) { panic("boom") }, `failure="the judge panicked: boom"`, 0},
		"floods":           {enginetest.Says("YE" + strings.Repeat("S", 10<<20)), `verdict="unclear"`, 0},
		"hangs":            {func(ctx context.Context, _ director.Question) (string, error) { <-ctx.Done(); return "", ctx.Err() }, `failure="no verdict within 1s"`, time.Second},
		"is nobody at all": {nil, `failure="no judge"`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				th := &enginetest.StoppedClock{Now: enginetest.StoryBegin}
				var judge director.Judge
				if test.judge != nil {
					judge = test.judge
				}
				ses, d := stageTea(t, th, judge)
				var out director.ResponseResult
				var err error
				done := make(chan struct{})
				go func() {
					defer close(done)
					out, err = d.Respond(t.Context(), director.Response{Turn: 1, Text: "Come in."})
				}()
				synctest.Wait()
				if test.pass > 0 {
					th.Pass(test.pass)
				}
				<-done
				if err != nil || !out.Evaluated || len(out.Landed) > 0 {
					t.Fatalf("%+v, %v", out, err)
				}
				verdicts := enginetest.Events(t, ses, episode.VerdictRecorded)
				if len(verdicts) == 0 || !strings.Contains(verdicts[len(verdicts)-1], test.want) {
					t.Errorf("verdicts %.300q, want %s", verdicts, test.want)
				}
				g, err := d.Guide(t.Context(), director.TurnInput{Turn: 2, Text: "Well."})
				if err != nil || g.Directive == nil || g.Directive.Beat != "warm" {
					t.Errorf("the beat that did not land is not directed again: %+v, %v", g, err)
				}
			})
		})
	}
}

// warmAndPolite asks two questions about a response.
const warmAndPolite = `{"id": "tea", "policy": {"judge_retries": 0},
	"beats": [{"id": "warm", "character_instruction": "x", "target_turn": 1, "detection_type": "semantic", "detection_criteria": "warmth"}],
	"user_objective": "Be polite.", "success_condition": "semantic:the user is polite"}`

// The log holds verdicts in the order of their questions, not of their arrival. Those
// that arrive in time count, also behind one that does not.
func TestVerdictsHaveAnOrder(t *testing.T) {
	for _, stuck := range []string{"", "warm", "polite"} {
		synctest.Test(t, func(t *testing.T) {
			th := &enginetest.StoppedClock{Now: enginetest.StoryBegin}
			second := make(chan struct{})
			ses, _ := stageTea(t, th, nil)
			d := ses.Director().With(enginetest.JudgeFunc(func(ctx context.Context, q director.Question) (string, error) {
				if stuck != "" && strings.Contains(q.Prompt, stuck) {
					<-ctx.Done()
					return "", ctx.Err()
				}
				if strings.Contains(q.Prompt, "polite") {
					close(second)
				} else if stuck == "" {
					<-second // the first question is answered after the second
				}
				return "YES", nil
			}))
			if _, err := ses.Director().Respond(t.Context(), director.Response{Turn: 1, Text: "Hm."}); err != nil { // there is no judge
				t.Fatal(err)
			}
			require.NoError(t, d.Start(t.Context(), enginetest.Authored(t, warmAndPolite), director.Opening{}))
			if _, err := d.Guide(t.Context(), director.TurnInput{Turn: 1}); err != nil {
				t.Fatal(err)
			}
			var out director.ResponseResult
			var err error
			done := make(chan struct{})
			go func() {
				defer close(done)
				out, err = d.Respond(t.Context(), director.Response{Turn: 1, Text: "Come in, please."})
			}()
			synctest.Wait()
			th.Pass(time.Second)
			<-done
			if err != nil || !out.Evaluated || (len(out.Landed) > 0) != (stuck != "warm") || (len(out.Completed) > 0) != (stuck != "polite") {
				t.Errorf("%q does not answer: %+v, %v", stuck, out, err)
			}
			verdicts := enginetest.Events(t, ses, episode.VerdictRecorded)
			verdicts = verdicts[len(verdicts)-2:]
			if stuck == "" && !strings.Contains(verdicts[0], `beat="warm"`) {
				t.Errorf("verdicts %q", verdicts)
			}
		})
	}
}

// A start that is repeated, such as by a client that did not see the answer, begins one
// play. After something has happened, it begins another.
func TestStartAgain(t *testing.T) {
	th := &enginetest.StoppedClock{Now: enginetest.StoryBegin}
	eng, err := sajou.Open("store", sajou.Config{FS: vfs.NewMem(), Now: th.Read, AfterFunc: th.AfterFunc})
	require.NoError(t, err)
	defer func() { require.NoError(t, eng.Close()) }()
	ses, err := eng.Session(t.Context(), "play")
	require.NoError(t, err)
	d := ses.Director()
	tea, joined := enginetest.Authored(t, enginetest.Tea), enginetest.Authored(t, enginetest.Joined)
	start := func(e *episode.Episode, o director.Opening, plays int) {
		t.Helper()
		require.NoError(t, d.Start(t.Context(), e, o))
		assert.Len(t, enginetest.Events(t, ses, episode.EpisodeStarted), plays)
	}
	start(tea, director.Opening{}, 1)
	start(tea, director.Opening{}, 1)
	start(tea, director.Opening{Flags: []string{"late"}}, 2)
	start(tea, director.Opening{Flags: []string{"late"}}, 2)
	start(tea, director.Opening{Flags: []string{"late"}, Energy: "bold"}, 3)
	start(joined, director.Opening{}, 4)
	start(tea, director.Opening{}, 5)
	_, err = d.Guide(t.Context(), director.TurnInput{Turn: 1, Text: "Hello."})
	require.NoError(t, err)
	start(tea, director.Opening{}, 6)
}

// A verdict that arrives after it was given up is recorded and changes nothing. The next
// turn waits for the verdicts only until then.
func TestLateVerdict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := &enginetest.StoppedClock{Now: enginetest.StoryBegin}
		var mu sync.Mutex
		release := make(chan struct{})
		ses, d := stageTea(t, th, enginetest.JudgeFunc(func(context.Context, director.Question) (string, error) {
			mu.Lock()
			wait := release
			mu.Unlock()
			<-wait // regardless of its context
			return "YES", nil
		}))
		go func() { _, _ = d.Respond(t.Context(), director.Response{Turn: 1, Text: "Come in."}) }()
		synctest.Wait()
		guided := make(chan director.Guidance, 1)
		go func() {
			g, err := d.Guide(t.Context(), director.TurnInput{Turn: 2, Text: "Well."})
			if err == nil {
				guided <- g
			}
			close(guided)
		}()
		synctest.Wait()
		if len(guided) != 0 {
			t.Error("the next turn did not wait for the verdict")
		}
		th.Pass(time.Second)
		if g, ok := <-guided; !ok || g.Directive == nil || g.Directive.Beat != "warm" {
			t.Errorf("guidance %+v", g)
		}
		close(release)
		synctest.Wait()
		verdicts := enginetest.Events(t, ses, episode.VerdictRecorded)
		if len(verdicts) != 2 || !strings.Contains(verdicts[1], `verdict="yes" raw="YES" inactive=true`) {
			t.Errorf("verdicts %q", verdicts)
		}
		f, err := ses.State(t.Context())
		require.NoError(t, err)
		beats := session.DirectorOf(f).View().(map[string]any)["beats"].(map[string]any)
		if got := beats["warm"].(map[string]any)["status"]; got != "pending" {
			t.Errorf("the beat is %v", got)
		}
	})
}

// When closing the engine ends a call of the judge, no answer is recorded. The question stays
// open, and the next program asks it again.
func TestClosingIsNoAnswer(t *testing.T) {
	for range 12 { // the failed call and the end of the engine can be seen in either order
		synctest.Test(t, func(t *testing.T) {
			held := make(chan struct{})
			fs, closing := vfs.NewMem(), &closeWhenJudged{closed: make(chan error, 1)}
			cfg := sajou.Config{FS: fs, Metrics: sajou.Metrics{Director: closing}, Judge: enginetest.JudgeFunc(func(ctx context.Context, q director.Question) (string, error) {
				if strings.Contains(q.Prompt, "polite") {
					return "YES", nil
				}
				<-ctx.Done()
				return "", ctx.Err()
			})}
			eng, err := sajou.Open("store", cfg)
			require.NoError(t, err)
			closing.engine = eng
			ses, err := eng.Begin(t.Context(), "play", session.TimeManual)
			require.NoError(t, err)
			// While this sink holds up Close, the session still records.
			ses.Show(t.Context(), &enginetest.FaultySink{In: "Frame", Do: func() { <-held }}, 0)
			require.NoError(t, ses.Director().Start(t.Context(), enginetest.Authored(t, warmAndPolite), director.Opening{}))
			if _, err := ses.Director().Guide(t.Context(), director.TurnInput{Turn: 1}); err != nil {
				t.Fatal(err)
			}
			_, err = ses.Director().Respond(t.Context(), director.Response{Turn: 1, Text: "Come in."})
			assert.ErrorIs(t, err, eventlog.ErrClosed)
			close(held)
			require.NoError(t, <-closing.closed)

			eng, err = sajou.Open("store", sajou.Config{FS: fs})
			require.NoError(t, err)
			ses, err = eng.Session(t.Context(), "play")
			require.NoError(t, err)
			assert.Empty(t, enginetest.Events(t, ses, episode.VerdictRecorded))

			// A new episode does not wait for the judge of a program that has ended.
			require.NoError(t, ses.Director().Start(t.Context(), enginetest.Authored(t, enginetest.Tea), director.Opening{}))
			assert.Len(t, enginetest.Events(t, ses, episode.VerdictRecorded), 2)
			require.NoError(t, eng.Close())
		})
	}
}

// closeWhenJudged closes an engine when the first call of a judge is reported.
type closeWhenJudged struct {
	engine *sajou.Engine
	once   sync.Once
	closed chan error // receives the result of Close once
}

func (c *closeWhenJudged) JudgeCalled(context.Context, live.JudgeCall) {
	c.once.Do(func() {
		go func() { c.closed <- c.engine.Close() }()
		synctest.Wait()
	})
}

func (c *closeWhenJudged) DirectorCalled(context.Context, string, string, time.Duration, error) {}

func (c *closeWhenJudged) QuestionsGivenUp(string, int) {}
