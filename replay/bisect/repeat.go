package bisect

import "fmt"

// Repeat says how often a test is run for one judgment. The zero value is once.
//
// Without Confidence the judgment is the majority of Times runs. Votes that cannot change
// it any more are omitted, and a tie is a [Skip].
//
// With Confidence the test is run until the majority is right with that probability, and
// at most Times times; if that is not enough, the judgment is a [Skip]. The rule is
// Wald's sequential probability ratio test under this model: before the first run good
// and bad are equally likely, and each run has the wrong result with the probability
// Flake, independently of the others. After g good and b bad runs the majority is then
// right with the probability
//
//	1 / (1 + (Flake/(1-Flake))^|g-b|)
//
// so what counts is the lead of one result over the other: 3 for the confidence 0.95 and
// 5 for 0.99, with the default of Flake.
//
// A run that was skipped counts as a run, but for neither side.
type Repeat struct {
	Times      int     // the most runs; 0 is 1, or [DefaultRuns] with Confidence
	Confidence float64 // 0 for none, else above 0.5 and below 1
	Flake      float64 // above 0 and below 0.5; 0 is [DefaultFlake]
}

// The defaults of [Repeat].
const (
	DefaultRuns  = 100
	DefaultFlake = 0.25
)

// Check returns an error if a number is out of its range.
func (r Repeat) Check() error {
	switch {
	case r.Times < 0:
		return fmt.Errorf("bisect: %d runs: must be at least 1", r.Times)
	case r.Confidence != 0 && !(r.Confidence > 0.5 && r.Confidence < 1):
		return fmt.Errorf("bisect: confidence %v: must be above 0.5 and below 1", r.Confidence)
	case r.Flake != 0 && !(r.Flake > 0 && r.Flake < 0.5):
		return fmt.Errorf("bisect: flake probability %v: must be above 0 and below 0.5", r.Flake)
	}
	return nil
}

// Votes counts the results of repeated runs of a test for one input.
type Votes struct{ Good, Bad, Skipped int }

// Add counts a result.
func (n *Votes) Add(result TestResult) {
	switch result {
	case Good:
		n.Good++
	case Bad:
		n.Bad++
	case Skip:
		n.Skipped++
	}
}

// Mixed reports whether some runs were good and some bad.
func (n Votes) Mixed() bool { return n.Good > 0 && n.Bad > 0 }

// Decide returns the judgment of some runs, or false if another run is needed.
func (r Repeat) Decide(n Votes) (TestResult, bool) {
	lead, majority := n.Good-n.Bad, Good
	if lead < 0 {
		lead, majority = -lead, Bad
	}
	times := max(r.Times, 1)
	if r.Times == 0 && r.Confidence > 0 {
		times = DefaultRuns
	}
	left := max(times-n.Good-n.Bad-n.Skipped, 0)
	if r.Confidence > 0 {
		switch need := r.lead(times); {
		case lead >= need:
			return majority, true
		case lead+left < need: // neither side can still get the lead
			return Skip, true
		}
		return 0, false
	}
	switch {
	case lead > left:
		return majority, true
	case left == 0:
		return Skip, true
	}
	return 0, false
}

// lead returns the smallest lead that gives the confidence, or most+1 if that is more
// than most.
func (r Repeat) lead(most int) int {
	flake := r.Flake
	if flake == 0 {
		flake = DefaultFlake
	}
	ratio, odds := flake/(1-flake), 1.0
	for n := range most + 1 {
		if 1/(1+odds) >= r.Confidence {
			return n
		}
		odds *= ratio
	}
	return most + 1
}
