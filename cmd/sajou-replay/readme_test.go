package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestReadme runs the commands of the transcripts in README.md in one shell, in their
// order, and compares their output.
func TestReadme(t *testing.T) {
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	page, err := os.ReadFile(filepath.Join(root, "README.md"))
	require.NoError(t, err)
	program, err := os.Executable()
	require.NoError(t, err)
	// The directory has the folders of a clone and the program that "go build" makes,
	// which is the test binary under that name.
	dir := t.TempDir()
	for name, is := range map[string]string{"cmd": filepath.Join(root, "cmd"), "docs": filepath.Join(root, "docs"), "sajou-replay": program} {
		require.NoError(t, os.Symlink(is, filepath.Join(dir, name)))
	}
	_, err = exec.LookPath("python3")
	python := err == nil

	var commands, want []string
	for _, block := range regexp.MustCompile("(?s)```\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		for _, part := range strings.Split("\n"+block[1], "\n$ ")[1:] {
			command, says, _ := strings.Cut(part+"\n", "\n")
			if strings.HasPrefix(command, "go build ") || strings.Contains(command, "python3") && !python {
				continue
			}
			commands = append(commands, strings.ReplaceAll(command, "/tmp/night", "store"))
			want = append(want, strings.TrimSpace(says))
		}
	}
	if len(commands) < 10 {
		t.Fatalf("%d commands", len(commands))
	}
	const mark = "-----"
	shell := exec.CommandContext(t.Context(), "sh", "-c", strings.Join(commands, "\necho "+mark+"\n"))
	shell.Dir = dir
	out, err := shell.CombinedOutput()
	assert.NoError(t, err, "the last command")
	got := strings.Split(string(out), mark+"\n")
	for i, command := range commands {
		if i >= len(got) || strings.TrimSpace(got[i]) != want[i] {
			t.Errorf("$ %s\n%s\nREADME.md has\n%s", command, strings.Join(got[min(i, len(got)):min(i+1, len(got))], ""), want[i])
		}
	}
}
