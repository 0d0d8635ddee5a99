package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/internal/attack"
)

// heavySession records a session whose state is large: every performance keeps
// the payload of its signal, and none ends.
func heavySession(t *testing.T, store string, signals, size int) {
	t.Helper()
	var lines bytes.Buffer
	text := strings.Repeat("y", size)
	for i := range signals {
		line, err := json.Marshal(map[string]any{
			"id": fmt.Sprint("s", i), "type": "x", "timestamp": 1000 + i, "source": "adapter:test", "payload": map[string]any{"id": fmt.Sprint("e", i), "text": text},
		})
		require.NoError(t, err)
		lines.Write(append(line, '\n'))
	}
	file := filepath.Join(t.TempDir(), "c.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"on":"x","steps":[{"action":"move","entity":"signal.id","duration":1000000000}]}`), 0o600))
	if got := sajouReplay(t.Context(), t, &lines, "-C", store, "import", "-", "-s", "heavy", "--define", file); got.code != 0 {
		t.Fatalf("import: %+v", got)
	}
}

// process runs the program in its own process. Data is the limit of its data segment
// in kilobytes, or "unlimited"; above it the runtime exits with code 2. The peak of
// the kernel is not usable here, because it includes that of the parent process.
func process(t *testing.T, data string, env []string, args ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "sh", append([]string{"-c", `ulimit -d ` + data + ` && exec sajou-replay "$@"`, "sh"}, args...)...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return result{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// TestAttackMemory shows that a command above its memory limit ends with an error soon
// after it exceeds the limit, and prints no partial result.
func TestAttackMemory(t *testing.T) {
	store := filepath.Join(t.TempDir(), "store")
	heavySession(t, store, attack.Rounds(400, 1200), 700_000)
	const data = "300000" // kilobytes: 64 MiB, the program, and what is allocated between two looks
	if runtime.GOOS == "linux" {
		got := process(t, data, nil, "-C", store, "--max-memory", "off", "state", "end")
		if got.code == 0 || got.code == cli.ExitInconclusive {
			t.Fatalf("without a limit: code %d; the session is too small to show anything", got.code)
		}
	}
	for _, args := range [][]string{
		{"state", "end"},
		{"state", "end", "-o", "json"},
		{"diff", "1", "end"},
		{"render", "end", "--format", "svg", "-o", "-"},
		{"scan", "--where", "state.performances.size() > 1000"},
	} {
		got := process(t, data, nil, append([]string{"-C", store, "--max-memory", "64MiB"}, args...)...)
		if got.code != cli.ExitInconclusive || got.stdout != "" {
			t.Errorf("%v: code %d, %d bytes of output; want code %d and none: %.300s", args, got.code, len(got.stdout), cli.ExitInconclusive, got.stderr)
		}
		for _, part := range []string{"sajou-replay " + args[0], "the limit is 64 MiB", "--max-memory SIZE"} {
			if !strings.Contains(got.stderr, part) {
				t.Errorf("%v: %.300q does not say %q", args, got.stderr, part)
			}
		}
	}
	if got := process(t, "unlimited", []string{"SAJOU_MAX_MEMORY=64MiB"}, "-C", store, "state", "end"); got.code != cli.ExitInconclusive {
		t.Errorf("SAJOU_MAX_MEMORY: code %d: %s", got.code, got.stderr)
	}
	for _, limit := range []string{"off", "0", "4GiB"} {
		if got := process(t, "unlimited", nil, "-C", store, "--max-memory", limit, "state", "0"); got.code != 0 {
			t.Errorf("--max-memory %s: code %d: %s", limit, got.code, got.stderr)
		}
	}
}

// TestMaxMemoryMisuse shows which limits are refused.
func TestMaxMemoryMisuse(t *testing.T) {
	for _, limit := range []string{"", "much", "1MiB", "101%", "-1"} {
		if got := sajouReplay(t.Context(), t, nil, "ls", "--max-memory="+limit); got.code != cli.ExitMisuse || !strings.Contains(got.stderr, "--max-memory") {
			t.Errorf("--max-memory=%s: %+v", limit, got)
		}
	}
}

// TestExpressionBudget shows that an expression over its budget is an error, not a
// search without a match.
func TestExpressionBudget(t *testing.T) {
	store := filepath.Join(t.TempDir(), "store")
	list := strings.TrimSuffix(strings.Repeat("1,", 200), ",")
	line := `{"id":"s","type":"x","timestamp":1,"source":"adapter:test","payload":{"n":[` + list + `]}}`
	if got := sajouReplay(t.Context(), t, strings.NewReader(line+"\n"), "-C", store, "import", "-", "-s", "x"); got.code != 0 {
		t.Fatalf("import: %+v", got)
	}
	expr := `entry.payload.n.all(a, entry.payload.n.all(b, entry.payload.n.all(c, true)))`
	for _, args := range [][]string{{"scan", "--where"}, {"cat", "--where"}, {"bisect", "--where"}} {
		got := sajouReplay(t.Context(), t, nil, append(append([]string{"-C", store}, args...), expr)...)
		if got.code != cli.ExitCannotRun || !strings.Contains(got.stderr, "more than 5000000 steps") || !strings.Contains(got.stderr, "entry 2") {
			t.Errorf("%v: %+v", args, got)
		}
	}
}
