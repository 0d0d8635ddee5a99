package agents

import (
	"math"
	"time"

	"github.com/sajou-dev/sajou-go/signal"
)

// MaxLatency bounds what a latency model may say.
const MaxLatency = time.Hour

// Latency is how long news takes to an agent: a base, something for each unit
// of distance, and chance up to a spread. The zero Latency is none.
//
// Chance is no state: it is drawn from the seed, the agent and the number of the
// effect alone, so that it is the same whenever and wherever it is asked.
type Latency struct {
	Base    time.Duration
	PerUnit time.Duration
	Spread  time.Duration
	Seed    uint64
}

// Delay returns how long the news of an effect takes over a distance.
func (l Latency) Delay(agent string, seq uint64, distance float64) time.Duration {
	d := float64(l.Base) + float64(float64(l.PerUnit)*distance)
	delay := MaxLatency
	if d < float64(MaxLatency) {
		delay = time.Duration(d)
	}
	if l.Spread > 0 {
		delay += time.Duration(chance(l.Seed, agent, seq) % uint64(l.Spread+1))
	}
	return min(max(delay, 0), MaxLatency)
}

// chance mixes its arguments: FNV-1a over the text, then the finalizer of
// SplitMix64 after each number.
func chance(seed uint64, text string, n uint64) uint64 {
	h := uint64(0xcbf29ce484222325)
	for i := range len(text) {
		h = (h ^ uint64(text[i])) * 0x100000001b3
	}
	return mix(mix(h^seed) + n)
}

func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// latency reads a model: an object of model ("none", "fixed", "distance",
// "jitter"), ms, base_ms, per_unit_ms, spread_ms, seed; or a number of
// milliseconds. jitter may be added to any by spread_ms.
func (c *compiler) latency(v signal.Value, path string) Latency {
	var l Latency
	if v.Kind().IsNumber() {
		v = object{{"ms", v}}.value()
	}
	if v.Kind() != signal.KindObject {
		c.fail(path, "%v, want an object", v.Kind())
		return l
	}
	c.only(v, path, "model", "ms", "base_ms", "per_unit_ms", "spread_ms", "seed")
	model := c.word(v, path, "model", "fixed", "none", "distance", "jitter")
	if model == "none" {
		return l
	}
	l.Base = c.millis(v, path, "base_ms", 0)
	switch model {
	case "distance":
		if _, ok := v.Get("base_ms"); !ok {
			l.Base = 10 * time.Millisecond
		}
		l.PerUnit = c.millis(v, path, "per_unit_ms", time.Millisecond)
	default:
		l.Base = c.millis(v, path, "ms", l.Base)
	}
	l.Spread = c.millis(v, path, "spread_ms", 0)
	if m, ok := v.Get("seed"); ok {
		seed, ok := m.Int64()
		if !ok {
			c.fail(path+"/seed", "want an integer")
		}
		l.Seed = uint64(seed)
	}
	return l
}

// millis reads milliseconds, fractions too, up to MaxLatency.
func (c *compiler) millis(v signal.Value, path, name string, absent time.Duration) time.Duration {
	ms := c.number(v, path, name, -1, 0, float64(MaxLatency/time.Millisecond))
	if ms < 0 {
		return absent
	}
	return time.Duration(math.Round(float64(ms * 1e6)))
}

// only refuses members that nobody reads.
func (c *compiler) only(v signal.Value, path string, names ...string) {
	for m := range v.Members() {
		found := false
		for _, name := range names {
			found = found || name == m
		}
		if !found {
			c.fail(path+"/"+escape(m), "unknown member")
		}
	}
}
