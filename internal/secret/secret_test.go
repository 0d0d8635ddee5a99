package secret_test

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"html"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"

	"github.com/sajou-dev/sajou-go/internal/attack"
	"github.com/sajou-dev/sajou-go/internal/secret"
)

const (
	key  = "sk-S3cret/Key+with=odd&\"more\"<1>"
	mark = "[redacted]"
)

// forms returns the encodings in which programs repeat a secret.
func forms(key string) map[string]string {
	quoted, _ := json.Marshal(key)
	twice, _ := json.Marshal(string(quoted))
	all := map[string]string{
		"plain": key, "query": url.QueryEscape(key), "path": url.PathEscape(key), "path twice": url.PathEscape(url.PathEscape(key)),
		"JSON": strings.Trim(string(quoted), `"`), "JSON twice": strings.Trim(string(twice), `"\`),
		"slashes": strings.ReplaceAll(strings.ReplaceAll(key, `"`, `\"`), "/", `\/`), "HTML": html.EscapeString(key),
		"lower case": strings.ToLower(url.QueryEscape("/+")), // replaced below
		"hex":        hex.EncodeToString([]byte(key)), "HEX": strings.ToUpper(hex.EncodeToString([]byte(key))),
	}
	var lower, unicode, c, numbers, printable strings.Builder
	const digits = "0123456789abcdef"
	for i := range len(key) {
		h := string(digits[key[i]>>4]) + string(digits[key[i]&15])
		lower.WriteString("%" + h)
		unicode.WriteString(`\u00` + h)
		c.WriteString(`\x` + h)
		numbers.WriteString("&#x" + h + ";")
		printable.WriteString("=" + strings.ToUpper(h))
	}
	all["lower case"], all["unicode"], all["C"], all["numbers"], all["quoted-printable"] =
		lower.String(), unicode.String(), c.String(), numbers.String(), printable.String()
	return all
}

func TestFormsAreFound(t *testing.T) {
	s := secret.New(1, key)
	for name, form := range forms(key) {
		text := "before " + form + " and " + form + "after"
		if got, want := s.Replace(text, mark), "before "+mark+" and "+mark+"after"; got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// In base64 every alignment is found, in both alphabets: the decoded output has at most
// the first and the last byte of the secret.
func TestBase64IsFound(t *testing.T) {
	s := secret.New(1, key)
	for _, e := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding, base64.RawStdEncoding, base64.RawURLEncoding} {
		for before := range 7 {
			for after := range 4 {
				text := strings.Repeat("u", before) + key + strings.Repeat("\xff", after)
				got := s.Replace(e.EncodeToString([]byte(text)), mark)
				head, tail, found := strings.Cut(got, mark)
				if !found || len(head) > 4*(before+3)/3 || len(tail) > 4*(after+3)/3+1 {
					t.Errorf("%d before, %d after: %q", before, after, got)
				}
			}
		}
	}
}

func TestInnocentTextsStay(t *testing.T) {
	s := secret.New(1, key)
	for _, text := range []string{"", "sk-S3cret/Key", "sk-", "100% of %25", `\\\\\\\\\\`, "&&&&amp;", "=3D=", "c2stUzNjcmV0", strings.Repeat("s", 1000)} {
		if got := s.Replace(text, mark); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
	if got := secret.New(8, "none", "").Replace("none at all", mark); got != "none at all" {
		t.Errorf("a short secret is replaced: %q", got)
	}
	var none *secret.Secrets
	if got := none.Replace("text", mark) + none.Stream(mark).Next("text"); got != "texttext" {
		t.Errorf("%q", got)
	}
}

// For any split of a text, a stream outputs the same text as Replace of the whole.
func TestAttackSplits(t *testing.T) {
	s := secret.New(1, key, "another-Secret/2")
	random := rand.New(rand.NewPCG(1, 2))
	var parts []string
	for _, form := range forms(key) {
		parts = append(parts, form, form[:len(form)/2], "words between", "%", `\`, "&", "=", "sk-", "another-Secret/2", "é😀")
	}
	for range attack.Rounds(5000, 500000) {
		var text strings.Builder
		for range 1 + random.IntN(5) {
			text.WriteString(parts[random.IntN(len(parts))])
		}
		text.WriteString(" end.")
		stream := s.Stream(mark)
		var got strings.Builder
		for rest := text.String(); rest != ""; {
			n := 1 + random.IntN(min(len(rest), 1+random.IntN(40)))
			got.WriteString(stream.Next(rest[:n]))
			rest = rest[n:]
		}
		got.WriteString(stream.End())
		if want := s.Replace(text.String(), mark); got.String() != want {
			t.Fatalf("%q\n got %q\nwant %q", text.String(), got.String(), want)
		}
	}
}

// A stream does not output most of a secret at its end.
func TestStreamEndsInASecret(t *testing.T) {
	s := secret.New(8, key)
	for n := range len(key) {
		stream := s.Stream(mark)
		got := stream.Next("a "+key[:n]) + stream.End()
		if want := "a " + key[:n]; n >= len(key)/2 && got != "a "+mark || n < len(key)/2 && got != want {
			t.Errorf("%d bytes: %q", n, got)
		}
	}
}

// FuzzReplace checks that no decoding of the output has the secret, and that a split
// does not change the output.
func FuzzReplace(f *testing.F) {
	for _, form := range forms(key) {
		f.Add("x"+form+"y", 3)
	}
	f.Fuzz(func(t *testing.T, text string, at int) {
		s := secret.New(1, key)
		out := s.Replace(text, "#")
		if strings.Contains(out, key) || strings.Contains(out, url.QueryEscape(key)) {
			t.Errorf("%q became %q", text, out)
		}
		if at >= 0 && at <= len(text) {
			stream := s.Stream("#")
			if got := stream.Next(text[:at]) + stream.Next(text[at:]) + stream.End(); got != out && !strings.HasSuffix(got, "#") {
				t.Errorf("%q split at %d: %q, want %q", text, at, got, out)
			}
		}
		if cut := s.ReplaceCut(text, "#"); !strings.HasPrefix(out, cut) {
			t.Errorf("%q cut is %q, want a beginning of %q", text, cut, out)
		}
	})
}
