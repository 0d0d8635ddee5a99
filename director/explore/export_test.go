package explore

import (
	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/signal"
)

// Play makes one move of an [Exploration.Path].
func Play(s *director.State, m Move) ([]signal.Record, error) { return play(s, m) }

// Start returns the move that begins a play of an episode.
func Start(e *episode.Episode) Move { return startOf(e) }

// Bounds returns the bounds of an exploration.
func (x *Exploration) Bounds() Config { return x.config }

// Subsets returns the subsets of n things that are tried, and what that leaves out.
func Subsets(n int) (sets [][]int, bound string, untried uint64) {
	x := &Exploration{}
	for set := range x.subsets(n) {
		sets = append(sets, set)
	}
	return sets, x.bound, x.untried.Combinations
}

// FirstSubsets returns the first subsets of n things.
func FirstSubsets(n, first int) (sets [][]int) {
	for set := range new(Exploration).subsets(n) {
		if sets = append(sets, set); len(sets) == first {
			break
		}
	}
	return sets
}

// Sum adds numbers of plays.
func Sum(a, b uint64) uint64 { return sum(a, b) }

// LastTurn returns the last turn on which an episode depends.
func LastTurn(e *episode.Episode) int { return lastTurn(e) }

// Tracks returns the flags on which plays of an episode can depend.
func Tracks(e *episode.Episode) map[string]bool { return tracks(e) }

// Line returns the response that accomplishes some things.
func Line(s *director.State, yes ...episode.Subject) string { return line(s, yes) }
