package live_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/sajou-dev/sajou-go/director/live"
)

// The reasons of missing verdicts are recorded, and so part of the format of the log.
func TestReasonsAreFormat(t *testing.T) {
	assert.Equal(t, []string{
		"nobody asks for it any more", "no judge", "the judge does not return", "the judge panicked: %v", "no verdict within %v",
	}, live.Reasons())
}
