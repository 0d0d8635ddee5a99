//go:build unix

package testprogram

import (
	"os/exec"
	"syscall"
)

// ownGroup makes the program the leader of a session, and so of a process group, without a
// terminal.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// askGroup asks the processes of the group to end.
func askGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }

// killGroup kills the processes of the group. The number of a group stays taken while a
// process is in it; after the last one, the kill finds none.
func killGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
