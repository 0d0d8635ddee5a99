package language

import (
	"fmt"
	"strings"

	"github.com/sajou-dev/sajou-go/choreography/definition"
	"github.com/sajou-dev/sajou-go/signal"
)

// Declaration is an object that an author declares and a log brings into force: a
// [*definition.Definition], a [*Sequence], an [*Easing], a [*Binding], or the
// declaration of another package, such as a scene.
type Declaration interface {
	// Word returns the word of its define entry: "choreography", "sequence", "easing",
	// "binding", "scene".
	Word() string

	// Name returns the name by which others use and replace it, "" if it has none.
	Name() string

	// Value returns the declaration as it was written. It must not be changed.
	Value() signal.Value
}

// The words of this package.
const (
	wordChoreography = definition.Word
	wordSequence     = "sequence"
	wordEasing       = "easing"
	wordBinding      = "binding"
)

var _ Declaration = (*definition.Definition)(nil)

// CompileDeclaration compiles a value that a define entry recorded under a word of
// this package. The error wraps [definition.ErrInvalid].
func CompileDeclaration(word string, v signal.Value) (Declaration, error) {
	if v.Kind() != signal.KindObject {
		return nil, refused(reasonNotObject)
	}
	// Each result is returned by itself: a nil pointer would be a non-nil Declaration.
	switch word {
	case wordChoreography:
		d, err := definition.Compile(v)
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
		return nil, refused(reasonUnknownWord, word)
	}
}

// WordFor returns the word of an object in a file. It looks for members that only one
// kind of declaration has.
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

// maxName bounds the bytes of a name.
const maxName = 200

// checkName refuses an empty name, a very long one, and one that would be parsed as a
// reference or a placeholder. What describes the name in the message.
func checkName(what, name string) error {
	switch {
	case name == "":
		return fmt.Errorf(reasonNameMissing, what)
	case len(name) > maxName:
		return fmt.Errorf(reasonNameTooLong, what, maxName)
	}
	for _, prefix := range [...]string{definition.RefPrefix, paramPrefix, eachPrefix, "binding."} {
		if strings.HasPrefix(name, prefix) {
			return fmt.Errorf(reasonNamePrefix, what, prefix)
		}
	}
	return nil
}
