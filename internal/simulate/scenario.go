// Package simulate plays declarative scenarios of many agents: scripted agents
// that ask, generate, are interrupted and react, in a world that they share. A
// scenario is played as a session by the live side of the engine, and is recorded
// like any other, but nothing waits: time goes on to what is due next. The same
// file gives the same session, to the head's hash, whenever and wherever it is played.
//
// # The nouns
//
// A [Scenario] is a file as [Parse] read it. [Scenario.Play] plays it in a store of
// its own, in memory, and returns the [Take]: the session with what came of it, which
// [Take.Record] puts into another store. What happens is told as [Event]s, one after the
// other; what the scenario expects of them is judged, and a [Failure] tells what is not so.
//
// # The format
//
// A scenario is a JSON object. All times are milliseconds of session time.
//
//	sajou     "simulation"
//	version   1
//	name      of the session
//	config    of the world, see [agents.ParseConfig]
//	world     to begin with, see [agents.ParseWorld]
//	agents    [agent]
//	events    [{at, draft: {kind, source_id, payload, schema_version}}]
//	ticks     {every, first, source}; of a world with "authority":"sim", and only there
//	until     when it ends; without, when nothing is due any more
//	limits    {steps, effects, reactions}
//	expect    [expectation]
//
// An agent has an id, a policy ([agents.CompileLens], with the agent's settings in it), a
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
// What is not said about context_seq is what the agent has read. A generation yields its
// words one by one, and becomes its intent: to Speak them, unless it says otherwise. If
// it is interrupted because its context is stale, or its intent is refused for that, it begins anew
// with what the agent then knows, as often as regenerate says, and else is given up.
//
// A reaction, {path, equals | exists | changed, after, times, do}, does its action when
// an observation makes what the path of the agent's view leads to be so. It does so
// once, or as often as times says.
//
// In words and in the strings of payloads {{/a/path}} is what the agent's view has
// there, and {{answer}} what the generation yielded. A string that is nothing but
// one of these becomes the value itself.
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
// A reason is the beginning of one. Without a count one is enough.
//
// # Bounds
//
// A file cannot hold up or eat up the program: [MaxText] bounds it, [LimitError] says
// which bound a play has met. Reactions to reactions end by those.
package simulate

import (
	"time"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/internal/jsonplace"
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

// Scenario is a scenario that can be played, as often as one likes.
type Scenario struct {
	Name  string // of the session
	Title string

	config, world signal.Value // nil if absent
	ticked        bool         // ticks decide
	agents        []agent
	events        []event
	ticks         ticks
	until         time.Duration
	bounded       bool // until was said
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

// event is a draft at its time: nobody's action, the world's.
type event struct {
	at    time.Duration
	draft agents.Draft
}

type ticks struct {
	every, first time.Duration
	source       string
}

// action is what an agent does: one of these.
type action struct {
	submit   *submission
	generate *generating
	cancel   string // a req_id
	leave    bool
}

// submission is an intent to be.
type submission struct {
	kind          string
	payload       signal.Value // with placeholders
	reqID         string
	contextSeq    uint64 // unless current
	current       bool   // the context is what the agent has read
	priority      int
	unprioritized bool
	version       string
}

// generating is a generation to be, and the intent that it becomes.
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

// test says what of a value at a path a reaction waits for.
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

// subject says what an expectation is about.
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

// expectation is what shall be so. What it does not name may be anything.
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

	mark         jsonplace.Mark // where it stands
	line, column int
}
