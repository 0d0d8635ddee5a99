package message_test

import (
	"testing"

	"go.uber.org/goleak"
)

// Nothing is left running when the engines are closed.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
