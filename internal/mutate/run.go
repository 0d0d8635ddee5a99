package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	module = "github.com/sajou-dev/sajou-go"
	// memory is what a test may allocate: a change that makes a loop endless
	// must not take the machine's.
	memory = 4 << 30
	// patience and slack bound a run of tests: slack times what they took without
	// a change, and patience. A change that makes them hang is caught.
	patience = 15 * time.Second
	slack    = 8
)

// packages is what the go command knows of the module.
type packages struct {
	files   map[string][]string // the files of a package for this machine, by its folder
	testers map[string][]string // the folders of the packages whose tests run a package's code, the nearest first
}

func list(ctx context.Context) (*packages, error) {
	out, err := goCommand(ctx, "list", "-test", "-deps", "-json=ImportPath,Imports,Deps,GoFiles", "./...")
	if err != nil {
		return nil, err
	}
	all := &packages{files: map[string][]string{}, testers: map[string][]string{}}
	imports := map[string][]string{} // of a package or one of its variants for tests
	deps := map[string]int{}         // of a folder's tests
	var tests []string
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			ImportPath             string
			GoFiles, Imports, Deps []string
		}
		if err := d.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
		imports[p.ImportPath] = p.Imports
		tester, isTest := strings.CutSuffix(p.ImportPath, ".test")
		if !isTest {
			if !strings.Contains(p.ImportPath, " ") {
				all.files[folder(p.ImportPath)] = p.GoFiles
			}
			continue
		}
		tests = append(tests, p.ImportPath)
		deps[folder(tester)] = len(p.Deps)
		seen := map[string]bool{}
		for _, dep := range p.Deps {
			dep, _, _ = strings.Cut(dep, " ")
			if inModule(dep) && !seen[dep] {
				seen[dep] = true
				all.testers[folder(dep)] = append(all.testers[folder(dep)], folder(tester))
			}
		}
	}
	// The fewer packages stand between, the likelier tests notice a change. Of two at the
	// same distance the smaller one ends sooner.
	far := map[string]map[string]int{} // by the folder of the tests
	for _, test := range tests {
		far[folder(strings.TrimSuffix(test, ".test"))] = distances(imports, test)
	}
	for dir, testers := range all.testers {
		slices.SortStableFunc(testers, func(a, b string) int {
			return cmp.Or(cmp.Compare(far[a][dir], far[b][dir]), cmp.Compare(deps[a], deps[b]))
		})
	}
	return all, nil
}

// distances returns how many imports lead from a package to each folder of the module.
func distances(imports map[string][]string, from string) map[string]int {
	all, seen := map[string]int{}, map[string]bool{from: true}
	for step, at := 0, []string{from}; len(at) > 0; step++ {
		var next []string
		for _, id := range at {
			path, _, _ := strings.Cut(id, " ")
			if _, nearer := all[folder(path)]; !nearer && inModule(path) {
				all[folder(path)] = step
			}
			for _, i := range imports[id] {
				if !seen[i] {
					seen[i] = true
					next = append(next, i)
				}
			}
		}
		at = next
	}
	return all
}

// exportsOf compiles what the packages of some folders import and returns the
// files of export data, by import path.
func exportsOf(ctx context.Context, dirs []string) (map[string]string, error) {
	args := []string{"list", "-deps", "-export", "-f", "{{.ImportPath}} {{.Export}}"}
	for _, dir := range dirs {
		args = append(args, "./"+dir)
	}
	out, err := goCommand(ctx, args...)
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		all[path] = file
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

// lab has the changed code of one group and the programs of its tests.
type lab struct {
	ctx      context.Context
	root     string // of the module
	tmp      string
	seed     uint64 // of the sample
	overlay  string
	written  map[string]string // the file of the module, by the name of its changed copy
	sources  []*source
	changes  []*change // by number; number 0 is no change
	programs map[string]*program
	log      io.Writer
}

// program is the test binary of a package.
type program struct {
	dir   string
	bin   string
	units []*unit
}

// unit is one test, or several that run together.
type unit struct {
	name    string        // names with | between them
	cpu     time.Duration // processor time without a change
	wall    time.Duration
	reached map[int]bool // the changes that it passes
}

// prepare writes the changed code. It leaves out the changes that do not
// compile.
func (l *lab) prepare() error {
	for {
		if err := l.write(); err != nil {
			return err
		}
		args := []string{"build", "-gcflags=-e", "-overlay", l.overlay}
		for _, s := range l.sources {
			args = append(args, "./"+s.dir)
		}
		_, err := goCommand(l.ctx, args...)
		if err == nil {
			return nil
		}
		if l.ctx.Err() != nil {
			return err
		}
		if !l.leaveOut(err.Error()) {
			return err
		}
	}
}

var compileError = regexp.MustCompile(`(?m)^(?:\./)?([^\s:]+\.go):(\d+)(?::\d+)?: `)

// leaveOut removes the changes on the lines of which the compiler complains.
func (l *lab) leaveOut(output string) bool {
	removed := false
	for _, m := range compileError.FindAllStringSubmatch(output, -1) {
		line, _ := strconv.Atoi(m[2]) // the pattern has digits only
		for i, c := range l.changes {
			if c != nil && l.written[filepath.Base(m[1])] == c.file && c.line <= line && line <= c.line+strings.Count(c.old, "\n") {
				l.changes[i], removed = nil, true
			}
		}
	}
	return removed
}

func (l *lab) write() error {
	replace := map[string]string{}
	for i, s := range l.sources {
		for path, src := range s.files {
			var here []*change
			for n, c := range l.changes {
				if c != nil && c.file == path {
					c.number = n
					here = append(here, c)
				}
			}
			if len(here) == 0 {
				continue
			}
			name := fmt.Sprintf("%d_%s", i, filepath.Base(path))
			l.written[name] = path
			replace[filepath.Join(l.root, path)] = filepath.Join(l.tmp, name)
			if err := os.WriteFile(filepath.Join(l.tmp, name), []byte(apply(name, src, here)), 0o600); err != nil {
				return err
			}
		}
		name := filepath.Join(l.tmp, fmt.Sprintf("%d_helpers.go", i))
		if err := os.WriteFile(name, fmt.Appendf(nil, helpers, s.name, len(l.changes)+1), 0o600); err != nil {
			return err
		}
		replace[filepath.Join(l.root, s.dir, "mutant_helpers.go")] = name
	}
	data, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return err
	}
	l.overlay = filepath.Join(l.tmp, "overlay.json")
	return os.WriteFile(l.overlay, data, 0o600)
}

// program builds the test binary of a package and runs its tests without a
// change, which tells how long they take and which changes they pass. Each test is a
// unit of its own; with whole set all are one, if none of them fails. It returns nil
// for a package without tests. Tests that fail without a change are printed and left out.
func (l *lab) program(dir string, whole bool) (*program, error) {
	if p, ok := l.programs[dir]; ok {
		return p, nil
	}
	p := &program{dir: filepath.Join(l.root, dir), bin: filepath.Join(l.tmp, strings.ReplaceAll(dir, "/", "_")+".test")}
	if _, err := goCommand(l.ctx, "test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay", l.overlay, "-o", p.bin, "./"+dir); err != nil {
		return nil, err
	}
	if _, err := os.Stat(p.bin); errors.Is(err, os.ErrNotExist) {
		l.programs[dir] = nil
		return nil, nil //nolint:nilnil // documented: a package without tests has no program
	}
	out, err := l.exec(p, 0, "", time.Minute, "-test.list", "^(Test|Example|Fuzz)")
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", dir, err, out.text)
	}
	l.programs[dir] = p
	names := strings.Fields(string(out.text))
	if all := strings.Join(names, "|"); whole && all != "" {
		if passed, err := l.measure(p, all); err != nil || passed {
			return p, err
		}
	}
	for _, name := range names {
		passed, err := l.measure(p, name)
		if err != nil {
			return nil, err
		}
		if !passed {
			fmt.Fprintf(l.log, "not used: %s %s fails without a change\n", dir, name)
		}
	}
	slices.SortStableFunc(p.units, func(a, b *unit) int { return cmp.Compare(a.cpu, b.cpu) })
	return p, nil
}

// measure runs the tests of a name without a change. If they pass, and pass a change, they
// become a unit of the program.
func (l *lab) measure(p *program, name string) (passed bool, err error) {
	trace := filepath.Join(l.tmp, "trace")
	if err := os.WriteFile(trace, nil, 0o600); err != nil {
		return false, err
	}
	u := &unit{name: name, reached: map[int]bool{}}
	out, err := l.exec(p, 0, trace, 20*time.Minute, testArgs([]*unit{u})...)
	if l.ctx.Err() != nil {
		return false, l.ctx.Err()
	}
	if err != nil {
		return false, nil //nolint:nilerr // a test that fails is not used
	}
	u.cpu, u.wall = out.cpu, out.wall
	data, err := os.ReadFile(trace)
	if err != nil {
		return false, err
	}
	for _, s := range strings.Fields(string(data)) {
		if n, err := strconv.Atoi(s); err == nil {
			u.reached[n] = true
		}
	}
	if len(u.reached) > 0 {
		p.units = append(p.units, u)
	}
	return true, nil
}

func testArgs(units []*unit) []string {
	var names []string
	for _, u := range units {
		names = append(names, u.name)
	}
	return []string{"-test.short", "-test.failfast", "-test.run", "^(" + strings.Join(names, "|") + ")$"}
}

// judge runs the tests of p that pass a change, the cheap ones first, and
// returns the name of the one that notices it.
func (l *lab) judge(p *program, c *change) (by string, err error) {
	var units []*unit
	for _, u := range p.units {
		if u.reached[c.number] {
			units = append(units, u)
		}
	}
	// Each run takes about four times the processor time of the one before.
	for budget := 500 * time.Millisecond; len(units) > 0; budget *= 4 {
		n, sum, limit := 0, time.Duration(0), patience
		for n < len(units) && (n == 0 || sum+units[n].cpu <= budget) {
			sum += units[n].cpu
			limit += slack * units[n].wall
			n++
		}
		out, err := l.exec(p, c.number, "", limit, testArgs(units[:n])...)
		if l.ctx.Err() != nil {
			return "", l.ctx.Err()
		}
		if err != nil {
			// A test that fails only sometimes has not noticed anything, nor has one that a busy
			// machine kept waiting.
			if out, err = l.exec(p, c.number, "", 2*limit, testArgs(units[:n])...); l.ctx.Err() != nil {
				return "", l.ctx.Err()
			}
			switch {
			case err != nil && out.late:
				return "the time limit of " + filepath.Base(p.dir), nil
			case err != nil:
				return failed(out.text, filepath.Base(p.dir)), nil //nolint:nilerr // a test that fails has caught the change
			}
		}
		units = units[n:]
	}
	return "", nil
}

var failure = regexp.MustCompile(`(?m)^--- FAIL: (\S+)`)

func failed(out []byte, otherwise string) string {
	if m := failure.FindSubmatch(out); m != nil {
		return string(m[1])
	}
	return "a crash of " + otherwise
}

type result struct {
	text      []byte
	cpu, wall time.Duration
	late      bool
}

// exec runs a test program in the folder of its package and ends it, and all
// that it started, at the limit.
func (l *lab) exec(p *program, change int, trace string, limit time.Duration, args ...string) (result, error) {
	ctx, stop := context.WithTimeout(l.ctx, limit)
	defer stop()
	tmp, err := os.MkdirTemp(l.tmp, "run")
	if err != nil {
		return result{}, err
	}
	defer func() { _ = os.RemoveAll(tmp) }() // it is a temporary folder
	if err := os.WriteFile(filepath.Join(tmp, "mutant"), fmt.Appendf(nil, "%d %s", change, trace), 0o600); err != nil {
		return result{}, err
	}
	cmd := exec.CommandContext(ctx, p.bin, args...)
	cmd.Dir = p.dir
	// The property tests draw the same in each run, and leave no file of failures in the
	// working tree, from which later runs would learn.
	cmd.Env = append(os.Environ(), "TMPDIR="+tmp, "RAPID_NOFAILFILE=true", "RAPID_SEED="+strconv.FormatUint(l.seed, 10))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 10 * time.Second
	begin := time.Now()
	out, err := cmd.CombinedOutput()
	r := result{text: out, wall: time.Since(begin), late: ctx.Err() != nil}
	if cmd.ProcessState != nil {
		r.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	return r, err
}

func goCommand(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("go %s: %w\n%s", args[0], err, stderr.Bytes())
	}
	return stdout.Bytes(), nil
}

// limitMemory bounds the data segment of this process and of those it starts.
func limitMemory() error {
	const rlimitData = 2
	return syscall.Setrlimit(rlimitData, &syscall.Rlimit{Cur: memory, Max: memory})
}
