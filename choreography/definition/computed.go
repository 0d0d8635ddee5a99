package definition

import (
	"math"
	"strings"

	"github.com/sajou-dev/sajou-go/signal"
)

// A parameter of a binding's step may be computed from the payload when it is
// resolved. It is an object with one of these as its only member. Authors cannot
// write such a parameter.
const (
	ComputedNumber = "$number"
	ComputedText   = "$text"
)

// compute returns the value of a computed parameter for a payload, absent if the
// payload has no such value; ok is false if v is not a computed parameter.
func compute(v, payload signal.Value) (result signal.Value, ok bool) {
	if v.Kind() != signal.KindObject || v.Len() != 1 {
		return nil, false
	}
	for kind, how := range v.Members() {
		name := how.TextOf("field")
		switch kind {
		case ComputedNumber:
			text := how.TextOf("property")
			raw := numberIn(payload, name, text)
			mapping, mapped := how.Get("mapping")
			if f, ok := raw.Float64(); ok && mapped {
				return signal.Float(mapNumber(f, mapping)).Append(nil), true
			}
			return raw, true
		case ComputedText:
			return textIn(payload, name), true
		}
	}
	return nil, false
}

// fieldOf returns a member of a payload by its name or by a dotted path.
func fieldOf(payload signal.Value, field string) signal.Value {
	if v, ok := payload.Get(field); ok {
		return v
	}
	v, _ := payload.Lookup(field)
	return v
}

// numberIn returns the number of a payload: the named field, else the field with
// the last part of the property's name, else "value", else the first member that is a
// number. It is absent if there is none.
func numberIn(payload signal.Value, field, property string) signal.Value {
	last := property[strings.LastIndexByte(property, '.')+1:]
	for _, name := range [...]string{field, last, "value"} {
		if name == "" {
			continue
		}
		if v := fieldOf(payload, name); v.Kind().IsNumber() {
			return v
		}
	}
	for _, v := range payload.Members() {
		if v.Kind().IsNumber() {
			return v
		}
	}
	return nil
}

// textIn returns the text of a payload: the named field, else content, text or
// message, else the first member that is a text.
func textIn(payload signal.Value, field string) signal.Value {
	for _, name := range [...]string{field, "content", "text", "message"} {
		if name == "" {
			continue
		}
		v := fieldOf(payload, name)
		if text, _ := v.Text(); text != "" {
			return v
		}
	}
	for _, v := range payload.Members() {
		if text, _ := v.Text(); text != "" {
			return v
		}
	}
	return nil
}

// mapNumber applies a mapping. An unknown function is lerp, and an empty input range
// maps every number to the beginning of the output range.
func mapNumber(raw float64, mapping signal.Value) float64 {
	in := mapping.Member("inputRange")
	out := mapping.Member("outputRange")
	inMin, inMax, _ := NumberRange(in)
	outMin, outMax, _ := NumberRange(out)
	above, width := raw-inMin, inMax-inMin
	if math.IsInf(width, 0) { // the difference of the ends overflows
		above, width = float64(raw/2)-float64(inMin/2), float64(inMax/2)-float64(inMin/2)
	}
	if width == 0 {
		return outMin
	}
	t := max(0, min(1, above/width))
	fn := mapping.Member("fn")
	switch name, _ := fn.Text(); name {
	case "clamp":
		return math.Max(outMin, math.Min(outMax, raw))
	case "step":
		if t >= 0.5 {
			return outMax
		}
		return outMin
	case "smoothstep":
		t = float64(float64(t*t) * (3 - float64(2*t)))
	}
	if rise := outMax - outMin; !math.IsInf(rise, 0) {
		return outMin + float64(t*rise)
	}
	return float64((1-t)*outMin) + float64(t*outMax)
}

// NumberRange reads an array of two numbers.
func NumberRange(v signal.Value) (from, to float64, ok bool) {
	if v.Kind() != signal.KindArray || v.Len() != 2 {
		return 0, 0, false
	}
	var ends [2]float64
	i := 0
	for e := range v.Elements() {
		if ends[i], ok = e.Float64(); !ok {
			return 0, 0, false
		}
		i++
	}
	return ends[0], ends[1], i == 2
}
