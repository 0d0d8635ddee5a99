package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

// library is a place in Go's own files.
var library = regexp.MustCompile(`^/.*/src/math/\w+\.go:\d+: `)

// What can differ is found, by line and function, and what cannot is not.
func TestFindsWhatDiffers(t *testing.T) {
	got, err := run(t.Context(), []string{"./testdata/fused"})
	require.NoError(t, err)
	for i, f := range got {
		f = strings.ReplaceAll(f, "github.com/sajou-dev/sajou-go/internal/fpcheck/testdata/", "")
		f = library.ReplaceAllString(f, "")
		got[i] = strings.TrimPrefix(f, "internal/fpcheck/testdata/fused/")
	}
	slices.Sort(got)
	want := []string{
		"fused.Function: math.Hypot differs between machines, in fused.Function",
		"fused.go:10: a product is fused with a sum (FMADDD), in fused.Sum",
		"fused.go:13: a product is fused with a sum (FMSUBS), in fused.Difference",
		"fused.go:17: a product is fused with a sum (FMSUBD), in fused.Half",
		"fused.go:21: a product is fused with a sum (FNMADDD), in fused.generic[float64]",
		"math.archExp differs between machines, in fused.Exp",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
}

// A listing that is none is not taken for one without findings.
func TestInspectsListingsOnly(t *testing.T) {
	for _, text := range []string{"", "go: downloading\n", "\t0x0000 00000 (x.go:1)\tRET\n"} {
		if findings, err := inspect([]byte(text), "/"); err == nil {
			t.Errorf("%q: findings %q and no error", text, findings)
		}
	}
	if _, err := run(t.Context(), []string{"./testdata/none"}); err == nil {
		t.Error("a package that is not there: no error")
	}
}
