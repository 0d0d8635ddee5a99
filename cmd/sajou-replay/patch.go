package main

import (
	"encoding/json"
	"fmt"
	"slices"
)

// showPatch writes a JSON Patch, and answers no if it changes something.
func (a *app) showPatch(patch []byte) error {
	var ops []json.RawMessage
	if err := json.Unmarshal(patch, &ops); err != nil {
		return err
	}
	o := a.output()
	for _, op := range ops {
		var fields struct {
			Op    string          `json:"op"`
			Path  string          `json:"path"`
			From  string          `json:"from"`
			Value json.RawMessage `json:"value"`
		}
		if err := json.Unmarshal(op, &fields); err != nil {
			return err
		}
		text := fmt.Sprintf("%-7s  %s", fields.Op, fields.Path)
		if fields.From != "" {
			text += "  from " + fields.From
		}
		if fields.Value != nil {
			text += "  " + string(fields.Value)
		}
		if err := o.item(printable(text), op); err != nil {
			return err
		}
	}
	if err := o.end(); err != nil {
		return err
	}
	if len(ops) > 0 {
		return answerNo
	}
	return nil
}

func sortedNames[V any](m map[string]V) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
