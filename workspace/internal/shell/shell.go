// Package shell reads the command lines that agents give to a shell, as far as that
// is possible without running them. It knows quoting, lists (&&, ||, ;, &), pipes,
// redirections, here-documents, subshells, substitutions, and commands that run
// others, such as sudo, env and sh -c.
//
// Nothing is expanded: a [Word] with a variable, a pattern or a substitution in it is
// not Exact. The text is any text, so everything is bounded: [MaxText], [MaxCommands]
// and [maxNesting]. What is not understood is marked: see [CommandList.Unsure].
package shell

import "strings"

// The bounds of a script.
const (
	MaxText     = 1 << 20 // bytes; a longer text is not read
	MaxCommands = 1024    // simple commands, those of nested scripts included

	maxNesting = 8
)

// CommandList is a list of commands.
type CommandList struct {
	// Commands are the simple commands in the order of the text. The commands of a
	// substitution or of sh -c follow the command that has them.
	Commands []SimpleCommand

	// Unsure is true if a part of the text was not understood: the text ends within
	// quotes, or is beyond the bounds.
	Unsure bool
}

// SimpleCommand is one simple command.
type SimpleCommand struct {
	Words     []Word // without assignments in front
	Redirects []Redirect

	// Certain is true if the command has run when the whole script has succeeded: it
	// stands in no branch, loop, function, background or substitution, not after ||,
	// and its own failure would have been that of the script.
	Certain bool

	// Piped is true if the command reads the output of the one before it.
	Piped bool

	// Pipes is true if another command reads its output.
	Pipes bool

	// From is the index of the command whose substitution, or whose argument, holds
	// this one, or -1.
	From int

	// Dir is the directory that cd commands before it lead to, "" for none. It may be
	// relative to the directory of the script.
	Dir string

	// Lost is true if a cd before it leads to a directory that is not known.
	Lost bool
}

// Word is a word of a command with its quotes removed.
type Word struct {
	Text string

	// Exact is true if the shell passes on Text as it is: it has no variable,
	// substitution or pattern.
	Exact bool
}

// Redirect connects a file to a command.
type Redirect struct {
	// Op is one of <, >, >>, >|, <>, <<, <<<, <&, >&, &>, &>>. <<- becomes <<.
	Op string

	FD     string // digits before the operator, or ""
	Target Word   // the file; for << the delimiter

	// Body is the text of a here-document. It is exact if Target.Exact is true: the
	// delimiter was quoted, or the text has nothing that the shell expands.
	Body string
}

// Name returns the first word of the command without its directory, or "".
func (c *SimpleCommand) Name() string {
	if len(c.Words) == 0 {
		return ""
	}
	name := c.Words[0].Text
	return name[strings.LastIndexByte(name, '/')+1:]
}

// Parse reads a script.
func Parse(text string) CommandList {
	var s CommandList
	s.parse(text, 0, -1, true)
	return s
}

// OfArguments returns the script of a command that was given as a list of arguments.
// A list such as bash -lc SCRIPT is that script.
func OfArguments(args []string) CommandList {
	var s CommandList
	c := SimpleCommand{From: -1, Certain: true}
	for _, a := range args {
		c.Words = append(c.Words, Word{a, true})
	}
	if text, ok := scriptArgument(c.Words); ok && text.Exact {
		return Parse(text.Text)
	}
	s.add(c, 0)
	return s
}

// add adds a command, and the commands that its arguments hold.
func (s *CommandList) add(c SimpleCommand, depth int) {
	if len(s.Commands) >= MaxCommands {
		s.Unsure = true
		return
	}
	s.Commands = append(s.Commands, c)
	index := len(s.Commands) - 1
	run := Run(c.Words)
	if text, ok := scriptArgument(run.Words); ok {
		if !text.Exact {
			s.Unsure = true
		}
		s.parse(text.Text, depth+1, index, c.Certain && text.Exact && !run.Unsure)
	}
}

// Running is the command that a command runs.
type Running struct {
	Words []Word

	Root   bool // by sudo or doas
	Unsure bool // with other arguments as well, by xargs or find, or after unknown options
}

// wrappers are commands that run their arguments, with their options that take a
// value.
var wrappers = map[string]string{
	"sudo": "u g C D h p R T U r t", "doas": "u C", "env": "u C S", "nice": "n", "nohup": "", "time": "f o",
	"timeout": "k s", "command": "", "builtin": "", "exec": "a", "stdbuf": "i o e", "ionice": "c n", "setsid": "",
	"xargs": "I n P L d E s a", "caffeinate": "t w", "unbuffer": "", "chronic": "", "busybox": "",
}

// Run returns the command that words run: it removes sudo, env, timeout and the like.
func Run(words []Word) Running {
	r := Running{Words: words}
	for range maxNesting {
		if len(r.Words) == 0 {
			return r
		}
		c := SimpleCommand{Words: r.Words}
		name := c.Name()
		valued, ok := wrappers[name]
		if !ok {
			return r
		}
		rest := r.Words[1:]
		for len(rest) > 0 {
			word := rest[0].Text
			if name == "env" && isAssignment(word) {
				rest = rest[1:]
				continue
			}
			if !strings.HasPrefix(word, "-") || word == "-" {
				break
			}
			rest = rest[1:]
			if word == "--" {
				break
			}
			if name == "command" && (word == "-v" || word == "-V") {
				return Running{Words: nil}
			}
			if len(word) == 2 && strings.Contains(" "+valued+" ", " "+word[1:]+" ") && len(rest) > 0 {
				rest = rest[1:]
			}
		}
		switch name {
		case "timeout":
			if len(rest) > 0 {
				rest = rest[1:]
			}
		case "sudo", "doas":
			r.Root = true
			for len(rest) > 0 && isAssignment(rest[0].Text) {
				rest = rest[1:]
			}
		case "xargs":
			r.Unsure = true
		}
		r.Words = rest
	}
	return r
}

// isAssignment reports whether a word has the form NAME=VALUE.
func isAssignment(word string) bool {
	name, _, ok := strings.Cut(word, "=")
	name = strings.TrimSuffix(name, "+")
	if !ok || name == "" || name[0] >= '0' && name[0] <= '9' {
		return false
	}
	for _, c := range []byte(name) {
		if c != '_' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return false
		}
	}
	return true
}

// IsShell reports whether a command of that name runs scripts of a shell.
func IsShell(name string) bool {
	switch name {
	case "sh", "bash", "zsh", "dash", "ksh", "ash", "fish":
		return true
	}
	return false
}

// scriptArgument returns the script among the words of sh -c and eval.
func scriptArgument(words []Word) (Word, bool) {
	c := SimpleCommand{Words: words}
	switch name := c.Name(); {
	case name == "eval" && len(words) > 1:
		all := Word{Exact: true}
		for _, w := range words[1:] {
			all.Text += w.Text + " "
			all.Exact = all.Exact && w.Exact
		}
		return all, true
	case IsShell(name) || name == "su":
		for i, w := range words[1:] {
			if strings.HasPrefix(w.Text, "-") && !strings.HasPrefix(w.Text, "--") && strings.HasSuffix(w.Text, "c") && i+2 < len(words) {
				return words[i+2], true
			}
			if !strings.HasPrefix(w.Text, "-") && name != "su" {
				break
			}
		}
	}
	return Word{}, false
}
