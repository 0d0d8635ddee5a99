package agents

import "errors"

// The words of records, and the members of their values. Members that are
// absent are zero.
const (
	// WordConfig is a configuration as [ParseConfig] reads it.
	WordConfig = "config"
	// WordWorld is the world to begin with, as [world.ParseWorld] reads it.
	WordWorld = "world"
	// WordAgent registers an agent, or changes how it is registered: agent_id,
	// policy, permissions, class. See [Registration].
	WordAgent = "agent"
	// WordLeft takes an agent out: agent_id.
	WordLeft = "left"
	// WordEffect is an accepted effect: the members of [world.Effect.Value], and of one
	// that comes from an intent req_id, context_seq, priority and number (see [Outcome]).
	WordEffect = "effect"
	// WordOutcome is a final refusal as it was sent: agent_id, req_id, code,
	// reason, tokens, and problems, each with path and reason.
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

// What closes a quantum: the member by of its record.
const (
	CloseSubmit = ""      // a lone request: no record is made of it
	CloseTick   = "tick"  // the authority's tick
	CloseFlush  = "flush" // the program closed it
	CloseBatch  = "batch" // all of an atomic batch are there
)

// ErrRecord is wrapped by what [Core.Apply] says of a record that it ignored.
var ErrRecord = errors.New("agents: record ignored")
