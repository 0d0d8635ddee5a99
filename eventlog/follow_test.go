package eventlog_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/eventlog/verify"
)

// Random histories are compared with a slice: appends, repeats, conflicts, reads from
// any Seq, restarts.
func TestLogIsAList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ctx := context.Background()
		mem := vfs.NewMem()
		var l *eventlog.Log
		var s *eventlog.Session
		reopen := func() {
			var err error
			if l != nil {
				err = l.Close()
			}
			if err == nil {
				l, err = eventlog.Open("store", eventlog.Config{FS: mem})
			}
			if err == nil {
				s, err = l.Session("a")
			}
			require.NoError(t, err)
		}
		reopen()
		var model []string // the text of each entry
		outcomes := map[string]eventlog.Head{}
		head := s.Head()
		t.Repeat(map[string]func(*rapid.T){
			"append": func(t *rapid.T) {
				texts := rapid.SliceOfN(rapid.StringN(0, 20, 60), 1, 6).Draw(t, "texts")
				b := eventlog.Batch{Key: rapid.SampledFrom([]string{"", "", "k1", "k2", "k3"}).Draw(t, "key")}
				if rapid.Bool().Draw(t, "expect") {
					b.Expect = head
				}
				for _, x := range texts {
					b.Drafts = append(b.Drafts, eventlog.Draft{Kind: eventlog.KindEffect, At: s.At(), Data: text(x)})
				}
				got, err := s.Append(ctx, b)
				require.NoError(t, err)
				if want, seen := outcomes[b.Key]; seen && b.Key != "" {
					if got != want {
						t.Fatalf("key %q: %v, want %v", b.Key, got, want)
					}
					return
				}
				model, head = append(model, texts...), got
				if b.Key != "" {
					outcomes[b.Key] = got
				}
			},
			"conflict": func(t *rapid.T) {
				expect := eventlog.Head{Seq: head.Seq + eventlog.Seq(rapid.IntRange(1, 3).Draw(t, "ahead")), Hash: head.Hash}
				if _, err := s.Append(ctx, eventlog.Batch{Drafts: drafts(1<<20, 1), Expect: expect}); !errors.Is(err, eventlog.ErrConflict) {
					t.Fatal(err)
				}
			},
			"read": func(t *rapid.T) {
				from := rapid.IntRange(0, len(model)+1).Draw(t, "from")
				var got []string
				for e, err := range s.Entries(ctx, eventlog.Seq(from)) {
					require.NoError(t, err)
					got = append(got, textOf(e))
				}
				if want := model[min(max(from, 1)-1, len(model)):]; !slices.Equal(got, want) {
					t.Fatalf("from %d: %q, want %q", from, got, want)
				}
			},
			"reopen": func(*rapid.T) { reopen() },
			"": func(t *rapid.T) {
				if s.Head() != head || head.Seq != eventlog.Seq(len(model)) {
					t.Fatalf("head %v, want %v with %d entries", s.Head(), head, len(model))
				}
			},
		})
		if r, err := l.Verify(ctx, "a", verify.Options{Expect: head}); len(model) > 0 && (err != nil || r.Fault != nil) {
			t.Fatalf("verify: %+v, %v", r, err)
		}
		require.NoError(t, l.Close())
	})
}

// Followers see each entry once, in order and only when it is durable, for any
// concurrent writers and any starting Seq.
func TestFollow(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	rapid.Check(t, func(t *rapid.T) {
		l, err := eventlog.Open("store", eventlog.Config{FS: vfs.NewMem()})
		require.NoError(t, err)
		s, err := l.Session("a")
		require.NoError(t, err)
		work := rapid.SliceOfN(rapid.SliceOfN(rapid.IntRange(1, 5), 1, 12), 1, 4).Draw(t, "batch sizes of each writer")
		froms := rapid.SliceOfN(rapid.IntRange(0, 40), 1, 3).Draw(t, "where followers begin")
		total := eventlog.Seq(0)
		for _, sizes := range work {
			for _, n := range sizes {
				total += eventlog.Seq(n)
			}
		}
		errs := make(chan error, len(work)+len(froms)) // one a goroutine
		var wg sync.WaitGroup
		seen := make([][]eventlog.Hash, len(froms))
		for i, from := range froms {
			wg.Go(func() {
				next := max(eventlog.Seq(from), 1)
				if next > total {
					return
				}
				for e, err := range s.Follow(context.Background(), eventlog.Seq(from)) {
					if err != nil || e.Seq != next || s.Head().Seq < e.Seq {
						errs <- fmt.Errorf("follower from %d: entry %d where %d belongs, the head is %v: %w", from, e.Seq, next, s.Head(), err)
						return
					}
					seen[i] = append(seen[i], e.Hash)
					if next++; e.Seq == total {
						return
					}
				}
			})
		}
		for _, sizes := range work {
			wg.Go(func() {
				for _, n := range sizes {
					ds := slices.Repeat([]eventlog.Draft{{Kind: eventlog.KindSignal, Data: text("x")}}, n)
					if _, err := s.Append(context.Background(), eventlog.Batch{Drafts: ds}); err != nil {
						errs <- err
						return
					}
				}
			})
		}
		wg.Wait()
		close(errs)
		for err := range errs {
			t.Error(err)
		}
		var want []eventlog.Hash
		for e, err := range s.Entries(context.Background(), 1) {
			require.NoError(t, err)
			want = append(want, e.Hash)
		}
		for i, from := range froms {
			if rest := want[min(max(from, 1)-1, len(want)):]; !slices.Equal(seen[i], rest) {
				t.Errorf("follower from %d saw %d entries, want %d", from, len(seen[i]), len(rest))
			}
		}
		require.NoError(t, l.Close())
	})
}

// Following ends with the context's error, with ErrClosed, or when the consumer stops.
func TestFollowEnds(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	l, err := eventlog.Open("store", eventlog.Config{FS: vfs.NewMem()})
	require.NoError(t, err)
	s := session(t, l, "a")
	must(t, s, eventlog.Batch{Drafts: drafts(1, 600)})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	n := 0
	for _, err := range s.Follow(ctx, 1) {
		if err != nil {
			if !errors.Is(err, context.Canceled) || n != 600 {
				t.Errorf("after %d entries: %v", n, err)
			}
			break
		}
		if n++; n == 600 {
			cancel()
		}
	}
	for e, err := range s.Follow(context.Background(), 599) {
		assert.NoError(t, err)
		if e.Seq == 600 {
			break
		}
	}
	var wg sync.WaitGroup
	started := make(chan struct{}, 4) // one a follower
	for range 4 {
		wg.Go(func() {
			var last error
			for e, err := range s.Follow(context.Background(), 1) {
				if last = err; e.Seq == 600 {
					started <- struct{}{}
				}
			}
			if !errors.Is(last, eventlog.ErrClosed) {
				t.Errorf("closed while following: %v", last)
			}
		})
	}
	for range 4 {
		<-started
	}
	assert.NoError(t, l.Close())
	wg.Wait()
}

// Close waits for pending tickets, and later appends return ErrClosed.
func TestCloseUnderConcurrentWriters(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	mem := vfs.NewMem()
	for round := range 10 {
		l, err := eventlog.Open("store", eventlog.Config{FS: mem})
		require.NoError(t, err)
		var wg sync.WaitGroup
		var mu sync.Mutex
		acks := acknowledged{}
		enough := make(chan struct{}, 1<<10) // never full: the test waits for fewer appends
		for w := range 6 {
			wg.Go(func() {
				name := fmt.Sprintf("s%d", w%3)
				for {
					s, err := l.Session(name)
					var head eventlog.Head
					if err == nil {
						head, err = s.Append(context.Background(), eventlog.Batch{Drafts: []eventlog.Draft{{Kind: eventlog.KindBeat, Data: text("x")}}})
					}
					if err != nil {
						if !errors.Is(err, eventlog.ErrClosed) {
							t.Error(err)
						}
						return
					}
					mu.Lock()
					if head.Seq > acks[name].Seq {
						acks[name] = head
					}
					mu.Unlock()
					select {
					case enough <- struct{}{}:
					default:
					}
				}
			})
		}
		for range 20 + round*10 {
			<-enough
		}
		assert.NoError(t, l.Close())
		wg.Wait()
		l, err = eventlog.Open("store", eventlog.Config{FS: mem})
		require.NoError(t, err)
		holds(t, l, acks, fmt.Sprintf("round %d", round))
		require.NoError(t, l.Close())
	}
}
