package language

import (
	"errors"
	"fmt"
	"slices"

	"github.com/tinylib/msgp/msgp"

	"github.com/sajou-dev/sajou-go/choreography/curve"
	"github.com/sajou-dev/sajou-go/choreography/definition"
	"github.com/sajou-dev/sajou-go/internal/wording"
	"github.com/sajou-dev/sajou-go/signal"
)

// extended returns the value of a definition that extends another one in force: the
// members that it does not have itself are inherited.
func extended(base, own signal.Value) signal.Value {
	var edits []definition.Param
	for name, v := range own.Members() {
		edits = append(edits, definition.Param{Name: name, Value: v})
	}
	edits = append(edits, definition.Param{Name: "extends", Value: nil}, definition.Param{Name: "before", Value: nil}, definition.Param{Name: "after", Value: nil})
	if _, ok := own.Get("id"); !ok {
		edits = append(edits, definition.Param{Name: "id", Value: nil})
	}
	edits = slices.DeleteFunc(edits, func(e definition.Param) bool {
		return e.Value != nil && (e.Name == "extends" || e.Name == "before" || e.Name == "after" || e.Name == "steps")
	})

	inherited := base.Member("steps")
	main, replaced := own.Get("steps")
	if !replaced {
		main = inherited
	}
	before := own.Member("before")
	after := own.Member("after")
	steps := list(nil, func(dst []byte) ([]byte, int) {
		n, handled := 0, false
		for _, part := range [...]signal.Value{before, main, after} {
			for step := range part.Elements() {
				dst = append(dst, step...)
				n++
				handled = handled || definition.ActionOf(step) == "onInterrupt"
			}
		}
		// Replaced steps keep the inherited onInterrupt unless there is a new one.
		if replaced && !handled {
			for step := range inherited.Elements() {
				if definition.ActionOf(step) == "onInterrupt" {
					dst = append(dst, step...)
					n++
				}
			}
		}
		return dst, n
	})
	return written(base, append(edits, definition.Param{Name: "steps", Value: steps}))
}

// bind returns the definition that comes into force when d is declared. It refers to
// no other declaration.
func (c *Catalog) bind(d *definition.Definition) (*definition.Definition, error) {
	v := d.Value()
	if extends, ok := v.Get("extends"); ok {
		id, ok := extends.Text()
		switch {
		case !ok:
			return nil, refused(reasonExtendsKind, extends.Kind().WithArticle())
		case id == d.Name():
			return nil, refused(reasonExtendsItself, wording.Quoted(id))
		}
		base := c.definition(id)
		if base == nil {
			return nil, refused(reasonNoBase, wording.Quoted(id))
		}
		v = extended(base.Value(), v)
	}
	steps := v.Member("steps")
	var edits []definition.Param
	if !isPlain(steps) {
		left := definition.Cost{Steps: definition.MaxStepsInForce, Bytes: definition.MaxBytesInForce}.Minus(c.without(d))
		x := expansion{catalog: c, most: definition.Cost{Steps: min(definition.MaxSteps, left.Steps), Bytes: min(maxExpanded, left.Bytes)}, own: len(v)}
		steps = list(nil, func(dst []byte) ([]byte, int) { return x.steps(dst, steps, &scope{}, atTop) })
		if x.err != nil {
			if errors.Is(x.err, definition.ErrBudget) {
				return nil, x.err
			}
			return nil, fmt.Errorf("%w: %w", definition.ErrInvalid, x.err)
		}
		edits = append(edits, definition.Param{Name: "steps", Value: steps})
	}
	if easings := c.easingsOf(v, steps); easings != nil {
		edits = append(edits, definition.Param{Name: "easings", Value: easings})
	}
	if len(edits) == 0 && len(v) == len(d.Value()) && &v[0] == &d.Value()[0] {
		return d, nil
	}
	v = written(v, edits)
	if _, rest, err := signal.CheckValue(v); err != nil || len(rest) > 0 {
		return nil, refused(reasonNotAValue)
	}
	return definition.Compile(v)
}

// easingsOf returns the member "easings" of a definition: its own easings and the
// curves of the catalog that its steps use by name; absent if the catalog adds none.
func (c *Catalog) easingsOf(v, steps signal.Value) signal.Value {
	own := v.Member("easings")
	seen := map[string]bool{}
	for name := range own.Members() {
		seen[name] = true
	}
	var found []definition.Param
	eachEasing(steps, func(name string) {
		if seen[name] {
			return
		}
		seen[name] = true
		if e := c.easing(name); e != nil {
			found = append(found, definition.Param{Name: name, Value: msgp.AppendString(nil, e.curve.String())})
		}
	})
	if found == nil {
		return nil
	}
	return written(own, found)
}

// includes calls f with the name of each sequence that steps include.
func includes(steps signal.Value, f func(name string)) {
	for step := range steps.Elements() {
		if structural(step) == "include" {
			name := step.TextOf("sequence")
			f(name)
		}
		if inner, ok := step.Get("steps"); ok {
			includes(inner, f)
		}
	}
}

// eachEasing calls f with each easing in steps that is not built in.
func eachEasing(steps signal.Value, f func(name string)) {
	for step := range steps.Elements() {
		if easing, ok := step.Get("easing"); ok {
			if name, ok := easing.Text(); ok {
				if _, known := curve.Named(name); !known {
					f(name)
				}
			}
		}
		if inner, ok := step.Get("steps"); ok {
			eachEasing(inner, f)
		}
	}
}

// written returns an object with some members replaced in their places, others
// removed, and others appended. An edit with an absent value removes its member.
func written(v signal.Value, edits []definition.Param) signal.Value {
	places := make(map[string]int, len(edits))
	for i := range edits {
		places[edits[i].Name] = i
	}
	o := signal.NewObject(v.Len() + len(edits))
	for name, value := range v.Members() {
		if i, ok := places[name]; ok {
			value = edits[i].Value
			delete(places, name)
		}
		o.Add(name, value)
	}
	for i := range edits {
		if _, ok := places[edits[i].Name]; ok {
			o.Add(edits[i].Name, edits[i].Value)
		}
	}
	return o.Value()
}
