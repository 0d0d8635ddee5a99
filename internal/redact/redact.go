// Package redact keeps personal data and credentials out of logs. [Handler] is a
// slog.Handler in front of another one; what passes through it is searched, and
// what is found is replaced by a mark.
//
//	logger := slog.New(redact.Handler(slog.NewJSONHandler(w, nil), redact.Options{}))
//	logger.Info("mail to bob@example.com", slog.String("api_key", key))
//	// {"msg":"mail to [EMAIL]","api_key":"[REDACTED]"}
//
// # What is found
//
// By name: the value of an attribute, of a group, of a struct's field or of a
// member of JSON whose name says that it is a password, a key, a token, an
// address, user data and so on ([Options.Fields] adds to the list). Case and the
// way to join words do not matter: apiKey, api_key and X-Api-Key are one name.
// Such a value is replaced as a whole, whatever it holds, unless it tells
// nothing: truth values, null, and numbers called tokens stay.
//
// By look, in all texts, messages and errors too:
//
//	[EMAIL]     bob@example.com
//	[PHONE]     +49 30 1234567, (555) 123-4567, 0170 1234567, tel 1234567
//	[ADDRESS]   12 Main Street, Hauptstraße 5, 3 rue de la Paix
//	[TOKEN]     sk-…, ghp_…, AKIA…, a JWT, "Bearer …", private keys, and what has no
//	            known look but 32 or more characters without any order in them
//	[REDACTED]  what follows password=, "api_key": and the like; user:password@ in a URL
//
// # What stays
//
// Everything else, to the byte. Words of any length and case, sequence numbers,
// times, versions, file paths and network addresses are not taken for secrets.
// Nor are digests and ids: hexadecimal of 32, 40, 64, 96 or 128 digits in one case,
// and UUIDs. Whoever has keys that look like that logs them under a name that
// says so, or not at all.
//
// To redact twice changes nothing more. A value is given on as it is if nothing
// was found in it; otherwise as strings, numbers, []any and map[string]any.
//
// # Bounds
//
// A record is searched up to 4096 values, 32 deep, and 128 KiB of text; one text
// up to [Options.MaxText]. What lies beyond was not searched, so it is not
// given on: [CUT] stands for it. A value that contains itself is followed once.
//
// # What it does not protect against
//
// Names of persons, what is spread over several attributes, what is encoded
// once more (base64 of an email), and secrets that look like words. It is a net
// beneath those who write logs, not a reason to log secrets.
package redact

import (
	"context"
	"log/slog"
	"slices"
)

// The marks that stand for what was found.
const (
	Mark    = "[REDACTED]"
	Email   = "[EMAIL]"
	Phone   = "[PHONE]"
	Address = "[ADDRESS]"
	Token   = "[TOKEN]"
	Cut     = "[CUT]"
)

var marks = []string{Mark, Email, Phone, Address, Token, Cut}

// Bounds of one record.
const (
	maxNodes = 4096
	maxDepth = 32
	maxBytes = 128 << 10
)

// Options say what is found beside what always is. The zero value is a good
// default.
type Options struct {
	// Fields are more names whose values are replaced.
	Fields []string

	// Keep are names whose values are identifiers: in them nothing is taken for
	// a phone number or for a token without a known look. Names that say that
	// their value is sensitive are not kept by it.
	Keep []string

	// MaxText bounds one text, in bytes; a longer one is cut. Zero means
	// 16 KiB; the least is 64.
	MaxText int
}

func (o Options) equal(p Options) bool {
	return slices.Equal(o.Fields, p.Fields) && slices.Equal(o.Keep, p.Keep) && o.MaxText == p.MaxText
}

// Handler returns a handler that gives on to inner what it is given, redacted.
// One that redacts by the same options already is returned itself.
func Handler(inner slog.Handler, o Options) slog.Handler {
	if h, ok := inner.(*handler); ok && h.rules.options.equal(o) {
		return inner
	}
	return &handler{inner: inner, rules: newRules(o)}
}

// handler is immutable.
type handler struct {
	inner  slog.Handler
	rules  *rules
	hidden bool // a group is open whose name says that all in it is sensitive
}

func (h *handler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.inner.Enabled(ctx, level)
}

func (h *handler) Handle(ctx context.Context, r slog.Record) error {
	w := &walk{rules: h.rules}
	message := w.text(r.Message, false)
	changed := message != r.Message
	attrs := make([]slog.Attr, 0, r.NumAttrs())
	r.Attrs(func(a slog.Attr) bool {
		a, c := h.attr(w, a)
		attrs, changed = append(attrs, a), changed || c
		return true
	})
	if !changed {
		return h.inner.Handle(ctx, r)
	}
	out := slog.NewRecord(r.Time, r.Level, message, r.PC)
	out.AddAttrs(attrs...)
	return h.inner.Handle(ctx, out)
}

func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	if len(attrs) == 0 {
		return h
	}
	w := &walk{rules: h.rules}
	out := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		out[i], _ = h.attr(w, a)
	}
	return &handler{h.inner.WithAttrs(out), h.rules, h.hidden}
}

func (h *handler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	w := &walk{rules: h.rules}
	return &handler{h.inner.WithGroup(w.text(name, false)), h.rules, h.hidden || h.rules.level(name) != plain}
}

func (h *handler) attr(w *walk, a slog.Attr) (slog.Attr, bool) {
	if h.hidden {
		return slog.String(w.text(a.Key, false), Mark), true
	}
	return w.attr(a, 0)
}
