package sajou_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/provenance"
	"github.com/sajou-dev/sajou-go/signal"
)

// directed records a session with an episode of some turns between signals.
func directed(t *testing.T, dir string) {
	t.Helper()
	ctx := t.Context()
	tea, diagnostics := episode.Parse("tea.json", []byte(`{"id": "tea", "beats": [
		{"id": "offer", "character_instruction": "Offer tea.", "target_turn": 1, "detection_type": "keyword", "detection_criteria": "tea"},
		{"id": "leave", "character_instruction": "Show them out.", "target_turn": 3, "detection_type": "automatic"}]}`))
	require.NoError(t, diagnostics.Err(episode.ErrEpisode))
	eng, err := sajou.Open(dir, sajou.Config{SnapshotEvery: 5})
	require.NoError(t, err)
	ses, err := eng.Session(ctx, "a")
	require.NoError(t, err)
	d := ses.Director()
	require.NoError(t, d.Start(ctx, tea, director.Opening{}))
	for turn := 1; turn <= 3; turn++ {
		task := fmt.Sprintf("task-%d", turn%2)
		_, err = ses.Signal(ctx, &signal.Signal{
			ID: fmt.Sprint(turn), Type: "user.wave", Source: "test", CorrelationID: &task, Timestamp: signal.Int(int64(1000 * turn)), Payload: signal.NewObject(0).Value(),
		})
		require.NoError(t, err)
		_, err = d.Guide(ctx, director.TurnInput{Turn: turn, Text: "It is cold."})
		require.NoError(t, err)
		_, err = d.Respond(ctx, director.Response{Turn: turn, Text: "Some tea, then."})
		require.NoError(t, err)
	}
	require.NoError(t, eng.Close())
}

func indexFiles(t *testing.T, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, sajou.IndexFile+"*"))
	require.NoError(t, err)
	return names
}

// moments resolves addresses in a session, and returns the moments or the errors.
func moments(t *testing.T, r *replay.Replay) (list []string) {
	t.Helper()
	for _, text := range []string{
		"beat:offer", "beat:offer#-1", "beat:offer#2", "beat:leave", "beat:none", "turn:1", "turn:3", "turn:4", "turn:2#-1",
		"corr:task-1", "corr:task-1#2", "corr:task-1#-1", "corr:task-0", "corr:task-9", "corr:task-0#2",
	} {
		a, err := replay.ParseAddress(text)
		require.NoError(t, err)
		m, err := r.Resolve(t.Context(), a)
		list = append(list, fmt.Sprint(text, " = ", m, " ", err))
	}
	return list
}

// TestIndex: a session whose index is built for the first question answers as one without,
// also when the store is open for reading, and when the files are damaged or cannot be
// written. The index goes with its session.
func TestIndex(t *testing.T) {
	ctx := t.Context()
	dir := filepath.Join(t.TempDir(), "store")
	directed(t, dir)
	open := func(cfg sajou.Config) *sajou.Engine {
		eng, err := sajou.Open(dir, cfg)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, eng.Close()) })
		return eng
	}
	answers := func(eng *sajou.Engine) []string {
		r, err := eng.Replay("a")
		require.NoError(t, err)
		list := moments(t, r)
		path, err := provenance.ParsePath("stage.entities.test.x")
		require.NoError(t, err)
		b, err := provenance.Blame(ctx, r, path, replay.Moment{Seq: r.Head().Seq})
		return append(list, fmt.Sprint(b.Setting, err))
	}
	plain := open(sajou.Config{ReadOnly: true})
	want := answers(plain)
	require.Empty(t, indexFiles(t, dir), "the session is short")
	require.NoError(t, plain.Close())
	none := open(sajou.Config{ReadOnly: true, NoSnapshots: true, IndexFrom: 1})
	require.Equal(t, want, answers(none))
	require.Empty(t, indexFiles(t, dir))
	require.NoError(t, none.Close())

	done := eventlog.Seq(0)
	eng := open(sajou.Config{ReadOnly: true, IndexFrom: 1, OnIndex: func(session string, n, total eventlog.Seq) {
		require.Equal(t, "a", session)
		require.LessOrEqual(t, n, total)
		done = n
	}})
	require.Equal(t, want, answers(eng))
	head, err := eng.Replay("a")
	require.NoError(t, err)
	require.Equal(t, head.Head().Seq, done)
	files := indexFiles(t, dir)
	require.Len(t, files, 3)
	n, bytes, err := eng.IndexUsage("a")
	require.NoError(t, err)
	require.Equal(t, 3, n)
	require.Positive(t, bytes)
	require.NoError(t, eng.Close())

	for _, name := range files {
		b, err := os.ReadFile(name)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(name, b[:len(b)/2], 0o600))
	}
	eng = open(sajou.Config{ReadOnly: true, IndexFrom: 1})
	require.Equal(t, want, answers(eng), "torn files are built again")
	require.NoError(t, eng.Close())

	for _, name := range files {
		require.NoError(t, os.Remove(name))
		require.NoError(t, os.MkdirAll(filepath.Join(name, "in the way"), 0o700))
	}
	eng = open(sajou.Config{ReadOnly: true, IndexFrom: 1})
	require.Equal(t, want, answers(eng), "the files cannot be written")
	require.NoError(t, eng.Close())
	for _, name := range files {
		require.NoError(t, os.RemoveAll(name))
	}

	eng = open(sajou.Config{IndexFrom: 1})
	require.Equal(t, want, answers(eng))
	require.Len(t, indexFiles(t, dir), 3)
	_, err = eng.Backup(ctx, filepath.Join(t.TempDir(), "copy"))
	require.NoError(t, err)
	_, err = eng.Delete(ctx, "a")
	require.NoError(t, err)
	require.Empty(t, indexFiles(t, dir))
}

// TestIndexEnds: the context ends the building of an index.
func TestIndexEnds(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	directed(t, dir)
	ctx, cancel := context.WithCancel(t.Context())
	eng, err := sajou.Open(dir, sajou.Config{ReadOnly: true, IndexFrom: 1, OnIndex: func(string, eventlog.Seq, eventlog.Seq) { cancel() }})
	require.NoError(t, err)
	defer eng.Close()
	r, err := eng.Replay("a")
	require.NoError(t, err)
	a, err := replay.ParseAddress("corr:task-1")
	require.NoError(t, err)
	_, err = r.Resolve(ctx, a)
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, indexFiles(t, dir))
}
