package choreography

import (
	"fmt"
	"strings"

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

// The words of this package.
const (
	wordChoreography = "choreography"
	wordSequence     = "sequence"
	wordEasing       = "easing"
	wordBinding      = "binding"
)

var _ Declaration = (*Definition)(nil)

// Word returns "choreography".
func (d *Definition) Word() string { return wordChoreography }

// Name returns the definition's id, "" if it has none.
func (d *Definition) Name() string { return d.id }

// CompileDeclaration makes a declaration of a value that a define entry recorded under a
// word of this package. The error wraps [ErrDefinition].
func CompileDeclaration(word string, v signal.Value) (Declaration, error) {
	if v.Kind() != signal.KindObject {
		return nil, fmt.Errorf("%w: want an object", ErrDefinition)
	}
	// Each result is returned by itself: a nil pointer is no nil Declaration.
	switch word {
	case wordChoreography:
		d, err := Compile(v)
		if err != nil {
			return nil, err
		}
		return d, nil
	case wordSequence:
		s, err := compileSequence(v)
		if err != nil {
			return nil, err
		}
		return s, nil
	case wordEasing:
		e, err := compileEasing(v)
		if err != nil {
			return nil, err
		}
		return e, nil
	case wordBinding:
		b, err := compileBinding(v)
		if err != nil {
			return nil, err
		}
		return b, nil
	default:
		return nil, fmt.Errorf("%w: unknown word %q", ErrDefinition, word)
	}
}

// WordFor says what an object of a file is, by the members that only one kind of
// declaration has: the word of a define entry.
func WordFor(v signal.Value) string {
	has := func(name string) bool {
		_, ok := v.Get(name)
		return ok
	}
	switch {
	case has("sequence"):
		return wordSequence
	case has("curve"):
		return wordEasing
	case has("property") && (has("targetEntityId") || has("entity")), has("binding"):
		return wordBinding
	default:
		return wordChoreography
	}
}

// maxName bounds a name that something is used by.
const maxName = 200

// checkName refuses what cannot name a thing: nothing, what is very long, and
// what would be read as something else where the name stands. What says which
// name it is.
func checkName(what, name string) error {
	switch {
	case name == "":
		return fmt.Errorf("%s is missing", what)
	case len(name) > maxName:
		return fmt.Errorf("%s is longer than %d bytes", what, maxName)
	}
	for _, prefix := range [...]string{refPrefix, paramPrefix, eachPrefix, "binding."} {
		if strings.HasPrefix(name, prefix) {
			return fmt.Errorf("%s must not begin with %s", what, prefix)
		}
	}
	return nil
}
