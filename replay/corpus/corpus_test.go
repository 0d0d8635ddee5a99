package corpus_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/replay/corpus"
	"github.com/sajou-dev/sajou-go/replay/sentinel"
)

func check(t *testing.T, dir string) map[string]corpus.Check {
	t.Helper()
	found, err := corpus.Find(dir)
	require.NoError(t, err)
	got := map[string]corpus.Check{}
	var order []string
	for c, err := range corpus.CheckAll(t.Context(), found, 2) {
		require.NoError(t, err)
		got[c.Name] = c
		order = append(order, c.Name)
	}
	var want []string
	for _, r := range found {
		want = append(want, r.Name)
	}
	assert.Equal(t, want, order, "the outcomes are in the order of the recordings")
	return got
}

func update(t *testing.T, dir string) (changed []string) {
	t.Helper()
	found, err := corpus.Find(dir)
	require.NoError(t, err)
	for _, r := range found {
		did, err := r.Update(t.Context(), corpus.DefaultPoints)
		require.NoError(t, err, r.Name)
		if did {
			changed = append(changed, r.Name)
		}
	}
	return changed
}

// copied returns a corpus with the demo's signals and declarations and a store of an
// earlier version.
func copied(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(filepath.Join(dir, "demo"), os.DirFS("../../cmd/sajou-replay/demo")))
	require.NoError(t, os.Remove(filepath.Join(dir, "demo", "session.digests.json"))) // those of the project's own corpus
	require.NoError(t, os.CopyFS(filepath.Join(dir, "stores", "agents"), os.DirFS("../../testdata/stores/8864da6/agents")))
	return dir
}

func TestCorpus(t *testing.T) {
	dir := copied(t)
	for name, c := range check(t, dir) {
		assert.ErrorIs(t, c.Err, corpus.ErrNoDigests, name)
		assert.False(t, c.Whole())
	}
	assert.Equal(t, []string{"demo/session.jsonl", "stores/agents"}, update(t, dir))
	assert.Empty(t, update(t, dir), "a second update changes nothing")
	for name, c := range check(t, dir) {
		assert.True(t, c.Whole(), "%s: %+v", name, c)
		assert.NotZero(t, c.Entries)
		for _, s := range c.Sessions {
			assert.NotZero(t, s.Points)
		}
	}
	store := filepath.Join(dir, "stores", "agents")
	after, err := os.ReadDir(store)
	require.NoError(t, err)
	before, err := os.ReadDir("../../testdata/stores/8864da6/agents")
	require.NoError(t, err)
	assert.Len(t, after, len(before), "a check writes nothing into a store")

	t.Run("code", func(t *testing.T) {
		path := filepath.Join(dir, "demo", "session.digests.json")
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		doc, err := sentinel.Parse(text)
		require.NoError(t, err)
		kept := doc.Sessions[0]
		kept.Points[7].Sums[2] ^= 1
		require.NoError(t, os.WriteFile(path, doc.Text(), 0o600))
		c := check(t, dir)["demo/session.jsonl"]
		assert.False(t, c.Whole())
		d := c.Sessions[0].Diverge
		require.NotNil(t, d)
		assert.Equal(t, sentinel.CauseCode, d.Cause)
		assert.Equal(t, kept.Points[7].Head.Seq, d.At)
		assert.Equal(t, kept.Points[6].Head.Seq, d.After)
		require.NoError(t, os.WriteFile(path, text, 0o600))
	})
	t.Run("data", func(t *testing.T) {
		path := filepath.Join(dir, "demo", "session.jsonl")
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		lines := strings.SplitAfter(string(text), "\n")
		lines[20] = strings.Replace(lines[20], `"payload":{`, `"payload":{"extra":1,`, 1)
		require.NoError(t, os.WriteFile(path, []byte(strings.Join(lines, "")), 0o600))
		d := check(t, dir)["demo/session.jsonl"].Sessions[0].Diverge
		require.NotNil(t, d)
		assert.Equal(t, sentinel.CauseData, d.Cause)
		require.NoError(t, os.WriteFile(path, text, 0o600))
	})
	t.Run("declarations", func(t *testing.T) {
		path := filepath.Join(dir, "demo", "choreographies.json")
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, []byte(`{"on": 1}`), 0o600))
		c := check(t, dir)["demo/session.jsonl"]
		require.ErrorContains(t, c.Err, "choreographies.json:1:8")
		require.NoError(t, os.WriteFile(path, text, 0o600))
	})
	t.Run("unknown session", func(t *testing.T) {
		path := filepath.Join(dir, "stores", "agents.digests.json")
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, []byte(strings.Replace(string(text), `"session": "conversation"`, `"session": "other"`, 1)), 0o600))
		var unkept, missing []string
		for _, s := range check(t, dir)["stores/agents"].Sessions {
			if s.Unkept {
				unkept = append(unkept, s.Session)
			}
			if s.Missing {
				missing = append(missing, s.Session)
			}
		}
		assert.Equal(t, []string{"conversation"}, unkept)
		assert.Equal(t, []string{"other"}, missing)
		require.NoError(t, os.WriteFile(path, []byte("{"), 0o600))
		c := check(t, dir)["stores/agents"]
		require.ErrorIs(t, c.Err, sentinel.ErrDocument)
		require.NoError(t, os.WriteFile(path, text, 0o600))
	})
}

func TestInterrupted(t *testing.T) {
	dir := copied(t)
	found, err := corpus.Find(dir)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	n := 0
	for _, err := range corpus.CheckAll(ctx, found, 1) {
		if err == nil {
			n++ // refused before anything was read
			continue
		}
		assert.True(t, errors.Is(err, context.Canceled))
	}
	assert.Less(t, n, len(found))
}
