package director

import (
	"fmt"
	"slices"

	"github.com/sajou-dev/sajou-go/internal/wording"
)

// Coverage is what an [Exploration] found.
type Coverage struct {
	Episode string
	Digest  Digest
	// Complete reports whether every play was covered. If not, Bound says why:
	// "turns", "states", "moves", "together" (too much could happen at once), or
	// "stopped"; what was not reached may then be reachable.
	Complete bool
	Bound    string
	States   int
	Moves    int
	Turns    int    // the highest that was played
	Paths    uint64 // plays, up to where they come to what was known before

	Beats      []BeatCoverage
	Choices    []ChoiceCoverage
	Flags      []FlagCoverage // those that are set, cleared or read, by name
	Objectives []ObjectiveCoverage
	Failed     Sighting // the episode, by a beat that must not be missed
	// Gaps lists what no play reaches, in the order of the above.
	Gaps []Gap
}

// Sighting is a thing that happens in a play. Its zero value has not been seen.
type Sighting struct {
	Turn int // the earliest in which it happens; 0 if in none, or at the start
	seen bool
	from int32
	move Move
}

// Seen reports whether it happens at all.
func (s Sighting) Seen() bool { return s.seen }

// BeatCoverage is what becomes of a beat.
type BeatCoverage struct {
	Beat     string
	Directed Sighting
	Landed   Sighting // also by being forced
	Forced   Sighting
	Missed   Sighting // given up
	Late     Sighting // its deadline passed
	// Last is the latest turn in which it lands; 0 if it never does, or if the
	// character can put it off for ever, which Open reports.
	Last int
	Open bool
}

// ChoiceCoverage is what becomes of a choice point.
type ChoiceCoverage struct {
	ChoicePoint string
	Offered     Sighting
	Declined    Sighting
	Options     []OptionCoverage
}

// OptionCoverage is what becomes of an option.
type OptionCoverage struct {
	Option string
	Chosen Sighting
}

// FlagCoverage is what becomes of a flag.
type FlagCoverage struct {
	Flag    string
	Set     Sighting // also by an episode before
	Cleared Sighting
	Sets    bool // an option, an objective or a rule sets it
	Read    bool // something depends on it
}

// ObjectiveCoverage is what becomes of an objective.
type ObjectiveCoverage struct {
	Objective string
	Completed Sighting
	Failed    Sighting
}

// Gap is something that an author wrote and no play reaches.
type Gap struct {
	Kind    string // "beat", "choice_point", "flag" or "objective"
	ID      string
	Message string
}

// String returns "kind id: message".
func (g Gap) String() string { return g.Kind + " " + wording.Quoted(g.ID) + " " + g.Message }

// sightings collects what happens in plays.
type sightings struct {
	episode    *Episode
	beats      []BeatCoverage
	choices    []ChoiceCoverage
	flags      map[string]*FlagCoverage
	objectives []ObjectiveCoverage
	failed     Sighting
	turns      int
}

func newSightings(e *Episode) sightings {
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
	for name := range e.reads() {
		flag(name).Read = true
	}
	for _, name := range e.Flags {
		flag(name)
	}
	return s
}

// see notes that something happens, if it has not been seen as early.
func (s *Sighting) see(at Sighting) {
	if !s.seen || at.Turn < s.Turn {
		*s = at
		s.seen = true
	}
}

// note takes in what a move recorded, and returns the beats that landed.
func (s *sightings) note(records []Record, at Sighting) []int32 {
	e := s.episode
	var landed []int32
	for _, r := range records {
		at.Turn, _ = intOf(r.Value, "turn")
		s.turns = max(s.turns, at.Turn)
		id, _ := textOf(r.Value, "beat")
		beat, ok := e.beats[id]
		if !ok {
			beat = -1
		}
		id, _ = textOf(r.Value, "choice_point")
		choice, ok := e.choice[id]
		if !ok {
			choice = -1
		}
		switch r.Word {
		case EpisodeStarted:
			flags, _ := r.Value.Get("flags")
			for f := range flags.Elements() {
				name, _ := f.Text()
				s.flags[name].Set.see(at)
			}
		case GuidanceIssued:
			if d, ok := r.Value.Get("directive"); ok {
				id, _ := textOf(d, "beat")
				s.beats[e.beats[id]].Directed.see(at)
			}
		case BeatLanded:
			s.beats[beat].Landed.see(at)
			landed = append(landed, int32(beat))
		case BeatForced:
			s.beats[beat].Forced.see(at)
		case BeatMissed:
			s.beats[beat].Missed.see(at)
		case DeadlineMissed:
			s.beats[beat].Late.see(at)
		case ChoiceOffered:
			s.choices[choice].Offered.see(at)
		case ChoiceDeclined:
			s.choices[choice].Declined.see(at)
		case ChoiceSelected:
			option, _ := textOf(r.Value, "choice")
			s.choices[choice].Options[e.Choices[choice].option(option)].Chosen.see(at)
		case FlagSet, FlagCleared:
			name, _ := textOf(r.Value, "flag")
			if f := s.flags[name]; r.Word == FlagSet {
				f.Set.see(at)
			} else {
				f.Cleared.see(at)
			}
		case ObjectiveCompleted, ObjectiveFailed:
			_, i, _ := e.subjectOf(r.Value)
			if o := &s.objectives[i]; r.Word == ObjectiveCompleted {
				o.Completed.see(at)
			} else {
				o.Failed.see(at)
			}
		case EpisodeFailed:
			s.failed.see(at)
		}
	}
	return landed
}

// Path returns the moves of a play in which a sighting is made, from the start
// on; [State.Play] plays them. It is nil for what was not seen.
func (x *Exploration) Path(s Sighting) []Move {
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

// Coverage returns what was found so far. The error is one of this package: a
// move that a state allows was refused.
func (x *Exploration) Coverage() (Coverage, error) {
	e := x.episode
	c := Coverage{
		Episode: e.ID, Digest: e.digest, Bound: x.bound, States: len(x.positions), Moves: x.moves, Turns: x.seen.turns, Paths: x.paths(),
		Beats: slices.Clone(x.seen.beats), Choices: slices.Clone(x.seen.choices), Objectives: slices.Clone(x.seen.objectives), Failed: x.seen.failed,
	}
	if c.Bound == "" && len(x.starts)+len(x.left)+len(x.now)+len(x.later) > 0 {
		c.Bound = "stopped"
	}
	c.Complete = c.Bound == "" && x.err == nil
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
	c.gaps(e)
	return c, x.err
}

// gaps lists what was not reached.
func (c *Coverage) gaps(e *Episode) {
	gap := func(kind, id, format string, args ...any) {
		c.Gaps = append(c.Gaps, Gap{kind, id, fmt.Sprintf(format, args...)})
	}
	for i, b := range c.Beats {
		switch {
		case !b.Landed.Seen() && b.Directed.Seen():
			gap("beat", b.Beat, "is directed and never lands")
		case !b.Landed.Seen():
			gap("beat", b.Beat, "is never directed and never lands")
		case b.Landed.Turn > e.Beats[i].Deadline:
			gap("beat", b.Beat, "lands in turn %d at the earliest, after its deadline, turn %d", b.Landed.Turn, e.Beats[i].Deadline)
		}
	}
	for _, p := range c.Choices {
		if !p.Offered.Seen() {
			gap("choice_point", p.ChoicePoint, "is never offered")
			continue
		}
		for _, o := range p.Options {
			if !o.Chosen.Seen() {
				gap("choice_point", p.ChoicePoint, "has the option %s, which can never be chosen", wording.Quoted(o.Option))
			}
		}
	}
	for _, f := range c.Flags {
		switch {
		case f.Set.Seen():
		case f.Sets:
			gap("flag", f.Flag, "is never set")
		case f.Read:
			gap("flag", f.Flag, "is waited for, and nothing sets it")
		}
	}
	for i, o := range c.Objectives {
		if !o.Completed.Seen() {
			gap("objective", o.Objective, "is never completed")
		}
		if kind := e.Objectives[i].Failure.Kind; !o.Failed.Seen() && (kind == ByFlag || kind == ByTurn) {
			gap("objective", o.Objective, "never fails as its failure_condition says")
		}
	}
}

// latest finds in which turn each beat lands at the latest. Positions that lead
// to each other, since nothing came of a turn, or only a flag that was cleared
// again, can be gone round for ever if a turn is among them; and so all that
// follows can be put off for ever.
func (x *Exploration) latest(beats []BeatCoverage) {
	const forever = maxTurn + 1
	out := make([][]int32, len(x.positions)) // places in edges
	for i := range x.edges {
		out[x.edges[i].from] = append(out[x.edges[i].from], int32(i))
	}
	group, members := x.rounds(out)
	turns := make([]int, len(members)) // the latest in which each group is come to
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

// rounds parts the positions into groups that lead to each other: Tarjan's
// strongly connected components, without recursion. It returns the group of each
// and the members of each; what a group leads to has lower numbers.
func (x *Exploration) rounds(out [][]int32) (group []int, members [][]int32) {
	n := len(x.positions)
	group = make([]int, n)
	order, low, next := make([]int, n), make([]int, n), make([]int, n) // order is from 1; 0 was not come to
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
