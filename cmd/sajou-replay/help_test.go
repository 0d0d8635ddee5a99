package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"image"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
)

// TestHelp shows that every command teaches: a summary, a text and an example.
func TestHelp(t *testing.T) {
	for _, cmd := range documented() {
		if cmd.Short == "" || cmd.Long == "" || cmd.Example == "" {
			t.Errorf("%s lacks a summary, a text or an example", cmd.CommandPath())
		}
		for line := range strings.Lines(cmd.Long) {
			line = strings.TrimSuffix(line, "\n")
			if n := len([]rune(line)); n > 82 && !strings.Contains(line, "{") {
				t.Errorf("%s has a line of %d characters in its help:\n%s", cmd.CommandPath(), n, line)
			}
		}
	}
}

// TestManual shows that a manual page has the whole help of its command: brackets,
// tables and examples included.
func TestManual(t *testing.T) {
	dir := t.TempDir()
	require.Zero(t, sajouReplay(t.Context(), t, nil, "man", dir).code)
	for _, cmd := range documented() {
		page, err := os.ReadFile(filepath.Join(dir, manualName(cmd)+".1"))
		require.NoError(t, err)
		plain := strings.NewReplacer(`\-`, "-", `\e`, `\`, `\&`, "").Replace(string(page))
		for _, text := range []string{cmd.Short, cmd.UseLine(), cmd.Long, cmd.Example, "--store DIR"} {
			require.Containsf(t, plain, strings.Trim(text, "\n"), "the manual of %s", cmd.CommandPath())
		}
	}
	page, err := os.ReadFile(filepath.Join(dir, "sajou-replay-play.1"))
	require.NoError(t, err)
	require.Contains(t, string(page), ".SH SYNOPSIS\n.nf\nsajou\\-replay play [SESSION] [RANGE] [flags]\n.fi\n")
	require.Equal(t, "\\&.a\n b\\ec\\-d\n\\&'e", roff(".a\n b\\c-d\n'e"))
}

// TestVersionFlag shows that --version prints the version with every command, also with
// arguments that the command would refuse, in the format of -o.
func TestVersionFlag(t *testing.T) {
	version := sajouReplay(t.Context(), t, nil, "version")
	require.Zero(t, version.code)
	require.Contains(t, version.stdout, "sajou-replay ")
	for _, args := range []string{"--version", "--version info", "info --version", "import --version", "define --version", "help --version", "version --version"} {
		require.Equal(t, version, sajouReplay(t.Context(), t, nil, strings.Fields(args)...), args)
	}
	require.Equal(t, sajouReplay(t.Context(), t, nil, "version", "-o", "jsonl"), sajouReplay(t.Context(), t, nil, "--version", "-o", "jsonl"))
}

// documented returns the commands of this program, without those that cobra adds.
func documented() (list []*cobra.Command) {
	commands := rootCommand(&cli.App{}).Commands()
	for len(commands) > 0 {
		cmd := commands[0]
		commands = append(commands[1:], cmd.Commands()...)
		if name := cmd.CommandPath(); strings.Contains(name, "completion") || strings.HasSuffix(name, "help") {
			continue
		}
		list = append(list, cmd)
	}
	return list
}

// aboutFiles reports whether a command needs a session whose agents worked on files.
func aboutFiles(cmd *cobra.Command) bool {
	switch strings.Fields(cmd.CommandPath())[1] {
	case "blame", "risks":
		return true
	default:
		return false
	}
}

// aboutEpisodes reports whether a command needs sessions that play an episode.
func aboutEpisodes(cmd *cobra.Command) bool {
	switch strings.Fields(cmd.CommandPath())[1] {
	case "episode", "beats", "report":
		return true
	default:
		return false
	}
}

// TestExamples runs the examples in the help of each command, in a directory with
// the files that they name and a store with the sessions that the help of the
// program names; the commands about episodes have a store with sessions that play
// one, and those about files one in which an agent edits a program. An example may answer no; it may not be misuse or find nothing to work on.
// Examples that never end, or that take as long as the session, are interrupted
// after a moment.
func TestExamples(t *testing.T) {
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	program, err := os.Executable()
	require.NoError(t, err)
	_, err = exec.LookPath("python3")
	python := err == nil

	home := t.TempDir()
	require.NoError(t, os.Symlink(program, filepath.Join(home, "sajou-replay")))
	t.Setenv("PATH", home+string(filepath.ListSeparator)+os.Getenv("PATH"))
	t.Setenv("HOME", home)
	t.Setenv("SAJOU_LISTEN", "127.0.0.1:0")
	store := filepath.Join(home, "store")
	picture := filepath.Join(home, "good.png")
	for _, args := range [][]string{
		{"sim", "--example", "--quiet"},
		{"demo"}, // the session that was begun last
		{"render", "35", "-o", picture, "--width", "320"},
	} {
		if r := sajouReplay(t.Context(), t, nil, append([]string{"-C", store}, args...)...); r.code != 0 {
			t.Fatalf("%v: exit %d: %s", args, r.code, r.stderr)
		}
	}
	played := filepath.Join(home, "played")
	for _, session := range []string{"monday", "tuesday", "friday"} {
		playText(t, played, session, strings.Join(interviewLines, "\n"), "--manual-time")
	}
	var mask bytes.Buffer
	require.NoError(t, png.Encode(&mask, image.NewNRGBA(image.Rect(0, 0, 320, 180))))
	coded := filepath.Join(home, "coded")
	if r := sajouReplay(t.Context(), t, nil, "-C", coded, "demo"); r.code != 0 {
		t.Fatal(r.stderr)
	}
	if r := sajouReplay(t.Context(), t, nil, "-C", coded, "import", filepath.Join(root, "docs/examples/coding.jsonl")); r.code != 0 {
		t.Fatal(r.stderr)
	}
	files := map[string][]byte{"mask.png": mask.Bytes()}
	for name, from := range map[string]string{
		"session.jsonl":        "demo/session.jsonl",
		"choreographies.json":  "demo/choreographies.json",
		"scene.json":           "demo/scene.json",
		"good.png":             picture,
		"docs/verify_chain.py": filepath.Join(root, "docs/verify_chain.py"),
		"interview.json":       "../../director/script/interview.json",
		"changed.json":         "../../director/script/interview.json",
		"mine.json":            "../../director/script/interview.json",
		"mine.script.json":     "../../director/script/interview.script.json",
		"old.json":             "../../director/script/interview-before.json",
	} {
		files[name], err = os.ReadFile(from)
		require.NoError(t, err)
	}
	files["transcript.jsonl"] = files["session.jsonl"]
	var packed bytes.Buffer
	zipped := gzip.NewWriter(&packed)
	_, err = zipped.Write(files["session.jsonl"])
	require.NoError(t, errors.Join(err, zipped.Close()))
	files["traces.json.gz"] = packed.Bytes()
	project := filepath.Join(home, ".claude/projects/my-project")
	require.NoError(t, os.MkdirAll(project, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(project, "a.jsonl"), files["session.jsonl"], 0o644))
	files["interview.yaml"] = []byte("beats: [{id: a, description: d, character_instruction: x, target_turn: 1}]\n")
	files["series/first.yaml"] = files["interview.yaml"]
	files["versions/v1.json"] = files["choreographies.json"]
	files["versions/v2.json"] = bytes.Replace(files["choreographies.json"], []byte("60000"), []byte("30000"), 1)
	files["recordings/session.jsonl"] = files["session.jsonl"]
	files["bookmarks.jsonl"] = nil
	files["serve.yaml"] = []byte("log-level: debug\nstop-timeout: 2s\n")
	files["greeting.json"] = []byte(`{"id": "hello", "script": [{"advance": 100}], "definitions": []}`)

	for _, cmd := range documented() {
		from := store
		if aboutEpisodes(cmd) {
			from = played
		}
		if aboutFiles(cmd) {
			from = coded
		}
		t.Run(strings.ReplaceAll(strings.TrimPrefix(cmd.CommandPath(), "sajou-replay "), " ", "-"), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for name, data := range files {
				require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
				require.NoError(t, os.WriteFile(filepath.Join(dir, name), data, 0o644))
			}
			for _, name := range []string{"sajou-data", "damaged"} {
				require.NoError(t, os.CopyFS(filepath.Join(dir, name), os.DirFS(from)))
			}
			for line := range strings.Lines(cmd.Example) {
				line = strings.TrimSpace(line)
				if strings.Contains(line, "python3") && !python {
					continue
				}
				runExample(t, dir, line)
			}
		})
	}
}

// runExample runs one line of an example in a shell.
func runExample(t *testing.T, dir, line string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	endless := strings.Contains(line, " play") && !strings.Contains(line, "--rate 0") ||
		strings.Contains(line, " tail -f") || strings.Contains(line, " serve") || strings.Contains(line, "--watch")
	if endless {
		line = "exec " + line // the interrupt is for the program, not for the shell
		time.AfterFunc(time.Second, cancel)
	}
	shell := exec.CommandContext(ctx, "sh", "-c", line)
	shell.Dir = dir
	shell.Cancel = func() error { return shell.Process.Signal(os.Interrupt) }
	shell.WaitDelay = 30 * time.Second
	out, err := shell.CombinedOutput()
	code := 0
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		code = failed.ExitCode()
		if code == -1 && endless && ctx.Err() != nil {
			code = cli.ExitInterrupted // the signal came when the program had ended its work, but not yet itself
		}
	} else if err != nil && ctx.Err() == nil {
		t.Errorf("$ %s\n%v", line, err)
	}
	switch code {
	case 0, cli.ExitNo, cli.ExitInconclusive:
	case cli.ExitInterrupted:
		if !endless {
			t.Errorf("$ %s\n%sexit %d", line, out, code)
		}
	default:
		t.Errorf("$ %s\n%sexit %d", line, out, code)
	}
}
