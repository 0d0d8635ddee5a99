package episodecmd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/director/explore"
)

// canceler ends a context at the first write.
type canceler struct {
	cancel context.CancelFunc
	writes int
}

func (c *canceler) Write(p []byte) (int, error) {
	c.cancel()
	c.writes++
	return len(p), nil
}

// What graph, migrate, play and simulate remark on an episode ends with the context.
func TestInterruptedEpisode(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	file := filepath.Join(t.TempDir(), "e.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"id":"e","a":1,"b":1,"c":1}`), 0o600))
	w := &canceler{cancel: cancel}
	if _, _, err := loadEpisode(ctx, (&cli.App{Stderr: w}), file, "nothing was done"); !errors.Is(err, context.Canceled) || w.writes != 1 {
		t.Errorf("%d remarks, err = %v, want one, and that of the context", w.writes, err)
	}
}

// An interrupted simulation shows what it found so far.
func TestSimulateInterrupted(t *testing.T) {
	const name = "../../../../director/script/interview.json"
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	e, _ := episode.Parse(name, text)
	var stdout, stderr bytes.Buffer
	a := &cli.App{Stdout: &stdout, Stderr: &stderr, Format: "json"}
	err = runSimulate(ctx, a, e, explore.Config{}, false, time.Minute)
	var found simulated
	if parse := json.Unmarshal(stdout.Bytes(), &found); parse != nil || cli.ExitCode(err, &stderr) != cli.ExitInterrupted ||
		found.Complete || found.Bound != "stopped" || found.States != 1 {
		t.Errorf("interrupted at its first state: %v, %v: %+v", err, parse, found)
	}
}
