package eventlog_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/eventlog"
)

// beats makes n entries with the text what.
func beats(what string, n int) []eventlog.Draft {
	return slices.Repeat([]eventlog.Draft{{Kind: eventlog.KindBeat, Data: text(what)}}, n)
}

// awaitWriters returns a function that waits until n writers of the session run or
// wait. It is called once for each writer, before the next one starts.
func awaitWriters(s *eventlog.Session) (await func(n int), stop func()) {
	joined := make(chan int, 64) // more than the writers of a round
	s.OnJoin(func(waiting int) {
		select {
		case joined <- waiting:
		default:
		}
	})
	return func(n int) {
		for s.Waiting() < n {
			<-joined
		}
	}, func() { s.OnJoin(nil) }
}

// together runs writers as one round, in their order; the first leads it. They queue
// behind a writer that stages nothing.
func together(t *testing.T, s *eventlog.Session, writers ...func()) {
	t.Helper()
	within(t, "a round", func() {
		var wg sync.WaitGroup
		queued, stop := awaitWriters(s)
		defer stop()
		begun, gathered := make(chan struct{}), make(chan struct{})
		wg.Go(func() {
			err := s.Write(t.Context(), func(*eventlog.Round) {
				close(begun)
				<-gathered
			})
			if err != nil {
				t.Error(err)
			}
		})
		<-begun
		for i, w := range writers {
			wg.Go(w)
			queued(i + 2)
		}
		close(gathered)
		wg.Wait()
	})
}

// puts is must for the goroutines of a test.
func puts(t *testing.T, s *eventlog.Session, b eventlog.Batch) eventlog.Head {
	t.Helper()
	head, err := s.Append(context.Background(), b)
	assert.NoError(t, err)
	return head
}

// stages stages an entry and waits for it.
func stages(ctx context.Context, t *testing.T, s *eventlog.Session, what string) {
	t.Helper()
	ticket, err := s.Stage(ctx, eventlog.Batch{Drafts: beats(what, 1)})
	if err == nil {
		_, err = ticket.Wait(ctx)
	}
	assert.NoError(t, err)
}

// closes closes a log and expects Close to return.
func closes(t *testing.T, l *eventlog.Log) {
	t.Helper()
	within(t, "close", func() {
		assert.NoError(t, l.Close())
	})
}

// texts returns the texts of a session's entries.
func texts(t *testing.T, s *eventlog.Session) []string {
	t.Helper()
	var all []string
	for e, err := range s.Entries(context.Background(), 1) {
		require.NoError(t, err)
		all = append(all, textOf(e))
	}
	return all
}

// Each writer of a round decides against the entries that earlier writers staged, and
// has its own outcome.
func TestRoundDecidesInTurn(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	ctx := context.Background()
	l := open(t, vfs.NewMem(), eventlog.Config{})
	defer closes(t, l)
	s := session(t, l, "a")
	genesis := s.Head()
	var first, last eventlog.Head
	ok := func(head *eventlog.Head, b eventlog.Batch) func() {
		return func() {
			var err error
			if *head, err = s.Append(ctx, b); err != nil {
				t.Error(err)
			} else if s.Head().Seq < head.Seq {
				t.Errorf("acknowledged %v, readers see %v", *head, s.Head())
			}
		}
	}
	var again, staged eventlog.Head
	together(t, s,
		ok(&first, eventlog.Batch{Drafts: beats("first", 2), Key: "k", Expect: genesis}),
		func() {
			_, err := s.Append(ctx, eventlog.Batch{Drafts: beats("late", 1), Expect: genesis})
			var conflict *eventlog.ConflictError
			if !errors.As(err, &conflict) || conflict.Head.Seq != 2 {
				t.Errorf("expecting what the round has left behind: %v", err)
			}
		},
		ok(&again, eventlog.Batch{Drafts: beats("again", 1), Key: "k", Expect: genesis}),
		func() {
			if _, err := s.Append(ctx, eventlog.Batch{}); !errors.Is(err, eventlog.ErrInvalid) {
				t.Errorf("an empty batch: %v", err)
			}
		},
		func() {
			ticket, err := s.Stage(t.Context(), eventlog.Batch{Drafts: beats("staged", 1), Key: "k"})
			if err != nil {
				t.Error(err)
				return
			}
			if !ticket.Repeat() || ticket.First() != 1 || ticket.Size() != 0 {
				t.Errorf("a repeat: first %d, %d bytes", ticket.First(), ticket.Size())
			}
			if staged, err = ticket.Wait(t.Context()); err != nil {
				t.Error(err)
			}
		},
		ok(&last, eventlog.Batch{Drafts: beats("last", 1)}),
	)
	if again != first || staged != first {
		t.Errorf("one key, outcomes %v, %v and %v", first, again, staged)
	}
	if got := fmt.Sprint(texts(t, s)); got != "[first first last]" || s.Head() != last {
		t.Errorf("the session holds %v and stands at %v, want %v", got, s.Head(), last)
	}
}

// A panic is raised on the goroutine of the writer that caused it. The entries that it
// staged before are durable, and no other writer is affected.
func TestPanicStaysWithItsWriter(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	l := open(t, vfs.NewMem(), eventlog.Config{})
	s := session(t, l, "a")
	panics := func(what string, later bool) func() {
		return func() {
			defer func() {
				if p := recover(); p != what {
					t.Errorf("%s: recovered %v", what, p)
				}
				if !slices.Contains(texts(t, s), what) {
					t.Errorf("%s: not durable when the panic is raised", what)
				}
			}()
			err := s.Write(t.Context(), func(r *eventlog.Round) {
				if _, err := r.Stage(eventlog.Batch{Drafts: beats(what, 1)}); err != nil {
					t.Error(err)
				}
				if !later {
					panic(what)
				}
				r.Then(func() { panic(what) })
			})
			t.Errorf("%s: returned with %v", what, err)
		}
	}
	appends := func(what string) func() { return func() { puts(t, s, eventlog.Batch{Drafts: beats(what, 1)}) } }
	stages := func(what string) func() { return func() { stages(t.Context(), t, s, what) } }
	together(t, s, panics("p1", false), appends("a1"), panics("p2", false), panics("p3", true), appends("a2"))
	together(t, s, appends("a3"), panics("p4", true), stages("s1"))
	together(t, s, stages("s2"), panics("p5", false))
	if got := fmt.Sprint(texts(t, s)); got != "[p1 a1 p2 p3 a2 a3 p4 s1 s2 p5]" {
		t.Errorf("the session holds %v", got)
	}
	closes(t, l)
}

// A function that ends its goroutine, as FailNow of a test does, ends its caller's and
// no other writer's, does not leave the session locked, and does not block Close.
func TestGoexitInARound(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	for n := range 12 {
		later, place, ctx := n%2 > 0, n/2%3, context.Background()
		if n >= 6 {
			ctx = t.Context()
		}
		l := open(t, vfs.NewMem(), eventlog.Config{})
		s := session(t, l, "a")
		var returned atomic.Int32
		exits := func() {
			_ = s.Write(t.Context(), func(r *eventlog.Round) {
				if _, err := r.Stage(eventlog.Batch{Drafts: beats("exit", 1)}); err != nil {
					t.Error(err)
				}
				if !later {
					runtime.Goexit()
				}
				r.Then(runtime.Goexit)
			})
			t.Error("came back")
		}
		appends := func() {
			puts(t, s, eventlog.Batch{Drafts: beats("a", 1)})
			returned.Add(1)
		}
		stages := func() {
			stages(ctx, t, s, "s")
			returned.Add(1)
		}
		writers := slices.Insert([]func(){stages, appends, stages, appends}, 2*place, exits)
		together(t, s, writers...)
		if returned.Load() != 4 {
			t.Errorf("place %d: %d writers came back, want 4", place, returned.Load())
		}
		must(t, s, eventlog.Batch{Drafts: beats("after", 1)})
		if n := count(t, s); n != 6 {
			t.Errorf("place %d: %d entries, want 6", place, n)
		}
		closes(t, l)
	}
}

// slowDisk makes a disk delay its syncs until release is called. reached is closed when
// the first sync waits of a write-ahead log that was written to from now on. A store that
// was opened just now may still sync other files.
func slowDisk(disk *faults) (reached <-chan struct{}, release func()) {
	gate, first := make(chan struct{}), make(chan struct{})
	var once sync.Once
	var written atomic.Bool
	disk.set(func(_ int64, op errorfs.Op) error {
		wal := strings.HasSuffix(op.Path, ".log")
		switch op.Kind {
		case errorfs.OpFileWrite:
			if wal {
				written.Store(true)
			}
		case errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileSyncTo:
			if wal && written.Load() {
				once.Do(func() { close(first) })
			}
			<-gate
		default:
		}
		return nil
	})
	return first, func() { close(gate) }
}

// Stage returns before the disk does, even in a round whose leader waits for the disk.
// A repeat of a batch that is not durable yet returns once it is.
func TestStageDoesNotWaitForTheDisk(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	ctx := context.Background()
	disk := newFaults(vfs.NewMem())
	l := open(t, disk, eventlog.Config{})
	s := session(t, l, "a")
	_, release := slowDisk(disk)
	tickets := make(chan *eventlog.Ticket, 2)
	var heads [3]eventlog.Head
	appends := func(i int, what string) func() {
		return func() { heads[i] = puts(t, s, eventlog.Batch{Drafts: beats(what, 1), Key: "k"}) }
	}
	stages := func() {
		ticket, err := s.Stage(t.Context(), eventlog.Batch{Drafts: beats("staged", 1)})
		assert.NoError(t, err)
		tickets <- ticket
	}
	var staged []*eventlog.Ticket
	var later sync.WaitGroup
	later.Go(func() {
		staged = append(staged, <-tickets, <-tickets)
		again, err := s.Stage(t.Context(), eventlog.Batch{Key: "k"})
		if err != nil || !again.Repeat() || again.Head().Seq != 1 {
			t.Errorf("a repeat of what is not durable: %v, %v", again, err)
			release()
			return
		}
		if s.Exists() {
			t.Errorf("readers see %v before the disk has it", s.Head())
		}
		canceled, cancel := context.WithCancel(ctx)
		cancel()
		if err := s.WaitDurable(canceled, 1); !errors.Is(err, context.Canceled) {
			t.Errorf("waiting for the disk: %v", err)
		}
		release()
		if heads[2], err = again.Wait(t.Context()); err != nil {
			t.Error(err)
		}
	})
	together(t, s, appends(0, "first"), appends(1, "again"), stages, stages)
	later.Wait()
	for _, ticket := range staged {
		if _, err := ticket.Wait(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if heads[0].Seq != 1 || heads[1] != heads[0] || heads[2] != heads[0] {
		t.Errorf("one key, outcomes %v", heads)
	}
	if got := fmt.Sprint(texts(t, s)); got != "[first staged staged]" {
		t.Errorf("the session holds %v", got)
	}
	closes(t, l)
}

// If the store rejects a round, every writer of it gets the error, and the following
// rounds are not written.
func TestRefusedRound(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	ctx := context.Background()
	disk := newFaults(vfs.NewMem())
	l := open(t, disk, eventlog.Config{})
	s, other := session(t, l, "a"), session(t, l, "b")
	before := must(t, s, eventlog.Batch{Drafts: beats("before", 1)})
	refused := func(what string, err error) {
		if !errors.Is(err, eventlog.ErrReadOnly) || !errors.Is(err, errDisk) {
			t.Errorf("%s: %v", what, err)
		}
	}
	together(t, s,
		func() { refuses(ctx, s, "leader", refused) },
		func() {
			refused("stage", func() error { _, err := s.Stage(t.Context(), eventlog.Batch{Drafts: beats("x", 1)}); return err }())
		},
		func() {
			refused("write", s.Write(t.Context(), func(r *eventlog.Round) {
				ticket, err := r.Stage(eventlog.Batch{Drafts: beats("x", 1), Key: "k"})
				if err != nil {
					t.Error(err)
					return
				}
				r.Then(func() { t.Errorf("%v is followed by something", ticket.Head()) })
				// Another session triggers the failure of the disk, after which nothing is
				// written.
				disk.set(func(int64, errorfs.Op) error { return errDisk })
				_, err = other.Append(ctx, eventlog.Batch{Drafts: beats("y", 1)})
				refused("another session", err)
			}))
		},
		func() { refuses(ctx, s, "after the failure", refused) },
	)
	if s.Head() != before || other.Exists() {
		t.Errorf("readers see %v and %v", s.Head(), other.Head())
	}
	closes(t, l)
}

func refuses(ctx context.Context, s *eventlog.Session, what string, refused func(string, error)) {
	_, err := s.Append(ctx, eventlog.Batch{Drafts: beats("x", 1)})
	refused(what, err)
}

// Memory taken from the arena is never handed out again, for requests of any size,
// used or unused.
func TestArenaMemoryIsWrittenOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		room, take := eventlog.NewArena()
		var taken, want [][]byte
		size := rapid.OneOf(rapid.IntRange(0, 70), rapid.IntRange(0, 3000), rapid.IntRange(0, 70<<10))
		for i := range rapid.IntRange(1, 60).Draw(t, "calls") {
			n := size.Draw(t, "room")
			b := room(n)
			if len(b) != 0 || cap(b) < n {
				t.Fatalf("room for %d: len %d, cap %d", n, len(b), cap(b))
			}
			over := rapid.SampledFrom([]int{-n, -n / 2, 0, 0, 0, 1, 100}).Draw(t, "over")
			b = append(b, strings.Repeat(string(rune('a'+i)), n+over)...)
			if rapid.Bool().Draw(t, "take") {
				take(b)
				taken, want = append(taken, b), append(want, slices.Clone(b))
			}
		}
		for i := range taken {
			if string(taken[i]) != string(want[i]) {
				t.Fatalf("the memory of call %d was written again", i)
			}
		}
	})
}

// deed is one append of TestWritersOfAllKinds and its outcome.
type deed struct {
	session, text, key string
	entries            int
	expect             eventlog.Head
	ticket             bool // first, head and repeat are known from a ticket
	first              eventlog.Seq
	head               eventlog.Head
	repeat             bool
	err                error
}

// witness records the outcomes that writers received.
type witness struct {
	mu    sync.Mutex
	deeds []deed
}

func (w *witness) tell(ds ...deed) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.deeds = append(w.deeds, ds...)
}

// scribble appends in every supported way until the log is closed.
func scribble(t *testing.T, l *eventlog.Log, id int, seed uint64, w *witness, acked func()) {
	ctx := context.Background()
	rnd := rand.New(rand.NewPCG(seed, uint64(id)))
	next := func(i int) (deed, eventlog.Batch) {
		d := deed{session: fmt.Sprintf("s%d", rnd.IntN(3)), text: fmt.Sprintf("%d/%d", id, i), entries: 1 + rnd.IntN(3)}
		if rnd.IntN(3) == 0 {
			d.key = fmt.Sprintf("key %d", rnd.IntN(40))
		}
		if s, err := l.Session(d.session); err == nil && rnd.IntN(3) == 0 {
			d.expect = s.Head()
		}
		return d, eventlog.Batch{Drafts: beats(d.text, d.entries), Key: d.key, Expect: d.expect}
	}
	wait := func(d *deed, ticket *eventlog.Ticket) {
		d.ticket, d.first, d.repeat = true, ticket.First(), ticket.Repeat()
		d.head, d.err = ticket.Wait(t.Context())
	}
	for i := 0; ; i++ {
		d, b := next(i)
		s, err := l.Session(d.session)
		if err != nil {
			return // closed
		}
		switch rnd.IntN(4) {
		case 0:
			d.head, d.err = s.Append(ctx, b)
			w.tell(d)
		case 1: // several tickets pending
			deeds := make([]deed, 1+rnd.IntN(3))
			tickets := make([]*eventlog.Ticket, len(deeds))
			for j := range deeds {
				deeds[j] = d
				deeds[j].text = fmt.Sprintf("%s+%d", d.text, j)
				b.Drafts = beats(deeds[j].text, d.entries)
				tickets[j], deeds[j].err = s.Stage(t.Context(), b)
			}
			for j := range deeds {
				if tickets[j] != nil {
					wait(&deeds[j], tickets[j])
				}
			}
			w.tell(deeds...)
			d = deeds[0]
		case 2, 3: // several in one round, which a panic may end
			var ticket, second *eventlog.Ticket
			more := d
			more.text, more.key, more.expect = d.text+"+", "", eventlog.Head{}
			panics := rnd.IntN(8) == 0
			var then atomic.Int32
			func() {
				defer func() {
					if p := recover(); p != nil && !panics {
						panic(p)
					}
				}()
				err = s.Write(t.Context(), func(r *eventlog.Round) {
					if ticket, d.err = r.Stage(b); d.err != nil {
						return
					}
					second, more.err = r.Stage(eventlog.Batch{Drafts: beats(more.text, more.entries)})
					r.Then(func() { then.Add(1) })
					if panics {
						panic("at the disco")
					}
				})
			}()
			if ticket == nil {
				d.err = errors.Join(d.err, err)
			} else {
				wait(&d, ticket)
				wait(&more, second)
				w.tell(more)
				if then.Load() != 1 {
					t.Errorf("%s: Then ran %d times", d.text, then.Load())
				}
			}
			w.tell(d)
		}
		if d.err == nil {
			acked()
			if s.Head().Seq < d.head.Seq {
				t.Errorf("%s: acknowledged %v, readers see %v", d.text, d.head, s.Head())
			}
		}
	}
}

// For any concurrent writers and any time of Close, each writer's outcome agrees with
// the log.
func TestWritersOfAllKinds(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	for seed := range uint64(6) {
		mem := vfs.NewMem()
		l, err := eventlog.Open("store", eventlog.Config{FS: mem})
		require.NoError(t, err)
		var w witness
		var wg sync.WaitGroup
		var acks atomic.Int64
		enough := make(chan struct{})
		closeAt := int64(rand.New(rand.NewPCG(seed, 0)).IntN(600))
		for id := range 16 {
			wg.Go(func() {
				scribble(t, l, id, seed, &w, func() {
					if acks.Add(1) == closeAt+1 {
						close(enough)
					}
				})
			})
		}
		var followed [3][]eventlog.Entry
		for i := range followed {
			s := session(t, l, fmt.Sprintf("s%d", i))
			wg.Go(func() {
				for e, err := range s.Follow(context.Background(), 1) {
					if err != nil {
						if !errors.Is(err, eventlog.ErrClosed) {
							t.Error(err)
						}
						return
					}
					followed[i] = append(followed[i], e)
				}
			})
		}
		within(t, "writing", func() { <-enough })
		closes(t, l)
		within(t, "writers", wg.Wait)
		if l, err = eventlog.Open("store", eventlog.Config{FS: mem, ReadOnly: true}); err != nil {
			t.Fatal(err)
		}
		for i, seen := range followed {
			name := fmt.Sprintf("s%d", i)
			agrees(t, l, name, seen, slices.DeleteFunc(slices.Clone(w.deeds), func(d deed) bool { return d.session != name }))
		}
		closes(t, l)
	}
}

// agrees compares a session with the entries that a follower saw and the outcomes that
// writers received.
func agrees(t *testing.T, l *eventlog.Log, name string, seen []eventlog.Entry, deeds []deed) {
	t.Helper()
	s := session(t, l, name)
	if report := verified(t, l, name, s.Head()); report.Fault != nil {
		t.Fatalf("%s: %v", name, report.Fault)
	}
	heads := []eventlog.Head{{Hash: s.Genesis()}}
	places := map[string][]eventlog.Seq{}
	keys := map[string]int{}
	for e, err := range s.Entries(context.Background(), 1) {
		require.NoError(t, err)
		if i := len(heads) - 1; i < len(seen) && (seen[i].Seq != e.Seq || seen[i].Hash != e.Hash || textOf(seen[i]) != textOf(e)) {
			t.Errorf("%s: a follower saw %v where %v is", name, seen[i].Head(), e.Head())
		}
		heads = append(heads, e.Head())
		places[textOf(e)] = append(places[textOf(e)], e.Seq)
		if e.Key != "" {
			keys[e.Key]++
		}
	}
	if len(seen) >= len(heads) {
		t.Errorf("%s: a follower saw %d entries of %d", name, len(seen), len(heads)-1)
	}
	outcomes := map[string]eventlog.Head{}
	for _, d := range deeds {
		at := places[d.text]
		delete(places, d.text)
		var conflict *eventlog.ConflictError
		switch {
		case d.err != nil:
			if len(at) != 0 && !d.repeat {
				t.Errorf("%s: %s was told %v and is at %v", name, d.text, d.err, at)
			}
			if errors.As(d.err, &conflict) && conflict.Head != heads[conflict.Head.Seq] {
				t.Errorf("%s: %s conflicts with %v, which never was", name, d.text, conflict.Head)
			} else if conflict == nil && !errors.Is(d.err, eventlog.ErrClosed) {
				t.Errorf("%s: %s: %v", name, d.text, d.err)
			}
			continue
		case int(d.head.Seq) >= len(heads) || heads[d.head.Seq] != d.head:
			t.Errorf("%s: %s was acknowledged at %v, which is not in the log", name, d.text, d.head)
			continue
		}
		if d.key != "" {
			if before, ok := outcomes[d.key]; ok && before != d.head {
				t.Errorf("%s: key %q has outcomes %v and %v", name, d.key, before, d.head)
			}
			if outcomes[d.key] = d.head; keys[d.key] != 1 {
				t.Errorf("%s: %d batches with key %q", name, keys[d.key], d.key)
			}
		}
		first := d.head.Seq - eventlog.Seq(d.entries) + 1
		switch {
		case len(at) == 0 && d.key != "" && (d.repeat || !d.ticket):
			continue // a repeat
		case len(at) != d.entries || at[0] != first || at[len(at)-1] != d.head.Seq || d.repeat || d.ticket && d.first != first:
			t.Errorf("%s: %s, %d entries to %v, ticket from %d, repeat %v, is at %v", name, d.text, d.entries, d.head, d.first, d.repeat, at)
		case !d.expect.IsZero() && d.expect != heads[first-1]:
			t.Errorf("%s: %s expected %v and got the place behind %v", name, d.text, d.expect, heads[first-1])
		}
	}
	for what, at := range places {
		t.Errorf("%s: nobody was told of %s at %v", name, what, at)
	}
}
