package history

import "github.com/sajou-dev/sajou-go/agents/query"

// ProofCoverage says how a [LeakProof] covers one way by which the engine sends
// content to an agent.
type ProofCoverage string

// The kinds of coverage.
const (
	// Searched: all of it is in the log, or follows from it, and [History.Leak]
	// searches it.
	Searched ProofCoverage = "searched"
	// Seen: it leaves no record, and is built only from what the agent may see
	// and the declassified answers.
	Seen ProofCoverage = "seen"
	// Own: the agent, or the program on its behalf, supplied all of it
	// itself; or it is an error of the engine, which says nothing about a world.
	Own ProofCoverage = "own"
	// Named: it is not searched, and [LeakProof.Unsearched] names it.
	Named ProofCoverage = "named"
	// Operators: it is for the operators of the world and is never sent to an agent. If a
	// program passes it on, that is not covered.
	Operators ProofCoverage = "operators"
)

// Sending is one method by which a program gets content that it may send to an
// agent.
type Sending struct {
	Type, Method string // of the engine's live packages, of agents/message or of agents/rl
	What         string // the content
	Route        query.DisclosureRoute
	Coverage     ProofCoverage
}

// Sendings returns a copy of the list of all methods by which a program gets something
// from the engine that it may send to an agent, each with how [History.Leak] covers
// it. A test compares the list with the methods that exist.
func Sendings() []Sending {
	list := make([]Sending, len(sendings))
	copy(list, sendings)
	return list
}

var sendings = []Sending{
	{"Agent", "NextObservation", "a delta, or the whole view in its place", query.RouteView, Searched},
	{"Agent", "Poll", "as NextObservation", query.RouteView, Searched},
	{"Agent", "Observations", "as NextObservation", query.RouteView, Searched},
	{"Agent", "NextAt", "when the next observation arrives", "", Seen},
	{"Agent", "ViewSeq", "the number of the last observation", "", Seen},
	{"Agent", "Resumed", "whether the observations behind the one that it named follow", "", Seen},
	{"Agent", "Submit", "the accepted effect", query.RouteOutcome, Searched},
	{"Agent", "Submit", "a final refusal, whole", query.RouteRefusal, Searched},
	{"Agent", "Submit", "a refusal that may change", "", Seen},
	{"generate", "Run", "the prompt, where prompts are recorded", query.RoutePrompt, Searched},
	{"generate", "Run", "the prompt, where only its digest is", query.RoutePrompt, Named},
	{"generate", "Run", "the outcome of the intent, as Submit", query.RouteOutcome, Searched},
	{"generate", "Run", "why attempts were interrupted", query.RouteCancellation, Searched},
	{"generate", "Run", "the generator's text, or its error", "", Own},
	{"Driver", "Begin", "the view that has arrived, of which the prompt is made", query.RouteView, Searched},
	{"Driver", "Begin", "the token, as Agent.Begin", "", Seen},
	{"Driver", "Begin", "the outcome of a request that has one, as Submit", query.RouteOutcome, Searched},
	{"Driver", "Answered", "the outcome of a request that has one, as Submit", query.RouteOutcome, Searched},
	{"Driver", "Interruption", "why a generation was interrupted", query.RouteCancellation, Searched},
	{"Driver", "Interruption", "when a generation was interrupted", "", Seen},
	{"Driver", "Keep", "whether the token of a generation holds", "", Seen},
	{"Driver", "Overdue", "nothing", "", Own},
	{"Driver", "Settle", "nothing", "", Own},
	{"Driver", "Pend", "a note for Agent.Cancel", "", Own},
	{"Driver", "Admit", "whether the generator may be called", "", Own},
	{"Driver", "Report", "nothing", "", Own},
	{"Driver", "Abandoned", "nothing", "", Own},
	{"Driver", "Config", "the configuration", "", Operators},
	{"Driver", "World", "the session's name", "", Operators},
	{"Driver", "Now", "session time", "", Operators},
	{"Driver", "MaxValue", "a bound", "", Operators},
	{"Driver", "WaitDurable", "an error", "", Operators},
	{"Driver", "Outlast", "a context", "", Operators},
	{"Agent", "Driver", "the driver of its generations", "", Operators},
	{"Agent", "Begin", "the token: number and digest of the view that has arrived, and bounds", "", Seen},
	{"Agent", "Cancel", "whether the request waits or runs", "", Own},
	{"Agent", "Leave", "an error", "", Own},
	{"Agent", "Close", "nothing", "", Own},
	{"Agent", "ID", "its id", "", Own},

	{"Generation", "Context", "why it was interrupted", query.RouteCancellation, Searched},
	{"Generation", "Token", "as Begin", "", Seen},
	{"Generation", "Answer", "an error", "", Own},
	{"Generation", "End", "an error", "", Own},

	{"Submitted", "Wait", "as Submit", query.RouteOutcome, Searched},
	{"Submitted", "Done", "that it was decided", "", Seen},

	{"Agents", "Submit", "as Agent.Submit", query.RouteOutcome, Searched},
	{"Agents", "SubmitBatch", "outcomes, as Submit; which intent aborted the batch", query.RouteOutcome, Searched},
	{"Agents", "Quantum", "outcomes, as Submit", query.RouteOutcome, Searched},
	{"Agents", "SubmitAsync", "as Submit", query.RouteOutcome, Searched},
	{"Agents", "Broadcast", "the outcome of a draft, which belongs to no agent", "", Operators},
	{"Agents", "Register", "a reader, as Agent.NextObservation", query.RouteView, Searched},
	{"Agents", "RegisterAs", "as Register", query.RouteView, Searched},
	{"Agents", "Agent", "as Register", query.RouteView, Searched},
	{"Agents", "Resume", "as Register", query.RouteView, Searched},
	{"Agents", "Known", "the view that has arrived", query.RouteView, Searched},
	{"Agents", "GlobalSeq", "the log's number of an effect, for operators", "", Operators},
	{"Agents", "LatestViewSeq", "the number of the newest delta that was delivered", "", Seen},
	{"Agents", "View", "the view with deltas in flight", "", Operators},
	{"Agents", "Begin", "an error", "", Operators},
	{"Agents", "Configure", "an error", "", Operators},
	{"Agents", "Advance", "an error", "", Operators},
	{"Agents", "Tick", "the number of decisions", "", Operators},
	{"Agents", "Waiting", "the number of waiting submissions", "", Operators},
	{"Agents", "Next", "when something is due", "", Operators},
	{"Agents", "Now", "session time", "", Operators},
	{"Agents", "Settle", "an error", "", Operators},
	{"Agents", "WaitUntil", "an error", "", Operators},

	{"message.Room", "Subscribe", "messages that it hears, of the world's kinds", query.RouteMessage, Searched},
	{"message.Room", "Subscribe", "messages of the program's own kinds", query.RouteMessage, Named},
	{"message.Room", "Resume", "as Subscribe", query.RouteMessage, Searched},
	{"message.Room", "Emit", "the outcome, as Submit", query.RouteOutcome, Searched},
	{"message.Room", "Join", "an error", "", Own},
	{"message.Room", "Leave", "an error", "", Own},

	{"rl.Env", "Reset", "observations", query.RouteView, Searched},
	{"rl.Env", "Resume", "as Step", query.RouteJudgement, Searched},
	{"rl.Env", "Step", "observations", query.RouteView, Searched},
	{"rl.Env", "Step", "rewards, ends and refusals", query.RouteJudgement, Searched},
	{"rl.Env", "Step", "action masks, made by the program of the whole world; of a path, rewards too", query.RouteJudgement, Named},
	{"rl.Env", "StepAt", "as Step", query.RouteJudgement, Searched},
	{"rl.Env", "Agents", "which agents still take part", "", Operators},
	{"rl.Env", "PossibleAgents", "which agents there may be", "", Operators},
	{"rl.Env", "Episode", "a counter", "", Operators},
	{"rl.Env", "Seed", "the episode's seed", "", Operators},
	{"rl.Env", "Steps", "a counter", "", Operators},
	{"rl.Env", "Close", "nothing", "", Operators},

	{"rl.AEC", "Reset", "as Env.Reset", query.RouteView, Searched},
	{"rl.AEC", "Resume", "as Env.Resume", query.RouteJudgement, Searched},
	{"rl.AEC", "Last", "as Env.Step", query.RouteJudgement, Searched},
	{"rl.AEC", "Step", "an error", "", Own},
	{"rl.AEC", "Selected", "the agent to act", "", Operators},
	{"rl.AEC", "Active", "which agents still take part", "", Operators},
	{"rl.AEC", "Agents", "which agents take turns", "", Operators},
	{"rl.AEC", "PossibleAgents", "as Env.PossibleAgents", "", Operators},
	{"rl.AEC", "Episode", "a counter", "", Operators},
	{"rl.AEC", "Seed", "the episode's seed", "", Operators},
	{"rl.AEC", "Steps", "a counter", "", Operators},
	{"rl.AEC", "Close", "nothing", "", Operators},

	{"Director", "Guide", "guidance for the character, which may be an agent; found in it, it is named", query.RouteGuidance, Named},
	{"Director", "Respond", "the result of the character's response", query.RouteGuidance, Named},
	{"Director", "Choose", "the user's choice", query.RouteGuidance, Named},
	{"Director", "Events", "the director's events", "", Operators},
	{"Director", "Start", "an error", "", Operators},
	{"Director", "Revise", "an error", "", Operators},
	{"Director", "With", "a director", "", Operators},
	{"Director", "Rerun", "the number of turns played", "", Operators},
}
