package compare

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/align"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

// side is one recording of a comparison: what is compared of each entry.
type side struct {
	head  eventlog.Head
	at    []time.Duration
	types []string
	named []bool // a signal with an id

	content  []align.ElementKey // all but the time
	identity []align.ElementKey // what names the entry
	form     []align.ElementKey // of a signal, the content without ids; else the content
	loose    []align.ElementKey // of a signal, its type and source; else the identity
}

// begin returns the session time of the last of the first n entries.
func (s *side) begin(n int) time.Duration {
	if n == 0 {
		return 0
	}
	return s.at[n-1]
}

// moment returns the moment of a session time after n entries, at most that of the next
// entry.
func (s *side) moment(n int, at time.Duration) replay.Moment {
	if n < len(s.at) {
		at = min(at, s.at[n])
	}
	return replay.Moment{Seq: eventlog.Seq(n), Offset: max(0, at-s.begin(n))}
}

// read reads the entries of a recording.
func read(ctx context.Context, src RecordedSession) (*side, error) {
	s := &side{head: src.Head()}
	if n := uint64(s.head.Seq); n > MaxEntries {
		return nil, &TooLongError{src.Name(), n}
	}
	names := map[string]string{} // one copy of each type
	var k keyer
	for e, err := range src.Entries(ctx, 1) {
		if err != nil {
			return nil, fmt.Errorf("compare: read %q: %w", src.Name(), err)
		}
		if e.Seq > s.head.Seq {
			break
		}
		k.read(&e)
		name, ok := names[k.typ]
		if !ok {
			name = k.typ
			names[name] = name
		}
		s.at, s.types, s.named = append(s.at, e.At), append(s.types, name), append(s.named, k.named)
		s.content, s.identity = append(s.content, k.content), append(s.identity, k.identity)
		s.form, s.loose = append(s.form, k.form), append(s.loose, k.loose)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if eventlog.Seq(len(s.at)) < s.head.Seq {
		return nil, fmt.Errorf("compare: the entries of %q end after %d, before %d", src.Name(), len(s.at), s.head.Seq)
	}
	return s, nil
}

// keyer makes the keys of one entry after the other.
type keyer struct {
	typ                            string
	named                          bool
	content, identity, form, loose align.ElementKey

	buf []byte
}

// names are the members by which records of agents and director, and declarations,
// are told apart.
var names = []string{"name", "id", "on", "agent_id", "req_id", "source_id", "entity_id", "episode", "turn", "attempt", "role", "beat", "choice_point", "prop", "flag"}

func (k *keyer) read(e *eventlog.Entry) {
	k.named = false
	if e.Kind == eventlog.KindSignal {
		if sig, err := signal.Decode(e.Data); err == nil && sig.Raw == nil {
			k.readSignal(e.Seq, &sig)
			return
		}
		k.typ = "signal"
		k.same(k.sum("irregular", e.Data))
		return
	}
	word, v, err := session.WordOf(e)
	if err != nil {
		k.typ = e.Kind.String()
		k.same(k.sum("unreadable", []byte(k.typ), e.Data))
		return
	}
	k.typ = e.Kind.String() + " " + word
	if e.Kind == eventlog.KindSession {
		// The rest of the first entry names the recording, and the time of the clock
		// is when it was made. A fork has the rules of its parent.
		rules := v.Member("rules")
		if label, ok := v.Get("fork"); ok && session.ForkOf(e) != nil {
			rules = label.Member("rules")
		}
		k.same(k.sum(k.typ, v.Member("time"), rules))
		return
	}
	k.content = k.sum(k.typ, e.Data)
	parts := make([][]byte, len(names))
	for i, name := range names {
		parts[i] = v.Member(name)
	}
	k.identity = k.sum("record "+k.typ, parts...)
	k.form, k.loose = k.content, k.identity
}

// same sets all keys to one.
func (k *keyer) same(key align.ElementKey) {
	k.content, k.identity, k.form, k.loose = key, key, key, key
}

func (k *keyer) readSignal(seq eventlog.Seq, sig *signal.Signal) {
	k.typ = sig.Type
	id := sig.ID
	if sig.Source == session.CueSource && id == session.CueID(seq) {
		id = "" // the number of the entry names nothing in another recording
	}
	correlation, present := "", []byte{0}
	if sig.CorrelationID != nil {
		correlation, present[0] = *sig.CorrelationID, 1
	}
	k.named = id != ""
	k.loose = k.sum("type", []byte(sig.Type), []byte(sig.Source))
	k.form = k.sum("form", []byte(sig.Type), []byte(sig.Source), sig.Metadata, sig.Payload, []byte(sig.Problem))
	k.content = k.sum("content", k.form[:], []byte(id), []byte(correlation), present)
	if k.named {
		k.identity = k.sum("id", []byte(id))
	} else {
		k.identity = k.sum("correlation", []byte(sig.Type), []byte(sig.Source), []byte(correlation), present)
	}
}

// sum returns the key of some parts. Parts of other lengths have another key.
func (k *keyer) sum(kind string, parts ...[]byte) align.ElementKey {
	k.buf = append(append(k.buf[:0], kind...), 0)
	for _, p := range parts {
		k.buf = binary.BigEndian.AppendUint64(k.buf, uint64(len(p)))
		k.buf = append(k.buf, p...)
	}
	sum := sha256.Sum256(k.buf)
	return align.ElementKey(sum[:16])
}
