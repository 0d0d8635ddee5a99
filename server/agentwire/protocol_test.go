package agentwire

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/agents/jsondoc"
	"github.com/sajou-dev/sajou-go/internal/schematest"
)

// page returns the description of the protocol.
func page(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/protocol.md")
	require.NoError(t, err)
	return string(text)
}

// serverMessages are the messages of the server, by the definition of each.
var serverMessages = map[string]any{
	"agent_welcome": welcome{}, "sim_welcome": welcome{}, "observation": observation{}, "outcome": outcome{}, "begun": begun{}, "stop": stop{},
	"ended": ended{}, "cancelled": cancelled{}, "ticked": ticked{}, "effect": effect{}, "heartbeat": heartbeat{}, "error": fault{},
}

// clientMessages are the definitions of the messages of clients, in the order of shapes.
var clientMessages = []string{"agent_hello", "sim_hello", "ack", "resync", "intent", "sim_intent", "begin", "tokens", "end", "cancel", "tick", "draft"}

// TestExamplesOfThePage reads the messages in the description: each is valid, and the
// codec reads it and writes it as it is.
func TestExamplesOfThePage(t *testing.T) {
	blocks := regexp.MustCompile("(?s)```(agent|sim)\n(.*?)```").FindAllStringSubmatch(page(t), -1)
	require.Greater(t, len(blocks), 5)
	shown := map[string]bool{}
	for _, block := range blocks {
		for line := range strings.Lines(block[2]) {
			mark, text, _ := strings.Cut(strings.TrimSpace(line), " ")
			name := typeOf(t, text)
			shown[mark+name] = true
			if mark == ">" {
				in := map[string]channel{"agent": agentSocket, "sim": simSocket}[block[1]]
				require.NoError(t, validate(block[1]+"_to_server", []byte(text)), text)
				m, err := decode(in, []byte(text))
				require.NoError(t, err, text)
				assert.JSONEq(t, text, written(m))
				continue
			}
			require.NoError(t, validate("server_to_"+block[1], []byte(text)), text)
			def := name
			if name == "welcome" {
				def = block[1] + "_welcome"
			}
			into := reflect.New(reflect.TypeOf(serverMessages[def]))
			require.NoError(t, json.Unmarshal([]byte(text), into.Interface()), text)
			again := encode(into.Elem().Interface())
			assert.Equal(t, string(jsondoc.AppendCanonical(nil, parsed(text))), string(jsondoc.AppendCanonical(nil, parsed(string(again)))))
		}
	}
	for _, s := range shapes {
		assert.True(t, shown[">"+s.typ], "no example of %q", s.typ)
	}
	for def, m := range serverMessages {
		assert.True(t, shown["<"+strings.TrimPrefix(strings.TrimPrefix(def, "agent_"), "sim_")], "no example of %T", m)
	}
}

func typeOf(t *testing.T, text string) string {
	t.Helper()
	var m struct{ Type string }
	require.NoError(t, json.Unmarshal([]byte(text), &m), text)
	return m.Type
}

// written returns a message as its members were read.
func written(m *incoming) string {
	all := map[string]any{
		"req_id": m.ReqID, "agent_id": m.AgentID, "token": m.Token, "text": m.Text, "failed": m.Failed, "source_id": m.SourceID, "uuid": m.UUID,
		"kind": m.Kind, "schema_version": m.SchemaVersion, "payload": m.Payload, "view_seq": m.ViewSeq, "context_seq": m.ContextSeq, "seq": m.Seq,
		"count": m.Count, "token_budget": m.TokenBudget, "priority": m.Priority, "frame_number": m.FrameNumber, "deadline_ms": m.DeadlineMS,
		"delta_time": m.DeltaTime, "sim_time": m.SimTime, "reads": m.Reads, "classes": m.Classes,
	}
	out := map[string]any{"type": m.Type}
	for name := range m.value.Members() {
		if name != "type" {
			out[name] = all[name]
		}
	}
	return encoded(out)
}

// TestSchemaHasTheMembersOfTheCodec compares the members of each message.
func TestSchemaHasTheMembersOfTheCodec(t *testing.T) {
	for i, s := range shapes {
		want := slices.Concat([]string{"type"}, s.required, s.optional)
		slices.Sort(want)
		got := schematest.Members(ProtocolSchema(), clientMessages[i])
		slices.Sort(got)
		assert.Equal(t, want, got, clientMessages[i])
	}
	for def, m := range serverMessages {
		known := schematest.Members(ProtocolSchema(), def)
		fields := map[string]bool{}
		for f := range reflect.TypeOf(m).NumField() {
			name, _, _ := strings.Cut(reflect.TypeOf(m).Field(f).Tag.Get("json"), ",")
			fields[name] = true
		}
		for _, name := range known {
			assert.True(t, fields[name], "%s: %s", def, name)
		}
		if !strings.HasSuffix(def, "welcome") { // two definitions share one type
			assert.Len(t, known, len(fields), def)
		}
	}
}

func TestPageHasAllCodes(t *testing.T) {
	text := page(t)
	for _, c := range closings() {
		assert.Contains(t, text, fmt.Sprintf("\n| %d |", c.code))
		assert.LessOrEqual(t, len(c.reason), 123)
	}
	for _, code := range []faultCode{faultMessage, faultViewSeq, faultNoGeneration, faultTooMany, faultUnavailable, faultTick} {
		assert.Contains(t, text, "\n| `"+string(code)+"` |")
		assert.Contains(t, protocolSchema, `"`+string(code)+`"`)
	}
}

// FuzzDecode: no message of a client makes the codec panic, and what it reads it writes
// as it was.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{
		`{"type":"hello","view_seq":1}`, `{"type":"intent","req_id":"r","kind":"Move","context_seq":0,"payload":{"to":[1.0,2]}}`,
		`{"type":"tokens","req_id":"r","text":"\u0000","count":0}`, `{"type":"tick","sim_time":1e300}`, `[]`, `{"type":1}`,
		`{"type":"begin","req_id":"r","reads":["/a"],"deadline_ms":0.5}`, `{"type":"draft","req_id":"d","kind":"K","source_id":"s","priority":-100}`,
	} {
		for _, in := range []channel{agentSocket, simSocket, postIntents, postCancel, postTokens} {
			f.Add(uint8(in), []byte(s))
		}
	}
	f.Fuzz(func(t *testing.T, in uint8, frame []byte) {
		m, err := decode(channel(in), frame)
		if err != nil {
			require.NotEmpty(t, err.Error())
			return
		}
		if channel(in) == agentSocket && m.Type == "intent" {
			_, err := m.intent("alice")
			require.NoError(t, err)
		}
		if channel(in) == agentSocket {
			require.NoError(t, validate("agent_to_server", frame))
		}
	})
}
