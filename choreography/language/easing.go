package language

import (
	"fmt"
	"slices"

	"github.com/sajou-dev/sajou-go/authored"
	"github.com/sajou-dev/sajou-go/choreography/curve"
	"github.com/sajou-dev/sajou-go/choreography/definition"
	"github.com/sajou-dev/sajou-go/internal/wording"
	"github.com/sajou-dev/sajou-go/signal"
)

// Easing is a curve with a name, for steps to use from now on:
//
//	{"easing": "bouncy", "curve": "spring(1, 100, 10)"}
type Easing struct {
	value signal.Value
	name  string
	curve curve.Curve
}

var _ Declaration = (*Easing)(nil)

// compileEasing compiles v, which it copies.
func compileEasing(v signal.Value) (*Easing, error) {
	e := &Easing{value: slices.Clone(v)}
	name := e.value.Member("easing")
	e.name, _ = name.Text()
	if err := checkEasingName(e.name); err != nil {
		return nil, fmt.Errorf("%w: %w", definition.ErrInvalid, err)
	}
	text := e.value.Member("curve")
	written, ok := text.Text()
	if !ok {
		return nil, refused(reasonNoCurve, wording.Quoted(e.name))
	}
	var err error
	if e.curve, err = curve.Parse(written); err != nil {
		return nil, refused(reasonEasing, wording.Quoted(e.name), err)
	}
	return e, nil
}

// checkEasingName refuses a name that steps could not use, because it would be parsed
// as a curve or a reference.
func checkEasingName(name string) error {
	if err := checkName(nameOfEasing, name); err != nil {
		return err
	}
	if _, err := curve.Parse(name); err == nil {
		return fmt.Errorf(reasonIsCurve, wording.Quoted(name))
	}
	return nil
}

// Word returns "easing".
func (e *Easing) Word() string { return wordEasing }

// Name returns the name that steps use.
func (e *Easing) Name() string { return e.name }

// Value returns the easing as it was written. It must not be changed.
func (e *Easing) Value() signal.Value { return e.value }

// Curve returns the named curve.
func (e *Easing) Curve() curve.Curve { return e.curve }

// easingDeclaration judges a named easing.
func (v *validator) easingDeclaration(p *authored.Location, d signal.Value) {
	name := d.Member("easing")
	text, _ := name.Text()
	if err := checkEasingName(text); err != nil {
		v.Errorf(p.At("easing"), "%v", err)
	}
	member := d.Member("curve")
	if text, ok := member.Text(); !ok {
		v.Errorf(p.At("curve"), "curve must be a string, not %s", member.Kind().WithArticle())
	} else if _, err := curve.Parse(text); err != nil {
		v.Errorf(p.At("curve"), "%v", err)
	}
	for name := range d.Members() {
		if name != "easing" && name != "curve" {
			v.Errorf(p.At(name).Key(), "unknown field %s: an easing has easing and curve", wording.Quoted(name))
		}
	}
}
