package statecmd

import (
	"bytes"
	"context"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/signal"
)

// interruptedAt runs scan on a session of ten signals, with a test that is true from
// signal 5 on and ends the context at signal 8.
func interruptedAt(t *testing.T, run func(ctx context.Context, a *cli.App, t *cli.OpenedSession, find *Finder) error) (stdout, stderr string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	eng, err := sajou.Open(t.TempDir(), sajou.Config{})
	require.NoError(t, err)
	ses, err := eng.Session(ctx, "talk")
	require.NoError(t, err)
	for i := range 10 {
		_, err := ses.Signal(ctx, &signal.Signal{
			ID: strconv.Itoa(i), Type: "custom", Source: "test", Timestamp: signal.Float(float64(1000 + 10*i)), Payload: signal.Value{0x80},
		})
		require.NoError(t, err)
	}
	var out, errs bytes.Buffer
	a := &cli.App{Stdout: &out, Stderr: &errs, Format: "text"}
	opened, err := a.OpenSessionIn(eng, "talk")
	require.NoError(t, err)
	find, err := NewFinder("true", replay.All)
	require.NoError(t, err)
	find.Predicate.Copy = nil
	find.Predicate.Test = func(_ context.Context, s *replay.ScanStep) (bool, error) {
		if s.Entry.Seq == 8 {
			cancel()
		}
		return s.Entry.Seq >= 5, nil
	}
	err = run(ctx, a, opened, find)
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, eng.Close())
	return out.String(), errs.String()
}

// What was found before an interruption is written, and how far the search came.
func TestInterruptedScan(t *testing.T) {
	stdout, stderr := interruptedAt(t, func(ctx context.Context, a *cli.App, ses *cli.OpenedSession, find *Finder) error {
		return runScan(ctx, a, ses, "", find)
	})
	assert.Equal(t, 4, bytes.Count([]byte(stdout), []byte("custom")), stdout)
	assert.Equal(t, "sajou-replay: stopped after 8 of 11 entries; found until then: 4\n", stderr)

	stdout, stderr = interruptedAt(t, func(ctx context.Context, a *cli.App, ses *cli.OpenedSession, find *Finder) error {
		return runMoments(ctx, a, ses, replay.MomentRange{To: replay.Moment{Seq: 11}}, find)
	})
	assert.Regexp(t, `^from 5 on, still at 8  `, stdout)
	assert.Equal(t, "sajou-replay: stopped at 8; found until then: 1\n", stderr)

	stdout, stderr = interruptedAt(t, func(ctx context.Context, a *cli.App, ses *cli.OpenedSession, find *Finder) error {
		find.count = true
		return runScan(ctx, a, ses, "", find)
	})
	assert.Equal(t, "4\n", stdout)
	assert.Contains(t, stderr, "stopped after 8 of 11 entries")
}
