package bisect

import (
	"fmt"
	"math/bits"
	"slices"
)

// Goal says which stretches a search is looking for.
type Goal uint8

// The goals of a search.
const (
	Any       Goal = iota // one transition from good to bad, with few judgments
	First                 // the first bad stretch; judges every input
	Last                  // the last transition from good to bad; judges every input
	AllPhases             // every phase; judges every input
)

// String returns "any", "first", "last" or "all".
func (g Goal) String() string {
	if g <= AllPhases {
		return [...]string{"any", "first", "last", "all"}[g]
	}
	return fmt.Sprintf("goal(%d)", uint8(g))
}

// GoalByName returns the goal whose String is name, or false if there is none. The empty
// name means [Any].
func GoalByName(name string) (Goal, bool) {
	for g := Any; g <= AllPhases; g++ {
		if name == g.String() {
			return g, true
		}
	}
	return Any, name == ""
}

// Purpose says why a search wants a stretch judged.
type Purpose uint8

// The purposes of a judgment.
const (
	ForEnd     Purpose = iota + 1 // an end of the range
	ForHalving                    // halves what is open between a good and a bad stretch
	ForProbe                      // looks for an island
	ForAll                        // every input is judged
	ForRecheck                    // judges an end of the range again
)

// String returns "end", "halve", "probe", "all" or "recheck".
func (p Purpose) String() string {
	if p >= ForEnd && p <= ForRecheck {
		return [...]string{"end", "halve", "probe", "all", "recheck"}[p-1]
	}
	return fmt.Sprintf("purpose(%d)", uint8(p))
}

// Pick is a stretch that a search wants judged.
type Pick struct {
	Index   int // of the stretch
	Purpose Purpose
}

// Options refine a [Search].
type Options struct {
	Goal Goal

	// Probes is the number of stretches that the goal Any judges after it has found a
	// transition.
	Probes int

	// Recheck judges both ends of the range again when everything else is judged, which
	// notices a test whose result is not a function of its input.
	Recheck bool
}

// DefaultProbes is the number of probes of the command line.
const DefaultProbes = 8

// Search is a search over candidates in their order: the stretches of a range, or others
// ([Among]). It is advanced by one judgment at a time and does nothing by itself, so it
// can be kept, shown and continued: the same judgments in the same order lead to the same
// state. It is not safe for concurrent use.
//
// The words here are those of stretches; what they say of a stretch holds for any
// candidate.
type Search struct {
	stretches []Stretch // nil of other candidates
	opts      Options
	class     []int32 // of each stretch: stretches with one input have one class
	inputs    int     // the number of classes

	history []judgment
	results []TestResult // of each class; zero before its judgment
	again   [2]bool      // the first and the last stretch were judged twice
	from    int          // every stretch before it is judged, for goals that judge all

	found     bool // the transition from good to bad, for the goal Any
	good, bad int
	probes    []int
	conflicts []Conflict
}

type judgment struct {
	index  int
	result TestResult
}

// New returns a search over the stretches of a range, which it does not change. With the
// goal [Any] the first stretch must prove good and the last one bad.
func New(stretches []Stretch, opts Options) *Search {
	s := newSearch(len(stretches), func(i int) InputHash { return stretches[i].Input }, opts)
	s.stretches = stretches
	return s
}

// Among is [New] for candidates that are not stretches, such as the versions of a file. It
// takes the hash of each candidate's input.
func Among(inputs []InputHash, opts Options) *Search {
	return newSearch(len(inputs), func(i int) InputHash { return inputs[i] }, opts)
}

func newSearch(n int, input func(int) InputHash, opts Options) *Search {
	s := &Search{opts: opts, class: make([]int32, n)}
	classes := make(map[InputHash]int32)
	for i := range n {
		h := input(i)
		c, ok := classes[h]
		if !ok {
			c = int32(len(classes))
			classes[h] = c
		}
		s.class[i] = c
	}
	s.inputs = len(classes)
	s.reset()
	return s
}

func (s *Search) reset() {
	s.history, s.conflicts, s.probes = s.history[:0], nil, nil
	s.results = make([]TestResult, s.inputs)
	s.again, s.from, s.found = [2]bool{}, 0, false
}

// Stretches returns the candidates of the search, which the caller must not change. It is
// nil of a search [Among] other candidates.
func (s *Search) Stretches() []Stretch { return s.stretches }

// Inputs returns the number of distinct inputs of the stretches: the number of judgments
// that judge all of them.
func (s *Search) Inputs() int { return s.inputs }

// Result returns the result of a stretch, which it may share with others, or zero.
func (s *Search) Result(i int) TestResult { return s.results[s.class[i]] }

// Judge records the result of the test at a stretch, one of Next or any other. A second
// result of the same input replaces a skip; if the two contradict each other, the first
// one holds and the conclusion has a [Conflict].
func (s *Search) Judge(i int, result TestResult) error {
	if i < 0 || i >= len(s.class) {
		return fmt.Errorf("bisect: judge candidate %d: there are %d", i, len(s.class))
	}
	if result < Good || result > Skip {
		return fmt.Errorf("bisect: judge candidate %d: the test returned %v", i, result)
	}
	s.history = append(s.history, judgment{i, result})
	was := &s.results[s.class[i]]
	if *was != 0 {
		if i == 0 {
			s.again[0] = true
		}
		if i == len(s.class)-1 {
			s.again[1] = true
		}
	}
	switch {
	case *was == 0 || *was == Skip:
		*was = result
	case result != Skip && result != *was:
		s.conflicts = append(s.conflicts, Conflict{Index: i, Was: *was, Now: result})
	}
	s.settle()
	return nil
}

// settle fixes the transition and the probes as soon as nothing is open between a good
// and a bad stretch.
func (s *Search) settle() {
	if s.opts.Goal != Any || s.Err() != nil || s.Result(0) == 0 || s.Result(len(s.class)-1) == 0 {
		return
	}
	if s.found {
		for i := s.good + 1; i < s.bad; i++ {
			s.found = s.found && s.Result(i) == Skip // a skip may have been judged since
		}
	}
	if s.found {
		return
	}
	good, bad := s.bracket()
	if s.choose(good, bad) >= 0 {
		return
	}
	s.found, s.good, s.bad = true, good, bad
	if s.probes == nil {
		s.probes = s.spread()
	}
}

// Undo takes back the latest judgment and returns its stretch, or false if there is
// none.
func (s *Search) Undo() (int, bool) {
	if len(s.history) == 0 {
		return 0, false
	}
	kept, last := slices.Clone(s.history[:len(s.history)-1]), s.history[len(s.history)-1]
	s.reset()
	for _, j := range kept {
		_ = s.Judge(j.index, j.result) // was valid before
	}
	return last.index, true
}

// Bracket returns the narrowest pair of a good stretch and a bad one after it, or false
// if there is none yet. The stretches between them have no result or were skipped.
func (s *Search) Bracket() (good, bad int, ok bool) {
	if s.found {
		return s.good, s.bad, true
	}
	good, bad = s.bracket()
	return good, bad, good >= 0
}

// bracket returns the narrowest pair, the first of equals, or -1.
func (s *Search) bracket() (good, bad int) {
	good, bad = -1, -1
	last := -1 // the latest good stretch that has no bad one after it
	for i := range s.class {
		switch s.Result(i) {
		case Good:
			last = i
		case Bad:
			if last >= 0 && (good < 0 || i-last < bad-good) {
				good, bad = last, i
			}
			last = -1
		case Skip:
		}
	}
	return good, bad
}

// Left returns the number of stretches without a result that the search may still
// judge, and about how many of them it will.
func (s *Search) Left() (candidates, judgments int) {
	if s.opts.Goal != Any {
		for _, r := range s.results {
			if r == 0 {
				judgments++
			}
		}
		for i := range s.class {
			if s.Result(i) == 0 {
				candidates++
			}
		}
		return candidates, judgments
	}
	good, bad, ok := s.Bracket()
	if !ok {
		return len(s.class), bits.Len(uint(len(s.class)))
	}
	for i := good + 1; i < bad; i++ {
		if s.Result(i) == 0 {
			candidates++
		}
	}
	return candidates, bits.Len(uint(candidates))
}

// Next returns the stretch that the search wants judged next, or false if it is
// finished or [Search.Err] is not nil.
func (s *Search) Next() (Pick, bool) {
	picks := s.NextN(1)
	if len(picks) == 0 {
		return Pick{}, false
	}
	return picks[0], true
}

// NextN returns up to n stretches of different inputs that are worth judging at the same
// time, the one of [Search.Next] first. With the goal Any the others are guesses: each
// result makes about half of the guesses after it superfluous.
func (s *Search) NextN(n int) []Pick {
	if n <= 0 || len(s.class) == 0 || s.Err() != nil {
		return nil
	}
	p := picker{s: s, most: n}
	switch {
	case s.opts.Goal != Any:
		s.pickAll(&p)
	case s.Result(0) == 0 || s.Result(len(s.class)-1) == 0:
		p.add(0, ForEnd)
		p.add(len(s.class)-1, ForEnd)
	case !s.found:
		s.pickHalves(&p)
	default:
		for _, i := range s.probes {
			p.add(i, ForProbe)
		}
	}
	if len(p.picks) == 0 && s.opts.Recheck {
		for k, i := range []int{0, len(s.class) - 1} {
			if !s.again[k] && len(p.picks) < n && (k == 0 || i > 0) {
				p.picks = append(p.picks, Pick{i, ForRecheck})
			}
		}
	}
	return p.picks
}

// pickAll picks stretches in their order, or for the goal Last from the end.
func (s *Search) pickAll(p *picker) {
	n := len(s.class)
	at := func(i int) int {
		if s.opts.Goal == Last {
			return n - 1 - i
		}
		return i
	}
	for s.from < n && s.Result(at(s.from)) != 0 {
		s.from++
	}
	for i := s.from; i < n && len(p.picks) < p.most; i++ {
		p.add(at(i), ForAll)
	}
}

// pickHalves picks the middle of the bracket, then the middles of its halves and so on.
func (s *Search) pickHalves(p *picker) {
	good, bad := s.bracket()
	for open := [][2]int{{good, bad}}; len(open) > 0 && len(p.picks) < p.most; open = open[1:] {
		lo, hi := open[0][0], open[0][1]
		if i := s.choose(lo, hi); i >= 0 {
			p.add(i, ForHalving)
			open = append(open, [2]int{lo, i}, [2]int{i, hi})
		}
	}
}

// picker collects stretches without a result, one of each class.
type picker struct {
	s     *Search
	most  int
	picks []Pick
}

func (p *picker) add(i int, why Purpose) {
	if len(p.picks) >= p.most || p.s.Result(i) != 0 {
		return
	}
	for _, have := range p.picks {
		if p.s.class[have.Index] == p.s.class[i] {
			return
		}
	}
	p.picks = append(p.picks, Pick{i, why})
}

// choose returns a stretch without a result between two others, or -1: the middle; if
// that was skipped, one quarter, then the other, then the eighths and so on, far from
// what was skipped; if no fraction is left, any other.
func (s *Search) choose(lo, hi int) int {
	open := uint64(hi - lo - 1)
	if hi-lo < 2 {
		return -1
	}
	if i := lo + 1 + int((open-1)/2); s.Result(i) == 0 {
		return i
	}
	for depth := 1; depth <= bits.Len64(open); depth++ {
		parts := uint64(1) << depth
		for odd := uint64(1); odd < parts; odd += 2 {
			high, low := bits.Mul64(open, odd)
			at, _ := bits.Div64(high, low, parts)
			if i := lo + 1 + int(min(at, open-1)); s.Result(i) == 0 {
				return i
			}
		}
	}
	for i := lo + 1; i < hi; i++ {
		if s.Result(i) == 0 {
			return i
		}
	}
	return -1
}

// spread returns the probes: of the stretches outside of the transition, those whose
// input has no result, evenly, each input once.
func (s *Search) spread() []int {
	seen := make([]bool, s.inputs)
	var open []int
	for i, c := range s.class {
		if (i < s.good || i > s.bad) && s.results[c] == 0 && !seen[c] {
			seen[c] = true
			open = append(open, i)
		}
	}
	n := min(s.opts.Probes, len(open))
	var probes []int
	for k := range n {
		probes = append(probes, open[(2*k+1)*len(open)/(2*n)])
	}
	return probes
}
