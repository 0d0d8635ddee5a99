package session

import (
	"encoding/hex"
	"encoding/json"
	"strconv"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/signal"
)

// AppendEntryJSON appends an entry as one line of JSON without a newline.
//
// Every entry has seq, at (milliseconds of session time), kind and hash, and
// key if it has one. A signal also has its envelope's members, and problem
// if it was recorded although the schema refuses it; when its envelope is
// irregular, raw holds the object as it came. A define, effect, beat or
// session entry has a member of that name with an object of one member: its word
// and its value. Data that cannot be decoded is in data, in hexadecimal.
//
// [Lateness.AppendEntryJSON] marks late signals too.
func AppendEntryJSON(dst []byte, e *eventlog.Entry) []byte { return appendEntry(dst, e, false) }

func appendEntry(dst []byte, e *eventlog.Entry, late bool) []byte {
	dst = append(dst, `{"seq":`...)
	dst = strconv.AppendUint(dst, uint64(e.Seq), 10)
	dst = append(dst, `,"at":`...)
	dst = strconv.AppendFloat(dst, projection.Millis(e.At), 'f', -1, 64)
	if late {
		dst = append(dst, `,"late":true`...)
	}
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
	word, v, err := WordOf(e)
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
// [AppendEntryJSON] lists: numbers are int64, uint64 or float64, objects
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
		if word, v, err := WordOf(e); err == nil {
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

// HeadView is the head of a log as JSON has it.
type HeadView struct {
	Seq  eventlog.Seq `json:"seq"`
	Hash string       `json:"hash"`
}

// ViewHead returns the JSON view of a head.
func ViewHead(h eventlog.Head) HeadView { return HeadView{h.Seq, h.Hash.String()} }
