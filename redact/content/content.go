// Package content removes from signals what people, models and tools said: prompts,
// texts, thinking, arguments and results of tools, messages of errors, native records.
// What remains is who did what and when: ids, agents, tools, models, states, success,
// codes, token counts, costs and times.
//
//	remover, err := content.NewRemover(key) // nil: without digests
//	remover.Remove(sig)
//
// A removed text becomes its length, "[123 bytes]", and a removed object
// {"length": 123}, the bytes of its compact JSON. With a key each has a digest too, so
// that equal contents can be recognized: "[123 bytes, hmac 0f…]" and
// {"length": 123, "digest": "0f…"}. The digest is the HMAC-SHA256 of the text or the
// JSON under the key, its first 16 bytes in hexadecimal. Without the key it says nothing:
// a plain hash of a short text could be guessed.
//
// # What stays
//
//   - The envelope: id, type, source, time, correlation id. They are taken for no content;
//     a sender that puts texts there needs package redact.
//   - In payloads of well-known types what [Kept] lists. All other texts and objects are
//     removed, and members that the schema does not know are dropped.
//   - Of the payload of any other type its length. Of the types that package
//     ingest/recording defines for the description of an import, and of metadata, the
//     members that only count, measure, or name something by an id: a member stays if
//     every word of its name is of a fixed list, and its value is a number, a truth value
//     or a word without white space. Other members are dropped, keys included.
//
// A signal from which something was removed says how much in the member [NoteName] of its
// metadata. A signal that the schema accepts stays one; one that the schema refuses may
// become one. Removing twice is removing once.
//
// docs/glossary.md has the nouns of all packages.
package content

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"github.com/sajou-dev/sajou-go/signal"
)

// NoteName is the member of the metadata in which a signal records what was removed from
// it: {"parts": number, "bytes": number}.
const NoteName = "removed"

// MinKey is the least length of a key, in bytes.
const MinKey = 16

// digestBytes is the length of a digest before it is written in hexadecimal.
const digestBytes = 16

// Removed counts what was removed.
type Removed struct {
	Parts int64 // texts, objects and members
	Bytes int64 // of texts as UTF-8, and of other values as compact JSON
}

// Remover removes contents from signals and counts them. It is not safe for concurrent
// use.
type Remover struct {
	key   []byte
	total Removed
}

// NewRemover returns a remover. With a key, which has [MinKey] bytes or more, it leaves
// digests; nil is no key.
func NewRemover(key []byte) (*Remover, error) {
	if key != nil && len(key) < MinKey {
		return nil, fmt.Errorf("content: the key for digests has %d bytes; it needs %d or more that nobody can guess", len(key), MinKey)
	}
	return &Remover{key: slices.Clone(key)}, nil
}

// Total returns what was removed so far.
func (r *Remover) Total() Removed { return r.total }

// Remove removes the content of a signal and returns how many parts it removed. It
// changes s, but none of the bytes that s is a view of.
func (r *Remover) Remove(s *signal.Signal) (parts int) {
	before := r.total
	if s.Raw != nil {
		r.irregular(s, before)
	} else {
		s.Metadata = r.structure(s.Metadata)
		s.Payload = r.payload(s.Type, s.Payload)
		s.Metadata = r.note(s.Metadata, before)
	}
	s.Recheck()
	return int(r.total.Parts - before.Parts)
}

// note adds what was removed since a moment to the note in the metadata.
func (r *Remover) note(metadata signal.Value, before Removed) signal.Value {
	if r.total == before {
		return metadata
	}
	old := metadata.Member(NoteName)
	members := signal.ObjectOf(metadata)
	members.Set(NoteName, signal.NewObject(2).
		Int("parts", old.IntOf("parts")+r.total.Parts-before.Parts).
		Int("bytes", old.IntOf("bytes")+r.total.Bytes-before.Bytes).Value())
	return members.Value()
}

// irregular removes the content of a signal whose envelope is not regular. Of the
// envelope it keeps what is in place; the signal then is regular if all of it is.
func (r *Remover) irregular(s *signal.Signal, before Removed) {
	out := signal.NewObject(8)
	var metadata signal.Value
	for name, v := range s.Raw.Members() {
		text, isText := v.Text()
		switch {
		case isText && (name == "id" || name == "type" || name == "source" || name == "correlationId"):
			out.Text(name, text)
		case name == "timestamp" && v.Kind().IsNumber():
			out.Add(name, v)
		case name == "metadata" && v.Kind() == signal.KindObject:
			metadata = r.structure(v)
		case name == "payload" && v.Kind() == signal.KindObject:
			out.Add(name, r.payload(s.Raw.TextOf("type"), v))
		default:
			r.count(v)
		}
	}
	out.Add("metadata", r.note(metadata, before))
	parsed, err := signal.ParseLenient(out.Value().AppendJSON(nil))
	if err != nil {
		panic("content: the JSON of an object is not read back: " + err.Error()) // AppendJSON promises it
	}
	*s = *parsed
}

// count counts a removed value.
func (r *Remover) count(v signal.Value) {
	r.total.Parts++
	if text, ok := v.Text(); ok {
		r.total.Bytes += int64(len(text))
	} else {
		r.total.Bytes += int64(len(v.AppendJSON(nil)))
	}
}

// removedText is the form of a text that was removed.
var removedText = regexp.MustCompile(`^\[[0-9]+ bytes(?:, hmac [0-9a-f]{32})?\]$`)

// text returns what remains of a text.
func (r *Remover) text(text string) string {
	if text == "" || len(text) <= 80 && removedText.MatchString(text) {
		return text
	}
	r.total.Parts++
	r.total.Bytes += int64(len(text))
	out := "[" + strconv.Itoa(len(text)) + " bytes"
	if r.key != nil {
		out += ", hmac " + r.digest([]byte(text))
	}
	return out + "]"
}

var removedDigest = regexp.MustCompile(`^[0-9a-f]{32}$`)

// object returns what remains of an object.
func (r *Remover) object(v signal.Value) signal.Value {
	n := v.Len()
	if _, counted := v.Member("length").Int64(); n == 0 || counted && (n == 1 || n == 2 && removedDigest.MatchString(v.TextOf("digest"))) {
		return v
	}
	text := v.AppendJSON(nil)
	r.total.Parts++
	r.total.Bytes += int64(len(text))
	out := signal.NewObject(2).Int("length", int64(len(text)))
	if r.key != nil {
		out.Text("digest", r.digest(text))
	}
	return out.Value()
}

func (r *Remover) digest(data []byte) string {
	mac := hmac.New(sha256.New, r.key)
	mac.Write(data)
	return hex.EncodeToString(mac.Sum(nil)[:digestBytes])
}
