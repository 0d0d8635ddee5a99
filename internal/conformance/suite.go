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

	"github.com/sajou-dev/sajou-go/signal"
)

// Suite is one folder of a conformance set and the way to judge its files.
// To add a kind of scenario, add a Suite to [Suites].
type Suite struct {
	// Folder inside the set; also what the suite is called.
	Folder string
	// Pattern matches the names of its files.
	Pattern string
	// Read makes cases of one file.
	Read func(file string) ([]Case, error)
}

// Case is one thing that passes or fails.
type Case struct {
	Name string
	// Apart names the tag for which the case is counted in a line of its own,
	// like "quirk"; empty for most.
	Apart string
	// Inapplicable says why the case is not judged; it is listed, neither passed
	// nor failed.
	Inapplicable string
	// Judge runs the case and says what is wrong, nil if it passes. An error that
	// wraps [ErrInapplicable] is like Inapplicable, found out only by the run.
	Judge func() error
}

// ErrInapplicable says that a case asks for something that the harness has no
// way to do or to compare.
var ErrInapplicable = errors.New("not applicable")

func inapplicable(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrInapplicable, fmt.Sprintf(format, args...))
}

// Suites lists what a conformance set holds.
var Suites = []Suite{
	{Folder: "choreo", Pattern: "*.json", Read: readScenarios},
	{Folder: "choreo-exact", Pattern: "*.json", Read: readScenarios},
	{Folder: "signals", Pattern: "*.jsonl", Read: readSignals},
	{Folder: "agents", Pattern: "*.json", Read: readAgents},
	{Folder: "director", Pattern: "*.json", Read: readPlayed},
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
	scenarios, err := Load(file)
	if err != nil {
		return nil, err
	}
	var cases []Case
	for _, s := range scenarios {
		c := Case{Name: strings.TrimSpace(s.ID + " " + s.Name)}
		if s.Tagged("quirk") {
			c.Apart = "quirk"
		}
		c.Judge = func() error {
			if !s.Judged {
				return errors.New("the scenario has no expected commands")
			}
			if v := Compare(Run(s), s.Expected); !v.Same {
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
