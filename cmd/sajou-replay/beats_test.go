package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

// TestBeatsScript asks what became of episodes. Each file in testdata/beats is
// one story, told of a store that the command "play" makes of an episode.
func TestBeatsScript(t *testing.T) {
	judge := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"model":"m","choices":[{"index":0,"message":{"content":"NO"},"finish_reason":"stop"}]}`)
	}))
	t.Cleanup(judge.Close) // behind the scripts, which run side by side
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/beats",
		RequireExplicitExec: true,
		UpdateScripts:       *update,
		Setup: func(env *testscript.Env) error {
			env.Setenv("SAJOU_STORE", filepath.Join(env.WorkDir, "store"))
			env.Setenv("JUDGE", judge.URL)
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"play": func(ts *testscript.TestScript, _ bool, args []string) {
				ts.Check(playEvening(context.Background(), ts.Getenv("SAJOU_STORE"), args[0], args[1], ts.ReadFile(args[2])))
			},
		},
	})
}

// yesToast is a judge who sees a toast where there is one, at the second look.
type yesToast struct{ asked int }

func (j *yesToast) Judge(_ context.Context, q director.Question) (model, answer string, err error) {
	j.asked++
	switch {
	case !strings.Contains(q.Prompt, "\nTo you"):
		return "scripted", "NO", nil
	case j.asked%2 == 1:
		return "scripted", "That is hard to say.", nil
	}
	return "scripted", "YES, she does.", nil
}

// playEvening plays an episode as a user of some kind: one who answers, one
// who is silent, and one who types instead of choosing.
func playEvening(ctx context.Context, store, name, user, text string) (err error) {
	eng, err := sajou.Open(store, sajou.Config{Judge: &yesToast{}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, eng.Close()) }()
	ses, err := eng.Begin(ctx, name, session.TimeManual)
	if err != nil {
		return err
	}
	e, diagnostics := episode.Parse("evening.json", []byte(text))
	if err := diagnostics.Err(episode.ErrEpisode); err != nil {
		return err
	}
	sig, err := signal.Parse([]byte(`{"id":"s1","type":"doorbell","timestamp":1,"source":"house","payload":{}}`))
	if err != nil {
		return err
	}
	if _, err := ses.Signal(ctx, sig); err != nil {
		return err
	}
	d := ses.Director()
	if err := d.Start(ctx, e, director.Opening{}); err != nil {
		return err
	}
	var before []director.TranscriptLine
	for i, said := range []string{"Come in.", "To you, and to old times.", "It is late.", "Good night."} {
		in := director.TurnInput{Turn: i + 1, Text: "Well."}
		if user == "answers" && i == 2 {
			in.Text = ""
			before = append(before, director.TranscriptLine{Role: "user", Text: "To us."})
		}
		if user == "silent" && i > 1 {
			break
		}
		if _, err := d.Guide(ctx, in); err != nil {
			return err
		}
		if in.Text != "" {
			before = append(before, director.TranscriptLine{Role: "user", Text: in.Text})
		}
		out, err := d.Respond(ctx, director.Response{Turn: i + 1, Text: said, Before: before})
		if err != nil {
			return err
		}
		before = append(before, director.TranscriptLine{Role: "character", Text: said})
		for _, in := range out.Insertions {
			before = append(before, director.TranscriptLine{Role: "character", Text: in.Line})
		}
		if out.Choice != nil && user == "answers" {
			if _, err := d.Choose(ctx, out.Choice.ID, out.Choice.Options[0].ID); err != nil {
				return err
			}
		}
	}
	return nil
}

// TestBeatsExitCodes shows the code for every kind of answer and of mistake.
func TestBeatsExitCodes(t *testing.T) {
	store, dir := filepath.Join(t.TempDir(), "store"), t.TempDir()
	const text = `{"id": "e", "policy": {"pending_choice": "free"}, "beats": [{"id": "toast", "character_instruction": "Drink.", "target_turn": 1, "detection_type": "automatic"}]}`
	require.NoError(t, playEvening(t.Context(), store, "evening", "answers", text))
	importLines(t, store, 3) // session a, which plays none
	file, other := filepath.Join(dir, "e.json"), filepath.Join(dir, "other.json")
	for name, text := range map[string]string{file: text, other: strings.Replace(text, `"e"`, `"o"`, 1)} {
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	}
	for _, tc := range []struct {
		args string
		code int
	}{
		{"beats evening", 0},
		{"beats", 4},
		{"beats a", 4},
		{"beats nowhere", 4},
		{"beats evening more", 2},
		{"beats evening --at 1", 4},
		{"beats evening --at nonsense", 2},
		{"beats evening --at beat:toast", 0},
		{"beats evening --at beat:toast#2", 4},
		{"beats evening --at turn:9", 4},
		{"beats evening --timeline --verdicts", 2},
		{"beats a --timeline", 0},
		{"state evening beat:toast director.beats.toast.status", 0},
		{"state evening beat:nothing", 4},
		{"state evening turn:0", 2},
		{"cat evening turn:1..beat:toast", 0},
		{"report", 0},
		{"report evening", 0},
		{"report a", 4},
		{"report evening evening", 2},
		{"report nowhere", 4},
		{"report --svg " + dir, 1},
		{"episode rerun evening", 2},
		{"episode rerun evening --into evening", 2},
		{"episode rerun evening --into \x01", 2},
		{"episode rerun evening --into x --mode odd", 2},
		{"episode rerun evening --into x --mode live", 2},
		{"episode rerun evening --into x --judge-url http://localhost", 2},
		{"episode rerun evening --into x --mode live --judge-url nonsense --judge-model m", 2},
		{"episode rerun nowhere --into x", 4},
		{"episode rerun a --into x1", 4},
		{"episode rerun evening --into x2 --episode nothing.json", 2},
		{"episode rerun evening --into x3 --episode " + other, 1},
		{"episode rerun evening --into x4 --episode " + file, 0},
	} {
		args := append([]string{"-C", store, "--wait", "0"}, strings.Fields(tc.args)...)
		if r := sajouReplay(t.Context(), t, strings.NewReader(""), args...); r.code != tc.code || strings.Count(r.stderr, "\n") > 1 {
			t.Errorf("%s: exit %d, want %d\n%s%s", tc.args, r.code, tc.code, r.stdout, r.stderr)
		}
	}
}
