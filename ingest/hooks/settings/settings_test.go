package settings_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/ingest/hooks/settings"
	"github.com/sajou-dev/sajou-go/internal/golden"
)

var command = settings.HookCommand{Command: "/opt/sajou hook --split 'day' && true", Timeout: 5}

func Example() {
	text, err := settings.Install([]byte(`{"model": "opus"}`), settings.HookCommand{Command: "sajou-hook", Timeout: 5})
	if err != nil {
		fmt.Println(err)
		return
	}
	installed, _ := settings.Installed(text)
	fmt.Println(len(installed), installed["Stop"])
	text, err = settings.Remove(text)
	fmt.Println(string(text), err)
	// Output:
	// 9 sajou-hook
	// {"model": "opus"} <nil>
}

// Stories: what each text becomes.
func TestStories(t *testing.T) {
	golden.Tell(t, "testdata/*.txtar", func(t *testing.T, files map[string]string) string {
		text := files["settings.json"]
		out, err := settings.Install([]byte(text), command)
		if err != nil {
			require.ErrorIs(t, err, settings.ErrSettings)
			return err.Error() + "\n"
		}
		return strings.ReplaceAll(string(out), "\r", "<CR>")
	})
}

func decode(t require.TestingT, text []byte) map[string]any {
	var v map[string]any
	require.NoError(t, json.Unmarshal(text, &v))
	return v
}

// object draws settings as people have them, with hooks of others.
func object(t *rapid.T) []byte {
	v := map[string]any{}
	for i := range rapid.IntRange(0, 3).Draw(t, "members") {
		v[fmt.Sprint("m", i, rapid.SampledFrom([]string{"", "\"", "\\", "ü", "{}", "hooks"}).Draw(t, "name"))] = rapid.SampledFrom([]any{1.5, "a\"}b", nil, []any{}, []any{"x", map[string]any{}}, map[string]any{"hooks": 1}}).Draw(t, "value")
	}
	if rapid.Bool().Draw(t, "hooks") {
		hooks := map[string]any{}
		for _, event := range rapid.SliceOfDistinct(rapid.SampledFrom([]string{"Stop", "PreToolUse", "PreCompact"}), rapid.ID[string]).Draw(t, "events") {
			list := []any{}
			for range rapid.IntRange(0, 2).Draw(t, "groups") {
				list = append(list, map[string]any{"matcher": "Bash", "hooks": []any{map[string]any{"type": "command", "command": "other"}}})
			}
			hooks[event] = list
		}
		v["hooks"] = hooks
	}
	var text []byte
	switch rapid.IntRange(0, 2).Draw(t, "form") {
	case 0:
		text, _ = json.Marshal(v)
	case 1:
		text, _ = json.MarshalIndent(v, "", "\t")
	default:
		text, _ = json.MarshalIndent(v, "", "    ")
		text = append([]byte(strings.ReplaceAll(string(text), "\n", "\r\n")), "\r\n"...)
	}
	return text
}

// Whatever is there is kept; a second installation changes nothing; the removal gives the text
// from before.
func TestInstallAndRemove(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := object(t)
		once, err := settings.Install(text, command)
		require.NoError(t, err)
		installed, err := settings.Installed(once)
		require.NoError(t, err)
		require.Len(t, installed, len(settings.Events()))
		for _, event := range settings.Events() {
			require.Equal(t, command.Command, installed[event])
		}
		twice, err := settings.Install(once, command)
		require.NoError(t, err)
		require.Equal(t, string(once), string(twice))

		other := settings.HookCommand{Command: "another", Async: true}
		changed, err := settings.Install(once, other)
		require.NoError(t, err)
		back, err := settings.Install(changed, command)
		require.NoError(t, err)
		require.Equal(t, decode(t, once), decode(t, back))

		removed, err := settings.Remove(changed)
		require.NoError(t, err)
		// An event that had no hooks goes with ours.
		want := decode(t, text)
		if hooks, ok := want["hooks"].(map[string]any); ok {
			for event, list := range hooks {
				if len(list.([]any)) == 0 && event != "PreCompact" {
					delete(hooks, event)
				}
			}
			if len(hooks) == 0 {
				delete(want, "hooks")
			}
		}
		require.Equal(t, want, decode(t, removed))
		if hooks, _ := decode(t, text)["hooks"].(map[string]any); len(want) > 0 && hooks == nil {
			require.Equal(t, string(text), string(removed))
		}
	})
}

func TestHostileSettings(t *testing.T) {
	for _, text := range []string{
		"{", "[]", "null", `"hooks"`, "{}{}", "{} x", `{"a":1,}`, "// comment\n{}", "\xef\xbb\xbf{}", `{"hooks":[]}`, `{"hooks":null}`,
		`{"hooks":{"Stop":{}}}`, `{"hooks":{"Stop":[1]}}`, `{"hooks":{"Stop":[{}]}}`, `{"hooks":{"Stop":[{"hooks":{}}]}}`,
		`{"a":1,"a":2}`, `{"hooks":{},"\u0068ooks":{}}`, `{"a":` + strings.Repeat("[", 500) + strings.Repeat("]", 500) + "}",
		`{"a":"` + strings.Repeat("x", settings.MaxText) + `"}`, strings.Repeat("[", 1<<20),
	} {
		_, err := settings.Install([]byte(text), command)
		require.ErrorIs(t, err, settings.ErrSettings, text[:min(len(text), 60)])
		_, err = settings.Remove([]byte(text))
		require.ErrorIs(t, err, settings.ErrSettings)
		_, err = settings.Installed([]byte(text))
		require.ErrorIs(t, err, settings.ErrSettings)
	}
	_, err := settings.Install([]byte("\xef\xbb\xbf{}"), command)
	require.ErrorContains(t, err, "without a byte order mark")
	for _, text := range []string{"", " \n"} {
		out, err := settings.Install([]byte(text), command)
		require.NoError(t, err)
		assert.True(t, strings.HasSuffix(string(out), "}\n"))
		out, err = settings.Remove([]byte(text))
		require.NoError(t, err)
		assert.Equal(t, text, string(out))
	}
}

func FuzzInstall(f *testing.F) {
	f.Add([]byte(`{"hooks": {"Stop": [{"matcher": "", "hooks": [{"type": "command", "command": "x", "statusMessage": "sajou-hook"}]}]}}`))
	f.Add([]byte("{\r\n\t\"a\": [ ], \"hooks\": { }\r\n}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		out, err := settings.Install(text, command)
		if err != nil {
			return
		}
		again, err := settings.Install(out, command)
		require.NoError(t, err)
		require.Equal(t, string(out), string(again))
		require.True(t, json.Valid(out))
		_, err = settings.Remove(out)
		require.NoError(t, err)
	})
}
