package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/signal"
)

func (a *app) episodeMigrate() *cobra.Command {
	var write bool
	cmd := &cobra.Command{
		Use:   "migrate FILE",
		Short: "Make beats of an episode's own choice points",
		Long: `Migrate makes beats of choice points that an episode opens at a turn: instead of
a card that comes at turn 4, the character brings the moment about around turn 4,
and when it has, the choice is the user's answer. What a card cannot tell is
drafted from its prompt: what the character is told, and how one knows that the
moment has come. Each such thing is listed on stderr for a person to decide.

The new file goes to stdout, or with -w takes the place of the old. What does not
change stays as it was written. An episode in YAML becomes JSON.`,
		Example: `  sajou-replay episode migrate old.json > new.json
  sajou-replay episode migrate -w interview.json`,
		Args: between(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.migrate(cmd.Context(), args[0], write) },
	}
	cmd.Flags().BoolVarP(&write, "write", "w", false, "write the file, instead of stdout")
	return cmd
}

func (a *app) migrate(ctx context.Context, name string, write bool) error {
	e, f, err := a.episode(ctx, name, "nothing was migrated")
	if err != nil {
		return err
	}
	switch {
	case write && name == "-":
		return misuse("-w needs a file; what comes from stdin goes to stdout")
	case write && f.yaml != nil:
		return misuse("%s is YAML, and what is written is JSON; write it elsewhere: sajou-replay episode migrate %s > FILE.json", f.name, shellWord(name))
	}
	value, todo, err := director.Migrate(e.Value())
	if err != nil {
		return err
	}
	for _, t := range todo {
		fmt.Fprintln(a.stderr, printable(f.name+": to decide: "+t.String()))
	}
	if legacy, ok := e.Value().Get("choice_points"); !ok || legacy.Len() == 0 {
		fmt.Fprintln(a.stderr, printable(f.name+": it has no choice points of its own; nothing changes"))
	}
	text := f.text
	switch {
	case f.yaml != nil:
		text = append(indented(value.AppendJSON(nil)), '\n')
	case !bytes.Equal(value, e.Value()):
		text = rewritten(f.text, e.Value(), value)
	}
	if write {
		return writeFile(name, func(w io.Writer) error {
			_, err := w.Write(text)
			return err
		})
	}
	view := struct {
		Episode json.RawMessage `json:"episode"`
		Todo    []migrateTodo   `json:"todo"`
	}{value.AppendJSON(nil), []migrateTodo{}}
	for _, t := range todo {
		view.Todo = append(view.Todo, migrateTodo{t.Pointer, t.Message})
	}
	return a.output().one(string(text), view)
}

type migrateTodo struct {
	Pointer string `json:"pointer"`
	Message string `json:"message"`
}

// rewritten returns the text of an episode that was migrated: as it was, save
// for the choice points that are gone and the beats that are new. If that
// cannot be, the whole is written anew, as far indented as it was.
func rewritten(text []byte, before, after signal.Value) []byte {
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

// indentation returns what a text indents its members by, "" if it is written
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

// part is where one member of an object or one element of an array stands.
type part struct {
	name              string
	start, value, end int // start is that of the name, if it has one
}

// parts lists those of an object or array that begins at an offset.
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

// edit puts a text in the place of another.
type edit struct {
	start, end int
	text       string
}

// patched makes the edits that lead from one value to the other.
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
