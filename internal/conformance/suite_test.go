// Package conformance judges the engine against sets of cases: choreographies,
// signals, agents and the director.
//
// A set is a folder with one folder for each [Suite]. A suite reads its files as
// [Case]s, and a case passes or fails. The sets are data for any implementation,
// and so nothing in them names a type of this module. The package has only tests.
package conformance

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sajou-dev/sajou-go/choreography/rehearsal"
	"github.com/sajou-dev/sajou-go/signal"
)

// Suite is one folder of a set and the way to read its files. A new kind of case
// needs a Suite in [Suites].
type Suite struct {
	// Folder inside the set; also the name of the suite.
	Folder string
	// Pattern matches the names of its files.
	Pattern string
	// Read reads the cases of one file.
	Read func(file string) ([]Case, error)
}

// Case is one test case.
type Case struct {
	Name string
	// Apart is the tag under which the case is counted separately, such as
	// "quirk"; empty for most.
	Apart string
	// Inapplicable is the reason why the case cannot be judged: it is listed, and
	// counts neither as passed nor as failed.
	Inapplicable string
	// Judge runs the case and returns nil if it passes. An error that wraps
	// [ErrInapplicable] is a reason like Inapplicable that only the run finds.
	Judge func() error
}

// ErrInapplicable is wrapped by the error of a case that requires a feature which
// this package cannot run or compare.
var ErrInapplicable = errors.New("not applicable")

func inapplicable(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrInapplicable, fmt.Sprintf(format, args...))
}

// Suites returns the suites of a set.
func Suites() []Suite {
	return []Suite{
		{Folder: "choreo", Pattern: "*.json", Read: readScenarios},
		{Folder: "choreo-exact", Pattern: "*.json", Read: readScenarios},
		{Folder: "signals", Pattern: "*.jsonl", Read: readSignals},
		{Folder: "agents", Pattern: "*.json", Read: readAgents},
		{Folder: "director", Pattern: "*.json", Read: readPlayed},
	}
}

// Cases reads all cases of the suite in a set, in the order of file names. A
// folder that is missing, or that holds no case, is an error.
func (s Suite) Cases(set string) ([]Case, error) {
	dir := filepath.Join(set, s.Folder)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var cases []Case
	for _, e := range entries {
		if ok, err := filepath.Match(s.Pattern, e.Name()); err != nil || !ok || e.IsDir() {
			continue
		}
		more, err := s.Read(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		cases = append(cases, more...)
	}
	if len(cases) == 0 {
		return nil, fmt.Errorf("%s: no case in it", dir)
	}
	return cases, nil
}

func readScenarios(file string) ([]Case, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	scenarios, diagnostics := rehearsal.Parse(file, text)
	if len(diagnostics) > 0 {
		return nil, fmt.Errorf("not a scenario: %v", diagnostics)
	}
	var cases []Case
	for _, s := range scenarios {
		c := Case{Name: strings.TrimSpace(s.ID + " " + s.Name)}
		if slices.Contains(s.Tags, "quirk") {
			c.Apart = "quirk"
		}
		c.Judge = func() error {
			if !s.Judged {
				return errors.New("the scenario has no expected commands")
			}
			if v := rehearsal.Compare(rehearsal.Run(s), s.Expected); !v.Same {
				return errors.New(v.Difference)
			}
			return nil
		}
		cases = append(cases, c)
	}
	return cases, nil
}

// readSignals reads lines {"valid", "why", "signal"}. The text of the signal is
// judged as it stands: 5.0 must not become 5 on the way.
func readSignals(file string) ([]Case, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var cases []Case
	for i, line := range slices.Collect(bytes.Lines(data)) {
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		var j struct {
			Valid  *bool           `json:"valid"`
			Why    string          `json:"why"`
			Signal json.RawMessage `json:"signal"`
		}
		if err := json.Unmarshal(line, &j); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, i+1, err)
		}
		if j.Valid == nil || len(j.Signal) == 0 {
			return nil, fmt.Errorf("%s:%d: want valid and signal", file, i+1)
		}
		cases = append(cases, Case{
			Name:  fmt.Sprintf("%s:%d %s", filepath.Base(file), i+1, j.Why),
			Judge: func() error { return judgeSignal(j.Signal, *j.Valid) },
		})
	}
	return cases, nil
}

func judgeSignal(text []byte, valid bool) error {
	_, err := signal.Parse(text)
	switch {
	case valid && err != nil:
		return fmt.Errorf("refused: %w", err)
	case !valid && err == nil:
		return errors.New("accepted, but it should be refused")
	default:
		return nil
	}
}
