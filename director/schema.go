package director

import _ "embed" // of the schema

//go:embed episode.schema.json
var schemaText string

// Schema returns the JSON Schema (draft 2020-12) of episodes: their shapes. What
// a schema cannot say is judged by [Parse].
func Schema() []byte { return []byte(schemaText) }
