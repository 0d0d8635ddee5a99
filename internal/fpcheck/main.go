// Command fpcheck finds floating-point instructions whose results differ between
// kinds of machine.
//
//	go run ./internal/fpcheck [package...]
//
// The states of a session, their digests and the frames drawn from them are the
// same on every machine. Two things break that, and a test on one machine detects
// neither. A compiler may fuse a product with the sum it goes into, which rounds
// once instead of twice: Go does on arm64, ppc64, riscv64 and s390x, and not on
// amd64. And functions of package math may be assembly on one machine and Go
// on another, which differ in the last bit.
//
// So the command has packages compiled for arm64, those that internal/layers
// grades as pure or timeless unless others are named, and reads the
// instructions: a fused one in a function of theirs is a finding, inlined code
// of the standard library included, and so is a use of package math beyond the
// functions that IEEE 754 fixes to the last bit. Other code of the standard
// library is believed: what the packages ask of it is exact.
//
// A product that is added to something is kept apart by a conversion,
// float64(a*b) + c, and so is a quotient by a constant, which the compiler makes
// a product of: c - float64(a/2).
//
// It prints one finding a line and exits with code 1 if there are any, with 2 if the
// check itself failed.
package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/sajou-dev/sajou-go/internal/layers"
)

// shapeless is the prefix of the functions of a library whose arithmetic shapes a
// tree, and with it the order of its results. Nothing depends on that order: package
// agents compares distances of its own and sorts.
const shapeless = "github.com/tidwall/rtree."

func main() {
	findings, err := run(context.Background(), os.Args[1:])
	if err == nil {
		err = show(os.Stdout, findings)
	}
	switch {
	case err != nil:
		_, _ = fmt.Fprintln(os.Stderr, "fpcheck:", err)
		os.Exit(2)
	case len(findings) > 0:
		os.Exit(1)
	}
}

func show(w io.Writer, findings []string) error {
	out := bufio.NewWriter(w)
	for _, f := range findings {
		fmt.Fprintln(out, f)
	}
	return out.Flush()
}

// run compiles packages of the module for arm64 and returns the findings.
func run(ctx context.Context, packages []string) ([]string, error) {
	root, err := output(ctx, "", "list", "-m", "-f", "{{.Dir}}")
	if err != nil {
		return nil, err
	}
	dir := strings.TrimSpace(string(root))
	if len(packages) == 0 {
		for _, dir := range layers.Deterministic() {
			packages = append(packages, "./"+dir)
		}
	} else {
		dir = "" // relative to the working directory of the caller
	}
	list, err := output(ctx, dir, append([]string{"list"}, packages...)...)
	if err != nil {
		return nil, err
	}
	args := []string{"build", "-trimpath=false"} // the listing names files by their paths, whatever GOFLAGS says
	for path := range strings.FieldsSeq(string(list)) {
		args = append(args, "-gcflags="+path+"=-S")
	}
	asm, err := output(ctx, dir, append(args, packages...)...)
	if err != nil {
		// Again without the listing, which would bury the error.
		if _, plain := output(ctx, dir, append([]string{"build"}, packages...)...); plain != nil {
			err = plain
		}
		return nil, err
	}
	return inspect(asm, strings.TrimSpace(string(root)))
}

// output runs a go command for arm64 and returns its output, to which the compiler
// writes its listing. The compiled files are not kept.
func output(ctx context.Context, dir string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=arm64", "CGO_ENABLED=0")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		text := out.Bytes()
		return nil, fmt.Errorf("go %s: %w\n%s", args[0], err, text[max(0, len(text)-2000):])
	}
	return out.Bytes(), nil
}

// What a listing consists of: the beginning of a symbol, one instruction with its
// place, and a reference from data, such as a variable that holds a function.
var (
	symbol      = regexp.MustCompile(`^(\S.*?) (S[A-Z]+) `)
	instruction = regexp.MustCompile(`^\t0x[0-9a-f]+ [0-9]+ \((.*)\)\t([A-Z0-9.]+)(?:\t(.*))?$`)
	reference   = regexp.MustCompile(`^\trel [0-9]+\+[0-9]+ t=R_ADDR (.*)$`)
	fused       = regexp.MustCompile(`^(FN?M(ADD|SUB)[SDH]|VFML[AS])$`)
	mathematics = regexp.MustCompile(`(?:^|[\s$,])(math(?:/cmplx)?)\.(\w+)(?:·f|<[^>]*>)*(?:\(SB\)|\+0)`)
)

// exact are the functions of package math whose results are fixed to the last
// bit, or that only look at bits. The compiler may call them by the names of
// their parts.
var exact = []string{
	"abs", "ceil", "copysign", "float32bits", "float32frombits", "float64bits", "float64frombits", "floor", "frexp", "inf",
	"isinf", "isnan", "ldexp", "max", "min", "mod", "modf", "nan", "nextafter", "normalize", "remainder", "round",
	"roundtoeven", "signbit", "sqrt", "trunc",
}

// inspect reads a listing of the compiler. For code that is inlined in many functions
// it names one of them.
func inspect(asm []byte, root string) ([]string, error) {
	found := map[string]string{} // what, by place, to where
	note := func(what, where string) {
		if strings.HasPrefix(where, shapeless) {
			return
		}
		if w, ok := found[what]; !ok || where < w {
			found[what] = where
		}
	}
	name, functions := "", 0
	lines := bufio.NewScanner(bytes.NewReader(asm))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		if m := symbol.FindStringSubmatch(line); m != nil {
			name = m[1]
			if m[2] == "STEXT" {
				functions++
			}
		} else if m := instruction.FindStringSubmatch(line); m != nil {
			if fused.MatchString(m[2]) {
				note(fmt.Sprintf("%s: a product is fused with a sum (%s)", short(m[1], root), m[2]), name)
			}
			if f := inexact(m[3]); f != "" {
				note(fmt.Sprintf("%s: %s differs between machines", short(m[1], root), f), name)
			}
		} else if m := reference.FindStringSubmatch(line); m != nil && !strings.HasPrefix(name, "math.") {
			if f := inexact(m[1]); f != "" {
				note(fmt.Sprintf("%s: %s differs between machines", name, f), name)
			}
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read the compiler's listing: %w", err)
	}
	if functions == 0 {
		return nil, fmt.Errorf("the compiler listed no function in %d bytes", len(asm))
	}
	var findings []string
	for what, where := range found {
		findings = append(findings, what+", in "+where)
	}
	slices.Sort(findings)
	return findings, nil
}

// short returns a place relative to the root of the module.
func short(place, root string) string {
	if rel, err := filepath.Rel(root, place); err == nil && !strings.HasPrefix(rel, "..") {
		return filepath.ToSlash(rel)
	}
	return place
}

// inexact returns the function of package math that operands name, if it is not
// one of the exact ones.
func inexact(operands string) string {
	m := mathematics.FindStringSubmatch(operands)
	if m == nil || m[1] == "math" && slices.Contains(exact, strings.TrimPrefix(strings.ToLower(m[2]), "arch")) {
		return ""
	}
	return m[1] + "." + m[2]
}
