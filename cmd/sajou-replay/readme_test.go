package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestReadme runs the transcripts of README.md.
func TestReadme(t *testing.T) { runPage(t, "README.md", 10) }

// TestTimeTravelPage runs the hunt that docs/time-travel.md tells.
func TestTimeTravelPage(t *testing.T) { runPage(t, "docs/time-travel.md", 10) }

// runPage runs the commands of the transcripts of a page, at least so many, in one shell
// and in their order, and compares their output.
func runPage(t *testing.T, name string, least int) {
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	page, err := os.ReadFile(filepath.Join(root, name))
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

	type transcript struct {
		from, to int // of the output in the page
		command  string
	}
	var all []transcript
	for _, at := range regexp.MustCompile("(?s)```\n(.*?)```").FindAllSubmatchIndex(page, -1) {
		starts := regexp.MustCompile(`(?m)^\$ .*\n`).FindAllIndex(page[at[2]:at[3]], -1)
		for i, line := range starts {
			one := transcript{at[2] + line[1], at[3], strings.TrimSpace(string(page[at[2]+line[0]+2 : at[2]+line[1]]))}
			if i+1 < len(starts) {
				one.to = at[2] + starts[i+1][0]
			}
			if !strings.HasPrefix(one.command, "go build ") && (python || !strings.Contains(one.command, "python3")) {
				all = append(all, one)
			}
		}
	}
	require.GreaterOrEqual(t, len(all), least, "commands")
	const mark = "-----"
	var script strings.Builder
	for _, one := range all {
		script.WriteString(strings.ReplaceAll(one.command, "/tmp/night", "store") + "\necho " + mark + "\n")
	}
	shell := exec.CommandContext(t.Context(), "sh", "-c", script.String())
	shell.Dir = dir
	out, err := shell.CombinedOutput()
	require.NoError(t, err)
	got := strings.Split(string(out), mark+"\n")
	require.Len(t, got, len(all)+1)
	if *update {
		for i, one := range slices.Backward(all) {
			page = slices.Replace(page, one.from, one.to, []byte(got[i])...)
		}
		require.NoError(t, os.WriteFile(filepath.Join(root, name), page, 0o644))
		return
	}
	for i, one := range all {
		assert.Equal(t, strings.TrimSpace(string(page[one.from:one.to])), strings.TrimSpace(got[i]), "$ %s", one.command)
	}
}
