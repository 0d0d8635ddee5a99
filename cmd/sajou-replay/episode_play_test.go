package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	tea "charm.land/bubbletea/v2"
	"github.com/clipperhouse/displaywidth"
	"pgregory.net/rapid"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/director"
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
	args := append([]string{"-C", store, "-s", session, "episode", "play"}, flags...)
	r := sajouReplay(t.Context(), t, strings.NewReader(lines), args...)
	if r.code != 0 {
		t.Fatalf("play: exit %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	return r
}

// headOf returns where a session of a store stands, folded from its first entry
// with no judge anywhere near.
func headOf(t *testing.T, store, session string) (head eventlog.Head, digests string) {
	t.Helper()
	engine, err := sajou.Open(store, sajou.Config{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	travel, err := engine.Replay(session).Open()
	if err != nil {
		t.Fatal(err)
	}
	fold, err := travel.At(t.Context(), replay.Moment{Seq: travel.Head().Seq})
	if err != nil {
		t.Fatal(err)
	}
	return fold.Head(), fmt.Sprint(fold.Digests())
}

// A play gives the same log each time, its states are the same live and folded
// again, and all guidance can be derived anew.
func TestEpisodePlayIsReplayed(t *testing.T) {
	ctx := t.Context()
	var heads []eventlog.Head
	for range 2 {
		a := &app{stdin: strings.NewReader(strings.Join(interviewLines, "\n")), stdout: io.Discard, stderr: io.Discard, store: filepath.Join(t.TempDir(), "store"), format: "text"}
		f := playFlags{manual: true}
		engine, err := a.open(f.config(0))
		if err != nil {
			t.Fatal(err)
		}
		defer engine.Close()
		e, err := a.episodeNamed(t.Context(), "interview")
		if err != nil {
			t.Fatal(err)
		}
		s, err := a.sitDown(ctx, engine, e, &f)
		if err != nil {
			t.Fatal(err)
		}
		c, err := f.cast(s.episode)
		if err != nil {
			t.Fatal(err)
		}
		s.actor, s.judge = c.actor, c.judge
		if err := a.playLines(ctx, s, &page{o: a.output(), s: s}); err != nil {
			t.Fatal(err)
		}
		live, err := s.session.State(ctx)
		if err != nil {
			t.Fatal(err)
		}
		var issued []eventlog.Entry
		for entry, err := range s.session.Entries(ctx, 1) {
			if err != nil {
				t.Fatal(err)
			}
			if r, err := sajou.BeatOf(&entry); err == nil && r.Word == director.GuidanceIssued {
				issued = append(issued, entry)
			}
		}
		if err := engine.Close(); err != nil {
			t.Fatal(err)
		}
		head, again := headOf(t, a.store, "interview")
		if now := fmt.Sprint(live.Digests()); head != live.Head() || again != now {
			t.Errorf("folded again it is %v %s, live %v %s", head, again, live.Head(), now)
		}
		heads = append(heads, head)

		engine, err = sajou.Open(a.store, sajou.Config{ReadOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		defer engine.Close()
		travel, err := engine.Replay("interview").Open()
		if err != nil {
			t.Fatal(err)
		}
		if len(issued) != 10 {
			t.Errorf("guidance was issued %d times in 10 turns", len(issued))
		}
		for _, entry := range issued {
			fold, err := travel.At(ctx, replay.Moment{Seq: entry.Seq - 1})
			if err != nil {
				t.Fatal(err)
			}
			r, err := sajou.BeatOf(&entry)
			if err == nil {
				err = sajou.DirectorOf(fold).CheckGuidance(r.Value)
			}
			if err != nil {
				t.Errorf("guidance of entry %d: %v", entry.Seq, err)
			}
		}
	}
	if heads[0] != heads[1] {
		t.Errorf("the same play gave %v and %v", heads[0], heads[1])
	}
}

// However often the user leaves and comes back, the log is the one of a play in
// one go.
func TestEpisodePlayInParts(t *testing.T) {
	store := filepath.Join(t.TempDir(), "store")
	playText(t, store, "a", strings.Join(interviewLines, "\n"), "--manual-time")
	whole, _ := headOf(t, store, "a")
	store = filepath.Join(t.TempDir(), "store")
	for _, line := range interviewLines {
		playText(t, store, "a", line, "--manual-time")
	}
	if parts, _ := headOf(t, store, "a"); parts != whole {
		t.Errorf("in parts it stands at %v, in one go at %v", parts, whole)
	}
}

// A program that ended in the middle of a turn leaves nothing that another one
// could not take up: a turn without a response, verdicts that are awaited, a
// choice that was not said.
func TestEpisodePlayTakesUp(t *testing.T) {
	want := filepath.Join(t.TempDir(), "store")
	playText(t, want, "a", strings.Join(interviewLines, "\n"), "--manual-time")
	whole, _ := headOf(t, want, "a")
	for _, left := range []string{"opened", "chosen", "awaited"} {
		store := filepath.Join(t.TempDir(), "store")
		playText(t, store, "a", strings.Join(interviewLines[:4], "\n"), "--manual-time")
		leaveInterview(t, store, left)
		r := playText(t, store, "a", strings.Join(interviewLines[5:], "\n"))
		if !strings.Contains(r.stdout, "name_range  landed in turn 5, verified") {
			t.Errorf("%s: %s", left, r.stdout)
		}
		if head, _ := headOf(t, store, "a"); head != whole {
			t.Errorf("%s: taken up it stands at %v, in one go at %v", left, head, whole)
		}
	}
}

// leaveInterview chooses in the session a of a store and ends there: before the
// choice is said, before there is a response to it, or before that is judged.
func leaveInterview(t *testing.T, store, where string) {
	ctx := t.Context()
	f := playFlags{manual: true}
	a := &app{store: store, session: "a"}
	engine, err := a.open(f.config(0))
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	s, err := a.sitDown(ctx, engine, nil, &f)
	if err != nil {
		t.Fatal(err)
	}
	judge := hangingJudge{make(chan struct{})}
	s.actor, s.judge = scripted{bundledScript(s.episode)}, func(string) sajou.Judge { return judge }
	advance := func() {
		if _, err := s.news(ctx); err != nil {
			t.Fatal(err)
		}
		if more, err := s.advance(ctx); !more || err != nil {
			t.Fatalf("%s: %v, %v", where, more, err)
		}
	}
	if answer, err := s.take(ctx, "range"); err != nil || answer != (reply{}) {
		t.Fatalf("%+v, %v", answer, err)
	}
	if where == "chosen" {
		return
	}
	if advance(); where == "opened" {
		return
	}
	if _, err := s.news(ctx); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1) // holds the one end
	go func() {
		_, err := s.advance(ctx)
		ended <- err
	}()
	<-judge.asked
	if err := engine.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, eventlog.ErrClosed) {
		t.Fatalf("the judge was asked, and: %v", err)
	}
}

// hangingJudge says that it was asked, and nothing more.
type hangingJudge struct{ asked chan struct{} }

func (j hangingJudge) Judge(ctx context.Context, _ director.Question) (model, answer string, err error) {
	close(j.asked)
	<-ctx.Done()
	return "", "", ctx.Err()
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
	Messages []sajou.Message
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
	t.Setenv(characterKey, "character-secret")
	t.Setenv(judgeKey, "judge-secret")
	character, judge := newService(t), newService(t)
	file := filepath.Join(t.TempDir(), "tea.json")
	const tea = `{"id": "tea", "turn_budget": 3, "situation": "A kitchen.", "opening_line": "Come in.", "scene_objective": "Be kind.", "beats": [
		{"id": "warm", "description": "the guest is put at ease", "character_instruction": "Make them feel at home.", "target_turn": 2}]}`
	if err := os.WriteFile(file, []byte(tea), 0o600); err != nil {
		t.Fatal(err)
	}
	store := filepath.Join(t.TempDir(), "store")
	args := []string{"-C", store, "episode", "play", "-s", "a", "--character-url", character.URL, "--model", "actor", "--judge-url", judge.URL, "--judge-model", "critic"}
	character.answers <- "Sit \x1b[31mdown.\nTea?"
	judge.answers <- "NO."
	character.answers <- ""
	r := sajouReplay(t.Context(), t, strings.NewReader("Hello.\nIs it late?\n"), append(args, file)...)
	if r.code != exitCannotRun || !strings.Contains(r.stderr, "the character does not answer: ") || !strings.Contains(r.stderr, "episode play -s a --character-url ") {
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
	if r.code != exitInterrupted || !strings.Contains(r.stderr, "to go on from here:") {
		t.Errorf("exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
	if r := playText(t, store, "interview", ""); !strings.Contains(r.stdout, "Morgan: (pours two glasses") {
		t.Errorf("taken up:\n%s", r.stdout)
	}

	ctx, cancel = context.WithCancel(t.Context())
	waiting, idle := io.Pipe()
	defer idle.Close()
	cancel()
	if r := sajouReplay(ctx, t, waiting, "-C", store, "episode", "play"); r.code != exitInterrupted {
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
	long := strings.Repeat("x", maxSaid+1)
	if r := sajouReplay(t.Context(), t, strings.NewReader(long), "-C", store, "episode", "play"); r.code != exitMisuse || !strings.Contains(r.stderr, "a line is longer than 64 KiB") {
		t.Errorf("a line without an end: exit %d, %s", r.code, r.stderr)
	}
	engine, err := sajou.Open(store, sajou.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	if r := sajouReplay(t.Context(), t, nil, "-C", store, "--wait", "0", "episode", "play"); r.code != exitLocked {
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
	if code := <-p.code; code != exitInterrupted {
		t.Errorf("exit %d after ctrl-C, want %d", code, exitInterrupted)
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

// Keys edit the line as anywhere else, and the cursor stays where it is seen.
func TestConsoleKeys(t *testing.T) {
	e, err := (&app{}).episodeNamed(t.Context(), "interview")
	if err != nil {
		t.Fatal(err)
	}
	c := &console{s: &sitting{episode: e, actor: standIn{}}, cols: 24}
	press := func(keys ...tea.Key) {
		for _, k := range keys {
			c.Update(tea.KeyPressMsg(k))
		}
	}
	ctrl := func(r rune) tea.Key { return tea.Key{Code: r, Mod: tea.ModCtrl} }
	typed := func(s string) (keys []tea.Key) {
		for _, r := range s {
			keys = append(keys, tea.Key{Code: r, Text: string(r)})
		}
		return keys
	}
	for _, step := range []struct {
		what string
		keys []tea.Key
		want string // with | where the cursor is
	}{
		{"typing", typed("one two"), "one two|"},
		{"left", []tea.Key{{Code: tea.KeyLeft}, {Code: tea.KeyLeft}}, "one t|wo"},
		{"backspace", []tea.Key{{Code: tea.KeyBackspace}}, "one |wo"},
		{"delete", []tea.Key{{Code: tea.KeyDelete}}, "one |o"},
		{"home", []tea.Key{{Code: tea.KeyHome}, {Code: tea.KeyBackspace}}, "|one o"},
		{"typing there", typed("日"), "日|one o"},
		{"end", []tea.Key{ctrl('e'), {Code: tea.KeyRight}}, "日one o|"},
		{"a word back", []tea.Key{ctrl('w')}, "日one |"},
		{"another", []tea.Key{ctrl('w')}, "|"},
		{"ctrl-U", append(typed("abc"), tea.Key{Code: tea.KeyLeft}, ctrl('u')), "|c"},
		{"ctrl-K", []tea.Key{ctrl('k')}, "|"},
	} {
		press(step.keys...)
		got := string(c.typed[:c.cursor]) + "|" + string(c.typed[c.cursor:])
		if got != step.want {
			t.Errorf("after %s the line is %q, want %q", step.what, got, step.want)
		}
	}
	c.Update(tea.PasteMsg{Content: "two\nlines\x1b[31m " + strings.Repeat("日本", 40)})
	if strings.ContainsFunc(string(c.typed), unicode.IsControl) {
		t.Errorf("pasted: %q", string(c.typed))
	}
	for range 100 {
		view := c.View()
		if view.Cursor == nil || view.Cursor.X < 2 || view.Cursor.X >= c.cols {
			t.Fatalf("the cursor is at %+v", view.Cursor)
		}
		for line := range strings.Lines(view.Content) {
			if w := displaywidth.String(strings.TrimRight(line, "\n")); w > c.cols {
				t.Fatalf("a line is %d wide in a window of %d: %q", w, c.cols, line)
			}
		}
		press(tea.Key{Code: tea.KeyLeft})
	}
	press(ctrl('e'))
	c.Update(tea.PasteMsg{Content: strings.Repeat("x", maxSaid)})
	if len(string(c.typed)) > maxSaid || len(c.remark) == 0 {
		t.Error("a line without an end was typed")
	}
}

// Wrapped lines have every word once and in order, and none is wider than there
// is room, unless it is one word.
func TestWrap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.RuneFrom([]rune("ab 日.\n\x1b"))).Draw(t, "text")
		prefix := rapid.SampledFrom([]string{"", "  · ", "Morgan: "}).Draw(t, "prefix")
		width := rapid.IntRange(1, 30).Draw(t, "width")
		lines := wrap(prefix, text, width)
		got := strings.Join(strings.Fields(strings.Join(lines, " ")), " ")
		if want := strings.Join(strings.Fields(prefix+printableWords(text)), " "); got != want {
			t.Errorf("%q became %q, want %q", text, lines, want)
		}
		for i, line := range lines {
			words := len(strings.Fields(line))
			if i == 0 {
				words -= len(strings.Fields(prefix))
			}
			if displaywidth.String(line) > width && words > 1 {
				t.Errorf("%q is wider than %d", line, width)
			}
		}
	})
}

func printableWords(text string) string {
	var words []string
	for word := range strings.FieldsSeq(text) {
		words = append(words, printable(word))
	}
	return strings.Join(words, " ")
}
