package limit

import (
	"sync"
	"time"
)

// rates are token buckets, one for each name. A bucket is one instant: when it will be
// full. A name of which nothing was heard for a while has a full bucket, which is that of
// an unknown name, so that forgetting such a name changes nothing.
//
// The names are in two maps. When the newer one has half of the names that may be known,
// it becomes the older one, and the one before is forgotten.
type rates struct {
	each  time.Duration // the time in which one unit comes; 0: there is no bound
	burst int
	half  int // of the names that may be known

	mu           sync.Mutex
	newer, older map[string]time.Time // when the bucket is full; guarded by mu
}

func newRates(rate, burst, names int) *rates {
	if rate < 0 {
		return &rates{}
	}
	return &rates{each: max(time.Second/time.Duration(max(rate, 1)), 1), burst: max(burst, 1), half: max(names/2, 1), newer: map[string]time.Time{}}
}

// take takes n units from the bucket of a name, and returns 0; or it takes none and
// returns how long to wait. More units than the burst are taken from a full bucket, which
// then has a debt.
func (r *rates) take(name string, n int, now time.Time) (wait time.Duration) {
	if r.each == 0 {
		return 0
	}
	n = min(n, maxUnits)
	r.mu.Lock()
	defer r.mu.Unlock()
	full, ok := r.newer[name]
	if !ok {
		full = r.older[name]
	}
	capacity := time.Duration(r.burst) * r.each
	// No bucket lacks more than its capacity and a debt. After a step back of the clock
	// one seems to; the client does not have to wait for the length of the step.
	if full.Before(now) || full.Sub(now) > capacity+maxDebt {
		full = now
	}
	needed := time.Duration(min(n, r.burst)) * r.each
	if wait := full.Sub(now) + needed - capacity; wait > 0 {
		return wait
	}
	full = full.Add(time.Duration(n) * r.each)
	if latest := now.Add(capacity + maxDebt); full.After(latest) {
		full = latest
	}
	r.put(name, full)
	return 0
}

// maxUnits bounds the units that are taken at once, so that their time can be counted.
const maxUnits = 1 << 30

// maxDebt bounds how long a client waits after it took more than a burst at once.
const maxDebt = time.Minute

func (r *rates) put(name string, full time.Time) {
	if len(r.newer) >= r.half {
		if _, ok := r.newer[name]; !ok {
			r.older, r.newer = r.newer, make(map[string]time.Time, r.half)
		}
	}
	r.newer[name] = full
}
