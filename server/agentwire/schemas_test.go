package agentwire

import (
	"flag"
	"path/filepath"
	"testing"

	"github.com/sajou-dev/sajou-go/internal/schematest"
)

var update = flag.Bool("update", false, "write the schemas of the answers")

// The schemas of the answers are those of their types.
func TestGeneratedSchemas(t *testing.T) {
	for name, d := range map[string]schematest.GeneratedSchema{
		"world-answer": {Of: worldView{}, Text: "The time of a session with a world, in seconds, and its newest entry."},
		"agent-answer": {Of: agentView{}, Text: "An agent that was registered, or has left."},
		"started":      {Of: startedView{}, Text: "An episode that has begun."},
		"guidance":     {Of: guidanceView{}, Text: "The guidance for the character in a turn."},
		"response":     {Of: responseView{}, Text: "The result of a response of the character."},
		"chosen":       {Of: chosenView{}, Text: "A choice that was made. The message is the user's next one; null if it was sent already."},
	} {
		schematest.CheckDocument(t, filepath.Join("..", "schema", "documents", name+".schema.json"), name, d, nil, *update)
	}
}
