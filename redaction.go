package sajou

import (
	"log/slog"
	"time"

	"github.com/sajou-dev/sajou-go/internal/redact"
)

// The names of log attributes about worlds and their agents, one spelling each.
const (
	WorldIDKey   = "world_id"   // the session's name
	GlobalSeqKey = "global_seq" // number of an effect
	ViewSeqKey   = "view_seq"   // number of the newest effect that an agent was shown
	AgentIDKey   = "agent_id"
	ReqIDKey     = "req_id"
	LatencyKey   = "latency_ms" // milliseconds, with their fraction
)

// Latency returns the attribute that says how long something took.
func Latency(d time.Duration) slog.Attr {
	return slog.Float64(LatencyKey, float64(d)/float64(time.Millisecond))
}

// ids are the names of attributes whose values the engine, or whoever asks it,
// made up to tell things apart. They may look like secrets and are none.
var ids = []string{
	WorldIDKey, AgentIDKey, ReqIDKey, "session", "sink", "path",
	"uuid", "hash", "head", "digest", "checksum", "context_digest",
}

// Redact returns a handler that gives on to inner what it is given without
// email addresses, phone numbers, postal addresses, passwords, keys, tokens and
// user data: it replaces the values whose names say that they are such a thing,
// wherever they stand, and in messages, errors and all other texts what looks
// like it. Ids, hashes, numbers and long words stay. It is a net, and finds no
// names of persons.
//
// It is for the logs of the embedding program too:
//
//	logger := slog.New(sajou.Redact(slog.NewJSONHandler(os.Stderr, nil)))
func Redact(inner slog.Handler) slog.Handler {
	return redact.Handler(inner, redact.Options{Keep: ids})
}

// RedactAlso returns a [Redact] that replaces the values of more names. Case and
// the way to join words do not matter: codeName is code_name.
func RedactAlso(names ...string) func(slog.Handler) slog.Handler {
	return func(inner slog.Handler) slog.Handler {
		return redact.Handler(inner, redact.Options{Fields: names, Keep: ids})
	}
}

// Unredacted returns the handler as it is: everything is logged.
func Unredacted(inner slog.Handler) slog.Handler { return inner }
