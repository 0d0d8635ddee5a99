package eventlog_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/eventlog/internal/keyspace"
	"github.com/sajou-dev/sajou-go/eventlog/verify"
)

// must appends and expects success.
func must(t *testing.T, s *eventlog.Session, b eventlog.Batch) eventlog.Head {
	t.Helper()
	head, err := s.Append(context.Background(), b)
	require.NoError(t, err)
	return head
}

// count counts the entries of a session.
func count(t *testing.T, s *eventlog.Session) (n int) {
	t.Helper()
	for _, err := range s.Entries(context.Background(), 1) {
		require.NoError(t, err)
		n++
	}
	return n
}

// An expected Head that differs from the Head is a conflict, which reports the Head and
// writes nothing. The genesis Head expects an empty session.
func TestExpectedHead(t *testing.T) {
	ctx := context.Background()
	l := open(t, vfs.NewMem(), eventlog.Config{})
	s := session(t, l, "a")
	genesis := eventlog.Head{Hash: eventlog.Genesis("a")}
	if s.Head() != genesis {
		t.Errorf("an empty session stands at %v, want %v", s.Head(), genesis)
	}
	first := must(t, s, eventlog.Batch{Drafts: drafts(1, 2), Expect: genesis})
	second := must(t, s, eventlog.Batch{Drafts: drafts(3, 1), Expect: first})
	for _, expect := range []eventlog.Head{genesis, first, {Seq: 3}, {Seq: 4, Hash: second.Hash}, {Hash: eventlog.Genesis("b")}} {
		_, err := s.Append(ctx, eventlog.Batch{Drafts: drafts(4, 1), Expect: expect})
		var conflict *eventlog.ConflictError
		if !errors.Is(err, eventlog.ErrConflict) || !errors.As(err, &conflict) {
			t.Errorf("expecting %v: %v, want a conflict", expect, err)
			continue
		}
		if conflict.Expected != expect || conflict.Head != second {
			t.Errorf("expecting %v: %+v, want Head %v", expect, conflict, second)
		}
	}
	if n := count(t, s); n != 3 {
		t.Errorf("%d entries, want 3", n)
	}
}

// Of many writers that expect the same Head one wins.
func TestExpectedHeadUnderConcurrentWriters(t *testing.T) {
	l := open(t, vfs.NewMem(), eventlog.Config{})
	s := session(t, l, "a")
	head := s.Head()
	for round := range 20 {
		var wg sync.WaitGroup
		var mu sync.Mutex
		var winners []eventlog.Head
		for range 6 {
			wg.Go(func() {
				h, err := s.Append(context.Background(), eventlog.Batch{Drafts: drafts(round, 1), Expect: head})
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					winners = append(winners, h)
				} else if !errors.Is(err, eventlog.ErrConflict) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if len(winners) != 1 {
			t.Fatalf("round %d: winners %v", round, winners)
		}
		head = winners[0]
	}
}

// An append with a used key always returns the key's first outcome: for many goroutines
// at once, with other drafts, with an outdated expected Head, and after a restart.
// Another session has its own keys.
func TestIdempotencyKeys(t *testing.T) {
	ctx := context.Background()
	mem := vfs.NewMem()
	l := open(t, mem, eventlog.Config{})
	s := session(t, l, "a")
	must(t, s, eventlog.Batch{Drafts: drafts(1, 1)})
	for round := range 20 {
		key := fmt.Sprintf("key %d", round)
		before := s.Head().Seq
		var wg sync.WaitGroup
		heads := make([]eventlog.Head, 8)
		for i := range heads {
			wg.Go(func() {
				head, err := s.Append(ctx, eventlog.Batch{Drafts: drafts(10*round+2, 1+i), Key: key})
				if err != nil {
					t.Error(err)
				}
				if s.Head().Seq < head.Seq {
					t.Errorf("answered %v before it is durable: %v", head, s.Head())
				}
				heads[i] = head
			})
		}
		wg.Wait()
		if len(slices.Compact(slices.Clone(heads))) != 1 {
			t.Fatalf("one key, several outcomes: %v", heads)
		}
		if grown := s.Head().Seq - before; s.Head() != heads[0] || grown < 1 || grown > 8 {
			t.Fatalf("from %d to %v, the outcome was %v", before, s.Head(), heads[0])
		}
	}
	outcome := must(t, s, eventlog.Batch{Drafts: drafts(2000, 3), Key: "kept"})
	newest := must(t, s, eventlog.Batch{Drafts: drafts(2003, 1)})
	repeat := func(s *eventlog.Session) {
		t.Helper()
		ticket, err := s.Stage(t.Context(), eventlog.Batch{Key: "kept", Expect: eventlog.Head{Seq: 7}})
		require.NoError(t, err)
		if head, err := ticket.Wait(t.Context()); err != nil || head != outcome || !ticket.Repeat() || ticket.First() != outcome.Seq-2 {
			t.Errorf("repeated: %v from %d, %v; want %v", head, ticket.First(), err, outcome)
		}
		if s.Head() != newest {
			t.Errorf("a repeat moved the head to %v", s.Head())
		}
	}
	repeat(s)
	require.NoError(t, l.Close())
	l = open(t, mem, eventlog.Config{})
	s = session(t, l, "a")
	repeat(s)
	if e, err := s.Entry(ctx, outcome.Seq-2); err != nil || e.Key != "kept" {
		t.Errorf("first entry: key %q, %v", e.Key, err)
	}
	if e, err := s.Entry(ctx, outcome.Seq-1); err != nil || e.Key != "" {
		t.Errorf("second entry: key %q, %v", e.Key, err)
	}
	other := session(t, l, "b")
	if head := must(t, other, eventlog.Batch{Drafts: drafts(1, 1), Key: "kept"}); head.Seq != 1 {
		t.Errorf("another session: %v", head)
	}
}

// An invalid batch is refused before anything is written, and the session stays usable.
func TestRefusedBatches(t *testing.T) {
	ctx := context.Background()
	const maxEntry = 200
	l := open(t, vfs.NewMem(), eventlog.Config{MaxEntry: maxEntry, MaxBatch: 1000})
	s := session(t, l, "a")
	must(t, s, eventlog.Batch{Drafts: drafts(5, 1)})
	at := 5 * time.Millisecond
	one := func(d eventlog.Draft) []eventlog.Draft { return []eventlog.Draft{d} }
	fill := func(n int) []eventlog.Draft {
		return slices.Repeat(one(eventlog.Draft{Kind: eventlog.KindSignal, At: at, Data: text("x")}), n)
	}
	for _, tt := range []struct {
		name  string
		batch eventlog.Batch
		want  error
	}{
		{"no entries", eventlog.Batch{}, eventlog.ErrInvalid},
		{"no entries, with a key", eventlog.Batch{Key: "k"}, eventlog.ErrInvalid},
		{"kind 0", eventlog.Batch{Drafts: one(eventlog.Draft{At: at, Data: text("x")})}, eventlog.ErrInvalid},
		{"kind 6", eventlog.Batch{Drafts: one(eventlog.Draft{Kind: 6, At: at, Data: text("x")})}, eventlog.ErrInvalid},
		{"back in time", eventlog.Batch{Drafts: one(eventlog.Draft{Kind: 1, At: at - 1, Data: text("x")})}, eventlog.ErrInvalid},
		{"back in time within the batch", eventlog.Batch{Drafts: []eventlog.Draft{{Kind: 1, At: at + 2, Data: text("x")}, {Kind: 1, At: at + 1, Data: text("x")}}}, eventlog.ErrInvalid},
		{"before the session", eventlog.Batch{Drafts: one(eventlog.Draft{Kind: 1, At: -1, Data: text("x")})}, eventlog.ErrInvalid},
		{"no data", eventlog.Batch{Drafts: one(eventlog.Draft{Kind: 1, At: at})}, eventlog.ErrInvalid},
		{"half a value", eventlog.Batch{Drafts: one(eventlog.Draft{Kind: 1, At: at, Data: text("xyz")[:2]})}, eventlog.ErrInvalid},
		{"two values", eventlog.Batch{Drafts: one(eventlog.Draft{Kind: 1, At: at, Data: append(text("x"), text("y")...)})}, eventlog.ErrInvalid},
		{"the reserved byte", eventlog.Batch{Drafts: one(eventlog.Draft{Kind: 1, At: at, Data: []byte{0xc1}})}, eventlog.ErrInvalid},
		{"nested without end", eventlog.Batch{Drafts: one(eventlog.Draft{Kind: 1, At: at, Data: bytes.Repeat([]byte{0x91}, 150)})}, eventlog.ErrInvalid},
		{"an array that claims much", eventlog.Batch{Drafts: one(eventlog.Draft{Kind: 1, At: at, Data: []byte{0xdd, 0xff, 0xff, 0xff, 0xff}})}, eventlog.ErrInvalid},
		{"a large entry", eventlog.Batch{Drafts: one(eventlog.Draft{Kind: 1, At: at, Data: text(strings.Repeat("x", maxEntry))})}, eventlog.ErrTooLarge},
		{"a long key", eventlog.Batch{Drafts: fill(1), Key: strings.Repeat("k", eventlog.MaxKey+1)}, eventlog.ErrTooLarge},
		{"a large batch", eventlog.Batch{Drafts: fill(100)}, eventlog.ErrTooLarge},
		{"too many entries", eventlog.Batch{Drafts: fill(eventlog.MaxBatchEntries + 1)}, eventlog.ErrTooLarge},
	} {
		before := s.Head()
		if _, err := s.Append(ctx, tt.batch); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
		if s.Head() != before {
			t.Errorf("%s: the head moved", tt.name)
		}
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := s.Append(cancelled, eventlog.Batch{Drafts: fill(1)}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	must(t, s, eventlog.Batch{Drafts: fill(2)})
	if n := count(t, s); n != 3 {
		t.Errorf("%d entries, want 3", n)
	}
}

// Each bound of a batch is the one that is documented: what takes exactly as much is
// appended, and one more is refused with the place and the numbers.
func TestBatchBounds(t *testing.T) {
	const maxEntry, maxBatch = 100, 1000
	value := func(n int) []byte { return append([]byte{0xc4, byte(n - 2)}, make([]byte, n-2)...) } // of n bytes
	of := func(n int, sizes ...int) (ds []eventlog.Draft) {
		for i, size := range sizes {
			ds = append(ds, slices.Repeat([]eventlog.Draft{{Kind: 1, At: time.Duration(n + i), Data: value(size)}}, 1)...)
		}
		return ds
	}
	// A body takes 14 bytes beside its data and the key, and a batch 63 for each entry.
	const body, entry = 1 + 1 + 9 + 3, 1 + 20 + 10 + 32
	for _, tt := range []struct {
		name  string
		batch eventlog.Batch
		says  string // "" if it is appended
	}{
		{"an entry", eventlog.Batch{Drafts: of(1, maxEntry-body)}, ""},
		{"an entry, one more", eventlog.Batch{Drafts: of(1, 10, maxEntry-body+1)}, "too large: entry 2 of the batch takes 101 bytes, at most 100 are allowed"},
		{"an entry with a key", eventlog.Batch{Drafts: of(1, maxEntry-body-3), Key: "key"}, ""},
		{"an entry with a key, one more", eventlog.Batch{Drafts: of(1, maxEntry-body-2), Key: "kex"}, "too large: entry 1 of the batch takes 101 bytes, at most 100 are allowed"},
		{"a batch", eventlog.Batch{Drafts: of(1, slices.Concat(slices.Repeat([]int{37}, 9), []int{37})...)}, ""},
		{"a batch, one more", eventlog.Batch{Drafts: of(1, slices.Concat(slices.Repeat([]int{37}, 9), []int{38})...)}, "too large: batch takes 1001 bytes, at most 1000 are allowed"},
		{"a key", eventlog.Batch{Drafts: of(1, 10), Key: strings.Repeat("k", 256)}, "too large: idempotency key has 256 bytes, at most 255 are allowed"},
		{"entries", eventlog.Batch{Drafts: slices.Repeat(of(1, 10), 65537)}, "too large: batch has 65537 entries, at most 65536 are allowed"},
		{"a kind", eventlog.Batch{Drafts: []eventlog.Draft{{Kind: 1, Data: value(9)}, {Kind: 6, Data: value(9)}}}, "invalid: entry 2 of the batch has no valid kind (6)"},
		{"a time", eventlog.Batch{Drafts: slices.Concat(of(3, 9), of(2, 9))}, "invalid: entry 2 of the batch goes back in session time, from 3ns to 2ns"},
		{"the same time", eventlog.Batch{Drafts: slices.Concat(of(3, 9), of(3, 9))}, ""},
		{"a value", eventlog.Batch{Drafts: []eventlog.Draft{{Kind: 1, Data: value(9)}, {Kind: 1, Data: value(9)[:8]}}}, "invalid: entry 2 of the batch does not hold one whole msgpack value"},
	} {
		require.Equal(t, maxBatch, 10*(37+entry))
		l := open(t, vfs.NewMem(), eventlog.Config{MaxEntry: maxEntry, MaxBatch: maxBatch})
		head, err := session(t, l, "a").Append(t.Context(), tt.batch)
		if tt.says == "" {
			require.NoError(t, err, tt.name)
			assert.Len(t, tt.batch.Drafts, int(head.Seq), tt.name)
			continue
		}
		require.EqualError(t, err, "eventlog: "+tt.says, tt.name)
	}

	// The bound of a batch is raised to that of an entry.
	l := open(t, vfs.NewMem(), eventlog.Config{MaxEntry: maxEntry, MaxBatch: 1})
	must(t, session(t, l, "a"), eventlog.Batch{Drafts: of(1, maxEntry-body)})
	for _, cfg := range []eventlog.Config{{MaxEntry: -1}, {MaxBatch: -1}, {MaxEntry: 1<<30 + 1}, {MaxBatch: 1<<30 + 1}} {
		_, err := eventlog.Open("store", eventlog.Config{MaxEntry: cfg.MaxEntry, MaxBatch: cfg.MaxBatch, FS: vfs.NewMem()})
		require.ErrorIs(t, err, eventlog.ErrInvalid)
		require.ErrorContains(t, err, "bounds are from 0 to 1 GiB")
	}
	open(t, vfs.NewMem(), eventlog.Config{MaxEntry: 1 << 30, MaxBatch: 1 << 30})
	defaults := open(t, vfs.NewMem(), eventlog.Config{})
	big := func(n int) eventlog.Batch {
		return eventlog.Batch{Drafts: []eventlog.Draft{{Kind: 1, Data: text(strings.Repeat("x", n))}}}
	}
	const header = 5 // of a long text
	must(t, session(t, defaults, "a"), big(1<<20-body-header))
	_, err := session(t, defaults, "a").Append(t.Context(), big(1<<20-body-header+1))
	require.ErrorIs(t, err, eventlog.ErrTooLarge)
	many := big(1<<20 - entry - header)
	many.Drafts = slices.Repeat(many.Drafts, 16)
	must(t, session(t, defaults, "a"), many) // 16 MiB
	many.Drafts[0] = big(1<<20 - entry - header + 1).Drafts[0]
	_, err = session(t, defaults, "a").Append(t.Context(), many)
	require.ErrorIs(t, err, eventlog.ErrTooLarge)
}

// An entry knows the size of its batch only if it is the first one of it, wherever the
// reading begins. A reader that has left is found at the next entry whose number is a
// multiple of 256.
func TestEntriesOfBatches(t *testing.T) {
	l := open(t, vfs.NewMem(), eventlog.Config{})
	s := session(t, l, "a")
	want := map[eventlog.Seq]int{}
	for _, n := range []int{1, 3, 2, 594} {
		want[s.Head().Seq+1] = n
		must(t, s, eventlog.Batch{Drafts: drafts(int(s.Head().Seq)+1, n)})
	}
	for from := range eventlog.Seq(12) {
		next := max(from, 1)
		for e, err := range s.Entries(t.Context(), from) {
			require.NoError(t, err)
			require.Equal(t, next, e.Seq)
			require.Equal(t, want[e.Seq], e.Batch, "entry %d, read from %d", e.Seq, from)
			require.Equal(t, fmt.Sprint("entry ", e.Seq), textOf(e))
			require.Equal(t, time.Duration(e.Seq)*time.Millisecond, e.At)
			next++
		}
		require.Equal(t, eventlog.Seq(601), next)
	}
	for _, left := range []eventlog.Seq{1, 255, 256, 300} {
		ctx, cancel := context.WithCancel(t.Context())
		last := eventlog.Seq(0)
		var failed error
		for e, err := range s.Entries(ctx, 1) {
			if failed = err; err != nil {
				break
			}
			if last = e.Seq; last == left {
				cancel()
			}
		}
		cancel()
		require.ErrorIs(t, failed, context.Canceled)
		require.Equal(t, map[eventlog.Seq]eventlog.Seq{1: 255, 255: 255, 256: 511, 300: 511}[left], last)
	}
	for seq, says := range map[eventlog.Seq]string{0: "has no entry 0, its last is 600", 601: "has no entry 601, its last is 600"} {
		_, err := s.Entry(t.Context(), seq)
		require.ErrorIs(t, err, eventlog.ErrInvalid)
		require.ErrorContains(t, err, says)
	}
	for _, seq := range []eventlog.Seq{1, 3, 600} {
		e, err := s.Entry(t.Context(), seq)
		require.NoError(t, err)
		require.Equal(t, seq, e.Seq)
	}

	// The ticket has the entries too, and its size; a repeat has neither.
	ticket, err := s.Stage(t.Context(), eventlog.Batch{Drafts: drafts(601, 3), Key: "k"})
	require.NoError(t, err)
	head, err := ticket.Wait(t.Context())
	require.NoError(t, err)
	require.Equal(t, eventlog.Seq(603), head.Seq)
	require.Equal(t, head, ticket.Head())
	require.Equal(t, eventlog.Seq(601), ticket.First())
	require.False(t, ticket.Repeat())
	var staged, stored []eventlog.Entry
	for e := range ticket.Entries() {
		staged = append(staged, e)
	}
	for e, err := range s.Entries(t.Context(), 601) {
		require.NoError(t, err)
		stored = append(stored, e)
	}
	require.Empty(t, cmp.Diff(stored, staged))
	for e := range ticket.Entries() { // a caller may stop
		require.Equal(t, eventlog.Seq(601), e.Seq)
		break
	}
	var value []byte
	require.NoError(t, l.Get(keyspace.BatchKey(nil, 1, 601), &value))
	require.Len(t, value, ticket.Size())
	again, err := s.Stage(t.Context(), eventlog.Batch{Key: "k"})
	require.NoError(t, err)
	require.True(t, again.Repeat())
	require.Zero(t, again.Size())
	require.Equal(t, eventlog.Seq(601), again.First())
	for range again.Entries() {
		t.Error("a repeat has entries")
	}
	_, err = again.Wait(t.Context())
	require.NoError(t, err)
}

// The largest batch and the largest entry that are allowed can be read again.
func TestLargestBatch(t *testing.T) {
	ctx := context.Background()
	l := open(t, vfs.NewMem(), eventlog.Config{MaxEntry: 1 << 20})
	s := session(t, l, "a")
	must(t, s, eventlog.Batch{Drafts: slices.Repeat([]eventlog.Draft{{Kind: 1, Data: text("x")}}, eventlog.MaxBatchEntries)})
	key := strings.Repeat("k", eventlog.MaxKey)
	size := 1<<20 - 1
	for ; ; size-- {
		_, err := s.Append(ctx, eventlog.Batch{Drafts: []eventlog.Draft{{Kind: 1, Data: text(strings.Repeat("x", size))}}, Key: key})
		if err == nil {
			break
		}
		if !errors.Is(err, eventlog.ErrTooLarge) || size < 1<<20-400 {
			t.Fatalf("%d bytes: %v", size, err)
		}
	}
	e, err := s.Entry(ctx, eventlog.MaxBatchEntries+1)
	if err != nil || len(e.Body) > 1<<20 || e.Key != key || len(e.Data) != size+5 {
		t.Errorf("read back %d bytes of data, key of %d bytes: %v", len(e.Data), len(e.Key), err)
	}
	if r, err := l.Verify(ctx, "a", verify.Options{}); err != nil || r.Fault != nil {
		t.Errorf("verify: %+v, %v", r, err)
	}
}

func TestSessionNames(t *testing.T) {
	l := open(t, vfs.NewMem(), eventlog.Config{})
	for _, name := range []string{"a", "release-42", "a/b", "Ünïcode 日本", strings.Repeat("n", eventlog.MaxName)} {
		s := session(t, l, name)
		must(t, s, eventlog.Batch{Drafts: drafts(1, 1)})
		if again := session(t, l, name); again != s {
			t.Errorf("%q has two handles", name)
		}
	}
	for _, name := range []string{"", "a\nb", "\x00", "\x7f", "bad \xff", "a\u2028b", strings.Repeat("n", eventlog.MaxName+1)} {
		if _, err := l.Session(name); !errors.Is(err, eventlog.ErrInvalid) {
			t.Errorf("%q: %v, want ErrInvalid", name, err)
		}
	}
	session(t, l, "never begun")
	infos, err := l.Sessions()
	if err != nil || len(infos) != 5 || infos[0].Name != "a" || infos[1].Name != "release-42" {
		t.Errorf("sessions: %v, %v", infos, err)
	}
	if _, err := l.Verify(context.Background(), "never begun", verify.Options{}); !errors.Is(err, eventlog.ErrNoSession) {
		t.Errorf("verify a session that does not exist: %v", err)
	}
}

// Writers of one session get disjoint, consecutive ranges, each with the entries of its
// writer.
func TestConcurrentWritersOfOneSession(t *testing.T) {
	ctx := context.Background()
	l := open(t, vfs.NewMem(), eventlog.Config{})
	s := session(t, l, "a")
	type span struct {
		first, last eventlog.Seq
		writer      string
	}
	var mu sync.Mutex
	var spans []span
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := range 30 {
				name := fmt.Sprintf("%d/%d", w, i)
				ds := slices.Repeat([]eventlog.Draft{{Kind: eventlog.KindSignal, Data: text(name)}}, 1+(w+i)%4)
				ticket, err := s.Stage(t.Context(), eventlog.Batch{Drafts: ds})
				if err != nil {
					t.Error(err)
					return
				}
				head, err := ticket.Wait(t.Context())
				if err != nil || s.Head().Seq < head.Seq || head != ticket.Head() {
					t.Errorf("head %v, ticket %v, session %v: %v", head, ticket.Head(), s.Head(), err)
				}
				mu.Lock()
				spans = append(spans, span{ticket.First(), head.Seq, name})
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	slices.SortFunc(spans, func(a, b span) int { return int(a.first) - int(b.first) })
	var want, got []string
	next := eventlog.Seq(1)
	for _, s := range spans {
		if s.first != next {
			t.Fatalf("a range begins with %d, want %d", s.first, next)
		}
		next = s.last + 1
		want = append(want, slices.Repeat([]string{s.writer}, int(s.last-s.first)+1)...)
	}
	for e, err := range s.Entries(ctx, 1) {
		require.NoError(t, err)
		got = append(got, string(e.Data[1:]))
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestThousandSessions(t *testing.T) {
	ctx := context.Background()
	mem := vfs.NewMem()
	l := open(t, mem, eventlog.Config{})
	heads := map[string]eventlog.Head{}
	var names []string
	for i := range 1000 {
		name := fmt.Sprintf("session %d", i*7919%1000)
		names = append(names, name)
		heads[name] = must(t, session(t, l, name), eventlog.Batch{Drafts: drafts(1, 1+i%3), Key: "begin"})
	}
	require.NoError(t, l.Close())
	l = open(t, mem, eventlog.Config{})
	infos, err := l.Sessions()
	require.NoError(t, err)
	for i, info := range infos {
		if info.Name != names[i] {
			t.Fatalf("session %d is %q, want %q", i, info.Name, names[i])
		}
		r, err := l.Verify(ctx, info.Name, verify.Options{Expect: heads[info.Name], Workers: 1})
		if err != nil || r.Fault != nil || r.Head != heads[info.Name] {
			t.Errorf("%s: %+v, %v", info.Name, r, err)
		}
	}
	if head := must(t, session(t, l, "one more"), eventlog.Batch{Drafts: drafts(1, 1)}); head.Seq != 1 {
		t.Errorf("a new session begins with %v", head)
	}
}

// A store can be open only once: a second Open returns ErrLocked, at once or after
// waiting.
func TestLockedStore(t *testing.T) {
	for name, disk := range map[string]vfs.FS{"memory": vfs.NewMem(), "disk": vfs.Default} {
		dir := filepath.Join(t.TempDir(), "store")
		l, err := eventlog.Open(dir, eventlog.Config{FS: disk})
		require.NoError(t, err)
		for _, cfg := range []eventlog.Config{{}, {ReadOnly: true}, {LockWait: 50 * time.Millisecond}} {
			cfg.FS = disk
			if l, err := eventlog.Open(dir, cfg); !errors.Is(err, eventlog.ErrLocked) {
				t.Errorf("%s: %+v: %v, %v; want ErrLocked", name, cfg, l, err)
			}
		}
		require.NoError(t, errors.Join(l.Close(), l.Close()))
		l, err = eventlog.Open(dir, eventlog.Config{FS: disk})
		require.NoErrorf(t, err, "%s: after Close", name)
		assert.NoError(t, l.Close())
	}
}

// The lock also holds for another path to the same directory.
func TestLockedUnderAnotherPath(t *testing.T) {
	tmp := t.TempDir()
	dir := filepath.Join(tmp, "store")
	l, err := eventlog.Open(dir, eventlog.Config{})
	require.NoError(t, err)
	link := filepath.Join(tmp, "link")
	require.NoError(t, os.Symlink(dir, link))
	t.Chdir(tmp)
	for _, path := range []string{"store", "./store/", link, tmp + "/../" + filepath.Base(tmp) + "/store"} {
		if second, err := eventlog.Open(path, eventlog.Config{}); !errors.Is(err, eventlog.ErrLocked) {
			t.Errorf("%s: %v, %v; want ErrLocked", path, second, err)
		}
	}
	assert.NoError(t, l.Close())
}

// contents reads every file below a directory, with its modification time. It omits the
// time of the lock file, which changes with each Open.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		b, err := os.ReadFile(path)
		files[path] = string(b)
		if d.Name() != "LOCK" {
			files[path] += info.ModTime().String()
		}
		return err
	})
	require.NoError(t, err)
	return files
}

// A read-only Open changes no byte, neither of a store that was closed nor of
// one whose write-ahead log has to be replayed, and reads all of it.
func TestReadOnlyOpenChangesNothing(t *testing.T) {
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "store")
	l, err := eventlog.Open(dir, eventlog.Config{})
	require.NoError(t, err)
	must(t, session(t, l, "a"), eventlog.Batch{Drafts: drafts(1, 5)})
	// A copy of the current files is the state that a kill would leave.
	killed := filepath.Join(t.TempDir(), "killed")
	require.NoError(t, os.CopyFS(killed, os.DirFS(dir)))
	require.NoError(t, l.Close())
	for _, dir := range []string{dir, killed} {
		before := contents(t, dir)
		l, err := eventlog.Open(dir, eventlog.Config{ReadOnly: true})
		require.NoError(t, err)
		s := session(t, l, "a")
		if n := count(t, s); n != 5 {
			t.Errorf("%d entries, want 5", n)
		}
		if _, err := s.Append(ctx, eventlog.Batch{Drafts: drafts(6, 1)}); !errors.Is(err, eventlog.ErrReadOnly) {
			t.Errorf("append: %v", err)
		}
		if !errors.Is(l.Err(), eventlog.ErrReadOnly) {
			t.Errorf("Err() = %v", l.Err())
		}
		if r, err := l.Verify(ctx, "a", verify.Options{}); err != nil || r.Fault != nil {
			t.Errorf("verify: %+v, %v", r, err)
		}
		assert.NoError(t, l.Close())
		if d := cmp.Diff(before, contents(t, dir)); d != "" {
			t.Errorf("changed:\n%s", d)
		}
	}
}

// Open refuses a directory that is not a store of this program, with the right error.
func TestOpenWrongDirectories(t *testing.T) {
	tmp := t.TempDir()
	plain := filepath.Join(tmp, "plain")
	require.NoError(t, errors.Join(os.Mkdir(plain, 0o755), os.WriteFile(filepath.Join(plain, "notes.txt"), []byte("hello"), 0o644)))
	pebbleStore := func(name string, key, value []byte) string {
		dir := filepath.Join(tmp, name)
		db, err := pebble.Open(dir, &pebble.Options{Logger: quiet{t}, FormatMajorVersion: pebble.FormatWALSyncChunks})
		require.NoError(t, err)
		require.NoError(t, errors.Join(db.Set(key, value, pebble.Sync), db.Close()))
		return dir
	}
	other := pebbleStore("other", []byte("user/1"), []byte("x"))
	newer := pebbleStore("newer", keyspace.FormatKey(), []byte{3})
	garbled := pebbleStore("garbled", keyspace.FormatKey(), []byte{1, 2})
	for _, tt := range []struct {
		dir      string
		readOnly bool
		want     error // nil: any
	}{
		{filepath.Join(tmp, "nowhere"), true, eventlog.ErrNoStore},
		{plain, true, eventlog.ErrNoStore},
		{filepath.Join(plain, "notes.txt"), true, eventlog.ErrNoStore},
		{filepath.Join(plain, "notes.txt"), false, eventlog.ErrForeign},
		{plain, false, eventlog.ErrForeign},
		{other, true, eventlog.ErrNoStore},
		{other, false, eventlog.ErrForeign},
		{newer, true, eventlog.ErrVersion},
		{newer, false, eventlog.ErrVersion},
		{garbled, false, eventlog.ErrCorrupt},
	} {
		before := contents(t, tmp)
		l, err := eventlog.Open(tt.dir, eventlog.Config{ReadOnly: tt.readOnly})
		if err == nil {
			t.Errorf("%s: opens", tt.dir)
			_ = l.Close()
			continue
		}
		if tt.want != nil && !errors.Is(err, tt.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s, read-only %v: %v, want one line with %v", tt.dir, tt.readOnly, err, tt.want)
		}
		if d := cmp.Diff(before, contents(t, tmp)); d != "" {
			t.Errorf("%s: changed:\n%s", tt.dir, d)
		}
	}
	if _, err := eventlog.Open(filepath.Join(tmp, "x"), eventlog.Config{MaxEntry: -1}); !errors.Is(err, eventlog.ErrInvalid) {
		t.Errorf("a negative bound: %v", err)
	}
}

// Every call on a closed log returns ErrClosed.
func TestClosed(t *testing.T) {
	ctx := context.Background()
	l := open(t, vfs.NewMem(), eventlog.Config{})
	s := session(t, l, "a")
	must(t, s, eventlog.Batch{Drafts: drafts(1, 3)})
	require.NoError(t, l.Close())
	_, appendErr := s.Append(ctx, eventlog.Batch{Drafts: drafts(4, 1)})
	_, sessionErr := l.Session("b")
	_, listErr := l.Sessions()
	_, verifyErr := l.Verify(ctx, "a", verify.Options{})
	_, entryErr := s.Entry(ctx, 1)
	_, sizeErr := l.DiskSize(ctx, "a")
	for name, err := range map[string]error{
		"append": appendErr, "session": sessionErr, "list": listErr, "verify": verifyErr,
		"entry": entryErr, "size": sizeErr, "err": l.Err(),
	} {
		assert.ErrorIsf(t, err, eventlog.ErrClosed, "%s: %v, want ErrClosed", name, err)
	}
	for _, err := range s.Follow(ctx, 4) {
		assert.ErrorIs(t, err, eventlog.ErrClosed, "follow")
	}
}
