// Package authored supports readers of files that people write, in JSON or in YAML: it
// collects remarks about values and finds their lines and columns.
//
// [Read] converts the text of a file to a [Text], which is JSON with a value. A reader
// walks over the values of it and keeps the [Location] of each; a
// [Located] is a value with its location. The reader adds its findings to [Remarks].
// [Remarks.Diagnostics] then reads the text once more, finds the line and column of
// every location, and returns a [Diagnostic] for each remark; [Text.Placed] converts them
// to places of the YAML. A file without remarks is read only once.
//
// A reader reports a mistake and continues with a zero value, so that one mistake does
// not hide the next. At most [MaxDiagnostics] are listed, and warnings never displace
// the only error.
//
// The package is pure. It recurses once for each nesting of a text, which
// [signal.ParseValue] bounds.
package authored

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sajou-dev/sajou-go/signal"
)

// MaxDiagnostics bounds the remarks that are listed for one file.
const MaxDiagnostics = 100

// Severity is the severity of a [Diagnostic].
type Severity uint8

const (
	// SeverityError says that the declaration is refused.
	SeverityError Severity = iota + 1
	// SeverityWarning says that a part of the declaration has no effect, or an
	// unexpected one.
	SeverityWarning
)

// String returns "error" or "warning".
func (s Severity) String() string {
	switch s {
	case SeverityError:
		return "error"
	case SeverityWarning:
		return "warning"
	default:
		return "unknown"
	}
}

// Diagnostic is one remark with its place in the file.
type Diagnostic struct {
	File     string
	Line     int    // from 1
	Column   int    // in bytes, from 1
	Pointer  string // JSON pointer of the value; "" is the whole text
	Severity Severity
	Message  string
}

// String returns "file:line:column: severity: message (pointer)".
func (d Diagnostic) String() string {
	at := fmt.Sprintf("%s:%d:%d: %s: %s", d.File, d.Line, d.Column, d.Severity, d.Message)
	if d.Pointer != "" {
		at += " (" + d.Pointer + ")"
	}
	return at
}

// Diagnostics lists the remarks about one file in the order of their places.
// It is not an error itself; see [Diagnostics.Err].
type Diagnostics []Diagnostic

// String returns one line for each diagnostic.
func (ds Diagnostics) String() string {
	lines := make([]string, len(ds))
	for i, d := range ds {
		lines[i] = d.String()
	}
	return strings.Join(lines, "\n")
}

// Only returns the diagnostics of one severity.
func (ds Diagnostics) Only(s Severity) Diagnostics {
	var some Diagnostics
	for _, d := range ds {
		if d.Severity == s {
			some = append(some, d)
		}
	}
	return some
}

// Refused reports whether any diagnostic is of [SeverityError].
func (ds Diagnostics) Refused() bool {
	return slices.ContainsFunc(ds, func(d Diagnostic) bool { return d.Severity == SeverityError })
}

// Err returns the diagnostics of [SeverityError] as a [*DiagnosticsError] that
// wraps kind, or nil if there is none.
func (ds Diagnostics) Err(kind error) error {
	if errs := ds.Only(SeverityError); len(errs) > 0 {
		return &DiagnosticsError{kind, errs}
	}
	return nil
}

// DiagnosticsError reports a refused file.
type DiagnosticsError struct {
	Kind        error // the error it wraps, of the package that refuses the file
	Diagnostics Diagnostics
}

// Error returns one line for each diagnostic.
func (e *DiagnosticsError) Error() string { return e.Diagnostics.String() }
func (e *DiagnosticsError) Unwrap() error { return e.Kind }

// SyntaxDiagnostic returns the diagnostic of a text that [signal.ParseValue]
// refuses.
func SyntaxDiagnostic(file string, text []byte, err error) Diagnostic {
	d := Diagnostic{File: file, Line: 1, Column: 1, Severity: SeverityError, Message: err.Error()}
	if syntax, ok := errors.AsType[*signal.SyntaxError](err); ok {
		d.Line, d.Column = LineColumn(text, syntax.Offset)
		d.Message = syntax.Reason
	}
	return d
}

// Located is a value with its location in the text.
type Located struct {
	Value    signal.Value
	Location *Location
}

// At returns a member. Its value is absent if there is none.
func (n Located) At(name string) Located { return Located{n.Value.Member(name), n.Location.At(name)} }

// Has reports whether the value has a member, which may be null.
func (n Located) Has(name string) bool {
	_, ok := n.Value.Get(name)
	return ok
}

// Members yields the members of an object.
func (n Located) Members(yield func(string, Located) bool) {
	for name, v := range n.Value.Members() {
		if !yield(name, Located{v, n.Location.At(name)}) {
			return
		}
	}
}

// Elements yields the elements of an array.
func (n Located) Elements(yield func(int, Located) bool) {
	i := 0
	for v := range n.Value.Elements() {
		if !yield(i, Located{v, n.Location.Element(i)}) {
			return
		}
		i++
	}
}
