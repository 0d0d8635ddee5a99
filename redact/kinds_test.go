package redact_test

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/sajou-dev/sajou-go/internal/attack"
	"github.com/sajou-dev/sajou-go/redact"
)

// token returns n characters of an alphabet, the same ones each time.
func token(alphabet string, n int) string {
	random := rand.New(rand.NewPCG(uint64(n), uint64(len(alphabet))))
	var b strings.Builder
	for range n {
		b.WriteByte(alphabet[random.IntN(len(alphabet))])
	}
	return b.String()
}

const (
	letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	hexes   = "0123456789abcdef"
)

// secrets are the kinds that must be found: a text, and the part of it that must not
// remain. All are invented, or published by issuers for tests.
var secrets = []struct{ kind, in, hidden string }{
	{"a card, plain", "paid with 4111111111111111 today", "4111111111111111"},
	{"a card, spaced", "paid with 4111 1111 1111 1111 today", "1111 1111"},
	{"a card, dashed", "paid with 5500-0000-0000-0004.", "0000-0004"},
	{"a card, dotted", "5105.1051.0510.5100", "0510.5100"},
	{"a card with hard spaces", "4012\u00a08888\u00a08888\u00a01881", "1881"},
	{"a card with typeset hyphens", "6011\u20110009\u20119013\u20119424", "9424"},
	{"a card of 15 digits", "3782 822463 10005", "822463"},
	{"a card of 15 digits, plain", "n=378282246310005;", "378282246310005"},
	{"a card of 14 digits", "3056 930902 5904", "930902"},
	{"a card of 13 digits", "4222222222222", "4222222222222"},
	{"a card of JCB", "3530111333300000", "3530111333300000"},
	{"a card of Mastercard's newer numbers", "2223003122003222", "2223003122003222"},
	{"a card of UnionPay", "6200 0000 0000 0005", "0000 0005"},
	{"a card of Maestro", "6759649826438453", "6759649826438453"},
	{"a card in JSON", `{"n":"4242424242424242","x":1}`, "4242424242424242"},
	{"a card behind its name", "creditCard: 4242424242424242", "4242424242424242"},
	{"an IBAN, compact", "to DE89370400440532013000 now", "370400440532013000"},
	{"an IBAN, spaced", "to DE89 3704 0044 0532 0130 00 now", "0532 0130"},
	{"an IBAN, dashed", "GB29-NWBK-6016-1331-9268-19", "6016-1331"},
	{"an IBAN in small letters", "gb29nwbk60161331926819", "60161331926819"},
	{"an IBAN with letters", "FR14 2004 1010 0505 0001 3M02 606", "0505 0001"},
	{"a long IBAN", "MT84MALT011000012345MTLCAST001S", "011000012345"},
	{"a short IBAN", "NO93 8601 1117 947", "8601 1117"},
	{"a phone number, international", "call +49 30 1234567", "1234567"},
	{"a phone number without spaces", "+442071234567", "442071234567"},
	{"a phone number with brackets", "+1 (555) 123-4567", "123-4567"},
	{"a phone number with a zero", "+44 (0)20 7946 0958", "7946 0958"},
	{"a phone number with dots", "+1.415.555.2671", "555.2671"},
	{"a phone number with hard spaces", "+33\u00a01\u00a023\u00a045\u00a067\u00a089", "45\u00a067"},
	{"a phone number with 00", "0049 30 1234567", "1234567"},
	{"a phone number with slashes", "+49/30/1234567", "1234567"},
	{"a phone number behind its name", "phone=5551234567", "5551234567"},
	{"a phone number behind another", "phone_number: 5551234567", "5551234567"},
	{"a phone number in camel case", "userPhone=15551234567 ok", "15551234567"},
	{"a mobile number", "msisdn=4915112345678", "4915112345678"},
	{"a phone number, as a link", "tel:+1-201-555-0123", "555-0123"},
	{"a phone number in JSON", `{"phone":"5551234567"}`, "5551234567"},
	{"a phone number in JSON as a number", `{"phone":5551234567}`, "5551234567"},
	{"an email", "mail to bob@example.com", "bob@"},
	{"a street", "at 12 Main Street, Springfield", "Main Street"},
	{"Twilio's account", "AC" + token(hexes, 32), token(hexes, 32)},
	{"Twilio's key", "SK" + token(hexes, 32), token(hexes, 32)},
	{"Discord's bot", "M" + token(letters, 23) + "." + token(letters, 6) + "." + token(letters, 27), token(letters, 27)},
	{"Discord's user", "mfa." + token(letters, 84), token(letters, 84)},
	{"Discord's hook", "https://discord.com/api/webhooks/123456789012345678/" + token(letters, 68), token(letters, 68)},
	{"Slack's hook", "https://hooks.slack.com/services/T00000000/B00000000/" + token(letters, 24), token(letters, 24)},
	{"Slack's bot", "xoxb-123456789012-" + token(letters, 24), token(letters, 24)},
	{"Telegram's bot", "123456789:AA" + token(letters, 33), token(letters, 33)},
	{"OpenAI", "sk-" + token(letters, 48), token(letters, 48)},
	{"OpenAI's project", "sk-proj-" + token(letters, 40), token(letters, 40)},
	{"Anthropic", "sk-ant-api03-" + token(letters, 40), token(letters, 40)},
	{"GitHub", "ghp_" + token(letters, 36), token(letters, 36)},
	{"GitHub, fine-grained", "github_pat_" + token(letters, 22), token(letters, 22)},
	{"GitLab", "glpat-" + token(letters, 20), token(letters, 20)},
	{"AWS's id", "AKIAIOSFODNN7EXAMPLE", "IOSFODNN7"},
	{"AWS's secret", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "K7MDENG"},
	{"AWS's secret in a URL", "?k=wJalrXUtnFEMI%2FK7MDENG%2FbPxRfiCYEXAMPLEKEY", "K7MDENG"},
	{"a random key in a URL", "?k=" + url.QueryEscape("x7Jq2/Vb9Tn+4Lw8Zr/Kp3Yd+6Hs1Gf/Mc5Xt+0Qe="), "Kp3Yd"},
	{"Google", "AIza" + token(letters, 35), token(letters, 35)},
	{"Stripe", "sk_live_" + token(letters, 24), token(letters, 24)},
	{"SendGrid", "SG." + token(letters, 22) + "." + token(letters, 43), token(letters, 43)},
	{"Mailgun", "key-" + token(hexes, 32), token(hexes, 32)},
	{"Mailchimp", token(hexes, 32) + "-us12", token(hexes, 32)},
	{"npm", "npm_" + token(letters, 36), token(letters, 36)},
	{"PyPI", "pypi-" + token(letters, 40), token(letters, 40)},
	{"Docker", "dckr_pat_" + token(letters, 27), token(letters, 27)},
	{"Databricks", "dapi" + token(hexes, 32), token(hexes, 32)},
	{"Vault", "hvs." + token(letters, 30), token(letters, 30)},
	{"a JWT", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N", "dozjgNryP4J3"},
	{"a private key", "-----BEGIN PRIVATE KEY-----\nMIIEow\n-----END PRIVATE KEY-----", "MIIEow"},
	{"an age key", "AGE-SECRET-KEY-1" + strings.ToUpper(token(letters, 40)), strings.ToUpper(token(letters, 40))},
	{"base64", base64.StdEncoding.EncodeToString([]byte(token(letters, 36))), base64.StdEncoding.EncodeToString([]byte(token(letters, 36)))},
	{"a password, assigned", "password=hunter2", "hunter2"},
	{"a password in JSON", `{"password": "hunter2"}`, "hunter2"},
	{"a password in YAML", "db_password: hunter2", "hunter2"},
	{"a password in XML", "<password>hunter2</password>", "hunter2"},
	{"a password in XML with attributes", `<ns:Password type="text">hunter2</ns:Password>`, "hunter2"},
	{"a password in CDATA", "<password><![CDATA[hunter2]]></password>", "hunter2"},
	{"a password in escaped XML", "&lt;password&gt;hunter2&lt;/password&gt;", "hunter2"},
	{"a password in XML that is cut", "<db><password> hunter2", "hunter2"},
	{"a token in XML", "<apiKey>abc-123-def</apiKey>", "abc-123-def"},
	{"an email's element", "<phone>5551234567</phone>", "5551234567"},
	{"curl -u", "curl -s -u bob:hunter2 https://x.example", "hunter2"},
	{"curl -u, joined", "curl -ubob:hunter2 https://x.example", "hunter2"},
	{"curl --user", `curl https://x.example --user "bob:hunter2"`, "hunter2"},
	{"curl --user=", "curl --user=bob:hunter2 x", "hunter2"},
	{"curl --proxy-user", "curl --proxy-user 'bob:hunter2' x", "hunter2"},
	{"a flag", "run --password hunter2 --verbose", "hunter2"},
	{"a flag with a token", "run --api-token abc-123-def", "abc-123-def"},
	{"a URL's password", "postgres://bob:hunter2@db.local/x", "hunter2"},
	{"a bearer", "Authorization: Bearer abc.def-123", "abc.def-123"},
	{"basic", "authorization=Basic dXNlcjpwYXNz", "dXNlcjpwYXNz"},
	{"a cookie", "Set-Cookie: sid=abc123", "abc123"},
	{"a query", "?access_token=abcdef1&n=1", "abcdef1"},
}

// harmless are texts that resemble secrets and must stay, to the byte.
var harmless = []struct{ kind, text string }{
	{"Unix time", "at 1796000000"},
	{"Unix time in ms", "at 1796000000000"},
	{"Unix time in µs", "at 1796000000000000"},
	{"Unix time in ns", "at 1796000000000000000"},
	{"earlier Unix times", "4102444800 and 4102444800000"},
	{"a number like a card's that fails the check", "order 4111111111111112, 5500-0000-0000-0005, 3782 822463 10006"},
	{"a card's digits of no issuer", "0000 0000 0000 0000 and 1234567812345670 and 9999999999999995"},
	{"a card's digits in a longer number", "14111111111111111000"},
	{"a card's digits in a word", "id_4111111111111111 x4111111111111111 4111111111111111abc"},
	{"a decimal", "4111111111.111111 and 0.4111111111111111"},
	{"an order number", "order 2026-1121-000123, invoice 80012345678"},
	{"an ISBN", "978-3-16-148410-0 and 9783161484100, 0-306-40615-2"},
	{"an EAN", "4006381333931"},
	{"an IBAN that fails the check", "DE88370400440532013000"},
	{"words like an IBAN", "DE89 is a road, and NO93 WHAT EVER 123"},
	{"MD5", "9e107d9d372bb6826bd81d3542a419d6"},
	{"SHA-1", "da39a3ee5e6b4b0d3255bfef95601890afd80709"},
	{"SHA-256", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
	{"SHA-256 with its name", "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
	{"SHA-512", strings.Repeat("cf83e1357eefb8bd", 8)},
	{"a short commit", "commit 3275e99 of ca1d511"},
	{"a UUID", "550e8400-e29b-41d4-a716-446655440000"},
	{"a UUID of digits", "41111111-1111-4111-8111-111111111111"},
	{"a ULID", "01ARZ3NDEKTSV4RRFFQ69G5FAV"},
	{"a version", "v1.2.3-rc.4+build.5, go1.26.1, 2.0.0.1234567"},
	{"IPv4", "192.168.10.200:8080, 10.0.0.1/24"},
	{"IPv6", "2001:0db8:85a3:0000:0000:8a2e:0370:7334, [::1]:443"},
	{"a MAC address", "00:1b:44:11:3a:b7"},
	{"a date", "2026-11-21T08:00:16.123456789+01:00, 21.11.2026"},
	{"a time zone", "+0100 and +01:00 and UTC+2"},
	{"a picture", `<img src="icon.png" alt="token"> <token>12</token>`},
	{"a small picture in base64", "data:image/gif;base64,R0lGODlhAQABAAAAACw="},
	{"elements", "<password/> <password></password> <tokens>512</tokens> <name>Bob</name>"},
	{"flags", "use --password to log in; the flag --token is required, --max-tokens 1000, curl -u is basic"},
	{"prose on phones", "phone: required, mobile: yes, phone_count=12"},
	{"a diff", "+49 lines, -12 lines, +1 more"},
	{"coordinates", "+52.5200 +13.4050, 52.520008,13.404954"},
	{"ranges", "1000-2000 and 100-200-300 and 4000 5000"},
	{"sizes", "1,234,567,890 bytes, 4,096 of 16,384"},
	{"a path in a URL", "https://example.com/a%2Fb%2Fsome%2Flonger%2Fpath%2Fto%2Fa%2Ffile%2Fcalled%2Findex"},
	{"an account of a head", "54:ffd1e43bcc5531d5963b418d36641c70444bf761107f56085c2768625fd8be33"},
}

func TestKinds(t *testing.T) {
	if len(secrets) < 71 || len(harmless) < 27 {
		t.Errorf("%d kinds to find, %d to leave", len(secrets), len(harmless))
	}
	for _, c := range secrets {
		for _, in := range []string{c.in, "before: " + c.in, c.in + "\nbehind", `"` + c.in + `"`} {
			if got := redact.Text(in, redact.Options{}); strings.Contains(got, c.hidden) {
				t.Errorf("%s: %q became %q", c.kind, in, got)
			}
		}
	}
	for _, c := range harmless {
		if got := redact.Text(c.text, redact.Options{}); got != c.text {
			t.Errorf("%s: %q became %q", c.kind, c.text, got)
		}
	}
}

// Every number with the check digits of a card or an account is found, and every number
// with other check digits stays.
func TestAttackCheckDigits(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range attack.Rounds(2000, 200000) {
		digits := []byte(fmt.Sprintf("4%014d0", random.Int64N(1e14)))
		at := random.IntN(10)
		found := 0
		for d := range 10 {
			digits[15] = byte('0' + (at+d)%10)
			text := string(digits)
			if random.IntN(2) == 0 {
				text = text[:4] + " " + text[4:8] + " " + text[8:12] + " " + text[12:]
			}
			if got := redact.Text("n "+text, redact.Options{}); got == "n [CARD]" {
				found++
			} else if got != "n "+text && !strings.Contains(got, "[PHONE]") {
				t.Fatalf("%q became %q", text, got)
			}
		}
		if found != 1 {
			t.Fatalf("of ten check digits of %s, %d were taken", digits, found)
		}
	}
}

// Redaction takes linear time, even for texts that resemble the beginning of every look
// and match none.
func TestAttackSlowTexts(t *testing.T) {
	for _, part := range []string{
		"<a ", "<password ", "&lt;a&gt;", "curl ", "curl -u ", "--token ", " --a b", "4111 ", "4111-1111-", "DE89 ", "DE89", "+1 ", "0 ", "a@", "password=",
		`"token":`, "sk-", "eyJ", "-----BEGIN PRIVATE KEY-----", "%2F", "aA0%2F", "://a:", "12 Main ", `\`, `{"password":{`, "tel 1 ", "phone=(", "<![CDATA[", "M.", "1//0",
		"curl -b ", "curl \"", "<password><a>", `name="a" value=`, `name="a" >`, `<key>a</key><string>`, `\u0022`, `\\u0022`, "%25", "%2520", "&#34;", "password:\n ", "password: |\n", "login a password ",
		"redis-cli -a ", "mysql -p", "docker login ", "-pass pass:", "://a:b/", "://a:b@", "iban", "IBANDE89", "%B4111", "4111_", "4111+", "?sig=", "_auth=", "PRIVATE KEY----", "---- BEGIN PRIVATE KEY----", "sha256-", "0x", "a/", "telephone: \"5",
	} {
		took := func(n int) time.Duration {
			text := strings.Repeat(part, n/len(part))
			best := time.Hour
			for range 3 {
				began := time.Now()
				redact.Text(text, redact.Options{MaxText: 1 << 20})
				best = min(best, time.Since(began))
			}
			return best
		}
		if long := took(16 << 10); long > 3*time.Second {
			t.Errorf("%q: 16 KiB take %v", part, long)
		}
	}
}
