package bisect

import (
	"errors"
	"fmt"

	"github.com/sajou-dev/sajou-go/replay"
)

// ErrEndpoint says that an end of the range is not what it was given as.
var ErrEndpoint = errors.New("endpoint of the bisection does not hold")

// ErrAlike says that the test sees the same at both ends of the range, so it cannot find
// one good and the other bad.
var ErrAlike = errors.New("the test sees the same at both ends of the range")

// EndpointError reports an end of the range that is not what it was given as. It is
// [ErrEndpoint].
type EndpointError struct {
	Index     int           // of the candidate
	Moment    replay.Moment // of a stretch; zero of a search [Among] other candidates
	Want, Got TestResult

	name string
}

func (e *EndpointError) Error() string {
	return fmt.Sprintf("bisect: %v: %s was given as %v, and the test says %v", ErrEndpoint, e.name, e.Want, e.Got)
}

func (e *EndpointError) Unwrap() error { return ErrEndpoint }

// Err returns the reason for which the search cannot go on: an [EndpointError], or
// [ErrAlike] before the first judgment of either. Only the goal [Any] needs ends that hold.
func (s *Search) Err() error {
	n := len(s.class)
	if s.opts.Goal != Any {
		return nil
	}
	if n == 0 || s.class[0] == s.class[n-1] && s.Result(0) == 0 {
		return fmt.Errorf("bisect: %w", ErrAlike)
	}
	if got := s.Result(0); got != 0 && got != Good {
		return s.endpoint(0, Good, got)
	}
	if got := s.Result(n - 1); got != 0 && got != Bad {
		return s.endpoint(n-1, Bad, got)
	}
	return nil
}

func (s *Search) endpoint(i int, want, got TestResult) error {
	e := &EndpointError{Index: i, Want: want, Got: got, name: fmt.Sprintf("candidate %d", i)}
	if s.stretches != nil {
		if e.Moment = s.stretches[i].From; want == Bad { // one stretch can be both ends
			e.Moment = s.stretches[i].Last
		}
		e.name = e.Moment.String()
	}
	return e
}

// Phase is a maximal run of judged stretches with one result. Stretches between First and
// Last have the same result, were skipped, or have none.
type Phase struct {
	First, Last int
	Result      TestResult // Good or Bad
}

// Conflict is a pair of contradicting results for one input: the test is not a function
// of its input.
type Conflict struct {
	Index    int // of the stretch that was judged again
	Was, Now TestResult
}

// Conclusion is what a search knows.
type Conclusion struct {
	Goal       Goal
	Candidates int // the number of stretches
	Inputs     int // the number of distinct inputs
	Judgments  int // the number of results that were recorded
	Judged     int // the number of stretches that are known to be good or bad
	Skipped    int // the number of stretches that the test skipped

	// Phases alternate between good and bad.
	Phases []Phase

	// Found says whether there is a transition from good to bad: with the goal Last the
	// last one, else the first one, and with the goal Any one of them. The stretch Good
	// is good, Bad is bad, and those between were skipped or are not judged yet.
	Found     bool
	Good, Bad int

	Conflicts []Conflict
}

// Conclusion returns what the search knows by now.
func (s *Search) Conclusion() Conclusion {
	c := Conclusion{
		Goal: s.opts.Goal, Candidates: len(s.class), Inputs: s.inputs,
		Judgments: len(s.history), Conflicts: s.conflicts,
	}
	for i := range s.class {
		r := s.Result(i)
		if r == Skip {
			c.Skipped++
		}
		if r != Good && r != Bad {
			continue
		}
		c.Judged++
		if n := len(c.Phases); n > 0 && c.Phases[n-1].Result == r {
			c.Phases[n-1].Last = i
		} else {
			c.Phases = append(c.Phases, Phase{i, i, r})
		}
	}
	if c.Goal == Any {
		c.Good, c.Bad, c.Found = s.Bracket()
		return c
	}
	for i := 1; i < len(c.Phases); i++ {
		if c.Phases[i].Result == Bad && (!c.Found || c.Goal == Last) {
			c.Found, c.Good, c.Bad = true, c.Phases[i-1].Last, c.Phases[i].First
		}
	}
	return c
}

// Conclusive reports whether every stretch was judged, so that the answer assumes
// nothing.
func (c Conclusion) Conclusive() bool { return c.Judged == c.Candidates && len(c.Conflicts) == 0 }

// Exact reports whether no stretch is open between the good and the bad side of the
// transition.
func (c Conclusion) Exact() bool { return c.Found && c.Bad == c.Good+1 }

// Islands returns the phases that refute a single transition at Good and Bad: bad ones
// before it and good ones after it.
func (c Conclusion) Islands() []Phase {
	var islands []Phase
	for _, r := range c.Phases {
		if c.Found && (r.Result == Bad && r.Last < c.Good || r.Result == Good && r.First > c.Bad) {
			islands = append(islands, r)
		}
	}
	return islands
}

// Assumes returns "one transition" if the answer depends on the session turning from good
// to bad once, else "". Islands refute the assumption, so an answer with islands has none.
func (c Conclusion) Assumes() string {
	if c.Goal == Any && c.Judged < c.Candidates && len(c.Islands()) == 0 {
		return "one transition"
	}
	return ""
}
