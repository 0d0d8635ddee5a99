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
	for _, c := range []struct{ old, new, want string }{
		{`"type": "integer", "minimum": 0`, `"type": "integer", "maximum": 9`, `the keyword "maximum" is not understood`},
		{`"minimum": 0`, `"minimum": 0.5`, "not an integer"},
		{`"enum": ["warning", "error", "critical"]`, `"enum": [1]`, "not a list of strings"},
		{`"type": "boolean"`, `"type": "boolean", "enum": ["x"]`, "enum or minimum on a boolean"},
		{`"type": "boolean"`, `"type": "null"`, `the type "null" is not understood`},
		{`{ "type": "string" }`, `{ "title": "s" }`, "no type"},
		{`"required": ["x", "y"]`, `"required": ["x", "z"]`, `"z" is required but not a property`},
		{`"additionalProperties": false`, `"additionalProperties": {"type": "string"}`, "additionalProperties is not false"},
		{`"#/$defs/position"`, `"#/$defs/nowhere"`, "leads nowhere"},
		{`"$ref": "#/$defs/position"`, `"$ref": "#/$defs/position", "title": "p"`, "is not understood"},
		{`"const": "tool_call"`, `"const": "tool_calls"`, "has another title"},
		{`"const": "tool_call"`, `"const": "task_dispatch"`, "or twice"},
		{`"if": {`, `"else": {}, "if": {`, "allOf has a branch"},
		{`"x": `, many + `"x": `, "more than 64 properties"},
		{`{`, `[`, "the embedded schema"},
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
