// Package settings edits the settings of Claude Code, so that it runs a command as a hook. The
// settings are a file that people write: an edit changes the bytes that it has to change
// and keeps all others, the order of the members, the indentation and what it does not know.
//
//	{
//	  "hooks": {
//	    "PreToolUse": [
//	      {"hooks": [{"type": "command", "command": "sajou-hook", "timeout": 5, "statusMessage": "sajou-hook"}]}
//	    ]
//	  }
//	}
//
// The status message marks the hooks of this package; all others belong to someone else
// and are kept.
//
// # Invariants
//
//   - [Install] of what is installed changes nothing.
//   - [Remove] after Install gives the text from before, but for the space in an object that
//     was empty.
//   - Text that is not exactly one JSON object, or that has hooks in another form, is refused.
//
// docs/glossary.md has the nouns of all packages.
package settings

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// MaxText bounds a file of settings, in bytes.
const MaxText = 4 << 20

// Mark is the status message of the hooks of this package.
const Mark = "sajou-hook"

// ErrSettings is wrapped by the errors about text that cannot be edited.
var ErrSettings = errors.New("the settings cannot be edited")

// Events returns the events at which the command runs.
func Events() []string {
	return []string{
		"SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure",
		"SubagentStart", "SubagentStop", "Stop", "SessionEnd",
	}
}

// HookCommand is the command of a hook.
type HookCommand struct {
	Command string // for the shell
	Timeout int    // in seconds, after which the agent ends the command

	// Async says that the agent does not wait for the command. Events may then arrive in
	// another order, and the last ones not at all.
	Async bool
}

// handler is a hook as the settings have it.
type handler struct {
	Type          string `json:"type"`
	Command       string `json:"command"`
	Timeout       int    `json:"timeout,omitempty"`
	Async         bool   `json:"async,omitempty"`
	StatusMessage string `json:"statusMessage"`
}

func (c HookCommand) handler() handler {
	return handler{"command", c.Command, c.Timeout, c.Async, Mark}
}

// group is the handlers of one event and a pattern; without one, for all tools.
type group struct {
	Hooks []handler `json:"hooks"`
}

// Install returns the text with the command as a hook of all [Events], instead of one that was
// installed before. Empty text is that of a new file.
func Install(text []byte, c HookCommand) ([]byte, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		text = []byte("{}\n")
	}
	for _, event := range Events() {
		doc, err := parse(text)
		if err != nil {
			return nil, err
		}
		found, err := installed(doc)
		if err != nil {
			return nil, err
		}
		text, err = doc.install(event, found[event], c.handler())
		if err != nil {
			return nil, err
		}
	}
	// An earlier version may have known other events, and one event may have two.
	for {
		doc, err := parse(text)
		if err != nil {
			return nil, err
		}
		found, err := installed(doc)
		if err != nil {
			return nil, err
		}
		extra := place{}
		for event, list := range found {
			if !known(event) {
				extra = list[0]
			} else if len(list) > 1 {
				extra = list[1]
			}
		}
		if extra.handler == nil {
			return text, nil
		}
		text = doc.without(extra)
	}
}

func known(event string) bool { return slices.Contains(Events(), event) }

// Remove returns the text without the hooks that [Install] has added.
func Remove(text []byte) ([]byte, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return text, nil
	}
	for {
		doc, err := parse(text)
		if err != nil {
			return nil, err
		}
		found, err := installed(doc)
		if err != nil {
			return nil, err
		}
		var next place
		for _, list := range found {
			next = list[len(list)-1]
		}
		if next.handler == nil {
			return text, nil
		}
		text = doc.without(next)
	}
}

// Installed returns the commands of the hooks of this package by their event.
func Installed(text []byte) (map[string]string, error) {
	commands := map[string]string{}
	if len(bytes.TrimSpace(text)) == 0 {
		return commands, nil
	}
	doc, err := parse(text)
	if err != nil {
		return nil, err
	}
	found, err := installed(doc)
	if err != nil {
		return nil, err
	}
	for event, list := range found {
		if command := list[0].handler.member("command"); command != nil {
			commands[event] = command.text(doc.text)
		}
	}
	return commands, nil
}

// place is where a handler of ours stands.
type place struct {
	hooks   *node // the object of all hooks
	event   *node // the list of the groups of the event
	group   *node // the object
	list    *node // of the handlers in the group
	handler *node
}

// installed finds the handlers of this package by their event.
func installed(doc *document) (map[string][]place, error) {
	found := map[string][]place{}
	hooks := doc.root.member("hooks")
	if hooks == nil {
		return found, nil
	}
	if hooks.kind != '{' {
		return nil, doc.refuse(hooks, `"hooks" is not an object`)
	}
	for _, event := range hooks.parts {
		if event.kind != '[' {
			return nil, doc.refuse(event, "the hooks of %q are not a list", event.name)
		}
		for _, g := range event.parts {
			list := g.member("hooks")
			if g.kind != '{' || list == nil || list.kind != '[' {
				return nil, doc.refuse(g, `a hook of %q is not an object with a list "hooks"`, event.name)
			}
			for _, h := range list.parts {
				if mark := h.member("statusMessage"); mark != nil && mark.text(doc.text) == Mark {
					found[event.name] = append(found[event.name], place{hooks, event, g, list, h})
				}
			}
		}
	}
	return found, nil
}

// install returns the text with the handler for one event.
func (d *document) install(event string, have []place, h handler) ([]byte, error) {
	if len(have) > 0 {
		at := have[0].handler
		var now handler
		if json.Unmarshal(d.text[at.start:at.end], &now) == nil && now == h {
			return d.text, nil
		}
		return d.replace(at, d.format(h, d.indentOf(at))), nil
	}
	groups := []group{{[]handler{h}}}
	hooks := d.root.member("hooks")
	if hooks == nil {
		return d.insert(d.root, "hooks", map[string][]group{event: groups})
	}
	list := hooks.member(event)
	if list == nil {
		return d.insert(hooks, event, groups)
	}
	return d.insert(list, "", groups[0])
}

// without returns the text without a handler, and without what it leaves empty.
func (d *document) without(p place) []byte {
	switch {
	case len(p.list.parts) > 1:
		return d.delete(p.list, p.handler)
	case len(p.event.parts) > 1:
		return d.delete(p.event, p.group)
	case len(p.hooks.parts) > 1:
		return d.delete(p.hooks, p.event)
	default:
		return d.delete(d.root, p.hooks)
	}
}

// refuse returns an error about a value, with its line.
func (d *document) refuse(n *node, format string, args ...any) error {
	line := 1 + bytes.Count(d.text[:n.start], []byte("\n"))
	return fmt.Errorf("%w: line %d: %s", ErrSettings, line, fmt.Sprintf(format, args...))
}

// lineEnd returns the end of lines of the text.
func (d *document) lineEnd() string {
	if strings.Contains(string(d.text), "\r\n") {
		return "\r\n"
	}
	return "\n"
}
