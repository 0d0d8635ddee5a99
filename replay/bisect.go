package replay

import (
	"context"
	"errors"
	"fmt"
	"math/bits"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
)

// Verdict is the answer to one test of a bisection.
type Verdict uint8

// The verdicts.
const (
	Good Verdict = iota + 1 // not wrong yet
	Bad                     // wrong
	Skip                    // cannot be told here
)

// String returns "good", "bad" or "skip".
func (v Verdict) String() string {
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

// Test judges the state at m. The fold is only lent. An error ends the
// bisection.
type Test func(ctx context.Context, m Moment, f *projection.Fold) (Verdict, error)

// ErrEndpoint says that an end of a bisection is not what it was given as.
var ErrEndpoint = errors.New("endpoint of the bisection does not hold")

// Bisection is what a bisection found: the entry at Bad is wrong, the one at
// Good is not, and what lies between was skipped.
type Bisection struct {
	Good, Bad eventlog.Seq
	Tests     int // how many were made, skipped ones and the ends included
	Skipped   int // how many of them could not tell
}

// Conclusive reports whether Bad is the first bad one. Otherwise the first bad
// one is any of Good+1 to Bad.
func (b Bisection) Conclusive() bool { return b.Bad == b.Good+1 }

// String tells the result in a line.
func (b Bisection) String() string {
	if b.Conclusive() {
		return fmt.Sprintf("%d is the first bad entry (%d tests)", b.Bad, b.Tests)
	}
	return fmt.Sprintf("the first bad entry is one of %d..%d, the others were skipped (%d tests)", b.Good+1, b.Bad, b.Tests)
}

// Bisect finds the first bad Seq after good and up to bad, with about
// log2(bad-good) tests. It assumes that the session turns from good to bad
// once; where it turns several times, one of the turns is found. Scan assumes
// nothing.
//
// Both ends are tested first: an end that is not what it was given as is
// [ErrEndpoint]. A good that is not before bad is [ErrSyntax]. When a place
// cannot be judged, others are tried, wide apart first; if all that is left was
// skipped, the result is not [Bisection.Conclusive].
func (r *Replay) Bisect(ctx context.Context, good, bad eventlog.Seq, test Test) (Bisection, error) {
	if good >= bad {
		return Bisection{}, syntax(fmt.Sprintf("%d..%d", good, bad),
			"good has to come before bad; to find where something was mended, exchange them and let the test call the mended state bad")
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
	skipped map[eventlog.Seq]bool // as many as tests that skipped
}

func (b *bisection) judge(ctx context.Context, seq eventlog.Seq) (Verdict, error) {
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

func (b *bisection) verify(ctx context.Context, seq eventlog.Seq, want Verdict) error {
	v, err := b.judge(ctx, seq)
	if err != nil {
		return err
	}
	if v != want {
		return fmt.Errorf("replay: %w: %d was given as %v, and the test says %v", ErrEndpoint, seq, want, v)
	}
	return nil
}

// next returns the Seq to test: the middle of what is open, or if that was
// skipped a quarter, then the other, then the eighths, and when no fraction is
// left anything that was not skipped.
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
