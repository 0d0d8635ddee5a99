package statecmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/internal/answer"
	"github.com/sajou-dev/sajou-go/signal"
)

// States that are too large are not compared in part, and differences beyond
// the limit are counted.
func TestDiffIsBounded(t *testing.T) {
	store := filepath.Join(t.TempDir(), "store")
	record(t, store, 20)
	a := &cli.App{Store: store, Format: "text", Stdout: io.Discard, Stderr: io.Discard}
	diff := func(limits answer.StateLimits, most int) error {
		cmd := &cobra.Command{}
		cmd.SetContext(t.Context())
		return runDiff(a, cmd, []string{"1", "end"}, limits, most)
	}
	for _, limits := range []answer.StateLimits{{Each: 2, Total: 100_000}, {Each: 1000, Total: 10}} {
		err := diff(limits, mostDifferences)
		if e, ok := errors.AsType[*cli.ExitError](err); !ok || e.Code != cli.ExitInconclusive || !strings.Contains(err.Error(), "too large to compare") {
			t.Errorf("with the limits %v: %v", limits, err)
		}
	}
	assert.ErrorIs(t, diff(answer.ComparedLimits(), mostDifferences), cli.AnswerNo, "with room for all")
	var b strings.Builder
	a = &cli.App{Stdout: &b, Stderr: &b, Format: "jsonl"}
	if err := showPatch(a, []byte(`[{"op":"add","path":"/a","value":1},{"op":"add","path":"/b","value":2}]`), 1); !errors.Is(err, cli.AnswerNo) ||
		!strings.Contains(b.String(), "showed 1 of 2 differences") || strings.Contains(b.String(), "/b") {
		t.Errorf("%v: %s", err, b.String())
	}
}

func record(t *testing.T, store string, n int) {
	t.Helper()
	engine, err := sajou.Open(store, sajou.Config{})
	require.NoError(t, err)
	session, err := engine.Session(context.Background(), "a")
	require.NoError(t, err)
	for i := range n {
		sig, err := signal.Parse(fmt.Appendf(nil, `{"id":"s","type":"note","timestamp":%d,"source":"agent:a%d","payload":{}}`, 1000+i, i))
		require.NoError(t, err)
		if _, err := session.Signal(t.Context(), sig); err != nil {
			t.Fatal(err)
		}
	}
	require.NoError(t, engine.Close())
}
