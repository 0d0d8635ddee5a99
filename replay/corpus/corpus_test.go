package corpus_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
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

// TestOwnCorpus: the recordings of the suites give the states that they gave.
func TestOwnCorpus(t *testing.T) {
	kinds := map[string]bool{}
	for name, c := range check(t, "../../testdata/corpus") {
		assert.True(t, c.Whole(), "%s: %+v", name, c)
		kinds[filepath.Dir(name)] = true
	}
	assert.Len(t, kinds, 5)
}

// TestBrokenCorpus: each broken recording, and each broken file of digests, is one outcome
// with a reason. The others are checked, nothing is changed, and an update keeps the
// digests of what it cannot read.
func TestBrokenCorpus(t *testing.T) {
	dir := t.TempDir()
	good, err := os.ReadFile("../../testdata/corpus/agents/fog.raw.jsonl")
	require.NoError(t, err)
	kept, err := os.ReadFile("../../testdata/corpus/agents/fog.digests.json")
	require.NoError(t, err)
	foreign, err := os.ReadFile("../../testdata/corpus/agents/slow.digests.json")
	require.NoError(t, err)
	put := func(name string, text []byte) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
	}
	lines := bytes.SplitAfter(good, []byte("\n"))
	without := slices.Delete(slices.Clone(lines), 5, 6)
	for name, c := range map[string]struct {
		recording, digests []byte
		reason             string // of the check; "" if it is as it was
		update             bool   // it can be read
	}{
		"whole":     {good, kept, "", true},
		"torn":      {good[:len(good)/2], kept, "torn.raw.jsonl:", false},
		"gap":       {bytes.Join(without, nil), kept, "gap.raw.jsonl:", false},
		"noise":     {[]byte("\x00\xff{]"), kept, "noise.raw.jsonl:1", false},
		"nothing":   {nil, kept, "nothing.raw.jsonl", false},
		"unkept":    {good, nil, "no digests are kept", true},
		"cut":       {good, kept[:len(kept)/2], "cut.digests.json: ", true},
		"later":     {good, bytes.Replace(kept, []byte(`"version": 1`), []byte(`"version": 9`), 1), "its version is 9", true},
		"foreign":   {good, foreign, "", true}, // the session is unkept, and another one missing
		"other":     {good, []byte(`{"openapi": "3.0"}`), "other.digests.json: ", true},
		"byte-mark": {good, append([]byte("\ufeff"), kept...), "byte-mark.digests.json: ", true},
	} {
		put(name+".raw.jsonl", c.recording)
		if c.digests != nil {
			put(name+".digests.json", c.digests)
		}
		found, err := corpus.Find(dir)
		require.NoError(t, err)
		require.Len(t, found, 1)
		got, err := found[0].Check(t.Context())
		require.NoError(t, err)
		assert.Equal(t, name == "whole", got.Whole(), name)
		if c.reason != "" {
			require.ErrorContains(t, got.Err, c.reason, name)
		}
		if name == "foreign" {
			require.Len(t, got.Sessions, 2)
			assert.True(t, got.Sessions[0].Unkept && got.Sessions[1].Missing)
		}
		_, err = found[0].Update(t.Context(), corpus.DefaultPoints)
		now, missing := os.ReadFile(filepath.Join(dir, name+".digests.json"))
		if c.update {
			require.NoError(t, err, name)
			require.NoError(t, missing)
			assert.Equal(t, string(kept), string(now), name)
		} else {
			require.Error(t, err, name)
			assert.Equal(t, string(c.digests), string(now), name)
		}
		after, err := os.ReadFile(filepath.Join(dir, name+".raw.jsonl"))
		require.NoError(t, err)
		assert.Equal(t, string(c.recording), string(after), name)
		left, err := os.ReadDir(dir)
		require.NoError(t, err)
		assert.LessOrEqual(t, len(left), 2, "no temporary file stays: %v", left)
		for _, file := range left {
			require.NoError(t, os.Remove(filepath.Join(dir, file.Name())))
		}
	}

	// A file of digests above the bound is not read. Devices and pipes are not recordings.
	put("huge.raw.jsonl", good)
	huge, err := os.Create(filepath.Join(dir, "huge.digests.json"))
	require.NoError(t, err)
	require.NoError(t, errors.Join(huge.Truncate(sentinel.MaxDocument+1), huge.Close()))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "folder.raw.jsonl"), 0o700))
	require.NoError(t, os.Symlink(dir, filepath.Join(dir, "around")))
	require.NoError(t, os.Symlink("/dev/zero", filepath.Join(dir, "endless.jsonl")))
	require.NoError(t, os.Symlink("/dev/zero", filepath.Join(dir, "huge.json")))
	got := check(t, dir)
	require.Len(t, got, 1)
	require.ErrorContains(t, got["huge.raw.jsonl"].Err, "huge.digests.json is larger than")
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
