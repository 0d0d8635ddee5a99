package eventlog_test

import "testing"

// stride returns the step from one case of an expensive matrix to the next: 1, or short
// with -short. A prime that divides no period of the matrix visits cases of all kinds.
func stride(short int) int {
	if testing.Short() {
		return short
	}
	return 1
}
