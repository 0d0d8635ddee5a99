package enginetest

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/signal"
)

// Recorded records signals, one JSON object each, after definitions into the session
// "a" of an engine in memory, and returns its log and its replay.
func Recorded(t testing.TB, signals []string, definitions ...string) (*eventlog.SessionReader, *replay.Replay) {
	t.Helper()
	eng := Memory(t, sajou.Config{})
	ses, err := eng.Session(t.Context(), "a")
	require.NoError(t, err)
	if len(definitions) > 0 {
		_, err = ses.Define(t.Context(), Definitions(t, definitions...)...)
		require.NoError(t, err)
	}
	all := make([]*signal.Signal, len(signals))
	for i, text := range signals {
		all[i], err = signal.Parse([]byte(text))
		require.NoError(t, err, text)
	}
	for _, sig := range all {
		_, err = ses.Signal(t.Context(), sig)
		require.NoError(t, err)
	}
	log, err := eng.Log().Session("a")
	require.NoError(t, err)
	return log, Replay(t, eng, "a")
}

// Bustle are choreographies with all that a performance can do: steps beside each other,
// equal steps, waits at the end, guards, interruptions and handlers.
const Bustle = `[
	{"id":"letter","on":"task_dispatch","guard":{"entity":"pigeon"},"steps":[
		{"action":"spawn","entity":"pigeon"},
		{"action":"move","entity":"pigeon","to":"desk","duration":300},
		{"action":"destroy","entity":"pigeon"}]},
	{"id":"work","on":"tool_call","steps":[
		{"action":"parallel","steps":[
			{"action":"flash","entity":"signal.agentId","duration":200},
			{"action":"flash","entity":"signal.agentId","duration":100,"delay":20},
			{"action":"wait","duration":350}]},
		{"action":"onInterrupt","steps":[{"action":"pulse","entity":"signal.agentId","duration":50}]}]},
	{"id":"stop","on":"error","interrupts":true,"steps":[{"action":"playSound","params":{"sound":"bell"}}]},
	{"on":"completion","steps":[{"action":"wait","duration":40},{"action":"say","entity":"signal.agentId","duration":10}]}]`

// BustleSignals returns n signals of two agents for [Bustle], which a seed chooses.
func BustleSignals(seed uint64, n int) []string {
	rng := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // a test wants the same numbers again
	ms := 1000
	signals := make([]string, n)
	for i := range signals {
		agent, task := fmt.Sprintf("agent-%d", rng.IntN(2)), rng.IntN(3)
		correlation := ""
		if rng.IntN(4) > 0 {
			correlation = fmt.Sprintf(`,"correlationId":"c-%d"`, task)
		}
		text := ""
		switch rng.IntN(6) {
		case 0:
			text = fmt.Sprintf(`"type":"task_dispatch","payload":{"taskId":"t-%d","from":"boss","to":%q}`, task, agent)
		case 1:
			text = fmt.Sprintf(`"type":"completion","payload":{"taskId":"t-%d","success":true,"agentId":%q}`, task, agent)
		case 2:
			text = fmt.Sprintf(`"type":"tool_call","payload":{"toolName":"dig","agentId":%q,"callId":"k-%d"}`, agent, task)
		case 3:
			text = fmt.Sprintf(`"type":"tool_result","payload":{"toolName":"dig","agentId":%q,"callId":"k-%d","success":true}`, agent, task)
		case 4:
			text = fmt.Sprintf(`"type":"error","payload":{"agentId":%q,"severity":"error","message":"no"}`, agent)
		default:
			text = fmt.Sprintf(`"type":"thinking","payload":{"agentId":%q,"content":"Hm."}`, agent)
		}
		signals[i] = fmt.Sprintf(`{"id":"s-%d","timestamp":%d,"source":"test"%s,%s}`, i, ms, correlation, text)
		ms += rng.IntN(120)
	}
	return signals
}
