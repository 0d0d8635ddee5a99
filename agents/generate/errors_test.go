package generate

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/agents"
)

// The error of a generator has the code and the remedy that it names itself, and those of
// a failed generation otherwise.
func TestGeneratorErrorIsJudged(t *testing.T) {
	disk := errors.New("the disk says no")
	failed, _ := agents.ErrGenerationFailed.Failure()
	busy, ok := agents.ErrQueueFull.Failure()
	require.True(t, ok)
	for name, tt := range map[string]struct {
		err   error
		code  agents.Code
		retry agents.Recovery
		after time.Duration
	}{
		"its own":                      {disk, agents.ErrGenerationFailed, failed.Recovery, 0},
		"none":                         {nil, agents.ErrGenerationFailed, failed.Recovery, 0},
		"a code":                       {errors.Join(disk, agents.ErrQueueFull), agents.ErrQueueFull, busy.Recovery, 0},
		"no code":                      {errors.Join(disk, agents.Code("moon")), agents.ErrGenerationFailed, failed.Recovery, 0},
		"a rejection":                  {&agents.Rejection{Code: agents.ErrQueueFull, Recovery: agents.Regenerate, RetryAfter: time.Minute}, agents.ErrQueueFull, agents.Regenerate, time.Minute},
		"a rejection without a remedy": {&agents.Rejection{Code: agents.ErrQueueFull}, agents.ErrQueueFull, busy.Recovery, 0},
	} {
		e := (&GeneratorError{Err: tt.err}).judge()
		assert.Equal(t, tt.code, e.Code, name)
		assert.Equal(t, tt.retry, e.Recovery, name)
		assert.Equal(t, tt.after, e.RetryAfter, name)
		require.ErrorIs(t, e, tt.code, name)
		if tt.err != nil {
			require.ErrorIs(t, e, tt.err, name)
		}
	}
}

// The text of a generator's error names the request, and whatever is known of the cause.
func TestGeneratorErrorText(t *testing.T) {
	disk := errors.New("the disk says no")
	for want, e := range map[string]GeneratorError{
		"breaker_open":                                   {Code: "breaker_open"},
		"failed: the disk says no":                       {Code: "failed", Err: disk},
		"failed: the disk says no: boom":                 {Code: "failed", Err: disk, Panic: "boom"},
		"failed: the disk says no: boom, again after 2s": {Code: "failed", Err: disk, Panic: "boom", RetryAfter: 2 * time.Second},
		"failed, again after 1ns":                        {Code: "failed", RetryAfter: 1},
	} {
		e.AgentID, e.ReqID, e.Generator = "a", "1", "model"
		require.EqualError(t, &e, `sajou: generation "1" of "a" by model: `+want)
	}
	e := GeneratorError{Code: "failed", Panic: disk}
	require.ErrorIs(t, &e, disk)
	require.ErrorIs(t, &e, agents.Code("failed"))
	assert.Len(t, e.Unwrap(), 2)
	assert.Len(t, (&GeneratorError{Code: "failed", Panic: "boom"}).Unwrap(), 1)
}
