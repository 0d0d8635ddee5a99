// Package signal is the vocabulary of the engine: the envelope of the signal
// protocol, the form of its payloads, and exact JSON values.
//
// A [Signal] is an event that an outside source reports: an envelope with a
// type, a time, a source and a payload. A JSON Schema, signal.schema.json
// ([Schema]), defines which signals are valid; the check of every signal is
// compiled from that file. [Parse] refuses what the schema refuses, with
// the path of the field; [ParseLenient] keeps it and notes the [Signal.Problem],
// because real senders break the schema and their recordings are useful
// nevertheless.
//
// A [Value] is one JSON value kept exactly: integers as integers to 64 bits,
// other numbers as doubles, members in their order. Text that cannot be kept exactly
// is refused ([ParseValue] has the rules), so that writing a value as JSON gives
// the value that was read. An [Object] builds one member by member; [Marshal] and
// [Value.Decode] convert between values and a program's own types by the rules of
// encoding/json.
//
// # Values
//
// A Value is msgpack (https://msgpack.org, all numbers big-endian) in these forms:
//
//	null     c0
//	boolean  c2 false, c3 true
//	integer  00..7f, e0..ff        itself, -32..127
//	         d0 i8, d1 i16, d2 i32, d3 i64   the shortest that holds it
//	         cf u64                beyond int64
//	float    cb f64                always, even when it is whole
//	string   a0..bf, d9 n8, da n16, db n32   then n bytes of UTF-8
//	array    90..9f, dc n16, dd n32          then n values
//	object   80..8f, de n16, df n32          then n pairs: a string, a value
//
// This package writes the shortest head. A reader must take any: also cc, cd,
// ce and a small cf for integers. No other form is a value; ca (32-bit float),
// binary data and extensions are refused. A literal such as 5.0 or 1e2 is a float, 5
// is an integer, and -0 the integer 0.
//
// # Entry data
//
// In a log a signal is one msgpack array with a head of one byte. Its length
// tells its form:
//
//	97  id, type, timestamp, source, correlationId|c0, metadata|c0, payload
//	98  the same, problem
//	92  object, problem
//
// The first is a signal that was valid when it was recorded. id, type,
// source and correlationId are strings, timestamp is an integer or a float,
// metadata and payload are objects; c0 means absent. The second is a signal
// whose envelope is regular (it has the five required fields, no unknown ones,
// all of the right kind) but whose payload the schema refused; problem is a
// string that is not empty. The third is any other object, whole.
//
// A signal {"id":"s","type":"x","timestamp":1.5,"source":"a","payload":{"n":1}} is
//
//	97                            array of 7
//	a1 73                         "s"
//	a1 78                         "x"
//	cb 3f f8 00 00 00 00 00 00    1.5
//	a1 61                         "a"
//	c0 c0                         no correlationId, no metadata
//	81 a1 6e 01                   {"n": 1}
//
// # Invariants
//
//   - Append, Decode and AppendJSON lose nothing: output and input are equal
//     as JSON values, and an integer stays different from a float. Parse converts
//     a decimal to the nearest double, and refuses text as [ParseValue] describes.
//   - Values do not nest deeper than [MaxDepth], the envelope's own level counted.
//   - No input is known to make this package panic. What it allocates grows in
//     proportion to the input: a value takes no more than 9/4 of its text. Only
//     [Value.Any], which makes Go values, takes many times the bytes of a value.
//   - The package reads neither a clock nor randomness and does not depend on
//     map order.
//
// # Limits
//
// The envelope's members are written in a fixed order, not in the sender's,
// and white space and the spelling of strings and floats are not kept: two texts that
// mean the same may give the same bytes. Decode does not check the schema again. The
// sender chooses an id; the package does not make it unique.
//
// docs/glossary.md has the nouns of all packages.
package signal

import (
	"errors"
	"fmt"
	"unicode/utf8"
	"unsafe"
)

// Signal is one envelope of the signal protocol.
//
// A Signal that was decoded or parsed is a view of the bytes it came from:
// it stays valid as long as it is held, and the bytes must not be written to.
type Signal struct {
	// ID names the signal for its sender. It may be empty, and two signals
	// may have the same.
	ID string

	// Type is the kind of event. The 14 well-known types have payloads of a
	// fixed form; any other type takes any object.
	Type string

	// Source names the sender, by convention "adapter:NAME".
	Source string

	// Timestamp is Unix time in milliseconds. It may have a fraction and may
	// be negative.
	Timestamp Number

	// CorrelationID ties signals of one piece of work together. Nil means
	// there is none; the empty string is an id like any other.
	CorrelationID *string

	// Metadata is an object whose content is free, or absent.
	Metadata Value

	// Payload is an object.
	Payload Value

	// Problem is the reason why the schema refuses the signal: the path of a field,
	// a colon, and the fault. It is empty for a valid signal, and set
	// only by [ParseLenient] and [Decode].
	Problem string

	// Raw is the whole object as it came, if the fields above cannot hold its
	// envelope: one of them is missing or of the wrong kind, or there are
	// others. The fields are then set as far as they go. Raw is absent for a
	// regular envelope, even if its payload is refused.
	Raw Value

	// proof holds the members that the schema has accepted, so that Validate need
	// not check a signal from Parse again.
	proof *proof
}

// proof holds the texts and values of a valid signal. They are immutable, so the
// proof holds as long as the signal has the same ones in the same memory.
type proof struct {
	id, typ, source   string
	correlationID     *string
	correlation       string // the target of the pointer
	timestamp         Number
	metadata, payload Value
}

func prove(s *Signal) proof {
	p := proof{s.ID, s.Type, s.Source, s.CorrelationID, "", s.Timestamp, s.Metadata, s.Payload}
	if s.CorrelationID != nil {
		p.correlation = *s.CorrelationID
	}
	return p
}

// holds reports whether p covers s as it is now.
func (p *proof) holds(s *Signal) bool {
	return p != nil && s.Raw == nil && sameText(p.id, s.ID) && sameText(p.typ, s.Type) && sameText(p.source, s.Source) &&
		p.correlationID == s.CorrelationID && (s.CorrelationID == nil || sameText(p.correlation, *s.CorrelationID)) &&
		p.timestamp == s.Timestamp && same(p.metadata, s.Metadata) && same(p.payload, s.Payload)
}

// same reports whether two values are one and the same memory, sameText whether
// two strings are.
func same(a, b Value) bool { return len(a) == len(b) && unsafe.SliceData(a) == unsafe.SliceData(b) }

func sameText(a, b string) bool {
	return len(a) == len(b) && unsafe.StringData(a) == unsafe.StringData(b)
}

// Parse reads one signal from its JSON text. A text that is not exact JSON
// gives a [*SyntaxError], one that the schema refuses a [*FieldError].
func Parse(line []byte) (*Signal, error) {
	s, refused, err := parse(line)
	if err != nil {
		return nil, err
	}
	if refused != nil {
		return nil, refused
	}
	return s, nil
}

// ParseLenient reads one signal from its JSON text. It accepts any JSON object; if
// the schema refuses the object, ParseLenient sets the Problem. The only errors are
// a [*SyntaxError], and a [*FieldError] with an empty path for a text that is not an
// object.
func ParseLenient(line []byte) (*Signal, error) {
	s, refused, err := parse(line)
	if err != nil {
		return nil, err
	}
	return s.leniently(refused)
}

// FromValue is [Parse] for a signal whose JSON was read already, as a part of a larger
// document. The value must come from [ParseValue] or have passed [CheckValue]; the signal is a view
// of it.
func FromValue(v Value) (*Signal, error) {
	s, refused := judgeEnvelope(v)
	if refused != nil {
		return nil, refused
	}
	return s, nil
}

// FromValueLenient is [ParseLenient] for a value, as [FromValue] is [Parse].
func FromValueLenient(v Value) (*Signal, error) {
	s, refused := judgeEnvelope(v)
	return s.leniently(refused)
}

// leniently makes the reason of a refusal the signal's Problem, unless it is not an object.
func (s *Signal) leniently(refused *FieldError) (*Signal, error) {
	if refused != nil {
		if s.Raw != nil && s.Raw.Kind() != KindObject {
			return nil, refused
		}
		s.Problem = refused.problem()
	}
	return s, nil
}

// parse reads a signal and returns separately why the schema refuses it. The
// signal is then as ParseLenient returns it, except for its Problem.
func parse(line []byte) (*Signal, *FieldError, error) {
	raw, err := ParseValue(line)
	if err != nil {
		return nil, nil, err
	}
	s, refused := judgeEnvelope(raw)
	return s, refused, nil
}

// judgeEnvelope makes a signal of a value, and returns why the schema refuses it.
func judgeEnvelope(raw Value) (*Signal, *FieldError) {
	// A signal that is accepted is one allocation with its proof.
	whole := new(struct {
		signal      Signal
		proof       proof
		correlation string
	})
	s := &whole.signal
	if refused := protocol().envelope.check(raw); refused != nil {
		s.Raw = raw
		s.fill(raw, &whole.correlation)
		return s, refused
	}
	s.fill(raw, &whole.correlation)
	if refused := judgePayload(s.Type, s.Payload); refused != nil {
		return s, refused
	}
	whole.proof = prove(s)
	s.proof = &whole.proof
	return s, nil
}

// fill sets the fields whose values in the envelope have the right kind. A valid
// envelope sets all of them. The correlation id is kept in correlation,
// if that is not nil.
func (s *Signal) fill(envelope Value, correlation *string) {
	for name, v := range envelope.Members() {
		switch name {
		case "id":
			s.ID, _ = v.Text()
		case "type":
			s.Type, _ = v.Text()
		case "timestamp":
			s.Timestamp, _ = v.Number()
		case "source":
			s.Source, _ = v.Text()
		case "correlationId":
			if text, ok := v.Text(); ok {
				if correlation == nil {
					correlation = new(string)
				}
				*correlation = text
				s.CorrelationID = correlation
			}
		case "metadata":
			if v.Kind() == KindObject {
				s.Metadata = v
			}
		case "payload":
			if v.Kind() == KindObject {
				s.Payload = v
			}
		}
	}
}

// Validate returns why the schema refuses the signal in its present state, a
// [*FieldError], or nil. It trusts none of the fields, so it can check signals that
// a program has built; it ignores their Problem.
func (s *Signal) Validate() error {
	if s.proof.holds(s) {
		return nil
	}
	if s.Raw != nil {
		if e := sound(s.Raw, MaxDepth); e != nil {
			return e
		}
		if e := judge(s.Raw); e != nil {
			return e
		}
		return nil
	}
	for _, f := range [...]struct{ name, text string }{{"id", s.ID}, {"type", s.Type}, {"source", s.Source}} {
		if !utf8.ValidString(f.text) {
			return (&FieldError{"", "is not UTF-8"}).under(f.name)
		}
	}
	if s.CorrelationID != nil && !utf8.ValidString(*s.CorrelationID) {
		return &FieldError{"/correlationId", "is not UTF-8"}
	}
	if !s.Timestamp.IsSet() {
		return &FieldError{"/timestamp", problemRequired}
	}
	if s.Metadata != nil {
		if e := sound(s.Metadata, envelopeRoom); e != nil {
			return e.under("metadata")
		}
	}
	if s.Payload == nil {
		return &FieldError{"/payload", problemRequired}
	}
	if e := sound(s.Payload, envelopeRoom); e != nil {
		return e.under("payload")
	}
	if e := judgePayload(s.Type, s.Payload); e != nil {
		return e
	}
	return nil
}

// Recheck sets the Problem to the reason why the schema refuses the signal in its present
// state, "" if the schema accepts it. A program that changes the signals of a sender
// calls it, because the Problem is about the signal as it came.
func (s *Signal) Recheck() {
	s.Problem = ""
	if refused, ok := errors.AsType[*FieldError](s.Validate()); ok {
		s.Problem = refused.problem()
	}
}

// sound returns why v is not one complete, well-formed object, nil if it is.
func sound(v Value, maxDepth int) *FieldError {
	n, err := checkAt(v, 0, maxDepth)
	switch {
	case err != nil:
		return &FieldError{"", "is malformed: " + err.Error()}
	case n < len(v):
		return &FieldError{"", "is more than one value"}
	case v.Kind() != KindObject:
		return &FieldError{"", fmt.Sprintf(problemKind, "an object", v.Kind().WithArticle())}
	}
	return nil
}

// AppendJSON appends the envelope as compact JSON. As a JSON value it equals the
// parsed text, all of it for an envelope kept in Raw. AppendJSON never writes the
// Problem.
func (s *Signal) AppendJSON(dst []byte) []byte {
	if s.Raw != nil {
		return s.Raw.AppendJSON(dst)
	}
	dst = appendText(append(dst, `{"id":`...), s.ID)
	dst = appendText(append(dst, `,"type":`...), s.Type)
	dst = s.Timestamp.AppendJSON(append(dst, `,"timestamp":`...))
	dst = appendText(append(dst, `,"source":`...), s.Source)
	if s.CorrelationID != nil {
		dst = appendText(append(dst, `,"correlationId":`...), *s.CorrelationID)
	}
	if s.Metadata != nil {
		dst = s.Metadata.AppendJSON(append(dst, `,"metadata":`...))
	}
	dst = s.Payload.AppendJSON(append(dst, `,"payload":`...))
	return append(dst, '}')
}
