package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

const before = `package p

type seq uint64

func f(a []int, n seq, err error) (m seq) {
	for i := 0; i < len(a); i++ {
		if err != nil {
			continue
		}
		if i := a[i] - 1; i > 3 && n == 7 ||
			i < 2 {
			m += n
		}
	}
	b := make([]int, 0, 5)
	defer print(b)
	switch {
	case n-m > 1<<4:
		print(n << 2)
	}
	return m
}
`

const after = `package p

type seq uint64

func f(a []int, n seq, err error) (m seq) {
	for i := mutantNumber[int](mutant(1), 0); ((mutant(2) && ((i) <= (len(a))) || !mutant(2) && ((i) < (len(a))))) != mutant(3); i++ {
		if !mutant(4) && (err != nil) {
			if !mutant(5) { continue }
		}
		if i := mutantSub(mutant(6), a[i], mutantNumber[int](mutant(7), 1)); ((mutant(8) && (((mutant(9) && (((mutant(10) && ((i) >= (mutantNumber[int](mutant(11), 3))) || !mutant(10) && ((i) > (mutantNumber[int](mutant(11), 3))))) || (n == mutantNumber[seq](mutant(12), 7))) || !mutant(9) && (((mutant(10) && ((i) >= (mutantNumber[int](mutant(11), 3))) || !mutant(10) && ((i) > (mutantNumber[int](mutant(11), 3))))) && (n == mutantNumber[seq](mutant(12), 7))))) && ((mutant(13) && ((i) <= (mutantNumber[int](mutant(14), 2))) || !mutant(13) && ((i) < (mutantNumber[int](mutant(14), 2)))))) || !mutant(8) && (((mutant(9) && (((mutant(10) && ((i) >= (mutantNumber[int](mutant(11), 3))) || !mutant(10) && ((i) > (mutantNumber[int](mutant(11), 3))))) || (n == mutantNumber[seq](mutant(12), 7))) || !mutant(9) && (((mutant(10) && ((i) >= (mutantNumber[int](mutant(11), 3))) || !mutant(10) && ((i) > (mutantNumber[int](mutant(11), 3))))) && (n == mutantNumber[seq](mutant(12), 7))))) || ((mutant(13) && ((i) <= (mutantNumber[int](mutant(14), 2))) || !mutant(13) && ((i) < (mutantNumber[int](mutant(14), 2)))))))/*line p.go:11*/) != mutant(15) {
			if !mutant(16) { m += n }
		}
	}
	b := make([]int, mutantNumber[int](mutant(17), 0), 5)
	if !mutant(18) { defer print(b) }
	switch {
	case ((mutant(19) && ((mutantSub(mutant(20), n, m)) >= (mutantNumber[seq](mutant(21), 1)<<mutantNumber[seq](mutant(22), 4))) || !mutant(19) && ((mutantSub(mutant(20), n, m)) > (mutantNumber[seq](mutant(21), 1)<<mutantNumber[seq](mutant(22), 4))))) != mutant(23):
		if !mutant(24) { print(mutantShl(mutant(25), n, mutantNumber[int](mutant(26), 2))) }
	}
	return m
}
`

// All changes of a file stand in it at once, each under its number, and the lines
// stay where they were.
func TestApply(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "p.go")
	require.NoError(t, os.WriteFile(path, []byte(before), 0o600))
	s, err := load(dir, []string{"p.go"}, nil)
	require.NoError(t, err)
	// The numbers are those of the places, so that the text is readable.
	numbered := map[string]string{}
	for n, c := range s.changes {
		c.number = 1000 + n
	}
	got := apply("p.go", []byte(before), s.changes)
	for at := 0; ; {
		i := strings.Index(got[at:], "mutant(1")
		if i < 0 {
			break
		}
		at += i + 1
		long := "mutant(" + got[at+6:at+10] + ")"
		if numbered[long] == "" {
			numbered[long] = fmt.Sprintf("mutant(%d)", len(numbered)+1)
		}
	}
	for long, short := range numbered {
		got = strings.ReplaceAll(got, long, short)
	}
	if diff := cmp.Diff(after, got); diff != "" {
		t.Error(diff)
	}
}
