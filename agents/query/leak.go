package query

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/internal/jsonvalue"
	"github.com/sajou-dev/sajou-go/agents/jsondoc"
	"github.com/sajou-dev/sajou-go/agents/view"
	"github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/internal/jsonpointer"
	"github.com/sajou-dev/sajou-go/signal"
)

// LeakQuery says what an agent must never have been sent. Exactly one field is set.
type LeakQuery struct {
	// Path is a place of its view: neither a value there nor one below it. Outside
	// of views, a text that contains every name of the path counts as a mention. Nil
	// means none.
	Path jsondoc.Pointer
	// Entity is an id: neither the entity, nor its relationships, nor its id as a
	// whole word in any name or text.
	Entity string
	// Text is a secret: neither a text nor a name contains it, also not below the
	// escapes of JSON in a text, nor does a number, true, false or null as JSON
	// writes it. Case counts.
	Text string
}

// DisclosureRoute is one way by which content is sent to an agent.
type DisclosureRoute string

// The routes that leave a record.
const (
	RouteView         DisclosureRoute = "view"         // a delta, or the whole view in its place
	RouteRefusal      DisclosureRoute = "refusal"      // the final refusal of a request
	RouteOutcome      DisclosureRoute = "outcome"      // the accepted effect of a request
	RouteCancellation DisclosureRoute = "cancellation" // why a generation was stopped
	RoutePrompt       DisclosureRoute = "prompt"       // the prompt of a generation
	RouteMessage      DisclosureRoute = "message"      // a message, in a chat room
	RouteJudgement    DisclosureRoute = "judgement"    // the result of an environment's step
	RouteGuidance     DisclosureRoute = "guidance"     // a director's words to its character
)

// Leak is one place where an agent was sent the content.
type Leak struct {
	TracedDelivery
	Route DisclosureRoute
	// Operation is the index in the delta's patch, from 0. It is -1 if the content
	// was not sent in a delta.
	Operation int
	// Place is a JSON pointer: into the view, or into the content of the route, as
	// the entry records it.
	Place string
	How   LeakForm
}

// LeakForm says in which form the content was sent.
type LeakForm string

// The forms.
const (
	LeakPath     LeakForm = "path"     // the path, or something below it
	LeakRelation LeakForm = "relation" // the id among an entity's relationships
	LeakName     LeakForm = "name"     // the text, in a name on the way
	LeakValue    LeakForm = "value"    // the text, in a value
	LeakReason   LeakForm = "reason"   // the text, in why a request was refused or a generation stopped
	LeakMention  LeakForm = "mention"  // the id, or all names of the path, in a text or a name
)

// SearchStats counts what a [LeakWatch] has searched.
type SearchStats struct {
	Deltas        uint64 // made for the agent
	Whole         uint64 // of these, replaced the full view
	Operations    uint64
	Values        uint64 // names and scalar values that were compared
	Refusals      uint64 // of the agent's requests, that are recorded
	Outcomes      uint64 // accepted requests of the agent
	Cancellations uint64 // of its generations
	Prompts       uint64 // attempts of its generations, whose prompt's text is recorded
	Messages      uint64 // effects that it receives
	Judgements    uint64 // steps of an environment
	Guidance      uint64 // entries of a director
}

// UnsearchedKind names a kind of content that a [LeakWatch] cannot search.
type UnsearchedKind string

// The kinds of content that is not searched.
const (
	// GapDigest: attempts of generations of whose prompt only the digest is recorded.
	UnsearchedDigest UnsearchedKind = "prompt_digest"
	// GapAttempt: generations that were to be given a prompt and of which no attempt
	// is recorded.
	UnsearchedAttempt UnsearchedKind = "prompt_unrecorded"
	// GapView: attempts at which the prompt's recorded text is not that of its digest,
	// or whose view is not the one that the agent had been sent.
	UnsearchedMismatch UnsearchedKind = "prompt_mismatch"
	// GapRoom: effects of the program's own kinds that have it and that a chat room
	// made for their kind passes on to the agent.
	UnsearchedRoom UnsearchedKind = "own_kinds"
	// GapSteps: steps of an environment, whose rewards and action masks the program
	// makes of the whole world; a path is no place in them.
	UnsearchedSteps UnsearchedKind = "environment_steps"
	// GapGuidance: entries of a director that have it, or, of a path, any. The log
	// does not say whether the agent is the director's character.
	UnsearchedGuidance UnsearchedKind = "guidance"
)

// Unsearched counts content that was sent, or may have been, and that the search
// does not cover.
type Unsearched struct {
	Kind  UnsearchedKind
	Count uint64
	Entry uint64 // the first
}

var unsearchedTexts = map[UnsearchedKind][2]string{
	UnsearchedDigest:   {"prompt of which only the digest is recorded", "prompts of which only the digest is recorded"},
	UnsearchedAttempt:  {"generation whose prompt is not recorded", "generations whose prompts are not recorded"},
	UnsearchedMismatch: {"prompt whose record contradicts itself or the agent's view", "prompts whose records contradict themselves or the agent's view"},
	UnsearchedRoom:     {"effect of the program's own kinds that a chat room may have passed on", "effects of the program's own kinds that a chat room may have passed on"},
	UnsearchedSteps:    {"step of an environment, with rewards and action masks", "steps of an environment, with rewards and action masks"},
	UnsearchedGuidance: {"entry of a director whose character the agent may be", "entries of a director whose character the agent may be"},
}

func (g Unsearched) String() string {
	form := unsearchedTexts[g.Kind][1]
	if g.Count == 1 {
		form = unsearchedTexts[g.Kind][0]
	}
	return fmt.Sprintf("%d %s, first in entry %d", g.Count, form, g.Entry)
}

// LeakWatch searches everything that the engine sends to one agent and that the log
// records: each delta, whether it was delivered or in flight when the agent left,
// and the content of the other routes. [LeakWatch.Unsearched] names
// what it could not search. Content that leaves no record, such as a refusal that
// is not final, is built only from what the agent may see.
type LeakWatch struct {
	Stats SearchStats

	agent  string
	query  LeakQuery
	paths  []string // of Path or Entity
	needle needle   // of Entity or Text; empty if Path is set
	names  []needle // the names of Path, for values other than views
	cause  TracedDelivery
	via    DisclosureRoute
	op     int
	found  []Leak
	gaps   map[UnsearchedKind]*Unsearched

	exists bool
	sent   arrived                 // the view that was delivered to the agent
	begun  map[string]*promptToken // by req_id: prompts that no attempt has recorded yet
}

// promptToken is the token of a generation that gets a prompt.
type promptToken struct {
	entry  uint64
	seq    uint64 // view_seq and digest of the view delivered at that time
	digest string
}

// NewLeakWatch returns a watch that has searched no entry yet.
func NewLeakWatch(agent string, q LeakQuery) *LeakWatch {
	w := &LeakWatch{agent: agent, query: q, gaps: map[UnsearchedKind]*Unsearched{}, begun: map[string]*promptToken{}, sent: newArrived(agent)}
	switch {
	case q.Path != nil:
		w.paths = []string{q.Path.String()}
		for _, name := range q.Path[min(1, len(q.Path)):] {
			if _, index := jsondoc.ElementIndex(name); !index {
				w.names = append(w.names, newNeedle(name, true))
			}
		}
	case q.Entity != "":
		w.paths = []string{view.EntityPath(q.Entity).String(), jsondoc.Pointer{view.PathRelations[1:], q.Entity}.String()}
		w.needle = newNeedle(q.Entity, true)
	default:
		w.exists = true // a text need not exist in the world
		w.needle = newNeedle(q.Text, false)
	}
	return w
}

// Exists reports whether the queried path or entity was in the world, or in the
// view of any agent, at some time. A proof about something that never existed would
// prove nothing.
func (w *LeakWatch) Exists() bool { return w.exists }

// Unsearched returns what the watch could not search, in the order of kinds.
func (w *LeakWatch) Unsearched() []Unsearched {
	gaps := map[UnsearchedKind]Unsearched{}
	for kind, g := range w.gaps {
		gaps[kind] = *g
	}
	for _, t := range w.begun {
		g, ok := gaps[UnsearchedAttempt]
		if !ok || t.entry < g.Entry {
			g.Entry = t.entry
		}
		g.Kind, g.Count = UnsearchedAttempt, g.Count+1
		gaps[UnsearchedAttempt] = g
	}
	list := make([]Unsearched, 0, len(gaps))
	for _, kind := range []UnsearchedKind{UnsearchedDigest, UnsearchedAttempt, UnsearchedMismatch, UnsearchedRoom, UnsearchedSteps, UnsearchedGuidance} {
		if g, ok := gaps[kind]; ok {
			list = append(list, g)
		}
	}
	return list
}

func (w *LeakWatch) gap(kind UnsearchedKind, entry uint64) {
	g, ok := w.gaps[kind]
	if !ok {
		g = &Unsearched{Kind: kind, Entry: entry}
		w.gaps[kind] = g
	}
	g.Count++
}

// Apply searches an entry, which c has folded, and returns the leaks in it.
func (w *LeakWatch) Apply(c *agents.Core, s *FoldedEntry) []Leak {
	w.found = nil
	w.sent.step(s)
	w.exists = w.exists || w.appears(c, s)
	for _, gone := range s.Passed {
		w.cancelled(s, gone)
	}
	for _, gone := range s.Applied.Cancellations {
		w.cancelled(s, gone)
	}
	switch mine := jsonvalue.TextOf(s.Record.Value, "agent_id") == w.agent; {
	case s.Record.Word == agents.WordOutcome && mine:
		w.refused(s)
	case s.Record.Word == agents.WordToken && mine:
		w.token(s)
	case s.Record.Word == agents.WordGenerated && mine:
		w.attempt(s)
	}
	if n, ok := s.delivery(w.agent); ok {
		w.delta(n)
	}
	if e := s.Applied.Effect; e != nil {
		w.effect(c, s, e)
	}
	return w.found
}

// appears reports whether the entry brings the queried path or entity into the
// world, or into the view of any agent.
func (w *LeakWatch) appears(c *agents.Core, s *FoldedEntry) bool {
	id, below := w.query.Entity, jsondoc.Pointer(nil)
	if p := w.query.Path; p != nil {
		if len(p) < 2 || p[0] != view.PathEntities[1:] && p[0] != view.PathRelations[1:] {
			return true // of every view
		}
		id, below = p[1], p[2:]
		if p[0] == view.PathRelations[1:] {
			return len(below) == 0 && len(c.World().Relations(id)) > 0 || w.delivered(s)
		}
	}
	world := c.World()
	entity, ok := world.Entity(id)
	if len(below) > 0 {
		if _, ok := below.In(entity); ok {
			return true
		}
		return w.delivered(s)
	}
	if _, placed := world.Position(id); ok || placed || len(world.Relations(id)) > 0 {
		return true
	}
	_, agent := c.Observer(id)
	return agent || w.delivered(s)
}

// delivered reports whether a delta for any agent contains one of the paths.
func (w *LeakWatch) delivered(s *FoldedEntry) bool {
	for _, d := range s.Applied.Deliveries {
		for _, op := range d.Delta.Patches {
			if op.Op == "remove" {
				continue
			}
			for _, path := range w.paths {
				if _, ok := touches(op, path); ok {
					return true
				}
			}
		}
	}
	return false
}

// touches reports whether an operation sets a path or a value below it, and at
// which place.
func touches(op jsondoc.Operation, path string) (place string, ok bool) {
	switch {
	case jsondoc.Within(op.Path, path):
		return op.Path, true
	case jsondoc.Within(path, op.Path):
		// The rest of the path is escaped by the same rules as the whole.
		rest, err := jsondoc.ParsePointer(path[len(op.Path):])
		_, ok := rest.In(op.Value)
		return path, err == nil && ok
	}
	return "", false
}

// open begins the search of content that is sent to the agent at the time at.
func (w *LeakWatch) open(via DisclosureRoute, s *FoldedEntry, at time.Duration) {
	w.via, w.op = via, -1
	w.cause = TracedDelivery{Entry: s.Entry, Made: s.At, Cause: s.cause()}
	w.cause.Delivery.Agent, w.cause.Delivery.At = w.agent, at
}

func (w *LeakWatch) add(place string, how LeakForm) {
	w.found = append(w.found, Leak{w.cause, w.via, w.op, place, how})
}

// cancelled searches a cancellation.
func (w *LeakWatch) cancelled(s *FoldedEntry, gone agents.Cancellation) {
	if gone.Agent != w.agent {
		return
	}
	w.Stats.Cancellations++
	w.open(RouteCancellation, s, gone.At)
	w.words("/reason", gone.Reason, LeakReason)
	if w.query.Text != "" {
		w.words("/req_id", gone.ReqID, LeakValue) // the agent chose it: it does not disclose an entity or a path
	}
}

// refused searches a recorded refusal: its code, its reason and all of its
// problems.
func (w *LeakWatch) refused(s *FoldedEntry) {
	w.Stats.Refusals++
	w.open(RouteRefusal, s, s.At)
	for _, name := range []string{"code", "reason", "problems"} {
		m, _ := s.Record.Value.Get(name)
		w.anywhere("/"+name, m, LeakReason)
	}
}

// token notes a generation that gets a prompt.
func (w *LeakWatch) token(s *FoldedEntry) {
	v := s.Record.Value
	if m, _ := v.Get(agents.MemberPrompted); s.Applied.Err != nil || !isTrue(m) {
		return
	}
	reqID := jsonvalue.TextOf(v, "req_id")
	if before, ok := w.begun[reqID]; ok {
		w.gap(UnsearchedAttempt, before.entry)
	}
	t := &promptToken{entry: s.Entry}
	t.seq, t.digest = w.sent.view()
	w.begun[reqID] = t
	if jsonvalue.UintOf(v, "context_seq") != t.seq || jsonvalue.TextOf(v, "context_digest") != t.digest {
		w.gap(UnsearchedMismatch, s.Entry)
	}
}

func isTrue(v signal.Value) bool {
	b, _ := v.Bool()
	return b
}

// attempt searches the prompt of an attempt at a generation. A record that a
// program makes about a generation that it runs itself is not an attempt.
func (w *LeakWatch) attempt(s *FoldedEntry) {
	v := s.Record.Value
	reqID := jsonvalue.TextOf(v, "req_id")
	sum, isAttempt := v.Get(agents.MemberPromptDigest)
	if _, finished := v.Get("finish"); !isAttempt {
		if finished {
			w.gap(UnsearchedDigest, s.Entry) // rules 0 recorded not even the digest
		}
		return
	}
	if t, ok := w.begun[reqID]; ok {
		if jsonvalue.UintOf(v, agents.MemberViewSeq) != t.seq || jsonvalue.TextOf(v, agents.MemberViewDigest) != t.digest {
			w.gap(UnsearchedMismatch, s.Entry)
		}
		delete(w.begun, reqID)
	}
	prompt, ok := v.Get(agents.MemberPrompt)
	if !ok {
		w.gap(UnsearchedDigest, s.Entry)
		return
	}
	w.Stats.Prompts++
	if digest, _ := sum.Text(); digest != agents.PromptDigest(prompt) {
		w.gap(UnsearchedMismatch, s.Entry)
	}
	w.open(RoutePrompt, s, s.At)
	w.anywhere("/"+agents.MemberPrompt, prompt, LeakValue)
}

// delta searches a delta.
func (w *LeakWatch) delta(n TracedDelivery) {
	w.via, w.cause = RouteView, n
	w.Stats.Deltas++
	if n.Delivery.Delta.IsFullView() {
		w.Stats.Whole++
	}
	for i, op := range n.Delivery.Delta.Patches {
		w.op = i
		w.Stats.Operations++
		w.operation(op)
	}
}

func (w *LeakWatch) operation(op jsondoc.Operation) {
	for _, path := range w.paths {
		if place, ok := touches(op, path); ok {
			w.add(place, LeakPath)
		}
	}
	if w.query.Path != nil {
		return
	}
	if w.query.Entity != "" {
		w.relations(op)
	}
	place := func() string { return op.Path }
	if p, err := jsondoc.ParsePointer(op.Path); err == nil {
		for i, name := range p {
			if w.query.Entity == "" || i > 1 { // w.paths covers the first two names
				w.name(name, place)
			}
		}
	}
	if w.query.Entity != "" && jsondoc.Within(op.Path, view.PathRelations) {
		return // relations has searched it
	}
	w.value(op.Value, place, LeakValue)
}

// relations searches the relationships that an operation sets for an id.
func (w *LeakWatch) relations(op jsondoc.Operation) {
	if op.Path == view.PathRelations {
		for from, list := range op.Value.Members() {
			w.list(op.Path+"/"+jsonpointer.Escape(from), list)
		}
	} else if jsondoc.Within(op.Path, view.PathRelations) {
		w.list(op.Path, op.Value)
	}
}

func (w *LeakWatch) list(place string, list signal.Value) {
	i := 0
	for e := range list.Elements() {
		to, ok := e.Text()
		if !ok {
			to = jsonvalue.TextOf(e, "to")
		}
		if to == w.query.Entity {
			w.add(place+"/"+strconv.Itoa(i), LeakRelation)
		}
		i++
	}
}

// effect searches an effect that is sent to the agent outside of its view: the
// outcome of its own request, a message of a chat room, or the step of an
// environment.
func (w *LeakWatch) effect(c *agents.Core, s *FoldedEntry, e *world.Effect) {
	own := e.SourceID == w.agent && e.ReqID != ""
	if own {
		w.Stats.Outcomes++
	}
	if own && w.query.Text != "" { // the agent named the ids and paths in its request itself
		w.open(RouteOutcome, s, s.At)
		w.anywhere("", e.Value(), LeakValue)
	}
	if e.Kind == kindEpisodeStep {
		w.step(s, e)
		return
	}
	n, observed := s.delivery(w.agent)
	if own || !observed || !c.Receives(w.agent, *e) {
		return
	}
	switch {
	case world.IsMessage(e.Kind):
		w.Stats.Messages++
		w.open(RouteMessage, s, n.Delivery.At)
		w.anywhere("", e.Value(), LeakValue)
	case !world.Builtin(e.Kind):
		if found := len(w.found); w.probe(e.Value()) {
			w.found = w.found[:found]
			w.gap(UnsearchedRoom, s.Entry)
		}
	}
}

// kindEpisodeStep is the kind of effect that records a step of package rl. This
// package cannot import it.
const kindEpisodeStep = "EpisodeStep"

// step searches the result of a step of an environment for the agent.
func (w *LeakWatch) step(s *FoldedEntry, e *world.Effect) {
	list, _ := e.Payload.Get("agents")
	i := 0
	for judgement := range list.Elements() {
		if jsonvalue.TextOf(judgement, "agent") == w.agent {
			w.Stats.Judgements++
			w.open(RouteJudgement, s, s.At)
			w.anywhere("/payload/agents/"+strconv.Itoa(i), judgement, LeakValue)
			if w.query.Path != nil {
				w.gap(UnsearchedSteps, s.Entry)
			}
		}
		i++
	}
}

// Guidance searches an entry of a director, which may be guidance for its
// character.
func (w *LeakWatch) Guidance(entry uint64, v signal.Value) {
	w.Stats.Guidance++
	found := len(w.found)
	if w.probe(v) || w.query.Path != nil {
		w.gap(UnsearchedGuidance, entry)
	}
	w.found = w.found[:found]
}

// probe reports whether a value contains the content anywhere.
func (w *LeakWatch) probe(v signal.Value) bool {
	found := len(w.found)
	w.anywhere("", v, LeakValue)
	return len(w.found) > found
}

// anywhere searches a value that is not part of a view.
func (w *LeakWatch) anywhere(at string, v signal.Value, how LeakForm) {
	if w.query.Path == nil {
		w.value(v, func() string { return at }, how)
		return
	}
	// A value mentions a path if its names and texts, taken together, contain every
	// name of the path.
	if len(w.names) == 0 {
		return
	}
	missing := slices.Clone(w.names)
	w.gather(v, &missing)
	if len(missing) == 0 {
		w.add(at, LeakMention)
	}
}

// gather removes from missing the needles that a name or text of a value contains.
func (w *LeakWatch) gather(v signal.Value, missing *[]needle) {
	look := func(s string) {
		w.Stats.Values++
		*missing = slices.DeleteFunc(*missing, func(n needle) bool { return n.in(s) })
	}
	switch v.Kind() {
	case signal.KindObject:
		for name, m := range v.Members() {
			look(name)
			w.gather(m, missing)
		}
	case signal.KindArray:
		for e := range v.Elements() {
			w.gather(e, missing)
		}
	default:
		if s, ok := v.Text(); ok {
			look(s)
		}
	}
}

// words searches one text.
func (w *LeakWatch) words(place, text string, how LeakForm) {
	w.anywhere(place, jsonvalue.Text(text), how)
}

func (w *LeakWatch) name(name string, place func() string) {
	w.Stats.Values++
	if w.needle.in(name) {
		w.add(place(), w.form(LeakName))
	}
}

// form returns the form of a leak that was found as how: an id or a path is a
// mention, except in a reason.
func (w *LeakWatch) form(how LeakForm) LeakForm {
	if w.query.Text == "" && how != LeakReason {
		return LeakMention
	}
	return how
}

// value searches a value, which is at most [signal.MaxDepth] deep. place is called
// only where something is found, since a pointer is expensive to build for each
// value.
func (w *LeakWatch) value(v signal.Value, place func() string, how LeakForm) {
	switch v.Kind() {
	case signal.KindObject:
		for name, m := range v.Members() {
			at := func() string { return place() + "/" + jsonpointer.Escape(name) }
			w.name(name, at)
			w.value(m, at, how)
		}
	case signal.KindArray:
		i := 0
		for e := range v.Elements() {
			w.value(e, func() string { return place() + "/" + strconv.Itoa(i) }, how)
			i++
		}
	case signal.KindAbsent:
	default:
		w.Stats.Values++
		if w.needle.inScalar(v) {
			w.add(place(), w.form(how))
		}
	}
}

// arrived keeps the number and digest of the view that was delivered to an agent,
// without the view itself.
type arrived struct {
	agent   string
	empty   string // digest of the empty view
	seq     uint64
	digest  string
	here    bool
	pending []agents.Delivery // without their patches
}

func newArrived(agent string) arrived {
	return arrived{agent: agent, empty: NewDeliveredView(agent).View().ContextDigest}
}

// step applies an entry, as [DeliveredView.Apply] does.
func (a *arrived) step(s *FoldedEntry) {
	a.advance(s.At)
	switch {
	case s.Dismisses(a.agent):
		a.here, a.pending = false, nil
	case s.registers(a.agent):
		if !a.here {
			a.seq, a.digest, a.pending = 0, "", nil
		}
		a.here = true
	}
	if n, ok := s.delivery(a.agent); ok {
		n.Delivery.Delta.Patches = nil
		a.pending = append(a.pending, n.Delivery)
	}
	a.advance(s.At)
}

func (a *arrived) advance(to time.Duration) {
	for len(a.pending) > 0 && a.pending[0].At <= to {
		a.seq, a.digest = a.pending[0].Delta.ViewSeq, a.pending[0].Delta.ContextDigest()
		a.pending = a.pending[1:]
	}
}

func (a *arrived) view() (seq uint64, digest string) {
	if a.digest == "" {
		return a.seq, a.empty
	}
	return a.seq, a.digest
}
