package signal

// Signal is one envelope of the signal protocol.
//
// A Signal that was decoded or parsed is a view of the bytes it came from:
// it stays valid as long as it is held, and the bytes must not be written to.
type Signal struct {
	// ID names the signal for its sender. It may be empty, and two signals
	// may have the same.
	ID string

	// Type says what happened. The 14 well-known types have payloads of a
	// fixed form; any other type takes any object.
	Type string

	// Source says who tells it, by convention "adapter:NAME".
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

	// Problem says why the schema refuses the signal: the path of a field, a
	// colon, what is wrong with it. It is empty for a valid signal, and set
	// only by [ParseLenient] and [Decode].
	Problem string

	// Raw is the whole object as it came, if the fields above cannot hold its
	// envelope: one of them is missing or of the wrong kind, or there are
	// others. The fields are then set as far as they go. Raw is absent for a
	// regular envelope, even if its payload is refused.
	Raw Value
}
