package bisect_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/bisect"
)

const ms = time.Millisecond

// tape is a session in memory.
type tape struct{ entries []eventlog.Entry }

func (s *tape) Name() string           { return "tape" }
func (s *tape) Genesis() eventlog.Hash { return eventlog.Hash{1} }
func (s *tape) Head() eventlog.Head {
	if len(s.entries) == 0 {
		return eventlog.Head{Hash: s.Genesis()}
	}
	return s.entries[len(s.entries)-1].Head()
}

func (s *tape) Entries(ctx context.Context, from eventlog.Seq) iter.Seq2[eventlog.Entry, error] {
	return func(yield func(eventlog.Entry, error) bool) {
		for _, e := range s.entries[min(int(from)-1, len(s.entries)):] {
			if err := ctx.Err(); err != nil {
				yield(eventlog.Entry{}, err)
				return
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}

// add appends an entry that comes a pause after the last. Its words are an order to the
// lamp.
func (s *tape) add(pause time.Duration, order string) *tape {
	e := eventlog.Entry{Seq: s.Head().Seq + 1, Kind: eventlog.KindSignal, At: pause, Data: []byte(order)}
	if n := len(s.entries); n > 0 {
		e.At += s.entries[n-1].At
	}
	binary.BigEndian.PutUint64(e.Hash[:], uint64(e.Seq)*0x9E3779B97F4A7C15)
	s.entries = append(s.entries, e)
	return s
}

// lamp is a state that changes at entries, at boundaries, and continuously. Its orders
// are "set LEVEL", "fade LEVEL MS" and "hide AFTER-MS FOR-MS"; anything else changes
// nothing.
type lamp struct {
	Now                  time.Duration
	Began, Ends          time.Duration // of a fade
	From, To             float64
	HideFrom, HideBefore time.Duration
}

func (l *lamp) Apply(e *eventlog.Entry) {
	l.Now = e.At
	var level float64
	var a, b int
	switch {
	case scan(e, "set %f", &level):
		l.From, l.To, l.Began, l.Ends = level, level, e.At, e.At
	case scan(e, "fade %f %d", &level, &a):
		l.From, l.To, l.Began, l.Ends = l.level(), level, e.At, e.At+time.Duration(a)*ms
	case scan(e, "hide %d %d", &a, &b):
		l.HideFrom = e.At + time.Duration(a)*ms
		l.HideBefore = l.HideFrom + time.Duration(b)*ms
	}
}

func scan(e *eventlog.Entry, format string, into ...any) bool {
	n, _ := fmt.Sscanf(string(e.Data), format, into...)
	return n == len(into)
}

func (l *lamp) Advance(at time.Duration) { l.Now = max(l.Now, at) }

func (l *lamp) NextBoundary() (next time.Duration, ok bool) {
	for _, at := range []time.Duration{l.Ends, l.HideFrom, l.HideBefore} {
		if at > l.Now && (!ok || at < next) {
			next, ok = at, true
		}
	}
	return next, ok
}

func (l *lamp) hidden() bool { return l.Now >= l.HideFrom && l.Now < l.HideBefore }

func (l *lamp) level() float64 {
	if l.Now >= l.Ends {
		return l.To
	}
	return l.From + (l.To-l.From)*float64(l.Now-l.Began)/float64(l.Ends-l.Began)
}

// shown is what a test sees of the lamp.
func (l *lamp) shown() string {
	if l.hidden() {
		return "hidden"
	}
	return fmt.Sprintf("%.6f", l.level())
}

func (l *lamp) Append(dst []byte) []byte {
	data, err := json.Marshal(l)
	if err != nil {
		panic(err)
	}
	return append(dst, data...)
}

func (l *lamp) View() any { return map[string]any{"shown": l.shown()} }

var lamps = projection.Set{{
	Name: "lamp", Version: 1,
	New: func() projection.State { return new(lamp) },
	Restore: func(data []byte) (projection.State, error) {
		l := new(lamp)
		return l, json.Unmarshal(data, l)
	},
}}

func lampOf(f *projection.Fold) *lamp { return f.State("lamp").(*lamp) }

// judging is a test of what is shown that sees nothing else.
func judging(judge func(shown string) bisect.TestResult) bisect.Test {
	return bisect.Test{
		Identity: "shown",
		Input: func(_ context.Context, s *replay.ScanStep) (bisect.InputHash, error) {
			return bisect.HashInput([]byte(lampOf(s.Fold).shown())), nil
		},
		Judge: func(_ context.Context, _ replay.Moment, f *projection.Fold) (bisect.TestResult, error) {
			return judge(lampOf(f).shown()), nil
		},
	}
}

// exact is the same test for every moment.
func exact(judge func(shown string) bisect.TestResult) bisect.Test {
	return bisect.Exact(replay.NeedsState, func(_ context.Context, s *replay.ScanStep) (bisect.TestResult, error) {
		return judge(lampOf(s.Fold).shown()), nil
	})
}

// badIf is a judge that finds some of what is shown bad.
func badIf(bad func(shown string) bool) func(string) bisect.TestResult {
	return func(shown string) bisect.TestResult {
		if bad(shown) {
			return bisect.Bad
		}
		return bisect.Good
	}
}

func above(level float64) func(string) bisect.TestResult {
	return badIf(func(shown string) bool {
		var x float64
		_, err := fmt.Sscanf(shown, "%f", &x)
		return err == nil && x > level
	})
}

var hidden = badIf(func(shown string) bool { return shown == "hidden" })

// find runs a search over a whole tape and returns its answer in one line.
func find(t testing.TB, s *tape, test bisect.Test, cfg bisect.Config) string {
	out, err := bisect.Find(t.Context(), replay.Open(s, lamps, nil), replay.Moment{}, replay.Moment{Seq: s.Head().Seq}, test, cfg)
	require.NoError(t, err)
	return told(out)
}

func told(out *bisect.Findings) string {
	text := answer(out.Search)
	if in := out.Onset; in != nil {
		text += fmt.Sprintf("; good at %v, bad at %v (%v)", in.Good, in.Bad, in.At)
		if in.ByEntry {
			text += " by the entry"
		}
		if in.Skipped {
			text += " with skips"
		}
	}
	return text
}
