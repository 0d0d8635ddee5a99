package sajou_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/enginetest"
	"github.com/sajou-dev/sajou-go/replay/fork"
	"github.com/sajou-dev/sajou-go/replay/variant"
	"github.com/sajou-dev/sajou-go/session"
)

// countdown is a context that ends when it was asked so many times.
type countdown struct {
	context.Context
	left atomic.Int64
}

func (c *countdown) Err() error {
	if c.left.Add(-1) < 0 {
		return context.Canceled
	}
	return nil
}

// TestForkGoesOn: a fork that was interrupted anywhere leaves nothing, or an incomplete fork
// with which the same call goes on. In the end it is the fork that was never interrupted.
func TestForkGoesOn(t *testing.T) {
	defer sajou.SetForkWrite(1)()
	cfg := fork.Config{Edits: variant.Edits{Drop: []eventlog.Seq{4}}}
	parent := func() *sajou.Engine {
		eng := enginetest.Memory(t, sajou.Config{})
		ses := enginetest.BeginManual(t, eng, "night")
		_, err := ses.Define(t.Context(), enginetest.Definitions(t, enginetest.Dispatch)...)
		require.NoError(t, err)
		for i := range 12 {
			_, err := ses.Record(t.Context(), sajou.Addition{Signals: enginetest.Step{Typ: "error"}.Record(t, 2*i, int64(i)).Signals})
			require.NoError(t, err)
		}
		return eng
	}
	whole := parent()
	_, want, err := whole.Fork(t.Context(), "night", "what-if", cfg)
	require.NoError(t, err)
	interrupted, incomplete := 0, 0
	for n := int64(0); ; n++ {
		eng := parent()
		ctx := &countdown{Context: t.Context()}
		ctx.left.Store(n)
		_, head, err := eng.Fork(ctx, "night", "what-if", cfg)
		if err == nil {
			require.Equal(t, want, head)
			_, _, err = eng.Fork(t.Context(), "night", "what-if", cfg)
			require.ErrorContains(t, err, `there is a session "what-if" already`)
			break
		}
		require.ErrorIs(t, err, context.Canceled)
		interrupted++
		// The write that was interrupted may come during the next call.
		again := func(cfg fork.Config) (eventlog.Head, error) {
			for {
				if _, head, err := eng.Fork(t.Context(), "night", "what-if", cfg); !errors.Is(err, eventlog.ErrConflict) {
					return head, err
				}
			}
		}
		if head.Seq > 4 {
			incomplete++
			log, err := eng.Log().Session("what-if")
			require.NoError(t, err)
			label, err := session.ReadFork(t.Context(), log)
			require.NoError(t, err)
			require.False(t, label.Complete(head))
			other := cfg
			other.Edits.Drop = []eventlog.Seq{4, 5}
			_, err = again(other)
			require.ErrorIs(t, err, eventlog.ErrInvalid)
			require.ErrorContains(t, err, "of other entries; choose another name, or delete it")
		}
		head, err = again(cfg)
		require.NoError(t, err)
		require.Equal(t, want, head)
	}
	require.Greater(t, interrupted, 10)
	require.Greater(t, incomplete, 5)
}
