// Package layers holds the import graph of the module as one list: the
// grade of each package, and the packages of this module that it may import. The
// tests here hold the code to it; the configuration of the linter is generated from
// it, and the check of floating-point instructions reads it.
//
// docs/glossary.md has the nouns of all packages.
package layers

import (
	"slices"
	"strings"
)

const module = "github.com/sajou-dev/sajou-go"

// grade says which effects beside its arguments and results a package may have.
type grade int

const (
	// pure: no input or output, no clock, no randomness, no goroutine.
	pure grade = iota
	// timeless: no clock and no randomness; the caller passes its readers.
	timeless
	// effects: files, goroutines, waiting. The clock and randomness come through
	// the configuration; golangci-lint's forbidigo lists the places that read them.
	effects
)

func (g grade) String() string {
	return [...]string{pure: "pure", timeless: "timeless", effects: "free"}[g]
}

// layer is one package: its place, and the packages of this module that it may import.
type layer struct {
	dir   string // relative to the module's root
	grade grade
	may   []string // dirs of this module; each must stand further up in the list
}

// layers is the import graph, from the bottom up. A package may import the packages
// that its line names and no others of this module. Tests may import any.
var layers = []layer{
	{"internal/jsonpointer", pure, nil},
	{"internal/termtext", pure, nil},
	{"internal/errtext", pure, []string{"internal/termtext"}},
	{"internal/wording", pure, nil},
	{"signal", pure, []string{"internal/jsonpointer", "internal/wording"}},
	{"internal/detmath", pure, nil},
	{"internal/yaml", pure, []string{"signal"}},
	{"authored", pure, []string{"signal", "internal/jsonpointer", "internal/yaml"}},
	{"internal/spelling", pure, nil},
	{"internal/find", pure, nil},
	{"internal/privatefile", effects, nil}, // reads, writes and locks files
	{"redact", effects, []string{"signal", "authored", "internal/jsonpointer", "internal/spelling", "internal/wording"}}, // a slog.Handler hands on what it was given; the rest is pure
	{"redact/content", pure, []string{"signal", "redact"}},
	{"internal/statecodec", pure, []string{"signal"}},
	{"choreography/curve", pure, []string{"internal/wording", "internal/detmath"}},
	{"choreography/definition", pure, []string{"signal", "internal/find", "choreography/curve"}},
	{"choreography/language", pure, []string{"internal/spelling", "internal/wording", "signal", "choreography/curve", "choreography/definition", "authored"}},
	{"choreography", pure, []string{"signal", "internal/statecodec", "choreography/curve", "choreography/definition", "choreography/language"}},
	{"agents/internal/jsonvalue", pure, []string{"signal"}},
	{"agents/jsondoc", pure, []string{"signal", "agents/internal/jsonvalue", "internal/jsonpointer"}},
	{"agents/flow", pure, nil},
	{"agents/internal/timers", pure, nil},
	{"agents/internal/strictjson", pure, []string{"signal", "internal/jsonpointer"}},
	{"agents/internal/codec", pure, []string{"signal", "internal/statecodec", "agents/internal/jsonvalue"}},
	{"agents/world", pure, []string{"signal", "internal/detmath", "agents/internal/jsonvalue", "agents/internal/codec", "internal/jsonpointer"}},
	{"agents/view", pure, []string{"signal", "agents/internal/jsonvalue", "agents/jsondoc", "agents/internal/strictjson", "agents/internal/codec", "agents/world", "internal/jsonpointer"}},
	{"agents", pure, []string{"signal", "agents/internal/jsonvalue", "agents/jsondoc", "agents/internal/strictjson", "agents/internal/codec", "agents/world", "agents/view", "agents/flow", "agents/internal/timers", "internal/jsonpointer"}},
	{"agents/query", pure, []string{"signal", "agents/internal/jsonvalue", "agents/jsondoc", "agents/world", "agents/view", "agents", "internal/jsonpointer"}},
	{"director/episode", pure, []string{"internal/wording", "signal", "internal/find", "choreography/definition", "choreography/language", "authored"}},
	{"director/episode/graph", pure, []string{"director/episode"}},
	{"director", pure, []string{"signal", "internal/wording", "internal/statecodec", "director/episode"}},
	{"director/explore", pure, []string{"internal/wording", "signal", "director/episode", "director"}},
	{"director/script", pure, []string{"director/episode", "director"}},
	{"stage/scene", pure, []string{"signal", "internal/find", "internal/wording", "choreography/definition", "choreography/language", "authored"}},
	{"stage/toolplace", pure, []string{"internal/find"}},
	{"stage/agentscene", pure, []string{"signal", "choreography/language", "stage/scene", "stage/toolplace"}},
	{"stage", pure, []string{"signal", "choreography/curve", "choreography/definition", "choreography", "stage/scene", "internal/statecodec", "internal/wording"}},
	{"choreography/rehearsal", pure, []string{"internal/jsonpointer", "signal", "choreography/language", "choreography", "authored", "stage/scene", "stage"}},
	{"stage/picture", pure, []string{"stage/scene", "stage"}},
	{"stage/overview", pure, []string{"signal", "stage/toolplace", "stage/picture"}},
	{"eventlog/chain", pure, nil},
	{"eventlog/internal/keyspace", timeless, []string{"eventlog/chain"}},
	{"eventlog/internal/storefile", effects, []string{"eventlog/chain", "eventlog/internal/keyspace"}},
	{"eventlog/verify", effects, []string{"eventlog/chain", "eventlog/internal/keyspace"}},
	{"eventlog", effects, []string{"eventlog/chain", "eventlog/internal/keyspace", "eventlog/internal/storefile", "eventlog/verify"}},
	{"projection", pure, []string{"eventlog"}},
	{"workspace/internal/shell", pure, nil},
	{"workspace", pure, []string{"signal", "internal/statecodec", "eventlog", "projection", "workspace/internal/shell"}},
	{"workspace/risk", pure, []string{"eventlog", "workspace", "workspace/internal/shell"}},
	{"snapshot", effects, []string{"eventlog", "projection"}},
	{"replay/postings", effects, []string{"eventlog"}}, // reads and writes a file beside the log
	{"replay", timeless, []string{"choreography", "eventlog", "projection", "snapshot", "replay/postings"}},
	{"replay/align", pure, nil},
	{"replay/bookmark", timeless, []string{"eventlog", "replay"}},
	{"replay/bookmark/bookfile", effects, []string{"internal/privatefile", "replay/bookmark"}}, // one file
	{"replay/bisect", timeless, []string{"projection", "replay"}},
	{"replay/sentinel", timeless, []string{"eventlog", "projection", "replay"}},
	{"replay/testprogram", effects, []string{"replay/bisect"}}, // starts processes
	{"replay/searchlog", timeless, []string{"eventlog", "replay", "replay/bisect"}},
	{"replay/where", timeless, []string{"signal", "choreography", "eventlog", "projection", "internal/spelling", "internal/find", "internal/wording"}},
	{"internal/secret", pure, nil},
	{"ingest/recording", timeless, []string{"signal"}}, // reads files of an fs.FS that it was given
	{"ingest/spans", timeless, []string{"signal", "ingest/recording"}},
	{"ingest/otlp", timeless, []string{"signal", "ingest/recording", "ingest/spans"}},
	{"ingest/otlpexport", pure, []string{"signal"}},
	{"ingest/jaeger", timeless, []string{"signal", "ingest/recording", "ingest/spans"}},
	{"ingest/flatspans", timeless, []string{"signal", "ingest/recording", "ingest/spans"}},
	{"ingest/claudecode", timeless, []string{"signal", "ingest/recording"}},
	{"ingest/hooks", timeless, []string{"signal", "ingest/recording"}},
	{"ingest/partition", pure, []string{"signal", "eventlog/chain"}},
	{"ingest/hooks/forward", effects, []string{"signal", "internal/privatefile", "ingest/recording", "ingest/hooks", "ingest/partition"}}, // a file of what waits, and one connection
	{"ingest/hooks/settings", pure, nil},
	{"ingest/dial", effects, []string{"signal", "ingest/recording"}}, // connects to a source
	{"ingest/codex", timeless, []string{"signal", "ingest/recording"}},
	{"ingest/openhands", timeless, []string{"signal", "ingest/recording"}},
	{"ingest/sweagent", timeless, []string{"signal", "ingest/recording"}},
	{"ingest/minisweagent", timeless, []string{"signal", "ingest/recording"}},
	{"ingest/cline", timeless, []string{"signal", "ingest/recording"}},
	{"ingest/atif", timeless, []string{"signal", "ingest/recording"}},
	{"ingest/aider", timeless, []string{"signal", "ingest/recording"}},
	{"ingest/mcp", timeless, []string{"signal", "ingest/recording"}},
	{"ingest/gemini", timeless, []string{"signal", "ingest/recording"}},
	{"ingest/copilot", timeless, []string{"signal", "ingest/recording"}},
	{"ingest/cloudevents", timeless, []string{"signal", "ingest/recording"}},
	{"ingest/langfuse", timeless, []string{"signal", "ingest/recording", "ingest/spans"}},
	{"ingest/agentssdk", timeless, []string{"signal", "ingest/recording", "ingest/spans"}},
	{"ingest/langsmith", timeless, []string{"signal", "ingest/recording", "ingest/spans"}},
	{"ingest/formats", timeless, []string{"signal", "ingest/recording", "ingest/claudecode", "ingest/hooks", "ingest/codex", "ingest/gemini", "ingest/copilot", "ingest/cloudevents", "ingest/openhands", "ingest/sweagent", "ingest/minisweagent", "ingest/cline", "ingest/atif", "ingest/aider", "ingest/mcp", "ingest/otlp", "ingest/jaeger", "ingest/flatspans", "ingest/langfuse", "ingest/agentssdk", "ingest/langsmith"}},
	{"ingest/source", effects, []string{"ingest/recording", "ingest/formats"}}, // opens files, folders and archives
	{"session", timeless, []string{"internal/wording", "signal", "choreography/definition", "choreography/language", "choreography", "agents", "director/episode", "director", "internal/statecodec", "eventlog", "projection", "snapshot", "replay", "stage/scene", "stage"}},
	{"replay/variant", timeless, []string{"signal", "agents", "director/episode", "choreography/definition", "choreography/language", "eventlog/chain", "eventlog", "replay", "session", "stage/scene"}},
	{"replay/provenance", timeless, []string{"internal/jsonpointer", "signal", "choreography/definition", "choreography/language", "choreography", "eventlog", "projection", "replay/postings", "replay", "stage", "session", "agents", "director/episode", "director"}},
	{"session/summary", pure, []string{"signal", "redact", "redact/content", "ingest/recording"}},
	{"session/transcript", pure, []string{"signal", "eventlog", "internal/termtext", "ingest/recording"}},
	{"session/textsearch", pure, []string{"signal", "eventlog", "session", "internal/jsonpointer"}},
	{"session/price", pure, []string{"authored", "internal/spelling", "session/summary"}},
	{"ingest/found", effects, []string{"signal", "ingest/recording", "ingest/source", "session/price", "session/summary"}},
	{"stage/film", timeless, []string{"signal", "stage/scene", "stage", "stage/picture", "stage/overview", "eventlog", "projection", "replay", "session"}},
	{"replay/compare", timeless, []string{"signal", "choreography", "stage", "eventlog", "projection", "replay", "replay/align", "session", "stage/picture", "stage/film"}},
	{"replay/order", timeless, []string{"eventlog", "projection", "replay", "replay/compare", "session", "stage"}},
	{"stage/imagetest", timeless, []string{"stage", "stage/picture", "stage/film"}},
	{"stage/debugger", timeless, []string{"signal", "director/episode", "stage", "stage/picture", "stage/film", "eventlog", "projection", "replay", "replay/where", "session", "internal/jsonpointer", "internal/termtext"}},
	{"replay/course", timeless, []string{"choreography", "eventlog", "replay", "session"}},
	{"replay/timing", timeless, []string{"choreography", "director", "director/episode", "eventlog", "replay", "session", "replay/course"}},
	{"replay/export/asciicast", timeless, []string{"internal/termtext", "eventlog", "projection", "replay", "session", "stage/picture", "stage/film"}},
	{"replay/export/webpage", timeless, []string{"internal/termtext", "replay", "replay/bookmark", "session", "stage/picture", "stage/film"}},
	{"replay/export/mcap", timeless, []string{"choreography", "eventlog", "replay", "session"}},
	{"replay/export/perfetto", timeless, []string{"internal/termtext", "signal", "choreography", "eventlog", "replay", "session", "replay/course"}},
	{"internal/writer", effects, []string{"internal/statecodec", "eventlog", "projection", "snapshot", "replay", "session"}},
	{"stage/live", effects, []string{"choreography", "stage", "eventlog", "projection", "replay", "session", "internal/writer"}},
	{"agents/live", effects, []string{"signal", "agents", "eventlog", "projection", "session", "internal/writer", "agents/world", "agents/view", "agents/query", "agents/flow"}},
	{"agents/generate", effects, []string{"signal", "agents", "eventlog", "session", "agents/live", "agents/view", "agents/flow"}},
	{"agents/history", timeless, []string{"signal", "agents", "director/episode", "eventlog", "snapshot", "replay/postings", "replay", "session", "agents/jsondoc", "agents/view", "agents/query"}},
	{"director/history", timeless, []string{"signal", "agents", "director/episode", "director", "eventlog", "replay", "session"}},
	{"replay/fork", timeless, []string{"signal", "agents", "agents/world", "director/episode", "director", "director/history", "eventlog", "projection", "replay", "replay/variant", "session"}},
	{"director/live", effects, []string{"signal", "agents", "director/episode", "director", "eventlog", "projection", "replay", "session", "internal/writer", "director/history"}},
	{".", effects, []string{"signal", "choreography/definition", "choreography/language", "choreography", "agents", "director/episode", "director", "stage", "eventlog/chain", "eventlog/verify", "eventlog", "projection", "workspace", "snapshot", "replay", "replay/fork", "redact", "session", "internal/writer", "stage/live", "agents/live", "agents/history", "director/live", "agents/query", "replay/sentinel", "replay/postings"}},
	{"ingest", timeless, []string{"signal", "choreography/language", "eventlog/chain", "eventlog", "session", "ingest/recording", "."}},
	{"director/play", effects, []string{"internal/termtext", "signal", "director/episode", "director", "director/script", "eventlog", "session", "agents/generate", "director/live", "."}},
	{"adapter/openai", effects, []string{"agents", "director", "internal/secret", "agents/generate", "agents/flow"}},
	{"adapter/prometheus", effects, []string{"agents/flow", "eventlog", "stage/live", "agents/live", "director/live", "."}},
	{"adapter/otel", effects, []string{"agents", "agents/flow", "eventlog", "agents/live", "director/live", "."}},
	{"agents/rl", effects, []string{"signal", "agents", "eventlog", "projection", "replay", "agents/live", ".", "agents/world", "agents/jsondoc", "agents/view", "session"}},
	{"agents/message", effects, []string{"signal", "agents", "eventlog", "projection", "replay", "agents/live", ".", "agents/world", "session"}},
	{"docs/examples/service", effects, []string{"signal", "choreography/definition", "choreography/language", "choreography", "agents", "eventlog", "projection", "replay", "session", "stage/live", "agents/message", "adapter/prometheus", "."}}, // the program of docs/embedding.md
	{"internal/enginetest", effects, []string{"eventlog/chain", "signal", "choreography", "choreography/definition", "choreography/language", "agents", "agents/jsondoc", "agents/query", "agents/view", "director", "director/episode", "stage", "stage/scene", "eventlog", "projection", "replay", "session", "agents/generate", "agents/history", "agents/live", "agents/message", "director/live", "stage/live", "."}},
	{"internal/conformance", effects, nil},
	{"internal/lint", pure, []string{"signal", "internal/find", "internal/spelling", "choreography/definition", "choreography/language", "stage", "stage/scene", "internal/wording", "authored"}},
	{"internal/answer", timeless, []string{"internal/errtext", "internal/spelling", "internal/jsonpointer", "internal/termtext", "signal", "agents/jsondoc", "agents/view", "agents", "agents/query", "agents/history", "choreography", "choreography/rehearsal", "eventlog/verify", "eventlog", "projection", "workspace", "replay", "replay/bisect", "replay/provenance", "replay/where", "session", "session/summary", "internal/lint", "director/episode", "director/history", "stage", "stage/scene", "replay/fork", "stage/film", "stage/imagetest", "stage/picture"}}, // the JSON of answers, of the command line and the servers
	{"internal/traces", timeless, []string{"signal", "eventlog", "ingest/otlpexport", "session"}},
	{"replay/corpus", effects, []string{"authored", "choreography/definition", "choreography/language", "eventlog", "eventlog/verify", "replay/sentinel", ".", "ingest", "internal/lint"}},
	{"replay/edits", timeless, []string{"projection", "replay", "replay/bisect", "replay/variant", "session"}},
	{"replay/edits/versions", effects, []string{"replay/bisect", "replay/edits"}}, // reads files and runs git
	{"internal/simulate", timeless, []string{"internal/jsonpointer", "internal/wording", "signal", "internal/spelling", "agents", "eventlog", "projection", "agents/live", ".", "agents/jsondoc", "agents/world", "agents/view", "authored", "session", "agents/flow"}},
	{"server/access", effects, []string{"internal/privatefile"}},
	{"server/limit", effects, nil},
	{"server/problem", effects, []string{"signal", "internal/errtext", "authored", "choreography/definition", "director", "eventlog", "replay", "replay/where", "session", "agents/live", "agents/history", "server/access", "agents/jsondoc", "agents/view", "replay/provenance", "replay/bookmark", "replay/variant", "stage/film", "server/limit"}},
	{"server/route", effects, []string{"eventlog/chain", "server/access", "server/problem"}},
	{"server/stream", effects, nil},
	{"server/record", effects, []string{"signal", "internal/errtext", "choreography", "eventlog", "session", "ingest/recording", "ingest/partition", ".", "ingest", "server/access", "server/limit", "server/route", "server/problem", "server/stream"}},
	{"server/otlp/spool", effects, nil}, // files in one directory
	{"server/otlp", effects, []string{"signal", "eventlog", "ingest/otlp", "ingest/partition", ".", "server/access", "server/limit", "server/otlp/spool", "server/route", "server/problem"}},
	{"server/local", effects, []string{"eventlog", ".", "server/access", "server/problem", "server/route"}}, // listens on a socket beside a store
	{"server/agentwire", effects, []string{"signal", "agents", "agents/jsondoc", "agents/view", "agents/world", "agents/generate", "agents/live", "director", "director/episode", "director/live", "eventlog", "projection", "session", ".", "server/access", "server/route", "server/problem", "internal/jsonpointer"}},
	{"server/watch", effects, []string{"choreography", "director/history", "eventlog", "stage", "stage/live", "replay", "session", "internal/answer", "internal/errtext", ".", "server/access", "server/problem", "server/route", "server/stream"}},
	{"server/mcp", effects, []string{".", "agents", "agents/history", "agents/jsondoc", "agents/query", "agents/view", "authored", "choreography", "choreography/definition", "choreography/language", "choreography/rehearsal", "eventlog", "eventlog/verify", "internal/answer", "internal/errtext", "internal/lint", "internal/termtext", "projection", "replay", "replay/bisect", "replay/fork", "replay/provenance", "replay/variant", "replay/where", "server/access", "server/problem", "server/route", "session", "signal", "stage/film", "stage/overview", "stage/picture", "workspace"}},
	{"server/mirror", effects, []string{"eventlog", "session", ".", "ingest", "server/access", "server/problem", "server/route"}},
	{"server/read", effects, []string{".", "agents/history", "agents/jsondoc", "agents/query", "agents/view", "signal", "choreography", "choreography/definition", "choreography/language", "ingest/otlpexport", "internal/answer", "internal/lint", "internal/termtext", "internal/traces", "eventlog", "projection", "workspace", "replay", "replay/bookmark", "replay/bookmark/bookfile", "replay/course", "replay/export/asciicast", "replay/export/mcap", "replay/export/perfetto", "replay/export/webpage", "replay/provenance", "replay/where", "session", "director/history", "stage/film", "stage/picture", "stage/scene", "server/access", "server/problem", "server/route"}},
	{"server/job", effects, []string{".", "agents/history", "agents/query", "choreography/definition", "choreography/language", "eventlog", "eventlog/verify", "internal/answer", "internal/lint", "internal/termtext", "projection", "replay", "replay/bisect", "replay/provenance", "replay/variant", "replay/where", "session", "signal", "stage/imagetest", "workspace", "server/access", "server/limit", "server/problem", "server/route"}},
	{"server/schema", effects, []string{"agents", "agents/view", "agents/world", "director/episode", "signal", "stage/scene", "server/access", "server/agentwire", "server/problem", "server/route"}},
	{"server", effects, []string{".", "server/access", "server/route", "server/problem", "server/read", "server/job", "server/schema", "eventlog", "server/limit", "server/local", "server/agentwire", "server/record", "server/mirror", "server/mcp", "server/otlp", "server/watch"}},
	{"internal/spanexport", effects, nil}, // sends spans
	{"server/settings", effects, []string{"internal/spanexport", "authored", "signal", "internal/spelling", "server", "server/access", "ingest/partition"}},
	{"internal/servertest", effects, []string{".", "choreography/definition", "choreography/language", "ingest", "internal/enginetest", "internal/lint", "internal/simulate", "signal"}},
	{"internal/mutate", effects, nil}, // breaks the code on purpose
	{"internal/bench", effects, []string{"signal", "choreography/language", "choreography", "agents", "director/episode", "director", "director/explore", "stage/scene", "stage", "stage/picture", "eventlog/verify", "eventlog", "projection", "replay", "replay/bisect", "replay/compare", "replay/corpus", "replay/order", "replay/variant", "replay/provenance", "replay/where", "stage/film", "stage/imagetest", "agents/live", "agents/generate", ".", "adapter/openai", "agents/world", "agents/view", "choreography/definition", "session", "server/access", "server/agentwire", "server", "server/limit", "server/record"}},
	{"internal/soak", effects, []string{".", "agents", "agents/world", "eventlog", "eventlog/verify", "server", "server/access", "server/agentwire", "server/limit", "server/record", "signal"}},
	{"internal/memlimit", effects, nil},
	{"internal/golden", effects, nil},
	{"internal/recordingtest", effects, []string{"signal", "ingest/recording"}},
	{"internal/schematest", effects, nil},
	{"internal/msgptest", pure, nil},
	{"internal/attack", effects, nil},
	{"internal/noninterference", effects, nil},
	{"docs", effects, nil}, // tests of its pages
	{"internal/layers", effects, nil},
	{"internal/fpcheck", effects, []string{"internal/layers"}},
	{"cmd/sajou-replay/internal/cli", effects, []string{"server/local", "server/mirror", "adapter/openai", "replay/searchlog", "internal/termtext", "signal", "authored", "internal/spelling", "choreography/language", "choreography", "agents", "director/episode", "stage/scene", "stage/picture", "eventlog", "projection", "workspace", "replay", "replay/bookmark", "replay/bookmark/bookfile", "internal/privatefile", "replay/where", "session", "stage/film", ".", "director/play", "internal/lint", "internal/memlimit", "replay/edits", "replay/variant", "internal/answer", "internal/errtext"}},
	{"cmd/sajou-replay/internal/episodecmd", effects, []string{"internal/termtext", "signal", "authored", "director/episode", "director/episode/graph", "director", "director/explore", "director/script", "eventlog", "replay", "session", "agents/generate", "director/history", ".", "director/play", "adapter/openai", "replay/timing", "projection", "cmd/sajou-replay/internal/cli", "internal/answer"}},
	{"cmd/sajou-replay/internal/stagecmd", effects, []string{"internal/termtext", "signal", "authored", "choreography/definition", "choreography/language", "choreography", "choreography/rehearsal", "stage/scene", "stage", "stage/picture", "stage/overview", "eventlog", "projection", "replay", "session", "stage/film", ".", "internal/lint", "cmd/sajou-replay/internal/cli", "workspace", "replay/where", "stage/debugger", "internal/answer"}},
	{"cmd/sajou-replay/internal/agentscmd", effects, []string{"internal/termtext", "signal", "authored", "agents/jsondoc", "agents/view", "agents", "eventlog", "replay", "session", "agents/history", "internal/simulate", "cmd/sajou-replay/internal/cli", "agents/query", "internal/answer"}},
	{"cmd/sajou-replay/internal/statecmd", effects, []string{"director/play", "director/history", "agents/generate", "adapter/openai", "replay/order", "replay/searchlog", "internal/termtext", "choreography/language", "choreography/definition", "choreography/rehearsal", "stage/picture", "eventlog", "projection", "workspace", "workspace/risk", "replay", "replay/where", "session", "stage/film", "stage/imagetest", "cmd/sajou-replay/internal/cli", "replay/compare", "replay/bookmark", ".", "replay/provenance", "replay/bisect", "replay/edits", "replay/edits/versions", "replay/testprogram", "signal", "replay/fork", "replay/variant", "replay/corpus", "replay/sentinel", "choreography", "internal/answer"}},
	{"cmd/sajou-replay/internal/logcmd", effects, []string{"internal/wording", "internal/termtext", "internal/spelling", "signal", "choreography/language", "choreography", "eventlog/verify", "eventlog", "snapshot", "replay", "replay/where", "session", "session/summary", ".", "ingest", "ingest/recording", "ingest/otlpexport", "replay/course", "replay/export/perfetto", "replay/export/asciicast", "replay/export/mcap", "replay/export/webpage", "stage/film", "stage/picture", "ingest/formats", "ingest/source", "ingest/found", "session/price", "stage/agentscene", "redact", "redact/content", "authored", "cmd/sajou-replay/internal/cli", "replay/sentinel", "replay/bookmark", "internal/answer", "internal/traces"}},
	{"cmd/sajou-replay/internal/textcmd", effects, []string{"internal/termtext", "signal", "eventlog", "projection", "session/transcript", "session/textsearch", ".", "cmd/sajou-replay/internal/cli"}},
	{"cmd/sajou-replay/internal/servecmd", effects, []string{"adapter/otel", "internal/privatefile", "internal/spanexport", "internal/spelling", "internal/termtext", ".", "server", "server/settings", "ingest/hooks/forward", "cmd/sajou-replay/internal/cli", "adapter/prometheus", "server/local", "signal", "eventlog", "ingest", "ingest/recording", "ingest/dial", "ingest/hooks/settings", "ingest/partition", "server/access", "server/mcp"}},
	{"cmd/sajou-hook", effects, []string{"ingest/hooks/forward"}},
	{"cmd/sajou-replay", effects, []string{"internal/termtext", "internal/spelling", "signal", "agents/world", "agents/view", "agents", "director/episode", "stage/scene", "internal/simulate", "choreography/definition", "choreography/language", "stage", "stage/picture", "eventlog/verify", "eventlog", "projection", "replay", "replay/bisect", "replay/where", "session", "ingest", "internal/lint", "cmd/sajou-replay/internal/cli", "cmd/sajou-replay/internal/episodecmd", "cmd/sajou-replay/internal/stagecmd", "cmd/sajou-replay/internal/agentscmd", "cmd/sajou-replay/internal/statecmd", "cmd/sajou-replay/internal/logcmd", "cmd/sajou-replay/internal/servecmd", "cmd/sajou-replay/internal/textcmd"}},
}

// sharedNames are the names under which more than one package exports a type,
// with the reason. All other names of types are unique.
var sharedNames = map[string]string{
	"Config":      "the configuration of a constructor of the package",
	"Options":     "the options of a function of the package",
	"Request":     "one request for a generation: to a model, and to the server of a model",
	"Session":     "the root package's Session writes into an eventlog.Session",
	"State":       "the state of a fold",
	"SyntaxError": "one for each syntax, JSON and YAML",
	"Turn":        "the exclusive right to act, in a session of the log and in an environment of agents",
	"Writer":      "the writer of entries to a log, and the writer of images beside it",
}

// outside lists the packages of the standard library with external effects. A
// trailing slash includes all packages below.
var outside = []string{
	"os", "os/", "net", "net/", "syscall", "plugin", "log", "log/", "io/ioutil", "database/sql",
	"C", "runtime/debug", "testing",
}

// chance are the imports that make a result differ from run to run.
var chance = []string{"math/rand", "math/rand/v2", "crypto/rand", "hash/maphash"}

// clock are the functions of package time that read or wait for the clock.
var clock = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}

// moduleDir returns the dir of an import path, if it is one of this module.
func moduleDir(importPath string) (dir string, ours bool) {
	if importPath == module {
		return ".", true
	}
	return strings.CutPrefix(importPath, module+"/")
}

// Deterministic returns the packages whose results must be the same on every
// machine, the pure and the timeless ones, relative to the module's root and in
// the order of the list.
func Deterministic() []string {
	var dirs []string
	for _, l := range layers {
		if l.grade != effects {
			dirs = append(dirs, l.dir)
		}
	}
	return dirs
}

// Packages returns all packages of the module, relative to its root, in the order
// of the list.
func Packages() []string {
	var dirs []string
	for _, l := range layers {
		dirs = append(dirs, l.dir)
	}
	return dirs
}

// Public returns the packages that other programs can import, relative to the module's
// root and in the order of the list.
func Public() []string {
	var dirs []string
	for _, dir := range Packages() {
		first, _, _ := strings.Cut(dir, "/")
		if first != "cmd" && first != "docs" && !slices.Contains(strings.Split(dir, "/"), "internal") {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}
