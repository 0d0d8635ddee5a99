package simulate

import _ "embed" // of the schema and the example

//go:embed simulation.schema.json
var schemaText string

// Schema returns the JSON Schema (draft 2020-12) of the files. [Parse] also checks
// what a schema cannot express.
func Schema() []byte { return []byte(schemaText) }

//go:embed examples/conversation.json
var exampleText string

// Example returns an example file: a conversation of three agents, one of whom is
// interrupted.
func Example() []byte { return []byte(exampleText) }

// Expectations returns the number of expectations.
func (s *Simulation) Expectations() int { return len(s.expect) }
