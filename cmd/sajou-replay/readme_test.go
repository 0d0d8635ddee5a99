package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestReadme shows that the transcripts in README.md are what happens: their
// commands are given to one shell, in their order, and say what stands there.
func TestReadme(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// The directory has what a clone has, and the program that "go build" makes:
	// the test itself is it, under that name.
	dir := t.TempDir()
	for name, is := range map[string]string{"cmd": filepath.Join(root, "cmd"), "docs": filepath.Join(root, "docs"), "sajou-replay": program} {
		if err := os.Symlink(is, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
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
	if err != nil {
		t.Errorf("the last command: %v", err)
	}
	got := strings.Split(string(out), mark+"\n")
	for i, command := range commands {
		if i >= len(got) || strings.TrimSpace(got[i]) != want[i] {
			t.Errorf("$ %s\n%s\nREADME.md has\n%s", command, strings.Join(got[min(i, len(got)):min(i+1, len(got))], ""), want[i])
		}
	}
}
