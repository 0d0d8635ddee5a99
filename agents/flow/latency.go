package flow

import "time"

// MaxLatency bounds the delay of every model.
const MaxLatency = time.Hour

// Latency is how long a delivery to an agent takes: a base, an amount for each unit
// of distance, and a pseudo-random part up to a spread. The zero Latency is none.
//
// The pseudo-random part is not state: it is derived from the seed, the agent and the
// agent's own number of the delivery alone. So every replay computes the same delay,
// and the delay reveals nothing about effects that the agent is not sent.
type Latency struct {
	Base    time.Duration
	PerUnit time.Duration
	Spread  time.Duration
	Seed    uint64
}

// Delay returns how long the delivery of a number takes over a distance. It is between
// 0 and [MaxLatency].
func (l Latency) Delay(agent string, number uint64, distance float64) time.Duration {
	// The conversion of the product forbids a fused multiply-add, which some
	// processors have and which would round differently.
	d := float64(l.Base) + float64(float64(l.PerUnit)*distance)
	delay := MaxLatency
	if d < float64(MaxLatency) {
		delay = time.Duration(d)
	}
	if l.Spread > 0 {
		delay += time.Duration(chance(l.Seed, agent, number) % uint64(l.Spread+1))
	}
	return min(max(delay, 0), MaxLatency)
}

// chance hashes its arguments: FNV-1a over the text, then the finalizer of
// SplitMix64 after each number. Logs depend on its results.
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
