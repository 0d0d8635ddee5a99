package sajou

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/tinylib/msgp/msgp"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/signal"
	"github.com/sajou-dev/sajou-go/stage/scene"
)

// The first elements of define and session entries' data. These kinds, and
// effects, hold an array of two: a word that says what it is, and the thing. The
// words of effects are those of [agents.Record], those of beats of [director.Record].
const (
	wordScene  = "scene"  // ["scene", the scene as it was written]
	wordOpened = "opened" // ["opened", {"time": authority}]
	wordClock  = "clock"  // ["clock", {"origin": Unix time at session time zero, ns}]
	wordTick   = "tick"   // ["tick", {}]: session time has come this far
)

// appendOpened appends the data of a session's first entry.
func appendOpened(dst []byte, authority TimeAuthority) []byte {
	dst = msgp.AppendArrayHeader(dst, 2)
	dst = msgp.AppendString(dst, wordOpened)
	dst = msgp.AppendMapHeader(dst, 1)
	dst = msgp.AppendString(dst, "time")
	return msgp.AppendString(dst, string(authority))
}

// appendClock appends the data of the entry that says when session time began,
// where no signal has said so.
func appendClock(dst []byte, origin int64) []byte {
	dst = msgp.AppendArrayHeader(dst, 2)
	dst = msgp.AppendString(dst, wordClock)
	dst = msgp.AppendMapHeader(dst, 1)
	dst = msgp.AppendString(dst, "origin")
	return msgp.AppendInt64(dst, origin)
}

// appendTick appends the data of the entry that lets time pass.
func appendTick(dst []byte) []byte {
	dst = msgp.AppendArrayHeader(dst, 2)
	dst = msgp.AppendString(dst, wordTick)
	return msgp.AppendMapHeader(dst, 0)
}

// appendWord appends the data of an entry of which the word says what it is.
func appendWord(dst []byte, word string, v signal.Value) []byte {
	dst = msgp.AppendArrayHeader(dst, 2)
	dst = msgp.AppendString(dst, word)
	return append(dst, v...)
}

// WorldRecordOf returns what an effect entry says of the agents' world. It
// points into the entry.
func WorldRecordOf(e *eventlog.Entry) (agents.Record, error) {
	if e.Kind != eventlog.KindEffect {
		return agents.Record{}, fmt.Errorf("sajou: entry %d is no effect but a %v", e.Seq, e.Kind)
	}
	word, v, err := wordOf(e)
	return agents.Record{Word: word, Value: v}, err
}

// wordOf splits the data of a define, effect, beat or session entry.
func wordOf(e *eventlog.Entry) (word string, v signal.Value, err error) {
	n, b, err := msgp.ReadArrayHeaderBytes(e.Data)
	if err != nil || n != 2 {
		return "", nil, fmt.Errorf("sajou: entry %d: %w: its data is not an array of two", e.Seq, eventlog.ErrCorrupt)
	}
	text, b, err := msgp.ReadStringZC(b)
	if err != nil {
		return "", nil, fmt.Errorf("sajou: entry %d: %w: its data begins with no word", e.Seq, eventlog.ErrCorrupt)
	}
	v, rest, err := signal.CheckValue(b)
	if err != nil || len(rest) != 0 {
		return "", nil, fmt.Errorf("sajou: entry %d: %w: its data is not a JSON value", e.Seq, eventlog.ErrCorrupt)
	}
	return string(text), v, nil
}

// DeclarationOf returns what a define entry brought into force.
func DeclarationOf(e *eventlog.Entry) (choreography.Declaration, error) {
	word, v, err := wordOf(e)
	if err != nil {
		return nil, err
	}
	d, err := compile(word, v)
	if err != nil {
		return nil, fmt.Errorf("sajou: entry %d: %w", e.Seq, err)
	}
	return d, nil
}

// compile makes a declaration of what a define entry holds.
func compile(word string, v signal.Value) (choreography.Declaration, error) {
	switch word {
	case wordScene:
		s, err := scene.Compile(v)
		if err != nil {
			return nil, err // and no typed nil
		}
		return s, nil
	case director.Word:
		e, err := director.Compile(v)
		if err != nil {
			return nil, err
		}
		return e, nil
	default:
		return choreography.CompileDeclaration(word, v)
	}
}

func openedOf(e *eventlog.Entry) (TimeAuthority, error) {
	word, v, err := wordOf(e)
	if err != nil {
		return "", err
	}
	member, _ := v.Get("time")
	authority, _ := member.Text()
	if word != wordOpened || !TimeAuthority(authority).valid() {
		return "", fmt.Errorf("sajou: entry %d does not open a session", e.Seq)
	}
	return TimeAuthority(authority), nil
}

// clockOf returns the Unix time at session time zero that a session entry
// tells, in nanoseconds.
func clockOf(e *eventlog.Entry) (origin int64, ok bool) {
	word, v, err := wordOf(e)
	if err != nil || word != wordClock {
		return 0, false
	}
	member, _ := v.Get("origin")
	return member.Int64()
}

// SignalOf returns the signal that an entry records. It points into the entry.
func SignalOf(e *eventlog.Entry) (signal.Signal, error) {
	if e.Kind != eventlog.KindSignal {
		return signal.Signal{}, fmt.Errorf("sajou: entry %d is no signal but a %v", e.Seq, e.Kind)
	}
	sig, err := signal.Decode(e.Data)
	if err != nil {
		return signal.Signal{}, fmt.Errorf("sajou: entry %d: %w", e.Seq, err)
	}
	return sig, nil
}

// AppendEntryJSON appends an entry as one line of JSON without a newline.
//
// Every entry has seq, at (milliseconds of session time), kind and hash, and
// key if it has one. A signal has its envelope's members besides, and problem
// if it was recorded although the schema refuses it; when its envelope is
// irregular, the object as it came stands in raw. A define, effect, beat or
// session entry has a member of that name with an object of one member: the word
// that says what it is, and the thing. What cannot be decoded stands in data, in
// hexadecimal.
func AppendEntryJSON(dst []byte, e *eventlog.Entry) []byte {
	dst = append(dst, `{"seq":`...)
	dst = strconv.AppendUint(dst, uint64(e.Seq), 10)
	dst = append(dst, `,"at":`...)
	dst = strconv.AppendFloat(dst, projection.Millis(e.At), 'f', -1, 64)
	dst = append(dst, `,"kind":`...)
	dst = appendString(dst, e.Kind.String())
	dst = append(dst, `,"hash":"`...)
	dst = hex.AppendEncode(dst, e.Hash[:])
	dst = append(dst, '"')
	if e.Key != "" {
		dst = append(dst, `,"key":`...)
		dst = appendString(dst, e.Key)
	}
	switch e.Kind {
	case eventlog.KindSignal:
		dst = appendSignalMembers(dst, e)
	case eventlog.KindDefine, eventlog.KindEffect, eventlog.KindBeat, eventlog.KindSession:
		dst = appendWordMember(dst, e)
	default:
		dst = appendUndecoded(dst, e)
	}
	return append(dst, '}')
}

func appendSignalMembers(dst []byte, e *eventlog.Entry) []byte {
	sig, err := signal.Decode(e.Data)
	if err != nil {
		return appendUndecoded(dst, e)
	}
	text := func(name, value string) {
		dst = append(dst, `,"`...)
		dst = append(dst, name...)
		dst = append(dst, `":`...)
		dst = appendString(dst, value)
	}
	if sig.Problem != "" {
		text("problem", sig.Problem)
	}
	if sig.Raw != nil {
		text("type", sig.Type)
		dst = append(dst, `,"raw":`...)
		return sig.Raw.AppendJSON(dst)
	}
	text("id", sig.ID)
	text("type", sig.Type)
	dst = append(dst, `,"timestamp":`...)
	dst = sig.Timestamp.AppendJSON(dst)
	text("source", sig.Source)
	if sig.CorrelationID != nil {
		text("correlationId", *sig.CorrelationID)
	}
	if sig.Metadata != nil {
		dst = append(dst, `,"metadata":`...)
		dst = sig.Metadata.AppendJSON(dst)
	}
	dst = append(dst, `,"payload":`...)
	return sig.Payload.AppendJSON(dst)
}

func appendWordMember(dst []byte, e *eventlog.Entry) []byte {
	word, v, err := wordOf(e)
	if err != nil {
		return appendUndecoded(dst, e)
	}
	dst = append(dst, `,"`...)
	dst = append(dst, e.Kind.String()...)
	dst = append(dst, `":{`...)
	dst = appendString(dst, word)
	dst = append(dst, ':')
	dst = v.AppendJSON(dst)
	return append(dst, '}')
}

func appendUndecoded(dst []byte, e *eventlog.Entry) []byte {
	dst = append(dst, `,"data":"`...)
	dst = hex.AppendEncode(dst, e.Data)
	return append(dst, '"')
}

func appendString(dst []byte, s string) []byte {
	b, err := json.Marshal(s)
	if err != nil {
		panic("sajou: a string that JSON cannot hold") // json.Marshal holds any string
	}
	return append(dst, b...)
}

// EntryView shows an entry to people and expressions, with the members that
// [AppendEntryJSON] tells: numbers are int64, uint64 or float64, objects
// map[string]any, arrays []any.
func EntryView(e *eventlog.Entry) map[string]any {
	view := map[string]any{
		"seq":  int64(e.Seq),
		"at":   projection.Millis(e.At),
		"kind": e.Kind.String(),
		"hash": e.Hash.String(),
	}
	if e.Key != "" {
		view["key"] = e.Key
	}
	switch e.Kind {
	case eventlog.KindSignal:
		if sig, err := signal.Decode(e.Data); err == nil {
			viewSignal(view, &sig)
			return view
		}
	case eventlog.KindDefine, eventlog.KindEffect, eventlog.KindBeat, eventlog.KindSession:
		if word, v, err := wordOf(e); err == nil {
			view[e.Kind.String()] = map[string]any{word: v.Any()}
			return view
		}
	default:
	}
	view["data"] = hex.EncodeToString(e.Data)
	return view
}

func viewSignal(view map[string]any, sig *signal.Signal) {
	view["type"] = sig.Type
	if sig.Problem != "" {
		view["problem"] = sig.Problem
	}
	if sig.Raw != nil {
		view["raw"] = sig.Raw.Any()
		return
	}
	view["id"] = sig.ID
	view["source"] = sig.Source
	view["timestamp"] = signal.Value(sig.Timestamp.Append(nil)).Any()
	view["payload"] = sig.Payload.Any()
	if sig.CorrelationID != nil {
		view["correlationId"] = *sig.CorrelationID
	}
	if sig.Metadata != nil {
		view["metadata"] = sig.Metadata.Any()
	}
}
