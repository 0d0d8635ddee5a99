package rehearsal

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/sajou-dev/sajou-go/authored"
	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/choreography/language"
	"github.com/sajou-dev/sajou-go/signal"
	"github.com/sajou-dev/sajou-go/stage/scene"
)

// maxDiagnostics bounds the diagnostics of one file.
const maxDiagnostics = 50

// Parse parses the text of a file, JSON or YAML, that holds one scenario or an array of
// them; [authored.Read] says which names are those of YAML.
// It returns either scenarios or diagnostics, which say what is wrong and where.
func Parse(file string, text []byte) ([]*Scenario, authored.Diagnostics) {
	t, refused := authored.Read(file, text)
	if refused != nil {
		return nil, refused
	}
	r := reader{file: file, text: t.JSON}
	value := t.Value
	var scenarios []*Scenario
	if value.Kind() != signal.KindArray {
		scenarios = append(scenarios, r.scenario(value, nil))
	}
	for e := range value.Elements() {
		scenarios = append(scenarios, r.scenario(e, (*authored.Location)(nil).Element(len(scenarios))))
	}
	if len(scenarios) == 0 {
		r.refuse(nil, "there is no scenario in the list")
	}
	if diagnostics := t.Placed(r.diagnostics()); len(diagnostics) > 0 {
		return nil, diagnostics
	}
	return scenarios, nil
}

// reader makes scenarios of values and collects the findings about them.
type reader struct {
	file     string
	text     []byte
	findings []finding
}

// finding is a message about a place. For a definition that does not compile,
// the diagnostics that package choreography gives for it replace the message.
type finding struct {
	place   *authored.Location
	message string
	inside  *language.Catalog // the declarations before this definition; nil for other findings
}

func (r *reader) refuse(at *authored.Location, format string, args ...any) {
	r.findings = append(r.findings, finding{place: at, message: fmt.Sprintf(format, args...)})
}

// list returns a member that has to be an array. It is nil if the member is
// absent or null.
func (r *reader) list(v signal.Value, at *authored.Location, name string) signal.Value {
	switch list, _ := v.Get(name); list.Kind() {
	case signal.KindArray:
		return list
	case signal.KindAbsent, signal.KindNull:
	default:
		r.refuse(at.At(name), "%s is an array", name)
	}
	return nil
}

func (r *reader) words(v signal.Value, at *authored.Location, name string) string {
	member, ok := v.Get(name)
	text, is := member.Text()
	if ok && !is && member.Kind() != signal.KindNull {
		r.refuse(at.At(name), "%s is a text", name)
	}
	return text
}

func (r *reader) scenario(v signal.Value, at *authored.Location) *Scenario {
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
	r.definitions(s, r.list(v, at, "definitions"), at.At("definitions"))
	if script, _ := v.Get("script"); script == nil || script.Kind() == signal.KindNull {
		r.refuse(at, `"script" is missing: the signals that come, and the time that passes`)
	}
	i := 0
	for e := range r.list(v, at, "script").Elements() {
		r.step(s, e, at.At("script").Element(i))
		i++
	}
	if sc, ok := v.Get("scene"); ok {
		compiled, err := scene.Compile(sc)
		if err != nil {
			r.refuse(at.At("scene"), "this is no scene: %v", err)
		}
		s.Scene = compiled
	}
	n := 0
	for e := range r.list(v, at, "values").Elements() {
		r.value(s, e, at.At("values").Element(n))
		n++
	}
	expected := r.list(v, at, "expected")
	if s.Judged = expected != nil; s.Judged {
		s.Expected = []choreography.Command{}
	}
	i = 0
	for e := range expected.Elements() {
		var c choreography.Command
		if err := json.Unmarshal(e.AppendJSON(nil), &c); err != nil {
			r.refuse(at.At("expected").Element(i), "this is no command: %v", err)
		}
		s.Expected = append(s.Expected, c)
		i++
	}
	return s
}

func (r *reader) definitions(s *Scenario, list signal.Value, at *authored.Location) {
	inForce := new(language.Catalog)
	i := 0
	for v := range list.Elements() {
		at := at.Element(i)
		i++
		d, err := language.CompileDeclaration(language.WordFor(v), v)
		next := inForce
		if err == nil {
			next, err = inForce.With(d)
		}
		if err != nil {
			r.findings = append(r.findings, finding{at, err.Error(), inForce})
			continue
		}
		inForce = next
		s.Definitions = append(s.Definitions, d)
	}
}

func (r *reader) value(s *Scenario, v signal.Value, at *authored.Location) {
	path := v.TextOf("path")
	value, ok := v.Get("value")
	if names := namesOf(path); !ok || len(names) < 2 || names[0] != "stage" {
		r.refuse(at, `a value is {"path": "stage.entities.ID.MEMBER", "value": any}`)
		return
	}
	s.Values = append(s.Values, ExpectedValue{path, value})
}

func (r *reader) step(s *Scenario, v signal.Value, at *authored.Location) {
	sig, comes := v.Get("signal")
	advance, passes := v.Get("advance")
	ms, isNumber := advance.Float64()
	switch {
	case comes == passes:
		r.refuse(at, `a step of the script is {"signal": envelope} or {"advance": ms}`)
	case passes && (!isNumber || ms < 0):
		r.refuse(at.At("advance"), "advance is a number of milliseconds, at least 0")
	case passes:
		s.Script = append(s.Script, ScriptStep{Advance: duration(ms)})
	default:
		parsed, err := signal.ParseLenient(sig.AppendJSON(nil))
		if err != nil {
			r.refuse(at.At("signal"), "this is no signal: %v", err)
			return
		}
		s.Script = append(s.Script, ScriptStep{Signal: parsed})
	}
}

func duration(ms float64) time.Duration {
	if ns := math.Round(float64(ms * 1e6)); ns < math.MaxInt64 {
		return time.Duration(ns)
	}
	return math.MaxInt64
}

// diagnostics returns the findings in the order of their lines and columns.
func (r *reader) diagnostics() authored.Diagnostics {
	places := make([]*authored.Location, len(r.findings))
	for i := range r.findings {
		places[i] = r.findings[i].place
	}
	offsets := authored.Locate(r.text, places)
	var all authored.Diagnostics
	for i, f := range r.findings {
		if len(all) >= maxDiagnostics {
			break
		}
		whole := authored.Diagnostic{File: r.file, Pointer: f.place.Pointer(), Severity: authored.SeverityError, Message: f.message}
		whole.Line, whole.Column = authored.LineColumn(r.text, offsets[i])
		inside := r.inside(f, offsets[i], whole)
		if len(inside) == 0 {
			inside = authored.Diagnostics{whole}
		}
		all = append(all, inside...)
	}
	slices.SortStableFunc(all, func(a, b authored.Diagnostic) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return all
}

// inside returns the errors that package choreography finds in a definition,
// at their places in the whole text.
func (r *reader) inside(f finding, offset int, whole authored.Diagnostic) authored.Diagnostics {
	if f.inside == nil {
		return nil
	}
	return r.judged(f.inside, offset, whole).Only(authored.SeverityError)
}

// judged returns the diagnostics of the declarations at an offset of the text.
// The line, column and pointer of whole are those of that offset.
func (r *reader) judged(inForce *language.Catalog, offset int, whole authored.Diagnostic) authored.Diagnostics {
	var text json.RawMessage
	var all authored.Diagnostics
	if err := json.NewDecoder(bytes.NewReader(r.text[offset:])).Decode(&text); err == nil { // Parse has found it well-formed
		_, all = language.ParseWith(inForce, r.file, text)
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

// Remarks returns the diagnostics of the definitions in a text that [Parse]
// accepts, as they would be with the definitions in a file of their own. An error
// among them says that a session would refuse to bring a definition into force. A
// scenario runs as it is written all the same; the caller decides whether it may.
func Remarks(file string, text []byte) authored.Diagnostics {
	t, refused := authored.Read(file, text)
	if refused != nil {
		return nil
	}
	r := reader{file: file, text: t.JSON}
	value := t.Value
	var places []*authored.Location
	mark := func(v signal.Value, at *authored.Location) {
		if definitions, _ := v.Get("definitions"); definitions.Len() > 0 {
			places = append(places, at.At("definitions"))
		}
	}
	if value.Kind() != signal.KindArray {
		mark(value, nil)
	}
	i := 0
	for e := range value.Elements() {
		mark(e, (*authored.Location)(nil).Element(i))
		i++
	}
	offsets := authored.Locate(r.text, places)
	var all authored.Diagnostics
	var room [authored.SeverityWarning + 1]int
	for i := range room {
		room[i] = maxDiagnostics // many warnings must not hide an error
	}
	for i, p := range places {
		whole := authored.Diagnostic{Pointer: p.Pointer()}
		whole.Line, whole.Column = authored.LineColumn(r.text, offsets[i])
		for _, d := range r.judged(new(language.Catalog), offsets[i], whole) {
			if room[d.Severity] > 0 {
				room[d.Severity]--
				all = append(all, d)
			}
		}
	}
	return t.Placed(all)
}
