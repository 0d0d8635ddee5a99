package recording

import (
	"strings"

	"github.com/sajou-dev/sajou-go/signal"
)

// The bounds of one signal. An entry of a log is at most 1 MiB.
const (
	maxSignal = 960 << 10 // encoded bytes of payload and metadata
	minCut    = 1 << 10   // texts that are not longer are never cut
)

// Fit shortens the longest texts of a signal so that it fits an entry, and notes in the metadata
// how many bytes were left out. It reports whether it has.
func Fit(sig *signal.Signal) bool {
	size := len(sig.Payload) + len(sig.Metadata)
	if size <= maxSignal {
		return false
	}
	content := signal.ObjectOf(sig.Metadata)
	meta := &content
	was := size
	// A native record that does not fit is dropped first: it repeats the payload.
	meta.Remove("record")
	size = len(sig.Payload) + len(meta.Value())
	for limit := 256 << 10; size > maxSignal && limit >= minCut; limit /= 2 {
		sig.Payload = cut(sig.Payload, limit, 0)
		for i := range *meta {
			(*meta)[i].Value = cut((*meta)[i].Value, limit, 0)
		}
		size = len(sig.Payload) + len(meta.Value())
	}
	if size > maxSignal {
		// Not long texts but very many parts: keep the text of their beginning.
		sig.Payload = flat(sig.Payload)
		for i := range *meta {
			(*meta)[i].Value = flat((*meta)[i].Value)
		}
	}
	meta.Int("cutBytes", int64(was-len(sig.Payload)-len(meta.Value())))
	sig.Metadata = meta.Value()
	return true
}

// flat returns an object in which each member that has many parts is the text of its
// beginning.
func flat(v signal.Value) signal.Value {
	const some = 64 << 10
	if v.Kind() != signal.KindObject || len(v) <= some {
		return v
	}
	o := signal.NewObject(v.Len())
	size := 0
	for name, member := range v.Members() {
		if k := member.Kind(); len(member) > some && (k == signal.KindObject || k == signal.KindArray) {
			text := string(member.AppendJSON(nil))
			member = signal.NewObject(1).Text("text", strings.ToValidUTF8(text[:some/2], "")).Value()
		}
		if size += len(name) + len(member) + 8; size > maxSignal/2 {
			o.Text("text", "further members were left out")
			break
		}
		o.Add(name, member)
	}
	return o.Value()
}

// cut returns a value whose texts are at most limit bytes long.
func cut(v signal.Value, limit, depth int) signal.Value {
	if len(v) <= limit {
		return v
	}
	switch v.Kind() {
	case signal.KindString:
		text, _ := v.Text()
		const mark = "\u2026"
		return signal.Text(strings.ToValidUTF8(text[:limit-len(mark)], "") + mark)
	case signal.KindArray:
		var list []signal.Value
		for e := range v.Elements() {
			list = append(list, cut(e, limit, depth+1))
		}
		return signal.Array(list...)
	case signal.KindObject:
		o := signal.NewObject(v.Len())
		for name, member := range v.Members() {
			o.Add(name, cut(member, limit, depth+1))
		}
		return o.Value()
	default:
		return v
	}
}
