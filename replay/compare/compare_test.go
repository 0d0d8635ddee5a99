package compare_test

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay/compare"
	"github.com/sajou-dev/sajou-go/signal"
)

// tape is a recording in memory.
type tape []eventlog.Entry

func (tape) Name() string          { return "tape" }
func (t tape) Head() eventlog.Head { return eventlog.Head{Seq: eventlog.Seq(len(t))} }
func (t tape) Entries(_ context.Context, from eventlog.Seq) iter.Seq2[eventlog.Entry, error] {
	return func(yield func(eventlog.Entry, error) bool) {
		for _, e := range t[from-1:] {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// note is a signal of a tape.
type note struct {
	id, typ, text string
	at            time.Duration
}

func record(notes ...note) tape {
	var t tape
	for i, n := range notes {
		sig := signal.Signal{ID: n.id, Type: n.typ, Source: "test", Timestamp: signal.Float(n.at.Seconds() * 1000)}
		var o signal.Object
		o.Set("text", signal.Text(n.text))
		sig.Payload = o.Value()
		t = append(t, eventlog.Entry{Seq: eventlog.Seq(i + 1), At: n.at, Kind: eventlog.KindSignal, Data: sig.Append(nil)})
	}
	return t
}

func diff(t require.TestingT, left, right tape, by compare.By) *compare.RecordingDiff {
	d, err := compare.Recordings(context.Background(), left, right, by)
	require.NoError(t, err)
	return d
}

func lines(d *compare.RecordingDiff) (out []string) {
	for _, x := range d.Differences {
		out = append(out, fmt.Sprint(x.Kind, " ", x.Left, " ", x.Right, " ", x.Type, " at ", x.LeftState, " ", x.RightState))
	}
	return out
}

func ExampleRecordings() {
	left := record(note{"1", "plan", "a", 0}, note{"2", "call", "b", 40}, note{"3", "done", "c", 90})
	right := record(note{"1", "plan", "a", 0}, note{"3", "done", "d", 90})
	d, err := compare.Recordings(context.Background(), left, right, compare.BySignal)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(d.Same, "the same")
	for _, x := range d.Differences {
		fmt.Println(x.Kind, x.Left, x.Right, x.Type)
	}
	// Output:
	// 1 the same
	// onlyLeft 2 0 call
	// changed 3 2 done
}

func TestRecordings(t *testing.T) {
	const ms = time.Millisecond
	base := []note{{"1", "plan", "a", 0}, {"2", "call", "b", 40 * ms}, {"3", "call", "c", 90 * ms}, {"4", "done", "d", 99 * ms}}
	with := func(change func([]note) []note) tape { return record(change(slices.Clone(base))...) }
	left := record(base...)
	for _, c := range []struct {
		name  string
		by    compare.By
		right tape
		want  []string
		same  int
	}{
		{"equal", compare.BySignal, record(base...), nil, 4},
		{
			"dropped", compare.BySignal, with(func(n []note) []note { return slices.Delete(n, 1, 2) }),
			[]string{"onlyLeft 2 0 call at 2 1+40ms"},
			3,
		},
		{
			"inserted", compare.BySignal, with(func(n []note) []note { return slices.Insert(n, 1, note{"x", "error", "", 50 * ms}) }),
			[]string{"onlyRight 0 2 error at 1+40ms 2"},
			4,
		}, // entry 2 comes 40 ms later, before the 50 ms are over
		{
			"changed", compare.BySignal, with(func(n []note) []note { n[2].text = "z"; return n }),
			[]string{"changed 3 3 call at 3 3"},
			3,
		},
		{
			"reordered", compare.BySignal, with(func(n []note) []note { n[0], n[1] = n[1], n[0]; return n }),
			[]string{"reordered 1 2 plan at 1 0"},
			3,
		},
		{
			"by number", compare.BySeq, with(func(n []note) []note { return slices.Delete(n, 1, 2) }),
			[]string{"changed 2 2 call at 2 2", "changed 3 3 call at 3 3", "onlyLeft 4 0 done at 4 3+9ms"},
			1,
		},
		{
			"by time", compare.ByTime, with(func(n []note) []note { n[1].at++; return n }),
			[]string{"onlyLeft 2 0 call at 2 1+40ms", "onlyRight 0 2 call at 2+1ns 2"},
			3,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := diff(t, left, c.right, c.by)
			assert.Equal(t, c.want, lines(d))
			assert.Equal(t, c.same, d.Same)
			assert.Zero(t, d.Retimed)
		})
	}
}

// The same signals at other times are the same, and the clocks of the recordings do not
// matter.
func TestRetimed(t *testing.T) {
	left := record(note{"1", "plan", "a", 0}, note{"2", "call", "b", 40}, note{"3", "done", "c", 90})
	right := record(note{"1", "plan", "a", 1000}, note{"3", "done", "c", 1100})
	d := diff(t, left, right, compare.BySignal)
	assert.Equal(t, 2, d.Same)
	assert.Equal(t, 2, d.Retimed)
	assert.Equal(t, []string{"onlyLeft 2 0 call at 2 1+40ns"}, lines(d))
}

// Two runs have no id in common, so their signals are told apart by what they say.
func TestByContent(t *testing.T) {
	left := record(note{"l1", "plan", "a", 0}, note{"l2", "call", "b", 40}, note{"l3", "call", "c", 90})
	right := record(note{"r1", "plan", "a", 0}, note{"r2", "call", "x", 40}, note{"r3", "call", "c", 90}, note{"r4", "done", "", 95})
	d := diff(t, left, right, compare.BySignal)
	assert.True(t, d.ByContent)
	assert.Equal(t, []string{"changed 2 2 call at 2 2", "onlyRight 0 4 done at 3+5ns 4"}, lines(d))
	assert.Equal(t, 2, d.Same)
}

// A tape that is changed in known ways has these differences and no others.
func TestRecordingsProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 40).Draw(t, "entries")
		var left, right []note
		want := map[compare.EntryDifferenceKind]int{}
		var first string
		found := func(kind compare.EntryDifferenceKind) {
			if want[kind]++; first == "" {
				first = string(kind)
			}
		}
		for i := range n {
			x := note{fmt.Sprint("id", i), rapid.SampledFrom([]string{"a", "b"}).Draw(t, "type"), rapid.SampledFrom([]string{"x", "y"}).Draw(t, "text"), time.Duration(i)}
			switch rapid.IntRange(0, 9).Draw(t, "change") {
			case 0:
				left = append(left, x)
				found(compare.OnlyLeft)
			case 1:
				right = append(right, x)
				found(compare.OnlyRight)
			case 2:
				left = append(left, x)
				x.text += "!"
				right = append(right, x)
				found(compare.Changed)
			default:
				left, right = append(left, x), append(right, x)
			}
		}
		d := diff(t, record(left...), record(right...), compare.BySignal)
		if d.ByContent {
			return // nothing in common: aligned by what the signals say
		}
		for kind, count := range want {
			assert.Equal(t, count, d.Count(kind), kind)
		}
		total := 0
		for _, c := range d.Types() {
			total += c.Total()
		}
		assert.Equal(t, want[compare.OnlyLeft]+want[compare.OnlyRight]+want[compare.Changed], total)
		back := diff(t, record(right...), record(left...), compare.BySignal)
		assert.Equal(t, d.Same, back.Same, "the other way round")
		assert.Equal(t, d.Count(compare.OnlyLeft), back.Count(compare.OnlyRight))
		if first == string(compare.Changed) {
			assert.Equal(t, compare.Changed, d.Differences[0].Kind)
		}
		for _, x := range d.Differences {
			assert.LessOrEqual(t, x.LeftState.Seq, eventlog.Seq(len(left)))
			assert.LessOrEqual(t, x.RightState.Seq, eventlog.Seq(len(right)))
		}
	})
}

func TestErrors(t *testing.T) {
	_, err := compare.Recordings(t.Context(), tape{}, tape{}, "colour")
	require.ErrorContains(t, err, `cannot align recordings by "colour"; use signal, seq or time`)
	_, err = compare.Recordings(t.Context(), long{}, tape{}, compare.BySignal)
	var tooLong *compare.TooLongError
	require.ErrorAs(t, err, &tooLong)
	assert.EqualValues(t, compare.MaxEntries+1, tooLong.Entries)
	_, err = compare.Recordings(t.Context(), short{record(note{"1", "a", "", 0})}, tape{}, compare.BySignal)
	require.ErrorContains(t, err, `the entries of "tape" end after 1, before 2`)
}

// long is a recording that is too long.
type long struct{ tape }

func (long) Head() eventlog.Head { return eventlog.Head{Seq: compare.MaxEntries + 1} }

// short is a recording with fewer entries than its head says.
type short struct{ tape }

func (short) Head() eventlog.Head { return eventlog.Head{Seq: 2} }

// Folds without a stage have no pictures to compare.
func TestPicturesWithoutAStage(t *testing.T) {
	bare := projection.NewFold(projection.Set{}, eventlog.Hash{})
	diff, err := compare.Pictures(bare, bare)
	require.NoError(t, err)
	require.Nil(t, diff)
}
