package sentinel

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/sajou-dev/sajou-go/eventlog"
)

// ErrDocument is wrapped by the errors of [Parse].
var ErrDocument = errors.New("sentinel: not a document of digests")

// DigestDocument is the digests of several sessions.
type DigestDocument struct {
	Sessions []KeptDigests // in any order, each session once
}

// MaxDocument bounds the text of a document, in bytes.
const MaxDocument = 64 << 20

const (
	documentName    = "digests"
	documentVersion = 1
)

// Of returns the digests of a session, or nil.
func (d *DigestDocument) Of(session string) *KeptDigests {
	for i := range d.Sessions {
		if d.Sessions[i].Session == session {
			return &d.Sessions[i]
		}
	}
	return nil
}

// Put sets the digests of a session.
func (d *DigestDocument) Put(kept *KeptDigests) {
	if have := d.Of(kept.Session); have != nil {
		*have = *kept
		return
	}
	d.Sessions = append(d.Sessions, *kept)
}

// Drop removes the digests of a session, and reports whether there were any.
func (d *DigestDocument) Drop(session string) bool {
	for i := range d.Sessions {
		if d.Sessions[i].Session == session {
			d.Sessions = append(d.Sessions[:i:i], d.Sessions[i+1:]...)
			return true
		}
	}
	return false
}

// Text returns the document as JSON. Equal documents have equal texts.
func (d *DigestDocument) Text() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "{\"sajou\": %q, \"version\": %d, \"sessions\": [", documentName, documentVersion)
	for i, s := range d.Sessions {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "\n{\"session\": %s, \"projections\": %s, \"points\": [", quoted(s.Session), quoted(append([]string{}, s.Projections...)))
		for j, p := range s.Points {
			if j > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, "\n[%d, \"%v\"", p.Head.Seq, p.Head.Hash)
			for _, sum := range p.Sums {
				fmt.Fprintf(&b, ", \"%016x\"", sum)
			}
			b.WriteByte(']')
		}
		b.WriteString("\n]}")
	}
	b.WriteString("\n]}\n")
	return b.Bytes()
}

func quoted(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic("sentinel: a text that JSON cannot hold") // json.Marshal holds any string
	}
	return text
}

// Parse reads the text of a document. The error wraps [ErrDocument] and says what is
// wrong.
func Parse(text []byte) (*DigestDocument, error) {
	wrong := func(format string, args ...any) (*DigestDocument, error) {
		return nil, fmt.Errorf("%w: %s", ErrDocument, fmt.Sprintf(format, args...))
	}
	if len(text) > MaxDocument {
		return wrong("it is longer than %d MiB", MaxDocument>>20)
	}
	var raw struct {
		Sajou    string `json:"sajou"`
		Version  int    `json:"version"`
		Sessions []struct {
			Session     string              `json:"session"`
			Projections []string            `json:"projections"`
			Points      [][]json.RawMessage `json:"points"`
		} `json:"sessions"`
	}
	if err := json.Unmarshal(text, &raw); err != nil {
		return wrong("%v", err)
	}
	switch {
	case raw.Sajou != documentName:
		return wrong("\"sajou\" is %q, not %q", raw.Sajou, documentName)
	case raw.Version != documentVersion:
		return wrong("its version is %d; this program reads %d", raw.Version, documentVersion)
	}
	d := &DigestDocument{}
	for _, s := range raw.Sessions {
		kept := KeptDigests{Session: s.Session, Projections: s.Projections}
		if d.Of(s.Session) != nil {
			return wrong("session %q is there twice", s.Session)
		}
		if len(s.Points) > MaxPoints {
			return wrong("session %q has %d points; at most %d are read", s.Session, len(s.Points), MaxPoints)
		}
		for i, fields := range s.Points {
			p, err := parsePoint(fields, len(s.Projections))
			if err == nil && i > 0 && p.Head.Seq <= kept.Points[i-1].Head.Seq {
				err = fmt.Errorf("entry %d is not behind the one before", p.Head.Seq)
			}
			if err != nil {
				return wrong("session %q, point %d: %v", s.Session, i+1, err)
			}
			kept.Points = append(kept.Points, p)
		}
		d.Sessions = append(d.Sessions, kept)
	}
	return d, nil
}

func parsePoint(fields []json.RawMessage, sums int) (DigestPoint, error) {
	if len(fields) != 2+sums {
		return DigestPoint{}, fmt.Errorf("%d values, not the entry, its hash and %d digests", len(fields), sums)
	}
	var p DigestPoint
	var hash string
	if err := json.Unmarshal(fields[0], &p.Head.Seq); err != nil || p.Head.Seq == 0 {
		return DigestPoint{}, fmt.Errorf("%s is not the number of an entry", fields[0])
	}
	if err := json.Unmarshal(fields[1], &hash); err != nil {
		return DigestPoint{}, fmt.Errorf("%s is not a hash", fields[1])
	}
	head, err := eventlog.ParseHead(strconv.FormatUint(uint64(p.Head.Seq), 10) + ":" + hash)
	if err != nil {
		return DigestPoint{}, fmt.Errorf("%q is not a hash", hash)
	}
	p.Head = head
	for _, field := range fields[2:] {
		var text string
		err := json.Unmarshal(field, &text)
		sum, bad := strconv.ParseUint(text, 16, 64)
		if err != nil || bad != nil || len(text) != 16 {
			return DigestPoint{}, fmt.Errorf("%s is not a digest", field)
		}
		p.Sums = append(p.Sums, sum)
	}
	return p, nil
}
