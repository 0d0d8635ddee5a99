// Package ingest records signals of outside sources into a session of the engine, in
// batches: while one becomes durable the next one is read. It reports progress, and
// can resume an earlier attempt.
//
// A format is a function that reads signals from a source and yields each as an
// [recording.Item] with its place; [JSONL] is the one for the protocol's own lines. Other
// formats belong here too, each in a file or a folder of its own: a format does
// not depend on sessions, and the [Recorder] does not depend on formats.
//
// [Raw] records a session from its raw export, with all entries as they were.
//
// # Invariants
//
//   - Signals are recorded in the order in which they are added. After an
//     error, everything added before the signal that caused it is recorded and
//     nothing after it.
//   - Timestamps are not compared with the clock, see [sajou.Addition]: one far ahead
//     moves session time there, and the signals behind it are out of order, which the
//     [Tally] counts.
//   - A Recorder holds at most [MaxBatchSignals] signals and about
//     [MaxBatchBytes] of their text before they are recorded, and at most one
//     batch is on its way to the disk.
//   - The entries depend on the signals, the definitions and the session's name
//     alone, not on how the batches were cut: an ingestion that was interrupted
//     and resumed gives the head of one that was not.
//
// The package opens neither stores nor files.
package ingest

import (
	"cmp"
	"context"
	"errors"
	"iter"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/choreography/language"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/ingest/recording"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

// The bounds of a batch.
const (
	MaxBatchSignals = 1000
	MaxBatchBytes   = 4 << 20 // of text that the signals were read from
)

// Config configures a [Recorder].
type Config struct {
	// Definitions come into force before the first signal.
	Definitions []language.Declaration

	// Lenient records signals that break the protocol's schema too, flagged with
	// the reason. The format must have read them leniently.
	Lenient bool

	// Resume, unless nil, is the log of the session, which an earlier ingestion
	// of the same definitions and signals has begun: its signals are compared and
	// not recorded again. A difference ends the ingestion with a [MismatchError]
	// before anything is recorded.
	Resume *eventlog.SessionReader

	// Progress, unless nil, is called after each batch that has become durable,
	// with how many signals were recorded so far.
	Progress func(signals int)
}

// Tally counts the durable signals of a [Recorder].
type Tally struct {
	First       eventlog.Seq  // the first entry; 0 if there is none
	Head        eventlog.Head // the head of the session
	Signals     int
	Definitions int
	Flagged     int // signals that break the schema
	Skipped     int // signals that the session already had
	OutOfOrder  int // signals whose timestamps are before the session time at which they take effect
}

// Recorder records signals into a session in batches. Its methods must not be
// called concurrently.
type Recorder struct {
	session     *sajou.Session
	definitions []language.Declaration // not recorded yet
	lenient     bool
	progress    func(signals int)

	batch  []*signal.Signal
	places []recording.Place // of the batch
	size   int               // of the batch's text

	// inFlight is the previous batch, which becomes durable while the next one
	// is read; nil if there is none.
	inFlight *inFlightBatch

	resumed  *recordedSignals // nil unless an ingestion is resumed
	mismatch bool             // nothing may be recorded any more

	tally Tally
}

// inFlightBatch is a batch that is not durable yet, with its counts.
type inFlightBatch struct {
	pending                       *sajou.Pending
	signals, definitions, flagged int
}

// NewRecorder returns a recorder into a session. [Recorder.Close] releases it.
func NewRecorder(ctx context.Context, session *sajou.Session, cfg Config) (*Recorder, error) {
	r := &Recorder{session: session, definitions: cfg.Definitions, lenient: cfg.Lenient, progress: cfg.Progress}
	if cfg.Resume != nil {
		resumed, err := recordedOf(ctx, cfg.Resume, cfg.Definitions)
		if err != nil {
			return nil, err
		}
		r.definitions, r.resumed = nil, resumed
	}
	return r, nil
}

// Close releases what the recorder holds. It records nothing.
func (r *Recorder) Close() {
	if r.resumed != nil {
		r.resumed.stop()
	}
}

// Tally returns the durable counts so far.
func (r *Recorder) Tally() Tally {
	t := r.tally
	t.Head = r.session.Head()
	return t
}

// All records the signals of sources, one after the other. If ctx ends, it still
// records every signal that was read completely. It
// returns the first error of a source or of the session.
func (r *Recorder) All(ctx context.Context, sources ...iter.Seq2[recording.Item, error]) error {
	stopped := r.addAll(ctx, sources)
	if stopped == nil {
		stopped = r.checkResumed()
	}
	if r.mismatch {
		return stopped
	}
	return cmp.Or(r.Flush(context.WithoutCancel(ctx)), stopped)
}

func (r *Recorder) addAll(ctx context.Context, sources []iter.Seq2[recording.Item, error]) error {
	for _, source := range sources {
		if err := ctx.Err(); err != nil {
			return err
		}
		for item, err := range source {
			if err == nil {
				// A signal that was read is added, also if ctx ended meanwhile.
				err = cmp.Or(r.Add(ctx, item), ctx.Err())
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// Add adds a signal. It records the batch when that is full.
func (r *Recorder) Add(ctx context.Context, item recording.Item) error {
	if known, err := r.resumed.has(item.Signal); err != nil {
		r.mismatch = true
		return &recording.PlaceError{Place: item.Place, Err: err}
	} else if known {
		r.tally.Skipped++
		return nil
	}
	r.batch, r.places = append(r.batch, item.Signal), append(r.places, item.Place)
	r.size += item.Size
	if len(r.batch) >= MaxBatchSignals || r.size >= MaxBatchBytes {
		return r.recordBatch(ctx)
	}
	return nil
}

// Flush records the definitions and the added signals, and returns once all are
// durable. After a [MismatchError] it does nothing.
func (r *Recorder) Flush(ctx context.Context) error {
	if r.mismatch {
		return nil
	}
	recorded := r.recordBatch(ctx)
	return cmp.Or(recorded, r.settle(ctx))
}

// recordBatch records the batch. If the log refuses it because of one of its
// signals, the signals before that one are recorded and the error has its place.
func (r *Recorder) recordBatch(ctx context.Context) error {
	if len(r.batch) == 0 && len(r.definitions) == 0 {
		return nil
	}
	err := r.record(ctx, r.batch)
	if err != nil && len(r.batch) > 0 && isRefusal(err) {
		for i, sig := range r.batch {
			if err = r.record(ctx, []*signal.Signal{sig}); err != nil {
				err = &recording.PlaceError{Place: r.places[i], Err: err}
				break
			}
		}
	}
	r.batch, r.places, r.size = r.batch[:0], r.places[:0], 0
	return err
}

// isRefusal reports whether err is about the signals or definitions, and not about
// the log.
func isRefusal(err error) bool {
	return errors.Is(err, session.ErrTime) || errors.Is(err, eventlog.ErrTooLarge) ||
		errors.Is(err, eventlog.ErrInvalid) || errors.Is(err, signal.ErrSchema)
}

// record puts signals in flight, and then waits for the batch before them.
func (r *Recorder) record(ctx context.Context, signals []*signal.Signal) error {
	p, err := r.session.RecordAsync(ctx, sajou.Addition{Declarations: r.definitions, Signals: signals, Lenient: r.lenient, Recording: true})
	if err != nil {
		return err
	}
	f := &inFlightBatch{pending: p, signals: len(signals), definitions: len(r.definitions)}
	for _, sig := range signals {
		if sig.Problem != "" {
			f.flagged++
		}
	}
	r.definitions = nil
	err = r.settle(ctx)
	r.inFlight = f
	return err
}

// settle waits for the batch in flight and counts it.
func (r *Recorder) settle(ctx context.Context) error {
	f := r.inFlight
	if f == nil {
		return nil
	}
	r.inFlight = nil
	out, err := f.pending.Wait(ctx)
	if err != nil {
		return err
	}
	if r.tally.First == 0 {
		r.tally.First = out.First
	}
	r.tally.Definitions += f.definitions
	r.tally.Signals += f.signals
	r.tally.Flagged += f.flagged
	r.tally.OutOfOrder += out.OutOfOrder
	if r.progress != nil {
		r.progress(r.tally.Signals)
	}
	return nil
}

// TallyOf counts the signals of a session after a head. After a failed write it
// gives the durable counts: the log may then have more than the Recorder was
// notified of.
func TallyOf(ctx context.Context, log *eventlog.SessionReader, after eventlog.Head) (Tally, error) {
	t := Tally{Head: after}
	state := &session.State{}
	for e, err := range log.Entries(ctx, 1) {
		if err != nil {
			return t, err
		}
		state.Apply(&e)
		if e.Seq <= after.Seq {
			continue
		}
		switch e.Kind {
		case eventlog.KindSignal:
			t.Signals++
			sig, err := signal.Decode(e.Data)
			if err != nil {
				break
			}
			if sig.Problem != "" {
				t.Flagged++
			}
			if times := state.Time(); times.Late(&sig, e.At) {
				t.OutOfOrder++
			}
		case eventlog.KindDefine:
			t.Definitions++
		default:
		}
		t.First, t.Head = after.Seq+1, e.Head()
	}
	return t, nil
}
