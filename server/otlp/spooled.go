package otlp

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"maps"
	"slices"

	otlpformat "github.com/sajou-dev/sajou-go/ingest/otlp"
	"github.com/sajou-dev/sajou-go/server/otlp/spool"
)

// The records of a trace in the spool begin with one of these.
const (
	recordBegin   = 'b' // the id of the trace
	recordPart    = 'p' // a span or a log record
	recordPlanned = 'l' // what is about to be recorded
	recordDone    = 'd' // the last plan was carried out
)

var errSpooled = errors.New("the spool has a record that this version of the program does not know")

// partKind has what is known of a part beside its ids.
type partKind uint8

const (
	partJSON partKind = 1 << iota
	partLog
	partEnded
)

// spooledPart is the head of a part in the spool.
type spooledPart struct {
	kind         partKind
	span, parent spanID
	digest       digest // of the text; not written
}

// partHead is the length of the head of a part.
const partHead = 2 + 8 + 8

func partOf(p *otlpformat.ExportPart) spooledPart {
	s := spooledPart{span: parseSpanID(p.Span), parent: parseSpanID(p.Parent), digest: digestOf(p.Text)}
	if p.JSON {
		s.kind |= partJSON
	}
	if p.Log {
		s.kind |= partLog
	}
	if p.Ended {
		s.kind |= partEnded
	}
	return s
}

// append appends the record of a part.
func (p *spooledPart) append(dst, text []byte) []byte {
	dst = slices.Grow(dst, partHead+len(text))
	dst = append(dst, recordPart, byte(p.kind))
	dst = append(append(dst, p.span[:]...), p.parent[:]...)
	return append(dst, text...)
}

// parsePart reads the record of a part.
func parsePart(data []byte) (p spooledPart, text []byte, err error) {
	if len(data) < partHead || data[0] != recordPart {
		return p, nil, errSpooled
	}
	p.kind = partKind(data[1])
	copy(p.span[:], data[2:])
	copy(p.parent[:], data[10:])
	return p, data[partHead:], nil
}

// beginning returns the record that begins a trace.
func beginning(id traceID) []byte {
	dst := []byte{recordBegin}
	for _, text := range []string{id.session, id.trace, id.native} {
		dst = appendText(dst, text)
	}
	return dst
}

func appendText(dst []byte, text string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(text))), text...)
}

// cutText reads a text at the beginning of b.
func cutText(b []byte) (text string, rest []byte, err error) {
	size, n := binary.Uvarint(b)
	if n <= 0 || size > uint64(len(b)-n) {
		return "", nil, errSpooled
	}
	return string(b[n : n+int(size)]), b[n+int(size):], nil
}

func parseBegin(data []byte) (id traceID, err error) {
	rest := data[1:]
	for _, to := range []*string{&id.session, &id.trace, &id.native} {
		if *to, rest, err = cutText(rest); err != nil {
			return id, err
		}
	}
	return id, nil
}

// recordPlan is what is recorded of a trace at one time.
type recordPlan struct {
	covered int    // the parts that it is about, and those that were recorded before
	session string // into which it is recorded
	key     string // the idempotency key
	ids     []digest
}

func (p *recordPlan) append(dst []byte) []byte {
	dst = binary.AppendUvarint(append(dst, recordPlanned), uint64(p.covered))
	dst = appendText(appendText(dst, p.session), p.key)
	for i := range p.ids {
		dst = append(dst, p.ids[i][:]...)
	}
	return dst
}

func parsePlan(data []byte) (*recordPlan, error) {
	covered, n := binary.Uvarint(data[1:])
	if n <= 0 || covered > maxParts*1000 {
		return nil, errSpooled
	}
	p := &recordPlan{covered: int(covered)}
	rest := data[1+n:]
	var err error
	for _, to := range []*string{&p.session, &p.key} {
		if *to, rest, err = cutText(rest); err != nil {
			return nil, err
		}
	}
	if len(rest)%len(digest{}) != 0 {
		return nil, errSpooled
	}
	for id := range slices.Chunk(rest, len(digest{})) {
		p.ids = append(p.ids, digest(id))
	}
	return p, nil
}

// signalID returns the id of a signal of a trace: 16 bytes in hexadecimal.
func signalID(text string) (id digest) {
	_, _ = hex.Decode(id[:], []byte(text))
	return id
}

// load takes a record of an earlier process.
func (rv *TraceReceiver) load(group uint64, ref spool.RecordRef, data []byte) error {
	rv.next = max(rv.next, group+1)
	t := rv.numbers[group]
	switch {
	case data == nil:
		if t != nil {
			rv.forget(t)
		}
		return nil
	case len(data) == 0:
		return errSpooled
	case t == nil:
		if data[0] != recordBegin {
			if !slices.Contains(rv.lost, group) {
				rv.lost = append(rv.lost, group)
			}
			return nil
		}
		id, err := parseBegin(data)
		if err != nil {
			return err
		}
		t = newTrace(id, group)
		rv.numbers[group], rv.traces[id] = t, t
		return nil
	}
	switch data[0] {
	case recordPart:
		p, text, err := parsePart(data)
		if err != nil {
			return err
		}
		p.digest = digestOf(text)
		t.add(&p, ref)
	case recordPlanned:
		plan, err := parsePlan(data)
		if err != nil {
			return err
		}
		t.plan = plan
	case recordDone:
		if t.plan != nil {
			t.carriedOut(t.plan)
			t.plan = nil
		}
	default:
		return errSpooled
	}
	return nil
}

// carriedOut notes that a plan is in the log.
func (t *heldTrace) carriedOut(p *recordPlan) {
	t.covered = max(t.covered, min(p.covered, len(t.parts)))
	t.target = p.session
	for _, id := range p.ids {
		t.told[id] = struct{}{}
	}
}

// resume goes on with the traces that an earlier process has left, in the order in which they
// began.
func (rv *TraceReceiver) resume() {
	rv.mu.Lock()
	defer rv.mu.Unlock()
	for _, number := range slices.Sorted(maps.Keys(rv.numbers)) {
		t := rv.numbers[number]
		if t.open() {
			rv.waiting++
		}
		rv.arrange(t)
	}
	rv.measure()
}
