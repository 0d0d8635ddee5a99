package choreography

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sajou-dev/sajou-go/signal"
)

// maxDiagnostics bounds what is said about one file.
const maxDiagnostics = 100

// Parse reads definitions from the text of a file, one object or an array of
// them, and judges them as an author would want: what is refused is what cannot
// be meant, and what has no effect gets a warning. File only names the text in
// diagnostics.
//
// If any diagnostic is of severity [Error], which [Diagnostics.Err] tells, no
// definition is returned.
func Parse(file string, json []byte) ([]Declaration, Diagnostics) {
	v := validator{file: file, text: json}
	value, err := signal.ParseValue(json)
	if err != nil {
		var syntax *signal.SyntaxError
		if errors.As(err, &syntax) {
			v.findings = append(v.findings, finding{Error, nil, false, syntax.Offset, syntax.Reason})
		} else {
			v.errorf(nil, "%v", err)
		}
		return nil, v.diagnostics(false)
	}
	var definitions []Declaration
	one := func(p *path, value signal.Value) {
		v.definition(p, value)
		if value.Kind() != signal.KindObject || v.refused {
			return
		}
		d, err := Compile(value)
		if err != nil {
			v.errorf(p, "%s", strings.TrimPrefix(err.Error(), ErrDefinition.Error()+": "))
			return
		}
		definitions = append(definitions, d)
	}
	switch value.Kind() {
	case signal.KindObject:
		one(nil, value)
	case signal.KindArray:
		i := 0
		for e := range value.Elements() {
			one((*path)(nil).element(i), e)
			i++
		}
		if i == 0 {
			v.warnf(nil, "there is no definition in the list")
		}
	default:
		v.errorf(nil, "want a definition object or an array of them, not %s", article(value.Kind()))
	}
	if v.refused {
		definitions = nil
	}
	return definitions, v.diagnostics(true)
}

// validator collects findings. It nests no deeper than a value does.
type validator struct {
	file     string
	text     []byte
	findings []finding
	refused  bool // an error was found
	full     bool // more was found than is told
}

type finding struct {
	severity Severity
	segments []string
	atName   bool // the name of the member is meant, not its value
	offset   int
	message  string
}

func (v *validator) add(s Severity, p *path, atName bool, format string, args ...any) {
	v.refused = v.refused || s == Error
	if len(v.findings) >= maxDiagnostics {
		v.full = true
		return
	}
	v.findings = append(v.findings, finding{s, p.segments(), atName, 0, fmt.Sprintf(format, args...)})
}

func (v *validator) errorf(p *path, format string, args ...any) {
	v.add(Error, p, false, format, args...)
}

func (v *validator) warnf(p *path, format string, args ...any) {
	v.add(Warning, p, false, format, args...)
}

// diagnostics places the findings in the text. Without located their
// offsets are known already.
func (v *validator) diagnostics(located bool) Diagnostics {
	if located && len(v.findings) > 0 {
		var root place
		for i := range v.findings {
			f := &v.findings[i]
			root.want(f.segments, f.atName, &f.offset)
		}
		locate(v.text, &root)
		slices.SortStableFunc(v.findings, func(a, b finding) int { return a.offset - b.offset })
	}
	var ds Diagnostics
	for _, f := range v.findings {
		line, column := lineColumn(v.text, f.offset)
		ds = append(ds, Diagnostic{v.file, line, column, pointer(f.segments), f.severity, f.message})
	}
	if v.full {
		last := ds[len(ds)-1]
		severity := Warning
		if v.refused {
			severity = Error
		}
		ds = append(ds, Diagnostic{v.file, last.Line, last.Column, "", severity, "there is more, which is not listed"})
	}
	return ds
}

// quoted shortens what was written for a message.
func quoted(s string) string {
	const most = 60
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return fmt.Sprintf("%q", s)
}

// article names a kind of value with its article.
func article(k signal.ValueKind) string {
	switch k {
	case signal.KindNull:
		return "null"
	case signal.KindAbsent:
		return "nothing"
	case signal.KindInt, signal.KindUint, signal.KindArray, signal.KindObject:
		return "an " + k.String()
	default:
		return "a " + k.String()
	}
}
