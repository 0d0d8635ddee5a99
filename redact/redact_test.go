package redact_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/redact"
	"github.com/sajou-dev/sajou-go/signal"
)

// timeless removes the time from the output of a handler.
var timeless = &slog.HandlerOptions{ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && (a.Key == slog.TimeKey || a.Key == slog.LevelKey) {
		return slog.Attr{}
	}
	return a
}}

// both returns the output as JSON and as text.
func both(wrap func(slog.Handler) slog.Handler, log func(*slog.Logger)) (asJSON, asText string) {
	var j, t bytes.Buffer
	log(slog.New(wrap(slog.NewJSONHandler(&j, timeless))))
	log(slog.New(wrap(slog.NewTextHandler(&t, timeless))))
	return strings.TrimSuffix(j.String(), "\n"), strings.TrimSuffix(t.String(), "\n")
}

func bare(h slog.Handler) slog.Handler { return h }

func redacted(h slog.Handler) slog.Handler { return redact.Handler(h, redact.Options{}) }

func value(t *testing.T, s string) signal.Value {
	t.Helper()
	v, err := signal.ParseValue([]byte(s))
	require.NoError(t, err)
	return v
}

type account struct {
	Name     string `json:"name"`
	Contact  string `json:"contact"`
	Password string `json:"-"`
	Pin      string `json:"pass_code"`
	Tokens   int    `json:"tokens"`
	hidden   string
}

type person struct{ name, mail string }

func (p person) LogValue() slog.Value {
	return slog.GroupValue(slog.String("name", p.name), slog.String("mail", p.mail))
}

type spoken struct{ at string }

func (s spoken) String() string { return "spoken by " + s.at }

type written struct{ At string }

func (w written) MarshalJSON() ([]byte, error) { return []byte(`{"written_by":` + w.At + `}`), nil }

type broken struct{}

func (*broken) Error() string { panic("broken") }

// Sensitive values are replaced at every place in a record, for each kind of value.
func TestHandler(t *testing.T) {
	address := "bob@example.com"
	for _, c := range []struct {
		name string
		attr slog.Attr
		want string
	}{
		{"by name", slog.String("api_key", "abc"), `"api_key":"[REDACTED]"`},
		{"by look", slog.String("note", "ask bob@example.com"), `"note":"ask [EMAIL]"`},
		{"number by name", slog.Int("phone", 5551234567), `"phone":"[REDACTED]"`},
		{"group by name", slog.Group("user_data", slog.String("a", "b")), `"user_data":"[REDACTED]"`},
		{"in a group", slog.Group("g", slog.Group("h", slog.String("password", "x"), slog.Int("n", 1))), `"g":{"h":{"password":"[REDACTED]","n":1}}`},
		{"key", slog.Int(address, 3), `"[EMAIL]":3`},
		{"LogValuer", slog.Any("who", person{"Bob", "b"}), `"who":{"name":"Bob","mail":"[REDACTED]"}`},
		{"error", slog.Any("err", fmt.Errorf("dial: %w", errors.New("password=x refused"))), `"err":"dial: password=[REDACTED] refused"`},
		{"Stringer", slog.Any("v", spoken{"bob@example.com"}), `"v":"spoken by [EMAIL]"`},
		{"Marshaler", slog.Any("v", written{`["bob@example.com",1.50]`}), `"v":{"written_by":["[EMAIL]",1.50]}`},
		{"Marshaler below", slog.Any("v", []written{{`{"token":"abcdef"}`}}), `"v":[{"written_by":{"token":"[REDACTED]"}}]`},
		{"map", slog.Any("v", map[string]any{"Email": "b", "n": 1, "deep": []any{map[string]string{"secret": "x"}}}), `"v":{"Email":"[REDACTED]","deep":[{"secret":"[REDACTED]"}],"n":1}`},
		{"map's key", slog.Any("v", map[string]int{"bob@example.com": 1}), `"v":{"[EMAIL]":1}`},
		{"struct", slog.Any("v", account{Name: "Bob", Pin: "1", Tokens: 5}), `"v":{"name":"Bob","contact":"","pass_code":"[REDACTED]","tokens":5}`},
		{"not exported", slog.Any("v", account{Name: "Bob", hidden: "bob@example.com"}), `"v":{"name":"Bob","contact":"","pass_code":"","tokens":0}`},
		{"pointers", slog.Any("v", new(&account{Contact: "tel 555-234-5678"})), `"v":{"name":"","contact":"tel [PHONE]","pass_code":"","tokens":0}`},
		{"bytes", slog.Any("v", []byte("bob@example.com")), `"v":"[EMAIL]"`},
		{"raw JSON", slog.Any("v", json.RawMessage(`{"n":1.0,"password":"x"}`)), `"v":{"n":1.0,"password":"[REDACTED]"}`},
		{"broken JSON", slog.Any("v", json.RawMessage(`{"password":"x"`)), `"v":"{\"password\":\"[REDACTED]\""`},
		{"signal.Value", slog.Any("payload", value(t, `{"to":[1,2.5],"text":"call +49 30 1234567","user":{"phone":1}}`)), `"payload":{"to":[1,2.5],"text":"call [PHONE]","user":{"phone":"[REDACTED]"}}`},
		{"signal.Value by name", slog.Any("email", value(t, `["b"]`)), `"email":"[REDACTED]"`},
		{"list by name", slog.Any("tokens", []string{"a"}), `"tokens":"[REDACTED]"`},
		{"attributes", slog.Any("v", []slog.Attr{slog.String("pwd", "x")}), `"v":{"pwd":"[REDACTED]"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, asText := both(redacted, func(l *slog.Logger) { l.LogAttrs(t.Context(), slog.LevelInfo, "m", c.attr) })
			want := `{"msg":"m",` + c.want + `}`
			if canonical(t, got) != canonical(t, want) {
				t.Errorf("got %s\nwant %s", got, want)
			}
			for _, mark := range []string{redact.Mark, redact.Email, redact.Phone} {
				if strings.Contains(c.want, mark) != strings.Contains(asText, mark) {
					t.Errorf("as text %s: want the marks of %s", asText, c.want)
				}
			}
			if strings.Contains(asText, "bob@") || strings.Contains(got, "bob@") {
				t.Errorf("shown: %s\n%s", got, asText)
			}
		})
	}
}

// canonical brings members into order.
func canonical(t *testing.T, s string) string {
	t.Helper()
	var v any
	d := json.NewDecoder(strings.NewReader(s))
	d.UseNumber()
	require.NoErrorf(t, d.Decode(&v), "%s", s)
	b, err := json.Marshal(v)
	require.NoError(t, err)
	return string(b)
}

// Other values are written exactly as without the handler.
func TestUnchanged(t *testing.T) {
	var none *account
	var noError *broken
	log := func(l *slog.Logger) {
		l.With(slog.Int("seq", 812)).WithGroup("g").With(slog.Bool("password", true)).LogAttrs(
			context.Background(), slog.LevelInfo, "it happened",
			slog.Duration("took", time.Second), slog.Time("at", time.Unix(0, 0).UTC()), slog.Float64("x", 0.1),
			slog.String("world_id", "dungeon"), slog.Uint64("global_seq", 1<<63), slog.String("token", ""),
			slog.Int("token_budget", 1000), slog.Int("tokens", 5), slog.String("remote_address", "somewhere else"),
			slog.String("address", "127.0.0.1:80"), slog.Any("password", nil), slog.Any("none", none), slog.Any("broken", noError),
			slog.Any("err", errors.New("no such thing")), slog.Any("v", value(t, `{"b":1,"a":[1.0,null,true]}`)),
			slog.Any("account", account{Name: "Bob"}), slog.Any("ptr", &account{}), slog.Any("raw", json.RawMessage(`{"b":1.0}`)),
			slog.Any("bytes", []byte{1, 2, 255}), slog.Any("map", map[int]any{3: []int{1}}), slog.Any("f", time.Second),
			slog.Group("empty"), slog.Group("", slog.Int("inline", 1)),
			slog.Any("array", [32]byte{}), slog.Any("spoken", spoken{"noon"}), slog.Any("number", json.Number("12345678901")))
	}
	gotJSON, gotText := both(redacted, log)
	wantJSON, wantText := both(bare, log)
	if gotJSON != wantJSON {
		t.Errorf("got  %s\nwant %s", gotJSON, wantJSON)
	}
	if gotText != wantText {
		t.Errorf("got  %s\nwant %s", gotText, wantText)
	}
}

// The attributes of a logger, its groups and the message are redacted too, and every
// value in a group with a sensitive name.
func TestLogger(t *testing.T) {
	got, _ := both(redacted, func(l *slog.Logger) {
		l.With(slog.String("email", "x")).WithGroup("request").With(slog.String("a", "ghp_16C7e42F292c6912E7710c838347Ae178B4a")).
			WithGroup("credentials").With(slog.Int("n", 1)).Info("bob@example.com asks", slog.Bool("b", true))
	})
	want := `{"msg":"[EMAIL] asks","email":"[REDACTED]","request":{"a":"[TOKEN]","credentials":{"n":"[REDACTED]","b":"[REDACTED]"}}}`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// The words of a name count, not the way they are joined.
func TestNames(t *testing.T) {
	sensitive := `password Password PASSWORD userPassword db.password password_hash apiKey api_key APIKey X-Api-Key apikey API-KEYS
		secret clientSecret SECRET_KEY private-key accessToken access_token token idToken refresh_tokens Authorization
		email e_mail_is_not_this_but_email userEmail email2 EmailAddress phone phoneNumber home_phone mobile address homeAddress billing_address
		postal_code zipCode user_data userData UserDataList date_of_birth sessionCookie`
	harmless := `name id key keys monkey passage secretary tokenizer token_count tokenBudget emailed emails_total email_verified
		phonetic api address_count remote_address ipAddress listen.address data user uid auth author seq global_seq world_id agent_id req_id
		latency_ms mailbox streets`
	for _, name := range strings.Fields(sensitive) {
		got, _ := both(redacted, func(l *slog.Logger) { l.LogAttrs(t.Context(), 0, "m", slog.String(name, "a b")) })
		if !strings.Contains(got, redact.Mark) {
			t.Errorf("%s is not sensitive", name)
		}
	}
	for _, name := range strings.Fields(harmless) {
		got, _ := both(redacted, func(l *slog.Logger) { l.LogAttrs(t.Context(), 0, "m", slog.String(name, "a b")) })
		if strings.Contains(got, redact.Mark) {
			t.Errorf("%s is sensitive", name)
		}
	}
}

// Options add names, and keep identifiers that look like secrets.
func TestOptions(t *testing.T) {
	o := redact.Options{Fields: []string{"codeName"}, Keep: []string{"req_id", "api_key"}}
	wrap := func(h slog.Handler) slog.Handler { return redact.Handler(h, o) }
	reqID := "reqID"
	const opaque = "wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY12"
	got, _ := both(wrap, func(l *slog.Logger) {
		l.LogAttrs(t.Context(), 0, "m", slog.String("code_name", "x"), slog.String(reqID, opaque), slog.String("other", opaque),
			slog.String("req_id", "bob@example.com"), slog.String("api_key", opaque))
	})
	want := `{"msg":"m","code_name":"[REDACTED]","reqID":"` + opaque + `","other":"[TOKEN]","req_id":"[EMAIL]","api_key":"[REDACTED]"}`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	inner := slog.NewJSONHandler(new(bytes.Buffer), nil)
	h := redact.Handler(inner, o)
	if redact.Handler(h, o) != h {
		t.Error("a handler that redacts alike was wrapped once more")
	}
	if redact.Handler(h, redact.Options{}) == h {
		t.Error("a handler that redacts by other options was not wrapped")
	}
}

type ring struct {
	Name string
	Next *ring
}

type tree struct {
	Mail     string
	Children []*tree
	Parent   *tree
}

// The cost of a record is bounded for any contents, and unsearched parts are not shown.
func TestBounds(t *testing.T) {
	circle := &ring{Name: "a"}
	circle.Next = &ring{"b", circle}
	loop := map[string]any{"mail": "x"}
	loop["loop"] = loop
	list := []any{1, "bob@example.com"}
	list[0] = list
	root := &tree{Mail: "x"}
	root.Children = []*tree{{Mail: "y", Parent: root}}
	var deep any = "bob@example.com"
	for range 10000 {
		deep = []any{deep}
	}
	// Of 2^60 paths through it few are taken.
	dag := &[2]any{"bob@example.com", nil}
	for range 60 {
		dag = &[2]any{dag, dag}
	}
	wide := make([]string, 100000)
	many := map[string]string{}
	for i := range wide {
		wide[i] = "bob@example.com"
		many[fmt.Sprint("k", i)] = "bob@example.com"
	}
	group := make([]any, 0, 10000)
	for i := range 10000 {
		group = append(group, slog.String(fmt.Sprint("k", i), "bob@example.com"))
	}
	for name, v := range map[string]any{
		"circle": circle, "loop": loop, "list": list, "tree": root, "deep": deep, "dag": dag, "wide": wide, "many": many,
		"text": strings.Repeat("bob@example.com ", 100000), "bytes": bytes.Repeat([]byte("bob@example.com "), 100000),
		"raw": json.RawMessage(`"` + strings.Repeat("bob@example.com ", 100000) + `"`), "group": slog.GroupValue(slog.Group("g", group...)),
		"deep JSON": json.RawMessage(strings.Repeat("[", 5000) + `"bob@example.com"` + strings.Repeat("]", 5000)),
	} {
		asJSON, asText := both(redacted, func(l *slog.Logger) { l.LogAttrs(t.Context(), 0, "m", slog.Any("v", v)) })
		for _, s := range []string{asJSON, asText} {
			if strings.Contains(s, "bob@") || !strings.Contains(s, redact.Cut) {
				t.Errorf("%s: shown or not cut: %.200s", name, s)
			}
			if len(s) > 1<<19 {
				t.Errorf("%s: %d bytes", name, len(s))
			}
		}
		if !json.Valid([]byte(asJSON)) || strings.Contains(asJSON, "!ERROR") {
			t.Errorf("%s: %.200s", name, asJSON)
		}
	}
}

// Redacting redacted output changes nothing, and neither does a second handler behind
// the first, for any record.
func TestTwiceIsOnce(t *testing.T) {
	texts := make([]string, 0, len(found)+len(innocent))
	for _, c := range found {
		texts = append(texts, c.in)
	}
	texts = append(texts, innocent...)
	names := strings.Fields("a text email token address user_data n tokens req_id password")
	var anything func(*rapid.T, int) any
	anything = func(t *rapid.T, depth int) any {
		kind := rapid.IntRange(0, 6).Draw(t, "kind")
		if depth == 0 {
			kind %= 4
		}
		switch kind {
		case 0:
			return rapid.SampledFrom(texts).Draw(t, "text")
		case 1:
			return rapid.Int().Draw(t, "number")
		case 2:
			return errors.New(rapid.SampledFrom(texts).Draw(t, "error"))
		case 3:
			return account{Name: rapid.SampledFrom(texts).Draw(t, "name"), Password: "x"}
		case 4:
			return []any{anything(t, depth-1), anything(t, depth-1)}
		default:
			m := map[string]any{}
			for _, name := range rapid.SliceOfN(rapid.SampledFrom(names), 0, 3).Draw(t, "names") {
				m[name] = anything(t, depth-1)
			}
			return m
		}
	}
	other := redact.Options{Fields: []string{"nothing"}} // by other options, so that it is wrapped
	rapid.Check(t, func(t *rapid.T) {
		v, name, message := anything(t, 3), rapid.SampledFrom(names).Draw(t, "name"), rapid.SampledFrom(texts).Draw(t, "message")
		log := func(l *slog.Logger) {
			l.LogAttrs(context.Background(), 0, message, slog.Any(name, v)) //nolint:sloglint // messages are redacted too
		}
		onceJSON, onceText := both(redacted, log)
		twiceJSON, twiceText := both(func(h slog.Handler) slog.Handler { return redact.Handler(redacted(h), other) }, log)
		if twiceJSON != onceJSON || twiceText != onceText {
			t.Fatalf("once\n%s\n%s\ntwice\n%s\n%s", onceJSON, onceText, twiceJSON, twiceText)
		}
	})
}
