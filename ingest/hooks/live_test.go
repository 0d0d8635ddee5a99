package hooks_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/ingest/hooks"
	"github.com/sajou-dev/sajou-go/internal/golden"
)

func ExampleLive() {
	text := []byte(`{"session_id":"s","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"ls"},"tool_use_id":"t1"}`)
	live, err := hooks.Live(text, hooks.Arrival{At: 1_763_000_000_000_000_000, Key: "k"})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, sig := range live.Signals {
		fmt.Println(live.Session, sig.Type, sig.Timestamp, sig.Payload)
	}
	// Output:
	// s tool_call 1763000000000 {"toolName":"Bash","agentId":"claude","callId":"t1","input":{"command":"ls"}}
	// s agent_state_change 1763000000000 {"agentId":"claude","from":"thinking","to":"acting"}
}

func TestLive(t *testing.T) {
	golden.Run(t, "testdata/live/*.txtar", func(t *testing.T, in []txtar.File) []txtar.File {
		var told strings.Builder
		ids := map[string]bool{}
		n := 0
		for line := range strings.Lines(string(in[0].Data)) {
			n++
			live, err := hooks.Live([]byte(line), hooks.Arrival{At: 5_000_000, Key: fmt.Sprint("key-", n)})
			if err != nil {
				require.ErrorIs(t, err, hooks.ErrNoPayload)
				fmt.Fprintf(&told, "%3d %v\n", n, err)
				continue
			}
			key := ""
			if live.Key != fmt.Sprint("key-", n) {
				key = " (its event has a key)"
			}
			fmt.Fprintf(&told, "%3d %s of %s in %q%s\n", n, live.Event, live.Agent, live.Session, key)
			for _, sig := range live.Signals {
				require.NoError(t, sig.Validate())
				assert.Equal(t, "5", sig.Timestamp.String())
				assert.Equal(t, "adapter:"+live.Agent, sig.Source)
				assert.False(t, ids[sig.ID], "two signals have the id %s", sig.ID)
				ids[sig.ID] = true
				if live.Session == "" {
					assert.Nil(t, sig.CorrelationID)
				} else {
					assert.Equal(t, live.Session, *sig.CorrelationID)
				}
				fmt.Fprintf(&told, "      %s %s\n", sig.Type, sig.Payload)
			}
		}
		return []txtar.File{{Name: "told", Data: []byte(told.String())}}
	})
}

// Two arrivals of one event have one key and the same signals but for their time, so that the
// second is a repeat. Events of another kind or call have another key.
func TestLiveKeys(t *testing.T) {
	key := func(event, call, arrival string) string {
		live, err := hooks.Live(fmt.Appendf(nil, `{"session_id":"s","hook_event_name":%q,"tool_name":"Bash","tool_use_id":%q}`, event, call), hooks.Arrival{Key: arrival})
		require.NoError(t, err)
		return live.Key
	}
	once := key("PreToolUse", "t1", "a")
	assert.Equal(t, once, key("PreToolUse", "t1", "b"))
	assert.NotEqual(t, once, key("PostToolUse", "t1", "a"))
	assert.NotEqual(t, once, key("PreToolUse", "t2", "a"))
	assert.Equal(t, "a", key("PreToolUse", "", "a"))
}

// A payload that does not fit an entry is cut, not refused.
func TestLiveIsCut(t *testing.T) {
	text := fmt.Sprintf(`{"session_id":"s","hook_event_name":"PostToolUse","tool_name":"Read","tool_use_id":"t","tool_response":{"text":%q}}`, strings.Repeat("long ", 1<<19))
	live, err := hooks.Live([]byte(text), hooks.Arrival{Key: "k", Source: "hook:mine"})
	require.NoError(t, err)
	require.NotEmpty(t, live.Signals)
	assert.Less(t, len(live.Signals[0].Payload), 1<<20)
	assert.NotZero(t, live.Signals[0].Metadata.Member("cutBytes"))
	assert.Equal(t, "hook:mine", live.Signals[0].Source)
}

func FuzzLive(f *testing.F) {
	f.Add([]byte(`{"session_id":"s","hook_event_name":"PostToolUse","tool_name":"Read","tool_use_id":"t","tool_response":{"is_error":true}}`))
	f.Add([]byte(`{"hookEventName":"subagent_stop"}`))
	f.Add([]byte(`{"session_id":7,"hook_event_name":"Stop","transcript_path":[],"cwd":{}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		live, err := hooks.Live(text, hooks.Arrival{At: 1, Key: "k"})
		if err != nil {
			if !errors.Is(err, hooks.ErrNoPayload) {
				t.Fatal(err)
			}
			return
		}
		for _, sig := range live.Signals {
			if err := sig.Validate(); err != nil {
				t.Fatalf("%s: %v", sig.Type, err)
			}
		}
	})
}
