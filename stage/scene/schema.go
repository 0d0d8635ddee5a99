package scene

import _ "embed"

//go:embed scene.schema.json
var schemaText string

// Schema returns the JSON Schema (draft 2020-12) of scenes. What it accepts is a
// scene unless the package comment says otherwise.
func Schema() []byte { return []byte(schemaText) }
