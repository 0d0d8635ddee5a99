package choreography

import (
	"fmt"
	"strings"
)

// Severity says what a [Diagnostic] means for its definition.
type Severity uint8

const (
	// Error says that the definition is refused.
	Error Severity = iota + 1
	// Warning says that something written has no effect, or another than it
	// seems to have.
	Warning
)

// String returns "error" or "warning".
func (s Severity) String() string {
	switch s {
	case Error:
		return "error"
	case Warning:
		return "warning"
	default:
		return "unknown"
	}
}

// Diagnostic is one remark of [Parse], with its place in the file.
type Diagnostic struct {
	File     string
	Line     int    // from 1
	Column   int    // in bytes, from 1
	Pointer  string // JSON pointer of what is meant; "" is the whole text
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
// As an error it shows all of them; see [Diagnostics.Err].
type Diagnostics []Diagnostic

// Error returns one line for each diagnostic.
func (ds Diagnostics) Error() string {
	lines := make([]string, len(ds))
	for i, d := range ds {
		lines[i] = d.String()
	}
	return strings.Join(lines, "\n")
}

// Err returns those of severity [Error] as one error, which wraps
// [ErrDefinition]; nil if there is none.
func (ds Diagnostics) Err() error {
	if errs := ds.Only(Error); len(errs) > 0 {
		return errs
	}
	return nil
}

// Unwrap makes a list of diagnostics an [ErrDefinition].
func (ds Diagnostics) Unwrap() error { return ErrDefinition }

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
