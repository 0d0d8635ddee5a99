package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/signal"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"sajou-replay": main})
}

var update = flag.Bool("update", false, "write what commands print into the golden files of the scripts")

// TestScript runs the program as users do. Each file in testdata/script is a story.
func TestScript(t *testing.T) {
	docs, err := filepath.Abs("../../docs")
	require.NoError(t, err)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		UpdateScripts:       *update,
		Cmds:                serverCommands,
		Setup: func(env *testscript.Env) error {
			setupHolding(env)
			env.Setenv("DOCS", docs)
			env.Setenv("SAJOU_STORE", filepath.Join(env.WorkDir, "store"))
			return nil
		},
	})
}

// result is the output and the exit code of a command line.
type result struct {
	stdout, stderr string
	code           int
}

func sajouReplay(ctx context.Context, t *testing.T, stdin io.Reader, args ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	err := run(ctx, args, stdin, &stdout, &stderr)
	code := cli.ExitCode(err, &stderr)
	return result{stdout.String(), stderr.String(), code}
}

func signalLines(n int) string {
	var b strings.Builder
	for i := range n {
		line, err := json.Marshal(map[string]any{
			"id": "s", "type": "note", "timestamp": 1000 + i, "source": "adapter:test", "payload": map[string]any{"n": i},
		})
		if err != nil {
			panic(err)
		}
		b.Write(append(line, '\n'))
	}
	return b.String()
}

func importLines(t *testing.T, store string, n int) {
	t.Helper()
	r := sajouReplay(t.Context(), t, strings.NewReader(signalLines(n)), "-C", store, "import", "-", "-s", "a")
	if r.code != 0 {
		t.Fatalf("import: exit %d: %s", r.code, r.stderr)
	}
}

// TestExitCodes shows the exit code of every kind of mistake, and that the error is at
// most one line.
func TestExitCodes(t *testing.T) {
	store := filepath.Join(t.TempDir(), "store")
	importLines(t, store, 5)
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, []byte("{\n"), 0o600))
	dir := t.TempDir()
	for _, tc := range []struct {
		args string
		code int
	}{
		{"ls", 0},
		{"", 0},
		{"help", 0},
		{"completion bash", 0},
		{"nonsense", 2},
		{"help nonsense", 2},
		{"help define nonsense", 2},
		{"help define add", 0},
		{"define nonsense", 2},
		{"snapshot nonsense", 2},
		{"ls extra", 2},
		{"ls --nonsense", 2},
		{"ls -o yaml", 2},
		{"show", 2},
		{"show 1 2 3", 2},
		{"show 1x", 2},
		{"show 1..2", 2},
		{"show 1+5", 2},
		{"show -1", 4},
		{"show -- -1x", 2},
		{"show 99999999999999999999", 2},
		{"completion nonsense", 2},
		{"completion", 0},
		{"ls --session=", 2},
		{"show #zz", 2},
		{"show t:yesterday", 2},
		{"show 0", 4},
		{"show 7", 4},
		{"show #ffffffff", 4},
		{"show nobody 1", 4},
		{"show -s nobody 1", 4},
		{"show -s a 1x", 2},
		{"show a 2", 0},
		{"show 2+1h", 4},
		{"cat 3..1", 2},
		{"cat 3..x", 2},
		{"cat a 1..2 3", 2},
		{"cat --kind nonsense", 2},
		{"cat --where nonsense", 2},
		{"cat --where seq", 2},
		{"cat --type nobody", 0},
		{"scan 2+100us..4 --where false", 5},
		{"scan", 2},
		{"scan --where seq>99", 1},
		{"scan --where seq>2 --first", 0},
		{"scan --where seq>2 --first --last", 2},
		{"scan --where seq/0==1", 1},
		{"scan --where entry.payload.nothing==1", 1},
		{"scan --where seq --changes", 0},
		{"scan a 1..2 x --where true", 2},
		{"state end nothing", 4},
		{"state 1 2 3", 2},
		{"state 99", 4},
		{"diff 1", 2},
		{"diff 2 2", 0},
		{"diff 1 2", 1},
		{"diff 1 2 nothing", 4},
		{"play --rate 0", 0},
		{"play --rate -1", 2},
		{"play --fps 5000", 2},
		{"play --rate 0 1..2 --from 1", 2},
		{"play --rate 1 -o json", 2},
		{"play --idle -1s", 2},
		{"play --stage --rate 0", 2},
		{"play --stage -o text --rate 0", 0},
		{"play --stage -o json --rate 0", 2},
		{"play --scene " + file, 2},
		{"play --stage -o text --scene " + file, 1},
		{"play --stage -o text --scene " + file + "nothing", 2},
		{"render", 2},
		{"render end", 2},
		{"render end -O -", 0},
		{"render end -O - --format png", 0},
		{"render end -O yaml", 2},
		{"render nobody end -O -", 4},
		{"render 99 -O -", 4},
		{"render end -O - --scene " + file + "nothing", 2},
		{"render end -O - --scene " + file, 1},
		{"render 1x -O -", 2},
		{"render 1 2 3 --compare", 2},
		{"render 2 2 --compare", 0},
		{"render 1.. -O -", 2},
		{"render 1.. --sheet -O -", 0},
		{"render 1.. -O - --format gif --width 32", 0},
		{"render end -O - --width 15", 2},
		{"lint", 2},
		{"lint --rules", 0},
		{"lint " + file, 1},
		{"lint " + file + "nothing", 2},
		{"lint " + dir, 2},
		{"scan --conflicts", 1},
		{"scan --conflicts --where true", 2},
		{"scan --image " + file, 2},
		{"scan --image " + file + "nothing", 2},
		{"policy-diff --policy " + file + "nothing", 2},
		{"policy-diff --policy " + file, 2},
		{"scan --same --where true", 2},
		{"bisect --image " + file, 2},
		{"bisect --tolerance 3 --where seq>2", 2},
		{"bisect --moment --where seq>2", 0},
		{"rehearse --watch -o json " + file, 2},
		{"rehearse --scene x " + file, 2},
		{"rehearse --render x " + file, 2},
		{"demo --pictures " + file, 1},
		{"verify", 0},
		{"verify nobody", 4},
		{"verify --all", 0},
		{"verify --all a", 2},
		{"verify --head 1:2", 2},
		{"verify --head 3:" + strings.Repeat("0", 64), 1},
		{"verify --workers -1", 2},
		{"export", 0},
		{"export --raw --all", 2},
		{"export --raw 2..3", 2},
		{"bisect", 2},
		{"bisect a b --where true", 2},
		{"bisect --where seq>2 -- true", 2},
		{"bisect --where seq>2", 0},
		{"bisect --where true", 1},
		{"bisect --where seq>2 --good 5 --bad 1", 2},
		{"bisect --good 99 --where seq>2", 4},
		{"bisect --good x --where seq>2", 2},
		{"bisect -- " + filepath.Join(store, "nothing"), 7},
		{"tail -f -o json", 2},
		{"tail --interval 0s", 2},
		{"snapshot", 0},
		{"snapshot ls", 0},
		{"snapshot build nobody", 4},
		{"define", 0},
		{"define ls", 0},
		{"define show 2", 4},
		{"define add " + file, 1},
		{"define add " + file + "nothing", 2},
		{"rehearse", 2},
		{"rehearse " + file, 1},
		{"rehearse " + file + "nothing", 2},
		{"rehearse -", 1},
		{"rehearse --watch -", 2},
		{"sim", 2},
		{"sim " + file, 1},
		{"sim " + file + "nothing", 2},
		{"sim " + dir, 2},
		{"import", 2},
		{"import - -s \x01", 2},
		{"import " + file, 1},
		{"import " + file + " --session a", 1},
		{"import nothing.jsonl", 2},
		{"import " + dir, 2},
		{"import - --define " + file + "nothing", 2},
		{"import - --define " + dir, 2},
		{"version", 0},
		{"version 1", 2},
		{"--version", 0},
		{"--version nonsense", 0},
	} {
		args := append([]string{"-C", store, "--wait", "0"}, strings.Fields(tc.args)...)
		r := sajouReplay(t.Context(), t, strings.NewReader(""), args...)
		if r.code != tc.code {
			t.Errorf("sajou-replay %s: exit %d, want %d\nstdout: %.300s\nstderr: %s", tc.args, r.code, tc.code, r.stdout, r.stderr)
		}
		if strings.Contains(r.stderr, "goroutine") || strings.Contains(r.stderr, "panic") {
			t.Errorf("sajou-replay %s: a trace on stderr:\n%s", tc.args, r.stderr)
		}
		if n := strings.Count(r.stderr, "sajou-replay: "); n > 1 {
			t.Errorf("sajou-replay %s: %d messages on stderr:\n%s", tc.args, n, r.stderr)
		}
	}
}

// TestStores shows the errors for a store that is missing, a file, or in use.
func TestStores(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, []byte("x"), 0o600))
	if r := sajouReplay(t.Context(), t, nil, "-C", filepath.Join(dir, "none"), "ls"); r.code != 4 || !strings.Contains(r.stderr, "no store") {
		t.Errorf("no store: exit %d, %s", r.code, r.stderr)
	}
	if _, err := os.Stat(filepath.Join(dir, "none")); err == nil {
		t.Error("reading made a store")
	}
	if r := sajouReplay(t.Context(), t, nil, "-C", file, "ls"); r.code != 4 {
		t.Errorf("a file: exit %d, %s", r.code, r.stderr)
	}
	if r := sajouReplay(t.Context(), t, nil, "-C", "", "ls"); r.code != 2 {
		t.Errorf("an empty name: exit %d, %s", r.code, r.stderr)
	}
	store := filepath.Join(dir, "damaged")
	importLines(t, store, 2)
	manifests, err := filepath.Glob(filepath.Join(store, "MANIFEST-*"))
	if err != nil || len(manifests) == 0 {
		t.Fatal(manifests, err)
	}
	for _, name := range manifests {
		require.NoError(t, os.WriteFile(name, []byte("garbage"), 0o600))
	}
	for _, args := range [][]string{{"ls"}, {"verify"}, {"import", "-"}} {
		r := sajouReplay(t.Context(), t, strings.NewReader(""), append([]string{"-C", store}, args...)...)
		if r.code != 1 || !strings.Contains(r.stderr, "is damaged and cannot be opened: ") || strings.Count(r.stderr, "\n") != 1 {
			t.Errorf("%v on a damaged store: exit %d, %s", args, r.code, r.stderr)
		}
	}
	store = filepath.Join(dir, "store")
	engine, err := sajou.Open(store, sajou.Config{})
	require.NoError(t, err)
	for _, args := range [][]string{{"ls"}, {"import", "-"}, {"verify"}} {
		r := sajouReplay(t.Context(), t, strings.NewReader(""), append([]string{"-C", store, "--wait", "0"}, args...)...)
		if r.code != 6 || !strings.Contains(r.stderr, "in use") {
			t.Errorf("%v on a store in use: exit %d, %s", args, r.code, r.stderr)
		}
	}
	require.NoError(t, engine.Close())
	if r := sajouReplay(t.Context(), t, nil, "-C", store, "ls", "-o", "json"); r.code != 0 || r.stdout != "[]\n" {
		t.Errorf("an empty store: exit %d, %q", r.code, r.stdout)
	}
	if r := sajouReplay(t.Context(), t, nil, "-C", store, "cat"); r.code != 4 {
		t.Errorf("a store without sessions: exit %d, %s", r.code, r.stderr)
	}
}

// TestUntestableEnd shows that an end that the program skips is not reported as a
// wrong end.
func TestUntestableEnd(t *testing.T) {
	store := filepath.Join(t.TempDir(), "store")
	importLines(t, store, 5)
	r := sajouReplay(t.Context(), t, nil, "-C", store, "bisect", "--", "sh", "-c", "exit 125")
	if r.code != 125 || !strings.Contains(r.stderr, "the test says skip") {
		t.Errorf("exit %d, %s", r.code, r.stderr)
	}
}

// brokenPipe is a stdout whose reader has closed it.
type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, syscall.EPIPE }

// TestBrokenPipe shows that a command ends without an error when the reader of its
// output closes the pipe.
func TestBrokenPipe(t *testing.T) {
	store := filepath.Join(t.TempDir(), "store")
	importLines(t, store, 5)
	for _, args := range []string{"cat", "export", "ls", "state", "scan --where true", "play --rate 0", "play --rate 0 --stage -o text", "render end -O -", "render 1 2 --compare"} {
		var stderr bytes.Buffer
		err := run(t.Context(), append([]string{"-C", store}, strings.Fields(args)...), nil, brokenPipe{}, &stderr)
		if code := cli.ExitCode(err, &stderr); code != 0 || strings.Contains(stderr.String(), "pipe") {
			t.Errorf("%s: exit %d, %s", args, code, stderr.String())
		}
	}
}

// interrupting returns lines, and interrupts the command when they have been read.
type interrupting struct {
	io.Reader
	interrupt func()
}

func (r *interrupting) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	if errors.Is(err, io.EOF) {
		r.interrupt()
		return copy(b, "\n"), nil // more would come
	}
	return n, err
}

// TestInterrupt shows that an interrupted import keeps and reports its durable
// entries.
func TestInterrupt(t *testing.T) {
	store := filepath.Join(t.TempDir(), "store")
	ctx, cancel := context.WithCancel(t.Context())
	stdin := &interrupting{strings.NewReader(signalLines(1500)), cancel}
	r := sajouReplay(ctx, t, stdin, "-C", store, "import", "-", "-s", "a")
	if r.code != 130 || !strings.Contains(r.stdout, `imported 1500 signals into "a"`) {
		t.Fatalf("exit %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	if r := sajouReplay(t.Context(), t, nil, "-C", store, "verify"); r.code != 0 || !strings.Contains(r.stdout, "1501 entries") {
		t.Errorf("verify: exit %d, %s%s", r.code, r.stdout, r.stderr)
	}
	for _, args := range []string{
		"cat", "verify", "scan --where true", "play", "tail -f", "export", "info", "bisect --where seq>3",
		"play --stage -o text", "render 1..9 --sheet -O -", "render 1.. -O - --format gif",
	} {
		if r := sajouReplay(ctx, t, nil, append([]string{"-C", store}, strings.Fields(args)...)...); r.code != 130 {
			t.Errorf("%s in an ended context: exit %d, %s", args, r.code, r.stderr)
		}
	}
}

// TestRawExport recomputes a chain from its raw export with SHA-256 alone, as
// docs/audit.md describes.
func TestRawExport(t *testing.T) {
	store := filepath.Join(t.TempDir(), "store")
	importLines(t, store, 20)
	r := sajouReplay(t.Context(), t, nil, "-C", store, "export", "--raw")
	lines := strings.Split(strings.TrimSpace(r.stdout), "\n")
	if r.code != 0 || len(lines) != 22 {
		t.Fatalf("exit %d, %d lines, %s", r.code, len(lines), r.stderr)
	}
	var header struct{ Session, Genesis string }
	require.NoError(t, json.Unmarshal([]byte(lines[0]), &header))
	link := sha256.Sum256([]byte("sajou.session/1\n" + header.Session))
	if header.Session != "a" || header.Genesis != hex.EncodeToString(link[:]) {
		t.Fatalf("header %+v, want genesis %x", header, link)
	}
	for i, line := range lines[1:] {
		var e struct {
			Session, Hash, Entry string
			Seq                  int
		}
		require.NoError(t, json.Unmarshal([]byte(line), &e))
		stored, err := base64.StdEncoding.DecodeString(e.Entry)
		require.NoError(t, err)
		link = sha256.Sum256(append(link[:], stored...))
		if e.Session != "a" || e.Seq != i+1 || e.Hash != hex.EncodeToString(link[:]) {
			t.Fatalf("entry %d: %+v, want hash %x", i+1, e, link)
		}
	}
	if r := sajouReplay(t.Context(), t, nil, "-C", store, "verify", "--head", "21:"+hex.EncodeToString(link[:])); r.code != 0 {
		t.Errorf("verify: exit %d, %s%s", r.code, r.stdout, r.stderr)
	}
}

// TestTailFollow shows that tail -f prints the entries of another process, remarks
// once that the store is in use, and ends when it is interrupted.
func TestTailFollow(t *testing.T) {
	store := filepath.Join(t.TempDir(), "store")
	importLines(t, store, 2)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out, stdout := io.Pipe()
	remarks, stderr := io.Pipe()
	ended := make(chan int, 1) // holds the one code
	go func() {
		err := run(ctx, []string{"-C", store, "--wait", "0", "tail", "-f", "-n", "1", "--interval", "5ms", "-o", "jsonl"}, nil, stdout, stderr)
		ended <- cli.ExitCode(err, io.Discard)
	}()
	lines := bufio.NewScanner(out)
	if !lines.Scan() || !strings.Contains(lines.Text(), `"seq":3,`) {
		t.Fatalf("first line %q, want the last entry", lines.Text())
	}
	// This process holds the store, so tail remarks that it is in use.
	engine, err := sajou.Open(store, sajou.Config{LockWait: 10 * time.Second})
	require.NoError(t, err)
	said := bufio.NewScanner(remarks)
	if !said.Scan() || !strings.Contains(said.Text(), "in use by another process; waiting") {
		t.Fatalf("remark %q, want that the store is in use", said.Text())
	}
	session, err := engine.Session(ctx, "a")
	require.NoError(t, err)
	sig, err := signal.Parse([]byte(`{"id":"new","type":"note","timestamp":9000,"source":"s","payload":{}}`))
	require.NoError(t, err)
	if _, err := session.Signal(ctx, sig); err != nil {
		t.Fatal(err)
	}
	require.NoError(t, engine.Close())
	if !lines.Scan() || !strings.Contains(lines.Text(), `"id":"new"`) {
		t.Fatalf("next line %q, want the new entry", lines.Text())
	}
	cancel()
	if code := <-ended; code != 130 {
		t.Errorf("exit %d, want 130", code)
	}
}
