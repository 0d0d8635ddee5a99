package server

import (
	"flag"
	"path/filepath"
	"testing"

	"github.com/sajou-dev/sajou-go/internal/schematest"
)

var update = flag.Bool("update", false, "write the schemas of the answers")

// The schema of the security events is that of their types.
func TestGeneratedSchemas(t *testing.T) {
	schematest.CheckDocument(t, filepath.Join("schema", "documents", "security-events.schema.json"), "security-events",
		schematest.GeneratedSchema{Of: SecurityReport{}, Text: "How many security events there were of each kind, those that were asked for, and the number behind which the next question goes on."}, nil, *update)
}
