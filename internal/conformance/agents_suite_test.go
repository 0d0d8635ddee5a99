package conformance

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sajou-dev/sajou-go/signal"
)

// agentKinds are the kinds of scenario about agents, and how each is judged.
var agentKinds = map[string]func(s *agentScenario) error{
	"visibility":            judgeVisibility,
	"field_visibility":      judgeFields,
	"event_visibility":      judgeEvents,
	"view_seq":              judgeViewSeq,
	"ordering":              judgeOrdering,
	"ordering_permutations": judgePermutations,
	"move":                  judgeMove,
	"submit":                judgeSubmit,
	"submit_worlds":         judgeSubmit,
	"pipeline_order":        judgeSubmit,
	"interruption":          judgeInterruption,
	"delta":                 judgeDelta,
	"patch_apply":           judgePatch,
	"chain":                 judgeChain,
	"integrity":             judgeIntegrity,
	"replay":                judgeReplay,
	"circuit_breaker":       judgeBreaker,
	"timed_queue":           judgeTimedQueue,
	"backpressure":          judgeBackpressure,
	"recovery":              judgeRecovery,
}

// agentScenario is one file about agents.
type agentScenario struct {
	id, kind, title string
	tags            []string
	input, expected *node
	compared        int   // the number of comparisons
	differs         error // the first difference
}

// literal reports whether the file follows the text of the sketches in the
// multi-agent design.
func (s *agentScenario) literal() bool { return slices.Contains(s.tags, "seed-literal") }

// readAgents reads a file with one scenario about agents. Scenarios that follow the
// text of a sketch are counted separately, since a mode of the engine runs them.
func readAgents(file string) ([]Case, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	c, err := readAgent(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Base(file), err)
	}
	return []Case{c}, nil
}

func readAgent(data []byte) (Case, error) {
	v, err := signal.ParseValue(data)
	if err != nil {
		return Case{}, err
	}
	root := newNode(v)
	s := agentScenario{
		id: root.get("id").text(), kind: root.get("kind").text(), title: root.get("title").text(),
		tags: root.get("tags").texts(),
	}
	if s.id == "" || s.kind == "" {
		return Case{}, errors.New("want id and kind")
	}
	c := Case{Name: s.id + " " + s.title}
	for _, tag := range []string{"seed-literal", "format-literal"} {
		if slices.Contains(s.tags, tag) {
			c.Apart = tag
		}
	}
	judge, ok := agentKinds[s.kind]
	if !ok {
		c.Inapplicable = fmt.Sprintf("no harness for the kind %q", s.kind)
		return c, nil
	}
	c.Judge = func() error {
		root := newNode(v) // a new one, so that a case may be judged twice
		for _, name := range []string{"id", "kind", "title", "basis", "tags"} {
			root.get(name).all()
		}
		s := s
		s.input, s.expected = root.get("input"), root.get("expected")
		if err := s.judge(judge); err != nil {
			return err
		}
		// A scenario with an input that no judge reads was not run as written, so its
		// result is ignored. An expectation that no judge reads does not excuse a
		// difference.
		given, left := s.input.unasked("/input"), root.unasked("")
		switch {
		case len(given) > 0:
			return unknown(given)
		case s.differs != nil:
			return s.differs
		case len(left) > 0:
			return unknown(left)
		case s.compared == 0:
			return inapplicable("nothing is compared")
		}
		return nil
	}
	return c, nil
}

func unknown(paths []string) error {
	return inapplicable("the harness does not know %s", strings.Join(paths[:min(len(paths), 3)], ", "))
}

// judge turns a panic into a failure, so that one file cannot stop the others.
func (s *agentScenario) judge(judge func(s *agentScenario) error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	return judge(s)
}

// compare counts a comparison and records the first difference. The run continues, so
// that the judge reads every member that it supports.
func (s *agentScenario) compare(what string, same bool, got, want any) {
	s.compared++
	if !same && s.differs == nil {
		s.differs = fmt.Errorf("%s: %v, want %v", what, got, want)
	}
}

// sameSet compares ids in any order.
func (s *agentScenario) sameSet(what string, got, want []string) {
	got, want = slices.Clone(got), slices.Clone(want)
	slices.Sort(got)
	slices.Sort(want)
	s.compare("/"+what, slices.Equal(got, want), got, want)
}

// sameList compares texts in order.
func (s *agentScenario) sameList(what string, got, want []string) {
	s.compare("/"+what, slices.Equal(got, want), got, want)
}

// sameTruth compares a truth with an expected one, if there is one.
func (s *agentScenario) sameTruth(what string, got bool, want *node) {
	if !want.given() {
		return
	}
	s.compare("/"+what, got == want.truth(), got, want)
}

// sameCount compares a number with an expected one, or with several allowed
// ones, if there are any.
func (s *agentScenario) sameCount(what string, got int64, want *node) {
	if !want.given() {
		return
	}
	if want.kind() == signal.KindArray {
		ok := false
		for e := range want.elements() {
			ok = ok || e.integer() == got
		}
		s.compare("/"+what, ok, got, want)
		return
	}
	s.compare("/"+what, want.kind().IsNumber() && want.integer() == got, got, want)
}
