package live_test

import (
	"testing"

	"go.uber.org/goleak"
)

// Close leaves no goroutine running, neither the engine's nor Pebble's.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
