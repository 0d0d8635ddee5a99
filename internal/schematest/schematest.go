// Package schematest judges JSON by the schemas that the packages export, with a JSON
// Schema implementation of its own. Only tests import it.
package schematest

import (
	"bytes"
	"encoding/json"
	"slices"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

var compiled sync.Map // *jsonschema.Schema by the text of the schema

// Validate returns why a schema refuses a JSON text, nil if it does not.
func Validate(schema, text []byte) error {
	s, ok := compiled.Load(string(schema))
	if !ok {
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
		if err != nil {
			return err
		}
		c := jsonschema.NewCompiler()
		if err := c.AddResource("schema.json", doc); err != nil {
			return err
		}
		if s, err = c.Compile("schema.json"); err != nil {
			return err
		}
		compiled.Store(string(schema), s)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return err
	}
	return s.(*jsonschema.Schema).Validate(doc)
}

// Members returns the names of the properties that a schema defines, in order: its own,
// or those of one of its $defs.
func Members(schema []byte, def string) []string {
	type object struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	var whole struct {
		object
		Defs map[string]object `json:"$defs"`
	}
	if err := json.Unmarshal(schema, &whole); err != nil {
		return nil
	}
	part := whole.object
	if def != "" {
		part = whole.Defs[def]
	}
	var names []string
	for name := range part.Properties {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
