package workspace

// UseKind says what a call does with a file.
type UseKind uint8

// The kinds of uses.
const (
	UseRead   UseKind = iota // it reads the file
	UseWrite                 // it makes or changes the file
	UseDelete                // it deletes the file, or moves it away
)

// FileUse is a file that a call names.
type FileUse struct {
	Path    string // in one spelling, see package workspace
	Kind    UseKind
	Certain bool // the use has happened if the call succeeded
}

// Uses returns the files that a tool_call names, in the order in which it does
// something to them. Relative paths begin at dir, as [State.Dir] returns it. A shell
// command names only what it writes, moves and deletes.
func (t *ToolSignal) Uses(dir string) []FileUse {
	if t.Result {
		return nil
	}
	c := call{tool: t.Tool, input: t.Input, dir: dir}
	var uses []FileUse
	for _, a := range c.acts() {
		switch a.verb {
		case show, list:
		case remove:
			uses = append(uses, FileUse{a.path, UseDelete, a.certain})
		case rename:
			uses = append(uses, FileUse{a.path, UseDelete, a.certain}, FileUse{a.to, UseWrite, a.certain})
		case duplicate:
			uses = append(uses, FileUse{a.to, UseWrite, a.certain})
		case doubt:
			if !a.folder {
				uses = append(uses, FileUse{a.path, UseWrite, a.certain})
			}
		default:
			uses = append(uses, FileUse{a.path, UseWrite, a.certain})
		}
	}
	if len(uses) == 0 && readTools[toolName(t.Tool)] || t.Input.TextOf("command") == "view" {
		if p := resolvePath(dir, firstText(t.Input, pathMembers...)); p != "" {
			uses = append(uses, FileUse{p, UseRead, true})
		}
	}
	return uses
}

// CommandLine returns what a tool_call gives to a shell: a text, or the arguments of
// one command. It is false for a call of another kind.
func (t *ToolSignal) CommandLine() (text string, args []string, ok bool) {
	if t.Result {
		return "", nil, false
	}
	c := call{tool: t.Tool, input: t.Input}
	return c.commandLine(toolName(t.Tool))
}

// OutputText returns the text of the output of a tool_result, or false if it has none,
// or only a part.
func (t *ToolSignal) OutputText() (string, bool) { return outputText(t.Output) }

// Dir returns the directory in which a call runs that the state has just taken in, or
// "" if that is not known.
func (s *State) Dir(t *ToolSignal) string { return s.dirOf(t) }
