package generate

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/live"
)

// TestReasonsAreFormat pins the texts that attempts and tokens record as a reason:
// stored logs have them.
func TestReasonsAreFormat(t *testing.T) {
	assert.Equal(t, "completed", live.ReasonCompleted)
	assert.Equal(t, "given_up", live.ReasonGivenUp)
	assert.Equal(t, "generation_failed", live.ReasonFailed)
	for want, e := range map[string]*GeneratorError{
		"LLM_SERVICE_ERROR: the generator panicked: boom":                    {Panic: "boom", Err: ErrGeneratorPanic},
		"LLM_SERVICE_ERROR: the generator panicked: its goroutine was ended": {Panic: reasonGoexit, Err: ErrGeneratorPanic},
		"LLM_SERVICE_ERROR: no model, again after 2s":                        {RetryAfter: 2 * time.Second, Err: errors.New("no model")},
		"CIRCUIT_BREAKER_OPEN, again after 1s":                               {Code: agents.ErrBreakerOpen, RetryAfter: time.Second},
	} {
		if e.Code == "" {
			_ = e.judge() // sets the code
		}
		assert.Equal(t, want, e.cause())
	}
}
