package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/agents/generate"
	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/director/play"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/replay"
)

// interviewLines play the interview to its end.
var interviewLines = []string{
	"Hello.", "A bridge.", "For my sister.", "She wanted to cross it.", "range", "What would be a reason?", "It was a long year.", "I would like that.",
	"take", "See you on Monday.",
}

func playText(t *testing.T, store, session, lines string, flags ...string) result {
	t.Helper()
	if sajouReplay(t.Context(), t, nil, "-C", store, "info", session).code == cli.ExitNotFound {
		flags = append(flags, "--new")
	}
	args := append([]string{"-C", store, "-s", session, "episode", "play"}, flags...)
	r := sajouReplay(t.Context(), t, strings.NewReader(lines), args...)
	if r.code != 0 {
		t.Fatalf("play: exit %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	return r
}

// headOf returns where a session of a store stands, folded from its first entry
// with no judge anywhere near.
func headOf(t *testing.T, store, session string) eventlog.Head {
	t.Helper()
	engine, err := sajou.Open(store, sajou.Config{ReadOnly: true})
	require.NoError(t, err)
	defer engine.Close()
	travel, err := engine.Replay(session)
	require.NoError(t, err)
	fold, err := travel.At(t.Context(), replay.Moment{Seq: travel.Head().Seq})
	require.NoError(t, err)
	return fold.Head()
}

// However often the user leaves and comes back, the log is the one of a play in
// one go.
func TestEpisodePlayInParts(t *testing.T) {
	store := filepath.Join(t.TempDir(), "store")
	playText(t, store, "a", strings.Join(interviewLines, "\n"), "--manual-time")
	whole := headOf(t, store, "a")
	store = filepath.Join(t.TempDir(), "store")
	for _, line := range interviewLines {
		playText(t, store, "a", line, "--manual-time")
	}
	if parts := headOf(t, store, "a"); parts != whole {
		t.Errorf("in parts it stands at %v, in one go at %v", parts, whole)
	}
}

// service is a chat completions API that answers as it is told.
type service struct {
	*httptest.Server
	requests chan chatRequest
	answers  chan string // "" is an error
}

type chatRequest struct {
	key      string
	Model    string
	Messages []generate.ChatMessage
}

func newService(t *testing.T) *service {
	s := &service{requests: make(chan chatRequest, 100), answers: make(chan string, 100)} // more than a test asks
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := chatRequest{key: r.Header.Get("Authorization")}
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
			t.Error(err)
		}
		s.requests <- q
		select {
		case answer := <-s.answers:
			if answer == "" {
				http.Error(w, "not now", http.StatusBadRequest)
				return
			}
			_ = json.NewEncoder(w).Encode(map[string]any{
				"model": "played", "choices": []any{map[string]any{"message": map[string]any{"content": answer}, "finish_reason": "stop"}},
			})
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// A model plays the character and another one judges. Each is sent its own key;
// a server that fails ends the sitting, and the turn is as it was.
func TestEpisodePlayByModels(t *testing.T) {
	t.Setenv(cli.CharacterKey, "character-secret")
	t.Setenv(cli.JudgeKey, "judge-secret")
	character, judge := newService(t), newService(t)
	file := filepath.Join(t.TempDir(), "tea.json")
	const tea = `{"id": "tea", "turn_budget": 3, "situation": "A kitchen.", "opening_line": "Come in.", "scene_objective": "Be kind.", "beats": [
		{"id": "warm", "description": "the guest is put at ease", "character_instruction": "Make them feel at home.", "target_turn": 2}]}`
	require.NoError(t, os.WriteFile(file, []byte(tea), 0o600))
	store := filepath.Join(t.TempDir(), "store")
	args := []string{"-C", store, "episode", "play", "-s", "a", "--character-url", character.URL, "--model", "actor", "--judge-url", judge.URL, "--judge-model", "critic"}
	character.answers <- "Sit \x1b[31mdown.\nTea?"
	judge.answers <- "NO."
	character.answers <- ""
	r := sajouReplay(t.Context(), t, strings.NewReader("Hello.\nIs it late?\n"), append(args, file, "--new")...)
	if r.code != cli.ExitCannotRun || !strings.Contains(r.stderr, "the character does not answer: ") || !strings.Contains(r.stderr, "episode play -s a --character-url ") {
		t.Fatalf("exit %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	if strings.Contains(r.stdout+r.stderr, "secret") || strings.Contains(r.stdout, "\x1b") || !strings.Contains(r.stdout, `Character: Sit \x1b[31mdown.`+"\nTea?\n") {
		t.Errorf("it is shown as\n%s%s", r.stdout, r.stderr)
	}
	character.answers <- "Stay as long as you like."
	judge.answers <- "YES."
	character.answers <- "Good night."
	r = sajouReplay(t.Context(), t, strings.NewReader("Good night.\n"), args...)
	if r.code != 0 || !strings.Contains(r.stdout, "warm  landed in turn 2, verified") || strings.Count(r.stdout, "Is it late?") != 1 {
		t.Fatalf("exit %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	var last chatRequest
	for range 4 {
		if last = <-character.requests; last.key != "Bearer character-secret" || last.Model != "actor" {
			t.Errorf("the character's server was asked with %+v", last)
		}
	}
	for range 2 {
		if q := <-judge.requests; q.key != "Bearer judge-secret" || q.Model != "critic" || !strings.Contains(q.Messages[0].Content, "the guest is put at ease") {
			t.Errorf("the judge's server was asked with %+v", q)
		}
	}
	system := last.Messages[0].Content
	for _, want := range []string{"You want: Be kind.", "DIRECTOR: ROMANTIC TENSION", "Pacing: RESOLVE"} {
		if !strings.Contains(system, want) {
			t.Errorf("the character is not told %q but\n%s", want, system)
		}
	}
	var said []string
	for _, m := range last.Messages[1:] {
		said = append(said, m.Role+": "+m.Content)
	}
	want := []string{
		"assistant: Come in.", "user: Hello.", "assistant: Sit \x1b[31mdown.\nTea?", "user: Is it late?", "assistant: Stay as long as you like.", "user: Good night.",
	}
	if !slices.Equal(said, want) {
		t.Errorf("the character remembers %q, want %q", said, want)
	}
}

// Who interrupts does not wait for a model, and can go on where the play stood.
func TestEpisodePlayInterrupted(t *testing.T) {
	character := newService(t)
	store := filepath.Join(t.TempDir(), "store")
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-character.requests
		cancel()
	}()
	in, typed := io.Pipe()
	defer typed.Close()
	go func() { _, _ = io.WriteString(typed, "Hello.\n") }()
	r := sajouReplay(ctx, t, in, "-C", store, "episode", "play", "--character-url", character.URL, "--model", "m")
	if r.code != cli.ExitInterrupted || !strings.Contains(r.stderr, "to go on from here:") {
		t.Errorf("exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
	if r := playText(t, store, "interview", ""); !strings.Contains(r.stdout, "Morgan: (pours two glasses") {
		t.Errorf("taken up:\n%s", r.stdout)
	}

	ctx, cancel = context.WithCancel(t.Context())
	waiting, idle := io.Pipe()
	defer idle.Close()
	cancel()
	if r := sajouReplay(ctx, t, waiting, "-C", store, "episode", "play"); r.code != cli.ExitInterrupted {
		t.Errorf("exit %d in an ended context: %s", r.code, r.stderr)
	}
}

// The exit codes of playing.
func TestEpisodePlayExitCodes(t *testing.T) {
	store := filepath.Join(t.TempDir(), "store")
	importLines(t, store, 2) // a session without an episode
	playText(t, store, "played", "Hello.")
	for _, tc := range []struct {
		args string
		code int
	}{
		{"interview extra", 2},
		{"", 0},
		{"interview", 0},
		{"nothing.json", 2},
		{"-s played", 0},
		{"-s played interview", 0},
		{"-s a", 2},
		{"-s a interview", 0},
		{"-s a", 0},
		{"-s plaid", 4},
		{"-s plaid interview", 4},
		{"-s plaid --new", 0},
		{"-s plaid --new", 2},
		{"interview --new", 0},
		{"-s \x01", 2},
		{"--script nothing.json", 2},
		{"--script x --character-url http://127.0.0.1", 2},
		{"--model m", 2},
		{"--judge-url http://127.0.0.1", 2},
		{"--judge-url nonsense --judge-model m", 2},
	} {
		args := append([]string{"-C", store, "--wait", "0", "episode", "play"}, strings.Fields(tc.args)...)
		r := sajouReplay(t.Context(), t, strings.NewReader(""), args...)
		if r.code != tc.code || strings.Count(r.stderr, "sajou-replay: ") > 1 {
			t.Errorf("episode play %s: exit %d, want %d\nstdout: %.300s\nstderr: %s", tc.args, r.code, tc.code, r.stdout, r.stderr)
		}
	}
	long := strings.Repeat("x", play.MaxLine+1)
	if r := sajouReplay(t.Context(), t, strings.NewReader(long), "-C", store, "episode", "play"); r.code != cli.ExitMisuse || !strings.Contains(r.stderr, "a line is longer than 64 KiB") {
		t.Errorf("a line without an end: exit %d, %s", r.code, r.stderr)
	}
	engine, err := sajou.Open(store, sajou.Config{})
	require.NoError(t, err)
	defer engine.Close()
	if r := sajouReplay(t.Context(), t, nil, "-C", store, "--wait", "0", "episode", "play"); r.code != cli.ExitLocked {
		t.Errorf("a store that is held: exit %d, %s", r.code, r.stderr)
	}
}

// On a terminal choices stand in the place of the input: keys mark them, enter
// chooses, and typing is no answer. What is left goes on where it stood.
func TestEpisodePlayOnTerminal(t *testing.T) {
	t.Setenv("TERM", "xterm-256color")
	t.Setenv("NO_COLOR", "1")
	store := filepath.Join(t.TempDir(), "store")
	playText(t, store, "a", strings.Join(interviewLines[:3], "\n"))
	p := onTerminal(t.Context(), t, 40, 90, "-C", store, "episode", "play", "-s", "a")
	p.until("\x1b[?25h") // a cursor: something can be typed
	p.press("\t")
	p.until("directions are shown")
	p.press("She wanted to go.\x17cross it.\r")
	p.until("enter chooses") // in the place of what can be typed
	p.press("x")
	p.until("nothing else is an answer here")
	p.press("\x03")
	if code := <-p.code; code != cli.ExitInterrupted {
		t.Errorf("exit %d after ctrl-C, want %d", code, cli.ExitInterrupted)
	}

	p = onTerminal(t.Context(), t, 40, 100, "-C", store, "episode", "play", "-s", "a")
	p.until("> 1  I'm flexible")
	p.press("\x1b[B\x1b[B\x1b[A\x1b[A\r") // down, down, up, up
	p.until("needs a reason")
	p.press("\x04")
	if code := <-p.code; code != 0 {
		t.Errorf("exit %d after ctrl-D", code)
	}
	if r := playText(t, store, "a", strings.Join(interviewLines[5:], "\n")); !strings.Contains(r.stdout, "name_range  landed in turn 5, verified") {
		t.Errorf("taken up:\n%s", r.stdout)
	}
}
