package limit_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/server/limit"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

type clock struct{ now time.Time }

func (c *clock) read() time.Time { return c.now }

func exceeded(t require.TestingT, err error) time.Duration {
	e, ok := errors.AsType[*limit.OverLimitError](err)
	require.True(t, ok, "%v", err)
	return e.RetryAfter
}

var (
	tap = limit.Requester{Name: "token:tap", Peer: netip.MustParseAddr("10.0.0.1")}
	ci  = limit.Requester{Name: "token:ci", Tenant: "build", Peer: netip.MustParseAddr("10.0.0.1")}
)

// TestRate compares the buckets with the rule counted in another way: in any span of time
// a client was allowed at most the burst and the rate times the span, and a client that
// waits as long as it was told is allowed.
func TestRate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate, burst := rapid.IntRange(1, 1000).Draw(t, "rate"), rapid.IntRange(1, 50).Draw(t, "burst")
		at := &clock{noon}
		l := limit.New(limit.Config{Rate: rate, Burst: burst, Now: at.read})
		var allowed []time.Time
		for range 100 {
			at.now = at.now.Add(time.Duration(rapid.IntRange(0, 5000).Draw(t, "µs")) * time.Microsecond)
			if err := l.Take(tap, 1); err != nil {
				if rapid.Bool().Draw(t, "wait") {
					at.now = at.now.Add(exceeded(t, err))
					require.NoError(t, l.Take(tap, 1))
					allowed = append(allowed, at.now)
				}
				continue
			}
			allowed = append(allowed, at.now)
		}
		for i := range allowed {
			for j := i; j < len(allowed); j++ {
				most := float64(burst) + allowed[j].Sub(allowed[i]).Seconds()*float64(rate)
				// The time of one unit is cut to nanoseconds.
				require.LessOrEqual(t, float64(j-i+1), most*1.001+1e-6, "%d to %d", i, j)
			}
		}
		require.GreaterOrEqual(t, len(allowed), min(burst, 100), "a full bucket has the burst")
	})
}

func TestRatesOfOthers(t *testing.T) {
	at := &clock{noon}
	l := limit.New(limit.Config{Rate: 1, Burst: 2, TenantRate: 1, TenantBurst: 3, UnknownRate: 1, Now: at.read})
	require.NoError(t, l.Take(tap, 2))
	assert.Equal(t, time.Second, exceeded(t, l.Take(tap, 1)))
	require.NoError(t, l.Take(ci, 2), "another caller has a bucket of its own")
	again := ci
	again.Name = "token:ci-2"
	require.NoError(t, l.Take(again, 1))
	assert.ErrorContains(t, l.Take(again, 1), "tenant build")
	stranger := limit.Requester{Peer: netip.MustParseAddr("2001:db8:0:1::1")}
	neighbor := limit.Requester{Peer: netip.MustParseAddr("2001:db8:0:1:ffff::7")}
	other := limit.Requester{Peer: netip.MustParseAddr("2001:db8:0:2::1")}
	require.NoError(t, l.Take(stranger, 1))
	require.NoError(t, l.Take(neighbor, 1))
	exceeded(t, l.Take(stranger, 1))
	require.NoError(t, l.Take(other, 1))
	require.NoError(t, l.Take(limit.Requester{}, 2))
	exceeded(t, l.Take(limit.Requester{}, 1))
	for range 1000 {
		require.NoError(t, l.Take(limit.Requester{Local: true}, 100))
	}
	free := limit.New(limit.Config{Rate: -1, Now: at.read})
	require.NoError(t, free.Take(tap, 1<<40))
}

// TestManyUnits shows that a request with more units than the burst passes, and that the
// next one waits for it, though not without end.
func TestManyUnits(t *testing.T) {
	at := &clock{noon}
	l := limit.New(limit.Config{Rate: 10, Burst: 20, Now: at.read})
	require.NoError(t, l.Take(tap, 50))
	assert.Equal(t, 3100*time.Millisecond, exceeded(t, l.Take(tap, 1)))
	at.now = at.now.Add(5 * time.Second)
	require.NoError(t, l.Take(tap, 1<<40))
	assert.LessOrEqual(t, exceeded(t, l.Take(tap, 1)), time.Minute+time.Second)
}

func TestClockGoesBack(t *testing.T) {
	at := &clock{noon}
	l := limit.New(limit.Config{Rate: 1, Burst: 1, Now: at.read})
	require.NoError(t, l.Take(tap, 1))
	at.now = at.now.Add(-24 * time.Hour)
	require.NoError(t, l.Take(tap, 1))
	assert.Equal(t, time.Second, exceeded(t, l.Take(tap, 1)))
}

// TestTablesAreBounded shows that a million names cost as much as those that may be known.
func TestTablesAreBounded(t *testing.T) {
	at := &clock{noon}
	l := limit.New(limit.Config{Rate: 1, Burst: 1, Names: 1000, Now: at.read})
	require.NoError(t, l.Take(tap, 1))
	allocated := testing.AllocsPerRun(1, func() {
		for i := range 100_000 {
			require.NoError(t, l.Take(limit.Requester{Name: fmt.Sprint("token:", i)}, 1))
		}
	})
	assert.Positive(t, allocated)
	assert.LessOrEqual(t, l.Known(), 1000)
	require.NoError(t, l.Take(tap, 1), "the name was forgotten")
	for i := range 500 { // half of the names may come before one is forgotten
		require.NoError(t, l.Take(limit.Requester{Name: fmt.Sprint("other:", i)}, 1))
	}
	exceeded(t, l.Take(tap, 1))
}

func TestHeld(t *testing.T) {
	l := limit.New(limit.Config{Streams: 2, AllStreams: 5, Jobs: 1, AllJobs: 2})
	hold := func(c limit.Requester) func() {
		release, err := l.Stream(c)
		require.NoError(t, err)
		return release
	}
	first := hold(tap)
	hold(tap)
	_, err := l.Stream(tap)
	assert.ErrorContains(t, err, "open streams of token:tap")
	first()
	first() // a second call counts nothing
	hold(tap)
	here := limit.Requester{Name: "loopback", Local: true}
	for range 3 {
		hold(here)
	}
	_, err = l.Stream(ci)
	assert.ErrorContains(t, err, "of this server")
	_, err = l.Stream(here)
	exceeded(t, err)
	assert.Equal(t, limit.InUse{Streams: 5}, l.InUse())

	ctx := limit.With(t.Context(), l, tap)
	release, err := limit.Job(ctx)
	require.NoError(t, err)
	_, err = limit.Job(ctx)
	exceeded(t, err)
	require.NoError(t, limit.Take(ctx, 1))
	release()
	assert.Equal(t, limit.InUse{Streams: 5}, l.InUse())
	release, err = limit.Job(t.Context())
	require.NoError(t, err)
	release()
	require.NoError(t, limit.Take(t.Context(), 1<<20))
}

func TestMemoryOfBodies(t *testing.T) {
	l := limit.New(limit.Config{Memory: 1000})
	body := func(n int) (io.ReadCloser, func()) {
		return l.Body(io.NopCloser(strings.NewReader(strings.Repeat("x", n))))
	}
	first, releaseFirst := body(900)
	data, err := io.ReadAll(first)
	require.NoError(t, err)
	require.Len(t, data, 900)
	second, releaseSecond := body(200)
	_, err = io.ReadAll(iotest.OneByteReader(second))
	exceeded(t, err)
	releaseSecond()
	releaseSecond()
	assert.Equal(t, int64(900), l.InUse().Memory)
	releaseFirst()
	_, err = io.ReadAll(second) // a reader that was left behind counts nothing
	require.NoError(t, err)
	assert.Zero(t, l.InUse().Memory)
	unbounded, release := limit.New(limit.Config{Memory: -1}).Body(io.NopCloser(strings.NewReader("x")))
	_, err = io.ReadAll(unbounded)
	require.NoError(t, err)
	release()
}

// pretended is a listener whose connections say that they come from other machines.
type pretended struct {
	net.Listener
	peers []string
}

type pretendedConn struct {
	net.Conn
	peer net.Addr
}

func (c pretendedConn) RemoteAddr() net.Addr { return c.peer }

func (l *pretended) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	peer := net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(l.peers[0]), 99))
	l.peers = l.peers[1:]
	return pretendedConn{c, peer}, nil
}

func TestConnections(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var refused []string
	l := limit.New(limit.Config{Connections: 1, AllConnections: 3, Refused: func(peer netip.Addr, err error) {
		refused = append(refused, peer.String()+": "+err.Error())
	}})
	listener := l.Listener(&pretended{inner, []string{"10.0.0.1", "10.0.0.1", "127.0.0.1", "127.0.0.1", "10.0.0.2", "10.0.0.1"}}, false)
	defer func() { assert.NoError(t, listener.Close()) }()
	dial := func() net.Conn {
		c, err := net.Dial("tcp", inner.Addr().String())
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	accept := func() net.Conn {
		c, err := listener.Accept()
		require.NoError(t, err)
		return c
	}
	dial()
	first := accept()
	beyond := dial()
	dial()
	second := accept() // skips the one that is beyond the bound
	assert.Equal(t, "127.0.0.1:99", second.RemoteAddr().String())
	answer, err := io.ReadAll(beyond)
	require.NoError(t, err)
	assert.Contains(t, string(answer), "429 Too Many Requests\r\nRetry-After: 1\r\n")
	dial()
	third := accept() // this machine has no bound of its own
	assert.Equal(t, "127.0.0.1:99", third.RemoteAddr().String())
	assert.Equal(t, 3, l.InUse().Connections)
	full := dial()
	accepted := make(chan net.Conn)
	go func() {
		c, _ := listener.Accept()
		accepted <- c
	}()
	answer, err = io.ReadAll(full)
	require.NoError(t, err)
	assert.NotEmpty(t, answer)
	require.NoError(t, first.Close())
	_ = first.Close()
	dial()
	last := <-accepted
	assert.Equal(t, "10.0.0.1:99", last.RemoteAddr().String())
	for _, c := range []net.Conn{second, third, last} {
		require.NoError(t, c.Close())
	}
	assert.Zero(t, l.InUse().Connections)
	assert.Equal(t, []string{
		"10.0.0.1: too many connections from this address; try again in 1s",
		"10.0.0.2: too many connections to this server; try again in 1s",
	}, refused)
}

// The time in an error is a rounded one, and never nothing.
func TestTimeOfARefusal(t *testing.T) {
	for after, want := range map[time.Duration]string{6223395: "6ms", 1: "1ms", time.Second: "1s"} {
		assert.Equal(t, "too many jobs; try again in "+want, (&limit.OverLimitError{Bound: "jobs", RetryAfter: after}).Error())
	}
}

// TestRefusedAnswer shows that the answer to a connection beyond the bounds is one of HTTP.
func TestRefusedAnswer(t *testing.T) {
	l := limit.New(limit.Config{AllConnections: 1})
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	listener := l.Listener(inner, false)
	first, err := net.Dial("tcp", inner.Addr().String())
	require.NoError(t, err)
	held, err := listener.Accept()
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = listener.Accept() // until the listener is closed
	}()
	transport := &http.Transport{}
	res, err := (&http.Client{Transport: transport}).Get("http://" + inner.Addr().String())
	if err == nil { // else the connection was closed before the answer was read
		assert.Equal(t, http.StatusTooManyRequests, res.StatusCode)
		assert.Equal(t, "1", res.Header.Get("Retry-After"))
		require.NoError(t, res.Body.Close())
	}
	transport.CloseIdleConnections()
	require.NoError(t, errors.Join(first.Close(), held.Close(), listener.Close()))
	<-done
}
