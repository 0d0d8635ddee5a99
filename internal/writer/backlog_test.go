package writer

import (
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/session"
)

// tickets stages batches of these numbers of entries in a session of its own.
func tickets(t *testing.T, sizes ...int) (all []*eventlog.Ticket) {
	t.Helper()
	log, err := eventlog.Open("store", eventlog.Config{FS: vfs.NewMem()})
	require.NoError(t, err)
	s, err := log.Session("a")
	require.NoError(t, err)
	a, err := s.Claim()
	require.NoError(t, err)
	for _, n := range sizes {
		ticket, err := a.AppendIn(t.Context(), func(r *eventlog.Round) (*eventlog.Ticket, error) {
			var d session.Drafts
			for range n {
				d.Tick(0)
			}
			return r.Stage(eventlog.Batch{Drafts: d.List()})
		})
		require.NoError(t, err)
		all = append(all, ticket)
	}
	require.NoError(t, log.Close())
	return all
}

func sizes(all []*eventlog.Ticket) (n int) {
	for _, t := range all {
		n += t.Size()
	}
	return n
}

// Without a fold a backlog forgets what is durable, because the fold will read it; with
// one it keeps everything and knows how far it is behind.
func TestBacklogKeeps(t *testing.T) {
	all := tickets(t, 1, 3, 2, 1) // up to the entries 1, 4, 6 and 7
	var b backlog
	holds := func(size int, want ...*eventlog.Ticket) {
		t.Helper()
		assert.Equal(t, want, append([]*eventlog.Ticket(nil), b.tickets...))
		assert.Equal(t, sizes(want), b.bytes)
		assert.Equal(t, size, b.size())
	}
	b.add(all[0], 0)
	b.add(all[1], 0)
	holds(0, all[0], all[1])
	b.add(all[2], 3) // the second batch is not durable as a whole
	holds(0, all[1], all[2])
	b.add(all[3], 4)
	holds(0, all[2], all[3])
	b.keepAll()
	holds(7, all[2], all[3])
	b.add(all[3], 7)
	holds(8, all[2], all[3], all[3])
	assert.True(t, b.letGo(6))
	holds(0, all[3], all[3])
	b.keepAll()
	holds(2, all[3], all[3])
	assert.Equal(t, []*eventlog.Ticket{all[3], all[3]}, b.take())
	holds(0)
	assert.Empty(t, b.take())
	assert.Equal(t, 3, entries(all[1]))

	b.followed = true
	assert.False(t, b.letGo(7), "a goroutine folds")
	b.followed, b.eager = false, true
	assert.False(t, b.letGo(7), "agents are in use")
	assert.True(t, b.current())
	assert.True(t, b.loaded)
}

// How the folding of a backlog goes on, by all that it depends on.
func TestBacklogNext(t *testing.T) {
	one := tickets(t, 5)
	const (
		eager = 1 << iota
		followed
		watched
		unloaded
		following // a goroutine asks
		imageDue
		none // no batch
	)
	for _, tt := range []struct {
		flags, behind, bytes int
		want                 step
		after                int // which of followed and watched are set
	}{
		{none, 0, 0, stepNone, 0},
		{none | eager, 0, 0, stepNone, 0},
		{none | following | followed, 0, 0, stepNone, 0},
		{0, 1, 1, stepWatch, watched},
		{watched, 1, 1, stepNone, watched},
		{unloaded, 1, 1, stepNone, 0},
		{following | followed, 1, 1, stepWatch, watched},
		{following | followed | watched, 1, 1, stepNone, watched},
		{0, 1023, 1, stepWatch, watched},
		{0, 1024, 1, stepAside, followed},
		{unloaded, 1024, 1, stepAside, followed},
		{followed, 1024, 1, stepNone, followed},
		{following | followed, 1024, 1, stepAside, followed},
		{imageDue, 1, 1, stepAside, followed},
		{imageDue | unloaded, 1, 1, stepAside, followed},
		{imageDue | followed, 1, 1, stepNone, followed},
		{0, 8192, 1, stepAside, followed},
		{0, 8193, 1, stepHere, 0},
		{followed, 8193, 1, stepHere, followed},
		{following | followed, 8193, 1, stepAside, followed},
		{0, 1, 16 << 20, stepWatch, watched},
		{0, 1, 16<<20 + 1, stepHere, 0},
		{following | followed, 1, 16<<20 + 1, stepWatch, watched},
		{eager, 1, 1, stepHere, 0},
		{eager, 256, 1, stepHere, 0},
		{eager, 257, 1, stepAside, followed},
		{eager | followed, 1, 1, stepNone, followed},
		{eager | following | followed, 1, 1, stepAside, followed},
		{eager, 8193, 1, stepHere, 0},
	} {
		b := backlog{behind: tt.behind, bytes: tt.bytes, loaded: tt.flags&unloaded == 0, eager: tt.flags&eager != 0, followed: tt.flags&followed != 0, watched: tt.flags&watched != 0, busy: true}
		if tt.flags&none == 0 {
			b.tickets = one
		}
		got := b.next(tt.flags&following != 0, func(folded, newest eventlog.Seq) bool {
			assert.Equal(t, eventlog.Seq(5), newest, "%+v", tt)
			assert.Equal(t, eventlog.Seq(5)-eventlog.Seq(tt.behind), folded, "%+v", tt)
			return tt.flags&imageDue != 0
		})
		assert.Equal(t, tt.want, got, "%+v", tt)
		assert.Equal(t, tt.after&followed != 0, b.followed, "%+v", tt)
		assert.Equal(t, tt.after&watched != 0, b.watched, "%+v", tt)
		assert.Equal(t, tt.want != stepWatch, b.busy, "a timer that begins waits for the next batch: %+v", tt)
	}
}

// When the timer has run, it runs again if a batch came meanwhile, and otherwise the
// backlog is folded, unless that is done or there is nothing to fold.
func TestBacklogRung(t *testing.T) {
	one := tickets(t, 5)
	for _, tt := range []*struct {
		b       backlog
		want    step
		watched bool
	}{
		{backlog{busy: true, loaded: true, tickets: one}, stepWatch, true},
		{backlog{busy: true, loaded: true}, stepWatch, true},
		{backlog{busy: true, loaded: true, followed: true, tickets: one}, stepNone, false},
		{backlog{busy: true, tickets: one}, stepNone, false},
		{backlog{loaded: true, tickets: one}, stepAside, false},
		{backlog{loaded: true, followed: true, tickets: one}, stepNone, false},
		{backlog{tickets: one}, stepNone, false},
		{backlog{loaded: true}, stepNone, false},
	} {
		b := &tt.b
		b.watched = true
		was, busy := b.followed, b.busy
		assert.Equal(t, tt.want, b.rung(), "%+v", tt.want)
		assert.Equal(t, tt.watched, b.watched)
		assert.Equal(t, was || tt.want == stepAside, b.followed)
		assert.Equal(t, busy && tt.want != stepWatch, b.busy)
	}
}

// A noted position is read as it was written, for its own head alone, and only if each
// of its fields is one that this program writes.
func TestPosition(t *testing.T) {
	head := eventlog.Head{Seq: 7, Hash: eventlog.Genesis("a")}
	for _, p := range []position{
		{head: head, Frontier: Frontier{Time: session.Time{Authority: session.TimeWall, HasOrigin: true, Origin: -5}}, reacts: true},
		{head: head, Frontier: Frontier{Time: session.Time{Authority: session.TimeManual}}},
		{head: head},
	} {
		data := appendPosition([]byte("x"), &p)[1:]
		got, ok := readPosition(data, head)
		assert.True(t, ok)
		assert.Equal(t, p, got)
		for _, other := range []eventlog.Head{{Seq: 8, Hash: head.Hash}, {Seq: 7, Hash: eventlog.Genesis("b")}, {}} {
			_, ok = readPosition(data, other)
			assert.False(t, ok)
		}
		for n := range data {
			_, ok = readPosition(data[:n], head)
			assert.False(t, ok, "%d bytes", n)
		}
		_, ok = readPosition(append(data[:len(data):len(data)], 0), head)
		assert.False(t, ok, "a byte behind")
		for i := range 3 { // the layout, the version and the rules
			changed := append([]byte(nil), data...)
			changed[i] ^= 1
			_, ok = readPosition(changed, head)
			assert.False(t, ok, "byte %d", i)
		}
	}
	odd := position{head: head, Frontier: Frontier{Time: session.Time{Authority: "moon"}}}
	_, ok := readPosition(appendPosition(nil, &odd), head)
	assert.False(t, ok, "no session has this source of time")
}

// The first entries of a session, and those in front of a decision, by the source of time.
func TestOpened(t *testing.T) {
	now := time.Unix(0, 1_000)
	g := NewGroup(Config{Now: func() time.Time { return now }})
	plain := session.Drafts{}
	plain.Tick(3)
	kinds := func(drafts []eventlog.Draft) (at []time.Duration) {
		for _, d := range drafts {
			at = append(at, d.At)
		}
		return at
	}
	for _, tt := range []struct {
		name  string
		seq   eventlog.Seq
		time  session.Time
		after *Frontier // nil: a decision
		now   time.Duration
		ats   []time.Duration // of the entries
		want  Frontier
	}{
		{"a record begins", 0, session.Time{}, &Frontier{At: 9}, 0, []time.Duration{5, 3}, Frontier{At: 9, Time: session.Time{Authority: session.TimeWall}}},
		{"a record", 4, session.Time{Authority: session.TimeWall}, &Frontier{At: 9, Time: session.Time{Authority: session.TimeWall}}, 0, []time.Duration{3}, Frontier{At: 9, Time: session.Time{Authority: session.TimeWall}}},
		{"a decision begins", 0, session.Time{}, nil, 8, []time.Duration{5, 5, 3}, Frontier{At: 8, Time: session.Time{Authority: session.TimeWall, HasOrigin: true, Origin: 995}}},
		{"a decision without an origin", 4, session.Time{Authority: session.TimeWall}, nil, 8, []time.Duration{5, 3}, Frontier{At: 8, Time: session.Time{Authority: session.TimeWall, HasOrigin: true, Origin: 995}}},
		{"a decision", 4, session.Time{Authority: session.TimeWall, HasOrigin: true, Origin: 7}, nil, 2, []time.Duration{3}, Frontier{At: 5, Time: session.Time{Authority: session.TimeWall, HasOrigin: true, Origin: 7}}},
		{"a decision of the program's time", 4, session.Time{Authority: session.TimeManual}, nil, 6, []time.Duration{3}, Frontier{At: 6, Time: session.Time{Authority: session.TimeManual}}},
	} {
		w := &Writer{group: g, authority: session.TimeWall}
		p := position{head: eventlog.Head{Seq: tt.seq}, Frontier: Frontier{At: 5, Time: tt.time}}
		drafts := w.opened(&p, &Proposal{Drafts: plain.List(), After: tt.after}, tt.now)
		assert.Equal(t, tt.ats, kinds(drafts), tt.name)
		assert.Equal(t, tt.want, p.Frontier, tt.name)
	}
}
