package otlp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/eventlog"
	otlpformat "github.com/sajou-dev/sajou-go/ingest/otlp"
	"github.com/sajou-dev/sajou-go/server/access"
	"github.com/sajou-dev/sajou-go/server/otlp/spool"
	"github.com/sajou-dev/sajou-go/server/problem"
	"github.com/sajou-dev/sajou-go/server/route"
	"github.com/sajou-dev/sajou-go/signal"
)

// troubled is a signalStore that fails as often as a test says.
type troubled struct {
	*journal
	fail func(a sajou.Addition) error
}

func (s *troubled) usable(context.Context, string) error { return nil }

func (s *troubled) record(_ context.Context, session string, a sajou.Addition) (waitFunc, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.fail(a); err != nil {
		return nil, err
	}
	return s.apply(session, a), nil
}

// newTroubled returns a receiver over such a store.
func newTroubled(t *testing.T, cfg Config, fail func(a sajou.Addition) error) (*TraceReceiver, *troubled, *clock, *bytes.Buffer) {
	t.Helper()
	c := newClock()
	store := &troubled{newJournal(), fail}
	var log bytes.Buffer
	cfg.Dir, cfg.Now, cfg.AfterFunc, cfg.Logger = t.TempDir()+"/otlp", c.Now, c.AfterFunc, slog.New(slog.NewTextHandler(&log, nil))
	rv, err := open(store, func() error { return nil }, cfg)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, rv.Close(context.WithoutCancel(t.Context()))) })
	return rv, store, c, &log
}

// span returns a span as a part.
func span(t *testing.T, trace, id, parent int, name string) otlpformat.ExportPart {
	t.Helper()
	above := ""
	if parent > 0 {
		above = fmt.Sprintf(`"parentSpanId":"%016x",`, parent)
	}
	text := fmt.Sprintf(`{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"%032x","spanId":"%016x",%s"name":%q,"startTimeUnixNano":"1767225600000000000","endTimeUnixNano":"1767225601000000000"}]}]}]}`, trace, id, above, name)
	parts, refused, err := otlpformat.SplitSpans([]byte(text), true)
	require.NoError(t, err)
	require.Zero(t, refused)
	return parts[0]
}

// Signals that the log refuses are tried again with the same key, and further spans do not delay
// the attempt.
func TestTriedAgain(t *testing.T) {
	var keys []string
	broken := true
	rv, store, c, log := newTroubled(t, Config{}, func(a sajou.Addition) error {
		keys = append(keys, a.Key)
		if broken {
			return eventlog.ErrReadOnly
		}
		return nil
	})
	require.NoError(t, rv.accept(span(t, 1, 1, 0, "execute_tool one")))
	rv.rest()
	require.Len(t, keys, 1)
	assert.Contains(t, log.String(), "could not be recorded; it is tried again")
	c.advance(retryAfter / 2)
	require.NoError(t, rv.accept(span(t, 1, 2, 1, "execute_tool two")))
	rv.rest()
	require.Len(t, keys, 1)
	broken = false
	c.advance(retryAfter / 2)
	rv.rest()
	require.Len(t, keys, 3, "the plan that failed, and one for the further span")
	assert.Equal(t, keys[0], keys[1])
	assert.NotEqual(t, keys[1], keys[2])
	calls := 0
	for _, s := range store.sessions["live"] {
		if s.Type == "tool_call" {
			calls++
		}
	}
	assert.Equal(t, 2, calls)
}

// A signal that the log refuses costs no other, and a session that was deleted keeps no
// trace in the spool.
func TestRefusedSignals(t *testing.T) {
	rv, store, _, log := newTroubled(t, Config{}, func(a sajou.Addition) error {
		for i, s := range a.Signals {
			if s.Type == "tool_call" {
				return &sajou.SignalError{Index: i, Err: signal.ErrSchema}
			}
		}
		return nil
	})
	require.NoError(t, rv.accept(span(t, 1, 1, 0, "execute_tool one")))
	rv.rest()
	assert.Equal(t, 3, len(store.sessions["live"]))
	assert.Contains(t, log.String(), "a signal of a trace is refused and lost")

	rv, _, c, log := newTroubled(t, Config{}, func(sajou.Addition) error { return fmt.Errorf("%w: live", eventlog.ErrDeleted) })
	require.NoError(t, rv.accept(span(t, 1, 1, 0, "execute_tool one")))
	rv.rest()
	assert.Contains(t, log.String(), "the session of a trace was deleted")
	c.advance(time.Hour)
	assert.Zero(t, rv.spool.Used())
}

// A trace that is too large is recorded before it is complete, and forgotten.
func TestLargeTrace(t *testing.T) {
	rv, store, _, _ := newTroubled(t, Config{MaxTrace: 1000}, func(sajou.Addition) error { return nil })
	for i := range 4 {
		require.NoError(t, rv.accept(span(t, 1, i+2, 1, "execute_tool one")))
	}
	rv.rest()
	assert.NotEmpty(t, store.sessions["live"])
	assert.Less(t, len(rv.traces), 2)
	require.NoError(t, rv.accept(span(t, 1, 1, 0, "invoke_agent ann")))
	rv.rest()
	assert.Contains(t, types(store.sessions["live"]), "completion")
}

func types(list []*signal.Signal) []string {
	var names []string
	for _, s := range list {
		names = append(names, s.Type)
	}
	return names
}

// When the spool is more than half full, the oldest traces are recorded early and make room.
func TestRoomIsMade(t *testing.T) {
	rv, store, _, _ := newTroubled(t, Config{MaxSpool: 20_000}, func(sajou.Addition) error { return nil })
	const traces = 100
	for i := range traces {
		require.NoError(t, rv.accept(span(t, i+1, 2, 1, "execute_tool "+strings.Repeat("x", 200))))
		rv.rest()
	}
	assert.Less(t, rv.spool.Used(), int64(20_000))
	assert.Less(t, len(rv.traces), 40)
	assert.NotEmpty(t, store.sessions["live"])

	// One trace that takes most of the spool makes room for the next, late spans or not.
	rv, store, _, _ = newTroubled(t, Config{MaxSpool: 20_000}, func(sajou.Addition) error { return nil })
	large := func(trace, parent, size int) error {
		defer rv.rest()
		return rv.accept(span(t, trace, 2, parent, "execute_tool "+strings.Repeat("x", size)))
	}
	require.NoError(t, large(1, 0, 8_000))
	require.ErrorIs(t, large(2, 1, 12_000), spool.ErrFull)
	require.NoError(t, large(2, 1, 12_000), "the first one is gone")
	require.NoError(t, large(3, 1, 12_000), "and the second one too, because it took more than half")
	calls := slices.DeleteFunc(types(store.sessions["live"]), func(name string) bool { return name != "tool_call" })
	assert.Len(t, calls, 3)
	require.ErrorIs(t, rv.accept(span(t, 4, 2, 1, strings.Repeat("x", 20_000))), spool.ErrTooLarge)
	assert.LessOrEqual(t, rv.spool.Used(), int64(20_000))
}

// A spool that cannot be made is not there when its folder can be made: the exporter sends
// the spans again.
func TestSpoolCannotBeMade(t *testing.T) {
	rv, store, _, _ := newTroubled(t, Config{}, func(sajou.Addition) error { return nil })
	require.NoError(t, os.WriteFile(rv.cfg.Dir, nil, 0o600))
	caller := &access.Caller{Grants: []access.Grant{{Scope: access.ScopeRecord, Sessions: []string{"*"}}}}
	send := func() error {
		r := httptest.NewRequest(http.MethodPost, "/v1/traces", bytes.NewReader(span(t, 1, 1, 0, "execute_tool one").Text))
		r.Header.Set("Content-Type", route.MediaJSON)
		return rv.post(httptest.NewRecorder(), r.WithContext(access.With(r.Context(), caller)), otlpformat.SplitSpans, "rejectedSpans")
	}
	err := send()
	require.Error(t, err)
	assert.Equal(t, problem.ReadOnly, problem.Of(err).Code)
	assert.NotContains(t, problem.Of(err).Detail, rv.cfg.Dir)
	require.NoError(t, rv.Err(), "it is tried again")
	require.NoError(t, os.Remove(rv.cfg.Dir))
	require.NoError(t, send())
	rv.rest()
	assert.NotEmpty(t, store.sessions["live"])
}

// A trace of more signals than are recorded at once, which grew by a late span and was
// forgotten, is not recorded again when it is sent again.
func TestSentAgainInChunks(t *testing.T) {
	rv, store, c, _ := newTroubled(t, Config{}, func(sajou.Addition) error { return nil })
	all := []otlpformat.ExportPart{span(t, 1, 1, 0, "invoke_agent ann")}
	for i := range 260 {
		all = append(all, span(t, 1, i+2, 1, fmt.Sprint("execute_tool ", i)))
	}
	require.NoError(t, rv.accept(all[:260]...))
	rv.rest()
	require.NoError(t, rv.accept(all[260]))
	rv.rest()
	n := len(store.sessions["live"])
	require.Greater(t, n, chunkSignals)
	for id, times := range counts(store.sessions["live"]) {
		require.Equal(t, 1, times, id)
	}
	c.advance(time.Hour)
	require.Empty(t, rv.traces)
	require.NoError(t, rv.accept(all...))
	rv.rest()
	assert.Len(t, store.sessions["live"], n)
}

// A store that refuses writes is reported before spans pile up.
func TestUnhealthy(t *testing.T) {
	rv, _, _, _ := newTroubled(t, Config{}, func(sajou.Addition) error { return nil })
	rv.health = func() error { return eventlog.ErrReadOnly }
	r := httptest.NewRequest(http.MethodPost, "/v1/traces", strings.NewReader("{}"))
	r.Header.Set("Content-Type", "application/json")
	require.ErrorIs(t, rv.post(httptest.NewRecorder(), r, otlpformat.SplitSpans, "rejectedSpans"), eventlog.ErrReadOnly)
}

// Close gives up a log that hangs.
func TestCloseGivesUp(t *testing.T) {
	c := newClock()
	store := &hanging{begun: make(chan struct{})}
	rv, err := open(store, func() error { return nil }, Config{Dir: t.TempDir() + "/otlp", Now: c.Now, AfterFunc: c.AfterFunc})
	require.NoError(t, err)
	require.NoError(t, rv.accept(span(t, 1, 1, 0, "execute_tool one")))
	<-store.begun
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, rv.Close(ctx), context.Canceled)
}

// hanging is a signalStore that does not answer.
type hanging struct{ begun chan struct{} }

func (*hanging) usable(context.Context, string) error { return nil }

func (h *hanging) record(ctx context.Context, _ string, _ sajou.Addition) (waitFunc, error) {
	close(h.begun)
	<-ctx.Done()
	return nil, ctx.Err()
}

// Whatever records a spool has, a receiver opens it or says why not.
func FuzzSpooled(f *testing.F) {
	f.Add(beginning(traceID{trace: "01"}), (&recordPlan{covered: 1, key: "k", ids: []digest{{1}}}).append(nil), []byte{recordDone})
	f.Add([]byte{recordPart}, []byte("p\x00"), []byte(""))
	part := spooledPart{kind: partJSON | partEnded, span: spanID{1}}
	f.Add(beginning(traceID{session: "s"}), part.append(nil, []byte(`{"resourceSpans":[]}`)), part.append(nil, []byte(`{`)))
	f.Fuzz(func(t *testing.T, a, b, c []byte) {
		dir := t.TempDir()
		s, _, err := spool.Open(dir, spool.Config{}, nil)
		require.NoError(t, err)
		for _, data := range [][]byte{a, b, c} {
			_, err := s.Write(spool.GroupRecord{Group: 1, Data: data})
			require.NoError(t, err)
		}
		require.NoError(t, s.Close())
		clock := newClock()
		store := &troubled{newJournal(), func(sajou.Addition) error { return nil }}
		rv, err := open(store, func() error { return nil }, Config{Dir: dir, Now: clock.Now, AfterFunc: clock.AfterFunc})
		if err != nil {
			require.True(t, errors.Is(err, errSpooled), err)
			return
		}
		rv.rest()
		clock.advance(time.Minute)
		rv.rest()
		require.NoError(t, rv.Close(t.Context()))
	})
}

// A trace waits for a parent that is known to be missing, although its root is there.
func TestMissingParent(t *testing.T) {
	rv, store, _, _ := newTroubled(t, Config{}, func(sajou.Addition) error { return nil })
	require.NoError(t, rv.accept(span(t, 1, 3, 2, "execute_tool one"), span(t, 1, 1, 0, "invoke_agent ann")))
	rv.rest()
	assert.Empty(t, store.sessions["live"])
	require.NoError(t, rv.accept(span(t, 1, 2, 1, "invoke_agent ben")))
	rv.rest()
	assert.Subset(t, types(store.sessions["live"]), []string{"task_dispatch", "tool_call", "completion"})
}

// A span that is sent again takes no room. A trace that was forgotten is recorded once if it
// is sent again, and again if it has other spans.
func TestSentAgain(t *testing.T) {
	rv, store, c, _ := newTroubled(t, Config{}, func(sajou.Addition) error { return nil })
	send := func(name string) {
		require.NoError(t, rv.accept(span(t, 1, 1, 0, name)))
		rv.rest()
	}
	send("execute_tool one")
	used := rv.spool.Used()
	send("execute_tool one")
	assert.Equal(t, used, rv.spool.Used())
	c.advance(time.Hour)
	require.Empty(t, rv.traces)
	n := len(store.sessions["live"])
	send("execute_tool one")
	assert.Len(t, store.sessions["live"], n)
	c.advance(time.Hour)
	send("execute_tool two")
	assert.Greater(t, len(store.sessions["live"]), n)
}

// Dropped groups do not come back with the next start, unless a process crashed.
func TestDroppedStaysDropped(t *testing.T) {
	c := newClock()
	store := &troubled{newJournal(), func(sajou.Addition) error { return nil }}
	cfg := Config{Dir: t.TempDir() + "/otlp", Now: c.Now, AfterFunc: c.AfterFunc, Wait: time.Minute, Keep: time.Minute}
	rv, err := open(store, func() error { return nil }, cfg)
	require.NoError(t, err)
	require.NoError(t, rv.accept(span(t, 1, 1, 0, "execute_tool one")))
	rv.rest()
	c.advance(time.Minute / 2)
	require.NoError(t, rv.accept(span(t, 2, 2, 1, "execute_tool two")))
	c.advance(time.Minute / 2)
	require.Len(t, rv.traces, 1)
	require.NoError(t, rv.Close(t.Context()))
	rv, err = open(store, func() error { return nil }, cfg)
	require.NoError(t, err)
	assert.Len(t, rv.traces, 1)
	assert.Equal(t, 1, rv.waiting)
	require.NoError(t, rv.Close(t.Context()))
}
