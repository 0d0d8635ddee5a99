package eventlog_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/eventlog/internal/keyspace"
	"github.com/sajou-dev/sajou-go/internal/attack"
)

// An outcome that names entries beyond the newest is corrupt. Waiting for such an entry
// would never end, with a context that is never cancelled.
func TestForgedOutcomeIsCorrupt(t *testing.T) {
	for name, outcome := range map[string][2]uint64{
		"beyond the head": {2, 1000}, "the next entry": {4, 4}, "the last Seq": {1, 1<<64 - 1},
		"of no entry": {0, 0}, "backwards": {3, 2}, "from 0": {0, 2},
	} {
		t.Run(name, func(t *testing.T) {
			l := open(t, vfs.NewMem(), eventlog.Config{})
			s := session(t, l, "a")
			head := must(t, s, eventlog.Batch{Drafts: beats("x", 3)})
			value := binary.BigEndian.AppendUint64(nil, outcome[0])
			value = binary.BigEndian.AppendUint64(value, outcome[1])
			require.NoError(t, l.Put(keyspace.OutcomeKey(1, "forged"), append(value, head.Hash[:]...)))
			b := eventlog.Batch{Key: "forged", Drafts: beats("new", 1)}
			within(t, "append and stage", func() {
				if got, err := s.Append(context.Background(), b); !errors.Is(err, eventlog.ErrCorrupt) {
					t.Errorf("append: %v, %v", got, err)
				}
				if ticket, err := s.Stage(context.Background(), b); !errors.Is(err, eventlog.ErrCorrupt) {
					t.Errorf("stage: %v, %v", ticket, err)
				}
			})
			must(t, s, eventlog.Batch{Key: "other", Drafts: beats("new", 1)})
		})
	}
}

// While the disk does not respond, every wait for it ends with its context. The staged
// entries still become durable when the disk responds, even if no caller waits for them.
func TestWaitsEndWithTheirContext(t *testing.T) {
	for name, wait := range map[string]func(ctx context.Context, s *eventlog.Session) error{
		"append": func(ctx context.Context, s *eventlog.Session) error {
			_, err := s.Append(ctx, eventlog.Batch{Drafts: beats("x", 1)})
			return err
		},
		"a repeat": func(ctx context.Context, s *eventlog.Session) error {
			_, err := s.Append(ctx, eventlog.Batch{Key: "k", Drafts: beats("x", 1)})
			if err == nil {
				return nil
			}
			other, cancel := context.WithCancel(context.Background())
			cancelled := make(chan error)
			go func() {
				_, err := s.Append(other, eventlog.Batch{Key: "k", Drafts: beats("x", 1)})
				cancelled <- err
			}()
			cancel()
			return <-cancelled
		},
		"a ticket": func(ctx context.Context, s *eventlog.Session) error {
			ticket, err := s.Stage(context.Background(), eventlog.Batch{Drafts: beats("x", 1)})
			if err != nil {
				return err
			}
			_, err = ticket.Wait(ctx)
			return err
		},
		"a round": func(ctx context.Context, s *eventlog.Session) error {
			return s.Write(ctx, func(r *eventlog.Round) { _, _ = r.Stage(eventlog.Batch{Drafts: beats("x", 1)}) })
		},
		"durable": func(ctx context.Context, s *eventlog.Session) error {
			ticket, err := s.Stage(context.Background(), eventlog.Batch{Drafts: beats("x", 1)})
			if err != nil {
				return err
			}
			err = s.WaitDurable(ctx, ticket.First())
			_, _ = ticket.Wait(ctx)
			return err
		},
		"follow": func(ctx context.Context, s *eventlog.Session) error {
			ticket, err := s.Stage(context.Background(), eventlog.Batch{Drafts: beats("x", 1)})
			if err != nil {
				return err
			}
			for _, failed := range s.Follow(ctx, ticket.First()) {
				err = failed
			}
			_, _ = ticket.Wait(ctx)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
			disk := newFaults(vfs.NewMem())
			l := open(t, disk, eventlog.Config{})
			s := session(t, l, "a")
			before := must(t, s, eventlog.Batch{Drafts: beats("before", 1)})
			reached, release := slowDisk(disk)
			ctx, cancel := context.WithCancel(context.Background())
			within(t, name, func() {
				ended := make(chan error)
				go func() { ended <- wait(ctx, s) }()
				select {
				case err := <-ended:
					t.Errorf("it does not wait: %v", err)
					return
				case <-reached:
				}
				cancel()
				assert.ErrorIs(t, <-ended, context.Canceled, "it ended with")
			})
			if s.Head() != before {
				t.Errorf("readers see %v before it is durable", s.Head())
			}
			release()
			within(t, "durable", func() {
				assert.NoError(t, s.WaitDurable(context.Background(), before.Seq+1))
			})
			closes(t, l)
		})
	}
}

// A writer whose context ends before its turn never runs; the other writers do.
func TestWriterLeavesTheQueue(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	for _, leads := range []bool{false, true} {
		l := open(t, vfs.NewMem(), eventlog.Config{})
		s := session(t, l, "a")
		begun, gate := make(chan struct{}), make(chan struct{})
		within(t, "the queue", func() {
			var wg sync.WaitGroup
			wg.Go(func() {
				if err := s.Write(t.Context(), func(*eventlog.Round) { close(begun); <-gate }); err != nil {
					t.Error(err)
				}
			})
			<-begun
			await, stop := awaitWriters(s)
			defer stop()
			behind := func(n int, f func()) {
				wg.Go(f)
				await(n)
			}
			waiting := 1
			if !leads {
				waiting++
				behind(waiting, func() { puts(t, s, eventlog.Batch{Drafts: beats("first", 1)}) })
			}
			ctx, cancel := context.WithCancel(context.Background())
			left := make(chan struct{})
			behind(waiting+1, func() {
				defer close(left)
				err := s.Write(ctx, func(*eventlog.Round) { t.Error("it ran") })
				assert.ErrorIs(t, err, context.Canceled, "it ended with")
			})
			behind(waiting+2, func() { puts(t, s, eventlog.Batch{Drafts: beats("last", 1)}) })
			cancel()
			<-left
			close(gate)
			wg.Wait()
		})
		if n := count(t, s); n != waitingFor(leads) {
			t.Errorf("%d entries", n)
		}
		closes(t, l)
	}
}

func waitingFor(leads bool) int {
	if leads {
		return 1
	}
	return 2
}

// For contexts that end at any time, each batch is in the log once or not at all, a
// repeat with its key determines which, and the log closes.
func TestAttackContextsEnd(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	for seed := range attack.Rounds(20, 2000) {
		l := open(t, vfs.NewMem(), eventlog.Config{})
		s := session(t, l, "a")
		var wg sync.WaitGroup
		const writers, each = 8, 12
		for w := range writers {
			wg.Go(func() {
				random := rand.New(rand.NewPCG(uint64(seed), uint64(w)))
				for i := range each {
					b := eventlog.Batch{Key: fmt.Sprintf("%d/%d", w, i), Drafts: beats("x", 1+random.IntN(3))}
					ctx, cancel := context.WithCancel(context.Background())
					n := random.IntN(400)
					go func() {
						for range n {
							_ = ctx.Err()
						}
						cancel()
					}()
					var ticket *eventlog.Ticket
					var head eventlog.Head
					var err error
					if random.IntN(2) == 0 {
						head, err = s.Append(ctx, b)
					} else if ticket, err = s.Stage(ctx, b); err == nil {
						head, err = ticket.Wait(ctx)
					}
					if err != nil && !errors.Is(err, context.Canceled) {
						t.Error(err)
					}
					again, repeatErr := s.Append(context.Background(), b)
					if repeatErr != nil || err == nil && again != head {
						t.Errorf("%s: %v, %v; repeated %v, %v", b.Key, head, err, again, repeatErr)
					}
				}
			})
		}
		within(t, "the writers", wg.Wait)
		keys := map[string]int{}
		for e, err := range s.Entries(t.Context(), 1) {
			require.NoError(t, err)
			if e.Key != "" {
				keys[e.Key]++
			}
		}
		for key, n := range keys {
			if n != 1 {
				t.Errorf("%s is there %d times", key, n)
			}
		}
		if len(keys) != writers*each {
			t.Errorf("%d keys", len(keys))
		}
		closes(t, l)
	}
}

// Close waits for the goroutines that lead rounds, so that none is left when it returns.
func TestCloseWaitsForLeaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := eventlog.Open("store", eventlog.Config{FS: vfs.NewMem()})
		require.NoError(t, err)
		must(t, session(t, l, "a"), eventlog.Batch{Drafts: drafts(1, 1)})
		release, closed := make(chan struct{}), make(chan error, 1)
		l.Lead(func() { <-release })
		go func() { closed <- l.Close() }()
		synctest.Wait()
		require.Empty(t, closed, "a leader still runs")
		close(release)
		require.NoError(t, <-closed)
	})
}

// A writer whose context ends while its function runs returns once the function has.
func TestWriterLeavesItsFunction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := open(t, vfs.NewMem(), eventlog.Config{})
		s := session(t, l, "a")
		ctx, cancel := context.WithCancel(t.Context())
		gate, done := make(chan struct{}), make(chan error, 1)
		ran := false
		go func() {
			done <- s.Write(ctx, func(r *eventlog.Round) {
				<-gate
				_, err := r.Stage(eventlog.Batch{Drafts: drafts(1, 1)})
				ran = err == nil
			})
		}()
		synctest.Wait()
		cancel()
		synctest.Wait()
		assert.Empty(t, done, "the function runs")
		close(gate)
		if err := <-done; err != nil { // or the round is over
			require.ErrorIs(t, err, context.Canceled)
		}
		assert.True(t, ran)
		synctest.Wait()
		assert.Equal(t, 1, count(t, s))
		assert.Zero(t, s.Waiting())
	})
}
