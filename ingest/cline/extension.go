package cline

import (
	"cmp"
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go/ingest/recording"
	"github.com/sajou-dev/sajou-go/signal"
)

// shown reads the messages that the extension shows.
func (s *session) shown(in *recording.Recorded, list signal.Value) {
	for _, rec := range in.Elements(in.Name, "", list) {
		v := rec.Value
		s.SetTime(recording.TimeValue(v.Member("ts"), time.Millisecond))
		if v.BoolOf("partial") {
			s.Skip("partial message")
			continue
		}
		text := v.TextOf("text")
		if kind := v.TextOf("say"); kind != "" {
			s.say(kind, text, rec)
		} else {
			s.ask(v.TextOf("ask"), text, rec)
		}
	}
}

// say reads a message that asks for no answer.
func (s *session) say(kind, text string, rec recording.NativeRecord) {
	switch kind {
	case "task", "user_feedback":
		s.prompt("turn"+rec.Place.Pointer, text)
	case "text":
		if text != "" {
			s.Text(s.corr, agentID, text)
		}
		s.Skip("empty message")
	case "reasoning":
		if text = cmp.Or(text, rec.Value.TextOf("reasoning")); text != "" {
			s.Thought(s.corr, agentID, text)
		}
		s.Skip("empty message")
	case "api_req_started":
		s.request(recording.Nested(signal.Text(text)))
	case "tool", "command", "use_mcp_server", "browser_action", "browser_action_launch":
		s.tool(kind, text, rec)
	case "command_output":
		s.output(text)
	case "browser_action_result", "mcp_server_response":
		s.answer(text)
	case "completion_result":
		if text != "" {
			s.Text(s.corr, agentID, text)
		}
		s.complete(true, text)
		s.Skip("empty message")
	case "error", "diff_error", "clineignore_error":
		s.Error(s.corr, agentID, kind, recording.Warning, cmp.Or(text, kind))
	case "api_req_retried", "api_req_finished", "checkpoint_created", "mcp_server_request_started", "task_progress", "shell_integration_warning":
		s.Skip("display of the extension")
	}
}

// ask reads a message that asks the user for an answer.
func (s *session) ask(kind, text string, rec recording.NativeRecord) {
	switch kind {
	case "followup", "plan_mode_respond", "act_mode_respond":
		question := recording.Nested(signal.Text(text))
		if text = cmp.Or(question.TextOf("question"), question.TextOf("response"), text); text != "" {
			s.Text(s.corr, agentID, text)
		}
		s.State(s.corr, agentID, recording.Waiting, kind)
	case "tool", "command", "use_mcp_server", "browser_action_launch":
		s.tool(kind, text, rec)
	case "command_output":
		s.output(text)
	case "completion_result":
		s.complete(true, text)
		s.Skip("the turn is complete")
	case "api_req_failed":
		s.Error(s.corr, agentID, kind, recording.Severe, cmp.Or(text, kind))
		s.complete(false, "")
	case "mistake_limit_reached":
		s.Error(s.corr, agentID, kind, recording.Warning, cmp.Or(text, kind))
	case "resume_task", "resume_completed_task":
		s.Skip("display of the extension")
	}
}

// tool emits a call. A message about a tool is a JSON text with its name and input, and
// one about a command the command.
func (s *session) tool(kind, text string, rec recording.NativeRecord) {
	tool, input := kind, recording.Nested(signal.Text(text))
	if kind == "command" {
		tool, input = "execute_command", signal.NewObject(1).Text("command", strings.TrimSuffix(text, "REQ_APP")).Value()
	} else if kind == "tool" {
		tool = cmp.Or(input.TextOf("tool"), "unknown")
		object := signal.ObjectOf(input)
		object.Remove("tool")
		input = object.Value()
	}
	s.open = "call" + rec.Place.Pointer
	s.Call(s.corr, agentID, tool, s.open, input)
}

// output emits the output of a command: the first one answers the call.
func (s *session) output(text string) {
	if s.open == "" {
		s.Skip("further output of a command")
		return
	}
	s.answer(text)
}

func (s *session) answer(text string) {
	s.Result("", recording.Answer{CallID: s.open, Agent: agentID, Success: true, Output: signal.Text(text)})
	s.open = ""
}

// request reads the tokens of a request. They stand in it once it has ended.
func (s *session) request(v signal.Value) {
	u := recording.TokenCount{
		Completion: v.IntOf("tokensOut"),
		CacheRead:  v.IntOf("cacheReads"),
		CacheWrite: v.IntOf("cacheWrites"),
	}
	u.Prompt = v.IntOf("tokensIn") + u.CacheRead + u.CacheWrite
	u.Cost, _ = v.Member("cost").Float64()
	if u.Prompt+u.Completion > 0 {
		s.Tokens(s.corr, agentID, u)
	}
	if reason := v.TextOf("streamingFailedMessage"); reason != "" {
		s.Error(s.corr, agentID, v.TextOf("cancelReason"), recording.Warning, reason)
	}
	s.Skip("a request without tokens")
}
