package versions

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The natural order is a total one, in which numbers count by their value.
func TestNaturalProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfN(rapid.StringMatching(`[a0-9.]{0,6}`), 3, 3).Draw(t, "names")
		slices.SortFunc(names, natural)
		for i, a := range names {
			for j, b := range names {
				c := natural(a, b)
				require.Equal(t, -c, natural(b, a), "%q %q", a, b)
				require.Equal(t, a == b, c == 0, "%q %q", a, b)
				require.False(t, i < j && c > 0, "%q is not in front of %q: %q", a, b, names)
			}
		}
	})
	for _, c := range [][2]string{{"v2", "v10"}, {"v2.9", "v2.10"}, {"v2", "v2a"}, {"a9", "b1"}, {"9", "10"}, {"99999999999999999998", "99999999999999999999"}, {"1", "a"}, {"", "0"}} {
		assert.Negative(t, natural(c[0], c[1]), "%q", c)
	}
}

// What git writes is read without a panic, and only files of definitions are taken.
func FuzzGit(f *testing.F) {
	f.Add([]byte("100644 blob 12ab\tv2.json\x00040000 tree 34cd\tbelow\x00100644 blob 56ef\tv10.yaml\x00"))
	f.Add([]byte("12ab\x002020-01-02\x00Ann\x00one\x0034cd\x002020-01-03\x00Ben\x00\x00"))
	f.Fuzz(func(t *testing.T, out []byte) {
		for _, o := range parseTree(out) {
			require.True(t, declares(o.name))
			require.NotEmpty(t, o.hash)
		}
		all, err := parseLog(out)
		if err == nil && len(out) > 0 {
			require.Len(t, all, (strings.Count(strings.TrimSuffix(string(out), "\x00"), "\x00")+1)/4)
		}
	})
}

func TestParse(t *testing.T) {
	assert.Equal(t, []object{{"v2.json", "12ab"}, {"v10.yaml", "56ef"}},
		parseTree([]byte("100644 blob 56ef\tv10.yaml\x00040000 tree 34cd\tbelow.json\x00100644 blob 12ab\tv2.json\x00100644 blob 1\t.h.json\x00100644 blob 2\tx.md\x00")))
	all, err := parseLog([]byte("12ab\x002020-01-02\x00Ann\x00one\x0034cd\x002020-01-03\x00Ben\x00\x00"))
	require.NoError(t, err)
	require.Len(t, all, 2)
	assert.Equal(t, "2020-01-03 Ben: ", all[1].Title)
	_, err = parseLog([]byte("12ab\x00"))
	require.Error(t, err)
}
