package openhands

import (
	"cmp"
	"strconv"
	"time"

	"github.com/sajou-dev/sajou-go/ingest/recording"
	"github.com/sajou-dev/sajou-go/signal"
)

// list reads an event list of version 0.
func (s *story) list(in *recording.Recorded) error {
	doc, err := in.Document(in.Name)
	if err != nil {
		return err
	}
	events, pointer := doc, ""
	if doc.Kind() == signal.KindObject {
		events, pointer = doc.Member("trajectory"), "/trajectory"
	}
	for e := range events.Elements() {
		s.zone(e.TextOf("timestamp"))
		break
	}
	calls := map[int64]string{} // the call ids of actions
	for _, rec := range in.Elements(in.Name, pointer, events) {
		e := rec.Value
		id, numbered := e.Member("id").Int64()
		if numbered && !s.Repeats("event "+strconv.FormatInt(id, 10)) {
			s.SetNativeID("event " + strconv.FormatInt(id, 10))
		}
		s.SetTime(recording.TimeValue(e.Member("timestamp"), time.Second))
		if action, is := e.Member("action").Text(); is {
			s.action(action, e, id, calls)
		} else if observation, is := e.Member("observation").Text(); is {
			s.observation(observation, e, calls)
		}
	}
	return nil
}

// action reads an event of the user or the agent that does something.
func (s *story) action(action string, e signal.Value, id int64, calls map[int64]string) {
	args := e.Member("args")
	source := e.TextOf("source")
	content := args.TextOf("content")
	if content == "" && action == "message" {
		content = e.TextOf("message")
	}
	switch {
	case action == "message" && source == "user":
		if images := args.Member("image_urls").Len(); images > 0 {
			s.AddMeta("images", signal.Int(int64(images)).Value())
		}
		s.prompt(strconv.FormatInt(id, 10), content)
		return
	case action == "system":
		s.Skip("system prompt")
		return
	case action == "null" || action == "":
		s.Skip("no action")
		return
	case action == "change_agent_state":
		s.Skip("request of a state, which an observation answers")
		return
	case action == "recall" || source != "agent":
		s.Skip("act not of the agent")
		return
	}
	metadata := e.Member("tool_call_metadata")
	// What finish says is the result of the turn.
	if thought := args.TextOf("thought"); thought != "" && action != "finish" && action != "reject" {
		s.Thought(s.task(), s.agent(), thought)
	}
	s.usage(metadata.Member("model_response"))
	switch action {
	case "message":
		if content != "" {
			s.Text(s.task(), s.agent(), content)
		}
		if args.BoolOf("wait_for_response") && len(s.agents) == 1 {
			s.complete(true, "")
		}
		s.Skip("empty message")
	case "think":
		s.Skip("empty thought")
	case "finish", "reject":
		result := args.TextOf("final_thought")
		if result == "" {
			result = args.TextOf("thought")
		}
		if len(s.agents) > 1 {
			s.back(action == "finish", result)
		} else {
			s.complete(action == "finish", result)
		}
		s.Skip("the turn is complete")
	default:
		callID := metadata.TextOf("tool_call_id")
		if callID == "" || s.Repeats("call "+callID) {
			callID = "action-" + strconv.FormatInt(id, 10)
		}
		calls[id] = callID
		s.AddMeta("function", metadata.Member("function_name"))
		input := signal.ObjectOf(args)
		input.Remove("thought")
		s.Call(s.task(), s.agent(), action, callID, input.Value())
		if action == "delegate" {
			child := "delegate-" + strconv.FormatInt(id, 10)
			s.Dispatch(child, child, s.agent(), child, delegated(args))
			s.agents, s.tasks = append(s.agents, child), append(s.tasks, child)
		}
	}
}

// delegated returns the task of a delegate action.
func delegated(args signal.Value) string {
	inputs := args.Member("inputs")
	if task := inputs.TextOf("task"); task != "" {
		return task
	}
	return args.TextOf("agent")
}

// usage emits the tokens of a response of the model, which several actions can share.
func (s *story) usage(response signal.Value) {
	usage := response.Member("usage")
	if usage.Kind() != signal.KindObject {
		return
	}
	if id := response.TextOf("id"); id != "" && s.Repeats("response "+id) {
		return
	}
	s.tokens(response.TextOf("model"), usage)
}

// observation reads an event that answers an action, or tells of the environment.
func (s *story) observation(observation string, e signal.Value, calls map[int64]string) {
	extras := e.Member("extras")
	content := e.TextOf("content")
	if observation == "agent_state_changed" {
		state := extras.TextOf("agent_state")
		if state == "awaiting_user_input" || state == "finished" {
			s.complete(true, "")
		}
		s.state(state)
		s.Skip("unknown state")
		return
	}
	cause, caused := e.Member("cause").Int64()
	callID, known := calls[cause]
	switch {
	case caused && known:
		delete(calls, cause)
		if observation == "delegate" && len(s.agents) > 1 {
			s.back(true, content)
		}
		output := signal.NewObject(2).Text("content", content)
		if extras.Len() > 0 {
			output.Add("extras", extras)
		}
		s.Result("", recording.Answer{CallID: callID, Agent: s.agent(), Success: succeeded(observation, e), Output: output.Value()})
	case observation == "error":
		s.Error(s.task(), s.agent(), extras.TextOf("error_id"), recording.Warning, cmp.Or(content, e.TextOf("message"), observation))
	default:
		s.Skip("answer to no call")
	}
}

// succeeded reports whether an observation tells of a success.
func succeeded(observation string, e signal.Value) bool {
	if observation == "error" || observation == "user_rejected" {
		return false
	}
	if flag, is := e.Member("success").Bool(); is && !flag {
		return false
	}
	extras := e.Member("extras")
	for _, at := range []signal.Value{extras.Member("metadata").Member("exit_code"), extras.Member("exit_code")} {
		if code, is := at.Int64(); is && code != 0 {
			return false
		}
	}
	return true
}
