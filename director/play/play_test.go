package play

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"

	tea "charm.land/bubbletea/v2"
	"github.com/clipperhouse/displaywidth"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/director/script"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/termtext"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/session"
)

// interviewLines play the interview to its end.
var interviewLines = []string{
	"Hello.", "A bridge.", "For my sister.", "She wanted to cross it.", "range", "What would be a reason?", "It was a long year.", "I would like that.",
	"take", "See you on Monday.",
}

// still returns a clock that does not advance.
var still = sajou.Config{
	Now:       func() time.Time { return time.Unix(0, 0) },
	AfterFunc: func(d time.Duration, f func()) func() bool { return time.AfterFunc(d, f).Stop },
}

// shown collects what a sitting shows.
type shown struct{ strings.Builder }

func (*shown) JSON() bool                    { return false }
func (s *shown) WriteLine(line string) error { s.WriteString(line + "\n"); return nil }
func (*shown) WriteEvent(any) error          { return errors.New("an event among lines") }
func (*shown) Flush() error                  { return nil }

func interview(t *testing.T) *episode.Episode {
	t.Helper()
	text, _, _ := script.Bundled("interview")
	e, diagnostics := episode.Parse("interview", text)
	require.NoError(t, diagnostics.Err(episode.ErrEpisode))
	return e
}

// sit opens a sitting of the interview in the session a of a store.
func sit(t *testing.T, store string) (*sajou.Engine, *Sitting) {
	t.Helper()
	engine, err := sajou.Open(store, still)
	require.NoError(t, err)
	session, err := engine.Begin(t.Context(), "a", session.TimeManual)
	require.NoError(t, err)
	s, err := Begin(t.Context(), session, interview(t))
	require.NoError(t, err)
	actor := ScriptedActor{BundledScript(s.Episode())}
	s.Cast(actor, actor.JudgeOf)
	return engine, s
}

// playLines plays lines in a sitting of their own, and returns the summary.
func playLines(t *testing.T, store string, lines ...string) string {
	t.Helper()
	engine, s := sit(t, store)
	page := &Page{Out: &shown{}}
	require.NoError(t, s.PlayLines(t.Context(), strings.NewReader(strings.Join(lines, "\n")), page))
	summary := &shown{}
	require.NoError(t, (&Page{Out: summary}).WriteSummary(t.Context(), s))
	require.NoError(t, engine.Close())
	return summary.String()
}

// foldedHead returns the head of the session a, folded from its first entry without a
// judge.
func foldedHead(t *testing.T, store string) (head eventlog.Head, digests string) {
	t.Helper()
	engine, err := sajou.Open(store, sajou.Config{ReadOnly: true})
	require.NoError(t, err)
	defer engine.Close()
	travel, err := engine.Replay("a")
	require.NoError(t, err)
	fold, err := travel.At(t.Context(), replay.Moment{Seq: travel.Head().Seq})
	require.NoError(t, err)
	return fold.Head(), fmt.Sprint(fold.Digests())
}

// Equal plays give equal logs, the live and the folded states are equal, and all
// guidance can be derived again.
func TestPlayIsReplayed(t *testing.T) {
	ctx := t.Context()
	var heads []eventlog.Head
	for range 2 {
		store := filepath.Join(t.TempDir(), "store")
		engine, s := sit(t, store)
		defer engine.Close()
		require.NoError(t, s.PlayLines(ctx, strings.NewReader(strings.Join(interviewLines, "\n")), &Page{Out: &shown{}}))
		live, err := s.session.State(ctx)
		require.NoError(t, err)
		var issued []eventlog.Entry
		for entry, err := range s.session.Entries(ctx, 1) {
			require.NoError(t, err)
			if r, err := session.BeatOf(&entry); err == nil && r.Word == episode.GuidanceIssued {
				issued = append(issued, entry)
			}
		}
		require.NoError(t, engine.Close())
		head, again := foldedHead(t, store)
		if now := fmt.Sprint(live.Digests()); head != live.Head() || again != now {
			t.Errorf("folded again it is %v %s, live %v %s", head, again, live.Head(), now)
		}
		heads = append(heads, head)

		engine, err = sajou.Open(store, sajou.Config{ReadOnly: true})
		require.NoError(t, err)
		defer engine.Close()
		travel, err := engine.Replay("a")
		require.NoError(t, err)
		if len(issued) != 10 {
			t.Errorf("guidance was issued %d times in 10 turns", len(issued))
		}
		for _, entry := range issued {
			fold, err := travel.At(ctx, replay.Moment{Seq: entry.Seq - 1})
			require.NoError(t, err)
			r, err := session.BeatOf(&entry)
			if err == nil {
				err = session.DirectorOf(fold).CheckGuidance(r.Value)
			}
			assert.NoErrorf(t, err, "guidance of entry %d", entry.Seq)
		}
	}
	if heads[0] != heads[1] {
		t.Errorf("the same play gave %v and %v", heads[0], heads[1])
	}
}

// The next program completes a turn in which the one before ended: without a response,
// with awaited verdicts, or with a choice that is not an input yet.
func TestTakesUp(t *testing.T) {
	want := filepath.Join(t.TempDir(), "store")
	playLines(t, want, interviewLines...)
	whole, _ := foldedHead(t, want)
	for _, left := range []string{"opened", "chosen", "awaited"} {
		store := filepath.Join(t.TempDir(), "store")
		playLines(t, store, interviewLines[:4]...)
		leaveInterview(t, store, left)
		if summary := playLines(t, store, interviewLines[5:]...); !strings.Contains(summary, "name_range  landed in turn 5, verified") {
			t.Errorf("%s: %s", left, summary)
		}
		if head, _ := foldedHead(t, store); head != whole {
			t.Errorf("%s: completed it stands at %v, in one go at %v", left, head, whole)
		}
	}
}

// leaveInterview chooses in the session a of a store and ends there: before the
// choice becomes input, before it has a response, or before the response is judged.
func leaveInterview(t *testing.T, store, where string) {
	ctx := t.Context()
	engine, s := sit(t, store)
	defer engine.Close()
	judge := hangingJudge{make(chan struct{})}
	s.Cast(s.actor, func(string) director.Judge { return judge })
	advance := func() {
		if _, err := s.unread(ctx); err != nil {
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
	if _, err := s.unread(ctx); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1) // receives the result once
	go func() {
		_, err := s.advance(ctx)
		ended <- err
	}()
	<-judge.asked
	require.NoError(t, engine.Close())
	require.ErrorIs(t, <-ended, eventlog.ErrClosed, "the judge was asked, and")
}

// hangingJudge reports that it was asked, and does not answer.
type hangingJudge struct{ asked chan struct{} }

func (j hangingJudge) Judge(ctx context.Context, _ director.Question) (model, answer string, err error) {
	close(j.asked)
	<-ctx.Done()
	return "", "", ctx.Err()
}

// Keys edit the line as in other line editors, and the cursor is shown at its place.
func TestConsoleKeys(t *testing.T) {
	c := &console{s: &Sitting{episode: interview(t), actor: StandIn{}}, cols: 24}
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
	c.Update(tea.PasteMsg{Content: strings.Repeat("x", MaxLine)})
	if len(string(c.typed)) > MaxLine || len(c.remark) == 0 {
		t.Error("a line without an end was typed")
	}
}

// Wrapped lines have every word once and in order, and only a line of one word is wider
// than the limit.
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
		words = append(words, termtext.Printable(word))
	}
	return strings.Join(words, " ")
}
