package explore

import (
	"fmt"
	"slices"

	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/internal/wording"
	"github.com/sajou-dev/sajou-go/signal"
)

// Coverage is the result of an [Exploration].
type Coverage struct {
	Episode string
	Digest  episode.ContentDigest
	// Complete reports whether every play was covered. If not, Bound is the reason:
	// "turns", "states", "moves", "together" (too many combinations), or "stopped"; the
	// parts in Unreached may then be reachable.
	Complete bool
	Bound    string
	States   int
	Moves    int
	Turns    int    // the highest turn that was played
	Paths    uint64 // plays, each up to the first state that was known before
	// Untried counts what a bound left out, or the end of exploring; it is zero if
	// Complete.
	Untried Untried

	Beats      []BeatCoverage
	Choices    []ChoiceCoverage
	Flags      []FlagCoverage // those that are set, cleared or read, by name
	Objectives []ObjectiveCoverage
	Failed     Occurrence // the episode, by a beat that must not be missed
	// Unreached holds the parts that no play reaches, in the order of the fields above.
	Unreached []Unreached
}

// Untried counts what an [Exploration] did not try.
type Untried struct {
	States       int    // states that were found and not continued
	Moves        int    // moves of continued states that were not made
	Dropped      int    // moves to states beyond Config.MaxStates
	Long         int    // states that only a turn beyond Config.MaxTurns continues
	Combinations uint64 // sets of things that one response could accomplish
}

// Occurrence is the earliest occurrence of an event in the plays. The zero Occurrence has
// not been seen.
type Occurrence struct {
	Turn int // the earliest turn of the event; 0 for none, or for the start
	seen bool
	from int32
	move Move
}

// Seen reports whether the event happens in any play.
func (s Occurrence) Seen() bool { return s.seen }

// BeatCoverage is the coverage of a beat.
type BeatCoverage struct {
	Beat     string
	Directed Occurrence
	Landed   Occurrence // also by being forced
	Forced   Occurrence
	Missed   Occurrence // given up
	Late     Occurrence // its deadline passed
	// Last is the latest turn in which it lands; 0 if it never lands, or if Open reports
	// that the character can postpone it without end.
	Last int
	Open bool
}

// ChoiceCoverage is the coverage of a choice point.
type ChoiceCoverage struct {
	ChoicePoint string
	Offered     Occurrence
	Declined    Occurrence
	Options     []OptionCoverage
}

// OptionCoverage is the coverage of an option.
type OptionCoverage struct {
	Option string
	Chosen Occurrence
}

// FlagCoverage is the coverage of a flag.
type FlagCoverage struct {
	Flag    string
	Set     Occurrence // also by an earlier episode
	Cleared Occurrence
	Sets    bool // an option, an objective or a rule sets it
	Read    bool // something depends on it
}

// ObjectiveCoverage is the coverage of an objective.
type ObjectiveCoverage struct {
	Objective string
	Completed Occurrence
	Failed    Occurrence
}

// Unreached is a part of an episode that no play reaches, or not in time.
type Unreached struct {
	Kind    string // "beat", "choice_point", "flag" or "objective"
	ID      string
	Message string
}

// String returns "kind id: message".
func (g Unreached) String() string { return g.Kind + " " + wording.Quoted(g.ID) + " " + g.Message }

// sightings collects the occurrences in plays.
type sightings struct {
	episode    *episode.Episode
	beats      []BeatCoverage
	choices    []ChoiceCoverage
	flags      map[string]*FlagCoverage
	objectives []ObjectiveCoverage
	failed     Occurrence
	turns      int
}

func newSightings(e *episode.Episode) sightings {
	s := sightings{episode: e, flags: map[string]*FlagCoverage{}}
	flag := func(name string) *FlagCoverage {
		f := s.flags[name]
		if f == nil {
			f = &FlagCoverage{Flag: name}
			if name != "" {
				s.flags[name] = f
			}
		}
		return f
	}
	for i := range e.Beats {
		s.beats = append(s.beats, BeatCoverage{Beat: e.Beats[i].ID})
	}
	for i := range e.Choices {
		point := &e.Choices[i]
		c := ChoiceCoverage{ChoicePoint: point.ID}
		for j := range point.Options {
			o := &point.Options[j]
			c.Options = append(c.Options, OptionCoverage{Option: o.ID})
			flag(o.SetsFlag).Sets = true
			flag(o.ClearsFlag)
		}
		s.choices = append(s.choices, c)
	}
	for i := range e.Objectives {
		o := &e.Objectives[i]
		s.objectives = append(s.objectives, ObjectiveCoverage{Objective: o.ID})
		flag(o.OnSuccess.SetFlag).Sets = true
		flag(o.OnFailure.SetFlag).Sets = true
	}
	for i := range e.FlagRules {
		flag(e.FlagRules[i].Set).Sets = true
		flag(e.FlagRules[i].Clear)
	}
	for name := range e.Reads() {
		flag(name).Read = true
	}
	for _, name := range e.Flags {
		flag(name)
	}
	return s
}

// see records an occurrence, unless an earlier one was recorded.
func (s *Occurrence) see(at Occurrence) {
	if !s.seen || at.Turn < s.Turn {
		*s = at
		s.seen = true
	}
}

// note records the occurrences in a move's records, and returns the beats that landed.
func (s *sightings) note(records []signal.Record, at Occurrence) []int32 {
	e := s.episode
	var landed []int32
	for _, r := range records {
		at.Turn = int(r.Value.IntOf("turn"))
		s.turns = max(s.turns, at.Turn)
		id, _ := r.Value.Member("beat").Text()
		beat, ok := e.BeatIndex(id)
		if !ok {
			beat = -1
		}
		id, _ = r.Value.Member("choice_point").Text()
		choice, ok := e.ChoiceIndex(id)
		if !ok {
			choice = -1
		}
		switch r.Word {
		case episode.EpisodeStarted:
			flags, _ := r.Value.Get("flags")
			for f := range flags.Elements() {
				name, _ := f.Text()
				s.flags[name].Set.see(at)
			}
		case episode.GuidanceIssued:
			if d, ok := r.Value.Get("directive"); ok {
				id, _ := d.Member("beat").Text()
				i, _ := e.BeatIndex(id)
				s.beats[i].Directed.see(at)
			}
		case episode.BeatLanded:
			s.beats[beat].Landed.see(at)
			landed = append(landed, int32(beat))
		case episode.BeatForced:
			s.beats[beat].Forced.see(at)
		case episode.BeatMissed:
			s.beats[beat].Missed.see(at)
		case episode.DeadlineMissed:
			s.beats[beat].Late.see(at)
		case episode.ChoiceOffered:
			s.choices[choice].Offered.see(at)
		case episode.ChoiceDeclined:
			s.choices[choice].Declined.see(at)
		case episode.ChoiceSelected:
			option, _ := r.Value.Member("choice").Text()
			s.choices[choice].Options[e.Choices[choice].OptionIndex(option)].Chosen.see(at)
		case episode.FlagSet, episode.FlagCleared:
			name, _ := r.Value.Member("flag").Text()
			if f := s.flags[name]; r.Word == episode.FlagSet {
				f.Set.see(at)
			} else {
				f.Cleared.see(at)
			}
		case episode.ObjectiveCompleted, episode.ObjectiveFailed:
			_, i, _ := e.SubjectOf(r.Value)
			if o := &s.objectives[i]; r.Word == episode.ObjectiveCompleted {
				o.Completed.see(at)
			} else {
				o.Failed.see(at)
			}
		case episode.EpisodeFailed:
			s.failed.see(at)
		}
	}
	return landed
}

// Path returns the moves of a play that leads to an occurrence, from the start on. It is
// nil for an event that was not seen.
func (x *Exploration) Path(s Occurrence) []Move {
	if !s.seen {
		return nil
	}
	moves := []Move{s.move}
	for i := s.from; i >= 0; i = x.positions[i].parent {
		moves = append(moves, x.positions[i].move)
	}
	slices.Reverse(moves)
	return moves
}

// Coverage returns the coverage so far. An error means that the director refused a move
// that a state allows, which is a bug of this package.
func (x *Exploration) Coverage() (Coverage, error) {
	e := x.episode
	c := Coverage{
		Episode: e.ID, Digest: e.Digest(), Bound: x.bound, States: len(x.positions), Moves: x.moves, Turns: x.seen.turns, Paths: x.paths(),
		Beats: slices.Clone(x.seen.beats), Choices: slices.Clone(x.seen.choices), Objectives: slices.Clone(x.seen.objectives), Failed: x.seen.failed,
	}
	if c.Bound == "" && len(x.starts)+len(x.left)+len(x.now)+len(x.later) > 0 {
		c.Bound = "stopped"
	}
	c.Complete = c.Bound == "" && x.err == nil
	c.Untried = x.untried
	c.Untried.States += len(x.now) + len(x.later)
	c.Untried.Moves += len(x.left) + len(x.starts)
	for i := range c.Choices {
		c.Choices[i].Options = slices.Clone(c.Choices[i].Options)
	}
	for _, f := range x.seen.flags {
		c.Flags = append(c.Flags, *f)
	}
	slices.SortFunc(c.Flags, func(a, b FlagCoverage) int {
		if a.Flag < b.Flag {
			return -1
		}
		return 1
	})
	x.latest(c.Beats)
	c.findUnreached(e)
	return c, x.err
}

// findUnreached fills c.Unreached.
func (c *Coverage) findUnreached(e *episode.Episode) {
	unreached := func(kind, id, format string, args ...any) {
		c.Unreached = append(c.Unreached, Unreached{kind, id, fmt.Sprintf(format, args...)})
	}
	for i, b := range c.Beats {
		switch {
		case !b.Landed.Seen() && b.Directed.Seen():
			unreached("beat", b.Beat, "is directed and never lands")
		case !b.Landed.Seen():
			unreached("beat", b.Beat, "is never directed and never lands")
		case b.Landed.Turn > e.Beats[i].Deadline:
			unreached("beat", b.Beat, "lands in turn %d at the earliest, after its deadline, turn %d", b.Landed.Turn, e.Beats[i].Deadline)
		}
	}
	for _, p := range c.Choices {
		if !p.Offered.Seen() {
			unreached("choice_point", p.ChoicePoint, "is never offered")
			continue
		}
		for _, o := range p.Options {
			if !o.Chosen.Seen() {
				unreached("choice_point", p.ChoicePoint, "has the option %s, which can never be chosen", wording.Quoted(o.Option))
			}
		}
	}
	for _, f := range c.Flags {
		switch {
		case f.Set.Seen():
		case f.Sets:
			unreached("flag", f.Flag, "is never set")
		case f.Read:
			unreached("flag", f.Flag, "is waited for, and nothing sets it")
		}
	}
	for i, o := range c.Objectives {
		if !o.Completed.Seen() {
			unreached("objective", o.Objective, "is never completed")
		}
		if kind := e.Objectives[i].Failure.Kind; !o.Failed.Seen() && (kind == episode.ByFlag || kind == episode.ByTurn) {
			unreached("objective", o.Objective, "never fails as its failure_condition says")
		}
	}
}

// latest computes the latest turn in which each beat lands: the longest way through the
// graph of the positions, counted in turns. A cycle of positions that contains a turn
// (a turn that changed nothing, or a flag that was set and cleared) can be repeated, so
// every beat that lands after it can be postponed without end.
func (x *Exploration) latest(beats []BeatCoverage) {
	const forever = episode.MaxTurn + 1
	out := make([][]int32, len(x.positions)) // places in edges
	for i := range x.edges {
		out[x.edges[i].from] = append(out[x.edges[i].from], int32(i))
	}
	group, members := x.rounds(out)
	turns := make([]int, len(members)) // the latest turn that reaches each group
	for i := range x.edges {
		if e := &x.edges[i]; e.opens && group[e.from] == group[e.to] {
			turns[group[e.from]] = forever
		}
	}
	// A group has a higher number than those that it leads to.
	for g := len(members) - 1; g >= 0; g-- {
		for _, at := range members[g] {
			for _, i := range out[at] {
				e := &x.edges[i]
				turn := turns[g]
				if e.opens {
					turn++
				}
				turns[group[e.to]] = min(max(turns[group[e.to]], turn), forever)
				for _, b := range e.landed {
					beats[b].Open = beats[b].Open || turn >= forever
					beats[b].Last = max(beats[b].Last, turn)
				}
			}
		}
	}
	for i := range beats {
		if beats[i].Open {
			beats[i].Last = 0
		}
	}
}

// rounds returns the strongly connected components of the positions, by Tarjan's
// algorithm without recursion: the group of each position, and the members of each
// group. A group leads only to groups of lower numbers.
func (x *Exploration) rounds(out [][]int32) (group []int, members [][]int32) {
	n := len(x.positions)
	group = make([]int, n)
	order, low, next := make([]int, n), make([]int, n), make([]int, n) // order counts from 1; 0 means not visited
	var stack, way []int32
	count := 0
	for root := range n {
		if order[root] > 0 {
			continue
		}
		way = append(way, int32(root))
		for len(way) > 0 {
			at := way[len(way)-1]
			if order[at] == 0 {
				count++
				order[at], low[at] = count, count
				stack = append(stack, at)
				group[at] = -1
			}
			if next[at] < len(out[at]) {
				to := x.edges[out[at][next[at]]].to
				next[at]++
				switch {
				case order[to] == 0:
					way = append(way, to)
				case group[to] < 0:
					low[at] = min(low[at], order[to])
				}
				continue
			}
			way = way[:len(way)-1]
			if len(way) > 0 {
				up := way[len(way)-1]
				low[up] = min(low[up], low[at])
			}
			if low[at] != order[at] {
				continue
			}
			i := len(stack) - 1
			for stack[i] != at {
				i--
			}
			for _, m := range stack[i:] {
				group[m] = len(members)
			}
			members = append(members, slices.Clone(stack[i:]))
			stack = stack[:i]
		}
	}
	return group, members
}
