package language

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sajou-dev/sajou-go/authored"
	"github.com/sajou-dev/sajou-go/choreography/definition"
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
// In the steps, a string directly in a step that is exactly "param." and the name of a
// parameter is replaced by the argument, which may be any JSON value.
type Sequence struct {
	value  signal.Value
	name   string
	params []definition.Param // an absent value: the argument is required
	steps  signal.Value
}

var _ Declaration = (*Sequence)(nil)

// compileSequence compiles v, which it copies.
func compileSequence(v signal.Value) (*Sequence, error) {
	if err := definition.CheckNesting(v); err != nil {
		return nil, err
	}
	s := &Sequence{value: slices.Clone(v)}
	name := s.value.Member("sequence")
	s.name, _ = name.Text()
	if err := checkName(nameOfSequence, s.name); err != nil {
		return nil, fmt.Errorf("%w: %w", definition.ErrInvalid, err)
	}
	if params, ok := s.value.Get("params"); ok {
		var err error
		if s.params, err = parameters(params); err != nil {
			return nil, refused(reasonSequence, wording.Quoted(s.name), err)
		}
	}
	s.steps = s.value.Member("steps")
	if s.steps.Kind() != signal.KindArray {
		return nil, refused(reasonNoSteps, wording.Quoted(s.name))
	}
	return s, nil
}

// parameters reads an array of names, or an object of names and default values.
func parameters(v signal.Value) ([]definition.Param, error) {
	var params []definition.Param
	add := func(name string, value signal.Value) error {
		switch {
		case !isParamName(name):
			return fmt.Errorf(reasonParamName, wording.Quoted(name))
		case slices.ContainsFunc(params, func(p definition.Param) bool { return p.Name == name }):
			return fmt.Errorf(reasonParamTwice, wording.Quoted(name))
		}
		params = append(params, definition.Param{Name: name, Value: value})
		return nil
	}
	switch v.Kind() {
	case signal.KindArray:
		if v.Len() > maxParams {
			return nil, fmt.Errorf(reasonTooManyParams, maxParams)
		}
		for e := range v.Elements() {
			name, _ := e.Text()
			if err := add(name, nil); err != nil {
				return nil, err
			}
		}
	case signal.KindObject:
		if v.Len() > maxParams {
			return nil, fmt.Errorf(reasonTooManyParams, maxParams)
		}
		for name, value := range v.Members() {
			if err := add(name, value); err != nil {
				return nil, err
			}
		}
	default:
		return nil, fmt.Errorf(reasonParamsKind, v.Kind().WithArticle())
	}
	return params, nil
}

// maxParams bounds the parameters of a sequence.
const maxParams = 100

// isParamName reports whether "param." and name can be recognized as a placeholder.
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

// arguments returns the parameters of s with their arguments: the members of the
// "with" of an include step, or else the defaults. Means replaces placeholders.
func (s *Sequence) arguments(with signal.Value, means func(signal.Value) signal.Value) ([]definition.Param, error) {
	if k := with.Kind(); k != signal.KindObject && k != signal.KindAbsent {
		return nil, fmt.Errorf(reasonWithKind, k.WithArticle())
	}
	arguments := slices.Clone(s.params)
	for name, value := range with.Members() {
		i := slices.IndexFunc(arguments, func(p definition.Param) bool { return p.Name == name })
		if i < 0 {
			return nil, fmt.Errorf(reasonNoParam, wording.Quoted(s.name), wording.Quoted(name), s.takes())
		}
		arguments[i].Value = means(value)
	}
	for _, p := range arguments {
		if p.Value == nil {
			return nil, fmt.Errorf(reasonNoArgument, wording.Quoted(s.name), wording.Quoted(p.Name))
		}
	}
	return arguments, nil
}

// itself is the meaning of a value without placeholders.
func itself(v signal.Value) signal.Value { return v }

func (s *Sequence) takes() string {
	if len(s.params) == 0 {
		return reasonTakesNone
	}
	names := make([]string, len(s.params))
	for i, p := range s.params {
		names[i] = p.Name
	}
	return reasonTakes + strings.Join(names, ", ")
}

// sequence judges a named sequence.
func (v *validator) sequence(p *authored.Location, d signal.Value) {
	name := d.Member("sequence")
	text, _ := name.Text()
	if err := checkName(nameOfSequence, text); err != nil {
		v.Errorf(p.At("sequence"), "%v", err)
	}
	v.scope = placeholders{sequence: true}
	defer func() { v.scope = placeholders{} }()
	if params, ok := d.Get("params"); ok {
		list, err := parameters(params)
		if err != nil {
			v.Errorf(p.At("params"), "%v", err)
		}
		for _, param := range list {
			v.scope.params = append(v.scope.params, param.Name)
		}
	}
	for name := range d.Members() {
		if name != "sequence" && name != "params" && name != "steps" {
			v.Errorf(p.At(name).Key(), "unknown field %s: a sequence has sequence, params and steps", wording.Quoted(name))
		}
	}
	steps, ok := d.Get("steps")
	if !ok {
		v.Errorf(p, `"steps" is missing`)
		return
	}
	v.steps(p.At("steps"), steps, references{}, false)
}
