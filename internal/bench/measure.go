package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/eventlog/verify"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/signal"
)

func (b *bench) path(elem ...any) string {
	return filepath.Join(b.dir, fmt.Sprint(elem...))
}

// engine opens a fresh store and a session with the workload's definitions in
// force.
func (b *bench) engine(dir string) (*sajou.Engine, *sajou.Session, error) {
	eng, err := sajou.Open(dir, sajou.Config{})
	if err != nil {
		return nil, nil, err
	}
	ses, err := eng.Session(b.ctx, "bench")
	if err != nil {
		return nil, nil, errors.Join(err, eng.Close())
	}
	defs, err := definitions()
	if err == nil {
		_, err = ses.Define(b.ctx, defs...)
	}
	if err != nil {
		return nil, nil, errors.Join(err, eng.Close())
	}
	return eng, ses, nil
}

// record writes the first n signals in batches of size, as an import does: the
// next batch is prepared while the one before is on its way to the disk. All
// are durable when it returns.
func record(ctx context.Context, ses *sajou.Session, n, size int, signals []*signal.Signal) error {
	batch := make([]*signal.Signal, 0, size)
	var before *sajou.Pending
	settle := func() error {
		if before == nil {
			return nil
		}
		_, err := before.Wait(ctx)
		return err
	}
	for i := range n {
		var sig *signal.Signal
		var err error
		if signals != nil {
			sig = signals[i]
		} else if sig, err = makeSignal(i); err != nil {
			return err
		}
		if batch = append(batch, sig); len(batch) == size || i == n-1 {
			next, err := ses.RecordAsync(ctx, sajou.Addition{Signals: batch})
			if err != nil {
				return errors.Join(err, settle())
			}
			if err := settle(); err != nil {
				return err
			}
			before = next
			batch = batch[:0]
		}
	}
	return settle()
}

// appends measures durable appends of one signal each.
func (b *bench) appends() error {
	n := max(b.scale.appends, b.scale.writers)
	payloads, err := bodies(b.ctx, b.dir, n)
	if err != nil {
		return err
	}
	signals, err := makeSignals(n)
	if err != nil {
		return err
	}
	for _, c := range []struct {
		name                 string
		writers, count       int
		engine, log, chained float64 // goals of the rates
		work                 float64 // goal of the processor time
	}{
		{"1 writer", 1, b.scale.appends, 0.95, 0.95, 0.95, 0},
		{"64 writers", 64, b.scale.writers, 0.85, 0.9, 0.95, 1.5},
	} {
		all, err := b.interleave("durable append, "+c.name,
			side{"raw Pebble", func() (measurement, error) {
				return b.onRaw(func(raw *rawStore) (measurement, error) {
					return timed(c.count, func() error {
						return spread(c.writers, c.count, func(i int) error { return raw.put(uint64(i), payloads[i:i+1]) })
					}, nil)
				})
			}},
			side{"chained log", func() (measurement, error) {
				return b.onChained(func(log *chainedLog) (measurement, error) {
					return timed(c.count, func() error {
						return spread(c.writers, c.count, func(i int) error { return log.put(payloads[i : i+1]) })
					}, nil)
				})
			}},
			side{"log alone", func() (measurement, error) {
				return b.onLog(func(ses *eventlog.Session) (measurement, error) {
					return timed(c.count, func() error {
						return spread(c.writers, c.count, func(i int) error {
							_, err := ses.Append(b.ctx, eventlog.Batch{Drafts: drafts(signals[i : i+1])})
							return err
						})
					}, nil)
				})
			}},
			side{"engine", func() (measurement, error) {
				return b.onEngine(b.path("append-", b.fresh()), func(ses *sajou.Session) (measurement, error) {
					return timed(c.count, func() error {
						return spread(c.writers, c.count, func(i int) error {
							_, err := ses.Signal(b.ctx, signals[i])
							return err
						})
					}, b.folded(ses))
				})
			}})
		if err != nil {
			return err
		}
		raw, chained, log, engine := all[0], all[1], all[2], all[3]
		b.beside("durable append, "+c.name, "entries", engine, "raw Pebble", raw, c.engine)
		b.beside("durable append, "+c.name, "entries", engine, "chained log", chained, c.chained)
		b.beside("durable append, "+c.name+", log alone", "entries", log, "raw Pebble", raw, c.log)
		b.beside("durable append, "+c.name+", log alone", "entries", log, "chained log", chained, c.chained)
		b.workBeside("  processor time", engine, "raw Pebble", raw, c.work)
		b.workBeside("  processor time, log alone", log, "raw Pebble", raw, c.work)
		b.workBeside("  processor time, chained log", chained, "raw Pebble", raw, 0)
	}
	return nil
}

// folded returns a function that waits until every fold of the session has every entry:
// what an append leaves to them is part of its processor time.
func (b *bench) folded(ses *sajou.Session) func() error {
	return func() error {
		_, err := ses.State(b.ctx)
		return err
	}
}

// onRaw, onChained, onLog and onEngine measure on a fresh store, which they close.
func (b *bench) onRaw(f func(*rawStore) (measurement, error)) (measurement, error) {
	raw, err := openRaw(b.path("raw-", b.fresh()))
	if err != nil {
		return measurement{}, err
	}
	m, err := f(raw)
	return m, errors.Join(err, raw.close())
}

func (b *bench) onChained(f func(*chainedLog) (measurement, error)) (measurement, error) {
	log, err := openChained(b.path("chained-", b.fresh()))
	if err != nil {
		return measurement{}, err
	}
	m, err := f(log)
	return m, errors.Join(err, log.close())
}

func (b *bench) onLog(f func(*eventlog.Session) (measurement, error)) (measurement, error) {
	log, ses, err := b.log(b.path("log-", b.fresh()))
	if err != nil {
		return measurement{}, err
	}
	m, err := f(ses)
	return m, errors.Join(err, log.Close())
}

func (b *bench) onEngine(dir string, f func(*sajou.Session) (measurement, error)) (measurement, error) {
	eng, ses, err := b.engine(dir)
	if err != nil {
		return measurement{}, err
	}
	m, err := f(ses)
	return m, errors.Join(err, eng.Close())
}

// fresh numbers the stores, so that each round has one of its own.
func (b *bench) fresh() int {
	b.stores++
	return b.stores
}

// log opens a fresh log without the engine around it: no schema, no fold.
func (b *bench) log(dir string) (*eventlog.Log, *eventlog.Session, error) {
	log, err := eventlog.Open(dir, eventlog.Config{})
	if err != nil {
		return nil, nil, err
	}
	ses, err := log.Session("bench")
	if err != nil {
		return nil, nil, errors.Join(err, log.Close())
	}
	return log, ses, nil
}

// drafts encodes signals as the engine does.
func drafts(signals []*signal.Signal) []eventlog.Draft {
	all := make([]eventlog.Draft, len(signals))
	var data []byte
	for i, sig := range signals {
		start := len(data)
		data = sig.Append(data)
		all[i] = eventlog.Draft{Kind: eventlog.KindSignal, Data: data[start:]}
	}
	return all
}

// spread calls f for 0 … n-1 from that many goroutines.
func spread(goroutines, n int, f func(i int) error) error {
	var next atomic.Int64
	var wg sync.WaitGroup
	errs := make([]error, goroutines)
	for g := range goroutines {
		wg.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				if errs[g] = f(i); errs[g] != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// imports measures batches, and their size on disk.
func (b *bench) imports() error {
	n := b.scale.scanned
	payloads, err := bodies(b.ctx, b.dir, n)
	if err != nil {
		return err
	}
	signals, err := makeSignals(n)
	if err != nil {
		return err
	}
	for _, c := range []struct {
		size, count int
		goal        float64
	}{
		{1, b.scale.appends, 0},
		{100, min(n, 100*b.scale.appends), 0},
		{1000, n, 0.5},
	} {
		batches := func(put func(from, to int) error) func() error {
			return func() error {
				for i := 0; i < c.count; i += c.size {
					if err := put(i, min(i+c.size, c.count)); err != nil {
						return err
					}
				}
				return nil
			}
		}
		name := fmt.Sprintf("import in batches of %d", c.size)
		all, err := b.interleave(name,
			side{"raw Pebble", func() (measurement, error) {
				b.rawImported = b.path("raw-", b.fresh())
				raw, err := openRaw(b.rawImported)
				if err != nil {
					return measurement{}, err
				}
				m, err := timed(c.count, batches(func(from, to int) error { return raw.put(uint64(from), payloads[from:to]) }), nil)
				return m, errors.Join(err, raw.close())
			}},
			side{"chained log", func() (measurement, error) {
				return b.onChained(func(log *chainedLog) (measurement, error) {
					return timed(c.count, batches(func(from, to int) error { return log.put(payloads[from:to]) }), nil)
				})
			}},
			side{"log alone", func() (measurement, error) {
				return b.onLog(func(ses *eventlog.Session) (measurement, error) {
					return timed(c.count, batches(func(from, to int) error {
						_, err := ses.Append(b.ctx, eventlog.Batch{Drafts: drafts(signals[from:to])})
						return err
					}), nil)
				})
			}},
			side{"engine", func() (measurement, error) {
				b.imported = b.path("import-", b.fresh())
				return b.onEngine(b.imported, func(ses *sajou.Session) (measurement, error) {
					return timed(c.count, func() error { return record(b.ctx, ses, c.count, c.size, signals) }, b.folded(ses))
				})
			}})
		if err != nil {
			return err
		}
		raw, chained, log, engine := all[0], all[1], all[2], all[3]
		b.beside(name, "entries", engine, "raw Pebble", raw, c.goal)
		b.beside(name, "entries", engine, "chained log", chained, 0)
		b.beside(name+", log alone", "entries", log, "raw Pebble", raw, c.goal)
		b.workBeside("  processor time", engine, "raw Pebble", raw, 0)
		b.workBeside("  processor time, log alone", log, "raw Pebble", raw, 0)
		b.workBeside("  processor time, chained log", chained, "raw Pebble", raw, 0)
	}
	rawBytes, err := diskBytes(b.rawImported, ".log") // in favour of the peer, which keeps files to write again
	if err != nil {
		return err
	}
	engineBytes, err := diskBytes(b.imported)
	if err != nil {
		return err
	}
	b.add(result{
		Name: "bytes on disk after Close, an entry", Value: float64(engineBytes) / float64(n), Unit: "bytes", lower: true, Goal: ptr(1.25),
		Peer: "raw Pebble", peer: float64(rawBytes) / float64(n), Ratio: ptr(float64(engineBytes) / float64(rawBytes)),
	})
	return nil
}

// scans measures reading everything, with and without verification.
func (b *bench) scans() error {
	if b.imported == "" {
		return errors.New("the part scans reads the stores of the part imports: run -only imports,scans")
	}
	n := b.scale.scanned
	raw, err := openRaw(b.rawImported)
	if err != nil {
		return err
	}
	defer func() { _ = raw.db.Close() }()
	eng, err := sajou.Open(b.imported, sajou.Config{ReadOnly: true})
	if err != nil {
		return err
	}
	defer func() { _ = eng.Close() }()
	ses, err := eng.Log().Session("bench")
	if err != nil {
		return err
	}
	verified := func(workers int) func() (measurement, error) {
		return func() (measurement, error) {
			return timed(n, func() error {
				r, err := eng.Log().Verify(b.ctx, "bench", verify.Options{Workers: workers})
				if err == nil && r.Fault != nil {
					err = fmt.Errorf("verify: %v", r.Fault)
				}
				return err
			}, nil)
		}
	}
	all, err := b.interleave("scans",
		side{"raw Pebble", func() (measurement, error) {
			return timed(n, func() error {
				_, err := raw.scan()
				return err
			}, nil)
		}},
		side{"scan with decode", func() (measurement, error) {
			return timed(n, func() error {
				for e, err := range ses.Entries(b.ctx, 1) {
					if err != nil {
						return err
					}
					if e.Kind != eventlog.KindSignal {
						continue
					}
					if _, err := signal.Decode(e.Data); err != nil {
						return err
					}
				}
				return nil
			}, nil)
		}},
		side{"verification on one core", verified(1)},
		side{"verification on all cores", verified(0)})
	if err != nil {
		return err
	}
	b.beside("full scan with decode", "entries", all[1], "raw Pebble", all[0], 0.75)
	b.workBeside("  processor time", all[1], "raw Pebble", all[0], 0)
	b.beside("verification, one core", "entries", all[2], "raw Pebble", all[0], 0)
	b.beside(fmt.Sprintf("verification, all %d cores", runtime.GOMAXPROCS(0)), "entries", all[3], "raw Pebble", all[0], 1)
	return nil
}

// long measures a long session: states anywhere, expressions everywhere,
// memory.
func (b *bench) long() error {
	fmt.Fprintf(b.notes, "a session of %d entries\n", b.scale.long)
	dirs := map[int]string{b.scale.long: b.path("long"), b.scale.short: b.path("short")}
	for n, dir := range dirs {
		eng, ses, err := b.engine(dir)
		if err != nil {
			return err
		}
		if err := errors.Join(record(b.ctx, ses, n, 1000, nil), eng.Close()); err != nil {
			return err
		}
	}
	if err := b.states(dirs[b.scale.long]); err != nil {
		return err
	}
	if err := b.expressions(dirs[b.scale.long]); err != nil {
		return err
	}
	return b.memory(dirs[b.scale.short], dirs[b.scale.long])
}

func (b *bench) states(dir string) error {
	eng, err := sajou.Open(dir, sajou.Config{ReadOnly: true})
	if err != nil {
		return err
	}
	defer func() { _ = eng.Close() }()
	travel, err := eng.Replay("bench")
	if err != nil {
		return err
	}
	rng := rand.New(rand.NewPCG(1, 2)) // the same Seqs in every run
	name := fmt.Sprintf("state at a random Seq of %d", travel.Head().Seq)
	rounds, err := b.each(name, b.scale.states, func(int) error {
		_, err := travel.At(b.ctx, replay.Moment{Seq: eventlog.Seq(rng.Uint64N(uint64(travel.Head().Seq)) + 1)})
		return err
	})
	if err != nil {
		return err
	}
	b.add(result{Name: name + ", p50", Value: rounds.percentile(0.5), Unit: "ms"}, rounds)
	b.add(result{Name: name + ", p99", Value: rounds.percentile(0.99), Unit: "ms", Goal: ptr(5), lower: true, onUnit: true}, rounds)
	return b.moments(eng, travel.Head().Seq)
}

// memory runs the same job in a process of its own over a short and a long
// session and compares the peaks.
func (b *bench) memory(short, long string) error {
	for _, job := range []string{"state", "scan", "verify", "import"} {
		var peaks [2]float64
		for i, dir := range []string{short, long} {
			peak, err := b.child(job, dir)
			if err != nil {
				return fmt.Errorf("memory of %s: %w", job, err)
			}
			peaks[i] = peak
		}
		b.add(result{
			Name: fmt.Sprintf("peak memory, %s, %d entries", job, b.scale.long), Value: peaks[1], Unit: "MiB", lower: true,
			Peer: fmt.Sprintf("%d entries", b.scale.short), peer: peaks[0], Ratio: ptr(peaks[1] / peaks[0]),
		})
	}
	return nil
}

// peakMiB reads the process's largest resident size.
func peakMiB() (float64, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	for line := range lines(status) {
		if rest, ok := cutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.ParseFloat(rest, 64)
			return kib / 1024, err
		}
	}
	return 0, errors.New("no VmHWM in /proc/self/status")
}
