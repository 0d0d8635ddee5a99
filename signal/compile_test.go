package signal

import (
	"fmt"
	"strings"
	"testing"
)

// A constraint that the compiled check would not honour stops the program.
func TestCompileSchemaRefusesWhatItWouldIgnore(t *testing.T) {
	many := ""
	for i := range 64 {
		many += fmt.Sprintf(`"m%d": {"type": "string"}, `, i)
	}
	inner := `{"if": {"properties": {"type": {"const": "other"}}}, "then": {"properties": {"payload": {"title": "other", "type": "object", "additionalProperties": false}}}}`
	for _, c := range []struct{ old, new, want string }{
		{`"type": "integer", "minimum": 0`, `"type": "integer", "maximum": 9`, `the keyword "maximum" is not understood`},
		{`"minimum": 0`, `"minimum": 0.5`, "not an integer"},
		{`"minimum": 0`, `"minimum": 9007199254740993`, "not an integer that a double holds"},
		{`"minimum": 0`, `"minimum": -9007199254740993`, "not an integer that a double holds"},
		{`"enum": ["warning", "error", "critical"]`, `"enum": [1]`, "not a list of strings"},
		{`"type": "boolean"`, `"type": "boolean", "enum": ["x"]`, "enum or minimum on a boolean"},
		{`"type": "boolean"`, `"type": "null"`, `the type "null" is not understood`},
		{`{ "type": "string" }`, `{ "title": "s" }`, "no type"},
		{`{ "type": "string" }`, `{ "type": "string", "additionalProperties": false }`, "an object that is not closed"},
		{`{ "type": "string" }`, `{ "type": "object", "properties": { "a": { "type": "string" } } }`, "an object that is not closed"},
		{`{ "type": "string" }`, `{ "type": "object", "required": ["a"] }`, "an object that is not closed"},
		{`"required": ["x", "y"]`, `"required": ["x", "z"]`, `"z" is required but not a property`},
		{`"additionalProperties": false`, `"additionalProperties": {"type": "string"}`, "additionalProperties is not false"},
		{`"#/$defs/position"`, `"#/$defs/nowhere"`, "leads nowhere"},
		{`"$ref": "#/$defs/position"`, `"$ref": "#/$defs/position", "title": "p"`, "is not understood"},
		{`"const": "tool_call"`, `"const": "tool_calls"`, "has another title"},
		{`"const": "tool_call"`, `"const": "task_dispatch"`, "or twice"},
		{`"if": {`, `"else": {}, "if": {`, "allOf has a branch"},
		{`"const": "tool_call"`, `"const": 5`, "allOf has a branch"},
		{`{ "type": "string" }`, `{ "type": "object", "additionalProperties": false, "allOf": [` + inner + `] }`, "allOf has a branch"},
		{`"x": `, many + `"x": `, "more than 64 properties"},
		{`{`, `[`, "the embedded schema: signal: byte"},
	} {
		text := strings.Replace(schemaText, c.old, c.new, 1)
		if text == schemaText {
			t.Errorf("the schema has no %s", c.old)
			continue
		}
		func() {
			defer func() {
				if got, _ := recover().(string); !strings.Contains(got, c.want) {
					t.Errorf("%s for %s: got %q, want … %s …", c.new, c.old, got, c.want)
				}
			}()
			compileSchema(text)
		}()
	}
}

// The least minimum and the greatest are those that a double holds.
func TestCompileSchemaBounds(t *testing.T) {
	for _, minimum := range []string{"9007199254740992", "-9007199254740992"} {
		compileSchema(strings.Replace(schemaText, `"minimum": 0`, `"minimum": `+minimum, 1))
	}
}
