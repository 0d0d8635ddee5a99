// Package mcp reads logs of the messages of the Model Context Protocol.
package mcp

import (
	"cmp"
	"time"

	"github.com/sajou-dev/sajou-go/ingest/recording"
	"github.com/sajou-dev/sajou-go/signal"
)

const agentID = "client"

// Format returns the format: one JSON-RPC 2.0 message a line, bare or as the member
// message, payload or data of an object that may have a time.
//
// A request tools/call is a call of a tool, and the response with its id the result: a
// failure if it is an error or has isError. All other messages are kept by their methods.
func Format() recording.Format {
	return recording.Format{
		Name: "mcp", Title: "MCP messages (JSON-RPC)", Agent: agentID, Grows: true,
		Recognized: `lines with jsonrpc "2.0", bare or as message, payload or data`,
		Detect: func(s *recording.Sample) string {
			if s.AnyLine(func(v signal.Value) bool { return isMessage(v) || isMessage(inner(v)) }) {
				return "a line is a JSON-RPC 2.0 message"
			}
			return ""
		},
		Map: read,
	}
}

func isMessage(v signal.Value) bool {
	return v.TextOf("jsonrpc") == "2.0"
}

// inner returns the message in an object of a log.
func inner(v signal.Value) signal.Value {
	for _, name := range []string{"message", "payload", "data"} {
		if m := recording.Nested(v.Member(name)); isMessage(m) {
			return m
		}
	}
	return nil
}

// messageTime returns the time of a line, as text or in milliseconds.
func messageTime(v signal.Value) (recording.Instant, bool) {
	for _, name := range []string{"timestamp", "time", "ts", "at"} {
		if t, is := recording.TimeValue(v.Member(name), time.Millisecond); is {
			return t, true
		}
	}
	return 0, false
}

func read(in *recording.Recorded, m *recording.Mapping) error {
	first := true
	for rec, err := range in.Lines(in.Name) {
		if err != nil {
			return err
		}
		at, timed := messageTime(rec.Value)
		if first && !timed {
			m.Invent()
		}
		first = false
		m.SetTime(at, timed)
		v := rec.Value
		if !isMessage(v) {
			v = inner(v)
		}
		message(m, v)
	}
	return nil
}

// message reads one message. One that is none is kept by the mapping.
func message(m *recording.Mapping, v signal.Value) {
	id := requestID(v)
	switch method := v.TextOf("method"); {
	case !isMessage(v):
	case method == "tools/call" && id != "":
		params := v.Member("params")
		m.Call("", agentID, cmp.Or(params.TextOf("name"), "unknown"), id, params.Member("arguments"))
	case method != "":
		m.Keep(method)
	case id != "":
		if _, _, open := m.CallOf(id); !open {
			m.Keep("response")
			return
		}
		output, failure := v.Member("result"), v.Member("error")
		failed := failure.Kind() != signal.KindAbsent && failure.Kind() != signal.KindNull
		if failed {
			output = failure
		}
		m.Result("", recording.Answer{CallID: id, Success: !failed && !output.BoolOf("isError"), Output: output})
	}
}

// requestID returns the id of a request or response, which is a number or a text.
func requestID(v signal.Value) string {
	id := v.Member("id")
	if n, is := id.Int64(); is {
		return "request " + signal.Int(n).Value().String()
	}
	if text, is := id.Text(); is && text != "" {
		return "request " + text
	}
	return ""
}
