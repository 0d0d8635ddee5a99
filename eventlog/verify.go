package eventlog

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
)

// FaultKind says in which way a log is not what was written.
type FaultKind string

// The kinds of fault.
const (
	// FaultAltered: the entry's bytes or hash were changed.
	FaultAltered FaultKind = "altered"

	// FaultMissing: the entry is not there, although later ones are, or
	// although a Head kept elsewhere says that it was.
	FaultMissing FaultKind = "missing"

	// FaultReordered: an unchanged entry of this session stands at the place
	// of another.
	FaultReordered FaultKind = "reordered"

	// FaultForeign: an unchanged entry of another session of this log
	// stands here.
	FaultForeign FaultKind = "foreign"

	// FaultTrailing: bytes stand behind the entry that belong to nothing.
	FaultTrailing FaultKind = "trailing garbage"

	// FaultUnreadable: the store itself cannot read its bytes back.
	FaultUnreadable FaultKind = "unreadable"
)

// Fault is the first place where a session's chain breaks.
type Fault struct {
	Seq    Seq       // the first bad entry
	Kind   FaultKind // in which way it is bad
	Detail string    // for people
}

func (f *Fault) Error() string {
	return fmt.Sprintf("entry %d is %s: %s", f.Seq, f.Kind, f.Detail)
}

// Report is the outcome of a verification.
type Report struct {
	Session string
	Head    Head   // where the chain ends; the last good place if Fault is set
	Fault   *Fault // nil when the chain is whole
}

// VerifyOptions tells how a session is verified.
type VerifyOptions struct {
	// Expect, unless zero, is a Head of the session that was kept elsewhere.
	// The chain must contain it: this shows a cut tail and a history that
	// was rewritten as a whole.
	Expect Head

	// Workers is how many goroutines hash. Zero means one a core.
	Workers int

	// Progress, unless nil, is called now and then with the number of
	// entries checked so far and their expected total, never concurrently.
	Progress func(done, total Seq)
}

// Verify checks every link of a session's chain. It decodes nothing: it
// hashes the stored bytes. A broken chain is not an error but a
// [Report] with a [Fault]; errors are [ErrNoSession], [ErrVersion], the
// context's, or the log being closed.
func (l *Log) Verify(ctx context.Context, name string, opts VerifyOptions) (Report, error) {
	release, err := l.acquire()
	if err != nil {
		return Report{}, err
	}
	defer release()
	number, ok, err := l.sessionNumber(name)
	if err != nil {
		return Report{}, err
	}
	if !ok {
		return Report{}, fmt.Errorf("%w: %q", ErrNoSession, name)
	}
	v := &verifier{log: l, name: name, number: number, opts: opts}
	return v.run(ctx)
}

// verifier checks one session. The chain is cut into stretches that workers
// check side by side: the hash that a stretch starts from is read from the
// link before it, whose own truth is another worker's business.
type verifier struct {
	log    *Log
	name   string
	number uint32
	opts   VerifyOptions

	total Seq // as the last key promises
	limit atomic.Uint64

	mu    sync.Mutex
	done  Seq    // guarded by mu
	fault *Fault // the first one found so far; guarded by mu
	end   Head   // the last link of the last stretch; guarded by mu
	held  bool   // the expected Head was met; guarded by mu
}

// stretch is a run of batches: those whose first Seq is in [from, to).
type stretch struct{ from, to Seq }

// endless as the end of a stretch takes in every batch that is left.
const endless = ^Seq(0)

// stretchesPerWorker keeps workers busy to the end when stretches take
// different times.
const stretchesPerWorker = 8

func (v *verifier) run(ctx context.Context) (Report, error) {
	workers := v.opts.Workers
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	if err := v.measure(); err != nil {
		return Report{}, err
	}
	v.limit.Store(^uint64(0))
	v.end = Head{0, Genesis(v.name)}
	v.held = v.opts.Expect.IsZero() || v.opts.Expect == v.end

	step := max(v.total/Seq(workers*stretchesPerWorker), 1024)
	work := make(chan stretch) // unbuffered: handed over as workers come
	errs := make([]error, workers)
	var wg sync.WaitGroup
	for i := range workers {
		wg.Go(func() {
			for s := range work {
				if err := v.check(ctx, s); err != nil && errs[i] == nil {
					errs[i] = err
				}
			}
		})
	}
	from := Seq(1)
	for ; from <= v.total && v.total-from >= step; from += step {
		work <- stretch{from, from + step}
	}
	work <- stretch{from, endless}
	close(work)
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return Report{}, err
	}
	return v.report(ctx)
}

// measure finds how far the keys reach. If the end cannot be read, whoever
// comes there will say so.
func (v *verifier) measure() error {
	it, err := v.log.db.NewIter(&pebble.IterOptions{
		LowerBound: batchKey(nil, v.number, 0),
		UpperBound: batchKey(nil, v.number+1, 0),
	})
	if err != nil {
		return readError("verify", err)
	}
	if it.Last() {
		if seq, ok := keySeq(it.Key()); ok {
			v.total = seq
			if b, err := openBatch(it.Value()); err == nil && b.first == seq {
				v.total = seq + Seq(b.count) - 1
			}
		}
	}
	_ = it.Close()
	return nil
}

func (v *verifier) report(ctx context.Context) (Report, error) {
	r := Report{Session: v.name, Head: v.end, Fault: v.fault}
	if r.Fault == nil && !v.held {
		r.Fault = v.unexpected()
	}
	if r.Fault == nil {
		return r, nil
	}
	r.Head = Head{0, Genesis(v.name)}
	if r.Fault.Seq > 1 {
		if prev, err := v.hashAt(ctx, r.Fault.Seq-1); err == nil {
			r.Head = Head{r.Fault.Seq - 1, prev}
		}
	}
	return r, nil
}

// unexpected tells how a whole chain misses the Head that was kept elsewhere.
func (v *verifier) unexpected() *Fault {
	want := v.opts.Expect
	if want.Seq > v.end.Seq {
		return &Fault{v.end.Seq + 1, FaultMissing, fmt.Sprintf("the log ends with entry %d, the head kept elsewhere is %v", v.end.Seq, want)}
	}
	return &Fault{want.Seq, FaultAltered, fmt.Sprintf("the chain is whole, but its hash here is not the %v kept elsewhere: the history up to here was rewritten", want.Hash)}
}

// found notes a fault; the one with the smallest Seq wins.
func (v *verifier) found(f *Fault) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.fault == nil || f.Seq < v.fault.Seq {
		v.fault = f
		v.limit.Store(uint64(f.Seq))
	}
}

// check verifies one stretch and notes its first fault.
func (v *verifier) check(ctx context.Context, s stretch) error {
	if uint64(s.from) > v.limit.Load() {
		return nil // something before it is bad already
	}
	it, err := v.log.db.NewIterWithContext(ctx, &pebble.IterOptions{
		LowerBound: batchKey(nil, v.number, 0),
		UpperBound: batchKey(nil, v.number+1, 0),
	})
	if err != nil {
		return readError("verify", err)
	}
	c := &walk{v: v, it: it, at: Head{0, Genesis(v.name)}}
	err = c.stretch(ctx, s)
	// Close repeats what reading met, and that has become a fault.
	if read := it.Error(); read != nil {
		_ = it.Close()
		return err
	}
	return errors.Join(err, it.Close())
}

// walk is one worker's way through one stretch.
type walk struct {
	v    *verifier
	it   *pebble.Iterator
	at   Head // the link before the next one
	seen Seq  // since progress was last told
}

func (w *walk) stretch(ctx context.Context, s stretch) error {
	if !w.seekStart(s.from) {
		return nil
	}
	for ; w.it.Valid(); w.it.Next() {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		seq, ok := keySeq(w.it.Key())
		if !ok {
			w.v.found(&Fault{max(w.at.Seq, 1), FaultTrailing, fmt.Sprintf("key %x is not a batch's", w.it.Key())})
			return nil
		}
		if seq >= s.to && s.to != endless {
			break
		}
		if uint64(seq) > w.v.limit.Load() {
			return nil
		}
		f, err := w.batch(ctx, seq, w.it.Value())
		if err != nil {
			return err
		}
		if f != nil {
			w.v.found(f)
			return nil
		}
	}
	if err := w.it.Error(); err != nil {
		w.v.found(&Fault{w.at.Seq + 1, FaultUnreadable, firstLine(err)})
		return nil
	}
	w.progress(0, true)
	if s.to == endless {
		w.v.mu.Lock()
		w.v.end = w.at
		w.v.mu.Unlock()
	}
	return nil
}

// seekStart places the iterator at the first batch of the stretch and takes
// over the link before it. False means that the link cannot be read; the
// worker that owns it says so.
func (w *walk) seekStart(from Seq) bool {
	if from <= 1 || !w.it.SeekLT(batchKey(nil, w.v.number, from)) {
		if w.it.Error() != nil {
			return false
		}
		w.it.First()
		return w.it.Error() == nil || w.unreadable()
	}
	b, err := openBatchAt(w.it.Key(), w.it.Value())
	if err != nil {
		return false
	}
	for i := range b.count {
		_, _, hash, err := b.link()
		if err != nil {
			return false
		}
		w.at = Head{b.first + Seq(i), *hash}
	}
	w.it.Next()
	return true
}

func (w *walk) unreadable() bool {
	w.v.found(&Fault{w.at.Seq + 1, FaultUnreadable, firstLine(w.it.Error())})
	return false
}

// batch verifies the links of one batch.
func (w *walk) batch(ctx context.Context, seq Seq, value []byte) (*Fault, error) {
	next := w.at.Seq + 1
	if seq == 0 {
		return &Fault{1, FaultTrailing, "a value stands before the first entry"}, nil
	}
	if seq > next {
		return &Fault{next, FaultMissing, fmt.Sprintf("after entry %d comes entry %d", w.at.Seq, seq)}, nil
	}
	b, err := openBatch(value)
	switch {
	case err != nil:
		return w.notABatch(seq, value, err), nil
	case b.first != seq:
		return w.v.misplaced(ctx, seq, b)
	case seq < next:
		return &Fault{seq, FaultReordered, fmt.Sprintf("a second batch begins with it, behind entry %d", w.at.Seq)}, nil
	}
	links := b.rest
	for i := range b.count {
		off := len(links) - len(b.rest)
		stored, _, hash, err := b.link()
		if err != nil {
			return w.v.short(ctx, w.at, next+Seq(i), b, err)
		}
		var want Hash
		if i == 0 {
			want = Link(w.at.Hash, stored)
		} else {
			want = linkInPlace(links[off-HashSize : off+len(stored)])
		}
		if want != *hash {
			return w.v.diagnose(ctx, w.at, b, i, stored, *hash)
		}
		w.at = Head{w.at.Seq + 1, *hash}
		if w.at == w.v.opts.Expect {
			w.v.mu.Lock()
			w.v.held = true
			w.v.mu.Unlock()
		}
	}
	if len(b.rest) != 0 {
		return &Fault{w.at.Seq, FaultTrailing, fmt.Sprintf("%d bytes stand behind it", len(b.rest))}, nil
	}
	w.progress(Seq(b.count), false)
	return nil, nil
}

// notABatch judges a value that has no batch's header. In the middle of the
// log it is one that was changed; behind the last entry, something that never
// was a batch, unless it still claims to begin with the entry of its place.
func (w *walk) notABatch(seq Seq, value []byte, err error) *Fault {
	if seq == w.at.Seq+1 && seq > 1 && seq >= w.v.total {
		claimed, n := binary.Uvarint(value[min(1, len(value)):])
		if n <= 0 || Seq(claimed) != seq {
			return &Fault{w.at.Seq, FaultTrailing, fmt.Sprintf("behind it, at the place of entry %d, stands what is not a batch: %v", seq, err)}
		}
	}
	return &Fault{seq, FaultAltered, err.Error()}
}

// progressEvery is how many entries a worker checks between two reports.
const progressEvery = 1 << 13

func (w *walk) progress(n Seq, flush bool) {
	w.seen += n
	if w.v.opts.Progress == nil || (w.seen < progressEvery && !flush) {
		return
	}
	w.v.mu.Lock()
	defer w.v.mu.Unlock()
	w.v.done += w.seen
	w.seen = 0
	w.v.opts.Progress(w.v.done, w.v.total)
}
