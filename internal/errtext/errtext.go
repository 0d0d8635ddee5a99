// Package errtext makes the text of an error fit for users: without the names of the
// Go packages through which it went, and in one printable line.
package errtext

import (
	"strings"
	"unicode/utf8"

	"github.com/sajou-dev/sajou-go/internal/termtext"
)

// packages are the names with which errors of this module begin, as Go programs expect. A
// test holds the list to the sources.
var packages = []string{
	"access", "agents", "agentwire", "asciicast", "bisect", "choreography", "compare", "content", "corpus", "course",
	"dial", "director", "edits", "eventlog", "film", "fork", "hooks", "imagetest", "ingest", "local",
	"mcap", "mcp", "message", "mirror", "openai", "order", "otlp", "otlpexport", "picture", "play",
	"postings", "projection", "provenance", "record", "replay", "rl", "sajou", "searchlog", "sentinel", "session",
	"signal", "simulate", "snapshot", "stage", "transcript", "variant", "versions", "workspace", "yaml",
}

// Plain returns the message of an error without the names of packages.
func Plain(message string) string {
	for before := ""; before != message; {
		before = message
		for _, name := range packages {
			message = strings.TrimPrefix(message, name+": ")
			message = strings.ReplaceAll(message, ": "+name+": ", ": ")
		}
	}
	return message
}

// OneLine is [Plain] in one line that a terminal can show.
func OneLine(message string) string {
	lines := strings.FieldsFunc(Plain(message), func(r rune) bool { return r == '\n' || r == '\r' })
	for i := range lines {
		lines[i] = Plain(termtext.Printable(strings.TrimSpace(lines[i])))
	}
	return strings.Join(lines, "; ")
}

// maxCloseReason is the number of bytes that a WebSocket's close frame has room for.
const maxCloseReason = 123

// CloseReason is [OneLine], cut at a rune to what a WebSocket's close frame has room for.
func CloseReason(message string) string {
	text := OneLine(message)
	if len(text) <= maxCloseReason {
		return text
	}
	n := maxCloseReason - len("…")
	for !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n] + "…"
}
