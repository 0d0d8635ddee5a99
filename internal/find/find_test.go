package find_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sajou-dev/sajou-go/internal/find"
)

// places returns the offsets that Each must yield.
func places(text, part string) (all []int) {
	for i := 0; i+len(part) <= len(text); i++ {
		if text[i:i+len(part)] == part {
			all = append(all, i)
		}
	}
	return all
}

func check(t *testing.T, text, part string) {
	t.Helper()
	if got, want := find.Contains(text, part), strings.Contains(text, part); got != want {
		t.Errorf("Contains(%.80q, %.80q) = %v", text, part, got)
	}
	if got, want := slices.Collect(find.Each(text, part)), places(text, part); !slices.Equal(got, want) {
		t.Errorf("Each(%.80q, %.80q) = %v, want %v", text, part, got, want)
	}
}

// TestFind compares with package strings, on texts that repeat themselves.
func TestFind(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	word := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = "aab"[r.IntN(3)]
		}
		return string(b)
	}
	for range 2000 {
		text := strings.Repeat(word(1+r.IntN(90)), r.IntN(6)) + word(r.IntN(200))
		part := word(r.IntN(4))
		if len(text) > 0 && r.IntN(2) == 0 {
			from := r.IntN(len(text))
			part = text[from : from+r.IntN(len(text)-from)]
		}
		check(t, text, part)
	}
	long := strings.Repeat("x", 1<<16)
	for _, at := range []int{0, 1<<16 - 70, 1<<16 - 3, 1 << 16, 1<<16 + 1, 1<<17 - 2} {
		for _, part := range []string{"abc", strings.Repeat("abc", 40)} {
			text := (long + long)[:at] + part + long
			if !find.Contains(text, part) || find.Contains(text, part+"y") || find.Contains(text[1:len(text)-len(long)-1], part[:len(part)-1]+"y") {
				t.Errorf("at %d, %d bytes: it is not found, or what is not there is", at, len(part))
			}
		}
	}
}

// TestAttackWork shows that the work is linear: the search reads at most the length of
// the text plus twice that of the part, in small pieces.
func TestAttackWork(t *testing.T) {
	text := strings.Repeat("a", 1<<20)
	for _, part := range []string{strings.Repeat("a", 1<<19) + "b", "b" + strings.Repeat("a", 1<<19), strings.Repeat("a", 63) + "b", strings.Repeat("ab", 1000)} {
		read, pieces := 0, 0
		found, done := find.Search(text, part, func(n int) bool {
			if n > 1<<16+64 {
				t.Errorf("a piece of %d bytes", n)
			}
			read += n
			pieces++
			return true
		})
		if found || !done || read > len(text)+2*len(part)+64*pieces {
			t.Errorf("%.20q: found %v, done %v, %d bytes read", part, found, done, read)
		}
		for stop := range pieces {
			left := stop
			if _, done := find.Search(text, part, func(int) bool { left--; return left >= 0 }); done {
				t.Errorf("%.20q: piece %d was refused and it went on", part, stop)
			}
		}
	}
}

// FuzzFind compares with package strings.
func FuzzFind(f *testing.F) {
	f.Add("aabaab", "ab")
	f.Add(strings.Repeat("ab", 100), strings.Repeat("ab", 40))
	f.Fuzz(func(t *testing.T, text, part string) { check(t, text, part) })
}
