package session

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/signal"
)

// ErrEntryJSON reports text that is not an entry as [AppendEntryJSON] writes it.
var ErrEntryJSON = errors.New("session: not an entry in JSON")

// WrittenEntry is an entry that was read from JSON.
type WrittenEntry struct {
	Seq  eventlog.Seq
	Hash string // in hexadecimal
	Key  string
	Kind eventlog.Kind
	Data []byte

	// At is the session time. JSON has it in milliseconds as a double, so that beyond
	// 104 days it can be Blur nanoseconds off; the hash tells which one it is.
	At   time.Duration
	Blur time.Duration
}

// ParseEntryJSON reads an entry as [AppendEntryJSON] writes it. The error is an
// [ErrEntryJSON]. That the entry is the one that the hash is of, the caller checks.
func ParseEntryJSON(text []byte) (WrittenEntry, error) {
	var e WrittenEntry
	bad := func(reason string) (WrittenEntry, error) { return e, fmt.Errorf("%w: %s", ErrEntryJSON, reason) }
	v, err := signal.ParseValue(text)
	if err != nil {
		return bad(err.Error())
	}
	ms, isNumber := v.Member("at").Float64()
	if e.Seq = eventlog.Seq(v.IntOf("seq")); v.IntOf("seq") <= 0 || !isNumber || !(math.Abs(ms) < math.MaxInt64/1e6) {
		return bad("it has no seq and at")
	}
	if e.Kind, err = eventlog.ParseKind(v.TextOf("kind")); err != nil {
		return bad(err.Error())
	}
	e.At = time.Duration(math.Round(ms * 1e6))
	e.Blur = time.Duration(math.Abs(math.Nextafter(ms, math.Inf(1))-ms) * 1e6)
	e.Hash, e.Key = v.TextOf("hash"), v.TextOf("key")
	if text, undecoded := v.Member("data").Text(); undecoded {
		if e.Data, err = hex.DecodeString(text); err != nil {
			return bad(err.Error())
		}
		return e, nil
	}
	if e.Kind == eventlog.KindSignal {
		sig, ok := writtenSignal(v)
		if !ok {
			return bad("it is no signal")
		}
		e.Data = sig.Append(nil)
		return e, nil
	}
	for word, value := range v.Member(e.Kind.String()).Members() {
		e.Data = AppendWord(nil, word, value)
		return e, nil
	}
	return bad("it has no content")
}

// writtenSignal is the signal of an entry in JSON.
func writtenSignal(v signal.Value) (sig signal.Signal, ok bool) {
	sig = signal.Signal{
		ID: v.TextOf("id"), Type: v.TextOf("type"), Source: v.TextOf("source"), Problem: v.TextOf("problem"),
		Metadata: v.Member("metadata"), Payload: v.Member("payload"), Raw: v.Member("raw"),
	}
	if corr, has := v.Member("correlationId").Text(); has {
		sig.CorrelationID = &corr
	}
	if sig.Raw != nil {
		return sig, true
	}
	sig.Timestamp, ok = v.Member("timestamp").Number()
	return sig, ok && sig.Payload.Kind() == signal.KindObject
}
