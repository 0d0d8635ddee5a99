// Package workspace rebuilds the files that agents worked on from the tool calls of a
// recording: the text of each file as far as it is known at any entry, and which tool
// call wrote which line.
//
// [Projection] is a projection over the entries of a session. It is not one of those
// that every session folds: a command or a program that asks for files adds it to the
// [projection.Set] of a replay. Its [State] holds a [TrackedFile] for each path.
//
// # What counts
//
// A tool call is a signal tool_call, its result a signal tool_result with the same
// callId; without callId the oldest open call of the same tool and agent is meant.
//
//   - A call takes effect with its result, at the entry of the result, and is named by
//     the Seq of the call. Until then, and if there is none, the files that it names
//     have it as [TrackedFile.Pending].
//   - A failed tool changes nothing. A failed shell command may have done a part of its
//     work, so what it would have changed becomes a guess.
//   - Results that show a file, whole or in part, count too: those of reading tools, of
//     edits, and of cat, head, sed -n and the like. Lines that contradict what was
//     known make guesses of the other lines: something that is not recorded has changed
//     the file.
//   - Shell commands that write a text which the command line has (a here-document,
//     echo) count as writes. Those that delete, move, copy, format or check out files
//     are never certain. What a program does that the shell starts is not known and
//     not guessed.
//
// The tools are those of Claude Code, Codex, Gemini CLI, OpenHands, SWE-agent,
// mini-swe-agent, Cline and Copilot CLI; docs/workspace.md lists them. Others count if
// their names and members are those of one of them.
//
// # Certainty
//
// Each line is [Known] or [Guessed], and between lines are gaps, which are [Unknown].
// Nothing is invented: an edit of a text that is not in the known part leaves the new
// text between two gaps. The text of a gap is [Gap].
//
// # Paths
//
// A path is what a recording says; no file of this machine is opened. A relative path
// is joined to the directory that the call, or metadata.cwd of the signal, names; if
// there is none, it stays relative, and is not the same file as an absolute one.
//
// # Limits
//
// All texts together hold at most [Limit] bytes, a fixed cost for each line counted.
// Beyond that the text of the files is forgotten that were not touched for the longest
// time, and their [TrackedFile.Forgotten] is true. Contents that an import replaced by
// their lengths are unknown.
//
// docs/glossary.md has the nouns of all packages.
package workspace

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/signal"
)

// Name is the name of the projection in views, expressions and images.
const Name = "workspace"

// version grows when the rules or the canonical bytes change.
const version = 1

// Limit bounds the texts of all files and of open calls together, in bytes.
const Limit = 64 << 20

// The costs beside the texts, in bytes.
const (
	spanCost = 48
	fileCost = 256
)

// The bounds of the open calls. Beyond them the older half is forgotten.
const (
	maxPending      = 4096
	maxPendingBytes = 16 << 20
)

// maxFiles bounds the files. Beyond it the records go that were not touched for the
// longest time.
const maxFiles = 1 << 16

// maxWork bounds the bytes of the files that the acts of one result rewrite. Beyond it
// their texts are forgotten.
const maxWork = 1 << 28

// maxAgents bounds the agents whose directories are remembered.
const maxAgents = 1024

// Projection returns the projection. Its images are kept apart from those of a session's
// own projections.
func Projection() projection.Projection {
	return projection.Projection{
		Name:    Name,
		Version: version,
		New:     func() projection.State { return newState(Limit) },
		Restore: func(data []byte) (projection.State, error) { return restore(data, Limit) },
		Apart:   true,
	}
}

// State is the files at one entry. It belongs to its fold and changes with it.
type State struct {
	files   map[string]*tracked
	paths   []string               // of files, sorted
	pending map[string][]*openCall // by the name under which a result finds them
	root    string                 // the first directory that the recording named
	dirs    map[string]string      // the directory of each agent
	hidden  int                    // calls whose input was left out of the recording

	limit        int
	held         int // bytes of the files
	work         int // bytes that the acts of one result have rewritten
	pendingCalls int
	pendingBytes int
}

// tracked is one file.
type tracked struct {
	document
	path      string
	exists    bool
	sure      bool // exists is certain
	forgotten bool
	by        eventlog.Seq // the newest call that changed the file, 0 if none did
	touched   eventlog.Seq // the newest entry that changed or showed it
	size      int          // as counted in State.held
}

// openCall is a tool call without its result.
type openCall struct {
	seq   eventlog.Seq
	key   string
	tool  string
	dir   string
	input signal.Value
	paths []string // that it would change
}

func newState(limit int) *State {
	return &State{files: map[string]*tracked{}, pending: map[string][]*openCall{}, dirs: map[string]string{}, limit: limit}
}

// Of returns the state of the projection in a fold, or nil if the fold has none.
func Of(f *projection.Fold) *State {
	s, _ := f.State(Name).(*State)
	return s
}

// Advance implements [projection.State]: time alone changes no file.
func (s *State) Advance(time.Duration) {}

// Apply implements [projection.State].
func (s *State) Apply(e *eventlog.Entry) {
	t := ToolSignalOf(e)
	switch {
	case t == nil:
	case t.Result:
		s.result(e.Seq, t)
	default:
		s.call(e.Seq, t)
	}
}

// ToolSignal is a tool_call or a tool_result.
type ToolSignal struct {
	Result  bool // it is a tool_result
	Tool    string
	Agent   string
	CallID  string       // "" if the recording has none
	Input   signal.Value // of a call; absent if it has none
	Output  signal.Value // of a result; absent if it has none
	Success bool         // of a result
	Dir     string       // metadata.cwd, or ""
}

// ToolSignalOf returns the tool signal that an entry records, or nil. Its texts are
// views of the entry's data.
func ToolSignalOf(e *eventlog.Entry) *ToolSignal {
	if e.Kind != eventlog.KindSignal || !isToolSignal(e.Data) {
		return nil
	}
	sig, err := signal.Decode(e.Data)
	if err != nil || sig.Raw != nil {
		return nil
	}
	t := &ToolSignal{
		Result: sig.Type == "tool_result",
		Tool:   sig.Payload.TextOf("toolName"), Agent: sig.Payload.TextOf("agentId"), CallID: sig.Payload.TextOf("callId"),
		Input: sig.Payload.Member("input"), Output: sig.Payload.Member("output"), Success: sig.Payload.BoolOf("success"),
		Dir: sig.Metadata.TextOf("cwd"),
	}
	return t
}

// isToolSignal looks at the type alone: most signals are of others.
func isToolSignal(data []byte) bool {
	if len(data) == 0 || data[0] != 0x97 && data[0] != 0x98 {
		return false
	}
	i := 0
	for v := range signal.Value(data).Elements() {
		if i == 1 {
			text, _ := v.Text()
			return text == "tool_call" || text == "tool_result"
		}
		i++
	}
	return false
}

// callKey returns the name under which a result finds its call.
func callKey(t *ToolSignal) string {
	if t.CallID != "" {
		return "i" + t.CallID
	}
	return "n" + t.Tool + "\x00" + t.Agent
}

// dirOf returns the directory in which a call runs.
func (s *State) dirOf(t *ToolSignal) string {
	if dir := cleanPath(t.Dir); isAbsolute(dir) && len(dir) <= maxPath && validText(dir) {
		if s.root == "" {
			s.root = strings.Clone(dir)
		}
		if _, known := s.dirs[t.Agent]; known || len(s.dirs) < maxAgents {
			s.dirs[strings.Clone(t.Agent)] = strings.Clone(dir)
		}
	}
	dir := s.dirs[t.Agent]
	if dir == "" {
		dir = s.root
	}
	for _, name := range []string{"workdir", "cwd", "dir_path", "directory"} {
		if own := t.Input.TextOf(name); own != "" && isShellCall(t) {
			if own = resolvePath(dir, own); isAbsolute(own) {
				return own
			}
		}
	}
	return dir
}

func isShellCall(t *ToolSignal) bool { return shellTools[toolName(t.Tool)] }

func validText(s string) bool { return !strings.ContainsAny(s, "\n\x00") }

// call notes a tool call until its result comes.
func (s *State) call(seq eventlog.Seq, t *ToolSignal) {
	key := callKey(t)
	dir := s.dirOf(t)
	if IsLeftOut(t.Input) {
		s.hidden++
		return
	}
	for _, open := range s.pending[key] {
		if t.CallID != "" && open.tool == t.Tool && string(open.input) == string(t.Input) {
			return // the recording has the call twice
		}
	}
	c := &openCall{seq: seq, key: strings.Clone(key), tool: strings.Clone(t.Tool), dir: strings.Clone(dir), input: slices.Clone(t.Input)}
	c.findPaths()
	if len(c.paths) == 0 && !mayShow(c) {
		return
	}
	s.addPending(c)
	if s.pendingCalls > maxPending || s.pendingBytes > maxPendingBytes {
		s.dropPending()
	}
}

// mayShow reports whether the result of a call may tell about a file that the call
// itself does not tell it changes.
func mayShow(c *openCall) bool {
	name := toolName(c.tool)
	return shellTools[name] || readTools[name] || lineTools[name] || name == "read_files" || firstText(c.input, pathMembers...) != "" ||
		firstText(c.input, "action", "command", "value") != ""
}

// maxNamed bounds the files that an open call names.
const maxNamed = 256

// findPaths finds the files that the call would change.
func (c *openCall) findPaths() {
	one := call{tool: c.tool, input: c.input, dir: c.dir}
	for _, a := range one.acts() {
		if a.readsOnly() || len(c.paths) >= maxNamed {
			continue
		}
		for _, p := range []string{a.path, a.to} {
			if p != "" && !slices.Contains(c.paths, p) {
				c.paths = append(c.paths, strings.Clone(p))
			}
		}
	}
}

func (c *openCall) size() int {
	n := len(c.input) + len(c.key) + len(c.tool) + len(c.dir) + fileCost
	for _, p := range c.paths {
		n += len(p)
	}
	return n
}

func (s *State) addPending(c *openCall) {
	s.pending[c.key] = append(s.pending[c.key], c)
	s.pendingCalls++
	s.pendingBytes += c.size()
}

// allPending returns the open calls in the order of the log.
func (s *State) allPending() []*openCall {
	calls := slices.Concat(slices.Collect(maps.Values(s.pending))...)
	slices.SortFunc(calls, func(a, b *openCall) int { return cmp.Compare(a.seq, b.seq) })
	return calls
}

// dropPending forgets the older half of the open calls. What they may have changed is
// a guess.
func (s *State) dropPending() {
	calls := s.allPending()
	bytes := s.pendingBytes
	for i, c := range calls {
		if i >= maxPending/2 && s.pendingBytes <= bytes/2 || s.pendingCalls <= 1 && s.pendingBytes <= maxPendingBytes {
			return
		}
		s.removePending(c)
		for _, p := range c.paths {
			if f := s.files[p]; f != nil {
				f.guess()
				f.sure = false
			}
		}
	}
}

func (s *State) removePending(c *openCall) {
	list := slices.DeleteFunc(s.pending[c.key], func(other *openCall) bool { return other == c })
	if len(list) == 0 {
		delete(s.pending, c.key)
	} else {
		s.pending[c.key] = list
	}
	s.pendingCalls--
	s.pendingBytes -= c.size()
}

// result applies what a call has done.
func (s *State) result(seq eventlog.Seq, t *ToolSignal) {
	open := s.pending[callKey(t)]
	s.dirOf(t)
	if len(open) == 0 {
		return
	}
	c := open[0]
	s.removePending(c)
	if t.Success && hasFailed(t.Output) {
		t.Success = false
	}
	s.work = 0
	one := call{tool: c.tool, input: c.input, output: t.Output, dir: c.dir}
	_, script := one.script(toolName(c.tool))
	if !t.Success && !script {
		return
	}
	if !t.Success {
		one.output = nil
	}
	for _, a := range one.acts() {
		if !t.Success {
			if a.readsOnly() {
				continue
			}
			a.certain, a.failed = false, true
		}
		s.apply(&a, cause{by: c.seq, seen: seq})
		s.forget()
	}
}

// hasFailed reports whether an output says that the tool failed, although the
// recording does not.
func hasFailed(output signal.Value) bool {
	ok, is := output.Member("success").Bool()
	return is && !ok
}

// IsLeftOut reports whether an import has put the length of a content in its place.
func IsLeftOut(v signal.Value) bool {
	if v.Kind() != signal.KindObject || v.Len() > 2 {
		return false
	}
	_, ok := v.Member("length").Int64()
	_, digest := v.Get("digest")
	return ok && (v.Len() == 1 || digest)
}

var (
	// ErrNoFile is wrapped by the errors of [State.File]: no file has such a path.
	ErrNoFile = errors.New("no such file in the recording")

	// ErrAmbiguous is wrapped by the errors of [State.File]: several files have paths
	// that end so.
	ErrAmbiguous = errors.New("several files have such a path")
)
