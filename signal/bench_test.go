package signal_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/signal"
)

// The line is an ordinary one, of 251 bytes.
const benchLine = `{"id":"sig-000013","type":"tool_call","timestamp":1738900000000,"source":"adapter:claude",` +
	`"correlationId":"ep-1","payload":{"toolName":"web_search","agentId":"agent-1","callId":"call-1",` +
	`"input":{"query":"capuchin monkeys","limit":3,"cached":true}}}`

func BenchmarkParse(b *testing.B) {
	line := []byte(benchLine)
	b.ReportAllocs()
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		if _, err := signal.Parse(line); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppend(b *testing.B) {
	s, err := signal.Parse([]byte(benchLine))
	require.NoError(b, err)
	dst := s.Append(nil)
	b.ReportAllocs()
	b.SetBytes(int64(len(dst)))
	for b.Loop() {
		dst = s.Append(dst[:0])
	}
}

func BenchmarkDecode(b *testing.B) {
	s, err := signal.Parse([]byte(benchLine))
	require.NoError(b, err)
	data := s.Append(nil)
	b.ReportAllocs()
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, err := signal.Decode(data); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkValidate(b *testing.B) {
	s, err := signal.Parse([]byte(benchLine))
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		if err := s.Validate(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppendJSON(b *testing.B) {
	s, err := signal.Parse([]byte(benchLine))
	require.NoError(b, err)
	dst := s.AppendJSON(nil)
	b.ReportAllocs()
	b.SetBytes(int64(len(dst)))
	for b.Loop() {
		dst = s.AppendJSON(dst[:0])
	}
}

func BenchmarkLookup(b *testing.B) {
	s, err := signal.Parse([]byte(benchLine))
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := s.Payload.Lookup("input.limit"); !ok {
			b.Fatal("missing")
		}
	}
}
