package simulate

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/view"
	"github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/authored"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/wording"
	"github.com/sajou-dev/sajou-go/signal"
)

func (b *reader) scenario(n authored.Located) *Simulation {
	s := &Simulation{limits: defaultLimits}
	if n.Value.Kind() != signal.KindObject {
		b.refuse(n, `a scenario is an object with "sajou": "simulation", not %s`, n.Value.Kind().WithArticle())
		return s
	}
	if word, _ := n.At("sajou").Value.Text(); word != "simulation" {
		b.refuse(n.At("sajou"), `"sajou" is not "simulation": the file is not a scenario of agents`)
		return s
	}
	if version, _ := n.At("version").Value.Int64(); version != 1 {
		b.refuse(n.At("version"), `"version" is not 1, the only one that this program knows`)
		return s
	}
	b.object(n, "a scenario", "sajou", "version", "name", "title", "config", "world", "agents", "events", "ticks", "until",
		"limits", "expect", "$schema")
	if s.Name = b.needed(n, "name", 0); s.Name != "" {
		if err := eventlog.CheckName(s.Name); err != nil {
			b.refuse(n.At("name"), "name is what the session is called: %v", err)
		}
	}
	s.Title = b.text(n, "title", 0)
	s.bounded, s.until = n.Has("until"), b.millis(n, "until", 0)
	b.rules(n, s)
	b.bounds(n, s)
	for _, e := range b.list(n, "events", maxItems) {
		if b.object(e, "an event", "at", "draft") {
			s.events = append(s.events, event{b.when(e, s), b.draft(e.At("draft"), e)})
		}
		b.item(e)
	}
	for i, e := range b.list(n, "expect", maxJudged) {
		if b.object(e, "an expectation", subjects...) {
			s.expect = append(s.expect, b.expectation(e, i, s))
		}
	}
	nameRequests(s)
	return s
}

// item counts the actions and events of a scenario.
func (b *reader) item(n authored.Located) {
	if b.items++; b.items == maxItems+1 {
		b.refuse(n, "a scenario has at most %d script actions, reactions and events", maxItems)
	}
}

// rules reads the configuration, the world and the agents, each as the engine
// would judge it after those before.
func (b *reader) rules(n authored.Located, s *Simulation) {
	core, err := agents.NewCore(agents.Options{})
	if err != nil {
		panic("simulate: " + err.Error()) // there are no options
	}
	if n.Has("config") {
		s.config = slices.Clone(n.At("config").Value)
		if records, err := core.Configure(s.config); err != nil {
			b.judge(n.At("config"), err)
		} else {
			core.Apply(0, records[0])
		}
	}
	s.ticked = core.Config().Authority == agents.TimeSim
	if n.Has("world") {
		s.world = slices.Clone(n.At("world").Value)
		if records, err := core.Begin(s.world); err != nil {
			b.judge(n.At("world"), err)
		} else {
			core.Apply(0, records[0])
		}
	}
	list := b.list(n, "agents", maxAgents)
	var ids []string
	for _, e := range list {
		id, _ := e.At("id").Value.Text()
		ids = append(ids, strings.Clone(id))
	}
	if len(list)*len(s.world) > maxSeen {
		b.refuse(n.At("agents"), "%d agents in a world of %d bytes are too many: use fewer of them, or a smaller world", len(list), len(s.world))
		b.agents = ids
		return
	}
	for i, e := range list {
		if slices.Contains(ids[:i], ids[i]) && ids[i] != "" {
			b.refuse(e.At("id"), "two agents are called %s", wording.Quoted(ids[i]))
		} else if ids[i] != "" {
			b.agents = append(b.agents, ids[i])
		}
		s.agents = append(s.agents, b.agent(e, core, s))
	}
}

// judge tells what the engine says about a part of the scenario, where it says
// so.
func (b *reader) judge(n authored.Located, err error) {
	if e, ok := errors.AsType[*view.PolicyError](err); ok {
		b.place(n, e.Path, e.Reason)
		return
	}
	message := err.Error()
	for _, prefix := range []string{"agents: world: ", "agents: configuration: ", "agents: "} {
		if rest, ok := strings.CutPrefix(message, prefix); ok {
			message = rest
			break
		}
	}
	if at, reason, ok := strings.Cut(message, ": "); ok && strings.HasPrefix(at, "/") {
		b.place(n, at, reason)
		return
	}
	b.refuse(n, "%s", message)
}

// place tells a reason about what a pointer from n leads to.
func (b *reader) place(n authored.Located, pointer, reason string) {
	at, rest := below(n, pointer)
	if len(rest) > 0 {
		reason = strings.Join(rest, "/") + ": " + reason
	}
	written, _ := at.Value.Text()
	name := ""
	if segments := at.Location.Segments(); len(segments) > 0 {
		name = segments[len(segments)-1]
	}
	switch {
	case strings.HasPrefix(reason, "unknown policy"):
		reason += instead(written, policyNames)
	case reason == "unknown member" && pointer == "/"+name:
		reason = fmt.Sprintf("a configuration has no member %s%s", wording.Quoted(name), instead(name, configNames))
	}
	b.refuse(at, "%s", reason)
}

// Suggestions for a name that the engine does not know.
var (
	policyNames = []string{
		"default", "everything", "self", "conversation", "distance", "relationships", "cone", "team", "channel", "fields",
		"all", "any", "not", "fog", "custom",
	}
	configNames = []string{
		"authority", "backpressure_policy", "classes", "cooldowns", "deadline_ms", "debounce_ms", "default_priority",
		"intent_kinds", "interrupt", "latency_model", "max_agents", "max_quantum", "max_queue_depth", "paused",
		"quota_intents_per_minute", "quota_tokens_per_minute", "rules", "staleness_threshold", "tick_effects",
		"token_budget", "weight",
	}
)

func (b *reader) agent(n authored.Located, core *agents.Core, s *Simulation) agent {
	var a agent
	if !b.object(n, "an agent", "id", "policy", "class", "permissions", "joins", "reads_every", "script", "on") {
		return a
	}
	a.registration = agents.Registration{AgentID: b.needed(n, "id", world.MaxID), Class: b.text(n, "class", world.MaxID)}
	if n.Has("policy") {
		a.registration.Policy = slices.Clone(n.At("policy").Value)
	}
	if n.Has("permissions") {
		a.registration.Permissions = append([]string{}, b.texts(n, "permissions")...)
	}
	if a.registration.AgentID != "" {
		records, err := core.Register(a.registration)
		policy, isPolicy := errors.AsType[*view.PolicyError](err)
		switch {
		case isPolicy && policy.Path == "/class":
			b.refuse(n.At("class"), "%s: name it in config.classes", policy.Reason)
		case isPolicy:
			at := policy.Path
			// Settings are named from the agent on.
			if setting, ok := strings.CutPrefix(at, "/policy/"); ok {
				if _, rest := below(n.At("policy"), at); len(rest) > 0 {
					at = "/" + setting
				}
			}
			b.place(n.At("policy"), at, policy.Reason)
		case err != nil:
			b.judge(n, err)
		default:
			core.Apply(0, records[0])
		}
	}
	a.joins, a.readsEvery = b.millis(n, "joins", 0), b.millis(n, "reads_every", 0)
	if s.bounded && a.joins > s.until {
		b.refuse(n.At("joins"), "the scenario ends before that, until is %d", s.until.Milliseconds())
	}
	for _, e := range b.list(n, "script", maxItems) {
		if b.object(e, "an action of a script", "at", "submit", "generate", "cancel", "leave") {
			c := cue{b.when(e, s), b.action(e)}
			if c.at < a.joins {
				b.refuse(e.At("at"), "%s joins only after that, at %d", wording.Quoted(a.registration.AgentID), a.joins.Milliseconds())
			}
			a.script = append(a.script, c)
		}
		b.item(e)
	}
	for _, e := range b.list(n, "on", maxItems) {
		if b.object(e, "a reaction", "path", "equals", "exists", "changed", "after", "times", "do") {
			a.on = append(a.on, b.reaction(e))
		}
		b.item(e)
	}
	return a
}

// when reads the time at which something happens.
func (b *reader) when(n authored.Located, s *Simulation) time.Duration {
	if !n.Has("at") {
		b.lacks(n, "at is missing: when it happens, in milliseconds")
	}
	at := b.millis(n, "at", 0)
	if s.bounded && at > s.until {
		b.refuse(n.At("at"), "the scenario ends before that, until is %d", s.until.Milliseconds())
	}
	return at
}

func (b *reader) bounds(n authored.Located, s *Simulation) {
	if n.Has("limits") && b.object(n.At("limits"), "limits", "steps", "effects", "reactions") {
		for _, l := range []struct {
			name  string
			limit *int64
			most  int64
		}{
			{"steps", &s.limits.steps, mostLimits.steps},
			{"effects", &s.limits.effects, mostLimits.effects},
			{"reactions", &s.limits.reactions, mostLimits.reactions},
		} {
			*l.limit = b.integer(n.At("limits"), l.name, *l.limit, 1, l.most)
		}
	}
	switch t := n.At("ticks"); {
	case n.Has("ticks") && !s.ticked:
		b.refuse(t, `ticks decide only where config has "authority": "sim"`)
	case !n.Has("ticks") && s.ticked:
		b.refuse(n.At("config").At("authority"), `with "sim" only ticks decide, and there are none: add "ticks": {"every": 50}`)
	case !n.Has("ticks"):
	case b.object(t, "ticks", "every", "first", "source"):
		s.ticks.every = b.millis(t, "every", 0)
		s.ticks.first = b.millis(t, "first", s.ticks.every)
		if s.ticks.source = b.text(t, "source", world.MaxID); s.ticks.source == "" {
			s.ticks.source = "simulation"
		}
		switch {
		case !t.Has("every"):
			b.lacks(t, "every is missing: from one tick to the next")
		case s.ticks.every < time.Millisecond:
			b.refuse(t.At("every"), "from one tick to the next it is 1 millisecond at least")
		}
		if !s.bounded {
			b.refuse(t, "ticks go on for ever: say until when")
		}
	}
}

func (b *reader) draft(n, around authored.Located) agents.EffectDraft {
	if !around.Has("draft") {
		b.lacks(around, "draft is missing: what happens, as {kind, source_id, payload}")
		return agents.EffectDraft{}
	}
	if !b.object(n, "a draft", "kind", "source_id", "payload", "schema_version") {
		return agents.EffectDraft{}
	}
	d := agents.EffectDraft{
		Kind: b.needed(n, "kind", world.MaxID), SourceID: b.text(n, "source_id", world.MaxID),
		SchemaVersion: b.text(n, "schema_version", world.MaxID),
	}
	if n.Has("payload") {
		if d.Payload = slices.Clone(n.At("payload").Value); d.Payload.Kind() != signal.KindObject {
			b.refuse(n.At("payload"), "payload is an object, not %s", d.Payload.Kind().WithArticle())
		}
	}
	return d
}

func (b *reader) action(n authored.Located) action {
	var a action
	switch b.one(n, "an action", "submit", "generate", "cancel", "leave") {
	case "submit":
		if m := n.At("submit"); b.object(m, "an intent", "kind", "payload", "req_id", "context_seq", "priority", "schema_version") {
			a.submit = new(b.intent(m, false))
		}
	case "generate":
		if m := n.At("generate"); b.object(m, "a generation", "words", "ms_per_token", "stall", "reads", "classes", "deadline_ms",
			"token_budget", "intent", "req_id", "interrupted") {
			a.generate = b.generation(m)
		}
	case "cancel":
		a.cancel = b.needed(n, "cancel", agents.MaxReqID)
	case "leave":
		a.leave = b.isTrue(n, "leave")
	}
	return a
}

func (b *reader) intent(n authored.Located, answered bool) submission {
	s := submission{
		kind: b.needed(n, "kind", world.MaxID), payload: b.payload(n, answered), reqID: b.text(n, "req_id", agents.MaxReqID),
		current: !n.Has("context_seq"), unprioritized: !n.Has("priority"), version: b.text(n, "schema_version", world.MaxID),
	}
	s.contextSeq = uint64(b.integer(n, "context_seq", 0, 0, 1<<53))
	s.priority = int(b.integer(n, "priority", 0, -agents.MaxPriority, agents.MaxPriority))
	return s
}

// spoken is the intent of a generation that names none.
var spoken = submission{kind: world.KindSpeak, payload: func() signal.Value {
	v, err := signal.ParseValue([]byte(`{"text":"{{answer}}"}`))
	if err != nil {
		panic("simulate: " + err.Error())
	}
	return v
}(), current: true, unprioritized: true}

func (b *reader) generation(n authored.Located) *generating {
	g := &generating{
		words: b.words(n, "words"), perToken: b.millis(n, "ms_per_token", 50*time.Millisecond),
		reads: b.texts(n, "reads"), classes: b.texts(n, "classes"),
		deadline: b.millis(n, "deadline_ms", 0), budget: b.integer(n, "token_budget", 0, 1, 1<<40),
		intent: spoken,
	}
	if !n.Has("words") {
		b.lacks(n, "words is missing: what the generation yields")
	}
	if m := n.At("stall"); n.Has("stall") && b.object(m, "a stall", "after", "ms") {
		g.stallAfter, g.stall = int(b.integer(m, "after", 0, 0, maxWords)), b.millis(m, "ms", 0)
	}
	if m := n.At("intent"); n.Has("intent") && b.object(m, "the intent of a generation", "kind", "payload", "priority") {
		g.intent = b.intent(m, true)
	}
	g.intent.reqID = b.text(n, "req_id", agents.MaxReqID)
	if m := n.At("interrupted"); n.Has("interrupted") && b.object(m, "interrupted", "regenerate", "after", "words") {
		g.regenerate = int(b.integer(m, "regenerate", 0, 0, 1000))
		g.again = b.millis(m, "after", 0)
		g.wordsAgain, g.hasNewWords = b.words(m, "words"), m.Has("words")
	}
	return g
}

// words reads a text, or an array of words.
func (b *reader) words(n authored.Located, name string) string {
	m := n.At(name)
	b.placeholders(m, false)
	text := ""
	if m.Value.Kind() == signal.KindArray {
		text = strings.Join(b.texts(n, name), " ")
	} else {
		text = b.text(n, name, 0)
	}
	if len(text) > maxFilled {
		b.refuse(m, "%s take at most %d KiB", name, maxFilled>>10)
	}
	return text
}

func (b *reader) reaction(n authored.Located) reaction {
	r := reaction{
		path: b.view(n), after: b.millis(n, "after", 0), times: int(b.integer(n, "times", 1, 1, maxItems)),
	}
	switch b.one(n, "what a reaction waits for", "equals", "exists", "changed") {
	case "equals":
		r.test, r.value = isEqual, slices.Clone(n.At("equals").Value)
	case "exists":
		there, ok := n.At("exists").Value.Bool()
		if !ok {
			b.refuse(n.At("exists"), "exists is true or false")
		}
		if r.test = isGone; there {
			r.test = isThere
		}
	case "changed":
		r.test = isChanged
		b.isTrue(n, "changed")
	}
	if !n.Has("do") {
		b.lacks(n, "do is missing: the action")
	} else if m := n.At("do"); b.object(m, "do", "submit", "generate", "cancel", "leave") {
		r.do = b.action(m)
	}
	return r
}

func (b *reader) expectation(n authored.Located, i int, s *Simulation) expectation {
	e := expectation{count: -1, at: -1, place: (*authored.Location)(nil).At("expect").Element(i)}
	name := b.one(n, "an expectation", subjects...)
	if name == "" {
		return e
	}
	e.subject = subject(slices.Index(subjects, name))
	members := map[subject][]string{
		accepted:    {"agent", "req_id", "kind", "code", "reason", "count"},
		rejected:    {"agent", "req_id", "kind", "code", "reason", "count"},
		cancelled:   {"agent", "req_id", "reason", "count"},
		generations: {"agent", "req_id", "count"},
		effects:     {"source", "kind", "count"},
		sees:        {"agent", "path", "equals", "at"},
		seesNot:     {"agent", "path", "equals", "at"},
		told:        {"agent", "texts"},
		neverTold:   {"agent", "text"},
	}[e.subject]
	m := n.At(name)
	if !b.object(m, name, members...) {
		return e
	}
	switch e.subject {
	case effects:
		e.agent = b.text(m, "source", 0)
	case accepted, rejected, cancelled, generations:
		e.agent = b.known(m, "agent", false)
	default:
		e.agent = b.known(m, "agent", true)
	}
	e.reqID, e.kind, e.reason = b.text(m, "req_id", 0), b.text(m, "kind", 0), b.text(m, "reason", 0)
	e.count = int(b.integer(m, "count", -1, 0, mostLimits.steps))
	if code := b.text(m, "code", 0); code != "" {
		e.code = agents.Code(code)
		if _, ok := e.code.Failure(); !ok {
			b.refuse(m.At("code"), "no refusal has the code %s%s", wording.Quoted(code), instead(code, codes))
		}
	}
	switch e.subject {
	case sees, seesNot:
		e.path = b.view(m)
		if m.Has("equals") {
			e.equals = slices.Clone(m.At("equals").Value)
		}
		if m.Has("at") {
			e.at = b.when(m, s)
		}
	case told:
		if e.texts = b.texts(m, "texts"); len(e.texts) == 0 {
			b.lacks(m, "texts is missing: what the agent is told, in order")
		}
	case neverTold:
		e.texts = []string{b.needed(m, "text", 0)}
	default:
	}
	return e
}

// codes are those that refuse an intent.
var codes = []string{
	string(agents.ErrStaleContext), string(agents.ErrIntentConflict), string(agents.ErrInvalidIntent), string(agents.ErrInvalid),
	string(agents.ErrQuotaExceeded), string(agents.ErrCooldownActive), string(agents.ErrQueueFull), string(agents.ErrTimeout),
	string(agents.ErrCancelled), string(agents.ErrForbidden), string(agents.ErrUnknownAgent), string(agents.ErrWorldPaused),
	string(agents.ErrVersionMismatch),
}

// nameRequests gives a req_id to each request without one: r1, r2 and so on of each agent,
// in the order of the file.
func nameRequests(s *Simulation) {
	for i := range s.agents {
		a := &s.agents[i]
		var ids []*string
		collect := func(do *action) {
			switch {
			case do.submit != nil:
				ids = append(ids, &do.submit.reqID)
			case do.generate != nil:
				ids = append(ids, &do.generate.intent.reqID)
			}
		}
		for j := range a.script {
			collect(&a.script[j].do)
		}
		for j := range a.on {
			collect(&a.on[j].do)
		}
		taken := map[string]bool{}
		for _, id := range ids {
			taken[*id] = true
		}
		n := 0
		for _, id := range ids {
			for *id == "" {
				if n++; !taken[fmt.Sprintf("r%d", n)] {
					*id = fmt.Sprintf("r%d", n)
				}
			}
		}
	}
}
