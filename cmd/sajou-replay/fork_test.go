package main

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
)

// A fork of a played episode takes the recorded answers while they fit, and asks the named
// models for the others.
func TestForkByModels(t *testing.T) {
	t.Setenv(cli.CharacterKey, "character-secret")
	t.Setenv(cli.JudgeKey, "judge-secret")
	store := filepath.Join(t.TempDir(), "store")
	const text = `{"id": "e", "turn_budget": 4, "beats": [
		{"id": "toast", "character_instruction": "Drink.", "target_turn": 2, "detection_criteria": "she proposes a toast"},
		{"id": "leave", "character_instruction": "Get up.", "target_turn": 3, "detection_type": "keyword", "detection_criteria": "leave", "requires_beat": "toast"}]}`
	require.NoError(t, playEvening(t.Context(), store, "evening", "types", text))
	r := sajouReplay(t.Context(), t, nil, "-C", store, "cat", "evening", "--kind", "beat", "-o", "jsonl")
	require.Zero(t, r.code, r.stderr)
	yes := regexp.MustCompile(`(?m)^\{"seq":(\d+),.*"raw":"YES, she does\.".*$`).FindStringSubmatch(r.stdout)
	require.NotNil(t, yes, r.stdout)
	args := []string{"-C", store, "fork", "evening", yes[1], "--drop", yes[1]}

	r = sajouReplay(t.Context(), t, nil, append(args, "--out", "stopped")...)
	assert.Equal(t, cli.ExitLoss, r.code)
	assert.Contains(t, r.stderr, "in turn 3 the character answers in another scene than recorded; name a model for the character")

	character, judge := newService(t), newService(t)
	character.answers <- "Then I drink to you."
	character.answers <- "I leave."
	for range 2 {
		judge.answers <- "NO."
	}
	args = append(args, "--character-url", character.URL, "--model", "actor", "--judge-url", judge.URL, "--judge-model", "critic")
	r = sajouReplay(t.Context(), t, nil, append(args, "--out", "live", "-o", "json")...)
	require.Zero(t, r.code, "%s%s", r.stdout, r.stderr)
	assert.Contains(t, r.stdout, `"asked_models": 4`)
	assert.Contains(t, r.stderr, "asked live models for 4 answers")
	assert.NotContains(t, r.stdout+r.stderr, "secret")
	q := <-character.requests
	assert.Equal(t, "Bearer character-secret", q.key)
	assert.Equal(t, "Well.", q.Messages[len(q.Messages)-1].Content)
	assert.Contains(t, q.Messages[0].Content, "DIRECTOR")
	j := <-judge.requests
	assert.Equal(t, "Bearer judge-secret", j.key)
	assert.Contains(t, j.Messages[0].Content, "Then I drink to you.")
	r = sajouReplay(t.Context(), t, nil, "-C", store, "cat", "live", "--kind", "beat", "-o", "jsonl")
	assert.Contains(t, r.stdout, "I leave.")
	assert.Contains(t, r.stdout, `"model":"played"`)
	assert.NotContains(t, r.stdout, "beatLanded")
	r = sajouReplay(t.Context(), t, nil, "-C", store, "verify", "live")
	require.Zero(t, r.code)

	// A server that fails ends the fork where it failed.
	character.answers <- ""
	r = sajouReplay(t.Context(), t, nil, append(args, "--out", "failed")...)
	assert.Equal(t, cli.ExitLoss, r.code)
	assert.Contains(t, r.stderr, "in turn 3 the model does not answer: ")
	for _, wrong := range []string{"--character-url http://127.0.0.1", "--model m", "--judge-url http://127.0.0.1"} {
		r = sajouReplay(t.Context(), t, nil, append([]string{"-C", store, "fork", "evening", "3", "--out", "x"}, strings.Fields(wrong)...)...)
		assert.Equal(t, cli.ExitMisuse, r.code, wrong)
	}
}
