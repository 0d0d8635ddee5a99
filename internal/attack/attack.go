// Package attack sets the length of attack tests.
//
// A test that tampers with a store, kills a process, fills a disk or feeds a
// decoder with hostile bytes is called TestAttack… and asks this package for the
// size of its matrix: small in the everyday test run, large under `make attack`,
// which sets SAJOU_ATTACK=long.
package attack

import "os"

// Long reports whether the long form of the attacks is requested.
func Long() bool { return os.Getenv("SAJOU_ATTACK") == "long" }

// Rounds returns the number of rounds of a test: short in ordinary test runs, long
// under make attack.
func Rounds(short, long int) int {
	if Long() {
		return long
	}
	return short
}
