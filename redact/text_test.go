package redact_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/redact"
)

// Texts with sensitive parts, and their redacted forms. The tokens are invented.
var found = []struct{ in, want string }{
	{"mail to bob@example.com.", "mail to [EMAIL]."},
	{"<Ann.O'Neil+tag@mail.example.co.uk>, x", "<[EMAIL]>, x"},
	{"büro@exämple.de und ?to=bob%40example.com", "[EMAIL] und ?to=[EMAIL]"},
	{"a@b.io@c.io", "[EMAIL]@c.io"},

	{"call +49 30 1234567 now", "call [PHONE] now"},
	{"+1-555-123-4567", "[PHONE]"},
	{"+33 1 23 45 67 89", "[PHONE]"},
	{"+442071234567", "[PHONE]"},
	{"(555) 123-4567", "[PHONE]"},
	{"555-234-5678, 555.234.5678", "[PHONE], [PHONE]"},
	{"0170 1234567 and 030/1234567", "[PHONE] and [PHONE]"},
	{"01 23 45 67 89", "[PHONE]"},
	{"Tel. 1234567, phone: 5551234567", "Tel. [PHONE], phone: [PHONE]"},
	{`{\"phone\":\"5551234\"}`, `{\"phone\":\"[REDACTED]\"}`},

	{"lives at 12 Main Street, Springfield, IL 62704", "lives at [ADDRESS]"},
	{"350 Fifth Ave is old", "[ADDRESS] is old"},
	{"221B Baker Street", "[ADDRESS]"},
	{"Hauptstraße 5, 10115 Berlin", "[ADDRESS]"},
	{"wohnt Am Alten Platz 7a", "wohnt Am [ADDRESS]"},
	{"3 rue de la Paix, 75002 Paris", "[ADDRESS]"},
	{"P.O. Box 1234", "[ADDRESS]"},

	{"Authorization: Bearer abc.def-123", "Authorization: [REDACTED]"},
	{"authorization=Basic dXNlcjpwYXNz seq=5", "authorization=[REDACTED] seq=5"},
	{"got bearer a1b2c3d4", "got bearer [TOKEN]"},
	{"sk-abcdefghijklmnop1234 refused", "[TOKEN] refused"},
	{"sk-proj-Zx9Lw2_Kq8-Vb7Nm6Tr5", "[TOKEN]"},
	{"pk_live_4eC39HqLyjWDarjtT1", "[TOKEN]"},
	{"(ghp_16C7e42F292c6912E7710c838347Ae178B4a)", "([TOKEN])"},
	{"github_pat_11ABCDEFG0abcdefghijkl_mnop", "[TOKEN]"},
	{"glpat-A1b2C3d4E5f6G7h8I9j0", "[TOKEN]"},
	{"xoxb-123456789012-abcDEF", "[TOKEN]"},
	{"AKIAIOSFODNN7EXAMPLE", "[TOKEN]"},
	{"key=AIzaSyA1234567890abcdefghijklmnopqrstu", "key=[TOKEN]"},
	{"hf_A1b2C3d4E5f6G7h8I9j0", "[TOKEN]"},
	{"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N", "[TOKEN]"},
	{"-----BEGIN RSA PRIVATE KEY-----\nMIIEow\n-----END RSA PRIVATE KEY-----\nend", "[TOKEN]\nend"},
	{"-----BEGIN PRIVATE KEY-----\nMIIEow", "[TOKEN]"},
	{"wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "[TOKEN]"},
	{"Zm9vYmFyMTIzNDU2Nzg5MGFiY2RlZmdoaWprbA==", "[TOKEN]"},
	{"3f9a0c4b7e1d2865f0a93b7c5d4e8f1a2b3c4d5e6f708192", "[TOKEN]"}, // 48 digits: no digest
	{"k3j9x7q2w8z4v6t1r5y0p3m9n7b2c8d4", "[TOKEN]"},

	{"password=hunter2 user=bob", "password=[REDACTED] user=bob"},
	{"PASSWORD: x", "PASSWORD: [REDACTED]"},
	{`{"apiKey": "a b\"c", "n": 1}`, `{"apiKey": "[REDACTED]", "n": 1}`},
	{`in \"client_secret\":\"abc\\\"d\",\"n\":1`, `in \"client_secret\":\"[REDACTED]\",\"n\":1`},
	{`{"user_data":{"name":"Bob}","list":[1]},"n":1}`, `{"user_data":[REDACTED],"n":1}`},
	{`{"password":"never closed, n=1`, `{"password":"[REDACTED]`},
	{"X-Api-Key: abc;", "X-Api-Key: [REDACTED];"},
	{"Set-Cookie: a=b; c=d\nnext", "Set-Cookie: [REDACTED]\nnext"},
	{"?access_token=abc&n=1", "?access_token=[REDACTED]&n=1"},
	{"token=abcdef", "token=[REDACTED]"},
	{"postgres://bob:pass@db.local/x", "postgres://[REDACTED]@db.local/x"},
}

// Similar texts that must stay unchanged.
var innocent = []string{
	"",
	"snapshot not stored",
	"internationalization and Donaudampfschifffahrtsgesellschaftskapitän",
	"antidisestablishmentarianismantidisestablishmentarianism",
	"ThisIsOneVeryLongNameOfAFunctionThatSomebodyWroteIn2024",
	"TestHandlerKeepsWhatItDoesNotKnow/subtest_12/case_3",
	"stale_due_to_conflict_seq_gap_12_threshold_0",
	"THIS_IS_A_CONSTANT_WITH_A_LONG_NAME_AND_42",
	"/tmp/TestEngine1234567890/001/sajou-data/snapshots.db",
	"github.com/sajou-dev/sajou-go/eventlog.(*Log).Append(0xc000123456, 0x2a)",
	"goroutine 18 [running]:\nmain.main()\n\t/src/main.go:42 +0x1d4",
	"testdata/fuzz/FuzzText/3fa85f64b1c2d3e4a5b6c7d8e9f0a1b2",
	"golang.org/x/text@v0.43.0 and pkg@v1.2.3-rc.beta",
	"git@github.com:sajou-dev/sajou-go",
	"user@host and @mention and a@b",

	"entry 812 at 1796000000000 ns 1796000000000000000",
	"2026-11-21T08:00:16.123456789+01:00, 2026-11-21 08:00, 21.11.2026",
	"192.168.10.200:8080, 10.0.0.1, [::1]:443, 255.255.255.0",
	"v1.2.3, 3.14159265358979, 1,234,567,890 and -0.000123456",
	"7f000001-1234-5678-9012-123456789012",
	"550e8400-e29b-41d4-a716-446655440000",
	"01ARZ3NDEKTSV4RRFFQ69G5FAV",                                // a ULID
	"req_V1StGXR8_Z5jdHi6B-myT and 1srOrx2ZWZBpBUvZwXKQmoEYga2", // a nanoid, a KSUID
	"req-2026-11-21-000123, agent-7:task-12:step-3",
	"9e107d9d372bb6826bd81d3542a419d6",                                     // an effect's uuid
	"812:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", // a head
	"da39a3ee5e6b4b0d3255bfef95601890afd80709",                             // a commit
	"0000 0001 0002 0003 0004 0005 and 200 300 4000",
	"frames 60 1000 16667, 12 of 4096, 1-2-3",

	"unexpected token: }",
	`unexpected token "abc" at 12`,
	"max_tokens=1000 token_budget: 512, tokens: 12, token=12",
	"the token: a word that says so",
	"bearer of bad news, basic authentication",
	"sk-learn-for-beginners and task-force-of-many-people",
	"address: connection refused; listen tcp address=127.0.0.1:80",
	"email: required, phone: required",
	`{"address":"127.0.0.1:80","email_verified":true,"password":null,"remote_address":"somewhere else"}`,
	"20 Agents Ready, 5 Retries Left, String 5",
	"12 main street", // lower case is not matched
	"https://example.com:8080/a?b=c#d",
	"key: value, secretary=Bob, passage=1, cookies_accepted_at_ms=5",
	"[EMAIL] [PHONE] [ADDRESS] [TOKEN] [REDACTED] [CUT]",
	"bad \xff\xfe bytes \x00",
}

func TestText(t *testing.T) {
	for _, c := range found {
		if got := redact.Text(c.in, redact.Options{}); got != c.want {
			t.Errorf("%q\n got %q\nwant %q", c.in, got, c.want)
		}
	}
	for _, s := range innocent {
		if got := redact.Text(s, redact.Options{}); got != s {
			t.Errorf("%q\n got %q\nwant it unchanged", s, got)
		}
	}
}

// A match is found at any place in a text, and the surrounding text stays.
func TestTextInContext(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := rapid.SampledFrom(found).Draw(t, "found")
		before, after := rapid.SampledFrom(innocent).Draw(t, "before"), rapid.SampledFrom(innocent).Draw(t, "after")
		if strings.Contains(c.in, "BEGIN") || strings.Contains(c.in, "closed") || strings.Contains(c.in, "Cookie") {
			after = ""
		}
		in, want := before+"\n"+c.in+" | "+after, before+"\n"+c.want+" | "+after
		if after == "" {
			in, want = before+"\n"+c.in, before+"\n"+c.want
		}
		if got := redact.Text(in, redact.Options{}); got != want {
			t.Fatalf("%q\n got %q\nwant %q", in, got, want)
		}
	})
}

// A text that is too long is cut between words, and a second redaction does not cut it
// again.
func TestTextCut(t *testing.T) {
	o := redact.Options{MaxText: 64}
	long := strings.Repeat("word ", 11) + "bob@example.com and more"
	got := redact.Text(long, o)
	if want := strings.Repeat("word ", 11) + "[CUT]"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := redact.Text(strings.Repeat("x", 1<<20), redact.Options{}); got != redact.Cut {
		t.Errorf("a word without an end became %d bytes", len(got))
	}
	if short := strings.Repeat("word ", 12); redact.Text(short, o) != short {
		t.Error("a text within the bound was changed")
	}
}

// For any text, redaction is idempotent, keeps the text within its bound, and takes
// bounded time.
func FuzzText(f *testing.F) {
	for _, c := range found {
		f.Add(c.in)
		f.Add(c.want)
	}
	for _, s := range innocent {
		f.Add(s)
	}
	f.Add(strings.Repeat(`password="`, 50))
	f.Add(strings.Repeat("a@b.cc", 50))
	f.Fuzz(func(t *testing.T, s string) {
		for _, o := range []redact.Options{{}, {MaxText: 64}} {
			once := redact.Text(s, o)
			if twice := redact.Text(once, o); twice != once {
				t.Errorf("%q\n once %q\ntwice %q", s, once, twice)
			}
			if o.MaxText > 0 && len(once) > o.MaxText {
				t.Errorf("%q became %d bytes", s, len(once))
			}
		}
	})
}
