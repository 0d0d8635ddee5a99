package main

import (
	"context"
	"errors"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/agents/generate"
	"github.com/sajou-dev/sajou-go/agents/view"
)

// clerkGenerates records the session vault. In it the clerk then generates from a
// prompt to which the program has added the code.
func clerkGenerates(ctx context.Context, store string, cfg sajou.Config) (err error) {
	if err := recordVault(ctx, store); err != nil {
		return err
	}
	eng, err := sajou.Open(store, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, eng.Close()) }()
	ses, err := eng.Session(ctx, "vault")
	if err != nil {
		return err
	}
	clerk, err := ses.Agents().Agent(ctx, "clerk")
	if err != nil {
		return err
	}
	defer clerk.Close()
	_, err = generate.Run(ctx, clerk, wordless{}, generate.Request{ReqID: "answer", Prompt: func(view.View) generate.Prompt {
		return generate.Prompt{Messages: []generate.ChatMessage{{Role: "system", Content: `the code is "XK-4711"`}}}
	}})
	return err
}

type wordless struct{}

func (wordless) Generate(context.Context, generate.Prompt) iter.Seq2[string, error] {
	return func(func(string, error) bool) {}
}

// With a prompt that is not recorded the answer proves nothing; a recorded prompt is
// searched.
func TestQuestionsOfPrompts(t *testing.T) {
	for _, tc := range []struct {
		recorded bool
		args     string
		code     int
		stdout   string
	}{
		{false, "leak clerk --value XK-4711", 3, "not covered: 1 prompt of which only the digest is recorded, first in entry 20\n"},
		{false, "leak clerk --value XK-4711 -o json", 3, `"prompt_digest"`},
		{false, "leak clerk --value XK-4711 --all -o jsonl", 3, `"proven":false`},
		{false, "leak clerk /visible_entities/vault/code", 3, "not proven that clerk was never sent /visible_entities/vault/code"},
		{false, "leak clerk --value swordfish", 1, "clerk was sent"},
		{false, "leak scout --value no-such-secret", 0, "scout was never sent"},
		{false, "first-known clerk --value XK-4711", 3, "not covered: 1 prompt"},
		{false, "first-known clerk /visible_entities/vault/code", 3, "not covered: 1 prompt"},
		{false, "first-known clerk /visible_entities/vault/code --is 3", 3, "never knew"},
		{false, "knows clerk --value XK-4711", 3, "not covered: 1 prompt"},
		{false, "knows clerk --value XK-4711 --at 18", 1, "never sent"},
		{false, "knows clerk --path /visible_entities/vault/code", 3, "not covered: 1 prompt"},
		{true, "leak clerk --value XK-4711", 1, "first  prompt /prompt/0/content (value)  entry 20 at"},
		{true, "leak clerk --value no-such-secret", 0, "1 prompt,"},
		{true, "leak clerk /visible_entities/vault/locked", 1, "first  view /visible_entities/vault"},
		{true, "first-known clerk --value XK-4711", 0, "prompt /prompt/0/content (value)  entry 20"},
		{true, "first-known clerk --value XK-4711 -o json", 0, `"route": "prompt"`},
		{true, "first-known scout --value swordfish", 0, "00:02.070  view"},
		{true, "first-known clerk --value no-such-secret", 1, "never sent"},
		{true, "knows clerk --value XK-4711", 0, "prompt /prompt/0/content"},
		{true, "knows clerk --value XK-4711 --at 18", 1, "never sent"},
		{true, "knows scout --value swordfish --at 12+49ms", 1, "never sent"},
		{true, "knows scout --value swordfish --at 12+50ms", 0, "00:02.070  view"},
		{true, "knows scout --path lever", 4, ""},
		{true, "knows clerk --value x --path y", 2, ""},
		{true, "knows clerk --value=", 2, ""},
		{true, "first-known clerk --value x --all", 2, ""},
		{true, "leak clerk --value=", 2, ""},
		{true, "leak clerk vualt", 4, ""},
		{true, "leak clerk /visible_entities/vault/cdoe", 4, ""},
	} {
		store := filepath.Join(t.TempDir(), "store")
		require.NoError(t, clerkGenerates(t.Context(), store, sajou.Config{RecordPrompts: tc.recorded}))
		args := append([]string{"-C", store}, strings.Fields(tc.args)...)
		if r := sajouReplay(t.Context(), t, nil, args...); r.code != tc.code || !strings.Contains(r.stdout, tc.stdout) {
			t.Errorf("%s, recorded %v: exit %d, want %d and %q\n%s%s", tc.args, tc.recorded, r.code, tc.code, tc.stdout, r.stdout, r.stderr)
		}
	}
}

// Queries of a session that was recorded under other rules exit with 3 and give the
// reason, with every answer.
func TestQuestionsOfOtherRules(t *testing.T) {
	store := filepath.Join(t.TempDir(), "store")
	require.NoError(t, os.CopyFS(store, os.DirFS(filepath.Join("..", "..", "testdata", "stores", "ca1d511", "agents"))))
	for args, code := range map[string]int{
		"knows A conversation":                               3,
		"knows A conversation --path B":                      3,
		"knows A conversation --path /visible_entities/B/no": 4,
		"knows A conversation --value Wait":                  3,
		"first-known A B conversation":                       3,
		"first-known A B conversation --all":                 3,
		"first-known A B conversation --is 3":                3,
		"first-known A conversation --value Wait":            3,
		"leak A B conversation":                              3,
		"leak A conversation --value no-such-secret":         3,
		"leak A conversation --value Wait --all":             3,
		"why-cancelled A story conversation":                 3,
		"why-cancelled A none conversation":                  4,
		"why-rejected A story conversation":                  3,
		"why-rejected A none conversation":                   3,
		"why-rejected A none conversation --at 99":           4,
		"knows nobody conversation":                          4,
	} {
		r := sajouReplay(t.Context(), t, nil, append([]string{"-C", store}, strings.Fields(args)...)...)
		if reason := strings.Contains(r.stdout+r.stderr, "recorded under rules 0"); r.code != code || reason != (code == 3) {
			t.Errorf("%s: exit %d, want %d\n%s%s", args, r.code, code, r.stdout, r.stderr)
		}
	}
}
