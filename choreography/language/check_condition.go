package language

import (
	"strings"

	"github.com/sajou-dev/sajou-go/authored"
	"github.com/sajou-dev/sajou-go/choreography/definition"
	"github.com/sajou-dev/sajou-go/internal/wording"
	"github.com/sajou-dev/sajou-go/signal"
)

// CheckCondition judges a condition on signals of a type as [Parse] does, except
// that it refuses conditions on the stage. With the type "", and with types that are
// not well-known, any field may exist. The place of a remark is relative to the
// condition.
func CheckCondition(on string, when signal.Value, remark func(authored.Remark)) {
	var v validator
	// The stage comes first, so that the bound on remarks cannot hide it.
	switch when.Kind() {
	case signal.KindObject:
		v.offStage(nil, when)
	case signal.KindArray:
		i := 0
		for e := range when.Elements() {
			v.offStage((*authored.Location)(nil).Element(i), e)
			i++
		}
	default:
	}
	v.when(nil, when, referencesOf(on))
	for _, f := range v.List() {
		remark(f)
	}
	if v.Full() && v.Refused() {
		remark(authored.Remark{Severity: authored.SeverityError, Message: "there is more, which is not listed"})
	}
}

// offStage refuses the tests of the stage in one alternative.
func (v *validator) offStage(p *authored.Location, c signal.Value) {
	for way := range c.Members() {
		if strings.HasPrefix(way, definition.StagePrefix) {
			v.Errorf(p.At(way).Key(), "the stage cannot be asked here")
		}
	}
}

// when judges a condition.
func (v *validator) when(p *authored.Location, clause signal.Value, refs references) {
	switch clause.Kind() {
	case signal.KindObject:
		v.conjunction(p, clause, refs)
	case signal.KindArray:
		i := 0
		for e := range clause.Elements() {
			if e.Kind() == signal.KindObject {
				v.conjunction(p.Element(i), e, refs)
			} else {
				v.Errorf(p.Element(i), "an alternative of when must be an object, not %s", e.Kind().WithArticle())
			}
			i++
		}
	default:
		v.Errorf(p, "when must be an object or an array of objects, not %s", clause.Kind().WithArticle())
	}
}

func (v *validator) conjunction(p *authored.Location, c signal.Value, refs references) {
	for way, op := range c.Members() {
		at := p.At(way)
		if asked, ok := strings.CutPrefix(way, definition.StagePrefix); ok {
			placeholder, _, cut := cutPlaceholder(asked)
			if !cut || !v.placeholder(at.Key(), placeholder) {
				v.stagePath(at, asked, refs)
			}
		} else {
			v.way(at.Key(), strings.TrimPrefix(way, definition.RefPrefix), refs)
		}
		v.operator(at, op)
	}
}

// operators lists the operators of a condition.
const operators = "equals, contains, matches, gt, lt, exists and not"

func (v *validator) operator(p *authored.Location, op signal.Value) {
	if op.Kind() != signal.KindObject {
		v.Errorf(p, "a condition must be an object with %s, not %s", operators, op.Kind().WithArticle())
		return
	}
	for name, operand := range op.Members() {
		at := p.At(name)
		if name != "not" && v.standsFor(at, operand) {
			continue
		}
		switch name {
		case "equals":
			if k := operand.Kind(); k == signal.KindArray || k == signal.KindObject {
				v.Warnf(at, "nothing equals %s", k.WithArticle())
			}
		case "contains", "matches":
			text, ok := operand.Text()
			if !ok {
				v.Errorf(at, "%s must be a string, not %s", name, operand.Kind().WithArticle())
			} else if name == "matches" {
				if _, err := definition.CompilePattern(text); err != nil {
					v.Errorf(at, "%v", err)
				}
			}
		case "gt", "lt":
			if !operand.Kind().IsNumber() {
				v.Errorf(at, "%s must be a number, not %s", name, operand.Kind().WithArticle())
			}
		case "exists":
			if operand.Kind() != signal.KindBool {
				v.Errorf(at, "exists must be true or false, not %s", operand.Kind().WithArticle())
			}
		case "not":
			if op.Len() > 1 {
				v.Warnf(at.Key(), "the operators beside not are ignored")
			}
			v.operator(at, operand)
		default:
			v.Errorf(at.Key(), "unknown operator %s: there are %s", wording.Quoted(name), operators)
		}
	}
}

// stepWhen judges the condition of a step that has no parameters.
func (v *validator) stepWhen(p *authored.Location, step signal.Value, refs references) {
	if w, ok := step.Get("when"); ok {
		v.when(p.At("when"), w, refs)
	}
}

// stagePath judges the part of a path after "stage:".
func (v *validator) stagePath(p *authored.Location, asked string, refs references) {
	dot := strings.LastIndexByte(asked, '.')
	if dot <= 0 || dot == len(asked)-1 || asked[:dot+1] == definition.RefPrefix {
		v.Errorf(p.Key(), "%s names no property of an entity: write stage:ENTITY.PROPERTY", wording.Quoted(definition.StagePrefix+asked))
		return
	}
	if way, ok := strings.CutPrefix(asked[:dot], definition.RefPrefix); ok {
		if f := v.way(p.Key(), way, refs); f != nil && f.Kind != signal.FieldString {
			v.Warnf(p.Key(), "signal.%s has no text for a name: the field is of kind %s", way, f.Kind)
		}
	}
}
