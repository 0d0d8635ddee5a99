package view

import (
	"crypto/sha256"
	"encoding/hex"
	"sync"

	"github.com/sajou-dev/sajou-go/agents/jsondoc"
)

// digest is the context digest of one state of a view. The first caller that asks for
// it computes it: to hash every view would be a large part of the work of the goroutine
// that decides. All deltas and views of the state share it. It is safe for concurrent
// use.
type digest struct {
	once      sync.Once
	agent     string
	seen      []*renderedEntity // neither list changes any more
	relations []*relationList
	text      string // once it is computed
}

// String returns the digest. The digest of nil is "".
func (d *digest) String() string {
	if d == nil {
		return ""
	}
	d.once.Do(func() {
		d.text = sum(d.agent, d.seen, d.relations)
		d.seen, d.relations = nil, nil // a delta that is kept must not keep a view
	})
	return d.text
}

// sum returns the digest of a view, from the JSON that is kept of each part.
func sum(agent string, seen []*renderedEntity, relations []*relationList) string {
	at := buffers.Get().(*[]byte)
	b := append((*at)[:0], `{"agent_id":`...)
	b = jsondoc.AppendText(b, agent)
	b = append(b, `,"visible_entities":{`...)
	for i, s := range seen {
		if i > 0 {
			b = append(b, ',')
		}
		b = s.appendJSON(b)
	}
	b = append(b, `},"visible_relationships":{`...)
	for i, t := range relations {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, t.json...)
	}
	hash := sha256.Sum256(append(b, `}}`...))
	if cap(b) <= maxBuffer {
		*at = b
		buffers.Put(at)
	}
	var text [2 * sha256.Size]byte
	hex.Encode(text[:], hash[:])
	return string(text[:])
}

// buffers holds memory for sum: to concatenate the view first is faster than to
// hash each part on its own.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

const maxBuffer = 1 << 20
