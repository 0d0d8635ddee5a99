// Package memlimit ends a command that exceeds its memory limit, before the kernel ends
// the process or another one.
//
// A limit is a size, or a share of the available memory: that of the machine, or of the
// control group (cgroup, version 1 or 2) of the process if that is less. [Watch] sets
// the memory limit of the garbage collector to seven eighths of the limit, and checks
// the memory in use every few milliseconds. Above the limit it cancels the context of
// the command with an [*ExceededError]. If the command continues, in code that does not check
// its context, Watch ends the process when it uses a quarter more than the limit, or
// after [Grace].
//
// # Limits
//
// Only memory that the Go runtime manages counts: not the pages of a mapped file, which
// the kernel can reclaim. Between two checks a process can allocate some ten megabytes.
// The code of each step bounds the memory that the step allocates at once.
package memlimit

import (
	"context"
	"fmt"
	"math"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// Default is the limit if none is given.
	Default = "25%"

	// Least is the smallest limit: the program itself needs some 30 MiB.
	Least = 64 << 20

	// Unknown is the assumed memory of a machine that does not report it.
	Unknown = 4 << 30

	// Every is the time between two checks.
	Every = 10 * time.Millisecond

	// Grace is the time that a cancelled command has to end, in checks.
	Grace = 200
)

// ExceededError reports that a command needed more memory than its limit.
type ExceededError struct {
	Limit uint64 // in bytes
	Used  uint64 // when it was cancelled
}

func (e *ExceededError) Error() string {
	return fmt.Sprintf("it uses %s of memory, and the limit is %s", Text(e.Used), Text(e.Limit))
}

// units are the bytes of the units of a size, in lower case.
var units = map[string]float64{
	"": 1, "b": 1, "kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12,
	"k": 1 << 10, "kib": 1 << 10, "m": 1 << 20, "mib": 1 << 20, "g": 1 << 30, "gib": 1 << 30, "t": 1 << 40, "tib": 1 << 40,
}

// ParseBytes reads a number of bytes, more than 0, with or without a unit (512MiB, 2GB).
func ParseBytes(text string) (uint64, error) {
	number := strings.TrimRight(text, "BKMGTikmgtb ")
	times, known := units[strings.ToLower(strings.TrimSpace(text[len(number):]))]
	n, err := strconv.ParseFloat(number, 64)
	if n *= times; err != nil || !known || !(n >= 1) || n > math.MaxInt64/2 || strings.ContainsAny(number, "xXpPeEnN_+") {
		return 0, fmt.Errorf("%q is not a size; write a number of bytes, 500MB or 2GiB", text)
	}
	return uint64(n), nil
}

// Parse reads a limit: a number of bytes with or without a unit (512MiB, 2GB),
// a share of total (25%), or "off" or "0" for no limit, which is 0.
func Parse(text string, total uint64) (uint64, error) {
	text = strings.TrimSpace(text)
	if text == "off" || text == "0" {
		return 0, nil
	}
	number := strings.TrimRight(text, "%BKMGTikmgtb ")
	unit := strings.TrimSpace(text[len(number):])
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || !(n > 0) || strings.ContainsAny(number, "xXpPeEnN_+") {
		return 0, fmt.Errorf("%q is not a size; write 512MiB, 2GiB, 25%% or off", text)
	}
	if unit == "%" {
		if n > 100 {
			return 0, fmt.Errorf("%q is more than the total memory; write 512MiB, 2GiB, 25%% or off", text)
		}
		return max(uint64(n/100*float64(total)), Least), nil
	}
	times, ok := units[strings.ToLower(unit)]
	if !ok {
		return 0, fmt.Errorf("%q has an unknown unit; write 512MiB, 2GiB, 25%% or off", text)
	}
	n *= times
	switch {
	case n < Least:
		return 0, fmt.Errorf("%q is too little; the program itself needs %s", text, Text(Least))
	case n > math.MaxInt64/2:
		return 0, fmt.Errorf("%q is more than any machine has; write off for no limit", text)
	}
	return uint64(n), nil
}

// Text formats a size for display.
func Text(n uint64) string {
	switch {
	case n >= 10<<30:
		return fmt.Sprintf("%d GiB", n>>30)
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d bytes", n)
}

// Watcher checks the memory of the process. Its fields are for tests; the zero Watcher
// checks the real memory at the times of a clock.
type Watcher struct {
	// Used returns the memory in use. Nil means that of the Go runtime.
	Used func() uint64

	// Tick triggers the checks. Nil means a ticker with the period [Every].
	Tick <-chan time.Time

	// End ends the process if the command does not end. If it is nil, the process is
	// not ended.
	End func(*ExceededError)
}

// Watch returns a context that is cancelled with an [*ExceededError] as its cause when the
// process uses more than limit bytes; 0 means no limit. stop ends the watch, waits for
// its goroutine, and returns the error if the limit was exceeded. The caller must call
// stop exactly once.
func (w Watcher) Watch(ctx context.Context, limit uint64) (_ context.Context, stop func() *ExceededError) {
	if limit == 0 {
		return ctx, func() *ExceededError { return nil }
	}
	if w.Used == nil {
		w.Used = InUse
	}
	ctx, cancel := context.WithCancelCause(ctx)
	restore := soften(limit)
	var (
		over *ExceededError // owned by the goroutine until it has ended
		done = make(chan struct{})
		wg   sync.WaitGroup
	)
	wg.Go(func() {
		tick := w.Tick
		if tick == nil {
			clock := time.NewTicker(Every)
			defer clock.Stop()
			tick = clock.C
		}
		over = w.look(limit, tick, done, cancel)
	})
	return ctx, func() *ExceededError {
		close(done)
		wg.Wait()
		cancel(nil)
		restore()
		return over
	}
}

// look checks the memory at each tick until done is closed.
func (w Watcher) look(limit uint64, tick <-chan time.Time, done <-chan struct{}, cancel context.CancelCauseFunc) (over *ExceededError) {
	for left := Grace; ; {
		select {
		case <-done:
			return over
		case <-tick:
		}
		used := w.Used()
		switch {
		case over == nil && used > limit:
			over = &ExceededError{limit, used}
			cancel(over)
		case over != nil:
			left--
		}
		if over != nil && (left <= 0 || used > limit+limit/4) && w.End != nil {
			w.End(&ExceededError{limit, used})
			return over
		}
	}
}

// soften sets the memory limit of the garbage collector to seven eighths of limit,
// unless GOMEMLIMIT is already lower.
func soften(limit uint64) (restore func()) {
	before := debug.SetMemoryLimit(-1)
	if mine := int64(limit - limit/8); mine < before {
		debug.SetMemoryLimit(mine)
	}
	return func() { debug.SetMemoryLimit(before) }
}

// InUse returns the memory that the Go runtime has obtained from the system and not
// returned.
func InUse() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindUint64 || sample[1].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return sample[0].Value.Uint64() - sample[1].Value.Uint64()
}
