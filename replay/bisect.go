package replay

import (
	"context"
	"errors"
	"fmt"
	"math/bits"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
)

// TestResult is the result of one test of a bisection.
type TestResult uint8

// The results of a test.
const (
	Good TestResult = iota + 1 // not wrong yet
	Bad                        // wrong
	Skip                       // this state cannot be judged
)

// String returns "good", "bad" or "skip".
func (v TestResult) String() string {
	switch v {
	case Good:
		return "good"
	case Bad:
		return "bad"
	case Skip:
		return "skip"
	}
	return fmt.Sprintf("verdict(%d)", uint8(v))
}

// Test judges the state at m. The fold is valid during the call. An error ends the
// bisection.
type Test func(ctx context.Context, m Moment, f *projection.Fold) (TestResult, error)

// ErrEndpoint says that the good end of a bisection tested bad, or the bad end good.
var ErrEndpoint = errors.New("endpoint of the bisection does not hold")

// Bisection is the result of a bisection: the entry at Bad is bad, the one at Good is
// good, and the entries between them were skipped.
type Bisection struct {
	Good, Bad eventlog.Seq
	Tests     int // the number of tests, skipped ones and the ends included
	Skipped   int // the number of tests that could not judge
}

// Conclusive reports whether Bad is the first bad one. Otherwise the first bad
// one is any of Good+1 to Bad.
func (b Bisection) Conclusive() bool { return b.Bad == b.Good+1 }

// String describes the result in one line.
func (b Bisection) String() string {
	if b.Conclusive() {
		return fmt.Sprintf("%d is the first bad entry (%d tests)", b.Bad, b.Tests)
	}
	return fmt.Sprintf("the first bad entry is one of %d..%d, the others were skipped (%d tests)", b.Good+1, b.Bad, b.Tests)
}

// Bisect finds the first bad Seq after good and up to bad, with about
// log2(bad-good) tests. It assumes that the session turns from good to bad once; if
// it turns several times, Bisect finds one of the turns. Scan makes no such
// assumption.
//
// Bisect tests both ends first: if the good one is bad or the bad one good, the error
// is [ErrEndpoint]. A good that is not before bad is [ErrSyntax]. After a skipped
// test, Bisect tests other entries, far ones first; if every remaining entry was
// skipped, the result is not [Bisection.Conclusive].
func (r *Replay) Bisect(ctx context.Context, good, bad eventlog.Seq, test Test) (Bisection, error) {
	if good >= bad {
		return Bisection{}, syntax(fmt.Sprintf("%d..%d", good, bad),
			"good must come before bad; to find a fix, swap the two and let the test report the fixed state as bad")
	}
	if err := r.checkSeq(Moment{Seq: bad}); err != nil {
		return Bisection{}, err
	}
	b := &bisection{Bisection: Bisection{Good: good, Bad: bad}, cursor: r.Cursor(), test: test, skipped: make(map[eventlog.Seq]bool)}
	if err := b.verify(ctx, good, Good); err != nil {
		return b.Bisection, err
	}
	if err := b.verify(ctx, bad, Bad); err != nil {
		return b.Bisection, err
	}
	for {
		seq, ok := b.next()
		if !ok {
			return b.Bisection, nil
		}
		v, err := b.judge(ctx, seq)
		if err != nil {
			return b.Bisection, err
		}
		switch v {
		case Good:
			b.Good = seq
		case Bad:
			b.Bad = seq
		case Skip:
			b.skipped[seq] = true
		}
	}
}

type bisection struct {
	Bisection
	cursor  *Cursor
	test    Test
	skipped map[eventlog.Seq]bool // the entries whose test returned Skip
}

func (b *bisection) judge(ctx context.Context, seq eventlog.Seq) (TestResult, error) {
	m := Moment{Seq: seq}
	if err := b.cursor.Seek(ctx, m); err != nil {
		return 0, err
	}
	v, err := b.test(ctx, m, b.cursor.Fold())
	if err != nil {
		return 0, fmt.Errorf("replay: bisect at entry %d: %w", seq, err)
	}
	if v < Good || v > Skip {
		return 0, fmt.Errorf("replay: bisect at entry %d: the test returned %v", seq, v)
	}
	b.Tests++
	if v == Skip {
		b.Skipped++
	}
	return v, nil
}

func (b *bisection) verify(ctx context.Context, seq eventlog.Seq, want TestResult) error {
	v, err := b.judge(ctx, seq)
	if err != nil {
		return err
	}
	if v != want {
		return fmt.Errorf("replay: %w: %d was given as %v, and the test says %v", ErrEndpoint, seq, want, v)
	}
	return nil
}

// next returns the Seq to test: the middle of the open range; if that was skipped, one
// quarter, then the other, then the eighths and so on; if no fraction is left, any
// entry that was not skipped.
func (b *bisection) next() (eventlog.Seq, bool) {
	open := uint64(b.Bad - b.Good - 1)
	if open == 0 {
		return 0, false
	}
	if len(b.skipped) == 0 {
		return b.Good + 1 + eventlog.Seq((open-1)/2), true
	}
	for depth := 1; depth <= bits.Len64(open); depth++ {
		parts := uint64(1) << depth
		for odd := uint64(1); odd < parts; odd += 2 {
			hi, lo := bits.Mul64(open, odd)
			at, _ := bits.Div64(hi, lo, parts)
			if seq := b.Good + 1 + eventlog.Seq(min(at, open-1)); !b.skipped[seq] {
				return seq, true
			}
		}
	}
	for seq := b.Good + 1; seq < b.Bad; seq++ {
		if !b.skipped[seq] {
			return seq, true
		}
	}
	return 0, false
}
