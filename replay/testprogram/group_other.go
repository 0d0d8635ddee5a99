//go:build !unix

package testprogram

import "os/exec"

// ownGroup does nothing: only the program itself can be ended here.
func ownGroup(*exec.Cmd) {}

// askGroup ends the program, since there is no request to end.
func askGroup(cmd *exec.Cmd) { killGroup(cmd) }

// killGroup kills the program.
func killGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }
