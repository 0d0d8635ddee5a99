package scene

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/internal/jsonplace"
	"github.com/sajou-dev/sajou-go/internal/wording"
	"github.com/sajou-dev/sajou-go/signal"
)

// maxDiagnostics bounds what is said about one text.
const maxDiagnostics = 100

// node is a value and the way to it from the root of its text.
type node struct {
	value  signal.Value
	up     *node
	name   string // of a member
	index  int    // of an element
	member bool
}

func (n *node) at(name string, v signal.Value) *node {
	return &node{value: v, up: n, name: name, member: true}
}

func (n *node) element(i int, v signal.Value) *node { return &node{value: v, up: n, index: i} }

// get returns a member; its value is absent if there is none. A nil node has
// none.
func (n *node) get(name string) *node {
	if n == nil {
		return &node{}
	}
	v, _ := n.value.Get(name)
	return n.at(name, v)
}

func (n *node) there() bool { return n.value.Kind() != signal.KindAbsent }

func (n *node) segments() []string {
	var s []string
	for ; n != nil && n.up != nil; n = n.up {
		if n.member {
			s = append(s, n.name)
		} else {
			s = append(s, strconv.Itoa(n.index))
		}
	}
	slices.Reverse(s)
	return s
}

// remarks collects what there is to say about a text.
type remarks struct {
	findings []finding
	refused  bool // an error was found
	full     bool // more was found than is told
}

type finding struct {
	jsonplace.Mark
	severity choreography.Severity
	message  string
	beyond   bool // an error that no schema can tell
}

func (r *remarks) add(f finding, n *node) {
	r.refused = r.refused || f.severity == choreography.Error
	if len(r.findings) >= maxDiagnostics {
		r.full = true
		return
	}
	f.Segments = n.segments()
	r.findings = append(r.findings, f)
}

func (r *remarks) errorf(n *node, format string, args ...any) {
	r.add(finding{severity: choreography.Error, message: fmt.Sprintf(format, args...)}, n)
}

// refuse is errorf for what the schema cannot say.
func (r *remarks) refuse(n *node, format string, args ...any) {
	r.add(finding{severity: choreography.Error, message: fmt.Sprintf(format, args...), beyond: true}, n)
}

func (r *remarks) warnf(n *node, format string, args ...any) {
	r.add(finding{severity: choreography.Warning, message: fmt.Sprintf(format, args...)}, n)
}

// unknown refuses a member that its object does not have.
func (r *remarks) unknown(n *node, what, has string) {
	f := finding{severity: choreography.Error, message: fmt.Sprintf("unknown field %s: %s has %s", wording.Quoted(n.name), what, has)}
	f.AtName = true
	r.add(f, n)
}

// firstError returns the first error, nil if there is none. One that is not
// listed, since there are too many remarks, counts as well.
func (r *remarks) firstError() *finding {
	for i := range r.findings {
		if r.findings[i].severity == choreography.Error {
			return &r.findings[i]
		}
	}
	if r.refused {
		return &finding{message: "it has errors beyond the remarks that are listed"}
	}
	return nil
}

// diagnostics places the remarks in their text.
func (r *remarks) diagnostics(file string, text []byte) choreography.Diagnostics {
	marks := make([]*jsonplace.Mark, len(r.findings))
	for i := range r.findings {
		marks[i] = &r.findings[i].Mark
	}
	if len(marks) > 0 {
		jsonplace.Locate(text, marks)
	}
	slices.SortStableFunc(r.findings, func(a, b finding) int { return a.Offset - b.Offset })
	var ds choreography.Diagnostics
	for _, f := range r.findings {
		line, column := jsonplace.LineColumn(text, f.Offset)
		ds = append(ds, choreography.Diagnostic{
			File: file, Line: line, Column: column, Pointer: jsonplace.Pointer(f.Segments), Severity: f.severity, Message: f.message,
		})
	}
	if r.full && len(ds) > 0 {
		last := ds[len(ds)-1]
		last.Pointer, last.Severity, last.Message = "", choreography.Warning, "there is more, which is not listed"
		if r.refused {
			last.Severity = choreography.Error
		}
		ds = append(ds, last)
	}
	return ds
}

// syntaxDiagnostics tells why a text is no JSON.
func syntaxDiagnostics(file string, text []byte, err error) choreography.Diagnostics {
	d := choreography.Diagnostic{File: file, Line: 1, Column: 1, Severity: choreography.Error, Message: err.Error()}
	var syntax *signal.SyntaxError
	if errors.As(err, &syntax) {
		d.Line, d.Column = jsonplace.LineColumn(text, syntax.Offset)
		d.Message = syntax.Reason
	}
	return choreography.Diagnostics{d}
}

// offered lists names for a message, the first few of many.
func offered(names []string) string {
	const most = 12
	if len(names) > most {
		return strings.Join(names[:most], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}
