// Package openhands reads the recordings of OpenHands: the event lists of its version 0, and
// the conversation folders of its SDK, version 1.
package openhands

import (
	"io/fs"
	"regexp"
	"strings"

	"github.com/sajou-dev/sajou-go/ingest/recording"
	"github.com/sajou-dev/sajou-go/signal"
)

const (
	name    = "openhands"
	agentID = "openhands"
)

// Format returns the format.
//
// Version 0 is one JSON document, a list of actions and observations. A message of the user
// begins a turn; finish ends it. Any other action of the agent is a call of a tool, and the
// observation whose cause it is the result.
//
// Version 1 is a folder with a file for each event, in the order of the numbers in their
// names, and base_state.json, which alone has the tokens.
//
// Times have no zone and are taken for UTC.
func Format() recording.Format {
	return recording.Format{
		Name: name, Title: "OpenHands events", Agent: agentID,
		Recognized: "a list of events with id, source, and action or observation; or a folder with events/event-NNNNN-ID.json",
		Detect:     detect,
		Map: func(in *recording.Recorded, m *recording.Mapping) error {
			s := &story{Mapping: m, agents: []string{agentID}}
			info, err := fs.Stat(in.FS, in.Name)
			if err != nil {
				return err
			}
			if info.IsDir() {
				return s.folder(in)
			}
			return s.list(in)
		},
	}
}

// eventFile is the name of an event below a conversation folder.
var eventFile = regexp.MustCompile(`^events/event-\d+-[^/]*\.json$`)

func detect(s *recording.Sample) string {
	for _, file := range s.Folder {
		if eventFile.MatchString(file) {
			return "the folder has files " + eventsFolder + "/event-NNNNN-ID.json"
		}
	}
	for _, list := range []string{"[].", "trajectory[]."} {
		if s.Has(list+"id", list+"source") && (s.Has(list+"action") || s.Has(list+"observation")) {
			return "the events of a list have id, source, and action or observation"
		}
	}
	return ""
}

// story is a reading of one recording.
type story struct {
	*recording.Mapping
	agents []string // the one at work is the last; the others have delegated to it
	tasks  []string // of the agents that were delegated to
	corr   string   // the turn
	active bool     // the turn is not complete
}

func (s *story) agent() string { return s.agents[len(s.agents)-1] }

// task returns the correlation id of what the agent at work does.
func (s *story) task() string {
	if n := len(s.tasks); n > 0 {
		return s.tasks[n-1]
	}
	return s.corr
}

// prompt begins a turn.
func (s *story) prompt(id, text string) {
	s.complete(true, "")
	s.corr, s.active = "turn-"+id, true
	s.Dispatch(s.corr, s.corr, recording.User, agentID, text)
}

// complete ends the turn, if one is active.
func (s *story) complete(success bool, result string) {
	for len(s.agents) > 1 {
		s.back(success, "")
	}
	if s.active {
		s.active = false
		s.Complete(s.corr, s.corr, agentID, success, result)
	}
}

// back ends the task of the agent at work, and returns to the one that had delegated to it.
func (s *story) back(success bool, result string) {
	s.Complete(s.task(), s.task(), s.agent(), success, result)
	s.agents = s.agents[:len(s.agents)-1]
	s.tasks = s.tasks[:len(s.tasks)-1]
}

// states are the states of a conversation, as both versions name them, and what they are
// for an agent.
var states = map[string]string{
	"loading": recording.Idle, "init": recording.Idle, "stopped": recording.Idle, "idle": recording.Idle,
	"running": recording.Thinking, "user_confirmed": recording.Thinking, "user_rejected": recording.Thinking,
	"paused": recording.Waiting, "awaiting_user_input": recording.Waiting, "rate_limited": recording.Waiting,
	"awaiting_user_confirmation": recording.Waiting, "waiting_for_confirmation": recording.Waiting,
	"finished": recording.Done, "rejected": recording.Done,
	"error": recording.Failed, "stuck": recording.Failed,
}

// state emits a change of the conversation's state.
func (s *story) state(state string) {
	if to, known := states[strings.ToLower(state)]; known {
		if to == recording.Failed {
			s.complete(false, "")
		}
		s.State(s.task(), s.agent(), to, state)
		s.Skip("the state is known")
	}
}

// tokens emits a usage in the form of OpenAI, whose input includes what caches hold.
func (s *story) tokens(model string, usage signal.Value) {
	u := recording.TokenCount{
		Model:      model,
		Prompt:     usage.IntOf("prompt_tokens"),
		Completion: usage.IntOf("completion_tokens"),
		CacheRead:  max(usage.Member("prompt_tokens_details").IntOf("cached_tokens"), usage.IntOf("cache_read_input_tokens")),
		CacheWrite: usage.IntOf("cache_creation_input_tokens"),
		Reasoning:  usage.Member("completion_tokens_details").IntOf("reasoning_tokens"),
	}
	if u.Prompt+u.Completion > 0 {
		s.Tokens(s.task(), s.agent(), u)
	}
}

// zone notes that the times have no zone, if that of the first event has none.
func (s *story) zone(time string) {
	if _, clock, is := strings.Cut(time, "T"); is && !strings.ContainsAny(clock, "Z+-") {
		s.Origin("timeZone", signal.Text("none, taken for UTC"))
	}
}
