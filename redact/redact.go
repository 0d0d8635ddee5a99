// Package redact finds personal data and credentials in signals, texts and log records,
// and replaces every match by a mark. [Kinds] lists what it finds and what it leaves;
// [Ruleset] select kinds and add the names, expressions and paths of their author.
//
// A [Redactor] redacts signals, before they are recorded:
//
//	rules, diagnostics := redact.Compile("rules.yaml", text) // or redact.Default()
//	redactor := rules.NewRedactor()
//	n := redactor.Redact(sig)
//
// [Handler] returns a slog.Handler in front of another one:
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
// Such a value is replaced as a whole, unless it reveals nothing: truth values, null,
// and numbers called tokens stay.
//
// By look, in all texts, including messages and errors:
//
//	[EMAIL]     bob@example.com
//	[PHONE]     +49 30 1234567, (555) 123-4567, 0170 1234567, tel 1234567
//	[ADDRESS]   12 Main Street, Hauptstraße 5, 3 rue de la Paix
//	[TOKEN]     sk-…, ghp_…, AKIA…, a JWT, "Bearer …", private keys, and other runs of
//	            32 or more characters in disorder
//	[CARD]      4111 1111 1111 1111: an issuer's digits with the right check digit, in groups or not
//	[IBAN]      DE89 3704 0044 0532 0130 00: a country's length with the right check digits
//	[REDACTED]  the values of password=, "api_key":, --token and the like; <password>…</password>;
//	            user:password@ in a URL, and behind curl -u; lines of YAML below password:;
//	            values whose name is their neighbour: name="password" value="…"
//
// Characters may be escaped as in JSON (\u0040), URLs (%40), and HTML (&#64;); a text
// with a match in escaped form is passed on without the escapes.
//
// # What stays
//
// Digits alone are a phone number only behind + or the name of one: they may be a time.
// Everything else stays, to the byte. Words of any length and case, sequence numbers,
// times, versions, file paths and network addresses are not taken for secrets. Nor are
// digests and ids: hexadecimal of 32, 40, 64, 96 or 128 digits in one case, and UUIDs;
// and base64 behind sha256-, SHA256: and h1:. Log keys of that form under a sensitive
// name, or not at all.
//
// Redaction is idempotent. A value of a log record without a match is passed on
// unchanged; a value with one is passed on as strings, numbers, []any and
// map[string]any.
//
// # Bounds
//
// A signal is searched to its end. The time grows in proportion to the text.
//
// A log record is searched up to 4096 values, 32 deep, and 128 KiB of text; one text
// up to [Options.MaxText]. The rest is not searched, so it is replaced by [CUT]. A
// value that contains itself is followed once.
//
// # What it does not protect against
//
// Names of persons, secrets spread over several attributes or signals, further encodings
// (base64 of an email), and secrets that look like words are not found: a password that a
// tool prints without its name stays. Redaction is a second line of defence: the program
// must not log secrets in the first place, and package redact/content removes the texts
// of a session altogether.
//
// docs/glossary.md has the nouns of all packages.
package redact

import (
	"context"
	"log/slog"
	"slices"
)

// The marks that replace matches.
const (
	Mark    = "[REDACTED]"
	Email   = "[EMAIL]"
	Phone   = "[PHONE]"
	Address = "[ADDRESS]"
	Token   = "[TOKEN]"
	Card    = "[CARD]"
	IBAN    = "[IBAN]"
	Cut     = "[CUT]"
)

var marks = []string{Mark, Email, Phone, Address, Token, Card, IBAN, Cut}

// Bounds of one record.
const (
	maxNodes = 4096
	maxDepth = 32
	maxBytes = 128 << 10
)

// Options extend or restrict the search. The zero value is a good default.
type Options struct {
	// Fields are further names whose values are replaced.
	Fields []string

	// Keep are names whose values are identifiers: they are not searched for phone
	// numbers and for tokens without a known look. Keep does not apply to sensitive
	// names.
	Keep []string

	// MaxText bounds one text, in bytes; a longer one is cut. Zero means 16 KiB; the
	// minimum is 64.
	MaxText int
}

func (o Options) equal(p Options) bool {
	return slices.Equal(o.Fields, p.Fields) && slices.Equal(o.Keep, p.Keep) && o.MaxText == p.MaxText
}

// Handler returns a handler that passes redacted records to inner. If inner already
// redacts with the same options, Handler returns inner.
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
	hidden bool // an open group has a sensitive name
}

func (h *handler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.inner.Enabled(ctx, level)
}

func (h *handler) Handle(ctx context.Context, r slog.Record) error {
	w := &walk{finder: &finder{rules: h.rules}}
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
	w := &walk{finder: &finder{rules: h.rules}}
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
	w := &walk{finder: &finder{rules: h.rules}}
	return &handler{h.inner.WithGroup(w.text(name, false)), h.rules, h.hidden || h.rules.level(name) != plain}
}

func (h *handler) attr(w *walk, a slog.Attr) (slog.Attr, bool) {
	if h.hidden {
		return slog.String(w.text(a.Key, false), Mark), true
	}
	return w.attr(a, 0)
}
