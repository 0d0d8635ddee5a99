package openhands

import (
	"cmp"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go/ingest/recording"
	"github.com/sajou-dev/sajou-go/signal"
)

const (
	eventsFolder = "events"
	baseState    = "base_state.json"
)

// number returns the number of an event file, or -1.
func number(file string) int {
	digits, _, _ := strings.Cut(strings.TrimPrefix(file, "event-"), "-")
	n, err := strconv.Atoi(strings.TrimSuffix(digits, ".json"))
	if err != nil || !strings.HasSuffix(file, ".json") {
		return -1
	}
	return n
}

// folder reads a conversation folder of version 1.
func (s *story) folder(in *recording.Recorded) error {
	files, err := in.Files(path.Join(in.Name, eventsFolder))
	if err != nil {
		return err
	}
	files = slices.DeleteFunc(files, func(f string) bool { return number(f) < 0 })
	slices.SortStableFunc(files, func(a, b string) int { return cmp.Compare(number(a), number(b)) })
	base, err := in.Document(path.Join(in.Name, baseState))
	if _, broken := errors.AsType[*recording.PlaceError](err); err != nil && !broken && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	s.SetSession(base.TextOf("id"))
	s.Origin("cwd", base.Member("workspace").Member("working_dir"))
	for i, file := range files {
		if s.Stopped() {
			return nil
		}
		name := path.Join(in.Name, eventsFolder, file)
		e, err := in.Document(name)
		if broken, is := errors.AsType[*recording.PlaceError](err); is {
			in.Part(name, "", nil)
			s.SetNativeID(file)
			s.Unreadable(broken.Err.Error(), nil)
			continue
		}
		if err != nil {
			return err
		}
		if i == 0 {
			s.zone(e.TextOf("timestamp"))
		}
		in.Part(name, "", e)
		if id := e.TextOf("id"); id != "" && !s.Repeats("event "+id) {
			s.SetNativeID(id)
		} else {
			s.SetNativeID(file)
		}
		s.SetTime(recording.TimeValue(e.Member("timestamp"), time.Second))
		s.event(e, strconv.Itoa(number(file)))
	}
	if base.Kind() == signal.KindObject && !s.Stopped() {
		in.Part(path.Join(in.Name, baseState), "", base)
		s.SetNativeID(baseState)
		s.SetNative(base.Member("stats")) // the rest is the configuration
		s.stats(base.Member("stats").Member("usage_to_metrics"))
		s.Skip("no usage")
	}
	return nil
}

// event reads one event of version 1.
func (s *story) event(e signal.Value, number string) {
	callID := e.TextOf("tool_call_id")
	switch kind := e.TextOf("kind"); kind {
	case "SystemPromptEvent", "SystemPromptUpdateEvent":
		s.Skip("system prompt")
	case "MessageEvent":
		s.message(e, number)
	case "ActionEvent":
		s.toolCall(e, callID)
	case "ObservationEvent":
		observation := e.Member("observation")
		if tool := e.TextOf("tool_name"); tool == "finish" || tool == "think" {
			s.Skip("answer to " + tool)
			return
		}
		code, coded := observation.Member("exit_code").Int64()
		s.Result("", recording.Answer{
			CallID: callID, Tool: e.TextOf("tool_name"), Agent: s.agent(),
			Success: !observation.BoolOf("is_error") && (!coded || code == 0), Output: observation,
		})
	case "AgentErrorEvent", "UserRejectObservation":
		reason := cmp.Or(e.TextOf("error"), e.TextOf("rejection_reason"))
		if _, _, open := s.CallOf(callID); !open && kind == "AgentErrorEvent" {
			s.Error(s.task(), s.agent(), kind, recording.Warning, reason)
			return
		}
		s.Result("", recording.Answer{CallID: callID, Tool: e.TextOf("tool_name"), Agent: s.agent(), Output: signal.NewObject(1).Text("error", reason).Value()})
	case "ConversationErrorEvent":
		s.Error(s.task(), s.agent(), e.TextOf("code"), recording.Severe, cmp.Or(e.TextOf("detail"), e.TextOf("code"), kind))
		s.complete(false, "")
	case "PauseEvent":
		s.State(s.task(), s.agent(), recording.Waiting, "paused")
		s.Skip("the state is known")
	case "ConversationStateUpdateEvent":
		switch e.TextOf("key") {
		case "execution_status", "agent_status":
			s.state(e.TextOf("value"))
			s.Skip("unknown state")
		default:
			s.Skip("state of the conversation")
		}
	default:
		s.Keep(cmp.Or(kind, "event"))
	}
}

// message reads what the user or the agent said.
func (s *story) message(e signal.Value, number string) {
	message := e.Member("llm_message")
	text := recording.Texts(message.Member("content"))
	s.thoughts(message)
	switch {
	case message.TextOf("role") == "user" && e.TextOf("source") != "agent":
		s.prompt(number, text)
	case message.TextOf("role") == "assistant" || e.TextOf("source") == "agent":
		if text != "" {
			s.Text(s.task(), s.agent(), text)
		}
		s.complete(true, "")
		s.Skip("empty message")
	default:
		s.Skip("message of the environment")
	}
}

// thoughts emits the reasoning of a message or an action.
func (s *story) thoughts(v signal.Value) {
	for block := range v.Member("thinking_blocks").Elements() {
		if thought := block.TextOf("thinking"); thought != "" {
			s.Thought(s.task(), s.agent(), thought)
		}
	}
	if thought := v.TextOf("reasoning_content"); thought != "" && v.Member("thinking_blocks").Len() == 0 {
		s.Thought(s.task(), s.agent(), thought)
	}
}

// toolCall reads an action of the agent.
func (s *story) toolCall(e signal.Value, callID string) {
	s.thoughts(e)
	if said := recording.Texts(e.Member("thought")); said != "" {
		s.Thought(s.task(), s.agent(), said)
	}
	call, action := e.Member("tool_call"), e.Member("action")
	tool := cmp.Or(e.TextOf("tool_name"), call.TextOf("name"), "unknown")
	switch tool {
	case "finish":
		s.complete(true, action.TextOf("message"))
		s.Skip("the turn is complete")
		return
	case "think":
		if thought := action.TextOf("thought"); thought != "" {
			s.Thought(s.task(), s.agent(), thought)
		}
		s.Skip("empty thought")
		return
	}
	s.AddMeta("responseId", e.Member("llm_response_id"))
	s.AddMeta("securityRisk", e.Member("security_risk"))
	input := call.Member("arguments")
	if input.Kind() == signal.KindAbsent {
		input = action
	}
	s.Call(s.task(), s.agent(), tool, callID, input)
}

// stats emits the tokens of the conversation, one signal for each use of a model.
func (s *story) stats(uses signal.Value) {
	for use, metrics := range uses.Members() {
		usage := metrics.Member("accumulated_token_usage")
		u := recording.TokenCount{
			Model:      cmp.Or(metrics.TextOf("model_name"), usage.TextOf("model")),
			Prompt:     usage.IntOf("prompt_tokens"),
			Completion: usage.IntOf("completion_tokens"),
			CacheRead:  usage.IntOf("cache_read_tokens"),
			CacheWrite: usage.IntOf("cache_write_tokens"),
			Reasoning:  usage.IntOf("reasoning_tokens"),
		}
		u.Cost, _ = metrics.Member("accumulated_cost").Float64()
		if u.Prompt+u.Completion > 0 {
			s.AddMeta("usageId", signal.Text(use))
			s.Tokens("", agentID, u)
		}
	}
}
