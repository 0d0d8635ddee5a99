// Package claudecode reads the transcripts of Claude Code: the file of a session with
// the files of its subagents beside it, and the export of a session from the web.
//
// # Where the files are
//
//	~/.claude/projects/PROJECT/SESSION.jsonl                             the session
//	~/.claude/projects/PROJECT/SESSION/subagents/agent-ID.jsonl          a subagent of it
//	~/.claude/projects/PROJECT/SESSION/subagents/agent-ID.meta.json      what the subagent is
//
// Older versions write the lines of subagents into the file of the session.
//
// # Turns
//
// A transcript has no reliable mark of the end of a turn. A turn ends at the first of: a
// turn_duration, the summary of stop hooks that had nothing to say, the next prompt, an
// interruption, an error of the API, and the end of a final recording after an answer. A
// stop hook that sends the agent back does not end it.
//
// # Tokens
//
// The lines of one message repeat its usage, in some versions with numbers that grow, so the
// last line counts. The usage is held until another message of the same thread, a
// prompt, or the end of the turn.
package claudecode

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"path"
	"strings"

	"github.com/sajou-dev/sajou-go/ingest/recording"
	"github.com/sajou-dev/sajou-go/signal"
)

// mainAgent is the id of the main agent.
const mainAgent = "claude"

// Format returns the format of the transcripts of Claude Code.
func Format() recording.Format {
	return recording.Format{
		Name:       "claude-code",
		Title:      "Claude Code transcript",
		Agent:      mainAgent,
		Recognized: "lines with sessionId and uuid, or an object with loglines",
		Grows:      true,
		Detect:     detect,
		PartOf:     partOf,
		Map:        read,
	}
}

// partOf returns the file of the session to which a file in a folder of subagents belongs.
func partOf(name string) string {
	dir, file := path.Split(name)
	session, inFolder := strings.CutSuffix(dir, "/subagents/")
	if !inFolder || session == "" || !strings.HasPrefix(file, "agent-") {
		return ""
	}
	return session + ".jsonl"
}

func detect(s *recording.Sample) string {
	if s.Has("loglines[].type") {
		return "the document has loglines, the records of a transcript"
	}
	reason := ""
	s.AnyLine(func(v signal.Value) bool {
		reason = recognize(v)
		return reason != ""
	})
	return reason
}

// recognize returns why a line is one of a transcript.
func recognize(v signal.Value) string {
	has := func(names ...string) bool {
		for _, name := range names {
			if _, ok := v.Get(name); !ok {
				return false
			}
		}
		return true
	}
	typ := v.TextOf("type")
	switch {
	case typ == "":
		return ""
	case has("sessionId", "uuid"):
		return "a line has type, sessionId and uuid"
	case (typ == "user" || typ == "assistant") && v.TextOf("uuid") != "" && v.Member("message").TextOf("role") == typ,
		typ == "summary" && has("leafUuid"),
		typ == "queue-operation" && has("operation"),
		typ == "file-history-snapshot" && has("snapshot"):
		return "a line is a record of type " + typ + " of a transcript"
	}
	return ""
}

func read(in *recording.Recorded, m *recording.Mapping) error {
	export, err := isExport(in)
	if err != nil {
		return err
	}
	r := newReader(m)
	if export {
		err = r.readExport(in)
	} else {
		err = r.readFiles(in)
	}
	if err == nil && in.Final() {
		r.finish()
	}
	return err
}

// isExport reports whether the recording is an export from the web: one document with
// loglines. Its beginning tells.
func isExport(in *recording.Recorded) (bool, error) {
	head, err := in.Head(in.Name)
	if err != nil {
		return false, err
	}
	if !bytes.Contains(head, []byte(`"loglines"`)) {
		return false, nil
	}
	return recording.NewSample(in.Name, head, false).Has("loglines"), nil
}

func (r *reader) readExport(in *recording.Recorded) error {
	doc, err := in.Document(in.Name)
	if err != nil {
		return err
	}
	for _, rec := range in.Elements(in.Name, "/loglines", doc.Member("loglines")) {
		r.record(rec.Value, "")
	}
	return nil
}

func (r *reader) readFiles(in *recording.Recorded) error {
	dir := strings.TrimSuffix(in.Name, path.Ext(in.Name)) + "/subagents"
	names, err := subagentFiles(in, dir)
	if err != nil {
		return err
	}
	var beside []string
	agentOf := map[string]string{}
	for _, name := range names {
		id, isAgent := strings.CutPrefix(name, "agent-")
		id, isLines := strings.CutSuffix(id, ".jsonl")
		if !isAgent || !isLines || id == "" {
			continue
		}
		file := path.Join(dir, name)
		beside = append(beside, file)
		agentOf[file] = id
		if r.described[id], err = readDescription(in.FS, path.Join(dir, "agent-"+id+".meta.json")); err != nil {
			return err
		}
	}
	for rec, err := range in.Merged(in.Name, beside, timeOf) {
		if err != nil {
			return err
		}
		r.record(rec.Value, agentOf[rec.Place.File])
	}
	return nil
}

// subagentFiles returns the names in the folder of subagents, none if a name that is not
// valid for it was given, as for a file that is read from standard input.
func subagentFiles(in *recording.Recorded, dir string) ([]string, error) {
	if !fs.ValidPath(dir) || path.Ext(in.Name) == "" {
		return nil, nil
	}
	return in.Files(dir)
}

func timeOf(v signal.Value) (recording.Instant, bool) {
	return recording.TimeText(v.TextOf("timestamp"))
}

// description is what a file beside the one of a subagent tells of it.
type description struct {
	AgentType   string `json:"agentType"`
	Description string `json:"description"`
	ToolUseID   string `json:"toolUseId"`
}

// maxDescription bounds the file of a [description].
const maxDescription = 1 << 20

// readDescription reads the description of a subagent. One that is absent, or that is
// not JSON of the known kind, tells nothing: the transcript can do without it.
func readDescription(fsys fs.FS, name string) (description, error) {
	var d description
	file, err := fsys.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return d, nil
	}
	if err != nil {
		return d, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxDescription))
	if err != nil {
		return d, err
	}
	if json.Unmarshal(text, &d) != nil {
		return description{}, nil
	}
	return d, nil
}
