// Package gemini reads the sessions of the Gemini CLI: one JSON document in
// ~/.gemini/tmp/PROJECT/chats/session-*.json, in newer versions one record a line.
//
// A message is written again when its tools answer, with the same id, and the last version
// counts. So a message is held until another one follows. Nothing marks the end of a turn: it
// is the next prompt, or the end of a final recording after an answer.
package gemini

import (
	"strings"

	"github.com/sajou-dev/sajou-go/ingest/recording"
	"github.com/sajou-dev/sajou-go/signal"
)

// mainAgent is the id of the agent.
const mainAgent = "gemini"

// Format returns the format of the sessions of the Gemini CLI.
func Format() recording.Format {
	return recording.Format{
		Name:       "gemini-cli",
		Title:      "Gemini CLI session",
		Agent:      mainAgent,
		Recognized: "an object or a first line with sessionId and projectHash",
		Grows:      true,
		Detect:     detect,
		Map:        read,
	}
}

func detect(s *recording.Sample) string {
	if s.Has("sessionId", "projectHash", "messages") || s.AnyLine(isHeader) {
		return "it has sessionId and projectHash"
	}
	return ""
}

func isHeader(v signal.Value) bool {
	_, hasMessages := v.Get("messages")
	_, hasKind := v.Get("kind")
	return v.TextOf("sessionId") != "" && v.TextOf("projectHash") != "" && (hasKind || hasMessages)
}

func read(in *recording.Recorded, m *recording.Mapping) error {
	r := &reader{m: m}
	document, err := in.IsDocument(in.Name)
	if err != nil {
		return err
	}
	if document {
		doc, err := in.Document(in.Name)
		if err != nil {
			return err
		}
		r.messages(in, doc)
	} else {
		for rec, err := range in.Lines(in.Name) {
			if err != nil {
				return err
			}
			if _, whole := rec.Value.Get("messages"); whole && isHeader(rec.Value) {
				// A document in one line: the line itself is its first record.
				m.Skip("header")
				r.messages(in, rec.Value)
				continue
			}
			r.line(rec.Value)
		}
	}
	if in.Final() {
		r.finish()
	}
	return nil
}

// reader is the state of one reading.
type reader struct {
	m        *recording.Mapping
	held     *heldMessage
	turn     string // of the last prompt
	open     bool
	answered bool // the last message is an answer without calls
}

// heldMessage is a message of which a later version may come.
type heldMessage struct {
	id     string
	value  signal.Value
	record recording.SavedRecord
}

// messages maps the messages of a document.
func (r *reader) messages(in *recording.Recorded, doc signal.Value) {
	r.header(doc)
	for _, rec := range in.Elements(in.Name, "/messages", doc.Member("messages")) {
		r.message(rec.Value)
	}
}

func (r *reader) header(v signal.Value) {
	r.m.SetSession(v.TextOf("sessionId"))
	r.m.Origin("project", v.Member("projectHash"))
}

// line maps one record of the layout with lines.
func (r *reader) line(v signal.Value) {
	set, patch := v.Get("$set")
	_, history := set.Get("messages")
	switch {
	case isHeader(v):
		r.header(v)
		r.m.Skip("header")
	case patch && history:
		r.m.Keep("history") // the messages were written anew, as after a compression
	case patch:
		r.m.Skip("patch")
	case v.TextOf("id") != "" && v.TextOf("type") != "":
		r.message(v)
	}
}

// message holds a message, and maps the one before if that is another.
func (r *reader) message(v signal.Value) {
	id := v.TextOf("id")
	if r.held != nil && id != "" && r.held.id == id {
		r.m.Release(1) // it is a part of this one
	} else {
		r.flush()
		if id != "" && r.m.Repeats("message "+id) {
			r.m.Skip("message that was mapped before")
			return
		}
	}
	r.m.SetNativeID(id)
	r.m.Hold()
	r.held = &heldMessage{strings.Clone(id), v, r.m.Save()}
}

func (r *reader) flush() {
	h := r.held
	r.held = nil
	if h != nil {
		r.m.Within(h.record, func() { r.convert(h.value) })
	}
}

// convert maps a message of which no later version comes.
func (r *reader) convert(v signal.Value) {
	at, timed := recording.TimeText(v.TextOf("timestamp"))
	content := textOf(v.Member("content"))
	switch kind := v.TextOf("type"); kind {
	case "user":
		r.m.SetTime(at, timed)
		r.prompt(v, content)
	case mainAgent:
		r.answer(v, content, at, timed)
	case "error", "warning":
		r.m.SetTime(at, timed)
		severity := recording.Warning
		if kind == "error" {
			severity = recording.Severe
		}
		r.m.Error(r.turn, mainAgent, kind, severity, content)
		if kind == "error" {
			r.end(false)
		}
	default:
		r.m.SetTime(at, timed)
		if strings.HasPrefix(content, "Request cancelled") {
			r.m.Error(r.turn, mainAgent, recording.CodeInterrupted, recording.Warning, content)
			r.end(false)
			return
		}
		r.m.KeepPart(kind, r.turn, v)
	}
}

// textOf returns the text of a content, which is a text or a list of parts.
func textOf(v signal.Value) string {
	if text, ok := v.Text(); ok {
		return text
	}
	var parts []string
	for part := range v.Elements() {
		if text, ok := part.Text(); ok {
			parts = append(parts, text)
		} else if text := part.TextOf("text"); text != "" {
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, "\n")
}

func (r *reader) prompt(v signal.Value, content string) {
	if content == "" {
		r.m.KeepPart("input", r.turn, v) // such as the response of a function
		return
	}
	r.end(true)
	id := v.TextOf("id")
	if id == "" {
		id = r.m.NativeID()
	}
	r.turn, r.open = strings.Clone(id), true
	r.m.Dispatch(r.turn, r.turn, recording.User, mainAgent, content)
}

// answer maps a message of the model: thoughts have times of their own, before the message.
func (r *reader) answer(v signal.Value, content string, at recording.Instant, timed bool) {
	r.m.AddMeta("model", v.Member("model"))
	for thought := range v.Member("thoughts").Elements() {
		r.m.SetTime(recording.TimeText(thought.TextOf("timestamp")))
		text := strings.Trim(thought.TextOf("subject")+"\n"+thought.TextOf("description"), "\n")
		if text != "" {
			r.m.Thought(r.turn, mainAgent, text)
		}
	}
	r.m.SetTime(at, timed)
	if content != "" {
		r.m.Text(r.turn, mainAgent, content)
	}
	calls := v.Member("toolCalls")
	for call := range calls.Elements() {
		r.call(call)
	}
	r.answered = content != "" && calls.Len() == 0
	if t := v.Member("tokens"); t.Kind() == signal.KindObject {
		r.m.Tokens(r.turn, mainAgent, recording.TokenCount{
			Model:      v.TextOf("model"),
			Prompt:     t.IntOf("input"),
			Completion: max(t.IntOf("output"), 0) + max(t.IntOf("thoughts"), 0),
			CacheRead:  t.IntOf("cached"),
			Reasoning:  t.IntOf("thoughts"),
		})
	}
}

// call maps a call and, if the tool has answered, its result.
func (r *reader) call(v signal.Value) {
	name, id := v.TextOf("name"), v.TextOf("id")
	if name == "" {
		name = "unknown"
	}
	r.m.Call(r.turn, mainAgent, name, id, v.Member("args"))
	status := v.TextOf("status")
	if status != "success" && status != "error" && status != "cancelled" {
		return
	}
	var output signal.Value
	for part := range v.Member("result").Elements() {
		if response := part.Member("functionResponse").Member("response"); response.Kind() != signal.KindAbsent {
			output = response
			break
		}
	}
	if output.Kind() == signal.KindAbsent {
		output = v.Member("resultDisplay")
	}
	r.m.Result("", recording.Answer{CallID: id, Tool: name, Agent: mainAgent, Success: status == "success", Output: output})
}

// end completes the turn, if one goes on.
func (r *reader) end(success bool) {
	if r.open {
		r.m.Complete(r.turn, r.turn, mainAgent, success, "")
	}
	r.open, r.answered = false, false
}

func (r *reader) finish() {
	r.flush()
	if r.answered {
		r.end(true)
	}
}
