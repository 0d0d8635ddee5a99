package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/pprof"
	"slices"
	"time"
)

// measurement is the outcome of one round of one side.
type measurement struct {
	rate  float64 // units a second, by the wall clock
	work  float64 // processor time of a unit in µs, user and system, of this process
	steal float64 // share of the processors' time that the host took away, in percent; negative if unknown
	// times are those of the single units and observed those until observers had their
	// effects, in ms and sorted; nil if the round does not take them.
	times, observed []float64
}

// timed measures n units of f. The rate is that until f returns. The processor time is
// that until settle has returned too: work that f leaves to the background counts.
// settle may be nil.
func timed(n int, f, settle func() error) (measurement, error) {
	runtime.GC() // the garbage of what ran before is not charged to f
	machine, worked, start := machineTime(), processorTime(), time.Now()
	err := f()
	m := measurement{rate: float64(n) / time.Since(start).Seconds()}
	if err == nil && settle != nil {
		err = settle()
	}
	m.work = float64((processorTime() - worked).Nanoseconds()) / 1000 / float64(n)
	m.steal = machineTime().stealSince(machine)
	return m, err
}

// series are the rounds of one side.
type series []measurement

// rate returns the rate of the best round.
func (s series) rate() float64 {
	best := s[0].rate
	for _, m := range s {
		best = max(best, m.rate)
	}
	return best
}

// work returns the processor time of a unit in the best round.
func (s series) work() float64 {
	best := s[0].work
	for _, m := range s {
		best = min(best, m.work)
	}
	return best
}

// steal returns the share that the host took in the worst round.
func (s series) steal() float64 {
	worst := s[0].steal
	for _, m := range s {
		worst = max(worst, m.steal)
	}
	return worst
}

// spread returns the distance between the best and the worst value of the rounds, in
// percent of the larger one.
func (s series) spread(value func(measurement) float64) float64 {
	low, high := value(s[0]), value(s[0])
	for _, m := range s {
		low, high = min(low, value(m)), max(high, value(m))
	}
	if high == 0 {
		return 0
	}
	return 100 * (high - low) / high
}

// side is one of those that are compared. run measures one round.
type side struct {
	name string
	run  func() (measurement, error)
}

// A round during which the host took more than noisySteal percent of the processors'
// time is repeated, at most maxRepeats times.
const (
	noisySteal = 5
	maxRepeats = 3
)

// quiet runs a round, again while the host disturbs it, and returns the attempt that
// the host disturbed least.
func quiet(run func() (measurement, error)) (measurement, error) {
	best, err := run()
	for range maxRepeats {
		if err != nil || best.steal <= noisySteal {
			break
		}
		var again measurement
		if again, err = run(); err == nil && again.steal < best.steal {
			best = again
		}
	}
	return best, err
}

// interleave measures the sides by turns, and returns a series for each of them.
func (b *bench) interleave(name string, sides ...side) ([]series, error) {
	fmt.Fprintln(b.notes, name)
	all := make([]series, len(sides))
	for round := range b.scale.rounds {
		for i := range sides {
			i = (i + round) % len(sides) // no side is always the one that finds a warm disk
			if err := b.ctx.Err(); err != nil {
				return nil, err
			}
			var m measurement
			var err error
			// The labels tell the sides apart in a profile.
			pprof.Do(b.ctx, pprof.Labels("row", name, "side", sides[i].name), func(context.Context) { m, err = quiet(sides[i].run) })
			if err != nil {
				return nil, fmt.Errorf("%s: %s: %w", name, sides[i].name, err)
			}
			all[i] = append(all[i], m)
		}
	}
	return all, nil
}

// alone measures something that has no peer.
func (b *bench) alone(name string, run func() (measurement, error)) (series, error) {
	all, err := b.interleave(name, side{name, run})
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// each measures n units one after the other and takes the time of each.
func (b *bench) each(name string, n int, unit func(i int) error) (series, error) {
	fmt.Fprintln(b.notes, name)
	m, err := quiet(func() (measurement, error) {
		times := make([]float64, n)
		m, err := timed(n, func() error {
			for i := range times {
				start := time.Now()
				if err := unit(i); err != nil {
					return err
				}
				times[i] = milliseconds(time.Since(start))
			}
			return b.ctx.Err()
		}, nil)
		slices.Sort(times)
		m.times = times
		return m, err
	})
	return series{m}, err
}

// percentile returns a percentile of the times of the best round.
func (s series) percentile(p float64) float64 {
	best := percentile(s[0].times, p)
	for _, m := range s {
		best = min(best, percentile(m.times, p))
	}
	return best
}

// observations returns the series with the times of the observations.
func (s series) observations() series {
	s = slices.Clone(s)
	for i := range s {
		s[i].times = s[i].observed
	}
	return s
}

// percentile returns the time below which the share p of the sorted times is.
func percentile(times []float64, p float64) float64 {
	return times[min(int(float64(len(times))*p), len(times)-1)]
}

func milliseconds(d time.Duration) float64 { return d.Seconds() * 1000 }

// beside adds the row of a rate with that of a peer. A goal of 0 is none.
func (b *bench) beside(name, unit string, s series, peer string, of series, goal float64) {
	r := result{Name: name, Value: s.rate(), Unit: unit + "/s", Peer: peer, peer: of.rate()}
	r.spread = s.spread(func(m measurement) float64 { return m.rate })
	r.Ratio = ptr(s.rate() / of.rate())
	if goal > 0 {
		r.Goal = &goal
	}
	b.add(r, s, of)
}

// workBeside adds the row of processor time an entry with that of a peer.
func (b *bench) workBeside(name string, s series, peer string, of series, goal float64) {
	r := result{Name: name, Value: s.work(), Unit: "µs", Peer: peer, peer: of.work(), lower: true}
	r.spread = s.spread(func(m measurement) float64 { return m.work })
	r.Ratio = ptr(s.work() / of.work())
	if goal > 0 {
		r.Goal = &goal
	}
	b.add(r, s, of)
}

// percentileBeside adds the row of a percentile of times with that of the log alone.
func (b *bench) percentileBeside(name string, p float64, s, log series, goal float64) {
	r := result{
		Name: fmt.Sprintf("%s, p%g", name, 100*p), Value: s.percentile(p), Unit: "ms", Peer: "log alone", peer: log.percentile(p),
		Ratio: ptr(s.percentile(p) / log.percentile(p)), lower: true,
		spread: s.spread(func(m measurement) float64 { return percentile(m.times, p) }),
	}
	if goal > 0 {
		r.Goal = &goal
	}
	b.add(r, s, log)
}

// rateAlone adds the row of a rate that has no peer. The goal is a rate; 0 is none.
func (b *bench) rateAlone(name, unit string, s series, goal float64) {
	r := result{Name: name, Value: s.rate(), Unit: unit + "/s", onUnit: true}
	r.spread = s.spread(func(m measurement) float64 { return m.rate })
	if goal > 0 {
		r.Goal = &goal
	}
	b.add(r, s)
}

// add adds a row that was measured in these series, with the verdict on its goal.
func (b *bench) add(r result, of ...series) {
	if len(of) > 0 {
		steal := of[0].steal()
		for _, s := range of {
			steal = max(steal, s.steal())
		}
		if steal >= 0 {
			r.Steal, r.Noisy = &steal, steal > noisySteal
		}
	}
	if r.Goal != nil {
		have := r.Value
		if !r.onUnit {
			have = *r.Ratio
		}
		holds := have >= *r.Goal
		if r.lower {
			holds = have <= *r.Goal
		}
		r.Holds = &holds
	}
	b.results = append(b.results, r)
}

func ptr(f float64) *float64 { return &f }
