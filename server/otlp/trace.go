package otlp

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"time"

	otlpformat "github.com/sajou-dev/sajou-go/ingest/otlp"
	"github.com/sajou-dev/sajou-go/server/otlp/spool"
	"github.com/sajou-dev/sajou-go/server/problem"
)

// traceID names what is mapped together: the session that the request has named, or "", and
// a trace, or the native session of log records without a trace.
type traceID struct {
	session string
	trace   string // "" for log records
	native  string
}

// spanID is the id of a span. Zero is none.
type spanID [8]byte

func parseSpanID(text string) (id spanID) {
	_, _ = hex.Decode(id[:], []byte(text)) // the splitter has checked it
	return id
}

// digest identifies a part by its content.
type digest [16]byte

func digestOf(text []byte) digest {
	sum := sha256.Sum256(text)
	return digest(sum[:16])
}

// heldPart is a span or a log record in the spool.
type heldPart struct {
	ref    spool.RecordRef
	digest digest
	kind   partKind
	root   bool // it has no parent
}

// traceState says what happens with a trace.
type traceState uint8

const (
	resting traceState = iota // until its timer ends
	queued                    // for mapping
	mapping                   // the worker has it
)

// maxParts bounds the parts that are held of a trace.
const maxParts = 100_000

// heldTrace is a trace in the spool. All fields are guarded by the mutex of its receiver,
// except that the worker alone uses plan and told while the state is mapping.
type heldTrace struct {
	id     traceID
	number uint64 // in the spool
	parts  []heldPart
	bytes  int64

	known  map[digest]struct{}
	spans  map[spanID]struct{}
	wanted map[spanID]struct{} // parents that have not arrived
	rooted bool                // a root has ended

	covered int                 // the first parts, whose signals are recorded
	told    map[digest]struct{} // the ids of the signals that are recorded
	target  string              // the session into which they were; "" before
	plan    *recordPlan         // a plan that is not known to be carried out

	state   traceState
	release bool // drop it when it is mapped
	failed  bool // recording has failed; it is tried again later
	armed   uint64
	stop    func() bool // of the timer; nil without one
}

func newTrace(id traceID, number uint64) *heldTrace {
	return &heldTrace{
		id: id, number: number, known: map[digest]struct{}{}, spans: map[spanID]struct{}{},
		wanted: map[spanID]struct{}{}, told: map[digest]struct{}{},
	}
}

// add adds a part that was written to the spool.
func (t *heldTrace) add(p *spooledPart, ref spool.RecordRef) {
	t.parts = append(t.parts, heldPart{ref, p.digest, p.kind, p.parent == spanID{}})
	t.bytes += int64(ref.Size())
	t.known[p.digest] = struct{}{}
	if p.span != (spanID{}) {
		t.spans[p.span] = struct{}{}
		delete(t.wanted, p.span)
	}
	if p.parent != (spanID{}) {
		if _, here := t.spans[p.parent]; !here {
			t.wanted[p.parent] = struct{}{}
		}
	} else if p.kind&partLog == 0 && p.kind&partEnded != 0 {
		t.rooted = true
	}
}

// complete reports whether nothing is known to be missing.
func (t *heldTrace) complete() bool {
	return t.id.trace == "" || t.rooted && len(t.wanted) == 0
}

// open reports whether the trace has parts that are not recorded.
func (t *heldTrace) open() bool { return t.plan != nil || len(t.parts) > t.covered }

func (t *heldTrace) disarm() {
	t.armed++
	if t.stop != nil {
		t.stop()
		t.stop = nil
	}
}

// acknowledge returns when what was written is durable, and decides what happens with the
// traces that it touched.
func (rv *TraceReceiver) acknowledge(touched []*heldTrace) error {
	// A part that was there already may have been written by a request that still waits.
	if err := rv.spool.Sync(); err != nil {
		return err
	}
	rv.mu.Lock()
	defer rv.mu.Unlock()
	for _, t := range touched {
		rv.arrange(t)
	}
	if rv.spool.Crowded() {
		rv.makeRoom()
	}
	rv.measure()
	return nil
}

// makeRoom releases the traces that keep the oldest bytes in the spool. The caller holds the
// mutex.
func (rv *TraceReceiver) makeRoom() {
	for _, number := range rv.spool.Oldest() {
		if t := rv.numbers[number]; t != nil && !t.release {
			t.release = true
			rv.arrange(t)
		}
	}
}

// write appends parts to the spool, and returns the traces that have more parts then. Parts
// that are there already are not written again. Nothing is durable before acknowledge.
func (rv *TraceReceiver) write(session string, parts []otlpformat.ExportPart) (touched []*heldTrace, err error) {
	rv.mu.Lock()
	defer rv.mu.Unlock()
	if rv.closed {
		return nil, problem.ErrStopping
	}
	type addition struct {
		trace *heldTrace
		part  spooledPart
		at    int // its place among the records
	}
	var records []spool.GroupRecord
	var added []addition
	fresh := map[traceID]*heldTrace{}
	seen := map[*heldTrace]map[digest]struct{}{}
	for i := range parts {
		p := &parts[i]
		id := traceID{session: session, trace: p.Trace}
		if p.Trace == "" {
			id.native = p.Session
		}
		t := rv.traces[id]
		if t == nil {
			t = fresh[id]
		}
		if t == nil {
			t = newTrace(id, rv.next+uint64(len(fresh)))
			fresh[id] = t
			records = append(records, spool.GroupRecord{Group: t.number, Data: beginning(id)})
		}
		if seen[t] == nil {
			seen[t] = map[digest]struct{}{}
		}
		part := partOf(p)
		if _, twice := seen[t][part.digest]; twice {
			continue
		}
		seen[t][part.digest] = struct{}{}
		if _, known := t.known[part.digest]; known {
			continue
		}
		added = append(added, addition{t, part, len(records)})
		records = append(records, spool.GroupRecord{Group: t.number, Data: part.append(nil, p.Text)})
	}
	if len(added) == 0 {
		return nil, nil
	}
	refs, err := rv.spool.Write(records...)
	if errors.Is(err, spool.ErrFull) {
		rv.makeRoom() // for the next attempt
	}
	if err != nil {
		return nil, err
	}
	rv.next += uint64(len(fresh))
	for _, t := range fresh {
		rv.traces[t.id], rv.numbers[t.number] = t, t
	}
	unique := map[*heldTrace]struct{}{}
	for i := range added {
		a := &added[i]
		if !a.trace.open() {
			rv.waiting++
		}
		a.trace.add(&a.part, refs[a.at])
		unique[a.trace] = struct{}{}
	}
	touched = slices.Collect(maps.Keys(unique))
	slices.SortFunc(touched, func(a, b *heldTrace) int { return int(int64(a.number) - int64(b.number)) })
	return touched, nil
}

// arrange decides what happens with a trace next. The caller holds the mutex.
func (rv *TraceReceiver) arrange(t *heldTrace) {
	if t.state != resting || rv.closed && !t.complete() || t.failed && t.stop != nil {
		return
	}
	t.disarm()
	if t.bytes > rv.cfg.MaxTrace || len(t.parts) > maxParts {
		t.release = true
	}
	switch {
	case t.failed:
		rv.arm(t, retryAfter)
	case t.plan != nil, t.open() && (t.complete() || t.release):
		rv.enqueue(t)
	case t.open():
		rv.arm(t, rv.cfg.Wait)
	case t.release:
		rv.drop(t)
	default:
		rv.arm(t, rv.cfg.Keep)
	}
}

// arm starts the timer of a trace.
func (rv *TraceReceiver) arm(t *heldTrace, after time.Duration) {
	if rv.closed {
		return
	}
	number, armed := t.number, t.armed
	t.stop = rv.cfg.AfterFunc(after, func() { rv.expired(number, armed) })
}

// expired is the end of a timer.
func (rv *TraceReceiver) expired(number, armed uint64) {
	rv.mu.Lock()
	defer rv.mu.Unlock()
	t := rv.numbers[number]
	if t == nil || t.armed != armed || t.state != resting || rv.closed {
		return
	}
	t.stop, t.failed = nil, false
	if t.open() {
		rv.enqueue(t)
	} else {
		rv.drop(t)
	}
	rv.measure()
}

// drop forgets a trace whose parts are recorded.
func (rv *TraceReceiver) drop(t *heldTrace) {
	t.disarm()
	rv.forget(t)
	if err := rv.spool.Drop(t.number); err != nil {
		// It comes back with the next start, and nothing of it is recorded again.
		rv.cfg.Logger.Warn("a trace could not be removed from the spool", slog.Any("err", err))
	}
}

// forget removes a trace from memory. After a crash two can have the same id.
func (rv *TraceReceiver) forget(t *heldTrace) {
	delete(rv.numbers, t.number)
	if rv.traces[t.id] == t {
		delete(rv.traces, t.id)
	}
}

// measure reports what the spool holds.
func (rv *TraceReceiver) measure() {
	if rv.cfg.Metrics != nil && rv.spool != nil {
		rv.cfg.Metrics.SpoolChanged(len(rv.traces), rv.waiting, rv.spool.Used(), rv.cfg.MaxSpool)
	}
}
