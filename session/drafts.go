package session

import (
	"time"

	"github.com/tinylib/msgp/msgp"

	"github.com/sajou-dev/sajou-go/choreography/language"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/signal"
)

// Drafts builds the drafts of one batch, in memory that [Drafts.Reset] lets it use
// again. The zero value has none. It is not safe for concurrent use.
type Drafts struct {
	list []eventlog.Draft
	data []byte
	ends []int // where each draft's data ends in data
}

// maxKeptDrafts bounds the memory that is kept for the next batch, in bytes: one
// large import must not be remembered forever.
const maxKeptDrafts = 1 << 20

// Reset drops all drafts. The slices that [Drafts.List] returned are invalid from
// now on.
func (d *Drafts) Reset() {
	if cap(d.data) > maxKeptDrafts {
		*d = Drafts{}
	}
	d.list, d.data, d.ends = d.list[:0], d.data[:0], d.ends[:0]
}

// Len returns the number of drafts.
func (d *Drafts) Len() int { return len(d.list) }

// Opened adds a session's first entry, with the present [Rules].
func (d *Drafts) Opened(at time.Duration, authority TimeAuthority) {
	d.Record(eventlog.KindSession, at, wordOpened, signal.NewObject(2).Text("time", string(authority)).Int("rules", Rules).Value())
}

// Clock adds the entry that says when session time began, in nanoseconds of Unix
// time, where no signal has said so.
func (d *Drafts) Clock(at time.Duration, origin int64) {
	d.Record(eventlog.KindSession, at, wordClock, signal.NewObject(1).Int("origin", origin).Value())
}

// Tick adds the entry that records that session time has come to at.
func (d *Drafts) Tick(at time.Duration) {
	b := msgp.AppendArrayHeader(d.data, 2)
	b = msgp.AppendString(b, wordTick)
	d.data = msgp.AppendMapHeader(b, 0)
	d.end(eventlog.KindSession, at)
}

// Declaration adds a define entry.
func (d *Drafts) Declaration(at time.Duration, declaration language.Declaration) {
	d.Record(eventlog.KindDefine, at, declaration.Word(), declaration.Value())
}

// Signal adds a signal.
func (d *Drafts) Signal(at time.Duration, sig *signal.Signal) {
	d.data = sig.Append(d.data)
	d.end(eventlog.KindSignal, at)
}

// Record adds an entry that holds a word and a value: a define, effect or beat
// entry.
func (d *Drafts) Record(kind eventlog.Kind, at time.Duration, word string, v signal.Value) {
	d.data = AppendWord(d.data, word, v)
	d.end(kind, at)
}

// end makes a draft of the data that was appended since the last one.
func (d *Drafts) end(kind eventlog.Kind, at time.Duration) {
	d.list = append(d.list, eventlog.Draft{Kind: kind, At: at})
	d.ends = append(d.ends, len(d.data))
}

// List returns the drafts. They point into the builder's memory and are valid until
// the next call of one of its other methods.
func (d *Drafts) List() []eventlog.Draft {
	// The data moves while it grows, so the slices are cut only now.
	start := 0
	for i, end := range d.ends {
		d.list[i].Data = d.data[start:end:end]
		start = end
	}
	return d.list
}

// AppendWord appends the data of an entry that holds a word and a value.
func AppendWord(dst []byte, word string, v signal.Value) []byte {
	dst = msgp.AppendArrayHeader(dst, 2)
	dst = msgp.AppendString(dst, word)
	return append(dst, v...)
}
