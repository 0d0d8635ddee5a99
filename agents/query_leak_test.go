package agents_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tinylib/msgp/msgp"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/jsondoc"
	"github.com/sajou-dev/sajou-go/agents/query"
	"github.com/sajou-dev/sajou-go/signal"
)

// FuzzLeakWatch goes over records of any content: whatever a log holds, a question
// about it ends.
func FuzzLeakWatch(f *testing.F) {
	for _, seed := range []string{
		`{"agent_id":"a","req_id":"r","code":"FORBIDDEN","reason":"x","problems":[{"path":"/p","reason":"secret"},3]}`,
		`{"agent_id":"a","req_id":"r","prompted":true,"context_seq":1,"context_digest":""}`,
		`{"agent_id":"a","req_id":"r","finish":"stop","prompt_sha256":"","prompt":[{"role":"user","content":"\\u00e9\\\"secret"}]}`,
		`{"agent_id":"a","req_id":"r","reason":"secret"}`,
		`{"uuid":"u","global_seq":1,"kind":"EpisodeStep","sim_time":0,"source_id":"s","schema_version":"1.0.0","payload":{"agents":[{"agent":"a"},7]}}`,
	} {
		f.Add(seed, uint8(0), "secret")
	}
	words := []string{agents.WordOutcome, agents.WordToken, agents.WordGenerated, agents.WordCancel, agents.WordEffect, agents.WordLeft, agents.WordAgent, "none"}
	f.Fuzz(func(t *testing.T, text string, word uint8, secret string) {
		v, err := signal.ParseValue([]byte(text))
		if err != nil {
			return
		}
		for _, q := range []query.LeakQuery{{Text: secret}, {Entity: secret}, {Path: jsondoc.Pointer{"visible_entities", secret, "x"}}, {Path: jsondoc.Pointer{"visible_relationships", secret, "0"}}, {Path: jsondoc.Pointer{}}} {
			c, err := agents.NewCore(agents.Options{})
			if err != nil {
				t.Fatal(err)
			}
			w := query.NewLeakWatch("a", q)
			step := func(entry uint64, r signal.Record) {
				s := query.Fold(c, entry, time.Duration(entry), r)
				w.Apply(c, &s)
				w.Guidance(entry, r.Value)
			}
			step(1, signal.Record{Word: agents.WordAgent, Value: parse(t, `{"agent_id":"a","permissions":["submit_intent"]}`)})
			step(2, signal.Record{Word: words[int(word)%len(words)], Value: v})
			for _, g := range w.Unsearched() {
				if g.Count == 0 || !strings.Contains(g.String(), "first in entry") {
					t.Errorf("gap %+v: %s", g, g)
				}
			}
		}
	})
}

// FuzzUnquoted holds the search below escapes against JSON itself: a text is found in
// every JSON text that says it, however deep that is quoted.
func FuzzUnquoted(f *testing.F) {
	f.Add("say \"friend\" \\ é 🔑\n\t\x00<b>", uint8(3))
	f.Fuzz(func(t *testing.T, text string, depth uint8) {
		text = strings.ToValidUTF8(text, "?")
		if text == "" {
			return
		}
		quoted := text
		for range depth % 6 {
			quoted = "x" + string(text0(quoted).AppendJSON(nil)) + "y"
		}
		c, err := agents.NewCore(agents.Options{})
		if err != nil {
			t.Fatal(err)
		}
		w := query.NewLeakWatch("a", query.LeakQuery{Text: text})
		s := query.Fold(c, 1, 0, signal.Record{Word: agents.WordOutcome, Value: object(t, "agent_id", "a", "reason", quoted)})
		if found := w.Apply(c, &s); len(found) != 1 || found[0].Place != "/reason" {
			t.Errorf("%q in %q: %v", text, quoted, found)
		}
	})
}

// TestBrokenEscapes shows that what stands around a broken escape is found all the same.
func TestBrokenEscapes(t *testing.T) {
	for _, quoted := range []string{
		`\ud83dsecret`, `\ud83d\ude00secret`, `\udc00secret`, `\u12secret`, `\usecret`, `\xsecret`, `secret\`, `\ud83d\u0073ecret`, `\u0073ecret`, `\u0073\u0065\u0063ret`,
		`\ud83d\ud83d\ude00secret`, `\\u0073ecret`,
	} {
		c, err := agents.NewCore(agents.Options{})
		require.NoError(t, err)
		w := query.NewLeakWatch("a", query.LeakQuery{Text: "secret"})
		s := query.Fold(c, 1, 0, signal.Record{Word: agents.WordOutcome, Value: object(t, "agent_id", "a", "reason", quoted)})
		require.Len(t, w.Apply(c, &s), 1, quoted)
	}
}

// text0 returns a text as a value.
func text0(s string) signal.Value { return msgp.AppendString(nil, s) }

// object returns an object of texts.
func object(t *testing.T, pairs ...string) signal.Value {
	t.Helper()
	text := "{"
	for i := 0; i < len(pairs); i += 2 {
		if i > 0 {
			text += ","
		}
		text += string(text0(pairs[i]).AppendJSON(nil)) + ":" + string(text0(pairs[i+1]).AppendJSON(nil))
	}
	return parse(t, text+"}")
}
