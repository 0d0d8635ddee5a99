package provenance

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/replay"
)

// errTrace says that bytes are not traced events.
var errTrace = errors.New("provenance: not traced events")

// The flags of a traced event in bytes.
const (
	flagCreated = 1 << iota
	flagOwn
	flagUntil
)

// traceEncoder writes traced events as bytes: their fields as varints, in the order of
// the struct. A text is written once, as 0, its length and its bytes, and then as its
// number, from 1.
type traceEncoder struct {
	b     []byte
	texts map[string]uint64
}

func encodeTrace(events []traced) []byte {
	enc := &traceEncoder{texts: map[string]uint64{}}
	enc.number(uint64(len(events)))
	for i := range events {
		e := &events[i]
		enc.b = append(enc.b, byte(e.kind))
		enc.number(uint64(e.moment.Seq))
		enc.number(uint64(e.moment.Offset))
		enc.number(e.key.Seq)
		enc.number(uint64(e.key.Index))
		enc.b = binary.AppendVarint(enc.b, int64(e.key.Node))
		enc.number(uint64(e.by))
		enc.text(e.definition)
		enc.text(e.step)
		enc.text(e.action)
		enc.number(uint64(len(e.entities)))
		for _, id := range e.entities {
			enc.text(id)
		}
		enc.number(uint64(e.writes))
		flags := byte(0)
		for bit, is := range map[byte]bool{flagCreated: e.created, flagOwn: e.own, flagUntil: e.until} {
			if is {
				flags |= bit
			}
		}
		enc.b = append(enc.b, flags)
		enc.number(uint64(len(e.reads)))
		for _, c := range e.reads {
			enc.text(c.entity)
			enc.number(uint64(c.group))
		}
	}
	return enc.b
}

func (enc *traceEncoder) number(n uint64) { enc.b = binary.AppendUvarint(enc.b, n) }

func (enc *traceEncoder) text(s string) {
	if n, ok := enc.texts[s]; ok {
		enc.number(n)
		return
	}
	enc.texts[s] = uint64(len(enc.texts)) + 1
	enc.number(0)
	enc.number(uint64(len(s)))
	enc.b = append(enc.b, s...)
}

// traceDecoder reads what a [traceEncoder] has written. After the first mistake all that
// it reads is zero.
type traceDecoder struct {
	b     []byte
	texts []string
	bad   bool
}

func decodeTrace(b []byte) ([]traced, error) {
	const least = 14 // bytes of an event
	dec := &traceDecoder{b: b}
	n := dec.count(least)
	events := make([]traced, 0, n)
	for range n {
		e := traced{kind: traceKind(dec.byte())}
		e.moment = replay.Moment{Seq: eventlog.Seq(dec.number()), Offset: time.Duration(dec.number())}
		e.key.Seq, e.key.Index = dec.number(), uint32(dec.number())
		e.key.Node = int32(dec.signed())
		e.by = eventlog.Seq(dec.number())
		e.definition, e.step, e.action = dec.text(), dec.text(), dec.text()
		for range dec.count(1) {
			e.entities = append(e.entities, dec.text())
		}
		e.writes = group(dec.number())
		flags := dec.byte()
		e.created, e.own, e.until = flags&flagCreated != 0, flags&flagOwn != 0, flags&flagUntil != 0
		for range dec.count(2) {
			e.reads = append(e.reads, cell{dec.text(), group(dec.number())})
		}
		if dec.bad {
			break
		}
		events = append(events, e)
	}
	if dec.bad || len(dec.b) > 0 {
		return nil, errTrace
	}
	return events, nil
}

func (dec *traceDecoder) fail() { dec.bad, dec.b = true, nil }

func (dec *traceDecoder) byte() byte {
	if len(dec.b) == 0 {
		dec.fail()
		return 0
	}
	c := dec.b[0]
	dec.b = dec.b[1:]
	return c
}

func (dec *traceDecoder) number() uint64 {
	v, n := binary.Uvarint(dec.b)
	if n <= 0 {
		dec.fail()
		return 0
	}
	dec.b = dec.b[n:]
	return v
}

func (dec *traceDecoder) signed() int64 {
	v, n := binary.Varint(dec.b)
	if n <= 0 {
		dec.fail()
		return 0
	}
	dec.b = dec.b[n:]
	return v
}

// count reads the length of a list whose elements have at least that many bytes each.
func (dec *traceDecoder) count(least int) int {
	n := dec.number()
	if n > uint64(len(dec.b)/least) {
		dec.fail()
		return 0
	}
	return int(n)
}

func (dec *traceDecoder) text() string {
	n := dec.number()
	switch {
	case n > uint64(len(dec.texts)):
		dec.fail()
		return ""
	case n > 0:
		return dec.texts[n-1]
	}
	length := dec.count(1)
	if dec.bad {
		return ""
	}
	s := string(dec.b[:length])
	dec.b, dec.texts = dec.b[length:], append(dec.texts, s)
	return s
}
