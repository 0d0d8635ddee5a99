package authored

import (
	"cmp"
	"errors"
	"path"
	"slices"
	"strings"

	"github.com/sajou-dev/sajou-go/internal/jsonpointer"
	"github.com/sajou-dev/sajou-go/internal/yaml"
	"github.com/sajou-dev/sajou-go/signal"
)

// Text is the text of a file, as JSON. Every reader of authored files begins with a
// Text, so each of them reads JSON and YAML; see [Read].
type Text struct {
	File string

	// JSON is the text itself, or the JSON of a YAML text, which is one line.
	// Offsets, lines and columns in it become those of the file by [Text.Place] and
	// [Text.Placed].
	JSON []byte

	// Value is the value of the text. It is exact as [signal.ParseValue] describes.
	Value signal.Value

	yaml *yaml.Conversion // nil if the file is JSON
}

// IsYAML reports whether the name of a file says that its text is YAML: it ends in
// .yaml or .yml, in any case.
func IsYAML(file string) bool {
	ext := strings.ToLower(path.Ext(file))
	return ext == ".yaml" || ext == ".yml"
}

// Read reads the text of a file: JSON, or YAML if [IsYAML] says so. JSON in such a
// file is read as JSON, which has the same meaning. The YAML may use all that has a
// form in JSON, and anchors and aliases; a text has at most 1 MiB.
//
// Read returns either a text or one diagnostic of [SeverityError].
func Read(file string, text []byte) (*Text, Diagnostics) {
	v, err := signal.ParseValue(text)
	if err == nil {
		return &Text{File: file, JSON: text, Value: v}, nil
	}
	if IsYAML(file) {
		return ReadYAML(file, text)
	}
	return nil, Diagnostics{SyntaxDiagnostic(file, text, err)}
}

// ReadYAML is [Read] for a text that is YAML, whatever its file is called.
func ReadYAML(file string, text []byte) (*Text, Diagnostics) {
	y, err := yaml.Read(text)
	if err != nil {
		d := Diagnostic{File: file, Line: 1, Column: 1, Severity: SeverityError, Message: err.Error()}
		if syntax, ok := errors.AsType[*yaml.SyntaxError](err); ok {
			d.Line, d.Column, d.Message = syntax.Line, syntax.Column, syntax.Reason
		}
		return nil, Diagnostics{d}
	}
	t := &Text{File: file, JSON: y.JSON, yaml: y}
	if t.Value, err = signal.ParseValue(y.JSON); err != nil {
		return nil, t.Placed(Diagnostics{SyntaxDiagnostic(file, y.JSON, err)})
	}
	return t, nil
}

// FromYAML reports whether the text is YAML that is not JSON.
func (t *Text) FromYAML() bool { return t != nil && t.yaml != nil }

// Place converts an offset in the JSON to a line and a column of the file.
func (t *Text) Place(offset int) (line, column int) {
	if !t.FromYAML() {
		return LineColumn(t.JSON, offset)
	}
	return t.yaml.Place(offset)
}

// Placed returns diagnostics about the JSON with the lines and columns of the file, in
// the order of these.
func (t *Text) Placed(ds Diagnostics) Diagnostics {
	if !t.FromYAML() || len(ds) == 0 {
		return ds
	}
	ds = slices.Clone(ds)
	for i := range ds {
		ds[i].Line, ds[i].Column = t.yaml.Place(ds[i].Column - 1) // the JSON is one line
	}
	slices.SortStableFunc(ds, func(a, b Diagnostic) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return ds
}

// Diagnose returns the diagnostic of an error about the value that a JSON pointer leads
// to, such as the path of an error about a policy, a configuration or a world. A pointer
// without a value has the place of the nearest value around it.
func (t *Text) Diagnose(pointer, reason string) Diagnostic {
	var at *Location
	for _, name := range jsonpointer.Split(pointer) {
		at = at.At(name) // for [Locate] an index is a name too
	}
	d := Diagnostic{File: t.File, Pointer: pointer, Severity: SeverityError, Message: reason}
	d.Line, d.Column = t.Place(Locate(t.JSON, []*Location{at})[0])
	return d
}
