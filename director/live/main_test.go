package live_test

import (
	"testing"

	"go.uber.org/goleak"
)

// Close leaves no goroutine running, neither of this module nor of the stores.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
