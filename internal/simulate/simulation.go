// Package simulate plays declarative simulations of many agents: scripted agents
// that submit, generate, are interrupted and react, in a shared world. A simulation
// is played as a session on the live side of the engine and recorded like any other,
// but without waiting: session time advances to the next due instant. The same file
// gives the same session, down to the hash of its head, on every machine.
//
// # The nouns
//
// A [Simulation] is a parsed file. [Simulation.Play] plays it in a store in memory and
// returns the [Recording], the session with its results; [Recording.Record] copies the
// session into another store. Each step of a play is reported as an [Event]. An expectation of
// the file that is not met is an [UnmetExpectation].
//
// # The format
//
// A scenario is a JSON object. All times are milliseconds of session time.
//
//	sajou     "simulation"
//	version   1
//	name      of the session
//	config    of the world, see [agents.ParseConfig]
//	world     to begin with, see [world.ParseWorld]
//	agents    [agent]
//	events    [{at, draft: {kind, source_id, payload, schema_version}}]
//	ticks     {every, first, source}; of a world with "authority":"sim", and only there
//	until     when it ends; without, when nothing is due any more
//	limits    {steps, effects, reactions}
//	expect    [expectation]
//
// An agent has an id, a policy ([view.CompilePolicy], with the agent's settings in it), a
// class, permissions, joins (when it takes part, 0), reads_every, a script of
// actions with their time at, and on, a list of reactions. With reads_every it is
// slow: it reads one observation at each multiple of that, else each when it arrives.
//
// An action is one of
//
//	submit    {kind, payload, req_id, context_seq, priority, schema_version}
//	generate  {words, ms_per_token, stall: {after, ms}, reads, classes, deadline_ms,
//	           token_budget, intent: {kind, payload, priority}, req_id,
//	           interrupted: {regenerate, after, words}}
//	cancel    a req_id
//	leave     true
//
// The default context_seq is that of the last observation that the agent has read. A
// generation yields its words one by one and becomes its intent: Speak, unless the file
// names another kind. If it is interrupted because its context is stale, or its intent is
// refused for that reason, the agent generates again from its current view, at most
// regenerate times, and then gives up.
//
// A reaction, {path, equals | exists | changed, after, times, do}, performs its action
// when an observation makes its condition on the value at the path true: once, or the
// given number of times.
//
// In words and in the strings of payloads {{/a/path}} is replaced by the value at that
// path of the agent's view, and {{answer}} by the text that the generation yielded. A string
// that consists of one of these becomes the value itself.
//
// An expectation is one of
//
//	accepted, rejected  {agent, req_id, kind, code, reason, count}
//	cancelled           {agent, req_id, reason, count}
//	generations         {agent, req_id, count}
//	effects             {source, kind, count}
//	sees, sees_not      {agent, path, equals, at}
//	told                {agent, texts}: in this order, each in an observation
//	never_told          {agent, text}
//
// A reason is compared with the beginning of the recorded one. Without a count one match
// is enough.
//
// # Bounds
//
// No file can stall the program or exhaust its memory: [MaxText] bounds the file, and a
// play that meets a bound ends with a [LimitError], which also ends reactions to reactions.
//
// docs/glossary.md has the nouns of all packages.
package simulate

import (
	"time"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/authored"
	"github.com/sajou-dev/sajou-go/signal"
)

// Bounds of a scenario.
const (
	MaxText   = 1 << 20 // bytes of a file
	maxTime   = 24 * time.Hour
	maxAgents = 256
	maxItems  = 10_000 // of any list
	maxJudged = 256    // expectations
	maxWords  = 10_000 // of one generation

	// maxSeen bounds, in bytes, all worlds that agents could see to begin with.
	maxSeen = 16 << 20
)

// Simulation is a parsed file. It can be played any number of times.
type Simulation struct {
	Name  string // of the session
	Title string

	config, world signal.Value // nil if absent
	ticked        bool         // ticks decide
	agents        []agent
	events        []event
	ticks         ticks
	until         time.Duration
	bounded       bool // the file has until
	limits        limits
	expect        []expectation
}

// agent is one scripted agent.
type agent struct {
	registration agents.Registration
	joins        time.Duration
	readsEvery   time.Duration // 0: at once
	script       []cue
	on           []reaction
}

// cue is an action at its time.
type cue struct {
	at time.Duration
	do action
}

// event is a draft of the world at its time.
type event struct {
	at    time.Duration
	draft agents.EffectDraft
}

type ticks struct {
	every, first time.Duration
	source       string
}

// action is one action of an agent: exactly one member is set.
type action struct {
	submit   *submission
	generate *generating
	cancel   string // a req_id
	leave    bool
}

// submission is a future intent.
type submission struct {
	kind          string
	payload       signal.Value // with placeholders
	reqID         string
	contextSeq    uint64 // unless current
	current       bool   // the context is the last observation that the agent has read
	priority      int
	unprioritized bool
	version       string
}

// generating is a future generation with the intent that it becomes.
type generating struct {
	words       string // with placeholders
	perToken    time.Duration
	stallAfter  int
	stall       time.Duration
	reads       []string
	classes     []string
	deadline    time.Duration
	budget      int64
	intent      submission
	regenerate  int
	again       time.Duration // after an interruption
	wordsAgain  string
	hasNewWords bool
}

// test is the condition of a reaction on the value at its path.
type test int

const (
	isEqual test = iota
	isThere
	isGone
	isChanged
)

type reaction struct {
	path  []string
	test  test
	value signal.Value // of isEqual
	after time.Duration
	times int
	do    action
}

// subject is the kind of an expectation.
type subject int

const (
	accepted subject = iota
	rejected
	cancelled
	generations
	effects
	sees
	seesNot
	told
	neverTold
)

var subjects = []string{"accepted", "rejected", "cancelled", "generations", "effects", "sees", "sees_not", "told", "never_told"}

func (s subject) String() string { return subjects[s] }

// expectation is one expectation. A member that is not set matches anything.
type expectation struct {
	subject subject
	agent   string // or the source of effects
	reqID   string
	kind    string
	code    agents.Code
	reason  string // its beginning
	count   int    // exactly; -1: at least one
	path    []string
	equals  signal.Value
	at      time.Duration // when to look; -1: at the end
	texts   []string

	place        *authored.Location
	line, column int
}
