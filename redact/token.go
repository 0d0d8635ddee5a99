package redact

import (
	"strings"
)

var privateKey = look{
	kind: kindPrivateKey,
	re:   express(`(?s)-{4,5} ?BEGIN[ +][A-Z0-9 +]*PRIVATE[ +]KEY[A-Z +]*-{4,5}.*?(?:-{4,5} ?END[ +][A-Z0-9 +]*PRIVATE[ +]KEY[A-Z +]*-{4,5}|\z)`),
}

// bearer matches the credentials behind the name of a scheme. Prose may follow too
// ("bearer of news"), so a match must resemble a token.
var bearer = look{
	kind:  kindBearer,
	words: []string{"bearer", "basic"},
	re:    express(`(?i)\b(?:bearer|basic) +([A-Za-z0-9._~+/\-]{6,}=*)`),
	is: func(s string, i, j int) bool {
		return j-i >= 20 || strings.ContainsFunc(s[i:j], func(c rune) bool { return '0' <= c && c <= '9' })
	},
}

// shapes are the published forms of issuers' tokens. A match without any of the words
// has 45 characters or more.
var shapes = look{
	kind: kindToken,
	words: strings.Fields(`sk- k_live_ k_test_ gh gl xox xapp- AKIA ASIA ABIA ACCA AIza ya29. GOCSPX- hf_ gsk_ npm_ r8_ whsec_ shp glsa_ glc_ sbp_ figd_ ntn_ secret_
		sntry pul rdme_ lin_ dckr_pat_ pscale_ tfp_ AC SK mfa. key- -us dapi :AA sq0 PMAK NRAK CFPAT ATATT3x ATBB hvs. hvb. lsv2_ bkua_ e2b_ dtn_ crsr_ fw_ vc fc-
		ak- as- pat access_token$ k.eyJ EAA 1//0 hooks.slack.com discord xai- pplx- tvly- pypi- o_v1_ r_v1_ p_v1_ SG. AGE-SECRET-KEY-1 eyJ`),
	re: express(`\b(?:` + strings.Join([]string{
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
		`(?:hf|gsk|npm|r8|whsec|shpat|shpss|shpca|shppa|glsa|glc|sbp|figd|ntn|secret|sntrys|pul|rdme)_[A-Za-z0-9+/_]{20,}=*`,
		`(?:lin_api|dckr_pat|lin_oauth|pscale_tkn|pscale_pw|tfp)_[A-Za-z0-9_\-.]{16,}`,
		`(?:AC|SK)[0-9a-f]{32}\b`, // Twilio
		`[MNO][A-Za-z0-9_\-]{22,27}\.[A-Za-z0-9_\-]{6}\.[A-Za-z0-9_\-]{27,}`, // Discord
		`mfa\.[A-Za-z0-9_\-]{60,}`,
		`key-[0-9a-f]{32}\b`, `[0-9a-f]{32}-us\d{1,2}\b`, `dapi[0-9a-f]{32}`, `\d{8,10}:AA[A-Za-z0-9_\-]{30,}`,
		`sq0[a-z]{3}-[A-Za-z0-9_\-]{20,}`, `(?:PMAK|NRAK|CFPAT|ATATT3x|ATBB)[A-Za-z0-9_\-=]{20,}`, `hv[sb]\.[A-Za-z0-9_\-]{20,}`,
		`lsv2_[a-z]{2}_[0-9a-f_]{32,}`, `(?:sntryu|bkua|e2b|dtn|crsr)_[0-9a-f]{40,}`, `(?:fw|vc[a-z])_[A-Za-z0-9]{24,}`, `pul-[0-9a-f]{40}`, `fc-[0-9a-f]{32}\b`,
		`a[ks]-[A-Za-z0-9]{22}\b`, `pat-[a-z]{2}\d-[0-9a-f]{8}-[0-9a-f\-]{27}`, `\d/\d{10,}:[0-9a-f]{32}`, `access_token\$[a-z]+\$[0-9a-z]{8,}\$[0-9a-f]{32}`,
		`[ps]k\.eyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{16,}`, // Mapbox
		`pat[A-Za-z0-9]{14}\.[0-9a-f]{60,}`, `EAA[A-Za-z0-9]{40,}`, `1//0[A-Za-z0-9_\-]{30,}`,
		`hooks\.slack\.com/services/[A-Za-z0-9/]{20,}`, `discord(?:app)?\.com/api/webhooks/\d+/[A-Za-z0-9_\-]{20,}`,
		`(?:xai|pplx|tvly|pypi)-[A-Za-z0-9_\-]{20,}`,
		`do[opr]_v1_[a-f0-9]{32,}`,
		`SG\.[A-Za-z0-9_\-]{16,}\.[A-Za-z0-9_\-]{16,}`,
		`AGE-SECRET-KEY-1[A-Z0-9]{20,}`,
		`eyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{2,}(?:\.[A-Za-z0-9_\-]*){1,3}`, // JWT
	}, "|") + `)`),
	is: func(s string, i, j int) bool {
		// A name may begin in the same way: sk-learn-for-beginners.
		return strings.ContainsFunc(s[i+4:j], func(c rune) bool { return '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' })
	},
}

// minOpaque is the minimum length of a token that is recognized by its disorder alone.
// Common ids are shorter: 21 (nanoid), 26 (ULID), 27 (KSUID).
const minOpaque = 32

// opaque replaces the runs of letters, digits and "+/_-" that look random. In a URL
// some of these are written %2F, %2B and %3D.
func (f *finder) opaque(s string) string {
	if !f.on[kindRandom] {
		return s
	}
	out := f.patch(s)
	for i := 0; i < len(s); {
		if opaqueAt(s, i) == 0 {
			i++
			continue
		}
		j, escaped := i, false
		for n := opaqueAt(s, j); n > 0; n = opaqueAt(s, j) {
			j += n
			escaped = escaped || n > 1
		}
		if j-i < minOpaque {
			i = j
			continue
		}
		from, to := i, j
		run := s[from:to]
		if escaped {
			run = unescaped.Replace(run)
		}
		if digested(s, i, j) {
			i = j
			continue
		}
		if !mixed(digest().ReplaceAllString(run, "$1$2")) {
			from, to = disordered(s, i, j)
		}
		if from < to {
			for to < len(s) && to-j < 2 && s[to] == '=' {
				to++
			}
			out.put(from, to, kindRandom)
		}
		i = max(to, j)
	}
	return out.text()
}

var unescaped = strings.NewReplacer("%2F", "/", "%2f", "/", "%2B", "+", "%2b", "+", "%3D", "=", "%3d", "=")

// opaqueAt returns the width of the token character at s[i:], 0 if there is none.
func opaqueAt(s string, i int) int {
	switch {
	case i == len(s):
		return 0
	case isOpaque(s[i]):
		return 1
	case s[i] == '%' && i+2 < len(s) && (s[i+1] == '2' && strings.IndexByte("FfBb", s[i+2]) >= 0 || s[i+1] == '3' && (s[i+2]|0x20) == 'd'):
		return 3
	}
	return 0
}

func isOpaque(c byte) bool { return isWord(c) || c == '+' || c == '/' || c == '-' }

// digests are the prefixes of base64 digests in files of package managers and on web
// pages, with the length of the digest in base64.
var digests = []struct {
	name string
	long int
}{{"sha256-", 43}, {"sha384-", 64}, {"sha512-", 86}, {"SHA256:", 43}, {"sha256:", 43}, {"h1:", 43}}

// digested reports whether the run s[i:j] is a digest with one of the prefixes.
func digested(s string, i, j int) bool {
	for _, d := range digests {
		start := j - d.long - len(d.name) // the run may begin with a path
		if start >= 0 && start < i+minOpaque && strings.HasPrefix(s[start:], d.name) && (start == 0 || !isWord(s[start-1])) {
			return true
		}
	}
	return false
}

// digest is a digest or an id that is an element of a path.
var digest = express(`(^|/)(?:[0-9a-f]{128}|[0-9a-f]{96}|[0-9a-f]{64}|[0-9a-f]{40}|[0-9a-f]{32}|[0-9A-F]{128}|[0-9A-F]{96}|[0-9A-F]{64}|[0-9A-F]{40}|[0-9A-F]{32})(/|$)`)

// mixed reports whether a run mixes lower case, capitals and digits as random text
// does: in random text one letter in six is in a group of three or more lower case
// letters, in words more than half of them.
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
	return n >= minOpaque && digits > 0 && lower > 0 && upper > 0 && 8*upper >= letters && 8*lower >= letters && 100*inWords <= 45*n
}

// disordered returns the first part of the run s[i:j], without "+/_-", that has letters
// of one case and digits in disorder, and is not as long as a digest or an id if
// it is hexadecimal. It reaches to the run's end if there is one.
func disordered(s string, i, j int) (from, to int) {
	for start := i; start < j; start++ {
		if strings.HasPrefix(s[start:j], "0x") {
			start += 2 // the prefix of a hexadecimal number
		}
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
