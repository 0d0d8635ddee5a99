package director

import (
	"crypto/sha256"
	"fmt"
	"math"
	"slices"
)

// ExploreConfig bounds an [Exploration]. Its zero value is good. The number of
// plays needs no bound: those that come to the same state go on as one.
type ExploreConfig struct {
	// Delay is how many turns after it was first directed a beat can still
	// land; one that has not by then never does. 0 sets no such bound. -1 lets
	// a beat land only in the turn in which it is first directed.
	Delay int
	// MaxTurns bounds the turns of a play. 0 means 500.
	MaxTurns int
	// MaxStates bounds the states that are told apart. 0 means 50,000.
	MaxStates int
	// MaxMoves bounds the moves that are tried. 0 means 1,000,000.
	MaxMoves int
}

// maxTogether is up to how many things that may or may not come about in one
// response, or be there at the start, all combinations are tried of.
const maxTogether = 6

// Exploration plays an episode in all ways. Where a model or a user would have
// a say, each of the things that it could say is played: a beat that is looked
// for lands or does not, an objective is reached or is not, each option of each
// choice is made, at once or later or never, each flag of [Episode.Flags] is
// there at the start or is not, and each event that a [FlagRule] is about is heard
// before or after a turn, where its condition holds and where it does not.
// Everything else is the director itself.
//
// Plays have no end. But from the turn on that no rule of the episode speaks of,
// only what has happened makes a difference, and a state that was seen before
// brings nothing new; so there is an end to exploring. States are the same if
// they differ in nothing that the director's decisions depend on.
//
// The plays leave out: a response that is generated anew, verdicts that are
// given up (they are like NO), what is heard while verdicts are awaited, revisions
// of the episode, and numbers of turns that are left out.
type Exploration struct {
	episode *Episode
	config  ExploreConfig
	tracks  map[string]bool // flags that something depends on
	settled int             // from this turn on, no rule tells turns apart

	starts    []Move     // that were not played yet
	positions []position // in the order in which they were found
	now       []int32    // positions of the turn in hand that were not played on from
	later     []int32    // those of the next turn
	at        int32      // what is played on from
	state     *State     // its state
	left      []Move     // that it allows and were not played yet
	heard     []Move     // what can be heard; nil until it was listed
	known     map[[sha256.Size]byte]int32
	edges     []edge
	moves     int
	ended     uint64 // plays that came to what was known before
	bound     string
	seen      sightings
	err       error
}

// position is a state that a play came to.
type position struct {
	state  *State // nil once it was played on from
	parent int32  // -1 at the start
	move   Move   // that led here from there
	turn   int
	paths  uint64 // ways that lead here
}

// edge is a move between two positions, kept to tell how late a beat can land.
type edge struct {
	from, to int32
	opens    bool // a turn
	landed   []int32
}

// Explore begins to explore an episode. Nothing is played yet:
//
//	x := director.Explore(e, director.ExploreConfig{})
//	for x.Step() {
//	}
//	coverage := x.Coverage()
func Explore(e *Episode, c ExploreConfig) *Exploration {
	if c.MaxTurns <= 0 {
		c.MaxTurns = 500
	}
	if c.MaxStates <= 0 {
		c.MaxStates = 50_000
	}
	if c.MaxMoves <= 0 {
		c.MaxMoves = 1_000_000
	}
	x := &Exploration{
		episode: e, config: c, tracks: e.tracks(), settled: e.lastTurn() + 1,
		known: map[[sha256.Size]byte]int32{}, seen: newSightings(e),
	}
	var given []string
	for _, f := range slices.Compact(slices.Sorted(slices.Values(e.Flags))) {
		if x.tracks[f] {
			given = append(given, f)
		}
	}
	for set := range x.subsets(len(given)) {
		var flags []string
		for i := range set {
			flags = append(flags, given[set[i]])
		}
		x.starts = append(x.starts, StartOf(e, flags...))
	}
	return x
}

// Step plays one move. It reports false, and does nothing, when all is known or
// a bound was hit.
func (x *Exploration) Step() bool {
	for len(x.starts) == 0 && len(x.left) == 0 && len(x.now)+len(x.later) > 0 {
		// A turn is done before the next one begins: what is seen first is then
		// seen in the earliest turn.
		if len(x.now) == 0 {
			x.now, x.later = x.later, nil
		}
		x.at, x.now = x.now[0], x.now[1:]
		p := &x.positions[x.at]
		x.state, p.state = p.state, nil
		if x.left = x.from(x.state); len(x.left) == 0 {
			x.ended = sum(x.ended, p.paths)
		}
	}
	if x.err != nil || len(x.starts) == 0 && len(x.left) == 0 {
		return false
	}
	if x.moves++; x.moves > x.config.MaxMoves {
		x.moves, x.bound = x.config.MaxMoves, boundMoves
		return false
	}
	if len(x.starts) > 0 {
		m := x.starts[0]
		x.starts = x.starts[1:]
		x.try(-1, &State{}, m)
		return true
	}
	m := x.left[0]
	x.left = x.left[1:]
	x.try(x.at, x.state, m)
	return true
}

// The bounds that an exploration can hit.
const (
	boundTurns    = "turns"
	boundStates   = "states"
	boundMoves    = "moves"
	boundTogether = "together"
)

// try plays a move and notes what came of it.
func (x *Exploration) try(from int32, before *State, m Move) {
	s := *before
	records, err := s.Play(m)
	if err != nil {
		// It was a move that the state allows.
		x.err = fmt.Errorf("director: explore: %w", err)
		return
	}
	landed := x.seen.note(records, Sighting{from: from, move: m})
	turn, paths := s.core.turn, uint64(1)
	if from >= 0 {
		paths = x.positions[from].paths
	}
	key := x.key(&s)
	to, ok := x.known[key]
	switch {
	case ok && to == from:
		return // nothing came of it
	case ok && x.positions[to].state != nil && x.positions[to].turn == turn:
		x.positions[to].paths = sum(x.positions[to].paths, paths)
	case ok:
		x.ended = sum(x.ended, paths)
	case len(x.positions) >= x.config.MaxStates:
		x.bound = boundStates
		x.ended = sum(x.ended, paths)
		return
	default:
		to = int32(len(x.positions))
		x.known[key] = to
		x.positions = append(x.positions, position{&s, from, m, turn, paths})
		if from >= 0 && turn > x.positions[from].turn {
			x.later = append(x.later, to)
		} else {
			x.now = append(x.now, to)
		}
	}
	if from >= 0 {
		x.edges = append(x.edges, edge{from, to, m.Kind == MoveOpen || m.Kind == MoveDecline, landed})
	}
}

// sum adds and stops at the end of the numbers.
func sum(a, b uint64) uint64 {
	if a > math.MaxUint64-b {
		return math.MaxUint64
	}
	return a + b
}

// paths returns how many plays are covered so far, up to where they come to
// what was known before; math.MaxUint64 stands for more.
func (x *Exploration) paths() uint64 {
	n := x.ended
	for _, i := range slices.Concat(x.now, x.later) {
		n = sum(n, x.positions[i].paths)
	}
	return n
}

// Progress returns how many states were found, and how many of them were not
// played on from yet.
func (x *Exploration) Progress() (states, left int) {
	return len(x.positions), len(x.now) + len(x.later)
}

// from lists the moves that a state allows.
func (x *Exploration) from(s *State) []Move {
	turn := s.core.turn
	var moves []Move
	for i := range s.core.choices.len() {
		if s.core.choices.at(i).status != choiceOpen {
			continue
		}
		point := &x.episode.Choices[i]
		for j := range point.Options {
			moves = append(moves, Move{Kind: MoveChoose, Turn: turn, ChoicePoint: point.ID, Option: point.Options[j].ID})
		}
	}
	moves = append(moves, x.events(turn)...)
	if s.core.phase == phaseOpened {
		can := s.undecided()
		can = slices.DeleteFunc(can, func(subject Subject) bool { return x.tooLate(s, subject) })
		for set := range x.subsets(len(can)) {
			m := Move{Kind: MoveRespond, Turn: turn}
			for _, i := range set {
				m.Yes = append(m.Yes, can[i])
			}
			moves = append(moves, m)
		}
		return moves
	}
	if turn >= x.config.MaxTurns {
		x.bound = boundTurns
		return moves
	}
	switch {
	case s.core.pendingChoice() < 0:
		moves = append(moves, Move{Kind: MoveOpen, Turn: turn + 1})
	case x.episode.Policy.Free:
		moves = append(moves, Move{Kind: MoveDecline, Turn: turn + 1})
	}
	return moves
}

// events lists what can be heard: each event that rules are about, with each set
// of those that depend on a condition.
func (x *Exploration) events(turn int) []Move {
	if x.heard == nil {
		x.heard = []Move{}
		seen := map[listened]bool{}
		for i := range x.episode.FlagRules {
			r := &x.episode.FlagRules[i]
			key := listened{r.Kind, r.Name}
			if seen[key] {
				continue
			}
			seen[key] = true
			var always, sometimes []int
			for _, j := range x.episode.listens[key] {
				if x.episode.FlagRules[j].When == nil {
					always = append(always, j)
				} else {
					sometimes = append(sometimes, j)
				}
			}
			for set := range x.subsets(len(sometimes)) {
				rules := slices.Clone(always)
				for _, j := range set {
					rules = append(rules, sometimes[j])
				}
				if len(rules) > 0 {
					slices.Sort(rules)
					x.heard = append(x.heard, Move{Kind: MoveHear, Event: r.Kind.String() + ":" + r.Name, rules: rules})
				}
			}
		}
	}
	moves := slices.Clone(x.heard)
	for i := range moves {
		moves[i].Turn = turn
	}
	return moves
}

// tooLate reports whether a beat was directed for so long that it is one of
// those that never land.
func (x *Exploration) tooLate(s *State, subject Subject) bool {
	if subject.Kind != AboutBeat || x.config.Delay == 0 {
		return false
	}
	at := s.core.beats.at(x.episode.beats[subject.ID]).deliveredAt
	return at > 0 && s.core.turn-at > max(x.config.Delay, 0)
}

// subsets yields the sets of n things, as their indexes; if there are too many,
// those of none, of one, of two and of all.
func (x *Exploration) subsets(n int) func(yield func([]int) bool) {
	const most = 64 // of which pairs are made
	return func(yield func([]int) bool) {
		if n <= maxTogether {
			for bits := range 1 << n {
				var set []int
				for i := range n {
					if bits>>i&1 == 1 {
						set = append(set, i)
					}
				}
				if !yield(set) {
					return
				}
			}
			return
		}
		if x.bound == "" {
			x.bound = boundTogether
		}
		all := make([]int, n)
		for i := range all {
			all[i] = i
		}
		if !yield(nil) || !yield(all) {
			return
		}
		for i := range n {
			if !yield([]int{i}) {
				return
			}
			for j := i + 1; j < min(n, most); j++ {
				if !yield([]int{i, j}) {
					return
				}
			}
		}
	}
}

// reads returns the flags on which beats, objectives or rules depend.
func (e *Episode) reads() map[string]bool {
	read := map[string]bool{}
	for i := range e.Beats {
		read[e.Beats[i].RequiresFlag] = true
	}
	for i := range e.Objectives {
		read[e.Objectives[i].Success.Flag], read[e.Objectives[i].Failure.Flag] = true, true
	}
	for i := range e.Contexts {
		read[e.Contexts[i].Flag] = true
	}
	for i := range e.Signals {
		read[e.Signals[i].About["flag"]] = true
	}
	delete(read, "")
	return read
}

// tracks returns the flags by which plays differ: those that are read, and
// those that an option or a rule clears, which it does only if they are set.
func (e *Episode) tracks() map[string]bool {
	flags := e.reads()
	for i := range e.Choices {
		for j := range e.Choices[i].Options {
			flags[e.Choices[i].Options[j].ClearsFlag] = true
		}
	}
	for i := range e.FlagRules {
		flags[e.FlagRules[i].Clear] = true
	}
	delete(flags, "")
	return flags
}

// lastTurn returns the last turn that a rule of the episode speaks of, of those
// on which beats, choices and objectives depend.
func (e *Episode) lastTurn() int {
	last := e.Budget
	for i := range e.Beats {
		last = max(last, e.Beats[i].Target, e.Beats[i].Deadline)
	}
	for i := range e.Choices {
		last = max(last, e.Choices[i].Trigger.Turn)
	}
	for i := range e.Objectives {
		last = max(last, e.Objectives[i].Success.Turn, e.Objectives[i].Failure.Turn)
	}
	return last
}

// key returns what a state's future depends on, and nothing else: two states
// with the same key have the same moves, which lead to states with the same key
// and record the same, their turns and texts aside. It is what
// [State.AppendState] writes of a state in which the rest is zero.
func (x *Exploration) key(s *State) [sha256.Size]byte {
	from := &s.core
	c := core{turn: min(from.turn, x.settled), phase: from.phase, directive: -1, failed: from.failed}
	if from.phase == phaseOpened {
		c.directive = from.directive
	}
	beats := make([]beatState, from.beats.len())
	for i := range beats {
		b, to, beat := from.beats.at(i), &beats[i], &x.episode.Beats[i]
		to.status, to.released, to.missedDeadline = b.status, b.released, b.missedDeadline
		if b.status != statusPending {
			continue
		}
		if b.overdueFrom > 0 && beat.MaxOverdue > 0 && beat.OnMiss != Keep {
			to.overdueFrom = 1 + min(from.turn-b.overdueFrom, beat.MaxOverdue)
		}
		if b.deliveredAt > 0 && x.config.Delay != 0 {
			to.deliveredAt = 1 + min(from.turn-b.deliveredAt, max(x.config.Delay, 0)+1)
		}
	}
	choices := make([]choiceState, from.choices.len())
	for i := range choices {
		choices[i].status = from.choices.at(i).status
	}
	c.beats, c.choices = tableOf(beats), tableOf(choices)
	c.objectives = make([]objectiveState, len(from.objectives))
	for i := range from.objectives {
		c.objectives[i].status = from.objectives[i].status
	}
	for _, f := range from.flags {
		if x.tracks[f.name] {
			c.flags = append(c.flags, flag{name: f.name})
		}
	}
	for _, h := range from.held {
		c.held = append(c.held, held{beat: h.beat})
	}
	return sha256.Sum256(c.append(nil))
}
