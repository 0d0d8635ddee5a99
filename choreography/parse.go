package choreography

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sajou-dev/sajou-go/internal/jsonplace"
	"github.com/sajou-dev/sajou-go/internal/wording"
	"github.com/sajou-dev/sajou-go/signal"
)

// maxDiagnostics bounds what is said about one file.
const maxDiagnostics = 100

// Parse reads declarations from the text of a file, one object or an array of
// them, and judges them as an author would want: what is refused is what cannot
// be meant, and what has no effect gets a warning. File only names the text in
// diagnostics. The declarations may refer to each other, in any order, and to
// nothing else; see [ParseWith].
//
// They are returned in an order in which they can come into force one by one:
// easings first, and the others as they are written, save that what one refers
// to comes before it. If any diagnostic is of severity [Error], which
// [Diagnostics.Err] tells, none is returned.
func Parse(file string, json []byte) ([]Declaration, Diagnostics) {
	return ParseWith(new(Catalog), file, json)
}

// ParseWith is [Parse] for declarations that may also refer to what is in force.
// The catalog stays as it is.
func ParseWith(c *Catalog, file string, json []byte) ([]Declaration, Diagnostics) {
	v := validator{file: file, text: json, catalog: c, items: map[string]*item{}}
	value, err := signal.ParseValue(json)
	if err != nil {
		var syntax *signal.SyntaxError
		if errors.As(err, &syntax) {
			v.findings = append(v.findings, finding{jsonplace.Mark{Offset: syntax.Offset}, Error, syntax.Reason})
		} else {
			v.errorf(nil, "%v", err)
		}
		return nil, v.diagnostics(false)
	}
	var items []*item
	switch value.Kind() {
	case signal.KindObject:
		items = append(items, v.item(nil, value))
	case signal.KindArray:
		for e := range value.Elements() {
			items = append(items, v.item((*path)(nil).element(len(items)), e))
		}
		if items == nil {
			v.warnf(nil, "there is no definition in the list")
		}
	default:
		v.errorf(nil, "want a definition object or an array of them, not %s", wording.Article(value.Kind()))
	}
	for _, it := range items {
		v.declaration(it)
	}
	var declarations []Declaration
	if !v.refused {
		items = v.ordered(items)
	}
	if !v.refused {
		declarations = v.inForce(items)
	}
	if v.refused {
		declarations = nil
	}
	return declarations, v.diagnostics(true)
}

// item is one declaration of a file.
type item struct {
	p     *path
	value signal.Value
	word  string

	sequence *Sequence // if it is one that can be included

	order ordering
}

// ordering says how far an item is put in order.
type ordering uint8

const (
	unordered ordering = iota
	beingOrdered
	isOrdered
)

// item notes a declaration, so that others can refer to it wherever they stand.
func (v *validator) item(p *path, value signal.Value) *item {
	it := &item{p: p, value: value, word: WordFor(value)}
	var name, at string
	switch it.word {
	case wordSequence:
		name, at = firstText(value, "sequence"), "sequence"
		if s, err := compileSequence(value); err == nil {
			it.sequence = s
		}
	case wordEasing:
		name, at = firstText(value, "easing"), "easing"
	case wordBinding:
		name, at = firstText(value, "binding", "id"), "id"
	default:
		name, at = firstText(value, "id"), "id"
	}
	if name == "" {
		return it
	}
	k := key(it.word, name)
	if v.items[k] != nil {
		v.errorf(p.at(at), "there is another %s %s in this file", it.word, wording.Quoted(name))
		return it
	}
	v.items[k] = it
	return it
}

// name returns what an item is referred to by, "" if nothing can.
func (it *item) name() string {
	switch it.word {
	case wordSequence:
		return firstText(it.value, "sequence")
	case wordBinding:
		return firstText(it.value, "binding", "id")
	default:
		return firstText(it.value, "id")
	}
}

// ordered puts items in an order in which each finds what it refers to.
func (v *validator) ordered(items []*item) []*item {
	var order []*item
	for _, it := range items {
		if it.word == wordEasing {
			it.order = isOrdered
			order = append(order, it)
		}
	}
	var inside []string
	var visit func(it *item)
	visit = func(it *item) {
		switch it.order {
		case unordered:
		case isOrdered:
			return
		case beingOrdered:
			what := "choreographies extend"
			if it.word == wordSequence {
				what = "sequences include"
			}
			first := slices.Index(inside, it.name())
			v.errorf(it.p, "%s each other without end: %s", what, cycle(append(slices.Clone(inside[max(first, 0):]), it.name())))
			return
		}
		it.order = beingOrdered
		inside = append(inside, it.name())
		it.refersTo(func(word, name string) {
			if other := v.items[key(word, name)]; other != nil {
				visit(other)
			}
		})
		inside = inside[:len(inside)-1]
		it.order = isOrdered
		order = append(order, it)
	}
	for _, it := range items {
		visit(it)
	}
	return order
}

// refersTo calls f for what must be in force before an item.
func (it *item) refersTo(f func(word, name string)) {
	for _, name := range [...]string{"before", "steps", "after"} {
		steps, _ := it.value.Get(name)
		includes(steps, func(name string) { f(wordSequence, name) })
	}
	if name := firstText(it.value, "extends"); name != "" && it.word == wordChoreography {
		f(wordChoreography, name)
	}
	if name := firstText(it.value, "sourceChoreographyId"); name != "" && it.word == wordBinding {
		f(wordChoreography, name)
	}
}

// maxFileSteps bounds the steps of all choreographies of one file, written out.
const maxFileSteps = 10 * MaxSteps

// inForce brings items into force one by one, as a session would, and judges
// what they become.
func (v *validator) inForce(items []*item) []Declaration {
	declarations := make([]Declaration, 0, len(items))
	c, steps := v.catalog, 0
	for _, it := range items {
		d, err := CompileDeclaration(it.word, it.value)
		var next *Catalog
		var bound []*Definition
		if err == nil {
			next, err = c.With(d)
		}
		if err == nil {
			bound, err = next.Bind(d)
		}
		if err != nil {
			v.errorf(it.p, "%s", strings.TrimPrefix(err.Error(), ErrDefinition.Error()+": "))
			continue
		}
		c = next
		declarations = append(declarations, d)
		for _, b := range bound {
			if steps += len(b.nodes); steps > maxFileSteps {
				v.errorf(it.p, "written out, the choreographies of this file have more than %d steps", maxFileSteps)
				return nil
			}
			if own, ok := d.(*Definition); ok && own != b {
				v.writtenOut(it.p, b.value, c)
			}
		}
	}
	return declarations
}

// writtenOut judges what a choreography became: an argument may have come to
// stand where it cannot.
func (v *validator) writtenOut(p *path, value signal.Value, c *Catalog) {
	w := validator{catalog: c, isWritten: true}
	w.definition(nil, value)
	for _, f := range w.findings {
		if f.severity == Error {
			v.errorf(p, "written out, %s: %s", jsonplace.Pointer(f.Segments), f.message)
			return
		}
	}
}

// validator collects findings. It nests no deeper than a value does.
type validator struct {
	file     string
	text     []byte
	catalog  *Catalog         // what is in force
	items    map[string]*item // of the file, by word and name
	findings []finding
	refused  bool // an error was found
	full     bool // more was found than is told
	scope    placeholders

	isWritten bool // it judges what a choreography became, not what is in a file
}

type finding struct {
	jsonplace.Mark
	severity Severity
	message  string
}

func (v *validator) add(s Severity, p *path, atName bool, format string, args ...any) {
	v.refused = v.refused || s == Error
	if len(v.findings) >= maxDiagnostics {
		v.full = true
		return
	}
	v.findings = append(v.findings, finding{jsonplace.Mark{Segments: p.segments(), AtName: atName}, s, fmt.Sprintf(format, args...)})
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
		marks := make([]*jsonplace.Mark, len(v.findings))
		for i := range v.findings {
			marks[i] = &v.findings[i].Mark
		}
		jsonplace.Locate(v.text, marks)
		slices.SortStableFunc(v.findings, func(a, b finding) int { return a.Offset - b.Offset })
	}
	var ds Diagnostics
	for _, f := range v.findings {
		line, column := jsonplace.LineColumn(v.text, f.Offset)
		ds = append(ds, Diagnostic{v.file, line, column, jsonplace.Pointer(f.Segments), f.severity, f.message})
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
