// Package language is the language in which authors write choreographies: the
// declarations of a file, their meaning and their expansion.
//
// # Nouns
//
// A [Declaration] is anything that an author declares: a choreography, a
// [Sequence] of steps with a name, an [Easing], or a [Binding] of a property to
// signals. [Parse] reads declarations from a file and reports mistakes to the author.
// A [Catalog] holds the declarations in force, by name.
//
// # From text to definitions
//
// A declaration passes three stages. Parse and [CheckCondition] validate it for an
// author, with places in the text. [CompileDeclaration] accepts the declarations of a
// log and is as lenient as the runtime that first performed them. [Catalog.With] then
// expands it: it replaces extends, include, repeat and stagger by steps, so that the
// definition in force does not depend on later declarations.
//
// # Invariants
//
//   - What Parse accepts, CompileDeclaration and Catalog.With accept.
//   - The expansion of a definition is a function of its value and the catalog,
//     and expanding its result changes nothing.
//   - The bounds at the top of expand.go hold for every input.
//
// The package does not know the scheduler, and is pure: no clock, no goroutine,
// no input or output.
//
// docs/glossary.md has the nouns of all packages.
package language

import (
	"errors"
	"strings"

	"github.com/sajou-dev/sajou-go/authored"
	"github.com/sajou-dev/sajou-go/choreography/definition"
	"github.com/sajou-dev/sajou-go/signal"
)

// Parse reads declarations from the text of a file, one object or an array of
// them, in JSON or, if the file's name says so, in YAML; see [authored.Read]. It is
// stricter than [CompileDeclaration]: it refuses mistakes and warns of parts that have
// no effect. File names the text in diagnostics. The declarations may refer to each
// other, in any order, and to nothing else; see [ParseWith].
//
// They are returned in an order in which they can come into force one by one:
// easings first, then the others as they are written, except that each comes after
// those that it refers to. If any diagnostic is of severity [authored.SeverityError],
// see [authored.Diagnostics.Err], none is returned.
func Parse(file string, text []byte) ([]Declaration, authored.Diagnostics) {
	return ParseWith(new(Catalog), file, text)
}

// ParseWith is [Parse] for declarations that may also refer to those in force.
// It does not change the catalog.
func ParseWith(c *Catalog, file string, text []byte) ([]Declaration, authored.Diagnostics) {
	t, refused := authored.Read(file, text)
	if refused != nil {
		return nil, refused
	}
	v := validator{catalog: c, items: map[string]*item{}}
	declarations := v.file(t.Value)
	return declarations, t.Placed(v.Diagnostics(file, t.JSON))
}

// file reads the declarations of a file. It returns none if there is an error.
func (v *validator) file(value signal.Value) []Declaration {
	// A file that exceeds the budget as a whole is not examined further.
	switch {
	case definition.CheckNesting(value) != nil:
		v.Errorf(nil, "%s", reasonOf(definition.CheckNesting(value)))
		return nil
	case value.Kind() == signal.KindArray && value.Len() > definition.MaxBytesInForce/definition.BytesPerDeclaration:
		v.Errorf(nil, "a file must not have more than %d declarations", definition.MaxBytesInForce/definition.BytesPerDeclaration)
		return nil
	}
	var items []*item
	switch value.Kind() {
	case signal.KindObject:
		items = append(items, v.item(nil, value))
	case signal.KindArray:
		for e := range value.Elements() {
			items = append(items, v.item((*authored.Location)(nil).Element(len(items)), e))
		}
		if items == nil {
			v.Warnf(nil, "there is no definition in the list")
		}
	default:
		v.Errorf(nil, "want a definition object or an array of them, not %s", value.Kind().WithArticle())
	}
	for _, it := range items {
		v.declaration(it)
	}
	var declarations []Declaration
	if !v.Refused() {
		items = v.ordered(items)
	}
	if !v.Refused() {
		declarations = v.inForce(items)
	}
	if v.Refused() {
		return nil
	}
	return declarations
}

// reasonOf returns the text of an error about a declaration without the prefix that
// all such errors share.
func reasonOf(err error) string {
	return strings.TrimPrefix(err.Error(), definition.ErrInvalid.Error()+": ")
}

// inForce brings items into force one by one, as a session would, and judges
// their expansions.
func (v *validator) inForce(items []*item) []Declaration {
	declarations := make([]Declaration, 0, len(items))
	c := v.catalog
	for _, it := range items {
		if v.Full() {
			break // further mistakes would not be listed
		}
		d, err := CompileDeclaration(it.word, it.value)
		var next *Catalog
		var bound []*definition.Definition
		if err == nil {
			next, err = c.With(d)
		}
		if err == nil {
			bound, err = next.Bind(d)
		}
		if err != nil {
			v.Errorf(it.p, "%s", reasonOf(err))
			if errors.Is(err, definition.ErrBudget) {
				break
			}
			continue
		}
		c = next
		declarations = append(declarations, d)
		for _, b := range bound {
			if own, ok := d.(*definition.Definition); ok && own != b {
				v.writtenOut(it.p, b.Value(), c)
			}
		}
	}
	return declarations
}

// writtenOut judges the expansion of a choreography: an argument may be in a place
// where its kind of value is not allowed.
func (v *validator) writtenOut(p *authored.Location, value signal.Value, c *Catalog) {
	w := validator{catalog: c, isWritten: true}
	w.definition(nil, value)
	for _, f := range w.List() {
		if f.Severity == authored.SeverityError {
			v.Errorf(p, "written out, %s: %s", f.Location.Pointer(), f.Message)
			return
		}
	}
}
