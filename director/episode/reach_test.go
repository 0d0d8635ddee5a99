package episode_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/director/episode"
)

// Whether anything that sets a flag can happen: each rule with the least change that takes
// the possibility away. Turns do not count, except that a budget must exist to be used up.
func TestReachOfAFlag(t *testing.T) {
	beat := func(id, more string) string {
		return fmt.Sprintf(`{"id": %q, "description": "d", "character_instruction": "c", "target_turn": 1%s}`, id, more)
	}
	sets := func(flag string) string {
		return fmt.Sprintf(`, "choice_point": {"id": "of %s", "choices": [{"id": "o", "label": "l", "sets_flag": %q}]}`, flag, flag)
	}
	const (
		deaf = `, "detection_type": "telepathy"` // nothing detects it
		skip = deaf + `, "max_overdue_turns": 1, "on_miss": "skip"`
	)
	beats := func(all ...string) string { return `"beats": [` + strings.Join(all, ", ") + `]` }
	objective := func(more string) string {
		return `"objectives": [{"id": "goal", "description": "d", ` + more + `}]`
	}
	wins, loses := `, "on_success": {"set_flag": "x"}`, `, "on_failure": {"set_flag": "x"}`
	for _, c := range []struct {
		episode  string
		possible bool
	}{
		{`"flags": ["x"], ` + beats(beat("a", "")), true},
		{`"flags": ["y"], ` + beats(beat("a", "")), false},

		// An option of a beat that is eligible and can land.
		{beats(beat("a", sets("x"))), true},
		{beats(beat("a", deaf+sets("x"))), false},
		{beats(beat("a", deaf+`, "max_overdue_turns": 1, "on_miss": "force", "forced_line": "So."`+sets("x"))), true},
		{beats(beat("a", skip+sets("x"))), false},
		{beats(beat("a", `, "requires_flag": "y"`+sets("x"))), false},
		{`"flags": ["y"], ` + beats(beat("a", `, "requires_flag": "y"`+sets("x"))), true},
		{beats(beat("a", sets("y")), beat("b", `, "requires_flag": "y"`+sets("x"))), true},
		{beats(beat("b", `, "requires_flag": "y"`+sets("x")), beat("a", sets("y"))), true}, // whatever their order
		{beats(beat("a", `, "requires_flag": "x"`+sets("x"))), false},

		// A beat that requires another: landed, or given up and released.
		{beats(beat("a", ""), beat("b", `, "requires_beat": "a"`+sets("x"))), true},
		{beats(beat("a", deaf), beat("b", `, "requires_beat": "a"`+sets("x"))), false},
		{beats(beat("a", skip), beat("b", `, "requires_beat": "a"`+sets("x"))), false},
		{beats(beat("a", skip+`, "dependants": "release"`), beat("b", `, "requires_beat": "a"`+sets("x"))), true},
		{beats(beat("a", deaf+`, "max_overdue_turns": 1, "on_miss": "fail", "dependants": "release"`), beat("b", `, "requires_beat": "a"`+sets("x"))), true},
		{beats(beat("a", deaf+`, "dependants": "release"`), beat("b", `, "requires_beat": "a"`+sets("x"))), false},
		{beats(beat("a", skip+`, "dependants": "release", "requires_flag": "y"`), beat("b", `, "requires_beat": "a"`+sets("x"))), false},
		// Given up with a beat that was dropped, and released.
		{beats(beat("a", skip), beat("b", deaf+`, "requires_beat": "a", "dependants": "release"`), beat("c", `, "requires_beat": "b"`+sets("x"))), true},
		{beats(beat("a", deaf), beat("b", deaf+`, "requires_beat": "a", "dependants": "release"`), beat("c", `, "requires_beat": "b"`+sets("x"))), false},

		// An objective that can be completed.
		{`"flags": ["y"], ` + objective(`"success_condition": "flag:y"`+wins), true},
		{beats(beat("a", deaf+sets("y"))) + `, ` + objective(`"success_condition": "flag:y"`+wins), false},
		{objective(`"success_condition": "turn:3"` + wins), true},
		{objective(`"failure_condition": "turn:3"` + wins), false},

		// An objective that can fail.
		{objective(`"success_condition": "turn:9", "failure_condition": "turn:3"` + loses), true},
		{objective(`"success_condition": "turn:9"` + loses), true}, // when the turns are used up
		{`"turn_budget": 0, ` + objective(`"success_condition": "turn:9"`+loses), false},
		{`"flags": ["y"], ` + objective(`"success_condition": "turn:9", "failure_condition": "flag:y"`+loses), true},
		{beats(beat("a", deaf+sets("y"))) + `, ` + objective(`"success_condition": "turn:9", "failure_condition": "flag:y"`+loses), false},
		{`"turn_budget": 9, ` + objective(`"success_condition": "turn:9", "failure_condition": "turn_budget_exceeded"`+loses), true},
		{`"turn_budget": 0, ` + objective(`"success_condition": "turn:9", "failure_condition": "turn_budget_exceeded"`+loses), false},

		// A beat that must not be missed fails all objectives.
		{`"turn_budget": 0, ` + beats(beat("a", `, "max_overdue_turns": 1, "on_miss": "fail"`)) + `, ` + objective(`"success_condition": "turn:9"`+loses), true},
		{`"turn_budget": 0, ` + beats(beat("a", `, "on_miss": "fail"`)) + `, ` + objective(`"success_condition": "turn:9"`+loses), false},
		{`"turn_budget": 0, ` + beats(beat("a", `, "max_overdue_turns": 1, "on_miss": "skip"`)) + `, ` + objective(`"success_condition": "turn:9"`+loses), false},
		{`"turn_budget": 0, ` + beats(beat("a", `, "requires_flag": "y", "max_overdue_turns": 1, "on_miss": "fail"`)) + `, ` + objective(`"success_condition": "turn:9"`+loses), false},

		// A choice point of the episode, at a turn or after an objective.
		{`"choice_points": [{"id": "p", "trigger": "turn:2", "choices": [{"id": "o", "label": "l", "sets_flag": "x"}]}]`, true},
		{objective(`"success_condition": "turn:9"`) + `, "choice_points": [{"id": "p", "trigger": "after_objective:goal", "choices": [{"id": "o", "label": "l", "sets_flag": "x"}]}]`, true},
		{objective(`"failure_condition": "turn:9"`) + `, "choice_points": [{"id": "p", "trigger": "after_objective:goal", "choices": [{"id": "o", "label": "l", "sets_flag": "x"}]}]`, false},
	} {
		text := `{"id": "e", ` + c.episode + `, "flag_context_rules": [{"if_flag": "x", "inject": "i"}]}`
		e, diagnostics := episode.Parse("e.json", []byte(text))
		require.NotNil(t, e, "%s\n%s", text, diagnostics)
		told := strings.Contains(diagnostics.String(), `the flag "x" can happen`) || strings.Contains(diagnostics.String(), `nothing sets the flag "x"`)
		assert.Equal(t, c.possible, !told, "%s\n%s", text, diagnostics)
	}
}
