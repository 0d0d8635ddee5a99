package redact_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/redact"
	"github.com/sajou-dev/sajou-go/signal"
)

// examples has for each kind texts in which it is found alone, and near misses.
var examples = map[string]struct{ hits, misses []string }{
	"email":       {[]string{"bob@example.com", "to=bob%40example.com"}, []string{"github.com/a/b@v1.2.3", "git@github.com:a/b", "icon@2x.png"}},
	"phone":       {[]string{"+49 30 1234567", "(555) 123-4567", "tel 5551234"}, []string{"1796000000", "2026-11-21", "+49 lines", "192.168.10.200"}},
	"address":     {[]string{"12 Main Street", "Hauptstraße 5", "3 rue de la Paix"}, []string{"Main Street", "12 main streets", "rue/de/la"}},
	"card":        {[]string{"4111 1111 1111 1111", "378282246310005"}, []string{"4111 1111 1111 1112", "1796000000000000"}},
	"iban":        {[]string{"DE89 3704 0044 0532 0130 00"}, []string{"DE88 3704 0044 0532 0130 00"}},
	"token":       {[]string{"sk-proj-Zx9Lw2_Kq8-Vb7Nm6Tr5", "ghp_16C7e42F292c6912E7710c838347Ae178B4a", "AKIAIOSFODNN7EXAMPLE", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3"}, []string{"sk-learn-for-beginners", "ghp_short", "eyJ"}},
	"private-key": {[]string{"-----BEGIN PRIVATE KEY-----\nMIIEow\n-----END PRIVATE KEY-----", "-----BEGIN RSA PRIVATE KEY-----\nMIIEow"}, []string{"-----BEGIN PUBLIC KEY-----\nMIIEow\n-----END PUBLIC KEY-----"}},
	"bearer":      {[]string{"got Bearer a1b2c3d4"}, []string{"the bearer of news"}},
	"random":      {[]string{"k3j9x7q2w8z4v6t1r5y0p3m9n7b2c8d4"}, []string{"9e107d9d372bb6826bd81d3542a419d6", "550e8400-e29b-41d4-a716-446655440000", "ThisIsOneVeryLongNameOfAFunctionThatSomebodyWroteIn2024"}},
	"url":         {[]string{"postgres://bob:pass@db.local/x"}, []string{"https://example.com:8080/x"}},
	"command":     {[]string{"mysql -u root -phunter2 db", "redis-cli -a hunter2 ping"}, []string{"mysql -u root db", "redis-cli ping"}},
	"secret":      {[]string{"password=hunter2", `{"api_key":"x"}`, "<password>x</password>", "run --api-token abc-123"}, []string{`{"password":null}`, "max_tokens: 512", "use --password to log in"}},
	"personal":    {[]string{`{"first_name":"Ann"}`, `{"ssn":"123"}`}, []string{"first name: Ann", `{"email":""}`}},
}

// Every kind is documented, finds its hits when it is searched for alone, and leaves its
// near misses.
func TestKindsAlone(t *testing.T) {
	kinds := redact.Kinds()
	require.Len(t, examples, len(kinds))
	for _, k := range kinds {
		t.Run(k.Name, func(t *testing.T) {
			assert.NotEmpty(t, k.Finds)
			assert.NotEmpty(t, k.Stays)
			rules := compiled(t, "kinds: ["+k.Name+"]")
			redacted := func(text string) (string, map[string]int) {
				s := &signal.Signal{Type: "x", Payload: signal.NewObject(1).Text("text", text).Value()}
				d := rules.NewRedactor()
				d.Redact(s)
				return s.Payload.TextOf("text"), d.Counts()
			}
			for _, hit := range examples[k.Name].hits {
				got, counts := redacted(hit)
				assert.Containsf(t, got, k.Mark, "%q", hit)
				assert.Equal(t, map[string]int{k.Name: 1}, counts, "%q", hit)
				none := compiled(t, "except: ["+k.Name+"]\npatterns: []").NewRedactor()
				none.Redact(&signal.Signal{Type: "x", Payload: signal.NewObject(1).Text("text", hit).Value()})
				assert.NotContains(t, none.Counts(), k.Name)
			}
			for _, miss := range examples[k.Name].misses {
				got, counts := redacted(miss)
				assert.Equal(t, miss, got)
				assert.Empty(t, counts)
			}
		})
	}
}

func TestCompileRefuses(t *testing.T) {
	for _, c := range []struct{ yaml, want string }{
		{"[]", "rules are an object, not an array"},
		{"kind: [email]", `unknown member "kind"; did you mean kinds?`},
		{"kinds: email", "the kinds is an array"},
		{"kinds: [mail]", `unknown kind "mail"; the kinds are email, phone`},
		{"names: [7]", "an element of names is a text, not an integer"},
		{"names: ['--']", `"--" has no letter or digit`},
		{"patterns: [{name: a}]", "the expression of a pattern is a text, not nothing"},
		{"patterns: [{name: a, match: '('}]", "not an expression in RE2 syntax"},
		{"patterns: [{name: email, match: a}]", `"email" is not a name for a pattern`},
		{"patterns: [{name: path, match: a}]", `"path" is not a name for a pattern`},
		{"patterns: [{name: A, match: a}]", `"A" is not a name for a pattern`},
		{"patterns: [{name: a, match: a}, {name: a, match: b}]", "a pattern before has the name"},
		{"patterns: [{name: a, match: a, replace: b}]", `unknown member "replace"; known are name, match, replacement`},
		{"patterns: [x]", "patterns are an object, not a string"},
		{"replacement: '***'", `"***" is not a replacement`},
		{"replacement: '[gone]'", `"[gone]" is not a replacement`},
		{"paths: [metadata]", "is not a JSON pointer from the envelope"},
		{"paths: [/type]", "begins with no member of an envelope that can be replaced"},
		{"names: ['" + strings.Repeat("x", 1001) + "']", "has 1 to 1000 bytes, not 1001"},
		{"kinds: [", "rules.yaml:1:"},
	} {
		rules, diagnostics := redact.Compile("rules.yaml", []byte(c.yaml))
		assert.Nil(t, rules, c.yaml)
		assert.Contains(t, diagnostics.String(), c.want, c.yaml)
	}
}

// The digest names what rules find: equal rules in another order of members have the
// same, other rules another.
func TestDigest(t *testing.T) {
	assert.Equal(t, redact.Default().Digest(), compiled(t, "{}").Digest())
	assert.Equal(t, compiled(t, "names: [a, b]\nkinds: [card, email]").Digest(), compiled(t, "kinds: [email, card]\nnames: [b, a]").Digest())
	seen := map[string]string{}
	for _, yaml := range []string{
		"{}", "kinds: []", "except: [email]", "names: [a]", "keep: [a]", "patterns: [{name: a, match: b}]", "patterns: [{name: b, match: b}]",
		"patterns: [{name: a, match: c}]", "patterns: [{name: a, match: b, replacement: '[B]'}]", "paths: [/metadata]", "paths: [/payload]", "replacement: '[X]'",
	} {
		digest := compiled(t, yaml).Digest()
		assert.Len(t, digest, 64)
		assert.Empty(t, seen[digest], "%s has the digest of %s", yaml, seen[digest])
		seen[digest] = yaml
	}
}

// The digest of rules covers the version of the table of kinds. When this test fails, the
// kinds find other texts than before: raise tableVersion, and then the sum here.
func TestTableVersion(t *testing.T) {
	h := sha256.New()
	for _, c := range secrets {
		fmt.Fprintln(h, redact.Text(c.in, redact.Options{}))
	}
	for _, c := range harmless {
		fmt.Fprintln(h, redact.Text(c.text, redact.Options{}))
	}
	for _, c := range shapes {
		fmt.Fprintln(h, redact.Text(c.in, redact.Options{}))
	}
	assert.Equal(t, "563bab9610a9568c4abfef389279c5dc", hex.EncodeToString(h.Sum(nil)[:16]))
}

func FuzzCompile(f *testing.F) {
	f.Add("kinds: [email]\npatterns: [{name: a, match: 'x+', replacement: '[X]'}]\npaths: ['/payload/**/id']", `{"id":"1","type":"x","timestamp":1,"source":"s","payload":{"a":"xx bob@example.com"}}`)
	f.Add("{}", `{"id":7,"password":"x","payload":["bob@example.com"]}`)
	f.Add("names: [a]\nreplacement: '[A]'", `{"payload":{"a":"{\"a\":[1]}"}}`)
	f.Fuzz(func(t *testing.T, yaml, line string) {
		rules, diagnostics := redact.Compile("r.yaml", []byte(yaml))
		require.NotEqual(t, rules == nil, len(diagnostics) == 0)
		s, err := signal.ParseLenient([]byte(line))
		if rules == nil || err != nil {
			return
		}
		valid := s.Problem == ""
		rules.NewRedactor().Redact(s)
		if valid {
			require.NoError(t, s.Validate())
		}
		_, err = signal.Decode(s.Append(nil))
		require.NoError(t, err)
	})
}
