package otlp

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	sajou "github.com/sajou-dev/sajou-go"
	otlpformat "github.com/sajou-dev/sajou-go/ingest/otlp"
	"github.com/sajou-dev/sajou-go/server/problem"
	"github.com/sajou-dev/sajou-go/signal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// clock runs timers when the test moves it.
type clock struct {
	mu     sync.Mutex
	now    time.Time
	timers map[int]*timer
	next   int
}

type timer struct {
	at time.Time
	f  func()
}

func newClock() *clock {
	return &clock{now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), timers: map[int]*timer{}}
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) AfterFunc(d time.Duration, f func()) (stop func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.next
	c.next++
	c.timers[n] = &timer{c.now.Add(d), f}
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		_, was := c.timers[n]
		delete(c.timers, n)
		return was
	}
}

// advance moves the clock and runs the timers that are due.
func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	c.now = c.now.Add(d)
	var due []func()
	for n := range c.next {
		if t := c.timers[n]; t != nil && !t.at.After(c.now) {
			due = append(due, t.f)
			delete(c.timers, n)
		}
	}
	c.mu.Unlock()
	for _, f := range due {
		f()
	}
}

// journal is a log with idempotency keys.
type journal struct {
	mu       sync.Mutex
	keys     map[string]bool
	sessions map[string][]*signal.Signal
}

func newJournal() *journal {
	return &journal{keys: map[string]bool{}, sessions: map[string][]*signal.Signal{}}
}

// process is a signalStore over a journal, of a process that ends at one of its records.
type process struct {
	*journal
	crashAt int    // the number of the record at which it ends, from 0; negative: never
	applied bool   // that record reaches the journal
	copyDir func() // copies the spool at that moment
	records int
	dead    bool
}

func (p *process) usable(context.Context, string) error { return nil }

func (p *process) record(_ context.Context, session string, a sajou.Addition) (waitFunc, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead {
		return nil, problem.ErrStopping
	}
	crash := p.records == p.crashAt
	p.records++
	wait := recorded(true)
	if !crash || p.applied {
		wait = p.apply(session, a)
	}
	if crash {
		p.dead = true
		p.copyDir()
		return nil, problem.ErrStopping
	}
	return wait, nil
}

func recorded(repeat bool) waitFunc {
	return func(context.Context) (bool, error) { return repeat, nil }
}

func (j *journal) apply(session string, a sajou.Addition) waitFunc {
	key := session + " " + a.Key
	if j.keys[key] {
		return recorded(true)
	}
	j.keys[key] = true
	j.sessions[session] = append(j.sessions[session], a.Signals...)
	return recorded(false)
}

// rest waits until nothing is being mapped.
func (rv *TraceReceiver) rest() {
	for {
		rv.mu.Lock()
		working, idle := rv.working, rv.idle
		rv.mu.Unlock()
		if !working {
			return
		}
		<-idle
	}
}

// accept takes parts as a request does.
func (rv *TraceReceiver) accept(parts ...otlpformat.ExportPart) error {
	touched, err := rv.write("", parts)
	if err == nil {
		err = rv.acknowledge(touched)
	}
	return err
}

// tree returns the parts of a trace: an agent with tools, some of them below another.
func tree(t *rapid.T, trace byte) []otlpformat.ExportPart {
	all := ptrace.NewTraces()
	list := all.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans()
	for i := range rapid.IntRange(1, 5).Draw(t, "spans") {
		s := list.AppendEmpty()
		s.SetTraceID([16]byte{trace})
		s.SetSpanID([8]byte{trace, byte(i) + 1})
		s.SetName("invoke_agent ann")
		if i > 0 {
			s.SetName(fmt.Sprintf("execute_tool t%d", i))
			s.SetParentSpanID([8]byte{trace, byte(rapid.IntRange(0, i-1).Draw(t, "parent")) + 1})
		}
		s.SetStartTimestamp(pcommon.Timestamp(1_767_225_600_000_000_000 + i))
		s.SetEndTimestamp(pcommon.Timestamp(1_767_225_601_000_000_000 - i))
	}
	text, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(all)
	require.NoError(t, err)
	parts, refused, err := otlpformat.SplitSpans(text, false)
	require.NoError(t, err)
	require.Zero(t, refused)
	return parts
}

// note notes the traces whose root has arrived before another of their spans.
func note(sent map[byte][]otlpformat.ExportPart, arrived []otlpformat.ExportPart, late map[string]bool) {
	for _, parts := range sent {
		rooted, n := false, 0
		for _, p := range arrived {
			if p.Trace == parts[0].Trace {
				n++
				rooted = rooted || p.Parent == ""
			}
		}
		if rooted && n < len(parts) {
			late[parts[0].Trace] = true
		}
	}
}

// counts returns how often each id is among signals.
func counts(list []*signal.Signal) map[string]int {
	n := map[string]int{}
	for _, s := range list {
		n[s.ID]++
	}
	return n
}

// Whatever the order and the repetitions in which spans arrive, and wherever processes end: what was
// acknowledged is recorded, and no signal twice. Traces that arrive whole, without a wait
// between their spans, give the signals that a file gives.
func TestNothingLostNothingTwice(outer *testing.T) {
	rapid.Check(outer, func(t *rapid.T) {
		c := newClock()
		log := newJournal()
		dir := filepath.Join(outer.TempDir(), "otlp")
		copies := 0
		var rv *TraceReceiver
		var p *process
		start := func() {
			p = &process{journal: log, crashAt: -1}
			if rapid.Bool().Draw(t, "crashes") {
				p.crashAt, p.applied = rapid.IntRange(0, 2).Draw(t, "crash at"), rapid.Bool().Draw(t, "applied")
			}
			from := dir
			copies++
			to := filepath.Join(outer.TempDir(), fmt.Sprint("copy", copies))
			p.copyDir = func() { assert.NoError(outer, os.CopyFS(to, os.DirFS(from))); dir = to }
			var err error
			rv, err = open(p, func() error { return nil }, Config{Dir: from, Now: c.Now, AfterFunc: c.AfterFunc, Wait: time.Minute, Keep: 5 * time.Minute})
			require.NoError(t, err)
		}
		// settle waits for the worker, and starts another process after a crash.
		settle := func() {
			for {
				rv.rest()
				p.mu.Lock()
				dead := p.dead
				p.mu.Unlock()
				if !dead {
					return
				}
				require.NoError(t, rv.Close(outer.Context()))
				start()
			}
		}
		start()
		settle()
		sent := map[byte][]otlpformat.ExportPart{}
		var waiting []otlpformat.ExportPart
		for trace := range byte(rapid.IntRange(1, 3).Draw(t, "traces")) {
			sent[trace+1] = tree(t, trace+1)
			waiting = append(waiting, sent[trace+1]...)
		}
		waiting = rapid.Permutation(waiting).Draw(t, "order")
		late := map[string]bool{} // the traces that were mapped before all their spans had arrived
		for at := 0; at < len(waiting); {
			n := min(rapid.IntRange(1, 4).Draw(t, "request"), len(waiting)-at)
			request := slices.Clone(waiting[at : at+n])
			if at > 0 && rapid.Bool().Draw(t, "with a repetition") {
				request = append(request, waiting[rapid.IntRange(0, at-1).Draw(t, "repeated")])
			}
			if err := rv.accept(request...); err != nil {
				require.ErrorIs(t, err, problem.ErrStopping)
			} else {
				at += n
				note(sent, waiting[:at], late)
			}
			if rapid.Bool().Draw(t, "time passes") {
				settle()
				c.advance(rapid.SampledFrom([]time.Duration{time.Second, time.Minute}).Draw(t, "by"))
				for _, part := range waiting[at:] {
					late[part.Trace] = true
				}
			}
			settle()
			if rapid.IntRange(0, 5).Draw(t, "restart") == 0 {
				require.NoError(t, rv.Close(outer.Context()))
				start()
				settle()
			}
		}
		for range 4 { // a trace that is not complete, retries
			c.advance(time.Minute)
			settle()
		}
		recorded := log.sessions["live"]
		for id, n := range counts(recorded) {
			require.Equal(t, 1, n, "the signal %s is recorded %d times", id, n)
		}
		have := counts(recorded)
		for trace, parts := range sent {
			all, err := otlpformat.Live(parts)
			require.NoError(t, err)
			for _, s := range all {
				// Spans that were mapped without the others may have left other states behind.
				if late[parts[0].Trace] && strings.Contains(s.Type, "state") {
					continue
				}
				require.Equal(t, 1, have[s.ID], "trace %d lacks %s", trace, s.Type)
			}
			if !late[parts[0].Trace] {
				var own []*signal.Signal
				for _, s := range recorded {
					if s.Metadata.TextOf("trace") == parts[0].Trace {
						own = append(own, s)
					}
				}
				require.Len(t, own, len(all))
			}
		}
		c.advance(10 * time.Minute)
		settle()
		require.Empty(t, rv.traces)
		require.Zero(t, rv.waiting)
		require.Zero(t, rv.spool.Used())
		require.NoError(t, rv.Close(outer.Context()))
	})
}
