package simulate

import _ "embed" // of the schema and the example

//go:embed simulation.schema.json
var schemaText string

// Schema returns the JSON Schema (draft 2020-12) of scenarios: their shapes. What
// a schema cannot say is judged by [Parse].
func Schema() []byte { return []byte(schemaText) }

//go:embed examples/conversation.json
var exampleText string

// Example returns a scenario to begin with: a conversation of three, in which one
// is interrupted.
func Example() []byte { return []byte(exampleText) }

// Expectations returns how many expectations the scenario has.
func (s *Scenario) Expectations() int { return len(s.expect) }
