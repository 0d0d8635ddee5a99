package lint

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/sajou-dev/sajou-go/authored"
	"github.com/sajou-dev/sajou-go/choreography/definition"
	"github.com/sajou-dev/sajou-go/choreography/language"
	"github.com/sajou-dev/sajou-go/signal"
	"github.com/sajou-dev/sajou-go/stage/scene"
)

// Declared is one declaration of a file, and where it stands in it.
type Declared struct {
	language.Declaration
	Pointer string // JSON pointer; "" if the file is nothing else
}

// Changed returns the declarations that would have an effect if all came into force in
// their order. Unchanged says of each but a scene whether it is in force already, and
// inForce is the scene, nil for none.
func Changed(unchanged []bool, inForce *scene.Scene, all []language.Declaration) (changed []language.Declaration) {
	for i, d := range all {
		same := unchanged[i]
		if next, ok := d.(*scene.Scene); ok {
			same = inForce != nil && bytes.Equal(inForce.Value(), next.Value())
			inForce = next
		}
		if !same {
			changed = append(changed, d)
		}
	}
	return changed
}

// Read reads the declarations of a file: an object or an array of them, each a
// choreography, a sequence, an easing, a binding or a scene. They may refer to
// each other and to the catalog. They are returned in an order in which they can come
// into force: scenes first, then the others in the order of [language.ParseWith].
// File names the text in diagnostics; [authored.Read] says which names are those of
// YAML. Read also accepts the exports of Sajou's
// scene-builder, as a text or as an archive; a file whose name ends with .zip must be
// an archive.
//
// Next is the catalog with all declarations. If any diagnostic is an error, Read
// returns no declaration and the given catalog.
func Read(c *language.Catalog, file string, text []byte) (declared []Declared, next *language.Catalog, diagnostics authored.Diagnostics) {
	return read(c, text, textOf(file, text))
}

// textOf returns the text of a file. If that is neither JSON nor YAML, it is kept as it
// is, without a value.
func textOf(file string, text []byte) *authored.Text {
	if t, refused := authored.Read(file, text); refused == nil {
		return t
	}
	return &authored.Text{File: file, JSON: text}
}

// read is [Read] of t, the text of a file whose bytes are original.
func read(c *language.Catalog, original []byte, t *authored.Text) (declared []Declared, next *language.Catalog, diagnostics authored.Diagnostics) {
	file, text, value := t.File, t.JSON, t.Value
	refuse := func(message string) authored.Diagnostics {
		return authored.Diagnostics{{File: file, Line: 1, Column: 1, Severity: authored.SeverityError, Message: message}}
	}
	switch {
	case isZip(file, original):
		declared, diagnostics = readZip(c, file, original)
	case sajouOf(value) == "simulation":
		diagnostics = refuse("this is a scenario of agents, which is for sajou-replay sim")
	case isEpisode(value):
		diagnostics = refuse("this is an episode, which is for sajou-replay episode lint")
	case isRecording(text, value):
		diagnostics = refuse("this is a recording, which is for sajou-replay import")
	case value.Kind() == signal.KindArray:
		declared, diagnostics = readList(c, file, text, value)
	case value != nil && scene.IsScene(value):
		declared, diagnostics = bundled(c, file)(scene.ParseBundle(file, text))
	case value != nil && isScenario(value):
		diagnostics = refuse(`this is a scenario, which is for sajou-replay rehearse; what its "definitions" hold can stand in a file of its own`)
	default:
		var declarations []language.Declaration
		declarations, diagnostics = language.ParseWith(c, file, text)
		for _, d := range declarations {
			declared = append(declared, Declared{d, ""})
		}
	}
	diagnostics = t.Placed(diagnostics)
	if diagnostics.Refused() {
		return nil, c, diagnostics
	}
	next = c
	for _, d := range declared {
		with, err := next.With(d.Declaration)
		if err != nil { // ParseWith has brought it into force once
			return nil, c, append(diagnostics, authored.Diagnostic{File: file, Line: 1, Column: 1, Severity: authored.SeverityError, Message: err.Error()})
		}
		next = with
	}
	return declared, next, diagnostics
}

// isScenario reports whether v is a scenario for sajou-replay rehearse.
func isScenario(v signal.Value) bool {
	_, definitions := v.Get("definitions")
	_, script := v.Get("script")
	return definitions && script
}

// isEpisode reports whether v is an episode, which may omit the member "sajou".
func isEpisode(v signal.Value) bool {
	_, beats := v.Get("beats")
	sajou := sajouOf(v)
	return sajou == "episode" || sajou == "" && beats
}

// sajouOf returns the kind of file that the member "sajou" names, "" without one.
func sajouOf(v signal.Value) string {
	word, _ := v.Get("sajou")
	text, _ := word.Text()
	return text
}

// isRecording reports whether a text is a recording of signals, one on each line.
// Value is the value of the whole text, nil if that is not JSON.
func isRecording(text []byte, value signal.Value) bool {
	if value == nil {
		line, _, _ := bytes.Cut(bytes.TrimSpace(text), []byte("\n"))
		var err error
		if value, err = signal.ParseValue(line); err != nil {
			return false
		}
	}
	_, typed := value.Get("type")
	_, payload := value.Get("payload")
	return typed && payload
}

// readList reads an array. Scenes have a reader of their own. The other reader gets
// the text with the scenes blanked out, so that lines and columns stay the same.
func readList(c *language.Catalog, file string, text []byte, list signal.Value) ([]Declared, authored.Diagnostics) {
	var (
		declared    []Declared
		diagnostics authored.Diagnostics
		others      []string // the pointers of the elements that are not scenes
		values      []string // their values
		rest        = slices.Clone(text)
		items       = itemsOf(text)
		at          = cursor{text: text, line: 1, column: 1}
		i           = 0
	)
	for e := range list.Elements() {
		if i == len(items) {
			break
		}
		item, pointer := items[i], "/"+strconv.Itoa(i)
		i++
		if !scene.IsScene(e) {
			others, values = append(others, pointer), append(values, string(e))
			continue
		}
		at.moveTo(item.start)
		scenes, ds := readScene(file, text[item.start:item.end], pointer)
		declared, diagnostics = append(declared, scenes...), append(diagnostics, at.moved(ds)...)
		blank(rest, withComma(rest, item))
	}
	if len(others) > 0 || i == 0 {
		declarations, ds := language.ParseWith(c, file, rest)
		diagnostics = append(diagnostics, repointed(ds, others)...)
		// They come in another order. Equal values take their pointers in turn.
		places := make(map[string][]string, len(values))
		for i, v := range values {
			places[v] = append(places[v], others[i])
		}
		for _, d := range declarations {
			v := string(d.Value())
			pointer := ""
			if left := places[v]; len(left) > 0 {
				pointer, places[v] = left[0], left[1:]
			}
			declared = append(declared, Declared{d, pointer})
		}
	}
	slices.SortStableFunc(diagnostics, func(a, b authored.Diagnostic) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return declared, diagnostics
}

// bundled returns the declarations of an export of a scene-builder: at most one scene,
// and the choreographies played on it, which have no place in the text. They come
// into force one by one, so that reading stops as soon as they exceed the budget.
func bundled(c *language.Catalog, file string) func(*scene.Scene, []signal.Value, authored.Diagnostics) ([]Declared, authored.Diagnostics) {
	return func(s *scene.Scene, rest []signal.Value, diagnostics authored.Diagnostics) ([]Declared, authored.Diagnostics) {
		var declared []Declared
		if s != nil {
			declared = append(declared, Declared{s, ""})
		}
		refused := 0
		for _, v := range rest {
			d, err := language.CompileDeclaration(language.WordFor(v), v)
			next := c
			if err == nil {
				next, err = c.With(d)
			}
			if err != nil {
				diagnostics = append(diagnostics, authored.Diagnostic{
					File: file, Line: 1, Column: 1, Severity: authored.SeverityError, Message: err.Error(),
				})
				if refused++; refused == maxIssues || errors.Is(err, definition.ErrBudget) {
					break
				}
				continue
			}
			c = next
			declared = append(declared, Declared{d, ""})
		}
		return declared, diagnostics
	}
}

func readScene(file string, text []byte, pointer string) ([]Declared, authored.Diagnostics) {
	s, diagnostics := scene.Parse(file, text)
	for i := range diagnostics {
		diagnostics[i].Pointer = pointer + diagnostics[i].Pointer
	}
	if s == nil || diagnostics.Refused() {
		return nil, diagnostics
	}
	return []Declared{{s, pointer}}, diagnostics
}

// repointed replaces the indexes in diagnostics about a part of a list by the
// pointers in the whole list.
func repointed(ds authored.Diagnostics, pointers []string) authored.Diagnostics {
	for i := range ds {
		first, rest, inside := strings.Cut(strings.TrimPrefix(ds[i].Pointer, "/"), "/")
		if n, err := strconv.Atoi(first); err == nil && n < len(pointers) {
			ds[i].Pointer = pointers[n]
			if inside {
				ds[i].Pointer += "/" + rest
			}
		}
	}
	return ds
}

// extent is where a value stands in a text.
type extent struct{ start, end int }

// itemsOf returns where the elements of an array stand in its text.
func itemsOf(text []byte) []extent {
	dec := json.NewDecoder(bytes.NewReader(text))
	if _, err := dec.Token(); err != nil {
		return nil
	}
	var items []extent
	for dec.More() {
		var item json.RawMessage
		if dec.Decode(&item) != nil {
			break
		}
		end := int(dec.InputOffset())
		items = append(items, extent{end - len(item), end})
	}
	return items
}

// withComma extends an item by its comma.
func withComma(text []byte, item extent) extent {
	space := func(i int) bool { return i >= 0 && i < len(text) && strings.IndexByte(" \t\r\n", text[i]) >= 0 }
	end := item.end
	for space(end) {
		end++
	}
	if end < len(text) && text[end] == ',' {
		item.end = end + 1
		return item
	}
	start := item.start - 1
	for space(start) {
		start--
	}
	if start >= 0 && text[start] == ',' {
		item.start = start
	}
	return item
}

// blank overwrites a part of a text with spaces, except for line ends.
func blank(text []byte, part extent) {
	for i := part.start; i < part.end; i++ {
		if text[i] != '\n' && text[i] != '\r' {
			text[i] = ' '
		}
	}
}

// cursor is a place in a text with its line and column.
type cursor struct {
	text                 []byte
	offset, line, column int
}

// moveTo moves forward.
func (c *cursor) moveTo(offset int) {
	for ; c.offset < offset; c.offset++ {
		c.column++
		if c.text[c.offset] == '\n' {
			c.line, c.column = c.line+1, 1
		}
	}
}

// moved shifts diagnostics about the text from c on to their place in the whole.
func (c *cursor) moved(ds authored.Diagnostics) authored.Diagnostics {
	for i := range ds {
		if ds[i].Line == 1 {
			ds[i].Column += c.column - 1
		}
		ds[i].Line += c.line - 1
	}
	return ds
}
