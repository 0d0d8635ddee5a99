package claudecode

import (
	"strings"

	"github.com/sajou-dev/sajou-go/ingest/recording"
)

// thread is one conversation of the transcript: that of the main agent, or of a subagent.
type thread struct {
	agent  string
	corr   string   // of the turn, or of the subagent
	from   string   // who gives a subagent its tasks
	asked  bool     // the subagent has its task
	open   bool     // a turn goes on
	tasks  []string // of the turn
	queued []string // prompts of the turn that may come again as lines of their own

	answered bool   // the last line of the turn is text of the agent
	ended    string // the message that said that the turn ends
	returned bool   // a stop hook sent the agent back, and nothing came since
	cut      bool   // the last turn was interrupted
	failed   bool   // the last turn ended with an error of the API

	usage *usage
	last  recording.Instant // the time of the last line
}

// usage is the usage of a message, of which more lines may come.
type usage struct {
	message string
	record  recording.SavedRecord
	count   recording.TokenCount
}

// The bounds of what is remembered of subagents.
const (
	maxThreads    = 4096
	maxAgentCalls = 1024
	maxUUIDs      = 1 << 14
	maxQueued     = 64
)

// threads are the threads of subagents.
type threads struct {
	byAgent map[string]*thread
	order   []*thread
	byUUID  map[string]*thread // of lines that do not name their agent
	uuids   []string
	last    *thread // the one of the last such line
}

func (t *threads) add(agent string) (th, forgotten *thread) {
	if len(t.order) == maxThreads {
		forgotten = t.order[0]
		delete(t.byAgent, forgotten.agent)
		t.order = t.order[1:]
	}
	if t.byAgent == nil {
		t.byAgent = map[string]*thread{}
	}
	agent = strings.Clone(agent)
	th = &thread{agent: agent, corr: agent, from: mainAgent}
	t.byAgent[agent] = th
	t.order = append(t.order, th)
	return th, forgotten
}

// note remembers the thread of a line, to which a later line may point.
func (t *threads) note(uuid string, th *thread) {
	t.last = th
	if uuid == "" {
		return
	}
	if t.byUUID == nil {
		t.byUUID = map[string]*thread{}
	}
	if _, known := t.byUUID[uuid]; !known {
		uuid = strings.Clone(uuid)
		t.uuids = append(t.uuids, uuid)
		if len(t.uuids) > maxUUIDs {
			delete(t.byUUID, t.uuids[0])
			t.uuids = t.uuids[1:]
		}
	}
	t.byUUID[uuid] = th
}

// agentCall is a call by which an agent starts a subagent.
type agentCall struct {
	id, caller, prompt string
	kind, about        string // what the call says of the subagent
	agent              string // the subagent, "" as long as it is not known
}

// agentCalls are the open calls that start subagents, the oldest first.
type agentCalls []*agentCall

func (c *agentCalls) add(call *agentCall) {
	if len(*c) == maxAgentCalls {
		*c = (*c)[1:]
	}
	*c = append(*c, call)
}

// find returns the first call for which a condition holds.
func (c agentCalls) find(is func(*agentCall) bool) *agentCall {
	for _, call := range c {
		if is(call) {
			return call
		}
	}
	return nil
}

// take removes the call with an id and returns it.
func (c *agentCalls) take(id string) *agentCall {
	for i, call := range *c {
		if call.id == id {
			*c = append((*c)[:i:i], (*c)[i+1:]...)
			return call
		}
	}
	return nil
}
