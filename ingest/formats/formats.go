// Package formats is the list of the foreign formats that can be imported, and
// recognizes them.
//
// A format is a package of its own below ingest and one line of [All]: without both, nothing
// else changes.
package formats

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sajou-dev/sajou-go/ingest/agentssdk"
	"github.com/sajou-dev/sajou-go/ingest/aider"
	"github.com/sajou-dev/sajou-go/ingest/atif"
	"github.com/sajou-dev/sajou-go/ingest/claudecode"
	"github.com/sajou-dev/sajou-go/ingest/cline"
	"github.com/sajou-dev/sajou-go/ingest/cloudevents"
	"github.com/sajou-dev/sajou-go/ingest/codex"
	"github.com/sajou-dev/sajou-go/ingest/copilot"
	"github.com/sajou-dev/sajou-go/ingest/flatspans"
	"github.com/sajou-dev/sajou-go/ingest/gemini"
	"github.com/sajou-dev/sajou-go/ingest/hooks"
	"github.com/sajou-dev/sajou-go/ingest/jaeger"
	"github.com/sajou-dev/sajou-go/ingest/langfuse"
	"github.com/sajou-dev/sajou-go/ingest/langsmith"
	"github.com/sajou-dev/sajou-go/ingest/mcp"
	"github.com/sajou-dev/sajou-go/ingest/minisweagent"
	"github.com/sajou-dev/sajou-go/ingest/openhands"
	"github.com/sajou-dev/sajou-go/ingest/otlp"
	"github.com/sajou-dev/sajou-go/ingest/recording"
	"github.com/sajou-dev/sajou-go/ingest/sweagent"
	"github.com/sajou-dev/sajou-go/signal"
)

// Sajou is the name of the protocol's own format: one signal a line. It needs no mapping.
const Sajou = "sajou"

// All returns the formats, in the order in which a list shows them.
func All() []recording.Format {
	return []recording.Format{
		sajou(),
		claudecode.Format(),
		hooks.Format(),
		codex.Format(),
		gemini.Format(),
		copilot.Format(),
		cloudevents.Format(),
		openhands.Format(),
		sweagent.Format(),
		minisweagent.Format(),
		cline.Format(),
		atif.Format(),
		aider.Format(),
		mcp.Format(),
		minisweagent.ChatFormat(),
		otlp.Format(),
		jaeger.Format(),
		flatspans.Format(),
		langfuse.Format(),
		agentssdk.Format(),
		langsmith.Format(),
	}
}

// Named returns a format by its name.
func Named(name string) (recording.Format, bool) {
	for _, f := range All() {
		if f.Name == name {
			return f, true
		}
	}
	return recording.Format{}, false
}

// Names returns the names of the formats.
func Names() []string {
	var names []string
	for _, f := range All() {
		names = append(names, f.Name)
	}
	return names
}

// Candidate is a format that a sample may have.
type Candidate struct {
	Format recording.Format
	Reason string
}

// Detect returns the formats that a sample may have, each with its reason: none if no format
// recognizes it, and several if it cannot be told.
func Detect(s *recording.Sample) []Candidate {
	var list []Candidate
	for _, f := range All() {
		if reason := f.Detect(s); reason != "" {
			list = append(list, Candidate{f, reason})
		}
	}
	return list
}

// Describe names candidates in an error: "a (reason) or b (reason)".
func Describe(list []Candidate) string {
	var parts []string
	for _, c := range list {
		parts = append(parts, fmt.Sprintf("%s (%s)", c.Format.Name, c.Reason))
	}
	return strings.Join(parts, " or ")
}

// sajou is the format of the signal protocol.
func sajou() recording.Format {
	return recording.Format{
		Name: Sajou, Title: "Sajou signals", Grows: true,
		Recognized: "lines with type, timestamp, source and payload",
		Detect: func(s *recording.Sample) string {
			members := []string{"type", "timestamp", "source", "payload"}
			if s.AnyLine(func(v signal.Value) bool {
				return !slices.ContainsFunc(members, func(name string) bool { _, has := v.Get(name); return !has })
			}) {
				return "a line has type, timestamp, source and payload"
			}
			return ""
		},
	}
}
