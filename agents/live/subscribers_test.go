package live

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/flow"
	"github.com/sajou-dev/sajou-go/agents/jsondoc"
	"github.com/sajou-dev/sajou-go/agents/view"
	"github.com/sajou-dev/sajou-go/eventlog"
)

// newsOf is the delta that takes a reader from view n to the next one.
func newsOf(agent string, n eventlog.Seq) delivery {
	return delivery{agents.Delivery{Agent: agent, Number: uint64(n) + 1, Delta: view.Delta{ViewSeq: uint64(n)}}, n + 10}
}

// takeAll takes what a queue has for its reader, and returns the view_seqs.
func takeAll(t *testing.T, f *observationQueue) (seqs []uint64) {
	t.Helper()
	for {
		d, ok, _, err := f.next(time.Hour)
		require.NoError(t, err)
		if !ok {
			return seqs
		}
		seqs = append(seqs, d.Delta.ViewSeq)
	}
}

// undelivered keeps what a world reports about observations.
type undelivered struct {
	waiting []int
	lost    map[DropReason]int
}

func (u *undelivered) Delivered(string, string, time.Duration) {}
func (u *undelivered) Undelivered(_, _ string, reason DropReason, n int) {
	if u.lost == nil {
		u.lost = map[DropReason]int{}
	}
	u.lost[reason] += n
}
func (u *undelivered) ObservationsWaiting(_, _ string, n int) { u.waiting = append(u.waiting, n) }

// A reader that resumes gets what it has missed, if all of it is kept and has room. One
// that has the first view gets it again, because it may have none.
func TestSubscribersResume(t *testing.T) {
	settings := agents.Settings{QueueDepth: 4}
	r := newSubscribers()
	assert.Nil(t, r.resume("a", 0, settings), "nothing is known of the agent")
	for n := range eventlog.Seq(5) {
		r.deliver("world", newsOf("a", n), nil)
	}
	r.deliver("world", newsOf("b", 9), nil)
	for seen, want := range map[uint64][]uint64{
		4: nil, 3: {4}, 2: {3, 4}, 1: {2, 3, 4},
	} {
		f := r.resume("a", seen, settings)
		require.NotNil(t, f, "%d", seen)
		assert.Equal(t, seen, f.viewSeq)
		assert.Equal(t, want, takeAll(t, f))
	}
	assert.Nil(t, r.resume("a", 0, settings), "five deltas have no room")
	f := r.resume("a", 0, agents.Settings{QueueDepth: 5})
	require.NotNil(t, f)
	assert.Equal(t, []uint64{0, 1, 2, 3, 4}, takeAll(t, f))
	assert.Nil(t, r.resume("a", 2, agents.Settings{QueueDepth: 1}))
	assert.NotNil(t, r.resume("a", 3, agents.Settings{QueueDepth: 1}))
	assert.Nil(t, r.resume("a", 5, settings), "a view that the agent never had")
	assert.Nil(t, r.resume("b", 1, settings))
	assert.NotNil(t, r.resume("b", 9, settings))

	r.gone("a", 15)
	assert.Nil(t, r.resume("a", 4, settings), "the deltas of an agent that has left are not kept")
}

// The newest deltas are kept up to a number and a size; the newest one is kept always.
func TestSubscribersKeep(t *testing.T) {
	kept := func(r *subscribers) (seqs []uint64) {
		p := r.byAgent["a"]
		size := 0
		for _, n := range p.recent {
			seqs = append(seqs, n.Delta.ViewSeq)
			size += sizeOf(n.Delta)
		}
		assert.Equal(t, size, p.bytes)
		return seqs
	}
	r := newSubscribers()
	for n := range eventlog.Seq(64) {
		r.deliver("world", newsOf("a", n), nil)
	}
	assert.Len(t, kept(&r), 64)
	r.deliver("world", newsOf("a", 64), nil)
	assert.Equal(t, uint64(1), kept(&r)[0])
	assert.Len(t, kept(&r), 64)

	op := jsondoc.Operation{Op: "add", Path: "/p"}
	large := func(n eventlog.Seq, size int) delivery {
		d := newsOf("a", n)
		op.Value = []byte(strings.Repeat("x", size-128-32-len("add")-len("/p")))
		d.Delta.Patches = []jsondoc.Operation{op}
		require.Equal(t, size, sizeOf(d.Delta))
		return d
	}
	r = newSubscribers()
	r.deliver("world", large(0, 32<<10), nil)
	r.deliver("world", large(1, 32<<10), nil)
	assert.Equal(t, []uint64{0, 1}, kept(&r), "64 KiB")
	r.deliver("world", large(2, 32<<10+1), nil)
	assert.Equal(t, []uint64{2}, kept(&r), "one byte more than fits beside another")
	r.deliver("world", large(3, 100<<10), nil)
	assert.Equal(t, []uint64{3}, kept(&r))
	both := newsOf("a", 4)
	both.Delta.Patches = []jsondoc.Operation{{Op: "ab", Path: "cde", Value: []byte("fghi")}, {Op: "a"}}
	assert.Equal(t, 128+32+2+3+4+32+1, sizeOf(both.Delta))
}

// The deltas that wait for each reader and those that were lost are reported. A reader that has
// gone receives nothing more; a reader of a later registration stays.
func TestSubscribersDeliver(t *testing.T) {
	var told undelivered
	r := newSubscribers()
	settings := agents.Settings{QueueDepth: 2, Pressure: flow.PressureShed}
	old, late, other := r.join("a", 0, settings), r.join("a", 11, agents.Settings{QueueDepth: 9}), r.join("b", 0, settings)
	r.deliver("world", newsOf("a", 0), &told) // of entry 10: before the second reader began
	r.deliver("world", newsOf("a", 2), &told)
	r.deliver("world", newsOf("a", 3), &told)
	assert.Equal(t, []int{1, 0, 2, 1, 0, 2}, told.waiting)
	assert.Equal(t, map[DropReason]int{DeltaShed: 3}, told.lost)
	assert.Zero(t, other.waits())
	assert.Equal(t, 2, late.waits())

	// An agent that left by the entry 11 and came back by it keeps its new reader.
	r.gone("a", 11)
	_, _, _, err := old.next(0)
	require.ErrorIs(t, err, ErrLeft)
	assert.Equal(t, []uint64{2, 3}, takeAll(t, late))
	r.gone("a", 12)
	_, _, _, err = late.next(0)
	require.ErrorIs(t, err, ErrLeft)
	assert.NotContains(t, r.byAgent, "a")
	r.gone("a", 99)

	r.deliver("world", newsOf("b", 0), nil)
	r.part(other)
	_, _, _, err = other.next(0)
	require.ErrorIs(t, err, ErrLeft)
	assert.Empty(t, r.byAgent["b"].queues)
	waits, lost, _ := other.put(newsOf("b", 1))
	assert.Zero(t, waits)
	assert.Zero(t, lost, "a reader that was closed loses nothing")
	r.part(old) // its agent has gone
}

// The bounds of an agent's readers follow its settings.
func TestSubscribersLimit(t *testing.T) {
	r := newSubscribers()
	f := r.join("a", 0, agents.Settings{QueueDepth: 1})
	f.limit(agents.Settings{QueueDepth: 3, Pressure: flow.PressureDrop})
	for n := range eventlog.Seq(5) {
		r.deliver("world", newsOf("a", n), nil)
	}
	assert.Equal(t, []uint64{0, 1, 2}, takeAll(t, f))
}

// A reader that was sent nothing waits for the time of the deltas in flight, and gets a full
// view before them. While one goroutine fetches the view, no other one does.
func TestQueueWaits(t *testing.T) {
	q := newObservationQueue("a", 0, agents.Settings{QueueDepth: 1, Pressure: flow.PressureDefer})
	at := func(n eventlog.Seq, when time.Duration) delivery {
		d := newsOf("a", n)
		d.At = when
		return d
	}
	next := func(now time.Duration) (uint64, bool, nextUp) {
		t.Helper()
		d, ok, up, err := q.next(now)
		require.NoError(t, err)
		return d.Delta.ViewSeq, ok, up
	}
	_, ok, up := next(0)
	assert.False(t, ok || up.timed || up.whole)
	_, timed := q.nextAt()
	assert.False(t, timed)
	_, lost, _ := q.put(at(1, 30))
	assert.Zero(t, lost)
	select {
	case <-up.wake:
	default:
		t.Error("the reader is not woken")
	}
	when, timed := q.nextAt()
	assert.True(t, timed)
	assert.Equal(t, time.Duration(30), when)
	_, ok, up = next(29)
	assert.True(t, !ok && up.timed)
	assert.Equal(t, time.Duration(30), up.at)
	_, lost, reason := q.put(at(2, 40))
	assert.Equal(t, 1, lost)
	assert.Equal(t, DeltaDeferred, reason)
	_, lost, reason = q.put(at(3, 40))
	assert.Equal(t, 1, lost)
	assert.Equal(t, DeltaReplaced, reason)
	seq, ok, _ := next(30)
	assert.True(t, ok)
	assert.Equal(t, uint64(1), seq)
	assert.Equal(t, uint64(1), q.viewSeq)

	_, ok, up = next(30)
	assert.True(t, !ok && up.whole)
	_, ok, up = next(30)
	assert.False(t, ok || up.whole, "another reader fetches it")
	q.replace(at(4, 50))
	_, ok, up = next(60)
	assert.False(t, ok || up.timed, "it is held until the view is released")
	q.release(true)
	when, timed = q.nextAt()
	assert.True(t, timed)
	assert.Equal(t, time.Duration(50), when)
	_, ok, up = next(49)
	assert.True(t, !ok && up.timed && up.at == 50)
	seq, ok, _ = next(50)
	assert.True(t, ok)
	assert.Equal(t, uint64(4), seq)
	assert.Equal(t, eventlog.Seq(14), q.passed)

	q.put(at(5, 50))
	q.put(at(6, 50))
	seq, _, _ = next(50)
	assert.Equal(t, uint64(5), seq)
	_, _, up = next(50)
	require.True(t, up.whole)
	q.release(false) // it could not be fetched
	_, _, up = next(50)
	assert.True(t, up.whole, "and is due again")
}

// The outbox keeps the outcomes with deliveries, cancellations or changes of readers, in order,
// until it has ended.
func TestOutbox(t *testing.T) {
	b := newOutbox()
	some := agents.Applied{Deliveries: []agents.Delivery{{Agent: "a"}}}
	b.put(notification{seq: 1}) // has no delivery
	assert.Empty(t, b.filled)
	assert.Zero(t, b.newest())
	for i, item := range []notification{
		{out: some}, {passed: []agents.Cancellation{{}}}, {out: agents.Applied{Cancellations: []agents.Cancellation{{}}}}, {joined: "a"}, {left: "a"},
	} {
		item.seq = eventlog.Seq(i + 2)
		b.put(item)
		assert.Equal(t, item.seq, b.newest())
	}
	assert.Len(t, b.filled, 1)
	taken := b.take()
	assert.Len(t, taken, 5)
	assert.True(t, slices.IsSortedFunc(taken, func(x, y notification) int { return int(x.seq) - int(y.seq) }))
	assert.Empty(t, b.take())

	ok, _, err := b.settled(0)
	assert.True(t, ok)
	require.NoError(t, err)
	ok, change, err := b.settled(3)
	assert.False(t, ok)
	require.NoError(t, err)
	b.note(2)
	<-change
	ok, change, _ = b.settled(3)
	assert.False(t, ok)
	b.note(3)
	<-change
	ok, _, _ = b.settled(3)
	assert.True(t, ok)

	require.NoError(t, b.ended())
	_, change, _ = b.settled(9)
	gone, later := errors.New("the disk has gone"), errors.New("later")
	b.put(notification{seq: 9, joined: "b"})
	b.end(gone)
	<-change
	<-b.over
	b.end(later)
	assert.Equal(t, gone, b.ended())
	assert.Empty(t, b.take(), "nothing more is delivered")
	b.put(notification{seq: 10, joined: "b"})
	assert.Empty(t, b.take())
	assert.Equal(t, eventlog.Seq(9), b.newest())
	ok, _, err = b.settled(9)
	assert.False(t, ok)
	assert.Equal(t, gone, err)
}

// Submissions are taken all at once and in their order; one that was taken cannot be
// withdrawn.
func TestSubmissionQueue(t *testing.T) {
	var q submissionQueue
	all := []*pendingSubmission{{}, {}, {}}
	for _, c := range all {
		q.put(c)
	}
	assert.True(t, q.withdraw(all[1]))
	assert.False(t, q.withdraw(all[1]))
	taken := q.take()
	require.Len(t, taken, 2)
	assert.Same(t, all[0], taken[0])
	assert.Same(t, all[2], taken[1])
	assert.Empty(t, q.take())
	assert.False(t, q.withdraw(all[0]))
}

// A broadcast wakes all that wait, once.
func TestBroadcast(t *testing.T) {
	var b broadcast
	b.send() // without a waiting goroutine
	first, second := b.wait(), b.wait()
	b.send()
	<-first
	<-second
	select {
	case <-b.wait():
		t.Error("a wait that began later is over")
	default:
	}
}

// The key of a request names its agent and request in one way, also where their ids hold
// the separator, and fits the log.
func TestIntentKey(t *testing.T) {
	assert.Equal(t, "intent/a/1", intentKey("a", "1"))
	assert.Equal(t, "intent/a~1b/1", intentKey("a/b", "1"))
	assert.Equal(t, "intent/a/b/1", intentKey("a", "b/1"))
	assert.Equal(t, "intent/~0~1/~", intentKey("~/", "~"))
	fits := strings.Repeat("r", eventlog.MaxKey-len("intent/a/"))
	assert.Equal(t, "intent/a/"+fits, intentKey("a", fits))
	long := intentKey("a", fits+"r")
	assert.Len(t, long, len("intent/")+64)
	assert.NotContains(t, long[len("intent/"):], "/")
	assert.NotEqual(t, long, intentKey("a", fits+"s"))
}

// The newest answers are at hand: at least as many as one map holds, and at most twice
// as many.
func TestAnswersAtHand(t *testing.T) {
	var k keyedAnswers
	name := func(i int) string {
		return strings.Repeat("r", 1+i%7) + string(rune('a'+i%26)) + time.Duration(i).String()
	}
	k.none = map[string]struct{}{intentKey("a", name(0)): {}}
	assert.True(t, k.absent(intentKey("a", name(0))))
	for i := range answersAtHand {
		k.note(0, "a", name(i), agents.FinalOutcome{GlobalSeq: uint64(i)})
	}
	assert.False(t, k.absent(intentKey("a", name(0))), "it is answered now")
	assert.Len(t, k.newer, answersAtHand)
	assert.Empty(t, k.older)
	for i := range answersAtHand {
		k.note(0, "b", name(i), agents.FinalOutcome{GlobalSeq: uint64(i)})
	}
	for i := range answersAtHand {
		for _, agent := range []string{"a", "b"} {
			a, ok := k.Answered(agent, name(i))
			require.True(t, ok)
			require.Equal(t, uint64(i), a.GlobalSeq)
		}
	}
	k.note(0, "c", "1", agents.FinalOutcome{})
	assert.Len(t, k.newer, 1)
	assert.Len(t, k.older, answersAtHand)
	assert.Contains(t, k.older, intentKey("b", name(7)))
	first, second := errors.New("first"), errors.New("second")
	k.fail(nil)
	require.NoError(t, k.err)
	k.fail(first)
	k.fail(second)
	assert.Equal(t, first, k.err)
	k.none = map[string]struct{}{"x": {}}
	k.begin(nil)
	require.NoError(t, k.err)
	assert.Empty(t, k.none)
}

// A turn takes a search before it for its own if every answer since is at hand, and none of
// them is of the request.
func TestSearchBeforeTheTurn(t *testing.T) {
	var k keyedAnswers
	k.newerTo, k.none = 10, map[string]struct{}{}
	k.drop(10)
	assert.False(t, k.all.Load())
	taken := func(reqID string, upTo eventlog.Seq, absent bool) bool {
		clear(k.none)
		key := intentKey("a", reqID)
		k.use(lookup{key: key, upTo: upTo, absent: absent})
		return k.absent(key)
	}
	assert.False(t, taken("1", 9, true), "entry 10 may have the answer")
	assert.True(t, taken("1", 10, true))
	assert.False(t, taken("1", 10, false))

	k.note(10, "a", "1", agents.FinalOutcome{})
	assert.False(t, taken("1", 10, true), "it is answered by entry 11")
	assert.True(t, taken("2", 10, true))

	fill := func(from int) { // each entry from one on answers another request, until a map begins
		for i := range answersAtHand {
			k.note(eventlog.Seq(from+i-1), "b", strconv.Itoa(from+i), agents.FinalOutcome{})
		}
	}
	fill(12) // the last of them begins the second map
	require.Len(t, k.newer, 1)
	assert.True(t, taken("2", 10, true), "both maps together begin behind entry 10")
	assert.False(t, taken("1", 10, true), "the older map has it")
	fill(12 + answersAtHand)
	require.Len(t, k.newer, 1)
	begin := eventlog.Seq(12 + answersAtHand - 2) // the older map's first answer is of the next entry
	assert.False(t, taken("1", begin-1, true), "the answer is forgotten")
	assert.False(t, taken("2", begin-1, true))
	assert.True(t, taken("2", begin, true))

	// Where no agent was before, every answer is at hand until the older map is dropped.
	k = keyedAnswers{none: map[string]struct{}{}}
	k.drop(0)
	for i := range 2 * answersAtHand {
		require.True(t, k.all.Load())
		k.note(eventlog.Seq(i), "b", strconv.Itoa(i), agents.FinalOutcome{})
	}
	k.note(eventlog.Seq(2*answersAtHand), "b", "another", agents.FinalOutcome{})
	assert.False(t, k.all.Load())
}
