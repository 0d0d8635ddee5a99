package history_test

import (
	"testing"

	"go.uber.org/goleak"
)

// Close leaves nothing running, neither ours nor the stores'.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
