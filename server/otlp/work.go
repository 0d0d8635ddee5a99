package otlp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"time"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/eventlog"
	otlpformat "github.com/sajou-dev/sajou-go/ingest/otlp"
	"github.com/sajou-dev/sajou-go/server/otlp/spool"
	"github.com/sajou-dev/sajou-go/signal"
)

// retryAfter is the wait before signals are recorded again that the log did not take.
const retryAfter = 30 * time.Second

// The bounds of what the worker maps at a time, and of what it records at once.
const (
	batchTraces  = 32
	batchBytes   = 16 << 20
	chunkSignals = 500
	chunkBytes   = 4 << 20
)

// signalStore is where signals are recorded.
type signalStore interface {
	// usable returns why nothing can be recorded into a session, such as that it was
	// deleted, or nil.
	usable(ctx context.Context, session string) error

	// record gives an addition its place in a session.
	record(ctx context.Context, session string, a sajou.Addition) (waitFunc, error)
}

// waitFunc returns when an addition is durable. Repeat reports that its key was known, so
// that nothing was recorded.
type waitFunc func(context.Context) (repeat bool, err error)

// engineStore records into the sessions of an engine.
type engineStore struct {
	engine   *sajou.Engine
	recorded func(session string, out sajou.Receipt) // may be nil
}

func (s engineStore) usable(ctx context.Context, session string) error {
	_, err := s.engine.Session(ctx, session)
	return err
}

func (s engineStore) record(ctx context.Context, session string, a sajou.Addition) (waitFunc, error) {
	ses, err := s.engine.Session(ctx, session)
	if err != nil {
		return nil, err
	}
	pending, err := ses.RecordAsync(ctx, a)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (bool, error) {
		receipt, err := pending.Wait(ctx)
		if err == nil && s.recorded != nil {
			s.recorded(session, receipt)
		}
		return receipt.Repeat, err
	}, nil
}

// enqueue puts a trace into the queue of the worker, and starts that if it does not run.
func (rv *TraceReceiver) enqueue(t *heldTrace) {
	t.state = queued
	rv.queue = append(rv.queue, t)
	if !rv.working {
		rv.working, rv.idle = true, make(chan struct{})
		go rv.work()
	}
}

// work maps the traces in the queue until there is none.
func (rv *TraceReceiver) work() {
	for {
		batch := rv.take()
		if batch == nil {
			return
		}
		rv.process(batch)
	}
}

// mappedTrace is a trace that the worker has.
type mappedTrace struct {
	*heldTrace
	parts   []heldPart // those that are mapped now
	plan    *recordPlan
	signals []*signal.Signal
	waits   []waitFunc
	err     error
}

// take takes traces from the queue. It returns nil when the worker has to end.
func (rv *TraceReceiver) take() (batch []*mappedTrace) {
	rv.mu.Lock()
	defer rv.mu.Unlock()
	var size int64
	for len(rv.queue) > 0 && rv.ctx.Err() == nil && len(batch) < batchTraces && size < batchBytes {
		t := rv.queue[0]
		rv.queue[0] = nil
		rv.queue = rv.queue[1:]
		t.state = mapping
		size += t.bytes
		m := &mappedTrace{heldTrace: t, parts: t.parts[:len(t.parts):len(t.parts)], plan: t.plan}
		if m.plan != nil {
			// A plan of an earlier process, or one that failed, is carried out as it is.
			m.parts = m.parts[:min(m.plan.covered, len(m.parts))]
		}
		batch = append(batch, m)
	}
	if batch == nil {
		rv.working = false
		close(rv.idle)
	}
	return batch
}

// process maps and records traces.
func (rv *TraceReceiver) process(batch []*mappedTrace) {
	var plans []spool.GroupRecord
	for _, m := range batch {
		rv.mapTrace(m)
		if m.heldTrace.plan == nil && len(m.signals) > 0 {
			plans = append(plans, spool.GroupRecord{Group: m.number, Data: m.plan.append(nil)})
		}
	}
	var err error
	if len(plans) > 0 {
		if _, err = rv.spool.WriteBeyond(plans...); err == nil {
			err = rv.spool.Sync()
		}
	}
	for _, m := range batch {
		if m.err = err; err == nil {
			rv.record(m)
		}
	}
	var done []spool.GroupRecord
	for _, m := range batch {
		for _, wait := range m.waits {
			_, err := wait(rv.ctx)
			m.err = errors.Join(m.err, err)
		}
		if m.err == nil && len(m.signals) > 0 {
			done = append(done, spool.GroupRecord{Group: m.number, Data: []byte{recordDone}})
		}
	}
	if len(done) > 0 {
		if _, err := rv.spool.WriteBeyond(done...); err != nil {
			rv.cfg.Logger.Warn("the spool does not take that traces are recorded", slog.Any("err", err))
		}
	}
	rv.mu.Lock()
	defer rv.mu.Unlock()
	for _, m := range batch {
		rv.settle(m)
	}
	rv.measure()
}

// settle notes the end of the mapping of a trace.
func (rv *TraceReceiver) settle(m *mappedTrace) {
	t := m.heldTrace
	t.state = resting
	if m.err != nil {
		t.failed = true
		if len(m.signals) > 0 {
			t.plan = m.plan
		}
		if rv.ctx.Err() == nil {
			rv.cfg.Logger.Error("a trace could not be recorded; it is tried again", slog.Any("err", m.err))
		}
	} else {
		t.carriedOut(m.plan)
		t.plan = nil
		if !t.open() {
			rv.waiting--
		}
	}
	rv.arrange(t)
}

// mapTrace maps the parts of a trace, and plans to record what is not recorded yet.
func (rv *TraceReceiver) mapTrace(m *mappedTrace) {
	parts := make([]otlpformat.ExportPart, 0, len(m.parts))
	for _, p := range m.parts {
		data, err := rv.spool.Read(p.ref)
		if err == nil {
			_, data, err = parsePart(data)
		}
		if err != nil {
			rv.cfg.Logger.Error("a span in the spool cannot be read and is lost", slog.Any("err", err))
			continue
		}
		part := otlpformat.ExportPart{Text: data, JSON: p.kind&partJSON != 0, Log: p.kind&partLog != 0}
		if !p.root {
			part.Parent = "above"
		}
		parts = append(parts, part)
	}
	all, err := otlpformat.Live(parts)
	if err != nil {
		rv.cfg.Logger.Error("the spans of a trace in the spool cannot be mapped and are lost", slog.Any("err", err))
	}
	if m.plan != nil {
		planned := map[digest]struct{}{}
		for _, id := range m.plan.ids {
			planned[id] = struct{}{}
		}
		for _, sig := range all {
			if _, is := planned[signalID(sig.ID)]; is {
				m.signals = append(m.signals, sig)
			}
		}
		return
	}
	m.plan = &recordPlan{covered: len(m.parts), session: m.target}
	for _, sig := range all {
		id := signalID(sig.ID)
		if _, told := m.told[id]; !told {
			m.signals, m.plan.ids = append(m.signals, sig), append(m.plan.ids, id)
		}
	}
	if m.plan.session == "" {
		m.plan.session = m.id.session
	}
	if m.plan.session == "" && len(m.signals) > 0 {
		m.plan.session = rv.cfg.Split.Part(rv.cfg.Session, m.signals[0], rv.cfg.Now())
	}
	m.plan.key = m.key(all)
}

// key returns the idempotency key of a trace that gives signals, those included that are
// recorded already. It does not depend on the encoding of the spans, and not on the order in
// which they have arrived.
func (t *heldTrace) key(all []*signal.Signal) string {
	h := sha256.New()
	_, _ = h.Write(beginning(t.id))
	var text []byte
	for _, sig := range all {
		text = append(sig.AppendJSON(text[:0]), '\n')
		_, _ = h.Write(text)
	}
	return "otlp/" + hex.EncodeToString(h.Sum(nil)[:20])
}

// record gives the signals of a plan their place in the log, in chunks that are the same at
// each attempt.
func (rv *TraceReceiver) record(m *mappedTrace) {
	n := 0
	for chunk := range chunks(m.signals) {
		if n == 1 && m.heldTrace.plan == nil {
			// A new plan with a known key is that of a trace that was forgotten after all
			// of it was recorded. Late spans may have divided its signals otherwise.
			repeat, err := m.waits[0](rv.ctx)
			m.waits = nil
			if m.err = err; repeat || err != nil {
				return
			}
		}
		a := sajou.Addition{Signals: chunk, Lenient: true, Key: m.plan.key + "/" + strconv.Itoa(n)}
		n++
		for len(a.Signals) > 0 {
			wait, err := rv.store.record(rv.ctx, m.plan.session, a)
			if err == nil {
				m.waits = append(m.waits, wait)
				break
			}
			refused, ok := errors.AsType[*sajou.SignalError](err)
			switch {
			case errors.Is(err, eventlog.ErrDeleted):
				rv.cfg.Logger.Error("the session of a trace was deleted; its signals are lost", slog.String("session", m.plan.session))
				return
			case ok:
				rv.cfg.Logger.Error("a signal of a trace is refused and lost", slog.String("session", m.plan.session), slog.Any("err", err))
				a.Signals = slices.Delete(slices.Clone(a.Signals), refused.Index, refused.Index+1)
			default:
				m.err = err
				return
			}
		}
	}
}

// chunks yields signals in parts that are small enough to be recorded at once.
func chunks(signals []*signal.Signal) func(yield func([]*signal.Signal) bool) {
	return func(yield func([]*signal.Signal) bool) {
		from, size := 0, 0
		for i, sig := range signals {
			bytes := len(sig.Payload) + len(sig.Metadata)
			if i > from && (i-from == chunkSignals || size+bytes > chunkBytes) {
				if !yield(signals[from:i]) {
					return
				}
				from, size = i, 0
			}
			size += bytes
		}
		if from < len(signals) {
			yield(signals[from:])
		}
	}
}
