package bisect

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"sync"

	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
)

// TestResult is the result of one test.
type TestResult uint8

// The results of a test.
const (
	Good TestResult = iota + 1 // not wrong
	Bad                        // wrong
	Skip                       // cannot be judged
)

// String returns "good", "bad" or "skip".
func (r TestResult) String() string {
	if r >= Good && r <= Skip {
		return [...]string{"good", "bad", "skip"}[r-1]
	}
	return fmt.Sprintf("result(%d)", uint8(r))
}

// InputHash is the SHA-256 of everything that a test sees at a moment. Moments with
// equal hashes share one judgment.
type InputHash [32]byte

// HashInput returns the hash of an input of several parts.
func HashInput(parts ...[]byte) InputHash {
	h := sha256.New()
	for _, part := range parts {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		h.Write(part)
	}
	return InputHash(h.Sum(nil))
}

// ResultInput is the input of a test without Judge: its result.
func ResultInput(r TestResult) InputHash { return InputHash{31: byte(r)} }

// Result returns the result that h stands for, or an error if it is no [ResultInput].
func (h InputHash) Result() (TestResult, error) {
	r := TestResult(h[31])
	if h != ResultInput(r) || r < Good || r > Skip {
		return 0, fmt.Errorf("bisect: the input of a test without Judge is not a result")
	}
	return r, nil
}

// Test is a test of the states of a session.
type Test struct {
	// Identity stands for everything but the input that determines the results, such as
	// the command line of a program. [Verdicts] are kept under it.
	Identity string

	// Needs lists what Input reads of its step, besides the state.
	Needs replay.Needs

	// Input returns the hash of what Judge sees at a moment. It is called once for each
	// moment, in their order, so it must be cheap. The step is valid during the call.
	Input func(ctx context.Context, s *replay.ScanStep) (InputHash, error)

	// Judge judges the state at a moment. The fold is valid during the call. Several
	// goroutines call Judge at once if [Config].Jobs is above 1. An error ends the search.
	//
	// A test without Judge is so cheap that it judges every moment: its Input returns a
	// [ResultInput].
	Judge func(ctx context.Context, m replay.Moment, f *projection.Fold) (TestResult, error)
}

// Exact returns the test without Judge that judges every moment, such as an expression.
func Exact(needs replay.Needs, judge func(ctx context.Context, s *replay.ScanStep) (TestResult, error)) Test {
	return Test{Needs: needs, Input: func(ctx context.Context, s *replay.ScanStep) (InputHash, error) {
		r, err := judge(ctx, s)
		return ResultInput(r), err
	}}
}

// Verdicts keeps results by the identity of a test and the hash of its input, so that
// several searches with one test share them. It is safe for concurrent use.
type Verdicts struct {
	mu sync.Mutex
	of map[verdictKey]TestResult
}

type verdictKey struct {
	test  string
	input InputHash
}

// Get returns the result of a test for an input, or zero.
func (v *Verdicts) Get(test string, input InputHash) TestResult {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.of[verdictKey{test, input}]
}

// Put keeps the result of a test for an input, if it has none yet but a skip.
func (v *Verdicts) Put(test string, input InputHash, r TestResult) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.of == nil {
		v.of = make(map[verdictKey]TestResult)
	}
	if was := v.of[verdictKey{test, input}]; was == 0 || was == Skip {
		v.of[verdictKey{test, input}] = r
	}
}
