package servecmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/ingest/hooks/forward"
	"github.com/sajou-dev/sajou-go/signal"
)

// farServer records the batches of a [serverSink], unless it is down.
type farServer struct {
	mu    sync.Mutex
	down  error // guarded by mu
	keys  map[string]bool
	notes []string
	tries int
}

func (s *farServer) set(down error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = down
}

func (s *farServer) deliver(_ context.Context, item forward.HookItem) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tries++
	if s.down == nil {
		s.keys[item.Key] = true
	}
	return s.down
}

func (s *farServer) sink() *serverSink {
	s.keys = map[string]bool{}
	return &serverSink{deliver: s.deliver, note: func(text string) { s.notes = append(s.notes, text) }, name: "far", server: "http://far", run: "r"}
}

// every is a source that sends a signal each second.
func every(sent *int) func(context.Context, func(*signal.Signal) error) error {
	return func(ctx context.Context, yield func(*signal.Signal) error) error {
		for ctx.Err() == nil {
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(time.Second):
			}
			*sent++
			if err := yield(&signal.Signal{ID: fmt.Sprint(*sent), Type: "note", Source: "s", Payload: signal.NewObject(0).Value()}); err != nil {
				return err
			}
		}
		return nil
	}
}

// errDown has the text of a library around the cause.
var errDown = fmt.Errorf("failed to do something: %w", syscall.ECONNREFUSED)

// A recording goes on while its server is away, however long, and loses nothing.
func TestServerGoesAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		far, sent := &farServer{}, 0
		sink := far.sink()
		time.AfterFunc(5500*time.Millisecond, func() { far.set(errDown) })
		time.AfterFunc(100*time.Second, func() { far.set(nil) })
		require.NoError(t, copySignals(t.Context(), every(&sent), sink, recordFlags{span: 2 * time.Minute}))
		assert.GreaterOrEqual(t, sent, 119)
		assert.Equal(t, sent, sink.durable())
		assert.Equal(t, []string{"the server takes no signals: nothing listens at http://far; start it, or correct the URL; trying again", "the server takes signals again"}, far.notes)
	})
}

// While the server is away, a bounded number of signals is read.
func TestServerAwayEndsReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		far, sent := &farServer{down: errDown}, 0
		require.ErrorIs(t, copySignals(t.Context(), every(&sent), far.sink(), recordFlags{span: time.Hour}), errDown)
		assert.LessOrEqual(t, sent, 256+2)
	})
}

// A recording whose server is down ends soon after its time, and sooner after an interrupt.
func TestServerIsDownAtTheEnd(t *testing.T) {
	for interrupted, most := range map[bool]time.Duration{false: finishTime, true: interruptedTime} {
		synctest.Test(t, func(t *testing.T) {
			far, sent := &farServer{down: errDown}, 0
			sink := far.sink()
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			f := recordFlags{span: 4500 * time.Millisecond}
			if interrupted {
				f.span = 0
				time.AfterFunc(4500*time.Millisecond, interrupt)
			}
			begun := time.Now()
			require.ErrorIs(t, copySignals(ctx, every(&sent), sink, f), errDown)
			assert.Equal(t, most, time.Since(begun)-4500*time.Millisecond)
			assert.Equal(t, 4, sent)
			assert.Zero(t, sink.durable())
			assert.Len(t, far.notes, 1)
		})
	}
}

// A server that refuses ends the recording at once.
func TestServerRefuses(t *testing.T) {
	for _, err := range []error{
		&forward.UndeliverableError{Status: http.StatusGone},
		&forward.BusyError{Status: http.StatusUnauthorized}, &forward.BusyError{Status: http.StatusForbidden}, &forward.BusyError{Status: http.StatusNotFound},
	} {
		synctest.Test(t, func(t *testing.T) {
			far, sent := &farServer{down: err}, 0
			require.ErrorIs(t, copySignals(t.Context(), every(&sent), far.sink(), recordFlags{}), err)
			assert.Equal(t, 1, far.tries)
		})
	}
}

// The reason of a failed delivery is one line, whatever layers it went through.
func TestReasonsOfDelivery(t *testing.T) {
	for want, err := range map[string]error{
		"nothing listens at http://far; start it, or correct the URL":                         errDown,
		"http://far ended the connection":                                                     fmt.Errorf("no answer: %w", errors.Join(forward.ErrNotServer, io.EOF)),
		"http://far: the answer is not one of a Sajou server; name its address with --server": forward.ErrNotServer,
		"http://far did not answer in time":                                                   fmt.Errorf("no answer: %w", context.DeadlineExceeded),
		"the server answered with status 503: read-only":                                      &forward.BusyError{Status: http.StatusServiceUnavailable, Detail: "read-only"},
		"http://far broke the connection off":                                                 errors.Join(forward.ErrNotServer, &net.OpError{Op: "read", Err: syscall.ECONNRESET}),
	} {
		assert.EqualError(t, (&serverSink{server: "http://far"}).reason(err), want)
	}
}
