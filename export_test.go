package sajou_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/enginetest"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

// An export is written from Go in each format: signals come back as they were, and the
// raw lines give the chain to a program that knows SHA-256 and JSON alone.
func TestExport(t *testing.T) {
	ctx := t.Context()
	eng, ses := enginetest.Begin(t, filepath.Join(t.TempDir(), "store"), sajou.Config{})
	defer func() { require.NoError(t, eng.Close()) }()
	_, err := ses.Define(ctx, enginetest.Definitions(t, enginetest.Dispatch)...)
	require.NoError(t, err)
	var given []*signal.Signal
	for n := range 4 {
		given = append(given, enginetest.TaskSignal(n, int64(n)))
	}
	_, err = ses.Record(ctx, sajou.Addition{Signals: given})
	require.NoError(t, err)
	log, err := eng.Log().Session("a")
	require.NoError(t, err)
	export := func(format session.ExportFormat, from, to eventlog.Seq) []string {
		t.Helper()
		var out bytes.Buffer
		require.NoError(t, session.Export(ctx, &out, log, format, from, to))
		require.True(t, strings.HasSuffix(out.String(), "\n"))
		return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	}

	lines := export(session.ExportSignals, 1, 0)
	require.Len(t, lines, len(given))
	for i, line := range lines {
		sig, err := signal.Parse([]byte(line))
		require.NoError(t, err)
		require.Equal(t, given[i].Append(nil), sig.Append(nil))
	}
	require.Equal(t, lines[:2], export(session.ExportSignals, 2, 4), "the declaration is entry 2")
	require.Len(t, export(session.ExportEntries, 2, 4), 3)
	require.Contains(t, export(session.ExportEntries, 2, 2)[0], `"kind":"define"`)

	lines = export(session.ExportRaw, 1, 0)
	require.Len(t, lines, 1+int(log.Head().Seq))
	var header struct{ Session, Genesis string }
	require.NoError(t, json.Unmarshal([]byte(lines[0]), &header))
	require.Equal(t, "a", header.Session)
	last, err := hex.DecodeString(header.Genesis)
	require.NoError(t, err)
	for i, line := range lines[1:] {
		var e struct {
			Session     string
			Seq         int
			Hash, Entry string
		}
		require.NoError(t, json.Unmarshal([]byte(line), &e))
		stored, err := base64.StdEncoding.DecodeString(e.Entry)
		require.NoError(t, err)
		sum := sha256.Sum256(append(last, stored...))
		last = sum[:]
		require.Equal(t, i+1, e.Seq)
		require.Equal(t, "a", e.Session)
		require.Equal(t, hex.EncodeToString(last), e.Hash)
	}
	require.Equal(t, log.Head().Hash.String(), hex.EncodeToString(last))
}

// failingWriter fails every write.
type failingWriter struct{ err error }

func (f failingWriter) Write([]byte) (int, error) { return 0, f.err }

func TestExportErrors(t *testing.T) {
	ctx := t.Context()
	eng, ses := enginetest.Begin(t, filepath.Join(t.TempDir(), "store"), sajou.Config{})
	defer func() { require.NoError(t, eng.Close()) }()
	_, err := ses.Signal(ctx, enginetest.TaskSignal(1, 1))
	require.NoError(t, err)
	log, err := eng.Log().Session("a")
	require.NoError(t, err)
	none, err := eng.Log().Session("none")
	require.NoError(t, err)
	full := errors.New("disk full")
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	require.ErrorIs(t, session.Export(ctx, &bytes.Buffer{}, none, session.ExportRaw, 1, 0), eventlog.ErrNoSession)
	require.ErrorIs(t, session.Export(ctx, &bytes.Buffer{}, log, "csv", 1, 0), eventlog.ErrInvalid)
	require.ErrorIs(t, session.Export(ctx, &bytes.Buffer{}, log, session.ExportRaw, 2, 0), eventlog.ErrInvalid)
	require.ErrorIs(t, session.Export(ctx, failingWriter{full}, log, session.ExportSignals, 1, 0), full)
	require.ErrorIs(t, session.Export(canceled, &bytes.Buffer{}, log, session.ExportEntries, 1, 0), context.Canceled)
}
