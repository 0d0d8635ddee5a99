package workspace

import (
	"strings"

	"github.com/sajou-dev/sajou-go/signal"
	"github.com/sajou-dev/sajou-go/workspace/internal/shell"
)

// call is one tool call, and its result.
type call struct {
	tool   string
	input  signal.Value
	output signal.Value // absent without a result
	dir    string       // where relative paths begin; "" if that is not known
}

// acts returns what a tool call does to files, and shows of them. Without an output
// it returns what the call alone tells.
func (c *call) acts() []act {
	name := toolName(c.tool)
	if script, ok := c.script(name); ok {
		text, printed := outputText(c.output)
		return scriptActs(script, text, printed, c.dir)
	}
	if text, ok := c.patchText(name); ok {
		return patchActs(parsePatch(text), c.dir, false)
	}
	if acts, ok := c.linesOfAgent(name); ok {
		return acts
	}
	p := resolvePath(c.dir, firstText(c.input, pathMembers...))
	if p == "" {
		if name == "read_files" || name == "read_many_files" || name == "read_file" {
			return c.readFiles()
		}
		return nil
	}
	switch command := c.input.TextOf("command"); {
	case command == "view" || readTools[name]:
		return c.read(p)
	case command == "create":
		return c.written(p, name)
	case command == "insert", isNumber(c.input.Member("insert_line")):
		return c.inserted(p)
	case command == "undo_edit", name == "notebookedit":
		return []act{{verb: doubt, path: p, certain: true}}
	case removeTools[name]:
		return []act{{verb: remove, path: p, certain: true}}
	case renameTools[name]:
		to := resolvePath(c.dir, firstText(c.input, "destination", "new_path", "to", "target"))
		if to == "" {
			return []act{{verb: doubt, path: p, certain: true}}
		}
		return []act{{verb: rename, path: p, to: to, certain: true}}
	}
	if acts := c.edited(p, name); acts != nil {
		return acts
	}
	if writeTools[name] {
		return c.written(p, name)
	}
	return nil
}

// toolName returns the name of a tool in lower case and without the server or the
// namespace that it belongs to.
func toolName(tool string) string {
	if i := strings.LastIndex(tool, "__"); i >= 0 {
		tool = tool[i+2:]
	}
	if i := strings.LastIndexAny(tool, ".:/"); i >= 0 {
		tool = tool[i+1:]
	}
	return strings.ToLower(tool)
}

var (
	pathMembers = []string{"file_path", "path", "absolute_path", "notebook_path", "filePath", "target_file", "filename", "file", "source"}

	shellTools = nameSet("bash shell run run_shell_command exec_command execute_command execute_bash terminal run_terminal_cmd " +
		"run_commands local_shell exec shell_command run_in_terminal run_command local_shell_call execute cmdrunaction powershell")
	readTools = nameSet("read read_file view view_file open_file fileread notebookread cat_file")
	// editTools change a part of a file, writeTools the whole.
	writeTools = nameSet("write write_file write_to_file create create_file save_file filewrite new_file edit editor str_replace_editor " +
		"file_editor str_replace_based_edit_tool edit_file overwrite_file fsedit")
	removeTools = nameSet("delete_file remove_file delete remove")
	renameTools = nameSet("move_file rename_file move rename")
)

func nameSet(names string) map[string]bool {
	set := map[string]bool{}
	for name := range strings.FieldsSeq(names) {
		set[name] = true
	}
	return set
}

func isNumber(v signal.Value) bool { return v.Kind().IsNumber() }

// firstText returns the first of the members that is a text and not empty.
func firstText(v signal.Value, names ...string) string {
	text, _ := memberText(v, names...)
	return text
}

// memberText returns the first of the members that is a text, which may be empty.
func memberText(v signal.Value, names ...string) (text string, ok bool) {
	for _, name := range names {
		if t, is := v.Member(name).Text(); is {
			if t != "" {
				return t, true
			}
			ok = true
		}
	}
	return "", ok
}

// script returns the shell script of the call, if it has one.
func (c *call) script(name string) (shell.CommandList, bool) {
	text, args, ok := c.commandLine(name)
	switch {
	case !ok:
		return shell.CommandList{}, false
	case args != nil:
		return shell.OfArguments(args), true
	}
	return shell.Parse(text), true
}

// commandLine returns what the call gives to a shell: a text, or the arguments of one
// command.
func (c *call) commandLine(name string) (text string, args []string, ok bool) {
	if !shellTools[name] {
		// A tool may be named by the first word of its command.
		text := firstText(c.input, "command", "action", "value")
		word, _, _ := strings.Cut(text, " ")
		if text == "" || c.input.Len() > 2 || toolName(word) != name || lineTools[name] || c.input.TextOf("path") != "" {
			return "", nil, false
		}
		return text, nil, true
	}
	for _, member := range []string{"command", "cmd", "commands", "script", "value", "input", "code", "action"} {
		v, ok := c.input.Get(member)
		if !ok {
			continue
		}
		if text, ok := v.Text(); ok {
			return text, nil, c.input.TextOf("path") == "" || !editorCommands[text]
		}
		if v.Kind() == signal.KindArray && v.Len() <= maxArguments {
			words := []string{}
			for e := range v.Elements() {
				text, ok := e.Text()
				if !ok {
					return "", nil, false
				}
				words = append(words, text)
			}
			if member == "commands" {
				return strings.Join(words, "\n"), nil, true
			}
			return "", words, true
		}
	}
	return "", nil, false
}

// maxArguments bounds the arguments of a command.
const maxArguments = 4096

var editorCommands = nameSet("view create str_replace insert undo_edit")

// patchText returns the text of a patch in the format of apply_patch.
func (c *call) patchText(name string) (string, bool) {
	if name != "apply_patch" && name != "applypatch" && name != "patch" {
		return "", false
	}
	text := firstText(c.input, "input", "patch", "patch_text", "patchText", "value", "diff")
	return text, strings.Contains(text, "*** Begin Patch")
}

// written returns the acts of a tool that writes a whole file.
func (c *call) written(p, name string) []act {
	text, ok := memberText(c.input, "content", "contents", "file_text", "text", "new_text", "new_str", "data")
	if whole, has := c.output.Member("new_content").Text(); has {
		text, ok = whole, true // what came of the call
	}
	if c.input.Member("start").Kind() == signal.KindInt && name == "edit" && !ok {
		return nil
	}
	a := act{verb: write, path: p, text: text, certain: true, before: c.before()}
	if !ok {
		a.verb = touch // the text was left out of the recording
	}
	return []act{a}
}

// before returns the whole text before the call, if the result has it.
func (c *call) before() *string {
	for _, name := range []string{"originalFile", "old_content"} {
		if text, ok := c.output.Member(name).Text(); ok {
			return &text
		}
	}
	return nil
}

// inserted returns the acts of a tool that inserts lines.
func (c *call) inserted(p string) []act {
	text, ok := memberText(c.input, "new_str", "insert_text", "new_text", "text", "content")
	n, is := c.input.Member("insert_line").Int64()
	if !ok || !is || n < 0 || n > maxLine {
		return []act{{verb: doubt, path: p, certain: true}}
	}
	return append([]act{{verb: insert, path: p, start: int(n), text: text, certain: true, before: c.before()}}, c.snippet(p)...)
}

// maxLine bounds the numbers of lines.
const maxLine = 1 << 30

// edited returns the acts of a tool that replaces texts in a file, or nil.
func (c *call) edited(p, name string) []act {
	if edits, ok := c.input.Get("edits"); ok && edits.Kind() == signal.KindArray {
		a := act{verb: edit, path: p, certain: true, before: c.before()}
		for e := range edits.Elements() {
			one, ok := editOf(e)
			if !ok {
				return []act{{verb: doubt, path: p, certain: true}}
			}
			a.edits = append(a.edits, one)
		}
		return append([]act{a}, c.snippet(p)...)
	}
	if one, ok := editOf(c.input); ok {
		a := act{verb: edit, path: p, edits: []textEdit{one}, certain: true, before: c.before()}
		a.hunks = structuredPatch(c.output.Member("structuredPatch"))
		if c.output.BoolOf("userModified") {
			// The user has changed the edit, and the patch is what was applied.
			if a.verb = patchAt; len(a.hunks) == 0 {
				a.verb = doubt
			}
		}
		return append([]act{a}, c.snippet(p)...)
	}
	if c.input.Member("old_string").Kind() != signal.KindAbsent || c.input.Member("old_str").Kind() == signal.KindObject {
		return []act{{verb: doubt, path: p, certain: true}} // the texts were left out
	}
	for _, member := range []string{"diff", "content", "patch"} {
		text := c.input.TextOf(member)
		if blocks := parseSearchReplace(text); len(blocks) > 0 && !writeTools[name] || len(blocks) > 0 && member == "diff" {
			a := act{verb: edit, path: p, certain: true}
			for _, b := range blocks {
				a.edits = append(a.edits, textEdit{b.old, b.text, first})
			}
			return []act{a}
		}
	}
	// The result may have the new text, or the difference.
	if whole, ok := c.output.Member("new_content").Text(); ok {
		return []act{{verb: write, path: p, text: whole, before: c.before(), certain: true}}
	}
	if text, ok := outputText(c.output); ok && strings.HasPrefix(text, "--- ") {
		if changes := parseUnified(text); len(changes) == 1 {
			changes[0].path = p
			return patchActs(changes, c.dir, true)
		}
	}
	return nil
}

// editOf reads the two texts of an edit.
func editOf(v signal.Value) (textEdit, bool) {
	for _, names := range [][2]string{{"old_string", "new_string"}, {"old_str", "new_str"}, {"old_text", "new_text"}, {"oldText", "newText"}, {"search", "replace"}} {
		old, ok := v.Member(names[0]).Text()
		if !ok {
			continue
		}
		text, ok := v.Member(names[1]).Text()
		if !ok && v.Member(names[1]).Kind() != signal.KindAbsent && v.Member(names[1]).Kind() != signal.KindNull {
			return textEdit{}, false
		}
		e := textEdit{old, text, only}
		if v.BoolOf("replace_all") || v.BoolOf("allow_multiple") || v.IntOf("expected_replacements") > 1 {
			e.which = every
		}
		return e, true
	}
	return textEdit{}, false
}

// structuredPatch reads the hunks that a result has of an edit.
func structuredPatch(v signal.Value) (hunks []hunk) {
	for e := range v.Elements() {
		start := e.IntOf("oldStart")
		if start < 0 || start > maxLine {
			return nil
		}
		h := hunk{start: int(start)}
		for l := range e.Member("lines").Elements() {
			text, ok := l.Text()
			if !ok {
				return nil
			}
			if text == "" {
				text = " "
			}
			switch text[0] {
			case ' ', '-', '+':
				h.lines = append(h.lines, hunkLine{text[0], text[1:]})
			case '\\': // no line end at the end of the file
			default:
				return nil
			}
		}
		hunks = append(hunks, h)
	}
	return hunks
}

// snippet returns the lines that a result shows of the changed file.
func (c *call) snippet(p string) []act {
	text, ok := outputText(c.output)
	if !ok {
		return nil
	}
	_, listing, ok := strings.Cut(text, "cat -n` on a snippet of ")
	if !ok {
		return nil
	}
	start, lines, _, ok := numbered(listing)
	if !ok {
		return nil
	}
	return []act{{verb: list, path: p, start: start, lines: lines, rest: uncounted, certain: true}}
}

// read returns the acts of a tool that shows a file.
func (c *call) read(p string) []act {
	if f, ok := c.output.Get("file"); ok && f.Kind() == signal.KindObject {
		text, ok := f.Member("content").Text()
		start := max(1, f.IntOf("startLine"))
		total, counted := f.Member("totalLines").Int64()
		if !ok || start > maxLine || total > maxLine {
			return nil
		}
		lines := strings.Split(text, "\n")
		if !counted {
			return []act{{verb: list, path: p, start: int(start), lines: lines, rest: uncounted, certain: true}}
		}
		rest := total - (start - 1) - int64(len(lines))
		if rest == 0 && start == 1 {
			return []act{{verb: show, path: p, text: text, certain: true}}
		}
		if rest > 0 {
			// The tool counts the empty text behind the last line end, if there is one.
			return []act{{verb: list, path: p, start: int(start), lines: lines, rest: uncounted, certain: true}}
		}
		return []act{{verb: list, path: p, start: int(start), lines: lines, last: true, certain: true}}
	}
	text, ok := outputText(c.output)
	if !ok {
		return nil
	}
	part := false
	for _, name := range []string{"offset", "limit", "view_range", "start_line", "end_line", "start", "end", "range"} {
		v := c.input.Member(name)
		if n, is := v.Int64(); is && (n == 0 || n == -1 || n == 1 && strings.HasPrefix(name, "start")) {
			continue
		}
		part = part || v.Kind() != signal.KindAbsent && v.Kind() != signal.KindNull
	}
	if start, lines, after, ok := numbered(text); ok {
		a := act{verb: list, path: p, start: start, lines: lines, rest: uncounted, certain: true}
		remark := strings.TrimSpace(after)
		if !part && start == 1 && len(lines) < 2000 && (remark == "" || strings.HasPrefix(remark, "<system-reminder>")) {
			a.last, a.rest = true, 0
		}
		return []act{a}
	}
	if c.tool != "read_file" && c.tool != "read" && c.tool != "view_file" || part || strings.HasPrefix(text, "<system-reminder>") || strings.HasPrefix(text, "Error") {
		return nil
	}
	if strings.HasPrefix(text, "IMPORTANT: The file content has been truncated") {
		return nil
	}
	return []act{{verb: show, path: p, text: text, certain: true, trimmed: !strings.HasSuffix(text, "\n")}}
}

// readFiles returns the acts of a tool that shows several files, each with its query.
func (c *call) readFiles() (acts []act) {
	results := c.output
	if results.Kind() == signal.KindObject {
		for _, name := range []string{"value", "content", "result"} {
			if v, ok := c.output.Get(name); ok && v.Kind() == signal.KindArray {
				results = v
				break
			}
		}
	}
	for e := range results.Elements() {
		query, text := e.TextOf("query"), e.TextOf("result")
		if i := strings.LastIndexByte(query, ':'); i > 0 && strings.Trim(query[i+1:], "0123456789-") == "" {
			query = query[:i]
		}
		start, lines, _, ok := numbered(text)
		if p := resolvePath(c.dir, query); ok && p != "" {
			acts = append(acts, act{verb: list, path: p, start: start, lines: lines, rest: uncounted, certain: true})
		}
	}
	return acts
}

// lineTools are the commands of an agent whose results show the open file with its
// name and the numbers of its lines.
var lineTools = nameSet("open goto scroll_up scroll_down create edit insert")

// linesOfAgent returns the acts of such a command.
func (c *call) linesOfAgent(name string) ([]act, bool) {
	text, ok := outputText(c.output)
	action := firstText(c.input, "action", "command", "value", "input")
	if !lineTools[name] || !ok || !strings.HasPrefix(action, name) {
		return nil, false
	}
	at := strings.Index(text, "[File: ")
	if at < 0 || strings.Contains(text[:at], "introduced new syntax error") {
		return nil, at >= 0
	}
	head, listing, _ := strings.Cut(text[at+len("[File: "):], "\n")
	p, size, ok := strings.Cut(head, " (")
	number, _, _ := strings.Cut(size, " ")
	total, counted := smallNumber(number)
	if p = resolvePath(c.dir, p); !ok || !counted || p == "" {
		return nil, true
	}
	var acts []act
	if first, last, text, ok := lineEdit(name, action); ok {
		acts = append(acts, act{verb: patchAt, path: p, certain: true, hunks: []hunk{lineHunk(first, last, text)}})
	}
	if name == "create" {
		acts = append(acts, act{verb: touch, path: p, certain: true})
	}
	if start, lines, _, ok := numbered(listing); ok {
		rest := max(0, total-(start-1)-len(lines))
		acts = append(acts, act{verb: list, path: p, start: start, lines: lines, rest: rest, certain: true})
	}
	return acts, true
}

// lineEdit reads "edit 3:5", the new lines, and "end_of_edit".
func lineEdit(name, action string) (first, last int, text string, ok bool) {
	if name != "edit" {
		return 0, 0, "", false
	}
	head, body, _ := strings.Cut(action, "\n")
	from, to, two := strings.Cut(strings.TrimSpace(strings.TrimPrefix(head, "edit")), ":")
	first, ok = smallNumber(from)
	last, ok2 := smallNumber(to)
	body, _, ended := strings.Cut(body, "end_of_edit")
	return first, last, body, two && ok && ok2 && ended && first > 0 && last >= first && last < 1<<20
}

// lineHunk replaces lines by their numbers. What they were is not known from the
// command.
func lineHunk(first, last int, text string) hunk {
	h := hunk{start: first}
	for range last - first + 1 {
		h.lines = append(h.lines, hunkLine{'-', Gap})
	}
	for _, l := range splitLines(text) {
		h.lines = append(h.lines, hunkLine{'+', strings.TrimSuffix(l, "\n")})
	}
	return h
}
