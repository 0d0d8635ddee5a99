package golden

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
)

// Trace compares the texts of the steps of a long test with a file. The file has a line
// a step: the step's name and a digest of its text. A difference is reported for the
// first step that differs, with the text that the step has now. The flag -update writes
// the file.
//
// A trace covers much for its size. It shows that a result has changed, and does not say
// which of the two is right: rules have stories and tests of their own.
func Trace(t *testing.T, name string, run func(step func(name, text string))) {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil && !*update {
		t.Fatal(err)
	}
	want := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	var got []string
	differs := false
	run(func(step, text string) {
		sum := sha256.Sum256([]byte(text))
		line := step + " " + hex.EncodeToString(sum[:4])
		if n := len(got); !*update && !differs && (n >= len(want) || want[n] != line) {
			differs = true
			t.Errorf("%s:%d: want step %q, got %q (run with -update to accept):\n%s", name, n+1, at(want, n), line, text)
		}
		got = append(got, line)
	})
	if *update && !t.Failed() {
		if err := os.WriteFile(name, fmt.Appendln(nil, strings.Join(got, "\n")), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !differs && len(got) < len(want) {
		t.Errorf("%s:%d: %q and the steps behind it are missing", name, len(got)+1, want[len(got)])
	}
}

// Updating reports whether the flag -update is set, for tests that write files of a form of
// their own.
func Updating() bool { return *update }

func at(lines []string, n int) string {
	if n < len(lines) {
		return lines[n]
	}
	return ""
}

// Dice draws numbers that depend on its seed alone: not on the run, the machine or the
// version of Go.
type Dice struct{ source *rand.PCG }

// NewDice returns dice for a seed.
func NewDice(seed uint64) *Dice { return &Dice{rand.NewPCG(seed, 0)} }

// N returns a number of at least 0 and less than n.
func (d *Dice) N(n int) int { return int(d.source.Uint64() % uint64(n)) }

// Once is true once in n times.
func (d *Dice) Once(n int) bool { return d.N(n) == 0 }

// Pick returns one of some values.
func Pick[T any](d *Dice, values ...T) T { return values[d.N(len(values))] }
