package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

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
		name    string
		writers int
		count   int
		goal    float64
	}{
		{"durable append, 1 writer", 1, b.scale.appends, 0.95},
		{"durable append, 64 writers", 64, b.scale.writers, 0.9},
	} {
		peer := func(round int) (float64, error) {
			raw, err := openRaw(b.path("raw-append-", c.writers, "-", b.fresh()))
			if err != nil {
				return 0, err
			}
			rate, err := timed(c.count, func() error {
				return spread(c.writers, c.count, func(i int) error {
					return raw.put(uint64(i), payloads[i:i+1])
				})
			})
			return rate, errors.Join(err, raw.close())
		}
		err := b.compare(c.name, c.goal, peer, func(int) (float64, error) {
			eng, ses, err := b.engine(b.path("append-", c.writers, "-", b.fresh()))
			if err != nil {
				return 0, err
			}
			rate, err := timed(c.count, func() error {
				return spread(c.writers, c.count, func(i int) error {
					_, err := ses.Signal(b.ctx, signals[i])
					return err
				})
			})
			return rate, errors.Join(err, eng.Close())
		})
		if err != nil {
			return err
		}
		err = b.compare(c.name+", log alone", c.goal, peer, func(int) (float64, error) {
			log, ses, err := b.log(b.path("log-append-", c.writers, "-", b.fresh()))
			if err != nil {
				return 0, err
			}
			rate, err := timed(c.count, func() error {
				return spread(c.writers, c.count, func(i int) error {
					_, err := ses.Append(b.ctx, eventlog.Batch{Drafts: drafts(signals[i : i+1])})
					return err
				})
			})
			return rate, errors.Join(err, log.Close())
		})
		if err != nil {
			return err
		}
	}
	return nil
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

// imports measures batches, and what they take on disk.
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
	var rawBytes, engineBytes int64
	for _, c := range []struct {
		size, count int
		goal        float64
	}{
		{1, b.scale.appends, 0},
		{100, min(n, 100*b.scale.appends), 0},
		{1000, n, 0.5},
	} {
		err := b.compare(fmt.Sprintf("import in batches of %d", c.size), c.goal,
			func(round int) (float64, error) {
				dir := b.path("raw-import-", c.size, "-", round)
				raw, err := openRaw(dir)
				if err != nil {
					return 0, err
				}
				rate, err := timed(c.count, func() error {
					for i := 0; i < c.count; i += c.size {
						if err := raw.put(uint64(i), payloads[i:min(i+c.size, c.count)]); err != nil {
							return err
						}
					}
					return nil
				})
				if err := errors.Join(err, raw.close()); err != nil {
					return 0, err
				}
				if c.size == 1000 {
					rawBytes, err = diskBytes(dir, ".log") // in favour of the peer, which keeps files to write again
				}
				return rate, err
			},
			func(round int) (float64, error) {
				dir := b.path("import-", c.size, "-", round)
				eng, ses, err := b.engine(dir)
				if err != nil {
					return 0, err
				}
				rate, err := timed(c.count, func() error {
					return record(b.ctx, ses, c.count, c.size, signals)
				})
				if err := errors.Join(err, eng.Close()); err != nil {
					return 0, err
				}
				if c.size == 1000 {
					engineBytes, err = diskBytes(dir)
				}
				return rate, err
			})
		if err != nil {
			return err
		}
	}
	err = b.compare("import in batches of 1000, log alone", 0.5,
		func(int) (float64, error) {
			raw, err := openRaw(b.path("raw-log-import-", b.fresh()))
			if err != nil {
				return 0, err
			}
			rate, err := timed(n, func() error {
				for i := 0; i < n; i += 1000 {
					if err := raw.put(uint64(i), payloads[i:min(i+1000, n)]); err != nil {
						return err
					}
				}
				return nil
			})
			return rate, errors.Join(err, raw.close())
		},
		func(int) (float64, error) {
			log, ses, err := b.log(b.path("log-import-", b.fresh()))
			if err != nil {
				return 0, err
			}
			rate, err := timed(n, func() error {
				for i := 0; i < n; i += 1000 {
					if _, err := ses.Append(b.ctx, eventlog.Batch{Drafts: drafts(signals[i:min(i+1000, n)])}); err != nil {
						return err
					}
				}
				return nil
			})
			return rate, errors.Join(err, log.Close())
		})
	if err != nil {
		return err
	}
	ratio, goal := float64(engineBytes)/float64(rawBytes), 1.25
	b.results = append(b.results, result{
		Name: "bytes on disk after Close, an entry", Value: float64(engineBytes) / float64(n), Unit: "bytes",
		Ratio: &ratio, Goal: &goal, peer: float64(rawBytes) / float64(n), lower: true,
	}.judge())
	return nil
}

// scans measures reading everything, with and without verification.
func (b *bench) scans() error {
	n := b.scale.scanned
	raw, err := openRaw(b.path("raw-import-1000-0"))
	if err != nil {
		return err
	}
	defer func() { _ = raw.db.Close() }()
	eng, err := sajou.Open(b.path("import-1000-0"), sajou.Config{ReadOnly: true})
	if err != nil {
		return err
	}
	defer func() { _ = eng.Close() }()
	ses, err := eng.Log().Session("bench")
	if err != nil {
		return err
	}
	rawScan := func(int) (float64, error) {
		return timed(n, func() error {
			_, err := raw.scan()
			return err
		})
	}
	verify := func(workers int) side {
		return func(int) (float64, error) {
			return timed(n, func() error {
				r, err := eng.Log().Verify(b.ctx, "bench", verify.Options{Workers: workers})
				if err == nil && r.Fault != nil {
					err = fmt.Errorf("verify: %v", r.Fault)
				}
				return err
			})
		}
	}
	err = b.compare("full scan with decode", 0.7, rawScan, func(int) (float64, error) {
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
		})
	})
	if err != nil {
		return err
	}
	if err := b.compare("verification, one core", 0, rawScan, verify(1)); err != nil {
		return err
	}
	return b.compare(fmt.Sprintf("verification, all %d cores", runtime.GOMAXPROCS(0)), 1.0, rawScan, verify(0))
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
	times := make([]float64, b.scale.states)
	for i := range times {
		seq := eventlog.Seq(rng.Uint64N(uint64(travel.Head().Seq)) + 1)
		start := time.Now()
		if _, err := travel.At(b.ctx, replay.Moment{Seq: seq}); err != nil {
			return err
		}
		times[i] = time.Since(start).Seconds() * 1000
	}
	slices.Sort(times)
	goal := 5.0
	b.results = append(b.results,
		result{Name: fmt.Sprintf("state at a random Seq of %d, p50", travel.Head().Seq), Value: times[len(times)/2], Unit: "ms"},
		result{
			Name: fmt.Sprintf("state at a random Seq of %d, p99", travel.Head().Seq), Value: times[len(times)*99/100], Unit: "ms",
			Goal: &goal, lower: true, onUnit: true,
		}.judge())
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
		ratio := peaks[1] / peaks[0]
		r := result{
			Name: fmt.Sprintf("peak memory, %s, %d entries", job, b.scale.long), Value: peaks[1], Unit: "MiB",
			Ratio: &ratio, peer: peaks[0], lower: true,
		}
		b.results = append(b.results, r)
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
