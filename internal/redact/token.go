package redact

import (
	"regexp"
	"strings"
)

var privateKey = look{
	mark: Token,
	re:   regexp.MustCompile(`(?s)-----BEGIN [A-Z ]*PRIVATE KEY[A-Z ]*-----.*?(?:-----END [A-Z ]*PRIVATE KEY[A-Z ]*-----|\z)`),
}

// bearer is what follows the name of a scheme. Prose may follow too ("bearer of
// news"), so it must look a little like a token.
var bearer = look{
	mark: Token,
	re:   regexp.MustCompile(`(?i)\b(?:bearer|basic) +([A-Za-z0-9._~+/\-]{6,}=*)`),
	is: func(s string, i, j int) bool {
		return j-i >= 20 || strings.ContainsFunc(s[i:j], func(c rune) bool { return '0' <= c && c <= '9' })
	},
}

// shapes are looks that somebody gave to their tokens so that they are known.
var shapes = look{
	mark: Token,
	re: regexp.MustCompile(`\b(?:` + strings.Join([]string{
		`sk-[A-Za-z0-9_\-]{16,}`,
		`[prs]k_(?:live|test)_[A-Za-z0-9]{10,}`,
		`gh[oprsu]_[A-Za-z0-9]{20,}`,
		`github_pat_[A-Za-z0-9_]{20,}`,
		`gl[a-z]{2,4}-[A-Za-z0-9_.\-]{20,}`,
		`xox[a-z]-[A-Za-z0-9\-]{10,}`,
		`xapp-[A-Za-z0-9\-]{10,}`,
		`(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b`,
		`AIza[A-Za-z0-9_\-]{30,}`,
		`ya29\.[A-Za-z0-9_\-]{20,}`,
		`GOCSPX-[A-Za-z0-9_\-]{20,}`,
		`(?:hf|gsk|npm|r8|whsec|shpat|shpss)_[A-Za-z0-9+/]{20,}=*`,
		`(?:xai|pplx|tvly|pypi)-[A-Za-z0-9_\-]{20,}`,
		`do[opr]_v1_[a-f0-9]{32,}`,
		`SG\.[A-Za-z0-9_\-]{16,}\.[A-Za-z0-9_\-]{16,}`,
		`AGE-SECRET-KEY-1[A-Z0-9]{20,}`,
		`eyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{2,}(?:\.[A-Za-z0-9_\-]*){1,3}`, // JWT
	}, "|") + `)`),
	is: func(s string, i, j int) bool {
		// A name may begin alike: sk-learn-for-beginners.
		return strings.ContainsFunc(s[i+4:j], func(c rune) bool { return '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' })
	},
}

// minOpaque is the least length of what is taken for a token because it has no
// order. Ids that people use are shorter: 21 (nanoid), 26 (ULID), 27 (KSUID).
const minOpaque = 32

// opaque replaces the runs of letters, digits and "+/_-" that no person made.
func opaque(s string) string {
	var b strings.Builder
	done := 0
	for i := 0; i < len(s); {
		if !isOpaque(s[i]) {
			i++
			continue
		}
		j := i
		for j < len(s) && isOpaque(s[j]) {
			j++
		}
		if j-i < minOpaque {
			i = j
			continue
		}
		from, to := i, j
		if !mixed(s[from:to]) {
			from, to = disordered(s, i, j)
		}
		if from < to {
			for to < len(s) && to-j < 2 && s[to] == '=' {
				to++
			}
			b.WriteString(s[done:from])
			b.WriteString(Token)
			done = to
		}
		i = max(to, j)
	}
	if done == 0 {
		return s
	}
	b.WriteString(s[done:])
	return b.String()
}

func isOpaque(c byte) bool { return isWord(c) || c == '+' || c == '/' || c == '-' }

// mixed reports whether a run has small and capital letters and digits as only
// chance mixes them: by chance one letter in six stands among three or more small
// ones, in words more than half.
func mixed(run string) bool {
	var lower, upper, digits, inWords, word int
	for i := range len(run) {
		c := run[i]
		if isLower(c) {
			lower++
			if word++; word == 3 {
				inWords += 3
			} else if word > 3 {
				inWords++
			}
			continue
		}
		word = 0
		if isUpper(c) {
			upper++
		} else if isDigit(c) {
			digits++
		}
	}
	n, letters := lower+upper+digits, lower+upper
	return n >= minOpaque && digits > 0 && 8*upper >= letters && 8*lower >= letters && 100*inWords <= 45*n
}

// disordered returns the first part of the run s[i:j], without "+/_-", that has letters
// of one case and digits in disorder, and is not as long as a digest or an id if
// it is hexadecimal. It reaches to the run's end if there is one.
func disordered(s string, i, j int) (from, to int) {
	for start := i; start < j; start++ {
		end := start
		var lower, upper, digits, hex, turns int
		for ; end < j && isWord(s[end]) && s[end] != '_'; end++ {
			c := s[end]
			if end > start && isDigit(c) != isDigit(s[end-1]) {
				turns++
			}
			switch {
			case isDigit(c):
				digits++
				hex++
			case isLower(c):
				lower++
			default:
				upper++
			}
			if 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F' {
				hex++
			}
		}
		n := end - start
		switch {
		case n < minOpaque || lower > 0 && upper > 0 || digits < 4 || lower+upper < 4 || 5*turns < n:
		case hex == n && (n == 32 || n == 40 || n == 64 || n == 96 || n == 128):
		default:
			return start, j
		}
		start = end
	}
	return i, i
}
