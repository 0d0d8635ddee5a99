package live

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// The calls of Respond are over when the last of them ends, and those of a judge are
// bounded.
func TestInFlight(t *testing.T) {
	var f inFlight
	assert.Nil(t, f.over())
	first, second := f.begin(), f.begin()
	over := f.over()
	assert.NotNil(t, over)
	first()
	select {
	case <-over:
		t.Error("a call is under way")
	default:
	}
	second()
	<-over
	assert.Nil(t, f.over())
	third := f.begin()
	assert.NotEqual(t, over, f.over(), "another call is another wait")
	third()

	for range 32 {
		assert.True(t, f.startCall())
	}
	assert.False(t, f.startCall())
	assert.False(t, f.startCall())
	f.endCall()
	assert.True(t, f.startCall())
	assert.False(t, f.startCall())
}
