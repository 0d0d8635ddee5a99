package sajou

import (
	"log/slog"

	"github.com/sajou-dev/sajou-go/redact"
)

// ids are the names of attributes whose values are identifiers, made by the engine or
// by its callers. They may look like secrets, but are not.
var ids = []string{
	"world_id", "agent_id", "req_id", "session", "sink", "path",
	"uuid", "hash", "head", "digest", "checksum", "context_digest",
}

// Redact returns a handler that removes email addresses, phone numbers, postal
// addresses, passwords, keys, tokens and user data from records before it passes them
// to inner. It replaces the values of attributes with telling names at any depth, and
// in messages, errors and other texts everything of the form of such data. Ids, hashes,
// numbers and long words stay. It is a safety net and does not recognize names of
// persons.
//
// It is for the logs of the embedding program too:
//
//	logger := slog.New(sajou.Redact(slog.NewJSONHandler(os.Stderr, nil)))
func Redact(inner slog.Handler) slog.Handler {
	return redact.Handler(inner, redact.Options{Keep: ids})
}

// RedactAlso returns a [Redact] that replaces the values of more names. Case and
// the separators of words do not matter: codeName matches code_name.
func RedactAlso(names ...string) func(slog.Handler) slog.Handler {
	return func(inner slog.Handler) slog.Handler {
		return redact.Handler(inner, redact.Options{Fields: names, Keep: ids})
	}
}

// Unredacted returns the handler as it is: everything is logged.
func Unredacted(inner slog.Handler) slog.Handler { return inner }
