package schematest

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// GeneratedSchema is a schema that follows a Go type.
type GeneratedSchema struct {
	Of   any    // a value of the type
	Text string // what the schema describes
}

// CheckDocument compares the file of a schema with the schema of the JSON of a type; with
// update it writes the file. Special has the schemas of types with a JSON of their own.
func CheckDocument(t *testing.T, file, name string, d GeneratedSchema, special map[reflect.Type]any, update bool) {
	t.Helper()
	g := generator{special: special, open: map[reflect.Type]bool{}}
	doc := g.schema(reflect.TypeOf(d.Of))
	doc["$schema"], doc["title"], doc["description"] = "https://json-schema.org/draft/2020-12/schema", name, d.Text
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	require.NoError(t, enc.Encode(doc))
	if update {
		require.NoError(t, os.WriteFile(file, b.Bytes(), 0o644))
		return
	}
	have, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, string(have), b.String(), "run with -update")
}

// generator makes schemas of types.
type generator struct {
	special map[reflect.Type]any
	open    map[reflect.Type]bool // the types under description: a view can contain itself
}

var (
	rawType  = reflect.TypeFor[json.RawMessage]()
	timeType = reflect.TypeFor[time.Time]()
)

// schema returns the schema of the JSON of a type. Members that the schema does not name
// are allowed: later versions add some.
func (g *generator) schema(typ reflect.Type) map[string]any {
	if s, ok := g.special[typ]; ok {
		return s.(map[string]any)
	}
	switch typ {
	case rawType:
		return map[string]any{}
	case timeType:
		return map[string]any{"type": "string", "format": "date-time"}
	}
	switch typ.Kind() {
	case reflect.Pointer:
		return g.schema(typ.Elem())
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Float32, reflect.Float64:
		return map[string]any{"type": "number"}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return map[string]any{"type": "integer", "minimum": 0}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return map[string]any{"type": "integer"}
	case reflect.Slice, reflect.Array:
		return map[string]any{"type": "array", "items": g.schema(typ.Elem())}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": g.schema(typ.Elem())}
	case reflect.Struct:
		doc := map[string]any{"type": "object"}
		properties, required := map[string]any{}, []string{}
		g.members(typ, properties, &required)
		doc["properties"] = properties
		if len(required) > 0 {
			doc["required"] = required
		}
		return doc
	default: // an interface: any value
		return map[string]any{}
	}
}

// members adds the members of a struct, those of embedded ones included.
func (g *generator) members(typ reflect.Type, properties map[string]any, required *[]string) {
	if g.open[typ] {
		return
	}
	g.open[typ] = true
	defer delete(g.open, typ)
	for i := range typ.NumField() {
		f := typ.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" || !f.IsExported() && !f.Anonymous:
			continue
		case f.Anonymous && name == "":
			part := f.Type
			if part.Kind() == reflect.Pointer {
				part = part.Elem()
			}
			g.members(part, properties, required)
			continue
		}
		s := g.schema(f.Type)
		if f.Type.Kind() == reflect.Pointer && !strings.Contains(options, "omitempty") {
			s = map[string]any{"anyOf": []any{s, map[string]any{"type": "null"}}}
		}
		properties[name] = s
		if !strings.Contains(options, "omitempty") {
			*required = append(*required, name)
		}
	}
}
