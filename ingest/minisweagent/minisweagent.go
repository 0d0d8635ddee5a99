// Package minisweagent reads the trajectories of mini-swe-agent, and bare lists of chat
// messages, which its oldest version wrote too.
package minisweagent

import (
	"bytes"
	"strings"

	"github.com/sajou-dev/sajou-go/ingest/recording"
	"github.com/sajou-dev/sajou-go/signal"
)

const name = "mini-swe-agent"

// Format returns the format of mini-swe-agent: one JSON document with messages, or in its
// oldest version the bare list of them.
//
// The first message of the user is the task. A message of the assistant gives its text,
// its calls and its tokens. Without function calling, the one block of shell code in it is
// the call, and the next message of the user is the result. A result is a success if its
// return code is 0. The message of the role exit answers the last call and ends the task.
func Format() recording.Format {
	return recording.Format{
		Name: name, Title: "mini-swe-agent trajectory", Agent: name,
		Recognized: `a document whose trajectory_format begins with "mini-swe-agent", or a list of messages with its markers`,
		Detect: func(s *recording.Sample) string {
			switch format := s.Text("trajectory_format"); {
			case strings.HasPrefix(format, name):
				return "the document has the trajectory_format " + format
			case s.Has("messages[].role", "messages[].content", "info.mini_version"):
				return "the document has messages[] and info.mini_version"
			case bareList(s) && hasMarkers(s.Head):
				return "a list of messages with the markers of mini-swe-agent"
			}
			return ""
		},
		Map: func(in *recording.Recorded, m *recording.Mapping) error {
			return read(in, m, &chat{Mapping: m, agent: name, mini: true})
		},
	}
}

// ChatFormat returns the format of bare chats: a list of messages with role and content, or
// a document with such a list as messages. Both the shapes of OpenAI and of Anthropic are
// read.
//
// Each message of the user begins a turn; a message of the assistant without a call ends it.
func ChatFormat() recording.Format {
	return recording.Format{
		Name: "chat", Title: "chat messages (OpenAI or Anthropic)", Agent: "assistant",
		Recognized: "a list of messages with role and content, or a document with such a list alone",
		Detect: func(s *recording.Sample) string {
			switch {
			case s.Base() == clineHistory || hasMarkers(s.Head):
			case bareList(s):
				return "a list of messages with role and content"
			case onlyMessages(s):
				return "the document has messages[] with role and content"
			}
			return ""
		},
		Map: func(in *recording.Recorded, m *recording.Mapping) error {
			return read(in, m, &chat{Mapping: m, agent: "assistant"})
		},
	}
}

// clineHistory is a list of messages that is a part of a recording of Cline.
const clineHistory = "api_conversation_history.json"

func bareList(s *recording.Sample) bool {
	return s.Has("[].role", "[].content") && !s.Has("[].id", "[].source")
}

// onlyMessages reports whether a document has messages and no sign of a richer format.
func onlyMessages(s *recording.Sample) bool {
	if !s.Has("messages[].role", "messages[].content") {
		return false
	}
	for _, other := range []string{"trajectory_format", "info", "sessionId", "session_id", "projectHash", "agent", "trace", "spans", "data"} {
		if s.Has(other) {
			return false
		}
	}
	return true
}

func hasMarkers(head []byte) bool {
	return bytes.Contains(head, []byte("<returncode>")) || bytes.Contains(head, []byte("mswea_bash_command"))
}

// chat is a reading of a list of messages.
type chat struct {
	*recording.Mapping
	agent string
	mini  bool

	turns  int
	corr   string
	active bool     // the turn is not complete
	open   []string // calls without a result
	text   bool     // the open call was read from a text
	status string   // of the whole, if the document has one
	exited bool
}

func read(in *recording.Recorded, m *recording.Mapping, c *chat) error {
	doc, err := in.Document(in.Name)
	if err != nil {
		return err
	}
	list, pointer := doc, ""
	if doc.Kind() == signal.KindObject {
		list, pointer = doc.Member("messages"), "/messages"
		m.SetSession(doc.TextOf("instance_id"))
		m.Origin("version", doc.Member("info").Member("mini_version"))
		c.status = doc.Member("info").TextOf("exit_status")
		m.Origin("nativeFormat", doc.Member("trajectory_format"))
	}
	timed := false
	for v := range list.Elements() {
		_, is := messageTime(v)
		timed = timed || is
	}
	if !timed {
		m.Invent()
	}
	for i, rec := range in.Elements(in.Name, pointer, list) {
		m.SetTime(messageTime(rec.Value))
		c.message(rec.Value, signal.Int(int64(i)).Value().String())
	}
	if info := doc.Member("info"); info.Kind() == signal.KindObject && !m.Stopped() {
		in.Part(in.Name, "/info", info)
		if c.status != "" && !c.exited {
			c.end(c.status)
		}
		m.Skip("repeats the messages")
	}
	return nil
}

func (c *chat) message(v signal.Value, index string) {
	content := v.Member("content")
	said := recording.Texts(content)
	c.SetLength(len(said))
	switch v.TextOf("role") {
	case "system", "developer":
		c.Skip("system prompt")
	case "user":
		c.user(v, said, index)
	case "assistant":
		c.assistant(v, said, index)
	case "tool", "function":
		c.result(v.TextOf("tool_call_id"), v, said)
	case "exit":
		c.exit(v, said)
	}
}

// user reads a message of the user: a prompt, or results.
func (c *chat) user(v signal.Value, said, index string) {
	results := false
	for block := range v.Member("content").Elements() {
		if block.TextOf("type") == "tool_result" {
			results = true
			c.answer(block.TextOf("tool_use_id"), !block.BoolOf("is_error"), output(block.Member("content")))
		}
	}
	switch {
	case results:
	case c.text && len(c.open) > 0:
		c.result(c.open[0], v, said)
	case c.mini && c.turns > 0:
		c.Keep("feedback") // the program asks the model for another form
	case said == "":
		c.Skip("empty message")
	default:
		c.complete(true, "")
		c.turns++
		c.corr, c.active = "turn-"+index, true
		c.Dispatch(c.corr, c.corr, recording.User, c.agent, said)
	}
}

func (c *chat) assistant(v signal.Value, said, index string) {
	c.open, c.text = nil, false
	if thought := recording.Texts(v.Member("reasoning_content")); thought != "" {
		c.Thought(c.corr, c.agent, thought)
	}
	for block := range v.Member("content").Elements() {
		if thought := block.TextOf("thinking"); thought != "" && block.TextOf("type") == "thinking" {
			c.Thought(c.corr, c.agent, thought)
		}
	}
	if said != "" {
		c.Text(c.corr, c.agent, said)
	}
	for call := range v.Member("tool_calls").Elements() {
		function := call.Member("function")
		c.call(function.TextOf("name"), call.TextOf("id"), function.Member("arguments"))
	}
	for block := range v.Member("content").Elements() {
		if block.TextOf("type") == "tool_use" {
			c.call(block.TextOf("name"), block.TextOf("id"), block.Member("input"))
		}
	}
	if command := shellBlock(said); c.mini && len(c.open) == 0 && command != "" {
		c.text = true
		c.call("bash", "call-"+index, signal.NewObject(1).Text("command", command).Value())
	}
	c.tokens(v)
	c.Skip("empty message")
	if !c.mini && len(c.open) == 0 && said != "" {
		c.complete(true, "")
	}
}

func (c *chat) call(tool, id string, input signal.Value) {
	if tool == "" {
		tool = "unknown"
	}
	c.Call(c.corr, c.agent, tool, id, input)
	c.open = append(c.open, id)
}

// result reads the message that answers a call.
func (c *chat) result(callID string, v signal.Value, said string) {
	extra := v.Member("extra")
	code, coded := extra.Member("returncode").Int64()
	out := signal.NewObject(2)
	if !coded {
		code, coded = returnCode(said)
	}
	if raw, is := extra.Member("raw_output").Text(); is {
		said = raw
	} else {
		said = outputBlock(said)
	}
	if coded {
		out.Int("returncode", code).Text("output", said)
		c.answer(callID, code == 0 && extra.TextOf("exception_info") == "", out.Value())
		return
	}
	c.answer(callID, extra.TextOf("exception_info") == "" && !v.BoolOf("error"), output(v.Member("content")))
}

func (c *chat) answer(callID string, success bool, out signal.Value) {
	c.Result("", recording.Answer{CallID: callID, Agent: c.agent, Success: success, Output: out})
	for i, id := range c.open {
		if id == callID {
			c.open = append(c.open[:i:i], c.open[i+1:]...)
			break
		}
	}
}

// output returns the content of a result: its texts, or the value itself.
func output(v signal.Value) signal.Value {
	if text := recording.Texts(v); text != "" {
		return signal.Text(text)
	}
	return v
}

// exit reads the last message, which answers the last call instead of the tool.
func (c *chat) exit(v signal.Value, said string) {
	status := v.Member("extra").TextOf("exit_status")
	if status == "" {
		status = c.status
	}
	c.exited = true
	for _, id := range c.open {
		c.answer(id, status == "" || status == submitted, signal.NewObject(1).Text("output", said).Value())
	}
	c.end(status)
}

// submitted is the exit status of a run that reached its end by itself.
const submitted = "Submitted"

func (c *chat) end(status string) { c.complete(status == submitted, status) }

// complete ends the turn, if one is active.
func (c *chat) complete(success bool, result string) {
	if c.active {
		c.active = false
		c.Complete(c.corr, c.corr, c.agent, success, result)
	}
}

// tokens emits the usage of a message, once for each response of the model.
func (c *chat) tokens(v signal.Value) {
	extra := v.Member("extra")
	response := extra.Member("response")
	usage := response.Member("usage")
	if usage.Kind() != signal.KindObject {
		usage = v.Member("usage")
	}
	if usage.Kind() != signal.KindObject || response.TextOf("id") != "" && c.Repeats("response "+response.TextOf("id")) {
		return
	}
	u := recording.TokenCount{
		Model:      response.TextOf("model"),
		Prompt:     usage.IntOf("prompt_tokens"),
		Completion: usage.IntOf("completion_tokens"),
		CacheRead:  usage.Member("prompt_tokens_details").IntOf("cached_tokens"),
		CacheWrite: usage.IntOf("cache_creation_input_tokens"),
		Reasoning:  usage.Member("completion_tokens_details").IntOf("reasoning_tokens"),
	}
	if _, is := usage.Get("input_tokens"); is {
		// Anthropic counts the parts of the input that caches hold apart.
		u.CacheRead = usage.IntOf("cache_read_input_tokens")
		u.Prompt = usage.IntOf("input_tokens") + u.CacheRead + u.CacheWrite
		u.Completion = usage.IntOf("output_tokens")
	}
	if u.Model == "" {
		u.Model = v.TextOf("model")
	}
	u.Cost, _ = extra.Member("cost").Float64()
	c.Tokens(c.corr, c.agent, u)
}
