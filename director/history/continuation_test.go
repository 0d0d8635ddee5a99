package history_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/director/history"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/enginetest"
	"github.com/sajou-dev/sajou-go/internal/golden"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

// recordedStories returns the entries of the stories in testdata, one second from decision to
// decision, and their episodes.
func recordedStories(t *testing.T) (entries map[string][]eventlog.Entry, episodes map[string]map[string]*episode.Episode) {
	t.Helper()
	names, err := filepath.Glob("testdata/*.txtar")
	require.NoError(t, err)
	entries, episodes = map[string][]eventlog.Entry{}, map[string]map[string]*episode.Episode{}
	for _, name := range names {
		archive, err := txtar.ParseFile(name)
		require.NoError(t, err)
		told := slices.IndexFunc(archive.Files, func(f txtar.File) bool { return f.Name == "told" })
		_, p := perform(t, archive.Files[:told])
		at := time.Duration(0)
		for e, err := range p.ses.Entries(t.Context(), 1) {
			require.NoError(t, err)
			if e.Batch > 0 {
				at += time.Second
			}
			e.At = at
			entries[name] = append(entries[name], e)
		}
		episodes[name] = p.episodes
	}
	entries["silent"] = silence(t, false)
	return entries, episodes
}

// silence returns the entries of a play in which the character once says nothing, without
// the texts if they are omitted.
func silence(t *testing.T, omitted bool) (entries []eventlog.Entry) {
	t.Helper()
	clock := &enginetest.StoppedClock{Now: enginetest.StoryBegin}
	eng := enginetest.Memory(t, sajou.Config{Now: clock.Read, AfterFunc: clock.AfterFunc, OmitText: omitted})
	ses := enginetest.BeginManual(t, eng, "silent")
	d := ses.Director().With(enginetest.Says("NO"))
	require.NoError(t, d.Start(t.Context(), enginetest.Authored(t, enginetest.Tea), director.Opening{}))
	for i, said := range []string{"Come in.", "", "Sit down.", ""} {
		_, err := d.Guide(t.Context(), director.TurnInput{Turn: i + 1, Text: "Good evening."})
		require.NoError(t, err)
		_, err = d.Respond(t.Context(), director.Response{Turn: i + 1, Text: said})
		require.NoError(t, err)
	}
	for e, err := range ses.Entries(t.Context(), 1) {
		require.NoError(t, err)
		entries = append(entries, e)
	}
	return entries
}

// otherHistory is the history in which a continuation decides.
type otherHistory struct {
	t     *testing.T
	state director.State
	now   time.Duration
	lines []string
}

func (o *otherHistory) Reach(at time.Duration) { o.now = max(o.now, at) }

func (o *otherHistory) Decide(_ context.Context, f func(*director.State) ([]signal.Record, error)) error {
	records, err := f(&o.state)
	if err != nil {
		return err
	}
	o.record(records)
	return nil
}

func (o *otherHistory) record(records []signal.Record) {
	for _, r := range records {
		if r.Word != session.WordMessage {
			require.NoError(o.t, o.state.Apply(r.Word, r.Value))
		}
		o.lines = append(o.lines, fmt.Sprintf("%v %s %s", o.now, r.Word, r.Value.AppendJSON(nil)))
	}
}

// take takes over an entry that both histories have.
func (o *otherHistory) take(e *eventlog.Entry) {
	o.now = e.At
	if r, ok := session.DirectorRecordOf(e); ok {
		o.record([]signal.Record{r})
	} else if r, err := session.BeatOf(e); err == nil {
		o.record([]signal.Record{r})
	}
}

// hear records the reactions to a signal of the recording, which happens here too.
func (o *otherHistory) hear(e *eventlog.Entry) {
	sig, err := signal.DecodeSound(e.Data)
	require.NoError(o.t, err)
	if sig.Source == session.CueSource {
		return
	}
	o.now = max(o.now, e.At)
	records, err := o.state.ExternalEvent(episode.OfSignal, sig.Type, sig.Payload, fmt.Sprintf("signal:%d", e.Seq))
	require.NoError(o.t, err)
	o.record(records)
}

// continued is a continuation of a recording and all that comes of it.
type continued struct {
	otherHistory
	*history.Continuation
	played  int
	refused []string
	answers []string // of the models, with what they were shown
}

// models are those of a continuation; each "fails" from a turn on, unless that is 0.
type models struct {
	are   bool
	fails int
}

var errNoModel = errors.New("there is no answer today")

func newContinued(t *testing.T, m models) *continued {
	c := &continued{otherHistory: otherHistory{t: t}}
	cfg := history.ContinuationConfig{
		Refused: func(seq eventlog.Seq, word string, err error) {
			c.refused = append(c.refused, fmt.Sprintf("%d %s: %v", seq, word, err))
		},
		Played: func() { c.played++ },
	}
	if m.are {
		cfg.Judge = enginetest.JudgeFunc(func(_ context.Context, q director.Question) (string, error) {
			c.answers = append(c.answers, fmt.Sprintf("judge %d.%d %v %s try %d %v", q.Turn, q.Attempt, q.Subject.Kind, q.Subject.ID, q.Try, q.Digest))
			if m.fails > 0 && q.Turn >= m.fails {
				return "", errNoModel
			}
			return []string{"YES", "NO", "Hard to say."}[(q.Turn+q.Attempt+q.Try)%3], nil
		})
		cfg.Answer = func(_ context.Context, turn history.CharacterTurn) (string, error) {
			guidance, err := json.Marshal(turn.Guidance)
			require.NoError(t, err)
			c.answers = append(c.answers, fmt.Sprintf("answer %s %s %+v", turn.Episode.ID, guidance, turn.Messages))
			if m.fails > 0 && turn.Guidance.Turn >= m.fails {
				return "", errNoModel
			}
			return fmt.Sprintf("I have heard %d messages, and stay.", len(turn.Messages)), nil
		}
	}
	c.Continuation = history.NewContinuation(c, cfg)
	return c
}

// change is what happens to the first decision that the continuation plays.
type change func(ctx context.Context, c *continued, e *eventlog.Entry) error

func asItWas(ctx context.Context, c *continued, e *eventlog.Entry) error { return c.Play(ctx, e) }

func skipped(ctx context.Context, c *continued, e *eventlog.Entry) error { return c.Skip(ctx, e) }

// message returns the entry of a message in the place of another one.
func message(was *eventlog.Entry, u session.Utterance) *eventlog.Entry {
	e := *was
	r := u.Record()
	e.Kind, e.Data = eventlog.KindBeat, session.AppendWord(nil, r.Word, r.Value)
	return &e
}

func utteranceOf(e *eventlog.Entry) (u session.Utterance, ok bool) {
	if r, err := session.BeatOf(e); err == nil {
		return session.UtteranceOf(r)
	}
	return u, false
}

// saidOtherwise puts other words in the place of a message.
func saidOtherwise(ctx context.Context, c *continued, e *eventlog.Entry) error {
	u, ok := utteranceOf(e)
	if !ok {
		return c.Play(ctx, e)
	}
	u.Text = "In other words, she runs and stays for a toast."
	return c.Replace(ctx, e, message(e, u))
}

// replaced puts an entry in its own place.
func replaced(ctx context.Context, c *continued, e *eventlog.Entry) error {
	return c.Replace(ctx, e, e)
}

// twice lets an entry happen once more than in the recording.
func twice(ctx context.Context, c *continued, e *eventlog.Entry) error {
	if err := c.Replace(ctx, nil, e); err != nil {
		return err
	}
	return c.Play(ctx, e)
}

// saidBefore adds a message of the user in front of an input.
func saidBefore(ctx context.Context, c *continued, e *eventlog.Entry) error {
	if r, err := session.BeatOf(e); err == nil && r.Word == episode.TurnOpened {
		if err := c.Replace(ctx, nil, message(e, session.Utterance{Turn: int(r.Value.IntOf("turn")), Role: "user", Text: "I say something."})); err != nil {
			return err
		}
	}
	return c.Play(ctx, e)
}

// run plays a recording: the first n entries happened in both histories, and the decision
// behind them with a change.
func (c *continued) run(ctx context.Context, entries []eventlog.Entry, n int, changed change) error {
	for i := range entries {
		e := &entries[i]
		var err error
		switch own := e.Kind == eventlog.KindBeat || e.Kind == eventlog.KindDefine; {
		case i < n:
			c.take(e)
			c.Saw(e)
		case own && (i == n || slices.IndexFunc(entries[n+1:], func(e eventlog.Entry) bool { return e.Batch > 0 }) > i-n-1):
			err = changed(ctx, c, e)
		case own:
			err = c.Play(ctx, e)
		default:
			if err = c.Flush(ctx); err == nil && e.Kind == eventlog.KindSignal {
				c.hear(e)
			}
		}
		if err != nil {
			return err
		}
	}
	return c.Flush(ctx)
}

// decisions returns the numbers of entries in front of each decision of the director.
func decisions(entries []eventlog.Entry) (list []int) {
	for n, e := range entries {
		if e.Batch > 0 && (e.Kind == eventlog.KindBeat || e.Kind == eventlog.KindDefine) {
			list = append(list, n)
		}
	}
	return append(list, len(entries))
}

// A recording that is continued from any of its decisions on happens again as it was, and
// no model is asked.
func TestContinuedAsRecorded(t *testing.T) {
	entries, _ := recordedStories(t)
	for name, story := range entries {
		var want *continued
		before := 0
		for _, n := range slices.Backward(decisions(story)) {
			c := newContinued(t, models{are: n%2 == 0})
			change := asItWas
			if isMessage := n < len(story) && func() bool { _, ok := utteranceOf(&story[n]); return ok }(); isMessage && n%4 < 2 {
				change = replaced
			}
			require.NoError(t, c.run(t.Context(), story, n, change), "%s from %d", name, n)
			if want == nil {
				want = c
				require.Zero(t, c.played)
			}
			require.Equal(t, want.lines, c.lines, "%s from %d", name, n)
			require.Empty(t, c.refused, "%s from %d", name, n)
			require.Empty(t, c.answers, "%s from %d", name, n)
			require.GreaterOrEqual(t, c.played, before, "%s from %d", name, n)
			before = c.played
		}
		require.Greater(t, before, 10, name)
	}
}

// A recording is continued after one decision was skipped, other words were said or the
// episode was replaced, with models that answer and without.
func TestContinuedOtherwise(t *testing.T) {
	entries, episodes := recordedStories(t)
	changes := []struct {
		name string
		change
		episode bool
	}{{"as it was", asItWas, true}, {"skipped", skipped, false}, {"said otherwise", saidOtherwise, false}, {"said before", saidBefore, false}, {"said otherwise", saidOtherwise, true}, {"replaced", replaced, false}, {"twice", twice, false}}
	golden.Trace(t, "testdata/continued.txt", func(step func(name, text string)) {
		for _, name := range slices.Sorted(maps.Keys(entries)) {
			for i, n := range decisions(entries[name]) {
				for j, tt := range changes {
					m := []models{{}, {are: true}, {are: true, fails: 2}}[(i+j)%3]
					c := newContinued(t, m)
					if tt.episode {
						c.SetEpisode(episodes[name]["changed"])
					}
					err := c.run(t.Context(), entries[name], n, tt.change)
					var stopped *history.StoppedError
					if err != nil {
						require.ErrorAs(t, err, &stopped)
					}
					step(fmt.Sprintf("%s %d %s %v", filepath.Base(name), n, tt.name, m), fmt.Sprintf("%s\n%d played, refused:\n%s\nmodels:\n%s\n%v\n",
						strings.Join(c.lines, "\n"), c.played, strings.Join(c.refused, "\n"), strings.Join(c.answers, "\n"), err))
				}
			}
		}
	})
}

// A log without texts is not continued, and no model is asked in their place.
func TestContinuedWithoutTexts(t *testing.T) {
	story := silence(t, true)
	for _, word := range []string{episode.TurnOpened, episode.ResponseRecorded} {
		at := slices.IndexFunc(story, func(e eventlog.Entry) bool {
			r, err := session.BeatOf(&e)
			return err == nil && r.Word == word
		})
		c := newContinued(t, models{are: true})
		err := c.run(t.Context(), story, at, asItWas)
		var stopped *history.StoppedError
		require.ErrorAs(t, err, &stopped)
		require.ErrorIs(t, err, history.ErrNoText)
		require.Equal(t, story[at].Seq, stopped.Seq)
		require.Empty(t, c.answers)
	}
}

// A response to other words is not the recorded one: the character is shown the scene as it
// is now, and without a character the continuation stops there.
func TestContinuedScene(t *testing.T) {
	entries, _ := recordedStories(t)
	story := entries[filepath.Join("testdata", "dinner.txtar")]
	at := slices.IndexFunc(story, func(e eventlog.Entry) bool {
		u, ok := utteranceOf(&e)
		return ok && u.Turn == 2 && u.Role == "user"
	})
	require.Positive(t, at)
	c := newContinued(t, models{})
	err := c.run(t.Context(), story, at, saidOtherwise)
	var stopped *history.StoppedError
	require.ErrorAs(t, err, &stopped)
	require.ErrorIs(t, err, history.ErrScene)
	require.Equal(t, 2, stopped.Turn)
	r, err := session.BeatOf(&story[stopped.Seq-1])
	require.NoError(t, err)
	require.Equal(t, episode.ResponseRecorded, r.Word)

	c = newContinued(t, models{are: true})
	require.NoError(t, c.run(t.Context(), story, at, saidOtherwise))
	first := c.answers[slices.IndexFunc(c.answers, func(s string) bool { return strings.HasPrefix(s, "answer") })]
	require.Contains(t, first, `{Turn:2 Attempt:0 Role:user Text:In other words, she runs and stays for a toast.}]`, "the user's line is the last")
	require.Contains(t, strings.Join(c.lines, "\n"), "messages, and stay.")

	c = newContinued(t, models{are: true, fails: 2})
	err = c.run(t.Context(), story, at, saidOtherwise)
	require.ErrorIs(t, err, history.ErrModel)
	require.ErrorIs(t, err, errNoModel)

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	c = newContinued(t, models{are: true})
	require.ErrorIs(t, c.run(ended, story, at, asItWas), context.Canceled)
	require.Zero(t, c.played)
}
