package conformance

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/internal/jsonplace"
	"github.com/sajou-dev/sajou-go/signal"
)

// maxDiagnostics bounds what is said about one file.
const maxDiagnostics = 50

// Read reads the text of a file that holds one scenario or an array of them.
// There are none if there is any diagnostic: it says what is wrong and where.
func Read(file string, text []byte) ([]*Scenario, choreography.Diagnostics) {
	r := reader{file: file, text: text}
	value, err := signal.ParseValue(text)
	if err != nil {
		at := 0
		if syntax, ok := errors.AsType[*signal.SyntaxError](err); ok {
			at, err = syntax.Offset, errors.New(syntax.Reason)
		}
		line, column := jsonplace.LineColumn(text, at)
		return nil, choreography.Diagnostics{{File: file, Line: line, Column: column, Severity: choreography.Error, Message: err.Error()}}
	}
	var scenarios []*Scenario
	if value.Kind() != signal.KindArray {
		scenarios = append(scenarios, r.scenario(value, nil))
	}
	for e := range value.Elements() {
		scenarios = append(scenarios, r.scenario(e, []string{strconv.Itoa(len(scenarios))}))
	}
	if len(scenarios) == 0 {
		r.refuse(nil, "there is no scenario in the list")
	}
	if diagnostics := r.diagnostics(); len(diagnostics) > 0 {
		return nil, diagnostics
	}
	return scenarios, nil
}

// reader makes scenarios of values, and collects what is to be said of them.
type reader struct {
	file     string
	text     []byte
	findings []finding
}

// finding is what is said about a place, or what the parts of a definition
// there are told by choreography itself.
type finding struct {
	mark    jsonplace.Mark
	message string
	inside  *choreography.Catalog // the definition there is to be judged with this in force
}

func (r *reader) refuse(at []string, format string, args ...any) {
	r.findings = append(r.findings, finding{mark: jsonplace.Mark{Segments: at}, message: fmt.Sprintf(format, args...)})
}

// below returns the place of a member or an element.
func below(at []string, name string) []string { return append(slices.Clip(at), name) }

func element(at []string, i int) []string { return below(at, strconv.Itoa(i)) }

// list returns a member that has to be an array; nil if there is none, and
// where null stands for that.
func (r *reader) list(v signal.Value, at []string, name string) signal.Value {
	switch list, _ := v.Get(name); list.Kind() {
	case signal.KindArray:
		return list
	case signal.KindAbsent, signal.KindNull:
	default:
		r.refuse(below(at, name), "%s is an array", name)
	}
	return nil
}

func (r *reader) words(v signal.Value, at []string, name string) string {
	member, ok := v.Get(name)
	text, is := member.Text()
	if ok && !is && member.Kind() != signal.KindNull {
		r.refuse(below(at, name), "%s is a text", name)
	}
	return text
}

func (r *reader) scenario(v signal.Value, at []string) *Scenario {
	s := new(Scenario)
	if v.Kind() != signal.KindObject {
		r.refuse(at, `a scenario is an object with a "script"`)
		return s
	}
	s.ID, s.Name, s.Notes = r.words(v, at, "id"), r.words(v, at, "name"), r.words(v, at, "notes")
	for e := range r.list(v, at, "tags").Elements() {
		tag, _ := e.Text()
		s.Tags = append(s.Tags, tag)
	}
	r.definitions(s, r.list(v, at, "definitions"), below(at, "definitions"))
	if script, _ := v.Get("script"); script == nil || script.Kind() == signal.KindNull {
		r.refuse(at, `"script" is missing: the signals that come, and the time that passes`)
	}
	i := 0
	for e := range r.list(v, at, "script").Elements() {
		r.step(s, e, element(below(at, "script"), i))
		i++
	}
	expected := r.list(v, at, "expected")
	if s.Judged = expected != nil; s.Judged {
		s.Expected = []choreography.Command{}
	}
	i = 0
	for e := range expected.Elements() {
		var c choreography.Command
		if err := json.Unmarshal(e.AppendJSON(nil), &c); err != nil {
			r.refuse(element(below(at, "expected"), i), "this is no command: %v", err)
		}
		s.Expected = append(s.Expected, c)
		i++
	}
	return s
}

func (r *reader) definitions(s *Scenario, list signal.Value, at []string) {
	inForce := new(choreography.Catalog)
	i := 0
	for v := range list.Elements() {
		at := element(at, i)
		i++
		d, err := choreography.CompileDeclaration(choreography.WordFor(v), v)
		next := inForce
		if err == nil {
			next, err = inForce.With(d)
		}
		if err != nil {
			r.findings = append(r.findings, finding{jsonplace.Mark{Segments: at}, err.Error(), inForce})
			continue
		}
		inForce = next
		s.Definitions = append(s.Definitions, d)
	}
}

func (r *reader) step(s *Scenario, v signal.Value, at []string) {
	sig, comes := v.Get("signal")
	advance, passes := v.Get("advance")
	ms, isNumber := advance.Float64()
	switch {
	case comes == passes:
		r.refuse(at, `a step of the script is {"signal": envelope} or {"advance": ms}`)
	case passes && (!isNumber || ms < 0):
		r.refuse(below(at, "advance"), "advance is a number of milliseconds, at least 0")
	case passes:
		s.Script = append(s.Script, Step{Advance: duration(ms)})
	default:
		parsed, err := signal.ParseLenient(sig.AppendJSON(nil))
		if err != nil {
			r.refuse(below(at, "signal"), "this is no signal: %v", err)
			return
		}
		s.Script = append(s.Script, Step{Signal: parsed})
	}
}

func duration(ms float64) time.Duration {
	if ns := math.Round(float64(ms * 1e6)); ns < math.MaxInt64 {
		return time.Duration(ns)
	}
	return math.MaxInt64
}

// diagnostics places the findings in the text.
func (r *reader) diagnostics() choreography.Diagnostics {
	marks := make([]*jsonplace.Mark, len(r.findings))
	for i := range r.findings {
		marks[i] = &r.findings[i].mark
	}
	if len(marks) > 0 {
		jsonplace.Locate(r.text, marks)
	}
	var all choreography.Diagnostics
	for _, f := range r.findings {
		if len(all) >= maxDiagnostics {
			break
		}
		whole := choreography.Diagnostic{File: r.file, Pointer: jsonplace.Pointer(f.mark.Segments), Severity: choreography.Error, Message: f.message}
		whole.Line, whole.Column = jsonplace.LineColumn(r.text, f.mark.Offset)
		inside := r.inside(f, whole)
		if len(inside) == 0 {
			inside = choreography.Diagnostics{whole}
		}
		all = append(all, inside...)
	}
	slices.SortStableFunc(all, func(a, b choreography.Diagnostic) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return all
}

// inside returns the errors in a definition as an author is told them, at their
// places in the whole text.
func (r *reader) inside(f finding, whole choreography.Diagnostic) choreography.Diagnostics {
	if f.inside == nil {
		return nil
	}
	return r.judged(f.inside, f.mark.Offset, whole).Only(choreography.Error)
}

// judged returns what an author is told about declarations that stand at an
// offset of the text, which is also the place of whole.
func (r *reader) judged(inForce *choreography.Catalog, offset int, whole choreography.Diagnostic) choreography.Diagnostics {
	var text json.RawMessage
	var all choreography.Diagnostics
	if err := json.NewDecoder(bytes.NewReader(r.text[offset:])).Decode(&text); err == nil { // it was parsed before
		_, all = choreography.ParseWith(inForce, r.file, text)
	}
	for i := range all {
		if all[i].Line == 1 {
			all[i].Column += whole.Column - 1
		}
		all[i].Line += whole.Line - 1
		all[i].Pointer = whole.Pointer + all[i].Pointer
	}
	return all
}

// Remarks returns what an author would be told about the definitions in a text
// that [Read] could read, all of it as warnings: a scenario is played as it is
// written, also where it could not be brought into force.
func Remarks(file string, text []byte) choreography.Diagnostics {
	r := reader{file: file, text: text}
	value, _ := signal.ParseValue(text) // nothing, if it is not JSON
	if value == nil {
		return nil
	}
	var marks []*jsonplace.Mark
	mark := func(v signal.Value, at []string) {
		if definitions, _ := v.Get("definitions"); definitions.Len() > 0 {
			marks = append(marks, &jsonplace.Mark{Segments: below(at, "definitions")})
		}
	}
	if value.Kind() != signal.KindArray {
		mark(value, nil)
	}
	i := 0
	for e := range value.Elements() {
		mark(e, []string{strconv.Itoa(i)})
		i++
	}
	jsonplace.Locate(text, marks)
	var all choreography.Diagnostics
	for _, m := range marks {
		whole := choreography.Diagnostic{Pointer: jsonplace.Pointer(m.Segments)}
		whole.Line, whole.Column = jsonplace.LineColumn(text, m.Offset)
		for _, d := range r.judged(new(choreography.Catalog), m.Offset, whole) {
			d.Severity = choreography.Warning
			if all = append(all, d); len(all) == maxDiagnostics {
				return all
			}
		}
	}
	return all
}
