package agents

import (
	"errors"
	"strings"

	"github.com/sajou-dev/sajou-go/signal"
)

// Record is one thing that the core decided, to be kept in the log as it is:
// the array [Word, Value]. [Core.Apply] folds it.
type Record struct {
	Word  string
	Value signal.Value
}

// The words of records, and the members of their values. Members that are
// absent are zero.
const (
	// WordConfig is a configuration as [ParseConfig] reads it.
	WordConfig = "config"
	// WordWorld is the world to begin with, as [ParseWorld] reads it.
	WordWorld = "world"
	// WordAgent registers an agent, or changes how it is registered: agent_id,
	// policy, permissions, class. See [Registration].
	WordAgent = "agent"
	// WordLeft takes an agent out: agent_id.
	WordLeft = "left"
	// WordEffect is an accepted effect: the members of [Effect.Value], and of one
	// that comes from an intent req_id, context_seq and priority.
	WordEffect = "effect"
	// WordOutcome is a final refusal: agent_id, req_id, code, reason, tokens.
	WordOutcome = "outcome"
	// WordQuantum says how the quantum closed whose effects follow: by, sim_time,
	// first (their first global_seq), effects (how many), and of a tick
	// delta_time, frame_number and source_id. An effect outside of what such a
	// record announces is a quantum by itself.
	WordQuantum = "quantum"
	// WordToken issues a token: see [Token].
	WordToken = "token"
	// WordCancel cancels one: agent_id, req_id, reason.
	WordCancel = "cancel"
	// WordGenerated is what a generation answered: agent_id, req_id, and
	// whatever members else. It is kept for replay and changes nothing.
	WordGenerated = "generated"
)

// ErrRecord is wrapped by what [Core.Apply] says of a record that it ignored.
var ErrRecord = errors.New("agents: record ignored")

// text, number and list read members of records; what is not there is zero.
func textOf(v signal.Value, name string) string {
	m, _ := v.Get(name)
	s, _ := m.Text()
	return strings.Clone(s)
}

func integerOf(v signal.Value, name string) int64 {
	m, _ := v.Get(name)
	i, _ := m.Int64()
	return i
}

func seqOf(v signal.Value, name string) uint64 { return uint64(max(integerOf(v, name), 0)) }

func namesOf(v signal.Value, name string) []string {
	m, _ := v.Get(name)
	var list []string
	for e := range m.Elements() {
		if s, ok := e.Text(); ok {
			list = append(list, strings.Clone(s))
		}
	}
	return list
}

func namesValue(list []string) signal.Value {
	values := make([]signal.Value, len(list))
	for i, s := range list {
		values[i] = textValue(s)
	}
	return arrayValue(values)
}

func signedValue(i int64) signal.Value { return signal.Int(i).Append(nil) }
