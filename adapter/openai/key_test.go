package openai_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/adapter/openai"
	"github.com/sajou-dev/sajou-go/agents"
)

// noKey checks that neither an error nor the errors that it wraps contain the key.
func noKey(t *testing.T, err error) {
	t.Helper()
	var check func(error)
	check = func(err error) {
		if err == nil {
			return
		}
		text := fmt.Sprintf("%v %+v %#v %s", err, err, err, err.Error())
		quoted, _ := json.Marshal(secret)
		for _, form := range []string{secret, url.QueryEscape(secret), strings.Trim(string(quoted), `"`), strings.ReplaceAll(secret, "/", `\/`)} {
			if strings.Contains(text, form) {
				t.Errorf("the key is in %s", text)
			}
		}
		if e, ok := errors.AsType[*openai.Error](err); ok {
			for _, wrapped := range e.Unwrap() {
				check(wrapped)
			}
			return
		}
		check(errors.Unwrap(err))
	}
	check(err)
}

// No value that holds a key prints it.
func TestKeyIsNotPrinted(t *testing.T) {
	key := openai.NewKey(secret)
	cfg := openai.Config{BaseURL: "http://127.0.0.1:1/v1", Model: "m", APIKey: key}
	client, err := openai.New(cfg)
	require.NoError(t, err)
	defer client.Close()
	type app struct {
		cfg    openai.Config
		key    *openai.Key
		client *openai.Client
	}
	for _, v := range []any{key, &key, cfg, &cfg, client, app{cfg, &key, client}, []openai.Key{key}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x"} {
			if text := fmt.Sprintf(verb, v); strings.Contains(text, secret) || strings.Contains(text, fmt.Sprintf("%x", secret)) {
				t.Errorf("%s of %T shows the key", verb, v)
			}
		}
	}
	if text, err := json.Marshal(struct{ Key any }{key}); err != nil || string(text) != `{"Key":{}}` {
		t.Errorf("JSON %s, %v", text, err)
	}
	if got := fmt.Sprint(key, " ", openai.NewKey("")); got != "[redacted] no key" {
		t.Errorf("%q", got)
	}
}

// A key that a server repeats, in any encoding and cut anywhere, is in no error.
func TestKeyIsRedacted(t *testing.T) {
	quoted, _ := json.Marshal(map[string]any{"error": map[string]any{"message": "bad key " + secret, "code": 401}})
	for name, handle := range map[string]func(w http.ResponseWriter, r *http.Request){
		"a refusal": func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, "bad: "+r.Header.Get("Authorization"), http.StatusUnauthorized)
		},
		"its JSON": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, string(quoted), http.StatusForbidden) },
		"other JSON": func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, strings.ReplaceAll(secret, "/", `\/`), http.StatusForbidden)
		},
		"a query": func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "?key="+url.QueryEscape(secret), http.StatusNotFound)
		},
		"the stream":   func(w http.ResponseWriter, _ *http.Request) { send(w, "data: %s\n\n", quoted) },
		"an object":    func(w http.ResponseWriter, _ *http.Request) { send(w, "%s", quoted) },
		"a login page": func(w http.ResponseWriter, _ *http.Request) { send(w, "<p>%s", secret) },
		"a header": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", secret)
			w.WriteHeader(http.StatusBadRequest)
		},
		"a redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://"+url.PathEscape(secret)+"/", http.StatusTemporaryRedirect)
		},
		"no status line": func(w http.ResponseWriter, _ *http.Request) {
			c := hijack(w)
			fmt.Fprintf(c, "HTTP/1.1 %s\r\n\r\n", secret)
			_ = c.Close()
		},
	} {
		p := serve(t, nil, func(_ *peer, _ int, w http.ResponseWriter, r *http.Request) { handle(w, r) })
		_, err := tokensOf(t.Context(), p, prompt)
		assert.Errorf(t, err, "%s: no error", name)
		noKey(t, err)
	}
	// The excerpt of a long text may end within the key.
	long := strings.Repeat("0123456789abcdef/", 20)
	for n := range 2 * len(long) {
		text := strings.Repeat(".", n) + strings.Repeat(long, 20)
		p := serve(t, func(c *openai.Config) { c.APIKey = openai.NewKey(long) }, func(_ *peer, _ int, w http.ResponseWriter, _ *http.Request) {
			http.Error(w, text, http.StatusBadRequest)
		})
		_, err := tokensOf(t.Context(), p, prompt)
		e, ok := errors.AsType[*openai.Error](err)
		if !ok || len(e.Body) > 512 || strings.Contains(e.Body, long[:5]) {
			t.Fatalf("error %v", err)
		}
	}
}

// The URL is in no error either: some servers take the key in the query.
func TestURLIsNotPrinted(t *testing.T) {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	if err := l.Close(); err != nil { // the address now refuses connections
		t.Fatal(err)
	}
	clk := newClock()
	client, err := openai.New(openai.Config{
		BaseURL: "http://" + l.Addr().String() + "?key=" + secret, Model: "m",
		FirstByte: firstByte, Idle: idle, Timeout: whole, Now: clk.Now, AfterFunc: clk.AfterFunc,
	})
	require.NoError(t, err)
	defer client.Close()
	_, err = tokensOf(t.Context(), client, prompt)
	if !errors.Is(err, openai.ErrUnreachable) || !errors.Is(err, agents.ErrGenerationFailed) {
		t.Errorf("error %v", err)
	}
	noKey(t, err)
}
