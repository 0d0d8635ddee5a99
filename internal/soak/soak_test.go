package main

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A short run: all clients act, and leave nothing.
func TestShortRun(t *testing.T) {
	r, err := run(t.Context(), 1500*time.Millisecond)
	require.NoError(t, err, "%v", r)
	assert.Positive(t, r.receipts)
	for _, kind := range []string{"record", "record lines", "flood", "lie", "vanish", "act"} {
		assert.Positive(t, r.acts[kind], kind)
	}
}

// The run notices the secret where it does not belong, also in two parts, and heads that
// are not in the log.
func TestFaultsAreNoticed(t *testing.T) {
	s := &soak{acts: map[string]int{}}
	near, far := net.Pipe()
	w := &wire{Conn: near, soak: s}
	go func() {
		_, _ = io.WriteString(far, "harmless "+secret[:9])
		_, _ = io.WriteString(far, secret[9:])
		_ = far.Close()
	}()
	_, err := io.Copy(io.Discard, w)
	require.NoError(t, err)
	require.Len(t, s.faults, 1)
	s.keep(openSession, 3, "not a hash")
	assert.Len(t, s.faults, 2)
	for range 2 * maxFaults {
		s.fault(errors.New("again"))
	}
	assert.Len(t, s.faults, maxFaults)
	before := usage{goroutines: 10, files: 10, heap: 1 << 20}
	assert.True(t, usage{goroutines: 12, files: 12, heap: 2 << 20}.within(before))
	assert.False(t, usage{goroutines: 100, files: 12, heap: 2 << 20}.within(before))
	assert.False(t, usage{goroutines: 12, files: 100, heap: 2 << 20}.within(before))
	assert.False(t, usage{goroutines: 12, files: 12, heap: 1 << 30}.within(before))
}
