package sajou_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/internal/enginetest"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

// TestUnresolvedReferences records payloads with and without a field that the schema does
// not have. The reference to it resolves where the payload has it. Where it has not, the
// engine logs a warning once, also after a restart, and the diagnostics of the stage are
// the same live, from the first entry and from a snapshot.
func TestUnresolvedReferences(t *testing.T) {
	dir := t.TempDir()
	var log bytes.Buffer
	cfg := sajou.Config{SnapshotEvery: 3, Logger: slog.New(slog.NewTextHandler(&log, nil))}
	call := func(payload string) sajou.Addition {
		sig, err := signal.ParseLenient([]byte(`{"id":"s","type":"tool_call","timestamp":0,"source":"test","payload":` + payload + `}`))
		require.NoError(t, err)
		return sajou.Addition{Signals: []*signal.Signal{sig}, Lenient: true}
	}
	eng, ses := enginetest.Begin(t, dir, cfg)
	_, err := ses.Define(t.Context(), enginetest.Definitions(t, `{"id":"work","on":"tool_call","guard":{"entity":["signal.agentId","signal.bench"]},"steps":[{"action":"setAnimation","entity":"signal.agentId","state":"signal.extra"}]}`)...)
	require.NoError(t, err)
	for _, payload := range []string{
		`{"toolName":"Read","agentId":"scout","extra":"digging"}`,
		`{"toolName":"Read","agentId":"idler"}`,
		`{"toolName":"Read","agentId":"idler"}`,
		`{"toolName":"Read","agentId":"scout","extra":"resting"}`,
	} {
		_, err := ses.Record(t.Context(), call(payload))
		require.NoError(t, err)
	}
	live, err := ses.State(t.Context())
	require.NoError(t, err)
	view := session.StageOf(live)
	figures := map[string]string{}
	for _, f := range view.Frame().Figures {
		figures[f.ID] = f.State
	}
	require.Equal(t, map[string]string{"scout": "resting"}, figures)
	unresolved := view.Unresolved(0)
	require.Len(t, unresolved, 2)
	require.Equal(t, "entity of guard in work: the payload has no signal.bench", unresolved[0].String())
	require.Equal(t, "state of setAnimation in work: the payload has no signal.extra", unresolved[1].String())
	require.NoError(t, eng.Close())

	eng, ses = enginetest.Begin(t, dir, cfg)
	_, err = ses.Record(t.Context(), call(`{"toolName":"Read","agentId":"idler"}`))
	require.NoError(t, err)
	again, err := ses.State(t.Context())
	require.NoError(t, err)
	require.Equal(t, unresolved, session.StageOf(again).Unresolved(0))
	require.NoError(t, eng.Close())
	for _, unsnapped := range []bool{false, true} {
		eng, err := sajou.Open(dir, sajou.Config{ReadOnly: true, NoSnapshots: unsnapped})
		require.NoError(t, err)
		replayed, err := enginetest.ReplayedAt(t.Context(), eng, ses.Name(), live.Head().Seq)
		require.NoError(t, err)
		require.Equal(t, enginetest.Digests(live), enginetest.Digests(replayed))
		require.Equal(t, unresolved, session.StageOf(replayed).Unresolved(0))
		require.NoError(t, eng.Close())
	}
	const line = `level=WARN msg="a reference does not resolve" session=`
	require.Equal(t, 2, strings.Count(log.String(), line), log.String())
	require.Contains(t, log.String(), `definition=work action=guard member=entity reference=signal.bench`)
	require.Contains(t, log.String(), `definition=work action=setAnimation member=state reference=signal.extra`)
}
