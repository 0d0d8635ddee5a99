package choreography

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sajou-dev/sajou-go/internal/wording"
	"github.com/sajou-dev/sajou-go/signal"
)

// Sequence is a list of steps with a name, for other steps to include:
//
//	{"sequence": "greet", "params": ["who"], "steps": [
//	  {"action": "flash", "entity": "param.who", "duration": 200}]}
//
//	{"action": "include", "sequence": "greet", "with": {"who": "signal.to"}}
//
// Inside, a string right in a step that is exactly "param." and the name of a
// parameter stands for the argument, whatever JSON value that is.
type Sequence struct {
	value  signal.Value
	name   string
	params []param // an absent value: it must be given
	steps  signal.Value
}

var _ Declaration = (*Sequence)(nil)

// compileSequence makes a sequence of v, which it copies.
func compileSequence(v signal.Value) (*Sequence, error) {
	s := &Sequence{value: slices.Clone(v)}
	name, _ := s.value.Get("sequence")
	s.name, _ = name.Text()
	if err := checkName("the name of the sequence", s.name); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDefinition, err)
	}
	if params, ok := s.value.Get("params"); ok {
		var err error
		if s.params, err = parameters(params); err != nil {
			return nil, fmt.Errorf("%w: sequence %s: %w", ErrDefinition, wording.Quoted(s.name), err)
		}
	}
	s.steps, _ = s.value.Get("steps")
	if s.steps.Kind() != signal.KindArray {
		return nil, fmt.Errorf("%w: sequence %s has no steps", ErrDefinition, wording.Quoted(s.name))
	}
	return s, nil
}

// parameters reads a list of names, or an object of names and what they are
// when nothing is given.
func parameters(v signal.Value) ([]param, error) {
	var params []param
	add := func(name string, value signal.Value) error {
		switch {
		case !isParamName(name):
			return fmt.Errorf("a parameter cannot be called %s: use letters, digits, _ and -", wording.Quoted(name))
		case slices.ContainsFunc(params, func(p param) bool { return p.name == name }):
			return fmt.Errorf("two parameters are called %s", wording.Quoted(name))
		}
		params = append(params, param{name, value})
		return nil
	}
	switch v.Kind() {
	case signal.KindArray:
		if v.Len() > maxParams {
			return nil, fmt.Errorf("more than %d parameters", maxParams)
		}
		for e := range v.Elements() {
			name, _ := e.Text()
			if err := add(name, nil); err != nil {
				return nil, err
			}
		}
	case signal.KindObject:
		if v.Len() > maxParams {
			return nil, fmt.Errorf("more than %d parameters", maxParams)
		}
		for name, value := range v.Members() {
			if err := add(name, value); err != nil {
				return nil, err
			}
		}
	default:
		return nil, fmt.Errorf("params must be an array of names, or an object of names and defaults, not %s", wording.Article(v.Kind()))
	}
	return params, nil
}

// maxParams bounds the parameters of a sequence.
const maxParams = 100

// isParamName reports whether "param." and name can be told from a text.
func isParamName(name string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
	return name != "" && len(name) <= maxName && strings.Trim(name, letters) == ""
}

// Word returns "sequence".
func (s *Sequence) Word() string { return wordSequence }

// Name returns the name that include steps use.
func (s *Sequence) Name() string { return s.name }

// Value returns the sequence as it was written. It must not be changed.
func (s *Sequence) Value() signal.Value { return s.value }

// arguments makes what the parameters of s stand for, given the "with" of an
// include step and what the values in that mean.
func (s *Sequence) arguments(with signal.Value, means func(signal.Value) signal.Value) ([]param, error) {
	if k := with.Kind(); k != signal.KindObject && k != signal.KindAbsent {
		return nil, fmt.Errorf("with must be an object of arguments, not %s", wording.Article(k))
	}
	arguments := slices.Clone(s.params)
	for name, value := range with.Members() {
		i := slices.IndexFunc(arguments, func(p param) bool { return p.name == name })
		if i < 0 {
			return nil, fmt.Errorf("sequence %s has no parameter %s; %s", wording.Quoted(s.name), wording.Quoted(name), s.takes())
		}
		arguments[i].value = means(value)
	}
	for _, p := range arguments {
		if p.value == nil {
			return nil, fmt.Errorf("sequence %s needs an argument %s: write it in with", wording.Quoted(s.name), wording.Quoted(p.name))
		}
	}
	return arguments, nil
}

// itself is what a value means that holds no placeholders.
func itself(v signal.Value) signal.Value { return v }

func (s *Sequence) takes() string {
	if len(s.params) == 0 {
		return "it takes none"
	}
	names := make([]string, len(s.params))
	for i, p := range s.params {
		names[i] = p.name
	}
	return "it takes " + strings.Join(names, ", ")
}
