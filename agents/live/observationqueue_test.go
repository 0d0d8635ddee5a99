package live

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/flow"
	"github.com/sajou-dev/sajou-go/agents/jsondoc"
	"github.com/sajou-dev/sajou-go/agents/view"
	"github.com/sajou-dev/sajou-go/eventlog"
)

// Each delta that a reader takes from its queue fits the view that it has: delta n
// follows delta n-1, and a full view fits always. No delta is delivered twice, none of
// an entry before the reader began, and in the end the reader has the newest view.
func TestQueueFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		settings := agents.Settings{
			QueueDepth: rapid.IntRange(1, 4).Draw(t, "depth"),
			Pressure: rapid.SampledFrom([]flow.Backpressure{
				flow.PressureDefer, flow.PressureShed, flow.PressureDrop,
			}).Draw(t, "pressure"),
		}
		told := eventlog.Seq(rapid.IntRange(0, 3).Draw(t, "begun")) // by the world
		f := newObservationQueue("a", told, settings)
		has, late := told, told // the reader; the dispatcher
		var now, at time.Duration
		fetching := eventlog.Seq(0)
		take := func() (more bool) {
			d, ok, up, err := f.next(now)
			switch {
			case err != nil:
				t.Fatal(err)
			case ok:
				if n := eventlog.Seq(d.Number); !d.Delta.IsFullView() && n != has+1 || n <= has && !d.Delta.IsFullView() || n < has || d.At > now {
					t.Fatalf("number %d (whole: %v, of %v) for who has %d at %v", n, d.Delta.IsFullView(), d.At, has, now)
				}
				has = eventlog.Seq(d.Number)
			case up.whole:
				if fetching != 0 {
					t.Fatal("two get a whole view at once")
				}
				fetching = told
				f.replace(delivery{Delivery: deliveryOf(told, at, true), seq: told})
			}
			return ok
		}
		dispatch := func() {
			if late < told {
				late++
				f.put(delivery{Delivery: deliveryOf(late, at, false), seq: late})
			}
		}
		release := func(whole bool) {
			if fetching == 0 {
				return
			}
			for whole && late < fetching { // Settle waits for that
				dispatch()
			}
			f.release(whole)
			fetching = 0
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 9).Draw(t, "step") {
			case 0, 1, 2:
				told++
			case 3, 4, 5:
				if rapid.Bool().Draw(t, "slow") {
					at = max(at, now+time.Duration(rapid.IntRange(0, 3).Draw(t, "latency")))
				}
				dispatch()
			case 6, 7:
				take()
			case 8:
				release(rapid.Bool().Draw(t, "whole"))
			default:
				now++
			}
		}
		release(false)
		for now = at; late < told; {
			dispatch()
		}
		for range 3 { // the second is what drop_newest waits for
			for take() || fetching != 0 {
				release(true)
			}
			if has < told {
				told++
				dispatch()
			}
		}
		if has != told {
			t.Fatalf("the reader has %d of %d", has, told)
		}
	})
}

func deliveryOf(n eventlog.Seq, at time.Duration, whole bool) agents.Delivery {
	d := agents.Delivery{Agent: "a", At: at, Number: uint64(n), Delta: view.Delta{ViewSeq: uint64(n)}}
	if whole {
		d.Delta.Patches = []jsondoc.Operation{{Op: "replace", Path: "/visible_entities"}, {Op: "replace", Path: "/visible_relationships"}}
	}
	return d
}

// A full view replaces the deltas up to its entry, that of the entry itself included.
func TestFullViewCoversItsOwnEntry(t *testing.T) {
	q := newObservationQueue("a", 0, agents.Settings{QueueDepth: 4})
	q.replace(delivery{Delivery: deliveryOf(5, 0, true), seq: 5})
	waits, lost, _ := q.put(delivery{Delivery: deliveryOf(5, 0, false), seq: 5})
	assert.Zero(t, waits)
	assert.Zero(t, lost)
	d, ok, _, err := q.next(0)
	require.NoError(t, err)
	assert.True(t, ok && d.Delta.IsFullView())
	_, ok, _, err = q.next(0)
	require.NoError(t, err)
	assert.False(t, ok, "the delta of the view's own entry was delivered too")
}

// With drop_newest a reader that lost a delta first gets all that had room. Only a
// delta after that makes a full view due.
func TestDropNewestWaitsForAnotherDelta(t *testing.T) {
	q := newObservationQueue("a", 0, agents.Settings{QueueDepth: 1, Pressure: flow.PressureDrop})
	put := func(n eventlog.Seq) DropReason {
		_, lost, reason := q.put(delivery{Delivery: deliveryOf(n, 0, false), seq: n})
		if n > 1 {
			assert.Equal(t, 1, lost, "delta %d", n)
		}
		return reason
	}
	put(1)
	assert.Equal(t, DeltaDropped, put(2))
	assert.Equal(t, DeltaReplaced, put(3))
	d, ok, _, err := q.next(0)
	require.NoError(t, err)
	assert.True(t, ok)
	assert.EqualValues(t, 1, d.Number)
	_, ok, up, err := q.next(0)
	require.NoError(t, err)
	assert.False(t, ok || up.whole, "nothing has happened since the queue was emptied")
	assert.Equal(t, DeltaReplaced, put(4))
	_, ok, up, err = q.next(0)
	require.NoError(t, err)
	assert.False(t, ok)
	assert.True(t, up.whole)
}
