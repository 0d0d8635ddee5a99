package choreography

import (
	"fmt"
	"iter"

	"github.com/sajou-dev/sajou-go/signal"
)

// Declaration is anything that an author declares and a log brings into force:
// a [*Definition], a [*Sequence], an [*Easing], a [*Binding], or what another
// package adds, such as a scene.
type Declaration interface {
	// Word says what it is, as define entries call it: "choreography",
	// "sequence", "easing", "binding", "scene".
	Word() string

	// Name is what it is used and replaced by, "" if it has no name.
	Name() string

	// Value is the declaration as it was written. It must not be changed.
	Value() signal.Value
}

var _ Declaration = (*Definition)(nil)

// Word returns "choreography".
func (d *Definition) Word() string { return "choreography" }

// Name returns the definition's id, "" if it has none.
func (d *Definition) Name() string { return d.id }

// CompileDeclaration makes a declaration of a value that a define entry recorded under a
// word of this package. The error wraps [ErrDefinition].
func CompileDeclaration(word string, v signal.Value) (Declaration, error) {
	if word != "choreography" {
		return nil, fmt.Errorf("%w: unknown word %q", ErrDefinition, word)
	}
	return Compile(v)
}

// Catalog is the declarations in force that others refer to by name. It is
// immutable; the zero value is empty.
type Catalog struct{}

// With returns the catalog with d in force too, or says why d cannot be: it
// refers to what is not there.
func (c *Catalog) With(d Declaration) (*Catalog, error) { return c, nil }

// All yields the declarations in order of their first.
func (c *Catalog) All() iter.Seq[Declaration] { return func(func(Declaration) bool) {} }

// Bind returns what d makes signals perform, with all that it refers to put in
// its place.
func (c *Catalog) Bind(d Declaration) ([]*Definition, error) {
	if d, ok := d.(*Definition); ok {
		return []*Definition{d}, nil
	}
	return nil, nil
}
