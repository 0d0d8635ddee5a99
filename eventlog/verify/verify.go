// Package verify proves that the sessions of a store hold what was written to them, and
// names each difference.
//
// [Session] checks one session: every link of its chain, its entries, and the
// outcomes of its idempotency keys. [Store] checks the keys outside of every chain: session
// records, and keys that belong to no session or to two. Both read a store at one
// moment and change nothing. Findings ([Fault], [KeyFault], [StoreFault]) are not
// errors; an error says that the check itself could not run.
//
// Programs call the methods of eventlog.Log, which hand this package a snapshot of
// the store.
//
// # Invariants
//
//   - A chain without a [Fault] hashes from the session's genesis to its
//     [SessionReport.Head], decodes, and does not go back in session time.
//   - Of several faults a report names the one with the smallest Seq, whatever the
//     number of workers.
//   - The memory that a check takes does not depend on the store: lists of
//     findings are bounded.
package verify

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/sajou-dev/sajou-go/eventlog/chain"
	"github.com/sajou-dev/sajou-go/eventlog/internal/keyspace"
)

// FaultKind is the way in which an entry differs from the one that was written.
type FaultKind string

// The kinds of [Fault].
const (
	// FaultAltered: the entry's bytes or hash were changed.
	FaultAltered FaultKind = "altered"

	// FaultMissing: the entry is absent, although later ones are present or a
	// Head kept elsewhere says that it existed.
	FaultMissing FaultKind = "missing"

	// FaultReordered: an unchanged entry of this session stands at the place
	// of another.
	FaultReordered FaultKind = "reordered"

	// FaultForeign: an unchanged entry of another session of this log
	// stands here.
	FaultForeign FaultKind = "foreign"

	// FaultTrailing: bytes that belong to no entry stand behind the entry.
	FaultTrailing FaultKind = "trailing garbage"

	// FaultInvalid: the entry fits its hash, but no log can hold it: its body
	// cannot be decoded, or its session time goes back.
	FaultInvalid FaultKind = "invalid"

	// FaultUnreadable: the store cannot read its bytes back.
	FaultUnreadable FaultKind = "unreadable"
)

// Fault is the first place at which a session's chain breaks.
type Fault struct {
	Seq    chain.Seq // of the first bad entry
	Kind   FaultKind
	Detail string // for people
}

// String describes the fault for people.
func (f *Fault) String() string {
	return fmt.Sprintf("entry %d is %s: %s", f.Seq, f.Kind, f.Detail)
}

// SessionReport is the result of checking one session.
type SessionReport struct {
	Session string
	Head    chain.Head // the end of the chain; the last good position if Fault is set
	Fault   *Fault     // nil when the chain is whole

	// Keys are the first 100 faults of idempotency keys: those of the entries, in
	// the order of the entries, and then invented outcomes, in the order of keys.
	// KeyFaults counts all. They are looked for when the chain is whole.
	Keys      []KeyFault
	KeyFaults int
}

// Whole reports whether the chain and the outcomes of idempotency keys are
// without fault.
func (r *SessionReport) Whole() bool { return r.Fault == nil && r.KeyFaults == 0 }

// Options controls the check of a session.
type Options struct {
	// Expect, unless zero, is a Head of the session that was kept elsewhere.
	// The chain must contain it: this detects a cut end and a history that was
	// rewritten as a whole. A Head of Seq 0 is refused with [chain.ErrInvalid]:
	// every session of the name contains it, so it proves nothing.
	Expect chain.Head

	// Workers is the number of goroutines that hash. Zero means one for each
	// core.
	Workers int

	// Progress, unless nil, is called from time to time with the number of
	// entries checked so far and their expected total, never concurrently.
	Progress func(done, total chain.Seq)
}

// StoredSession is one session of a store at one moment.
type StoredSession struct {
	Reader pebble.Reader // the store at that moment
	Name   string
	Number uint32 // of the session in the store

	// Around returns an iterator over the session's keys outside of the blocks of tables
	// that cannot be read, at the last key before from, or at the first one. It is used
	// once a block cannot be read; nil for none.
	Around func(ctx context.Context, from chain.Seq) (StoredKeys, error)

	// Noted is the newest entry that was noted as durable if the last one cannot be read;
	// zero if that is unknown.
	Noted chain.Head

	// LostEnd returns a fault if the store is known to have lost entries behind
	// end, the end of the session's chain, and nil otherwise.
	LostEnd func(end chain.Head) *Fault
}

// StoredKeys iterates over the keys of one session's batches.
type StoredKeys interface {
	Valid() bool
	Next() bool
	Key() []byte
	Value() []byte
	Error() error
	Close() error
}

// CheckOptions refuses options that prove nothing; see [Options.Expect].
func CheckOptions(opts Options) error {
	if !opts.Expect.IsZero() && opts.Expect.Seq == 0 {
		return fmt.Errorf("%w: the head %v to compare with is that of no entry; every session contains it", chain.ErrInvalid, opts.Expect)
	}
	return nil
}

// Session checks every link of a session's chain, by hashing the stored bytes;
// that its entries can be decoded and do not go back in time; and that the
// outcomes of idempotency keys are those of the keys that the entries carry.
//
// A broken chain is not an error but a [SessionReport] with a [Fault]. Errors are those
// of [CheckOptions], of the context and of reading.
func Session(ctx context.Context, src StoredSession, opts Options) (SessionReport, error) {
	if err := CheckOptions(opts); err != nil {
		return SessionReport{}, err
	}
	v := &verifier{lostEnd: src.LostEnd, around: src.Around, noted: src.Noted, reader: src.Reader, name: src.Name, number: src.Number, opts: opts, keys: newKeySum()}
	r, err := v.run(ctx)
	if err == nil && r.Fault == nil {
		err = v.checkKeys(ctx, &r)
	}
	return r, err
}

// verifier checks one session. It cuts the chain into stretches, which workers
// check side by side. A worker reads the hash that its stretch starts from out of
// the link before it; the worker of that link checks it.
type verifier struct {
	lostEnd func(end chain.Head) *Fault
	around  func(ctx context.Context, from chain.Seq) (StoredKeys, error)
	noted   chain.Head
	reader  pebble.Reader // the store at one moment
	name    string
	number  uint32
	opts    Options

	total chain.Seq // of the last entry, according to the last key
	limit atomic.Uint64

	mu    sync.Mutex
	done  chain.Seq  // guarded by mu
	fault *Fault     // the first one found so far; guarded by mu
	last  chain.Head // the last good link in front of fault, as far as its worker came; guarded by mu
	end   chain.Head // the last link of the last stretch; guarded by mu
	keys  keySum     // over the keys of the entries; guarded by mu
	held  bool       // the expected Head was met; guarded by mu
}

// stretch is a run of batches: those whose first Seq is in [from, to).
type stretch struct{ from, to chain.Seq }

// endless as the end of a stretch means every remaining batch.
const endless = ^chain.Seq(0)

// stretchesPerWorker keeps all workers busy to the end although stretches take
// different times.
const stretchesPerWorker = 8

func (v *verifier) run(ctx context.Context) (SessionReport, error) {
	workers := v.opts.Workers
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	if err := v.measure(); err != nil {
		return SessionReport{}, err
	}
	v.limit.Store(^uint64(0))
	v.end = chain.Head{Hash: chain.Genesis(v.name)}
	v.held = v.opts.Expect.IsZero() || v.opts.Expect == v.end

	step := max(v.total/chain.Seq(workers*stretchesPerWorker), 1024)
	work := make(chan stretch) // unbuffered: a worker takes the next when it is free
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
	from := chain.Seq(1)
	for ; from <= v.total && v.total-from >= step; from += step {
		work <- stretch{from, from + step}
	}
	work <- stretch{from, endless}
	close(work)
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return SessionReport{}, err
	}
	return v.report(ctx)
}

// measure finds how far the keys reach. If the end cannot be read, the worker
// that arrives there reports it.
func (v *verifier) measure() error {
	it, err := v.reader.NewIter(keyspace.BatchesOf(v.number))
	if err != nil {
		return keyspace.ReadError("verify", err)
	}
	if it.Last() {
		if seq, ok := keyspace.BatchSeq(it.Key()); ok {
			v.total = seq
			if b, err := chain.OpenBatch(it.Value()); err == nil && b.First == seq {
				v.total = seq + chain.Seq(b.Count) - 1
			}
		}
	} else if it.Error() != nil {
		v.total = v.noted.Seq
	}
	_ = it.Close()
	return nil
}

func (v *verifier) report(ctx context.Context) (SessionReport, error) {
	r := SessionReport{Session: v.name, Head: v.end, Fault: v.fault}
	if r.Fault == nil && !v.held {
		r.Fault = v.unexpected()
	}
	if r.Fault == nil && v.end.Seq == 0 {
		// The record is written together with the first batch.
		r.Fault = &Fault{1, FaultMissing, "the session has a record, but no entries"}
	}
	if r.Fault == nil {
		r.Fault = v.lostEnd(v.end)
	}
	if r.Fault == nil {
		return r, nil
	}
	if v.fault != nil && v.last.Seq+1 == r.Fault.Seq {
		r.Head = v.last // what is around a damaged block cannot be looked up again
		return r, nil
	}
	r.Head = chain.Head{Hash: chain.Genesis(v.name)}
	if r.Fault.Seq > 1 {
		if prev, err := keyspace.HashAt(ctx, v.reader, v.number, r.Fault.Seq-1); err == nil {
			r.Head = chain.Head{Seq: r.Fault.Seq - 1, Hash: prev}
		}
	}
	return r, nil
}

// unexpected is the fault of a whole chain without the expected Head.
func (v *verifier) unexpected() *Fault {
	want := v.opts.Expect
	if want.Seq > v.end.Seq {
		return &Fault{v.end.Seq + 1, FaultMissing, fmt.Sprintf("the log ends with entry %d, the head kept elsewhere is %v", v.end.Seq, want)}
	}
	return &Fault{want.Seq, FaultAltered, fmt.Sprintf("the chain is whole, but its hash here is not the %v kept elsewhere: the history up to here was rewritten", want.Hash)}
}

// found records a fault, of which the worker met the link at before; the fault with the
// smallest Seq wins.
func (v *verifier) found(f *Fault, at chain.Head) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.fault == nil || f.Seq < v.fault.Seq {
		v.fault, v.last = f, at
		v.limit.Store(uint64(f.Seq))
	}
}

// check checks one stretch and records its first fault.
func (v *verifier) check(ctx context.Context, s stretch) error {
	if uint64(s.from) > v.limit.Load() {
		return nil // a fault in front of it is known
	}
	it, err := v.reader.NewIterWithContext(ctx, keyspace.BatchesOf(v.number))
	if err != nil {
		return keyspace.ReadError("verify", err)
	}
	c := v.walk(it, nil)
	damage, err := c.stretch(ctx, s, func() bool { return seekBefore(it, v.number, s.from) })
	if err := errors.Join(err, closeRead(it)); err != nil {
		return err
	}
	if damage != nil {
		c = v.walk(nil, damage)
		if err := v.checkAround(ctx, s, c); err != nil {
			return err
		}
	}
	v.mu.Lock()
	v.keys.merge(c.keys)
	v.mu.Unlock()
	return nil
}

// checkAround is check for a stretch of which a block cannot be read.
func (v *verifier) checkAround(ctx context.Context, s stretch, c *walk) error {
	if v.around == nil {
		c.unreadable(c.damage)
		return nil
	}
	it, err := v.around(ctx, s.from)
	if err != nil {
		return keyspace.ReadError("verify", err)
	}
	c.it = it
	_, err = c.stretch(ctx, s, it.Valid)
	return errors.Join(err, closeRead(it))
}

// closeRead closes an iterator. Close repeats the error of reading, which has become a
// fault.
func closeRead(it StoredKeys) error {
	if it.Error() != nil {
		_ = it.Close()
		return nil //nolint:nilerr // as said above
	}
	return it.Close()
}

// seekBefore moves to the last key before the batch that begins with from, or to the first
// one.
func seekBefore(it *pebble.Iterator, number uint32, from chain.Seq) bool {
	return from > 1 && it.SeekLT(keyspace.BatchKey(nil, number, from)) || it.Error() == nil && it.First()
}

func (v *verifier) walk(it StoredKeys, damage error) *walk {
	return &walk{v: v, it: it, damage: damage, at: chain.Head{Hash: chain.Genesis(v.name)}, keys: keySum{seeds: v.keys.seeds}}
}

// walk is the state of a worker inside one stretch.
type walk struct {
	v      *verifier
	it     StoredKeys
	damage error         // of a block that it leaves out; nil for none
	at     chain.Head    // the link before the next one
	time   time.Duration // session time there
	seen   chain.Seq     // since the last report of progress
	keys   keySum        // over the keys of the batches so far
}

// stretch checks one stretch. seek places the iterator at the last key before it, or at the
// first one. A block that cannot be read is returned as damage; the stretch must then be
// checked again around it.
func (w *walk) stretch(ctx context.Context, s stretch, seek func() bool) (damage, err error) {
	started := !seek() || w.start(s.from)
	switch err := w.it.Error(); {
	case w.damage == nil && pebble.IsCorruptionError(err):
		return err, nil
	case err != nil && s.from <= 1:
		w.unreadable(err)
		return nil, nil
	case err != nil || !started:
		return nil, nil //nolint:nilerr // the worker of the link before the stretch reports it
	}
	for ; w.it.Valid(); w.it.Next() {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		seq, ok := keyspace.BatchSeq(w.it.Key())
		if !ok {
			w.v.found(&Fault{max(w.at.Seq, 1), FaultTrailing, fmt.Sprintf("key %x is not a batch's", w.it.Key())}, w.at)
			return nil, nil
		}
		if seq >= s.to && s.to != endless {
			break
		}
		if uint64(seq) > w.v.limit.Load() {
			return nil, nil
		}
		f, err := w.batch(ctx, seq, w.it.Value())
		if err != nil {
			return nil, err
		}
		if f != nil {
			w.v.found(f, w.at)
			return nil, nil
		}
	}
	switch err := w.it.Error(); {
	case w.damage == nil && pebble.IsCorruptionError(err):
		return err, nil
	case err != nil:
		w.unreadable(err)
		return nil, nil
	case w.damage != nil && s.to == endless && (w.v.total == 0 || w.at.Seq < w.v.total):
		w.unreadable(w.damage) // the end is in the damaged block
		return nil, nil
	}
	w.progress(0, true)
	if s.to == endless {
		w.v.mu.Lock()
		w.v.end = w.at
		w.v.mu.Unlock()
	}
	return nil, nil
}

// start reads the link before the stretch from the key at which the iterator stands, and
// moves to the first batch of the stretch. False means that the link cannot be read; the
// worker of that link reports it.
func (w *walk) start(from chain.Seq) bool {
	if seq, ok := keyspace.BatchSeq(w.it.Key()); from <= 1 || ok && seq >= from {
		return true // no link is before the stretch
	}
	b, err := keyspace.OpenBatch(w.it.Key(), w.it.Value())
	if err != nil {
		return false
	}
	for i := range b.Count {
		_, body, hash, err := b.Next()
		if err != nil {
			return false
		}
		w.at = chain.Head{Seq: b.First + chain.Seq(i), Hash: *hash}
		if i == b.Count-1 {
			var e chain.Entry
			if err := chain.DecodeBody(&e, body); err != nil {
				return false
			}
			w.time = e.At
		}
	}
	w.it.Next()
	return true
}

// unreadable records that the next entry cannot be read.
func (w *walk) unreadable(err error) {
	w.v.found(&Fault{w.at.Seq + 1, FaultUnreadable, keyspace.FirstLine(err)}, w.at)
}

// batch checks the links of one batch.
func (w *walk) batch(ctx context.Context, seq chain.Seq, value []byte) (*Fault, error) {
	next := w.at.Seq + 1
	if seq == 0 {
		return &Fault{1, FaultTrailing, "a value stands before the first entry"}, nil
	}
	if seq > next && w.damage != nil {
		return &Fault{next, FaultUnreadable, keyspace.FirstLine(w.damage)}, nil //nolint:nilerr // the fault tells the error
	}
	if seq > next {
		return &Fault{next, FaultMissing, fmt.Sprintf("after entry %d comes entry %d", w.at.Seq, seq)}, nil
	}
	b, err := chain.OpenBatch(value)
	switch {
	case err != nil:
		return w.notABatch(seq, value, err), nil
	case b.First != seq:
		return w.v.misplaced(ctx, seq, b)
	case seq < next:
		return &Fault{seq, FaultReordered, fmt.Sprintf("a second batch begins with it, behind entry %d", w.at.Seq)}, nil
	}
	links := b.Rest
	var e chain.Entry
	var key string
	for i := range b.Count {
		off := len(links) - len(b.Rest)
		stored, body, hash, err := b.Next()
		if err != nil {
			return w.v.short(w.at, b, i, err)
		}
		var want chain.Hash
		if i == 0 {
			want = chain.Link(w.at.Hash, stored)
		} else {
			want = chain.LinkInPlace(links[off-chain.HashSize : off+len(stored)])
		}
		if want != *hash {
			return w.v.diagnose(ctx, w.at, b, i, stored, *hash)
		}
		if f := w.decode(&e, body, i); f != nil {
			return f, nil
		}
		if i == 0 {
			key = e.Key
		}
		w.at = chain.Head{Seq: w.at.Seq + 1, Hash: *hash}
		if w.at == w.v.opts.Expect {
			w.v.mu.Lock()
			w.v.held = true
			w.v.mu.Unlock()
		}
	}
	if len(b.Rest) != 0 {
		return behind(w.at, b), nil
	}
	if key != "" {
		var record [8 + 8 + chain.HashSize]byte
		w.keys.add([]byte(key), keyspace.AppendOutcome(record[:0], b.First, w.at))
	}
	w.progress(chain.Seq(b.Count), false)
	return nil, nil
}

// decode reads the entry at i in its batch, whose hash fits, and advances session
// time.
func (w *walk) decode(e *chain.Entry, body []byte, i int) *Fault {
	seq := w.at.Seq + 1
	switch err := chain.DecodeBody(e, body); {
	case err != nil:
		return &Fault{seq, FaultInvalid, err.Error()}
	case e.At < w.time:
		return &Fault{seq, FaultInvalid, fmt.Sprintf("its session time %v is before that of the entry before it, %v", e.At, w.time)}
	case i > 0 && e.Key != "":
		return &Fault{seq, FaultInvalid, "it carries an idempotency key, and is not the first of its batch"}
	}
	w.time = e.At
	return nil
}

// notABatch returns the fault of a value without the header of a batch. In the
// middle of the log the value was changed. Behind the last entry it never was a
// batch, unless it still claims to begin with the entry of its place, or holds
// the link that follows.
func (w *walk) notABatch(seq chain.Seq, value []byte, err error) *Fault {
	if seq == w.at.Seq+1 && seq > 1 && seq >= w.v.total {
		claimed, n := binary.Uvarint(value[min(1, len(value)):])
		if (n <= 0 || chain.Seq(claimed) != seq) && !w.follows(value) {
			return &Fault{w.at.Seq, FaultTrailing, fmt.Sprintf("the value behind it, at the place of entry %d, is not a batch: %v", seq, err)}
		}
	}
	return &Fault{seq, FaultAltered, err.Error()}
}

// follows reports whether the link that continues the chain stands in value,
// behind bytes that may be a header.
func (w *walk) follows(value []byte) bool {
	for start := 1; start <= min(maxHeader, len(value)); start++ {
		b := chain.Sealed{Rest: value[start:]}
		if stored, _, hash, err := b.Next(); err == nil && chain.Link(w.at.Hash, stored) == *hash {
			return true
		}
	}
	return false
}

// maxHeader is more than the length of any header that can be read.
const maxHeader = 1 + 2*(binary.MaxVarintLen64+2)

// progressEvery is the number of entries that a worker checks between two reports.
const progressEvery = 1 << 13

func (w *walk) progress(n chain.Seq, flush bool) {
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
