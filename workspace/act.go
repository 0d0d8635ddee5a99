package workspace

import (
	"strings"

	"github.com/sajou-dev/sajou-go/workspace/internal/shell"
)

// verb says what an act does to a file.
type verb uint8

const (
	write     verb = iota // the whole text is replaced by text
	extend                // text is added at the end
	touch                 // the text is replaced by one that is not known
	edit                  // texts are replaced by others
	insert                // text comes behind line start
	patch                 // hunks that find their places
	patchAt               // hunks that name their places
	show                  // the whole text is shown: nothing changes
	list                  // lines from start on are shown
	remove                // the file, or the folder, is deleted
	rename                // the file, or the folder, becomes to
	duplicate             // to becomes a copy of the file
	doubt                 // the file, or all files of the folder, may have changed
)

// act is what one tool call does to one file, or shows of it.
type act struct {
	verb    verb
	path    string // in the one spelling
	to      string
	text    string
	edits   []textEdit
	hunks   []hunk
	before  *string // the whole text before the act, as the result has it
	start   int     // the first line
	lines   []string
	last    bool // the last of the lines ends the file
	rest    int  // the number of lines behind lines, or uncounted
	certain bool // it has happened if the tool succeeded
	trimmed bool // the line end at the end of text is a guess
	failed  bool // the shell command has failed, perhaps after the act
	folder  bool // path is that of a folder
}

// textEdit replaces a text by another.
type textEdit struct {
	old, text string
	which     occurrences
}

// verbs of acts that change nothing.
func (a *act) readsOnly() bool { return a.verb == show || a.verb == list }

// patchActs returns the acts of a patch.
func patchActs(changes []fileChange, dir string, placed bool) []act {
	var acts []act
	for _, c := range changes {
		a := act{path: resolvePath(dir, c.path), certain: true}
		if a.path == "" {
			continue
		}
		switch c.op {
		case 'A':
			a.verb, a.text = write, c.text
		case 'D':
			a.verb = remove
		default:
			a.verb, a.hunks = patch, c.hunks
			if placed {
				a.verb = patchAt
			}
		}
		if c.op != 'U' || len(c.hunks) > 0 {
			acts = append(acts, a)
		}
		if to := resolvePath(dir, c.to); c.to != "" && to != "" {
			acts = append(acts, act{verb: rename, path: a.path, to: to, certain: true})
		}
	}
	return acts
}

// scriptActs returns the acts of a shell script. Output is what it printed, unless
// printed is false.
func scriptActs(s shell.CommandList, output string, printed bool, dir string) []act {
	var acts []act
	shows := 0 // commands that print
	for i := range s.Commands {
		switch s.Commands[i].Name() {
		case "cd", "export", "set", "source", ".", "true", "pushd":
		default:
			shows++
		}
	}
	for i := range s.Commands {
		c := &s.Commands[i]
		one := commandActs(s, i, dir)
		for j := range one {
			one[j].certain = one[j].certain && c.Certain && !s.Unsure
		}
		acts = append(acts, one...)
		if printed && shows == 1 && c.Certain && !s.Unsure && len(c.Redirects) == 0 {
			if a, ok := shown(c, output, dir); ok {
				acts = append(acts, a)
			}
		}
	}
	return acts
}

// file returns the path that a word of a command names.
func file(c *shell.SimpleCommand, w shell.Word, dir string) string {
	if !w.Exact || w.Text == "" || w.Text == "-" || strings.HasPrefix(w.Text, "/dev/") {
		return ""
	}
	within := resolvePath(dir, c.Dir)
	if c.Dir == "" {
		within = dir
	}
	if c.Lost && !isAbsolute(w.Text) {
		return ""
	}
	return resolvePath(within, w.Text)
}

// operands returns the words that are not options.
func operands(words []shell.Word) (rest []shell.Word, options string) {
	for i, w := range words {
		if w.Text == "--" {
			return append(rest, words[i+1:]...), options
		}
		if strings.HasPrefix(w.Text, "-") && len(w.Text) > 1 {
			options += " " + w.Text
			continue
		}
		rest = append(rest, w)
	}
	return rest, options
}

// commandActs returns the acts of one command of a script.
func commandActs(s shell.CommandList, index int, dir string) (acts []act) {
	c := &s.Commands[index]
	run := shell.Run(c.Words)
	name := (&shell.SimpleCommand{Words: run.Words}).Name()
	var args []shell.Word
	if len(run.Words) > 0 {
		args = run.Words[1:]
	}
	each := func(verb verb, words []shell.Word) {
		for _, w := range words {
			if p := file(c, w, dir); p != "" {
				acts = append(acts, act{verb: verb, path: p})
			}
		}
	}
	var patches []act
	rest, options := operands(args)
	here := file(c, shell.Word{Text: ".", Exact: true}, dir)
	everything := func() {
		if here != "" {
			acts = append(acts, act{verb: doubt, path: here, folder: true})
		}
	}
	switch name {
	case "rm", "unlink", "rmdir", "shred":
		each(remove, rest)
	case "mv", "cp":
		acts = append(acts, transfers(c, name, rest, dir)...)
	case "tee":
		acts = append(acts, teeActs(c, rest, strings.Contains(options, "-a"), dir)...)
	case "truncate", "dos2unix", "unix2dos", "isort", "black", "rustfmt", "ed", "ex", "autopep8", "yapf":
		each(doubt, rest)
	case "sed", "perl", "ruby":
		if inPlace(args) {
			each(doubt, scriptless(args))
		}
	case "gofmt", "goimports", "gofumpt", "shfmt":
		if strings.Contains(options, " -w") {
			each(doubt, rest)
		}
	case "clang-format", "prettier", "eslint", "ruff", "biome", "rubocop", "npx":
		if strings.Contains(options, "-i") || strings.Contains(options, "--write") || strings.Contains(options, "--fix") ||
			name == "ruff" && len(rest) > 0 && rest[0].Text == "format" {
			each(doubt, rest)
		}
	case "cargo", "go":
		if len(rest) > 0 && (rest[0].Text == "fmt" || rest[0].Text == "fix") {
			everything()
		}
	case "patch":
		everything()
	case "apply_patch", "applypatch":
		text := ""
		if len(args) > 0 && args[0].Exact {
			text = args[0].Text
		}
		for _, r := range c.Redirects {
			if r.Op == "<<" && r.Target.Exact {
				text = r.Body
			}
		}
		patches = patchActs(parsePatch(text), here, false)
	case "git":
		acts = append(acts, gitActs(c, rest, args, dir, here)...)
	}
	acts = append(acts, redirectActs(c, name, args, dir)...)
	for i := range acts {
		switch acts[i].verb {
		case remove, rename, duplicate:
			// The word may be one of an option, and the target a folder.
		default:
			acts[i].certain = !run.Unsure
		}
	}
	return append(acts, patches...)
}

// inPlace reports whether the options of sed, perl or ruby change files.
func inPlace(args []shell.Word) bool {
	for _, a := range args {
		if strings.HasPrefix(a.Text, "--in-place") {
			return true
		}
		if len(a.Text) > 1 && a.Text[0] == '-' && a.Text[1] != '-' {
			flags, _, _ := strings.Cut(a.Text[1:], "e")
			if strings.Contains(flags, "i") {
				return true
			}
		}
	}
	return false
}

// scriptless returns the operands of sed, perl or ruby without their script.
func scriptless(args []shell.Word) (rest []shell.Word) {
	given := false // by an option
	for i := 0; i < len(args); i++ {
		switch text := args[i].Text; {
		case text == "--expression" || text == "--file":
			given = true
			i++
		case strings.HasPrefix(text, "--expression=") || strings.HasPrefix(text, "--file="):
			given = true
		case len(text) > 1 && text[0] == '-':
			if strings.HasSuffix(text, "e") || text == "-f" {
				given = true
				i++
			}
		default:
			rest = append(rest, args[i])
		}
	}
	if !given && len(rest) > 0 {
		rest = rest[1:]
	}
	return rest
}

// transfers returns the acts of mv and cp.
func transfers(c *shell.SimpleCommand, name string, rest []shell.Word, dir string) (acts []act) {
	if len(rest) < 2 {
		return nil
	}
	last := rest[len(rest)-1]
	to := file(c, last, dir)
	if to == "" {
		return nil
	}
	folder := len(rest) > 2 || strings.HasSuffix(last.Text, "/") || last.Text == "." || last.Text == ".."
	for _, w := range rest[:len(rest)-1] {
		from := file(c, w, dir)
		if from == "" {
			continue
		}
		a := act{verb: rename, path: from, to: to}
		if name == "cp" {
			a.verb = duplicate
		}
		if folder {
			a.to = to + "/" + from[strings.LastIndexByte(from, '/')+1:]
		}
		acts = append(acts, a)
	}
	return acts
}

// gitActs returns the acts of git. Files come back in a version that is not known.
func gitActs(c *shell.SimpleCommand, rest, args []shell.Word, dir, here string) (acts []act) {
	if len(rest) == 0 {
		return nil
	}
	each := func(verb verb, words []shell.Word) {
		for _, w := range words {
			if p := file(c, w, dir); p != "" {
				acts = append(acts, act{verb: verb, path: p})
			}
		}
	}
	all := func() []act {
		if here == "" {
			return nil
		}
		return []act{{verb: doubt, path: here, folder: true}}
	}
	switch rest[0].Text {
	case "rm":
		each(remove, rest[1:])
	case "mv":
		return transfers(c, "mv", rest[1:], dir)
	case "checkout", "restore":
		for i, w := range args {
			if w.Text == "--" {
				each(doubt, args[i+1:])
				return acts
			}
		}
		if rest[0].Text == "restore" {
			each(doubt, rest[1:])
			return acts
		}
		return all()
	case "reset", "stash", "pull", "merge", "rebase", "apply", "am", "cherry-pick", "revert", "switch", "clean":
		return all()
	}
	return acts
}

// teeActs returns the acts of tee, whose text is known if it is a here-document.
func teeActs(c *shell.SimpleCommand, rest []shell.Word, appends bool, dir string) (acts []act) {
	text, known := hereText(c)
	for _, w := range rest {
		if p := file(c, w, dir); p != "" {
			acts = append(acts, writing(p, text, known && !c.Piped, appends))
		}
	}
	return acts
}

func hereText(c *shell.SimpleCommand) (string, bool) {
	for _, r := range c.Redirects {
		if r.Op == "<<" {
			return r.Body, r.Target.Exact
		}
	}
	return "", false
}

// writing returns the act that puts a text into a file.
func writing(path, text string, known, appends bool) act {
	switch {
	case !known && appends:
		return act{verb: doubt, path: path}
	case !known:
		return act{verb: touch, path: path}
	case appends:
		return act{verb: extend, path: path, text: text}
	}
	return act{verb: write, path: path, text: text}
}

// redirectActs returns the acts of the redirections of a command into files.
func redirectActs(c *shell.SimpleCommand, name string, args []shell.Word, dir string) (acts []act) {
	for _, r := range c.Redirects {
		appends := r.Op == ">>" || r.Op == "&>>"
		if !appends && r.Op != ">" && r.Op != ">|" && r.Op != "&>" {
			continue
		}
		p := file(c, r.Target, dir)
		if p == "" {
			continue
		}
		if r.FD == "2" {
			acts = append(acts, writing(p, "", false, appends))
			continue
		}
		if name == "cat" && len(args) == 1 && !appends {
			if from := file(c, args[0], dir); from != "" {
				acts = append(acts, act{verb: duplicate, path: from, to: p})
				continue
			}
		}
		text, known := printed(c, name, args)
		acts = append(acts, writing(p, text, known, appends))
	}
	return acts
}

// printed returns what a command prints, if that can be told.
func printed(c *shell.SimpleCommand, name string, args []shell.Word) (string, bool) {
	switch name {
	case "":
		return "", len(c.Words) == 0
	case ":", "true":
		return "", true
	case "cat":
		if len(args) == 0 && !c.Piped {
			return hereText(c)
		}
	case "echo", "printf":
		end := "\n"
		if name == "echo" && len(args) > 0 && args[0].Text == "-n" {
			end, args = "", args[1:]
		}
		words := make([]string, len(args))
		for i, a := range args {
			if !a.Exact || strings.Contains(a.Text, `\`) && name == "echo" || i == 0 && strings.HasPrefix(a.Text, "-") {
				return "", false
			}
			words[i] = a.Text
		}
		if name == "echo" {
			return strings.Join(words, " ") + end, true
		}
		if len(words) == 1 && !strings.Contains(words[0], "%") {
			text := strings.ReplaceAll(words[0], `\n`, "\n")
			return text, !strings.Contains(text, `\`)
		}
	}
	return "", false
}

// shown returns the act of a command that prints a file, or lines of one.
func shown(c *shell.SimpleCommand, output, dir string) (act, bool) {
	run := shell.Run(c.Words)
	if len(run.Words) < 2 || c.Piped || c.Pipes || run.Unsure {
		return act{}, false
	}
	name := (&shell.SimpleCommand{Words: run.Words}).Name()
	rest, options := operands(run.Words[1:])
	if (name == "head" || name == "tail") && len(rest) == 2 && strings.HasSuffix(options, "-n") || name == "sed" && len(rest) == 2 {
		rest = rest[1:] // the number, the script
	}
	if len(rest) != 1 {
		return act{}, false
	}
	p := file(c, rest[0], dir)
	if p == "" {
		return act{}, false
	}
	dos := strings.Contains(output, "\r\n")
	output = strings.ReplaceAll(output, "\r\n", "\n") // of a terminal
	lines := strings.Split(strings.TrimSuffix(output, "\n"), "\n")
	a := act{verb: list, path: p, start: 1, lines: lines, rest: uncounted, certain: true}
	option := strings.TrimSpace(options)
	switch {
	case name == "cat" && option == "":
		a = act{verb: show, path: p, text: output, certain: true, trimmed: dos}
		if output != "" && !strings.HasSuffix(output, "\n") {
			// Agents cut the line end of an output.
			a.text, a.trimmed = output+"\n", true
		}
		return a, true
	case name == "cat" && option == "-n" || name == "nl" && option == "-ba":
		start, lines, after, ok := numbered(output)
		if !ok || start != 1 || strings.TrimSpace(after) != "" {
			return act{}, false
		}
		a.lines, a.rest = lines, 0
		return a, true
	case name == "sed" && option == "-n":
		first, last, ok := sedRange(run.Words[len(run.Words)-2].Text)
		// An agent that cuts the space around an output may have cut empty lines.
		short := len(lines) < last-first+1
		if !ok || len(lines) > last-first+1 || output == "" || short && !strings.HasSuffix(output, "\n") {
			return act{}, false
		}
		if short {
			a.rest = 0
		}
		a.start = first
		return a, true
	case name == "head" && output != "":
		n := 10
		words := run.Words[1 : len(run.Words)-1]
		if len(words) > 0 {
			ok := false
			if n, ok = smallNumber(strings.TrimLeft(words[len(words)-1].Text, "-n")); !ok {
				return act{}, false
			}
		}
		return a, len(lines) <= n
	}
	return act{}, false
}

// sedRange reads the script "12,34p" or "12p" of sed.
func sedRange(script string) (first, last int, ok bool) {
	script, ok = strings.CutSuffix(script, "p")
	if !ok {
		return 0, 0, false
	}
	from, to, two := strings.Cut(script, ",")
	first, ok = smallNumber(from)
	last = first
	if two && ok {
		last, ok = smallNumber(to)
	}
	return first, last, ok && first > 0 && last >= first
}
