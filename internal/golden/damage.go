package golden

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// Damage returns a JSON text with one to three members or elements changed: replaced by an
// odd value or by one from another place of the text, dropped, repeated or renamed. Members
// are ordered by name. It panics if the text is no JSON.
func Damage(d *Dice, text string) string {
	var root any
	if err := json.Unmarshal([]byte(text), &root); err != nil {
		panic(fmt.Sprintf("golden: %v in %s", err, text))
	}
	for range 1 + d.N(3) {
		places := placesIn(root, func(v any) { root = v }, nil)
		p := Pick(d, places...)
		switch d.N(6) {
		case 0, 1:
			p.put(odd(d))
		case 2:
			// A copy, so that nothing is inside itself.
			data, err := json.Marshal(Pick(d, places...).value)
			if err != nil {
				panic(err)
			}
			var other any
			if err := json.Unmarshal(data, &other); err != nil {
				panic(err)
			}
			p.put(other)
		case 3:
			if p.drop != nil {
				p.drop()
			}
		case 4:
			switch v := p.value.(type) {
			case []any:
				p.put(append(slices.Clone(v), v...))
			case string:
				p.put(Pick(d, v+v, v+"x", "signal."+v, "param."+v, v[:len(v)/2]))
			case float64:
				p.put(Pick(d, v+1, v-1, -v, v*1000, v/3))
			case bool:
				p.put(!v)
			}
		case 5:
			if p.rename != nil {
				p.rename(Pick(d, p.name+"s", "on", "id", "when", "steps", "name", "entity", "at", ""))
			}
		}
	}
	data, err := json.Marshal(root)
	if err != nil {
		panic(err)
	}
	return string(data)
}

// odd draws a value that is wrong in most places.
func odd(d *Dice) any {
	return Pick[any](d, nil, true, false, 0.0, -1.0, 1.0, 2.5, 1e300, "", "signal.", "signal.who", "each.item", "param.who", "nobody", "red",
		[]any{}, []any{1.0, 2.0}, []any{"ann", 7.0}, map[string]any{}, map[string]any{"x": 1.0, "y": "z"}, map[string]any{"not": map[string]any{"equals": 1.0}})
}

// placeIn is a value in another one. The root has no name and cannot be dropped.
type placeIn struct {
	value  any
	name   string
	put    func(any)
	drop   func()
	rename func(string)
}

func placesIn(v any, put func(any), all []placeIn) []placeIn {
	if len(all) == 0 {
		all = append(all, placeIn{value: v, put: put})
	}
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			set := func(e any) { v[name] = e }
			all = append(all, placeIn{v[name], name, set, func() { delete(v, name) }, func(other string) {
				e := v[name]
				delete(v, name)
				v[other] = e
			}})
			all = placesIn(v[name], set, all)
		}
	case []any:
		for i, e := range v {
			set := func(e any) { v[i] = e }
			all = append(all, placeIn{value: e, put: set, drop: func() { put(slices.Concat(v[:i], v[i+1:])) }})
			all = placesIn(e, set, all)
		}
	}
	return all
}
