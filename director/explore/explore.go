// Package explore shows authors how their episodes play: by playing an episode in all
// ways, and by measuring recorded sessions.
//
// An [Exploration] makes every decision that a user, a character or a judge could
// make, and reports a [Coverage]: the events that happen, the earliest and the latest
// turn of each, and the parts of the episode that no play reaches. A [Meter] counts the
// events of recorded sessions. Both use the director's decisions and contain none of its
// rules.
//
// The package is pure: no clock, no goroutine, no input or output.
package explore

import (
	"crypto/sha256"
	"fmt"
	"math"
	"slices"

	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/director/episode"
)

// Config bounds an [Exploration]. Its zero value is good. The number of plays needs no
// bound: plays that reach the same state continue as one.
type Config struct {
	// Delay is the number of turns after its first direction in which a beat can still
	// land. 0 sets no bound. -1 lets a beat land only in the turn in which it is first
	// directed.
	Delay int
	// MaxTurns bounds the turns of a play. 0 means 500.
	MaxTurns int
	// MaxStates bounds the number of different states. 0 means 50,000.
	MaxStates int
	// MaxMoves bounds the moves that are tried. 0 means 1,000,000.
	MaxMoves int
}

// maxTogether bounds the things of which all combinations are tried: the beats and
// objectives that one response may accomplish, and the flags of the start.
const maxTogether = 6

// Exploration plays an episode in all ways. Where a model or a user decides, it plays
// each possible decision: a beat that is searched for lands or does not, an objective
// is reached or not, each option of each choice is selected, at once, later or never,
// each flag of [episode.Episode.Flags] is set at the start or not, and each event of an
// [episode.FlagRule] happens before or after a turn, with its condition fulfilled or not.
// The director decides everything else.
//
// Plays have no end, but exploring has one: after the last turn that a rule of the
// episode names, the future depends only on the events so far, and a state that was
// reached before adds nothing. Two states are the same if the director's decisions
// cannot distinguish them.
//
// The plays leave out other attempts of a response, verdicts that are given up (they
// count as NO), events while verdicts are awaited, revisions of the episode, and gaps in
// the numbers of turns.
type Exploration struct {
	episode *episode.Episode
	config  Config
	tracks  map[string]bool // flags that something depends on
	settled int             // from this turn on, no rule depends on the turn

	starts    []Move          // moves to start with, not played yet
	positions []position      // in the order in which they were found
	now       []int32         // positions of the current turn, not continued yet
	later     []int32         // positions of the next turn
	at        int32           // the position that is being continued
	state     *director.State // its state
	left      []Move          // its moves that were not played yet
	external  []Move          // the external events that rules are about; nil until computed
	known     map[[sha256.Size]byte]int32
	edges     []edge
	moves     int
	ended     uint64 // plays that reached a known state
	bound     string
	untried   Untried
	seen      sightings
	err       error
}

// position is a state that a play has reached.
type position struct {
	state  *director.State // nil once the position was continued
	parent int32           // the position before, -1 at the start
	move   Move            // from parent to here
	turn   int
	paths  uint64 // plays that lead here
}

// edge is a move between two positions. The edges give the latest turn in which a beat
// can land.
type edge struct {
	from, to int32
	opens    bool    // the move opens a turn
	landed   []int32 // beats
}

// New returns an exploration of an episode that has not played yet:
//
//	x := explore.New(e, explore.Config{})
//	for x.Step() {
//	}
//	coverage := x.Coverage()
func New(e *episode.Episode, c Config) *Exploration {
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
		episode: e, config: c, tracks: tracks(e), settled: lastTurn(e) + 1,
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
		x.starts = append(x.starts, startOf(e, flags...))
	}
	return x
}

// Step plays one move. It returns false, and does nothing, after the last move or at a
// bound.
func (x *Exploration) Step() bool {
	for len(x.starts) == 0 && len(x.left) == 0 && len(x.now)+len(x.later) > 0 {
		// All positions of a turn are continued before those of the next one. The
		// first occurrence of an event is therefore the earliest.
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
		x.try(-1, &director.State{}, m)
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

// try plays a move and records its events and the state that it leads to.
func (x *Exploration) try(from int32, before *director.State, m Move) {
	s := *before
	records, err := play(&s, m)
	if err != nil {
		// The state allows the move, so a refusal is a bug of this package.
		x.err = fmt.Errorf("director: explore: %w", err)
		return
	}
	landed := x.seen.note(records, Occurrence{from: from, move: m})
	turn, paths := s.Turn(), uint64(1)
	if from >= 0 {
		paths = x.positions[from].paths
	}
	key := x.key(&s)
	to, ok := x.known[key]
	switch {
	case ok && to == from:
		return // the move changed nothing
	case ok && x.positions[to].state != nil && x.positions[to].turn == turn:
		x.positions[to].paths = sum(x.positions[to].paths, paths)
	case ok:
		x.ended = sum(x.ended, paths)
	case len(x.positions) >= x.config.MaxStates:
		x.bound = boundStates
		x.untried.Dropped++
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

// sum returns a + b, at most math.MaxUint64.
func sum(a, b uint64) uint64 {
	if a > math.MaxUint64-b {
		return math.MaxUint64
	}
	return a + b
}

// paths returns the number of plays so far, each up to the first state that was known
// before; math.MaxUint64 means at least so many.
func (x *Exploration) paths() uint64 {
	n := x.ended
	for _, i := range slices.Concat(x.now, x.later) {
		n = sum(n, x.positions[i].paths)
	}
	return n
}

// Progress returns the number of states that were found, and how many of them were not
// continued yet.
func (x *Exploration) Progress() (states, left int) {
	return len(x.positions), len(x.now) + len(x.later)
}

// from returns the moves that a state allows.
func (x *Exploration) from(s *director.State) []Move {
	turn := s.Turn()
	var moves []Move
	for i := range x.episode.Choices {
		if !s.ChoiceAt(i).Open {
			continue
		}
		point := &x.episode.Choices[i]
		for j := range point.Options {
			moves = append(moves, Move{Kind: MoveChoose, Turn: turn, ChoicePoint: point.ID, Option: point.Options[j].ID})
		}
	}
	moves = append(moves, x.events(turn)...)
	if s.AwaitsResponse() {
		can := s.Undecided()
		can = slices.DeleteFunc(can, func(subject episode.Subject) bool { return x.tooLate(s, subject) })
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
		x.untried.Long++
		return moves
	}
	switch {
	case !s.ChoicePending():
		moves = append(moves, Move{Kind: MoveOpen, Turn: turn + 1})
	case x.episode.Policy.Free:
		moves = append(moves, Move{Kind: MoveDecline, Turn: turn + 1})
	}
	return moves
}

// events returns the external events that rules are about, each with every set of the
// rules whose conditions it may fulfil.
func (x *Exploration) events(turn int) []Move {
	if x.external == nil {
		x.external = []Move{}
		seen := map[string]bool{}
		for i := range x.episode.FlagRules {
			r := &x.episode.FlagRules[i]
			key := r.Kind.String() + ":" + r.Name
			if seen[key] {
				continue
			}
			seen[key] = true
			var always, sometimes []int
			for _, j := range x.episode.FlagRulesFor(r.Kind, r.Name) {
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
					x.external = append(x.external, Move{Kind: MoveHear, Event: r.Kind.String() + ":" + r.Name, rules: rules})
				}
			}
		}
	}
	moves := slices.Clone(x.external)
	for i := range moves {
		moves[i].Turn = turn
	}
	return moves
}

// tooLate reports whether [Config.Delay] forbids that a beat lands.
func (x *Exploration) tooLate(s *director.State, subject episode.Subject) bool {
	if subject.Kind != episode.AboutBeat || x.config.Delay == 0 {
		return false
	}
	i, _ := x.episode.BeatIndex(subject.ID)
	at := s.BeatAt(i).DeliveredAt
	return at > 0 && s.Turn()-at > max(x.config.Delay, 0)
}

// subsets yields the subsets of n things, as indexes. Of more than maxTogether things it
// yields only the empty set, the whole set, single things and pairs.
func (x *Exploration) subsets(n int) func(yield func([]int) bool) {
	const most = 64 // bounds the things of which pairs are made
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
		tried := uint64(2 + n)
		for i := range n {
			tried += uint64(max(0, min(n, most)-i-1))
		}
		sets := uint64(math.MaxUint64)
		if n < 64 {
			sets = 1 << n
		}
		x.untried.Combinations = sum(x.untried.Combinations, sets-tried)
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

// tracks returns the flags on which a play can depend: those that are read, and those
// that an option or a rule clears, because clearing is an event only if the flag is set.
func tracks(e *episode.Episode) map[string]bool {
	flags := e.Reads()
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

// lastTurn returns the last turn on which a beat, a choice or an objective depends.
func lastTurn(e *episode.Episode) int {
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

// key identifies the future of a state: two states with the same key allow the same
// moves, which lead to states with the same key and record the same events, except for
// turns and texts.
func (x *Exploration) key(s *director.State) [sha256.Size]byte {
	return sha256.Sum256(s.AppendFuture(nil, director.Horizon{Settled: x.settled, Delay: x.config.Delay, Flags: x.tracks}))
}
