package rehearsal_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/choreography/rehearsal"
)

// TestValues compares values of the stage at the end of a scenario, whose steps ask the
// stage, too.
func TestValues(t *testing.T) {
	const text = `{"script": [{"signal": {"id": "1", "type": "go", "timestamp": 0, "source": "s", "payload": {}}}, {"advance": 50}],
		"scene": {"sajou": "scene", "version": 1, "entities": [{"id": "ann", "at": {"x": 10, "y": 20}}]},
		"definitions": [{"on": "go", "steps": [
			{"action": "move", "entity": "ann", "to": {"x": 110, "y": 20}, "duration": 100},
			{"action": "setAnimation", "entity": "ann", "state": "late"}]},
			{"on": "go", "when": {"stage:ann.x": {"lt": 11}}, "steps": [{"action": "setAnimation", "entity": "ann", "state": "seen"}]}],
		"values": [VALUES]}`
	values := func(list string) []string {
		t.Helper()
		scenarios, diagnostics := rehearsal.Parse("a.json", []byte(strings.Replace(text, "VALUES", list, 1)))
		require.Empty(t, diagnostics)
		return rehearsal.CompareValues(scenarios[0])
	}
	assert.Empty(t, values(`{"path": "stage.entities.ann.x", "value": 60}, {"path": "/stage/entities/ann/state", "value": "seen"}, {"path": "stage.entities.bob", "value": null}`))
	assert.Equal(t, []string{"stage.entities.ann.x is 60, want 61", "stage.entities.bob is not there, want true"},
		values(`{"path": "stage.entities.ann.x", "value": 61}, {"path": "stage.entities.bob", "value": true}`))
	assert.Empty(t, values(``))
	for _, list := range []string{`{"path": "session.x", "value": 1}`, `{"path": "stage", "value": 1}`, `{"path": "stage.x"}`, `1`} {
		_, diagnostics := rehearsal.Parse("a.json", []byte(strings.Replace(text, "VALUES", list, 1)))
		require.Len(t, diagnostics, 1, list)
		assert.Contains(t, diagnostics[0].Message, "a value is ")
	}
	_, diagnostics := rehearsal.Parse("a.json", []byte(`{"script": [], "scene": {"sajou": "scene", "version": 1, "entities": 7}}`))
	require.Len(t, diagnostics, 1)
	assert.Contains(t, diagnostics[0].Message, "this is no scene")
}

func TestTranscript(t *testing.T) {
	files := rehearsal.Transcript([]byte("# words\n-- a.json --\n{}\r\n-- not a name\n--  --\n-- b --\nlast"))
	require.Len(t, files, 2)
	assert.Equal(t, "a.json", files[0].Name)
	assert.Equal(t, "{}\r\n-- not a name\n--  --\n", string(files[0].Text))
	assert.Equal(t, "last", string(files[1].Text))
	assert.Empty(t, rehearsal.Transcript([]byte("nothing")))
}
