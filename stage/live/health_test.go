package live

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/sajou-dev/sajou-go/eventlog"
)

// The sinks that an error has detached are counted, and the newest 32 are kept. The end of
// the log is not an error of a sink.
func TestDetachedSinksAreRemembered(t *testing.T) {
	as := NewAttachments(Config{})
	for i := range 40 {
		as.remember(SinkHealth{Sink: fmt.Sprint(i), Err: errors.New("it panics")})
		as.remember(SinkHealth{Sink: "closed", Err: fmt.Errorf("%w", eventlog.ErrClosed)})
	}
	sinks, detached := as.Health()
	assert.Equal(t, 40, detached)
	assert.Len(t, sinks, 32)
	for i, s := range sinks {
		assert.Equal(t, fmt.Sprint(i+8), s.Sink)
	}
}
