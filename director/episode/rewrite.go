package episode

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/sajou-dev/sajou-go/signal"
)

// Rewrite returns the text of an episode after [Migrate]: the same text, without the
// choice points that became beats and with these beats. If the text cannot be edited
// in place, it returns the whole value with the same indentation. The result always
// parses to after.
func Rewrite(text []byte, before, after signal.Value) []byte {
	unit := indentation(text)
	if out, ok := patched(text, unit, before, after); ok {
		if v, err := signal.ParseValue(out); err == nil && bytes.Equal(v, after) {
			return out
		}
	}
	out := after.AppendJSON(nil)
	if unit == "" {
		return append(out, '\n')
	}
	var b bytes.Buffer
	if err := json.Indent(&b, out, "", unit); err != nil {
		return append(out, '\n')
	}
	return append(b.Bytes(), '\n')
}

// indentation returns the indentation of the members of a text, "" if it is written
// in one line.
func indentation(text []byte) string {
	_, rest, ok := bytes.Cut(text, []byte("\n"))
	if !ok {
		return ""
	}
	rest = bytes.TrimLeft(rest, "\r\n")
	unit := rest[:len(rest)-len(bytes.TrimLeft(rest, " \t"))]
	if len(unit) == 0 || len(unit) > 16 || len(unit) == len(rest) {
		return ""
	}
	return string(unit)
}

// part holds the offsets of a member of an object or of an element of an array.
type part struct {
	name              string
	start, value, end int // start is that of the name, if it has one
}

// parts returns the parts of the object or array that begins at an offset.
func parts(text []byte, at int) ([]part, bool) {
	d := json.NewDecoder(bytes.NewReader(text[at:]))
	open, err := d.Token()
	if err != nil {
		return nil, false
	}
	var list []part
	end := at + 1
	for d.More() {
		p := part{start: end}
		for p.start < len(text) && strings.IndexByte(" \t\r\n,", text[p.start]) >= 0 {
			p.start++
		}
		if open == json.Delim('{') {
			name, err := d.Token()
			if err != nil {
				return nil, false
			}
			p.name, _ = name.(string)
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, false
		}
		end = at + int(d.InputOffset())
		p.value, p.end = end-len(value), end
		list = append(list, p)
	}
	return list, true
}

// edit replaces the text between two offsets.
type edit struct {
	start, end int
	text       string
}

// patched edits a text of one value so that it becomes a text of another; false if it
// cannot.
func patched(text []byte, unit string, before, after signal.Value) ([]byte, bool) {
	at := bytes.IndexByte(text, '{')
	if at < 0 {
		return nil, false
	}
	members, ok := parts(text, at)
	if !ok || len(members) == 0 {
		return nil, false
	}
	find := func(name string) int {
		return slices.IndexFunc(members, func(p part) bool { return p.name == name })
	}
	old, _ := before.Get("beats")
	now, _ := after.Get("beats")
	var fresh []string
	i := 0
	for b := range now.Elements() {
		if i++; i > old.Len() {
			fresh = append(fresh, inset(b, unit))
		}
	}
	between, inside, closing := ",", "[", "]"
	if unit != "" {
		between, inside, closing = ",\n"+unit+unit, "[\n"+unit+unit, "\n"+unit+"]"
	}
	beats := strings.Join(fresh, between)
	var edits []edit
	switch i := find("beats"); {
	case i < 0:
		end := members[len(members)-1].end
		name := `"beats":`
		if unit != "" {
			name = "\n" + unit + `"beats": `
		}
		edits = append(edits, edit{end, end, "," + name + inside + beats + closing})
	case old.Len() == 0:
		edits = append(edits, edit{members[i].value, members[i].end, inside + beats + closing})
	default:
		list, ok := parts(text, members[i].value)
		if !ok || len(list) == 0 {
			return nil, false
		}
		edits = append(edits, edit{list[len(list)-1].end, list[len(list)-1].end, between + beats})
	}
	gone, ok := departed(text, members, find("choice_points"), after)
	if !ok {
		return nil, false
	}
	edits = append(edits, gone...)
	slices.SortStableFunc(edits, func(a, b edit) int { return a.start - b.start })
	var out []byte
	done := 0
	for _, e := range edits {
		if e.start < done {
			return nil, false
		}
		out = append(append(out, text[done:e.start]...), e.text...)
		done = e.end
	}
	return append(out, text[done:]...), true
}

// departed lists the edits that take away the choice points which became beats,
// and their member if none is left.
func departed(text []byte, members []part, i int, after signal.Value) ([]edit, bool) {
	if i < 0 {
		return nil, false
	}
	stay, _ := after.Get("choice_points")
	switch {
	case stay.Len() > 0:
	case i+1 < len(members): // what follows goes with its comma
		return []edit{{members[i].start, members[i+1].start, ""}}, true
	case i > 0: // of the last, the comma before it does
		return []edit{{members[i-1].end, members[i].end, ""}}, true
	default:
		return nil, false
	}
	list, ok := parts(text, members[i].value)
	if !ok {
		return nil, false
	}
	turns := make([]bool, len(list))
	kept := -1
	for j, p := range list {
		var point struct {
			Trigger string `json:"trigger"`
		}
		if err := json.Unmarshal(text[p.value:p.end], &point); err != nil {
			return nil, false
		}
		if turns[j] = strings.HasPrefix(point.Trigger, "turn:"); !turns[j] {
			kept = j
		}
	}
	if kept < 0 {
		return nil, false
	}
	var edits []edit
	for j := range kept {
		if turns[j] {
			edits = append(edits, edit{list[j].start, list[j+1].start, ""})
		}
	}
	return append(edits, edit{list[kept].end, list[len(list)-1].end, ""}), true
}

// inset writes a beat as an element of a list that is a member.
func inset(beat signal.Value, unit string) string {
	text := beat.AppendJSON(nil)
	var b bytes.Buffer
	if unit == "" || json.Indent(&b, text, unit+unit, unit) != nil {
		return string(text)
	}
	return b.String()
}
