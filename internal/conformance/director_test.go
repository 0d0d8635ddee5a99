package conformance

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// scenario is a file about the director; members replaces parts of it.
func scenario(members map[string]string) string {
	parts := map[string]string{
		"id": `"x"`, "initial": `{"flags": ["met"]}`,
		"episode": `{"beats": [{"id": "a", "character_instruction": "Say it.", "target_turn": 1, "deadline_turn": 2, "detection_type": "keyword",
			"detection_criteria": "tea", "choice_point": {"id": "p", "choices": [{"id": "o", "label": "Oh.", "sets_flag": "f"}, {"id": "n", "label": "No."}]}}]}`,
		"script":   `[{"turn": 1, "user": "a", "response": "Tea?"}, {"choose": {"choice_point_id": "p", "choice_id": "o"}}]`,
		"expected": `[{"turn": 1, "detected": ["a"], "flags": ["met"]}, {"flag_set": "f", "flags": ["f", "met"]}]`,
	}
	for name, text := range members {
		parts[name] = text
	}
	var list []string
	for name, text := range parts {
		list = append(list, fmt.Sprintf("%q: %s", name, text))
	}
	return "{" + strings.Join(list, ",\n") + "}"
}

// verdict is the result of a file: "pass", "fail: …", or "not applicable: …".
func verdict(text string) string {
	c := playedCase("x", []byte(text))
	switch err := c.Judge(); {
	case errors.Is(err, ErrInapplicable):
		return "not applicable: " + strings.Replace(err.Error(), "not applicable: ", "", 1)
	case err != nil:
		return "fail: " + err.Error()
	default:
		return "pass"
	}
}

// The harness does not guess at unknown members or ignore them: each line is a
// change of one scenario and its verdict.
func TestDirectorHarness(t *testing.T) {
	const step = `{"choose": {"choice_point_id": "p", "choice_id": "o"}}`
	turn := func(members string) string { return `[{"turn": 1, "response": "Tea?"` + members + `}, ` + step + `]` }
	expect := func(first, second string) string { return "[" + first + ", " + second + "]" }
	beats := func(members string) string {
		return `{"beats": [{"id": "a", "character_instruction": "Say it.", "target_turn": 1, ` + members + `}]}`
	}
	for _, c := range []struct{ member, text, want string }{
		{"note", `"a remark"`, "pass"},
		{"initial", `null`, "fail: expected[0]: flags: want"},
		{"initial", `{"flags": {"met": true, "gone": false}}`, "pass"},
		{"initial", `{"flags": "met"}`, "not applicable: initial.flags is not a list of names"},
		{"initial", `{"flags": ["met"], "turn": 3}`, `not applicable: initial has a member "turn"`},
		{"kind", `"director"`, "pass"},
		{"kind", `"rehearsal"`, `not applicable: no harness for the kind "rehearsal"`},
		{"setup", `{}`, `not applicable: the file has a member "setup"`},
		{"setup", `null`, "pass"},
		{"script", `[]`, "not applicable: 0 steps and 2 expectations"},
		{"script", `[` + step + `]`, "not applicable: 1 steps and 2 expectations"},
		{"script", `{}`, "not applicable: 0 steps"},
		{"script", `[7, ` + step + `]`, "not applicable: script[0]: a step is not an object"},
		{"script", `[{"wait": 5}, ` + step + `]`, `not applicable: script[0]: a step has a member "wait"`},
		{"script", `[{"user": "a"}, ` + step + `]`, "not applicable: script[0]: it is neither a turn nor a choice"},
		{"script", `[{"turn": 1.5}, ` + step + `]`, "not applicable: script[0]: the turn is not a whole number"},
		{"script", `[{"turn": "1"}, ` + step + `]`, "not applicable: script[0]: the turn is not a whole number"},
		{"script", `[{"turn": 1e300}, ` + step + `]`, "not applicable: script[0]: the turn is not a whole number"},
		{"script", `[{"turn": 0}, ` + step + `]`, "fail: expected[0]: director: not the turn"},
		{"script", `[{"turn": 1.0, "response": "Tea?"}, {"choose": {"choice_point_id": "p"}}]`, "not applicable: script[1]: it does not say what is chosen"},
		{"script", `[{"turn": 1.0, "response": "Tea?"}, {"choose": {"choice_point_id": "p", "choice_id": "x"}}]`, "fail: expected[1]: director: not found"},
		{"script", turn(`, "user": 7`), "not applicable: script[0]: user is not a string"},
		{"script", turn(`, "user": null, "verdicts": null`), "pass"},
		{"script", turn(`, "verdicts": {"a": true}, "verdict_text": {"a": "NO"}`), "pass"},
		{"script", turn(`, "verdicts": {"a": 1}`), "not applicable: script[0]: verdicts.a is not an answer"},
		{"script", turn(`, "verdicts": [true]`), "not applicable: script[0]: verdicts is not an object"},
		{"script", turn(`, "user_from_choice": true`), "fail: expected[0]: turn 1 should be answered by a choice"},
		{"script", turn(`, "user_from_choice": "yes"`), "not applicable: script[0]: user_from_choice is neither"},
		{"expected", expect(`{}`, `{}`), "pass"},
		{"expected", expect(`{"turn": 1.0}`, `{}`), "pass"},
		{"expected", expect(`{"mood": null}`, `{}`), "pass"},
		{"expected", expect(`{"mood": "glad"}`, `{}`), `not applicable: expected[0] has a member "mood"`},
		{"expected", expect(`{"detected": null}`, `{}`), "fail: expected[0]: detected: want"},
		{"expected", expect(`{"detected": "a"}`, `{}`), "fail: expected[0]: detected: want"},
		{"expected", expect(`{"flags": {"met": true}}`, `{}`), "pass"},
		{"expected", expect(`{"flags": {"met": false}}`, `{}`), "fail: expected[0]: flags: want"},
		{"expected", expect(`{"statuses": {"a": ["pending", "detected"]}}`, `{}`), "pass"},
		{"expected", expect(`{"statuses": {"a": ["pending", "completed"]}}`, `{}`), "fail: expected[0]: statuses.a: want"},
		{"expected", expect(`{"statuses": {"b": "pending"}}`, `{}`), "fail: expected[0]: statuses.b: want"},
		{"expected", expect(`{"statuses": ["detected"]}`, `{}`), "fail: expected[0]: statuses: want"},
		{"expected", expect(`{"choice_point": null}`, `{}`), "fail: expected[0]: choice_point: want"},
		{"expected", expect(`{"choice_point": "p"}`, `{}`), "fail: expected[0]: choice_point: want"},
		{"expected", expect(`{"choice_point": {"choices": [{"id": "o"}, {"id": "n", "sets_flag": null}]}}`, `{}`), "pass"},
		{"expected", expect(`{"choice_point": {"choices": [{"id": "n"}, {"id": "o"}]}}`, `{}`), "fail: expected[0]: choice_point.choices[0].id: want"},
		{"expected", expect(`{"choice_point": {"choices": [{"id": "o"}]}}`, `{}`), "fail: expected[0]: choice_point.choices: want"},
		{"expected", expect(`{"choice_point": {"mode_not": "message_replacement"}}`, `{}`), "fail: expected[0]: choice_point.mode_not: want"},
		{"expected", expect(`{"choice_point": {"mode_not": 7}}`, `{}`), "fail: expected[0]: choice_point.mode_not: want"},
		{"expected", expect(`{"directive": null}`, `{}`), "fail: expected[0]: directive: want"},
		{"expected", expect(`{"detected_at_turn": null}`, `{}`), "fail: expected[0]: detected_at_turn"},
		{"expected", expect(`{"detected_at_turn": {}}`, `{}`), "fail: expected[0]: detected_at_turn.a: want"},
		{"expected", expect(`{"detected_at_turn": {"a": 1.0}, "delivered_at_turn": {"a": 1}}`, `{}`), "pass"},
		{"expected", expect(`{"prompt_contains": "Say it."}`, `{}`), "pass"},
		{"expected", expect(`{"prompt_contains": 7}`, `{}`), "fail: expected[0]: prompt_contains: 7"},
		{"expected", expect(`{"prompt_contains": ["Say it.", "Sing it."]}`, `{}`), `fail: expected[0]: prompt_contains: "Sing it."`},
		{"expected", expect(`{"prompt_not_contains": ["Say it."]}`, `{}`), `fail: expected[0]: prompt_not_contains: "Say it."`},
		{"expected", expect(`{"error": "NOT_OPEN"}`, `{}`), "fail: expected[0]: error: want"},
		{"expected", expect(`{"error": null}`, `{"message": {"content": "Oh.", "metadata": {"is_choice": true}}}`), "pass"},
		{"expected", expect(`{}`, `{"message": {"content": "Oh."}, "flag_set": null}`), "fail: expected[1]: flag_set: want"},
		{"expected", expect(`{}`, `{"message": {"role": "character"}}`), "fail: expected[1]: message.role: want"},
		{"episode", beats(`"detection_type": "keyword", "detection_criteria": "tea", "mood": 1`), `not applicable: the episode: a beat has no member "mood"`},
		{"episode", beats(`"detection_type": "keyword", "detection_criteria": "tea", "comment": "x"`), "fail: expected[1]: director: not found"},
		{"episode", beats(`"detection_type": "keyword", "detection_criteria": ","`), "fail: episode:1:"},
		{"episode", `null`, "not applicable: the episode is not an object"},
		{"episode", `{"beats": 7}`, "fail: episode:1:"},
	} {
		if got := verdict(scenario(map[string]string{c.member: c.text})); !strings.HasPrefix(got, c.want) || c.want == "pass" && got != "pass" {
			t.Errorf("%s %s: %s, want %s", c.member, c.text, got, c.want)
		}
	}
	for text, want := range map[string]string{"": "fail", "[]": "not applicable", "{": "fail", "{}": "not applicable"} {
		if got := verdict(text); !strings.HasPrefix(got, want) {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// Every value that a scenario expects counts: with another one in its place the
// scenario fails. One value of each kind of place and group of files is tried.
func TestDirectorExpectationsCount(t *testing.T) {
	files, err := filepath.Glob("../../testdata/director/*.json")
	if err != nil || len(files) < 100 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	tried := map[string]bool{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		var all map[string]any
		require.NoError(t, json.Unmarshal(data, &all))
		group, _, _ := strings.Cut(filepath.Base(file), "-")
		var alter func(place string, v any, set func(any))
		alter = func(place string, v any, set func(any)) {
			switch v := v.(type) {
			case map[string]any:
				for name, m := range v {
					below := place + "." + name
					if strings.HasSuffix(place, "statuses") || strings.HasSuffix(place, "_at_turn") {
						below = place
					}
					// What is allowed or forbidden is not one value.
					if _, allowed := m.([]any); allowed && strings.HasSuffix(place, "statuses") || name == "mode_not" || name == "prompt_not_contains" {
						continue
					}
					alter(below, m, func(other any) { v[name] = other })
				}
			case []any:
				for i, m := range v {
					alter(place, m, func(other any) { v[i] = other })
				}
			case nil:
			default:
				if tried[group+place] {
					return
				}
				tried[group+place] = true
				set("something else")
				text, err := json.Marshal(all)
				set(v)
				if got := verdict(string(text)); err != nil || !strings.HasPrefix(got, "fail: ") {
					t.Errorf("%s: %s is something else: %s", filepath.Base(file), place, got)
				}
			}
		}
		alter("", all["expected"], nil)
	}
	if len(tried) < 150 {
		t.Errorf("only %d values were tried", len(tried))
	}
}

// FuzzDirectorScenario shows that no file makes the harness panic.
func FuzzDirectorScenario(f *testing.F) {
	f.Add([]byte(scenario(nil)))
	f.Add([]byte(scenario(map[string]string{"script": `[{"turn": 1, "verdict_text": {"a": "YES"}}]`, "expected": `[{"flags": {}}]`})))
	f.Fuzz(func(_ *testing.T, text []byte) { verdict(string(text)) })
}
