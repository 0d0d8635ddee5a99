package generate_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/generate"
	agentslive "github.com/sajou-dev/sajou-go/agents/live"
	"github.com/sajou-dev/sajou-go/agents/view"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/enginetest"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

// The budget ends an answer, which stands. The prompt's own bound counts too.
func TestTokenBudget(t *testing.T) {
	for name, c := range map[string]struct {
		config      string
		budget, own int64
		want        int
	}{
		"setting":             {`{"token_budget":3}`, 0, 0, 3},
		"request":             {`{"token_budget":3}`, 2, 0, 2},
		"prompt":              {`{"token_budget":3}`, 0, 1, 1},
		"prompt asks more":    {`{"token_budget":3}`, 0, 7, 3},
		"none but the prompt": {`{"token_budget":0}`, 0, 4, 4},
	} {
		withAgent(t, session.TimeWall, c.config, func(th *cast) {
			gen := &enginetest.Scripted{Act: func(_ *enginetest.Scripted, _ context.Context, say func(string) bool) error {
				for say("x") {
				}
				return nil
			}}
			r := enginetest.Request("answer")
			r.Budget = c.budget
			r.Prompt = func(view.View) generate.Prompt { return generate.Prompt{MaxTokens: c.own} }
			var asked string
			r.Intent = func(text string) (agents.Intent, bool) { asked = text; return speak(text) }
			got, err := generate.Run(th.Context(), th.agent, gen, r)
			text := strings.Repeat("x", c.want)
			if err != nil || got.Finish != generate.FinishBudget || got.Text != text || asked != text || !got.Outcome.OK() {
				t.Errorf("%s: generated %+v, %v; want %q", name, got, err, text)
			}
			if gen.Prompts[0].MaxTokens != int64(c.want) {
				t.Errorf("%s: the generator was told %d", name, gen.Prompts[0].MaxTokens)
			}
			th.wantRecorded(got.Attempts)
		})
	}
}

// Text that no entry could hold is cut, at a character, and the stream ended. What
// is no UTF-8 is made so. Both are returned as they are recorded.
func TestTextBeyondAnEntry(t *testing.T) {
	withAgent(t, session.TimeWall, `{"token_budget":0,"deadline_ms":0}`, func(c *cast) {
		gen := &enginetest.Scripted{Act: func(_ *enginetest.Scripted, _ context.Context, say func(string) bool) error {
			for say(strings.Repeat("é", 50_000)) {
			}
			return nil
		}}
		got, err := generate.Run(c.Context(), c.agent, gen, enginetest.Request("long"))
		if err != nil || got.Finish != generate.FinishBudget || !got.Attempts[0].Cut || len(got.Text) < 1_000_000 ||
			strings.Trim(got.Text, "é") != "" {
			t.Errorf("%d bytes, finish %s, cut %v, %v", len(got.Text), got.Finish, got.Attempts[0].Cut, err)
		}
		odd, err := generate.Run(c.Context(), c.agent, enginetest.Saying("a\xc3", "\xa9\xff\x00"), enginetest.Request("odd"))
		if err != nil || odd.Text != "aé\uFFFD\x00" {
			t.Errorf("generated %q, %v", odd.Text, err)
		}
		// Each byte that is none grows when it is made a character.
		grown, err := generate.Run(c.Context(), c.agent, enginetest.Saying(strings.Repeat("\xffa", 300_000)), enginetest.Request("grown"))
		if err != nil || !grown.Attempts[0].Cut || grown.Finish != generate.FinishStop || !strings.HasPrefix(grown.Text, "\uFFFDa\uFFFDa") {
			t.Errorf("%d bytes, %+v, %v", len(grown.Text), grown.Finish, err)
		}
		c.wantRecorded(slices.Concat(got.Attempts, odd.Attempts, grown.Attempts),
			agentslive.ReasonCompleted, agentslive.ReasonCompleted, agentslive.ReasonCompleted)
	})
}

// A store that is opened again has the answers, and the token of a generation
// that was cut off is replaced by that of its next attempt.
func TestGenerationsAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := vfs.NewMem()
		open := func() (*sajou.Engine, *sajou.Session) {
			eng, err := sajou.Open("store", sajou.Config{FS: fs})
			require.NoError(t, err)
			ses, err := eng.Session(t.Context(), "a")
			require.NoError(t, err)
			return eng, ses
		}
		eng, ses := open()
		g := enginetest.Register(t, ses.Agents(), "A", nil)
		done := make(chan error, 1)
		go func() {
			_, err := generate.Run(t.Context(), g, enginetest.Stalling(true, nil, "half"), enginetest.Request("answer"))
			done <- err
		}()
		synctest.Wait()
		require.NoError(t, eng.Close())
		assert.ErrorIs(t, <-done, eventlog.ErrClosed, "cut off")

		eng, ses = open()
		defer func() { _ = eng.Close() }()
		g, err := ses.Agents().Agent(t.Context(), "A")
		require.NoError(t, err)
		r := enginetest.Request("answer")
		r.Intent = speak
		got, err := generate.Run(t.Context(), g, enginetest.Saying("whole"), r)
		if err != nil || got.Text != "whole" || !got.Outcome.OK() {
			t.Errorf("generated %+v, %v", got, err)
		}
	})
}

// Whatever an entry holds can be asked for an attempt.
func FuzzAttemptOf(f *testing.F) {
	f.Add([]byte("\x92\xa9generated\x82\xa4text\xa2hi\xa3cut\xc3"))
	f.Add([]byte("\x92\xa9generated\x90"))
	f.Add([]byte("\x92\xa5token\x80"))
	f.Add([]byte("\x92\xa9generated\x81\xa4text\x93\x01\x02"))
	f.Fuzz(func(t *testing.T, data []byte) {
		e := eventlog.Entry{Seq: 1, Kind: eventlog.KindEffect, Data: data}
		a, err := generate.AttemptOf(&e)
		r, bad := session.WorldRecordOf(&e)
		if want := bad == nil && r.Word == agents.WordGenerated && r.Value.Kind() == signal.KindObject; want != (err == nil) {
			t.Fatalf("%q: %v, want an attempt: %v", data, err, want)
		}
		if m, ok := r.Value.Get("text"); err == nil && ok {
			if text, _ := m.Text(); text != a.Text {
				t.Errorf("text %q, want %q", a.Text, text)
			}
		}
	})
}
