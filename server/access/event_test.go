package access_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/server/access"
)

func newEvents(t *testing.T, cfg access.EventsConfig) *access.Events {
	t.Helper()
	e, err := access.NewEvents(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, e.Close()) })
	return e
}

// TestFloodOfEvents shows that many events of one kind hide none of another, in memory and
// in the file, and that all are counted.
func TestFloodOfEvents(t *testing.T) {
	path := filepath.Join(t.TempDir(), "security.jsonl")
	at := &clock{noon}
	var log bytes.Buffer
	e := newEvents(t, access.EventsConfig{File: path, Now: at.read, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	e.Note(access.SecurityEvent{Kind: access.AgentQuarantined, Session: "night", Agent: "eve", Detail: "20 refusals in 10s"})
	for range 5000 {
		e.Note(access.SecurityEvent{Kind: access.AuthFailed, Peer: "10.0.0.1"})
	}
	at.now = at.now.Add(-time.Hour) // the clock steps back
	e.Note(access.SecurityEvent{Kind: access.AuthFailed, Peer: "10.0.0.2"})

	assert.Equal(t, uint64(5001), e.Counts()[access.AuthFailed])
	assert.Equal(t, uint64(1), e.Counts()[access.AgentQuarantined])
	assert.Zero(t, e.Counts()[access.ActForbidden])
	all := e.After(0, "", 10_000)
	require.Len(t, all, 257)
	assert.Equal(t, access.AgentQuarantined, all[0].Kind)
	for i := range all[1:] {
		assert.Less(t, all[i].Number, all[i+1].Number)
	}
	assert.Equal(t, uint64(5002), all[256].Number)
	assert.Equal(t, uint64(4980), all[256].Unwritten)
	assert.Equal(t, all[200:], e.After(all[199].Number, "", 10_000))
	assert.Equal(t, all[:1], e.After(0, access.AgentQuarantined, 10_000))
	assert.Equal(t, all[:3], e.After(0, "", 3))
	assert.Empty(t, e.After(5002, "", 3))

	written, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, 22, bytes.Count(written, []byte("\n"))) // one, a burst of 20, and one after the step
	assert.Equal(t, 22, strings.Count(log.String(), "\n"))
	var first access.SecurityEvent
	require.NoError(t, json.Unmarshal(written[:bytes.IndexByte(written, '\n')], &first))
	assert.Equal(t, all[0], first)
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}

// TestEventFileIsBounded shows that the files together stay within two bounds and a line,
// and that a server that begins again continues them.
func TestEventFileIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "security.jsonl")
	require.NoError(t, os.WriteFile(path, []byte("before\n"), 0o644))
	at := &clock{noon}
	for range 3 {
		e := newEvents(t, access.EventsConfig{File: path, MaxFile: 1000, Now: at.read})
		for range 20 {
			at.now = at.now.Add(time.Second)
			e.Note(access.SecurityEvent{Kind: access.ActForbidden, Detail: strings.Repeat("x", 100)})
		}
		require.NoError(t, e.Close())
	}
	newest, err := os.ReadFile(path)
	require.NoError(t, err)
	older, err := os.ReadFile(path + ".1")
	require.NoError(t, err)
	assert.LessOrEqual(t, len(newest), 1000)
	assert.LessOrEqual(t, len(older), 1000)
	assert.Greater(t, len(older), 700)
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	dir, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	assert.Len(t, dir, 2)
	_, err = access.NewEvents(access.EventsConfig{File: filepath.Dir(path)})
	assert.Error(t, err)
}

func TestTextsOfEventsAreBounded(t *testing.T) {
	e := newEvents(t, access.EventsConfig{})
	for _, text := range []string{"short", strings.Repeat("ä", 1000), strings.Repeat("x", 255) + "ä", "\xff\xfe", strings.Repeat("\x80", 300)} {
		e.Note(access.SecurityEvent{Kind: access.OriginRefused, Path: text})
		events := e.After(0, "", 100)
		got := events[len(events)-1].Path
		assert.LessOrEqual(t, len(got), 3*256)
		assert.True(t, utf8.ValidString(got))
	}
	assert.Equal(t, "short", e.After(0, "", 1)[0].Path)
	assert.Panics(t, func() { e.Note(access.SecurityEvent{Kind: "OTHER"}) })
}

func TestNotesOfRequests(t *testing.T) {
	e := newEvents(t, access.EventsConfig{Now: (&clock{noon}).read})
	r := httptest.NewRequest("POST", "http://localhost/api/v1/x?token=secret", nil)
	r.RemoteAddr = "[::ffff:10.0.0.1]:99"
	access.Note(r.Context(), access.SecurityEvent{Kind: access.ActForbidden}) // no part of the server receives it
	ctx := access.With(access.WithEvents(r.Context(), e, r), &access.Caller{Name: "token:tap"})
	access.Note(ctx, access.SecurityEvent{Kind: access.AgentQuarantined, Session: "night", Agent: "eve"})
	require.Equal(t, []access.SecurityEvent{{
		Number: 1, At: noon, Kind: access.AgentQuarantined, Caller: "token:tap", Peer: "10.0.0.1",
		Method: "POST", Path: "/api/v1/x", Session: "night", Agent: "eve",
	}}, e.After(0, "", 10))
}
