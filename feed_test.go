package sajou

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/eventlog"
)

// What a reader takes out of its feed, whatever happens to it in between, always
// fits what it has: news number n comes to who has n-1, and a whole view to anybody. It
// is never told anything twice, nor of what lies before it began, and in the end
// it has everything.
func TestFeedFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		settings := agents.Settings{
			QueueDepth: rapid.IntRange(1, 4).Draw(t, "depth"),
			Pressure: rapid.SampledFrom([]agents.Backpressure{
				agents.PressureDefer, agents.PressureShed, agents.PressureDrop,
			}).Draw(t, "pressure"),
		}
		told := eventlog.Seq(rapid.IntRange(0, 3).Draw(t, "begun")) // by the world
		f := newFeed("a", told, settings)
		has, late := told, told // the reader; the dispatcher
		var now, at time.Duration
		fetching := eventlog.Seq(0)
		take := func() (more bool) {
			d, ok, up, err := f.next(now)
			switch {
			case err != nil:
				t.Fatal(err)
			case ok:
				if n := eventlog.Seq(d.Number); !d.Delta.Whole() && n != has+1 || n <= has && !d.Delta.Whole() || n < has || d.At > now {
					t.Fatalf("number %d (whole: %v, of %v) for who has %d at %v", n, d.Delta.Whole(), d.At, has, now)
				}
				has = eventlog.Seq(d.Number)
			case up.whole:
				if fetching != 0 {
					t.Fatal("two get a whole view at once")
				}
				fetching = told
				f.replace(news{Delivery: delivery(told, at, true), seq: told})
			}
			return ok
		}
		dispatch := func() {
			if late < told {
				late++
				f.put(news{Delivery: delivery(late, at, false), seq: late})
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

func delivery(n eventlog.Seq, at time.Duration, whole bool) agents.Delivery {
	d := agents.Delivery{Agent: "a", At: at, Number: uint64(n), Delta: agents.Delta{ViewSeq: uint64(n)}}
	if whole {
		d.Delta.Patches = []agents.Operation{{Op: "replace", Path: "/visible_entities"}, {Op: "replace", Path: "/visible_relationships"}}
	}
	return d
}
