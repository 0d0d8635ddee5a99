package redact

import (
	"regexp"
	"sync"
)

// expression returns a regular expression, and compiles it when it is first called: a
// program that links this package and redacts nothing does not pay for all of them.
type expression = func() *regexp.Regexp

// express returns the expression with a text that is known to be one.
func express(text string) expression {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}
