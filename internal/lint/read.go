package lint

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/signal"
	"github.com/sajou-dev/sajou-go/stage/scene"
)

// Declared is one declaration of a file, and where it stands in it.
type Declared struct {
	choreography.Declaration
	Pointer string // JSON pointer; "" if the file is nothing else
}

// Read reads all that a file declares: an object or an array of them, each a
// choreography, a sequence, an easing, a binding or a scene. They may refer to
// each other and to what the catalog has in force, and come in an order in which
// they can come into force: scenes first, and the others as
// [choreography.ParseWith] has them. File names the text in diagnostics. What
// Sajou's scene-builder exports, as a text or as an archive, is read too; a file
// whose name ends with .zip has to be an archive.
//
// Next is the catalog with all of them. If any diagnostic is an error, nothing
// is returned, and the catalog as it was.
func Read(c *choreography.Catalog, file string, text []byte) (declared []Declared, next *choreography.Catalog, diagnostics choreography.Diagnostics) {
	value, err := signal.ParseValue(text)
	refuse := func(message string) choreography.Diagnostics {
		return choreography.Diagnostics{{File: file, Line: 1, Column: 1, Severity: choreography.Error, Message: message}}
	}
	switch {
	case isZip(file, text):
		declared, diagnostics = readZip(file, text)
	case sajouOf(value) == "simulation":
		diagnostics = refuse("this is a scenario of agents, which is for sajou-replay sim")
	case sajouOf(value) == "episode":
		diagnostics = refuse("this is an episode, which is for sajou-replay episode lint")
	case isRecording(text, value):
		diagnostics = refuse("this is a recording, which is for sajou-replay import")
	case err == nil && value.Kind() == signal.KindArray:
		declared, diagnostics = readList(c, file, text, value)
	case err == nil && scene.IsScene(value):
		declared, diagnostics = bundled(file)(scene.ParseBundle(file, text))
	case err == nil && isScenario(value):
		diagnostics = refuse(`this is a scenario, which is for sajou-replay rehearse; what its "definitions" hold can stand in a file of its own`)
	default:
		var declarations []choreography.Declaration
		declarations, diagnostics = choreography.ParseWith(c, file, text)
		for _, d := range declarations {
			declared = append(declared, Declared{d, ""})
		}
	}
	if diagnostics.Err() != nil {
		return nil, c, diagnostics
	}
	next = c
	for _, d := range declared {
		with, err := next.With(d.Declaration)
		if err != nil { // ParseWith has brought it into force once
			return nil, c, append(diagnostics, choreography.Diagnostic{File: file, Line: 1, Column: 1, Severity: choreography.Error, Message: err.Error()})
		}
		next = with
	}
	return declared, next, diagnostics
}

// isScenario reports whether v is what sajou-replay rehearse runs.
func isScenario(v signal.Value) bool {
	_, definitions := v.Get("definitions")
	_, script := v.Get("script")
	return definitions && script
}

// sajouOf returns what a value says to be, "" if it says nothing.
func sajouOf(v signal.Value) string {
	word, _ := v.Get("sajou")
	text, _ := word.Text()
	return text
}

// isRecording reports whether a text is a recording of signals, one a line:
// value is what it is when it is one line.
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

// readList reads an array. Scenes have a reader of their own; the other one
// gets the text without them, so that everything is still at its line and
// column.
func readList(c *choreography.Catalog, file string, text []byte, list signal.Value) ([]Declared, choreography.Diagnostics) {
	var (
		declared    []Declared
		diagnostics choreography.Diagnostics
		others      []string // the pointers of what is no scene
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
		declarations, ds := choreography.ParseWith(c, file, rest)
		diagnostics = append(diagnostics, repointed(ds, others)...)
		// They have been put in order. What is written twice is the same thing.
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
	slices.SortStableFunc(diagnostics, func(a, b choreography.Diagnostic) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return declared, diagnostics
}

// bundled makes declarations of what an export of a scene-builder holds: one
// scene or none, and what is played on it, which has no place in the text.
func bundled(file string) func(*scene.Scene, []signal.Value, choreography.Diagnostics) ([]Declared, choreography.Diagnostics) {
	return func(s *scene.Scene, rest []signal.Value, diagnostics choreography.Diagnostics) ([]Declared, choreography.Diagnostics) {
		var declared []Declared
		if s != nil {
			declared = append(declared, Declared{s, ""})
		}
		for _, v := range rest {
			d, err := choreography.CompileDeclaration(choreography.WordFor(v), v)
			if err != nil {
				diagnostics = append(diagnostics, choreography.Diagnostic{
					File: file, Line: 1, Column: 1, Severity: choreography.Error, Message: err.Error(),
				})
				continue
			}
			declared = append(declared, Declared{d, ""})
		}
		return declared, diagnostics
	}
}

func readScene(file string, text []byte, pointer string) ([]Declared, choreography.Diagnostics) {
	s, diagnostics := scene.Parse(file, text)
	for i := range diagnostics {
		diagnostics[i].Pointer = pointer + diagnostics[i].Pointer
	}
	if s == nil || diagnostics.Err() != nil {
		return nil, diagnostics
	}
	return []Declared{{s, pointer}}, diagnostics
}

// repointed gives diagnostics about a list of which some were left out the
// pointers that they have in the whole.
func repointed(ds choreography.Diagnostics, pointers []string) choreography.Diagnostics {
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

// withComma adds to an item the comma that goes with it.
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

// blank puts spaces in place of a part of a text; lines stay lines.
func blank(text []byte, part extent) {
	for i := part.start; i < part.end; i++ {
		if text[i] != '\n' && text[i] != '\r' {
			text[i] = ' '
		}
	}
}

// cursor knows the line and column of one place of a text.
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

// moved takes diagnostics about the text from c on to their place in the whole.
func (c *cursor) moved(ds choreography.Diagnostics) choreography.Diagnostics {
	for i := range ds {
		if ds[i].Line == 1 {
			ds[i].Column += c.column - 1
		}
		ds[i].Line += c.line - 1
	}
	return ds
}
