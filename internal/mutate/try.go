package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	module = "github.com/sajou-dev/sajou-go"
	// patience is how long the tests of one package may run. A change that makes
	// them hang is caught.
	patience = 10 * time.Minute
	// memory is what a test may allocate: a change that makes a loop endless
	// must not take the machine's.
	memory = 6 << 30
)

type verdict int

const (
	caught verdict = iota
	missed
	broken
)

// imports has for each package of the module, by its folder, the packages whose
// tests run its code.
type imports map[string][]string

// listImports asks the go command which packages have tests and what these
// depend on.
func listImports(ctx context.Context) (imports, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-test", "-deps", "-json=ImportPath,ForTest,Deps,Module", "./...")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	all := imports{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			ImportPath string
			Deps       []string
		}
		if err := d.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
		tester, isTest := strings.CutSuffix(p.ImportPath, ".test")
		if !isTest || !inModule(tester) {
			continue
		}
		seen := map[string]bool{}
		for _, dep := range p.Deps {
			dep, _, _ = strings.Cut(dep, " ")
			if inModule(dep) && !seen[dep] {
				seen[dep] = true
				all[folder(dep)] = append(all[folder(dep)], folder(tester))
			}
		}
	}
	return all, nil
}

func inModule(path string) bool { return path == module || strings.HasPrefix(path, module+"/") }

func folder(path string) string {
	if path == module {
		return "."
	}
	return strings.TrimPrefix(path, module+"/")
}

// testers returns the packages whose tests judge a change in dir: itself, those
// of its group, the rest. The benchmarks and the checks of the source are not
// among them, since they do not judge behaviour.
func (all imports) testers(g group, dir string) [][]string {
	own, near, far := []string{}, []string{}, []string{}
	for _, tester := range all[dir] {
		switch {
		case tester == dir:
			own = append(own, tester)
		case slices.Contains(g.dirs, tester):
			near = append(near, tester)
		case tester == "internal/layers", tester == "internal/fpcheck", tester == "internal/bench":
		default:
			far = append(far, tester)
		}
	}
	return [][]string{own, near, far}
}

// try makes one change and runs the tests, one round of packages after the
// other, until one fails. by names the package whose test noticed it.
func try(ctx context.Context, c change, rounds [][]string) (v verdict, by string, err error) {
	dir, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = os.RemoveAll(dir) }() // it is a temporary folder
	src, err := os.ReadFile(c.file)
	if err != nil {
		return 0, "", err
	}
	changed := slices.Concat(src[:c.from], []byte(c.new), src[c.to:])
	file, overlay := filepath.Join(dir, "changed.go"), filepath.Join(dir, "overlay.json")
	abs, err := filepath.Abs(c.file)
	if err != nil {
		return 0, "", err
	}
	list, err := json.Marshal(map[string]map[string]string{"Replace": {abs: file}})
	if err != nil {
		return 0, "", err
	}
	if err := os.WriteFile(file, changed, 0o600); err != nil {
		return 0, "", err
	}
	if err := os.WriteFile(overlay, list, 0o600); err != nil {
		return 0, "", err
	}
	if _, ok, err := goCommand(ctx, dir, "build", "-overlay", overlay, "./"+c.dir); err != nil || !ok {
		return broken, "", err
	}
	test := func(testers []string) (failed string, err error) {
		args := []string{"test", "-short", "-failfast", "-vet=off", "-timeout", patience.String(), "-overlay", overlay}
		for _, tester := range testers {
			args = append(args, "./"+tester)
		}
		out, ok, err := goCommand(ctx, dir, args...)
		if err != nil || ok {
			return "", err
		}
		return failedIn(out), nil
	}
	for _, round := range rounds {
		if len(round) == 0 {
			continue
		}
		failed, err := test(round)
		if err != nil {
			return 0, "", err
		}
		if failed == "" {
			continue
		}
		// A test that fails only sometimes has not noticed anything.
		again, err := test([]string{failed})
		if err != nil {
			return 0, "", err
		}
		if again != "" {
			return caught, failed, nil
		}
	}
	return missed, "", nil
}

// goCommand runs the go command and reports whether it passed. It ends the
// command, and all that it started, when the context ends, which is the error.
func goCommand(ctx context.Context, tmp string, args ...string) (out []byte, ok bool, err error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Env = append(os.Environ(), "TMPDIR="+tmp) // what a killed test leaves goes with it
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 10 * time.Second
	out, err = cmd.CombinedOutput()
	return out, err == nil, ctx.Err()
}

// failedIn returns the package that the output of go test names first, the root
// package if it names none.
func failedIn(out []byte) string {
	for line := range strings.Lines(string(out)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "FAIL" {
			return folder(f[1])
		}
	}
	return "."
}

// limitMemory bounds the data segment of this process and of those it starts.
func limitMemory() error {
	const rlimitData = 2
	return syscall.Setrlimit(rlimitData, &syscall.Rlimit{Cur: memory, Max: memory})
}
