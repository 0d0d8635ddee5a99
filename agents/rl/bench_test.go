package rl_test

import (
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/sajou-dev/sajou-go/session"
)

// BenchmarkRollout is a step of a random policy; every 25 of them are an episode,
// whose reset is part of it.
func BenchmarkRollout(b *testing.B) {
	env := newEnv(b, open(b, vfs.NewMem(), session.TimeManual), forager("ant", "bee", "cat"))
	rng := rand.New(rand.NewPCG(1, 2))
	b.ReportAllocs()
	episode := uint64(0)
	masks := map[string][]bool{}
	for b.Loop() {
		if len(env.Agents()) == 0 {
			episode++
			_, infos, err := env.Reset(b.Context(), episode)
			if err != nil {
				b.Fatal(err)
			}
			for id, info := range infos {
				masks[id] = info.ActionMask
			}
		}
		actions := map[string]move{}
		for _, id := range env.Agents() {
			actions[id] = choose(rng, masks[id])
		}
		r, err := env.Step(b.Context(), actions)
		if err != nil {
			b.Fatal(err)
		}
		for id, info := range r.Infos {
			masks[id] = info.ActionMask
		}
	}
}
