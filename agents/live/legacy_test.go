package live_test

import (
	"bytes"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/internal/enginetest"
)

// TestLegacyPosition moves by the member position, which is deprecated (requirements,
// 13.5). The moves are accepted, and the engine logs one warning.
func TestLegacyPosition(t *testing.T) {
	var log bytes.Buffer
	eng := enginetest.Memory(t, sajou.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	ses := enginetest.BeginManual(t, eng, "yard")
	scout, err := ses.Agents().Register(t.Context(), "scout", nil)
	require.NoError(t, err)
	seen := uint64(0)
	const notice = `level=WARN msg="the payload member position of a Move is deprecated; write to" world_id=yard agent_id=scout req_id=2`
	for i, step := range []struct {
		payload string
		notices int
	}{
		{`{"to":[1,1],"position":[9,9]}`, 0},
		{`{"position":[2,2]}`, 1},
		{`{"to":[],"position":[3,3]}`, 1},
	} {
		out, err := scout.Submit(t.Context(), agents.Intent{Kind: "Move", ReqID: strconv.Itoa(i + 1), ContextSeq: seen, Payload: enginetest.Value(t, step.payload)})
		require.NoError(t, err, step.payload)
		require.Equal(t, step.notices, strings.Count(log.String(), notice), log.String())
		seen = out.GlobalSeq
		require.NoError(t, ses.Agents().Advance(t.Context(), time.Duration(i+1)*time.Minute))
	}
	require.Equal(t, 1, strings.Count(log.String(), "deprecated"), log.String())
}
